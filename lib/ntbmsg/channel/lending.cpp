// SPDX-License-Identifier: BSD-3-Clause
#include "channel/lending.hpp"

#include <algorithm>

#include <rte_mbuf.h>

#include <locked.hpp>

#include "channel/ending.hpp"
#include "transport/sending.hpp"

namespace ntbmsg
{

namespace
{

/// Channels looked at in one search, so that a poll stays short.
constexpr unsigned looks = 8;
/// Returns of the worker without another search after one that found nothing.
constexpr uint32_t search_pause = 64;

int send_argument(Channel &c, uint8_t op, Credit credit)
{
    return send_op(*c.worker, c, op, protocol::credit_argument(credit.messages, credit.buffers),
                   nullptr);
}

/// Reserves what @p c gets in addition. @return false: the budget has less than it may have
bool reserve_growth(Channel &c)
{
    Worker &w = *c.worker;
    const Lending &l = c.lending;
    const Credit wanted = l.wanted(c.rx.granted);
    if (wanted.messages == 0 && wanted.buffers == 0)
        return true;
    const ntb::Locked held(w.lock);
    const uint32_t others = w.slots.count() - w.slots.used();
    const Credit spare = {Budget::spare(w.budget.left.messages, others, messages_kept),
                          Budget::spare(w.budget.left.buffers, others, buffers_kept)};
    const Credit extra = wanted.least({spare.messages / 4, spare.buffers / 4});
    w.budget.left -= extra;
    c.lending.extra = extra;
    return extra.covers(wanted);
}

/// It has had no credit returned while all others could have.
bool is_idle(const Channel &c)
{
    const Worker &w = *c.worker;
    return w.returns - c.lending.used_at > search_pause + 2 * w.slots.used();
}

/// How much of the credit of @p c is better given to @p asking: all that it can do without if it is
/// idle, else a part of what it has more than twice as much of.
Credit to_recall(const Channel &c, const Channel &asking)
{
    const Credit has = c.rx.granted, surplus = c.lending.surplus(has);
    return is_idle(c) ? surplus : surplus.least(Lending::part(has, asking.rx.granted));
}

/// Asks another channel for credit that @p asking lacks. @return whether it did
bool recall_from(Channel &c, const Channel &asking)
{
    Lending &l = c.lending;
    if (&c == &asking || l.answer_due || (c.owed & owe_grant) != 0 || !may_receive(state_of(c)))
        return false;
    const Credit wanted = asking.lending.lacking(to_recall(c, asking));
    if (wanted.messages == 0 && wanted.buffers == 0)
        return false;
    l.recalled = wanted;
    l.answer_due = true;
    // What was received goes first, so that a sender that has used all of it can give some back.
    owe(c, owe_recall | (c.rx.owed.messages != 0 ? owe_credit : 0U));
    return true;
}

/// Looks for channels that can do without their credit.
void search(Channel &asking)
{
    Worker &w = *asking.worker;
    if (static_cast<int32_t>(w.returns - w.search_from) < 0)
        return;
    bool found = false;
    for (unsigned i = 0; i < looks && !found; ++i) {
        Channel *c = w.lending.pop();
        if (c == nullptr)
            break;
        w.lending.push(*c);
        found = recall_from(*c, asking);
    }
    if (!found)
        w.search_from = w.returns + search_pause;
}

// What the peer says. Each @return false: it may not say that.

bool take_more(Channel &c, uint32_t lacks)
{
    if (lacks == 0 || (lacks & ~uint32_t{protocol::lack_messages | protocol::lack_buffers}) != 0)
        return false;
    c.lending.lacks = static_cast<uint8_t>(lacks); // seen when credit is returned
    return true;
}

bool take_grant(Channel &c, Credit extra)
{
    if (c.asked_more == 0 || !c.tx.grow(extra, protocol::max_credit, may_send(state_of(c))))
        return false;
    c.asked_more = 0;
    return true;
}

bool take_recall(Channel &c, Credit wanted)
{
    if ((c.owed & owe_surplus) != 0)
        return false;
    if (may_send(state_of(c))) { // else CLOSE returns all of it
        c.given = c.tx.yield(wanted);
        owe(c, owe_surplus);
    }
    return true;
}

bool take_given(Channel &c, Credit given)
{
    Worker &w = *c.worker;
    if (!c.lending.answered(given) || !c.rx.shrink(given))
        return false;
    {
        const ntb::Locked held(w.lock);
        w.budget.release(given);
    }
    if (c.rx.due() && may_receive(state_of(c)))
        owe(c, owe_credit);
    return true;
}

} // namespace

void begin_lending(Channel &c)
{
    c.lending.used_at = c.worker->returns;
    c.worker->lending.push(c);
}

void ask_for_more(Channel &c)
{
    if (c.asked_more != 0 || !c.worker->lends || c.tx_word == 0 || !may_send(state_of(c)) ||
        c.tx.granted.messages == 0)
        return;
    const bool messages = c.tx.now.messages == 0;
    c.asked_more = messages ? protocol::lack_messages : protocol::lack_buffers;
    owe(c, owe_more);
}

void credit_returned(Channel &c)
{
    Worker &w = *c.worker;
    Lending &l = c.lending;
    l.used_at = ++w.returns;
    // A reader that stops gets no more than it reads.
    if (likely(l.lacks == 0) || c.rx_messages.get() - l.grown_at < c.rx.granted.messages ||
        l.answer_due || (c.owed & owe_grant) != 0 || !may_receive(state_of(c)))
        return;
    if (!reserve_growth(c))
        search(c);
    if (l.extra.messages != 0 || l.extra.buffers != 0)
        owe(c, owe_grant);
}

int send_grant(Channel &c)
{
    Lending &l = c.lending;
    if (!may_receive(state_of(c)))
        return 0; // the peer has closed: what was reserved comes back with the rest
    const int rc = send_argument(c, protocol::op_grant, l.extra);
    if (rc == 0) {
        c.rx.grow(l.extra);
        l.extra = {};
        l.lacks = 0;
        l.grown_at = c.rx_messages.get();
    }
    return rc;
}

int send_recall(Channel &c)
{
    return send_argument(c, protocol::op_recall, c.lending.recalled);
}

int send_given(Channel &c)
{
    return send_argument(c, protocol::op_surplus, c.given);
}

int send_more(Channel &c)
{
    return send_op(*c.worker, c, protocol::op_more, c.asked_more, nullptr);
}

bool on_lending(Channel &c, uint32_t op, uint32_t argument, const rte_mbuf *m)
{
    bool sound = m->pkt_len == 0, granted = false;
    if (sound && op == protocol::op_more)
        sound = take_more(c, argument);
    else if (sound && op == protocol::op_grant)
        sound = granted = take_grant(c, credit_in(argument));
    else if (sound && op == protocol::op_recall)
        sound = take_recall(c, credit_in(argument));
    else if (sound)
        sound = take_given(c, credit_in(argument));
    if (!sound)
        protocol_error(c);
    return granted;
}

} // namespace ntbmsg

// SPDX-License-Identifier: BSD-3-Clause
#include "endpoint/closing.hpp"

#include <algorithm>

#include "base/clock.hpp"
#include "channel/flush.hpp"
#include "dispatch/dispatcher.hpp"
#include "transport/sending.hpp"

namespace ntbmsg
{

namespace
{

constexpr unsigned polls_max = 64;

bool in_use(const Channel &c)
{
    const uint8_t state = state_of(c);
    return state != state_free && state != state_requested;
}

/// Returns the credit of all that was received.
void confirm(Channel &c)
{
    const uint8_t state = state_of(c);
    if (!in_use(c) || c.tx_word == 0 || (has_ended(state) && state != NTBMSG_CHANNEL_CLOSED))
        return;
    if (c.proxy != nullptr)
        collect_received(c);
    if (c.rx.owed.messages != 0)
        owe(c, owe_credit);
}

/// Says that nothing more is received here, so that a peer that closes, too, does not wait. Behind
/// the credit of what was received.
bool announce(Worker &w)
{
    if ((w.chores & (chore_hello | chore_owing)) == 0 && !w.leaves)
        w.leaves = send_message(w, 0, protocol::op_leave, 0, nullptr) == 0;
    return w.leaves;
}

/// @return whether nothing of the channel is to be waited for
bool is_settled(Channel &c)
{
    if (!in_use(c) || confirm_error(c) != 0)
        return true;
    if (unconfirmed(c) == 0)
        return c.owed == 0 && !c.close_waits;
    ask_to_confirm(c);
    return false;
}

/// The peer has stopped or was lost, so it confirms nothing more, either.
bool cannot_send(const Worker &w)
{
    return w.burst.tx(w.burst.tx_queue, nullptr, nullptr, 0) < 0;
}

/// One turn of a worker. @return whether nothing of its channels is to be waited for
bool turn(Worker &w)
{
    unsigned polls = 0;
    while (polls < polls_max && poll(w) != 0)
        ++polls;
    // What the peer confirmed before it stopped has been taken in.
    if (polls < polls_max && cannot_send(w))
        return true;
    bool settled = true;
    for (uint32_t i = 0; i < w.slots.count(); ++i)
        settled = is_settled(w.slots[i]) && settled;
    return announce(w) && settled;
}

} // namespace

uint32_t settle(Endpoint &e, uint32_t linger_ms)
{
    const uint64_t start = clock_us();
    for (uint32_t i = 0; i < e.workers_made; ++i)
        for (uint32_t slot = 0; slot < e.workers[i].slots.count(); ++slot)
            confirm(e.workers[i].slots[slot]);
    for (;;) {
        const uint64_t passed = (clock_us() - start) / 1000;
        if (passed >= linger_ms || !e.up.load(std::memory_order_acquire))
            return 0;
        bool settled = true;
        for (uint32_t i = 0; i < e.workers_made; ++i)
            settled = turn(e.workers[i]) && settled;
        if (settled)
            return static_cast<uint32_t>(linger_ms - passed);
        if (!nap())
            return 0;
    }
}

uint64_t unconfirmed_on_channels(const Endpoint &e)
{
    uint64_t all = 0;
    for (uint32_t i = 0; i < e.workers_made; ++i)
        for (uint32_t slot = 0; slot < e.workers[i].slots.count(); ++slot)
            if (const Channel &c = e.workers[i].slots[slot]; in_use(c))
                all += unconfirmed(c);
    return all;
}

} // namespace ntbmsg

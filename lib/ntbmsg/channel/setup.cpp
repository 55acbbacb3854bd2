// SPDX-License-Identifier: BSD-3-Clause
#include "channel/setup.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include <sized.hpp>

#include "channel/ending.hpp"
#include "channel/flush.hpp"
#include "channel/lending.hpp"
#include "rma/cq.hpp"
#include "rma/one_sided.hpp"
#include "transport/delivery.hpp"
#include "transport/sending.hpp"
#include "wire/protocol.hpp"

namespace ntbmsg
{

namespace
{

constexpr uint32_t default_messages = 64, min_messages = 4;
constexpr uint32_t default_bytes = 65536;
/// What the credit of a channel grows to while its sender uses all of it: so many short messages
/// that they have left a private cache of 512 KiB of the sender's core when they are read, from
/// which it takes longer than from the shared one (doc/decisions/020-lent-credit.md); and a
/// multiple of the first receive buffers. And what an idle one keeps.
constexpr uint32_t grown_messages = 4096, grown_buffers = 8, lent_messages = 8;
constexpr uint32_t default_timeout_ms = 5000;
constexpr uint32_t default_operations = 64, max_operations = 4096;
constexpr uint32_t max_send_depth = 65535;

/// The credit that a channel's options request, or its share of the budget.
Credit wanted_credit(const Worker &w, const ntbmsg_channel_options &o)
{
    const uint32_t others = w.slots.count() - w.slots.used();
    const uint64_t bytes = o.credit_bytes != 0 ? o.credit_bytes : default_bytes;
    const auto buffers = static_cast<uint32_t>(
        std::min<uint64_t>((bytes + w.own_buf_bytes - 1) / w.own_buf_bytes, protocol::max_credit));
    return {o.credit_messages != 0
                ? o.credit_messages
                : Budget::share(w.budget.left.messages, others, messages_kept, default_messages),
            o.credit_bytes != 0
                ? buffers
                : Budget::share(w.budget.left.buffers, others, buffers_kept, buffers)};
}

/// How far the credit may change: not at all where it was requested, but for what is missing.
void choose_limits(Channel &c, Credit wanted, const ntbmsg_channel_options &o)
{
    const Credit granted = c.rx.granted;
    Lending &l = c.lending;
    l.least = granted;
    l.most = wanted;
    if (o.credit_messages == 0) {
        l.most.messages = std::max(granted.messages, grown_messages);
        if (c.proxy == nullptr) // else the caller's thread counts on what it had at first
            l.least.messages = std::min(granted.messages, lent_messages);
    }
    if (o.credit_bytes == 0)
        l.most.buffers = granted.buffers * grown_buffers;
}

} // namespace

int choose_options(const ntbmsg_channel_options *options, Worker &w, ntbmsg_channel_options &chosen)
{
    ntbmsg_channel_options_init(&chosen);
    if (options == nullptr)
        return 0;
    ntbmsg_channel_options o;
    constexpr size_t first_version =
        offsetof(ntbmsg_channel_options, private_bytes) + sizeof(o.private_bytes);
    if (const int rc = ntb::read_sized(*options, first_version, o); rc != 0)
        return rc;
    if ((o.private_data == nullptr && o.private_bytes != 0) || o.private_bytes > NTBMSG_MAX_PRIVATE)
        return -EINVAL;
    if (o.credit_messages != 0 &&
        (o.credit_messages < min_messages || o.credit_messages > protocol::max_credit))
        return -EINVAL;
    if (o.operations > max_operations || (o.operations != 0 && o.cq == nullptr))
        return -EINVAL;
    if (o.set != nullptr && o.set->worker != (w.dedicated ? nullptr : &w))
        return -EINVAL;
    if (o.send_depth > max_send_depth)
        return -EINVAL;
    chosen = o;
    return 0;
}

bool prepare(Channel &c, const ntbmsg_channel_options &o)
{
    Worker &w = *c.worker;
    const Credit wanted = wanted_credit(w, o);
    Credit granted;
    if (w.dedicated && (c.proxy = make_proxy(o)) == nullptr)
        return false;
    if (!w.budget.reserve(wanted, min_messages, granted)) {
        free_proxy(c);
        return false;
    }
    c.rx.grant(granted);
    choose_limits(c, wanted, o);
    if (c.proxy != nullptr)
        c.proxy->claim_at = c.rx.due_at;
    c.user = o.user;
    c.operations = o.operations != 0 ? o.operations : default_operations;
    join_cq(c, o.cq);
    c.timeout_ms = o.timeout_ms != 0 ? o.timeout_ms : default_timeout_ms;
    c.own_private_bytes = static_cast<uint8_t>(o.private_bytes);
    if (o.private_bytes != 0)
        std::memcpy(c.own_private, o.private_data, o.private_bytes);
    c.handle.store(true, std::memory_order_relaxed);
    if (o.set != nullptr)
        join(*o.set, c);
    return true;
}

void shut(Channel &c)
{
    if (!may_send(state_of(c)))
        return;
    c.tx.now.messages = 0;
    close_when_idle(c);
    if (state_of(c) == NTBMSG_CHANNEL_PEER_CLOSED)
        end(c, NTBMSG_CHANNEL_CLOSED, NTBMSG_REASON_NONE);
    else
        c.state.store(NTBMSG_CHANNEL_SHUT, std::memory_order_release);
}

void close_handle(Channel &c)
{
    c.want_write = false;
    const bool connecting = state_of(c) == NTBMSG_CHANNEL_CONNECTING;
    // What was received is confirmed now; nothing more will be.
    if (c.proxy != nullptr)
        collect_received(c);
    if (c.rx.owed.messages != 0 && c.tx_word != 0 && !is_over(c))
        owe(c, owe_credit);
    c.unread = c.parked.first != nullptr ||
               (c.proxy != nullptr && c.proxy->delivered.get() != c.rx_messages.get());
    shut(c);
    leave_cq(c); // after shut(): a callback cannot post any more
    c.handle.store(false, std::memory_order_relaxed);
    drop_parked(c);
    if (c.proxy != nullptr)
        drop_inbox(c);
    if (connecting)
        return reset(c, static_cast<uint32_t>(NTBMSG_REASON_CLOSED));
    if (c.close_waits)
        close_when_idle(c);
    if (state_of(c) == NTBMSG_CHANNEL_SHUT || c.close_waits)
        set_deadline(c, c.timeout_ms); // so that a peer that never closes cannot keep the slot
    maybe_free(c);
}

} // namespace ntbmsg

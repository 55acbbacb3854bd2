// SPDX-License-Identifier: BSD-3-Clause
// The calls that begin and end a channel.
#include <cerrno>
#include <cstring>

#include <rte_cycles.h>

#include "base/clock.hpp"
#include "base/lock.hpp"
#include "base/log.hpp"
#include "base/sized.hpp"
#include "channel/dedicated.hpp"
#include "channel/poll_set.hpp"
#include "endpoint/endpoint.hpp"
#include "port/trace.hpp"
#include "port/worker.hpp"
#include "rma/cq.hpp"

namespace ntbmsg
{

namespace
{

constexpr uint32_t default_messages = 64, least_messages = 4;
constexpr uint32_t default_bytes = 65536;
/// What is kept for each channel that may still come: it opens, and takes messages one by one.
constexpr uint32_t messages_kept = 2, buffers_kept = 1;
constexpr uint32_t default_timeout_ms = 5000;
constexpr uint32_t default_operations = 64, max_operations = 4096;
constexpr uint32_t max_send_depth = 65535;
constexpr unsigned nap_us = 50;

/// Credit that a channel's options ask for, or its share.
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

/// A slot for a connect, equipped. @return 0, -ENOSPC or -ENOBUFS
int take_slot(Worker &w, const ntbmsg_channel_options &options, Channel *&c)
{
    const Locked held(w.lock);
    c = w.slots.take();
    if (c == nullptr)
        return -ENOSPC;
    if (equip(*c, options))
        return 0;
    w.slots.give_back(*c);
    return -ENOBUFS;
}

int wait_result(uint8_t state)
{
    switch (state) {
    case NTBMSG_CHANNEL_CONNECTING:
    case NTBMSG_CHANNEL_TIMED_OUT:
        return -ETIMEDOUT;
    case NTBMSG_CHANNEL_REJECTED:
        return -ECONNREFUSED;
    case NTBMSG_CHANNEL_RESET:
    case NTBMSG_CHANNEL_LOST:
        return -ECONNRESET;
    default:
        return 0;
    }
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
    if (const int rc = read_sized(*options, first_version, o); rc != 0)
        return rc;
    if ((o.private_data == nullptr && o.private_bytes != 0) || o.private_bytes > NTBMSG_MAX_PRIVATE)
        return -EINVAL;
    if (o.credit_messages != 0 &&
        (o.credit_messages < least_messages || o.credit_messages > protocol::max_credit))
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

bool equip(Channel &c, const ntbmsg_channel_options &o)
{
    Worker &w = *c.worker;
    const Credit wanted = wanted_credit(w, o);
    Credit granted;
    if (w.dedicated && (c.proxy = make_proxy(o)) == nullptr)
        return false;
    if (!w.budget.reserve(wanted, least_messages, granted)) {
        free_proxy(c);
        return false;
    }
    c.rx.grant(granted);
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

void let_go(Channel &c)
{
    c.want_write = false;
    const bool connecting = state_of(c) == NTBMSG_CHANNEL_CONNECTING;
    shut(c);
    leave_cq(c); // behind it: a callback cannot post any more
    c.handle.store(false, std::memory_order_relaxed);
    drop_parked(c);
    if (c.proxy != nullptr)
        drop_handed(c);
    if (connecting)
        return reset(c, static_cast<uint32_t>(NTBMSG_REASON_CLOSED));
    if (c.close_waits)
        close_when_idle(c);
    if (state_of(c) == NTBMSG_CHANNEL_SHUT || c.close_waits)
        set_deadline(c, c.timeout_ms); // a peer that does not close or answer does not keep it
    maybe_free(c);
}

} // namespace ntbmsg

using namespace ntbmsg;

int ntbmsg_connect(ntbmsg_worker *worker, uint16_t port, const ntbmsg_channel_options *options,
                   ntbmsg_channel **out)
{
    if (!is_live(worker, __func__) || port == 0 || out == nullptr)
        return -EINVAL;
    Worker &w = *worker;
    const Using use(watch_of_user(w), "worker", __func__);
    ntbmsg_channel_options chosen;
    if (const int rc = choose_options(options, w, chosen); rc != 0)
        return rc;
    if (!w.dedicated)
        notice_loss(w); // else the next poll would take the new channel for an old one
    if (!w.endpoint->up.load(std::memory_order_acquire) || w.refused != nullptr)
        return -ENOTCONN;
    Channel *c = nullptr;
    if (const int rc = take_slot(w, chosen, c); rc != 0)
        return rc;
    c->port = port;
    c->state.store(NTBMSG_CHANNEL_CONNECTING, std::memory_order_release);
    trace_connect(*c);
    *out = handle_of(*c);
    if (w.dedicated) {
        call(*c, call_begin);
        return 0;
    }
    c->begun = true;
    set_deadline(*c, c->timeout_ms);
    owe(*c, owe_connect);
    do_chores(w);
    return 0;
}

int ntbmsg_channel_wait_open(ntbmsg_channel *channel, uint32_t timeout_ms)
{
    Channel *c = channel_of(channel, __func__);
    if (c == nullptr)
        return -EINVAL;
    const Using use(watch_of_user(*c), "channel", __func__);
    const uint64_t start = real_us();
    while (state_of(*c) == NTBMSG_CHANNEL_CONNECTING &&
           real_us() - start < uint64_t{timeout_ms} * 1000)
        c->worker->dedicated ? rte_delay_us_sleep(nap_us) : static_cast<void>(poll(*c->worker));
    return wait_result(state_of(*c));
}

enum ntbmsg_channel_state ntbmsg_channel_state(const ntbmsg_channel *channel)
{
    const Channel *c = channel_of(channel, __func__);
    return c == nullptr ? NTBMSG_CHANNEL_CLOSED
                        : static_cast<enum ntbmsg_channel_state>(state_of(*c));
}

int ntbmsg_channel_info_get(const ntbmsg_channel *channel, ntbmsg_channel_info *info)
{
    const Channel *found = channel_of(channel, __func__);
    if (found == nullptr || info == nullptr)
        return -EINVAL;
    const Channel &c = *found;
    const Worker &w = *c.worker;
    ntbmsg_channel_info now = {
             .size = sizeof(now),
             .state = ntbmsg_channel_state(channel),
             .reason = static_cast<int32_t>(c.reason),
             .worker = c.worker,
             .user = c.user,
             .port = c.port,
             .id = w.slots.slot_of(c),
             .max_message = c.longest,
             .credit_messages = c.tx.granted.messages,
             .credit_bytes = c.tx.granted.buffers * w.peer_buffers.bytes(),
             .window_messages = c.rx.granted.messages,
             .window_bytes = c.rx.granted.buffers * w.own_buf_bytes,
             .tx_messages = c.tx_messages.get(),
             .tx_bytes = c.tx_bytes.get(),
             .rx_messages = c.rx_messages.get(),
             .rx_bytes = c.rx_bytes.get(),
             .tx_full = c.tx_full.get(),
             .unconfirmed = c.tx_messages.get() - c.tx_confirmed.get(),
             .private_bytes = c.peer_private_bytes,
             .private_data = {}};
    std::memcpy(now.private_data, c.peer_private, c.peer_private_bytes);
    return write_sized(now, sizeof(now), *info);
}

int ntbmsg_channel_shutdown(ntbmsg_channel *channel)
{
    Channel *c = channel_of(channel, __func__);
    if (c == nullptr)
        return -EINVAL;
    const Using use(watch_of_user(*c), "channel", __func__);
    const uint8_t state = state_of(*c);
    if (state == NTBMSG_CHANNEL_SHUT || state == NTBMSG_CHANNEL_CLOSED)
        return 0;
    if (!may_send(state))
        return -ENOTCONN;
    if (c->proxy != nullptr) {
        c->proxy->shut.store(true, std::memory_order_relaxed);
        call(*c, call_shut);
        return 0;
    }
    shut(*c);
    do_chores(*c->worker);
    return 0;
}

int ntbmsg_channel_reset(ntbmsg_channel *channel, int32_t reason)
{
    Channel *c = channel_of(channel, __func__);
    if (c == nullptr || reason < 0)
        return -EINVAL;
    const Using use(watch_of_user(*c), "channel", __func__);
    if (c->proxy != nullptr) {
        c->proxy->reason.store(static_cast<uint32_t>(reason), std::memory_order_relaxed);
        call(*c, call_reset);
        return 0;
    }
    reset(*c, static_cast<uint32_t>(reason));
    do_chores(*c->worker);
    return 0;
}

int ntbmsg_channel_close(ntbmsg_channel *channel)
{
    Channel *found = channel_of(channel, __func__);
    if (found == nullptr)
        return 0;
    Channel &c = *found;
    Using use(watch_of_user(c), "channel", __func__);
    if (c.proxy != nullptr) {
        c.proxy->shut.store(true, std::memory_order_relaxed); // a callback may still come, and post
        use.leave();
        call(c, call_close);
        return 0;
    }
    Worker &w = *c.worker;
    leave_set(c);
    let_go(c);
    do_chores(w);
    return 0;
}

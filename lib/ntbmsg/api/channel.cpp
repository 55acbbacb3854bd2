// SPDX-License-Identifier: BSD-3-Clause
// Public calls: connecting, accepting, state and closing of channels.
#include <cerrno>
#include <cstring>

#include <rte_cycles.h>

#include <locked.hpp>
#include <sized.hpp>

#include "base/clock.hpp"
#include "channel/ending.hpp"
#include "channel/flush.hpp"
#include "channel/in_place.hpp"
#include "channel/listener.hpp"
#include "channel/setup.hpp"
#include "dispatch/dispatcher.hpp"
#include "transport/poll_set.hpp"
#include "transport/proxy.hpp"
#include "transport/sending.hpp"
#include "transport/trace.hpp"

using namespace ntbmsg;

namespace
{

constexpr unsigned nap_us = 50;

/// Takes and prepares a slot for a connect. @return 0, -ENOSPC or -ENOBUFS
int take_slot(Worker &w, const ntbmsg_channel_options &options, Channel *&c)
{
    const ntb::Locked held(w.lock);
    c = w.slots.take();
    if (c == nullptr)
        return -ENOSPC;
    if (prepare(*c, options))
        return 0;
    w.slots.release(*c);
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

/// Sends the answer if the caller drives the worker; else the worker's thread owns @p c by now.
void answer_now(const Worker &w, Channel &c)
{
    if (w.dedicated)
        return;
    send_answer(c, state_of(c) == NTBMSG_CHANNEL_REJECTED ? owe_reject : owe_accept);
    do_chores(*c.worker);
}

/// Lets the worker go on. @return false: a signal handler ran
bool go_on(Worker &w, unsigned &idle)
{
    constexpr unsigned idle_polls = 64;
    if (w.dedicated)
        return nap();
    idle = poll(w) != 0 ? 0 : idle + 1;
    return idle % idle_polls != 0 || nap();
}

/// @return 0; -ETIMEDOUT; -EINTR: a signal handler ran; why nothing more will be confirmed
int await_confirmed(Channel &c, uint32_t timeout_ms)
{
    const Worker &w = *c.worker;
    const uint64_t start = clock_us();
    uint64_t ask_at = start, closing_at = 0;
    bool was_closing = false;
    for (unsigned idle = 0;;) {
        const int rc = confirm_error(c);
        if (unconfirmed(c) == 0)
            return 0;
        if (rc != 0)
            return rc;
        const uint64_t now = clock_us();
        // What the peer confirmed before it stopped has been taken in: a poll that began later
        // found nothing, or another thread had the time for it.
        if (was_closing && (w.dedicated ? now - closing_at >= closing_grace_us : idle != 0))
            return -ECONNRESET;
        if (!was_closing && is_closing(w)) {
            was_closing = true;
            closing_at = now;
            idle = 0;
        }
        if (now - start >= uint64_t{timeout_ms} * 1000)
            return -ETIMEDOUT;
        if (now >= ask_at) {
            ask_at = now + ask_again_us;
            c.proxy != nullptr ? call(c, call_flush) : ask_to_confirm(c);
        }
        if (!go_on(*c.worker, idle))
            return -EINTR;
    }
}

} // namespace

int ntbmsg_channel_connect(ntbmsg_worker *worker, uint16_t port,
                           const ntbmsg_channel_options *options, ntbmsg_channel **out)
{
    if (!is_live(worker, __func__) || port == 0 || out == nullptr)
        return -EINVAL;
    Worker &w = *worker;
    const Using use(watch_of_user(w), "worker", __func__);
    ntbmsg_channel_options chosen;
    if (const int rc = choose_options(options, w, chosen); rc != 0)
        return rc;
    if (!w.dedicated)
        notice_loss(w); // else the next poll would end the new channel with the old ones
    if (!w.up->load(std::memory_order_acquire) || is_closing(w) || w.refused != nullptr)
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

int ntbmsg_channel_accept(const ntbmsg_request *request, const ntbmsg_channel_options *options,
                          ntbmsg_channel **out)
{
    if (request == nullptr || !is_live(request->worker, __func__) || out == nullptr)
        return -EINVAL;
    Worker &w = *request->worker;
    const Using use(watch_of_user(w), "worker", __func__);
    ntbmsg_channel_options chosen;
    if (const int rc = choose_options(options, w, chosen); rc != 0)
        return rc;
    if (!w.dedicated)
        notice_loss(w); // so that no answer goes to the next peer
    Channel *c = nullptr;
    bool accepted = false;
    {
        const ntb::Locked held(w.lock);
        c = find_request(request);
        if (c == nullptr)
            return -ENOENT;
        accepted = prepare(*c, chosen);
        if (accepted)
            open(*c);
        else
            reject(*c, static_cast<uint32_t>(NTBMSG_REASON_NO_CREDIT));
        queue_answer(*c);
    }
    if (accepted)
        *out = handle_of(*c);
    answer_now(w, *c);
    return accepted ? 0 : -ENOBUFS;
}

int ntbmsg_request_reject(const ntbmsg_request *request, int32_t reason, const void *data,
                          uint32_t bytes)
{
    if (request == nullptr || !is_live(request->worker, __func__) || reason < 0 ||
        bytes > NTBMSG_MAX_PRIVATE || (data == nullptr && bytes != 0))
        return -EINVAL;
    Worker &w = *request->worker;
    const Using use(watch_of_user(w), "worker", __func__);
    if (!w.dedicated)
        notice_loss(w); // so that no answer goes to the next peer
    Channel *c = nullptr;
    {
        const ntb::Locked held(w.lock);
        c = find_request(request);
        if (c == nullptr)
            return -ENOENT;
        if (bytes != 0)
            std::memcpy(c->own_private, data, bytes);
        c->own_private_bytes = static_cast<uint8_t>(bytes);
        reject(*c, static_cast<uint32_t>(reason));
        queue_answer(*c);
    }
    answer_now(w, *c);
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

enum ntbmsg_channel_state ntbmsg_channel_state_get(const ntbmsg_channel *channel)
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
    const Credit credit = c.tx.granted.get(), granted = c.rx.granted.get();
    ntbmsg_channel_info now = {.size = sizeof(now),
                               .state = ntbmsg_channel_state_get(channel),
                               .reason = static_cast<int32_t>(c.reason),
                               .worker = c.worker,
                               .user = c.user,
                               .port = c.port,
                               .id = w.slots.slot_of(c),
                               .max_message = c.longest,
                               .credit_messages = credit.messages,
                               .credit_bytes = credit.buffers * w.peer_buffers.bytes(),
                               .granted_messages = granted.messages,
                               .granted_bytes = granted.buffers * w.own_buf_bytes,
                               .tx_messages = c.tx_messages.get(),
                               .tx_bytes = c.tx_bytes.get(),
                               .rx_messages = c.rx_messages.get(),
                               .rx_bytes = c.rx_bytes.get(),
                               .tx_full = c.tx_full.get(),
                               .unconfirmed = unconfirmed(c),
                               .private_bytes = c.peer_private_bytes,
                               .private_data = {}};
    std::memcpy(now.private_data, c.peer_private, c.peer_private_bytes);
    return ntb::write_sized(now, sizeof(now), *info);
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

int ntbmsg_channel_flush(ntbmsg_channel *channel, uint32_t timeout_ms)
{
    Channel *c = channel_of(channel, __func__);
    if (c == nullptr)
        return -EINVAL;
    const Using use(watch_of_user(*c), "channel", __func__);
    return await_confirmed(*c, timeout_ms);
}

int ntbmsg_channel_close_linger(ntbmsg_channel *channel, uint32_t linger_ms,
                                uint64_t *unconfirmed_count)
{
    uint64_t count = 0;
    if (Channel *c = channel_of(channel, __func__); c != nullptr) {
        ntbmsg_channel_shutdown(channel);
        {
            const Using use(watch_of_user(*c), "channel", __func__);
            if (linger_ms != 0)
                await_confirmed(*c, linger_ms);
            count = unconfirmed(*c);
        }
        ntbmsg_channel_close(channel);
    }
    if (unconfirmed_count != nullptr)
        *unconfirmed_count = count;
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
        c.proxy->shut.store(true, std::memory_order_relaxed); // a callback may still run, and post
        use.leave();
        call(c, call_close);
        return 0;
    }
    Worker &w = *c.worker;
    abort_rooms(c);
    leave_set(c);
    close_handle(c);
    do_chores(w);
    return 0;
}

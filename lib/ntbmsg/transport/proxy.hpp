// SPDX-License-Identifier: BSD-3-Clause
// What the thread of a dedicated worker and the threads that use its channels share, without a
// lock.
//
// From the application to the worker: messages through a ring of the channel; everything else as
// bits (Call) of the channel, which is in a stack of the worker while any bit is set.
// From the worker to the application: received messages as a list that is passed on as a whole;
// events as bits, with a stack of the poll set.
#ifndef NTBMSG_TRANSPORT_PROXY_HPP
#define NTBMSG_TRANSPORT_PROXY_HPP

#include <atomic>
#include <cstdint>

#include "transport/worker.hpp"

namespace ntbmsg
{

/// What other threads ask the worker's thread to do.
enum Call : uint32_t {
    call_begin = 1,    ///< it was connected or accepted
    call_reject = 2,   ///< the request was rejected
    call_send = 4,     ///< there are messages in its ring
    call_credit = 8,   ///< messages were received: credit may be due
    call_more = 16,    ///< the inbox is empty: publish the backlog
    call_shut = 32,    ///< shut down sending
    call_reset = 64,   ///< reset it
    call_close = 128,  ///< the handle was closed
    call_left = 256,   ///< it has left its poll set
    call_post = 512,   ///< operations were posted
    call_flush = 1024, ///< ask the peer what it has received
};

struct SendItem {
    rte_mbuf *mbuf;
    uint32_t imm;
};

struct alignas(64) Proxy {
    // Written by the application's thread.
    Parked mine;            ///< messages taken from the inbox
    uint64_t claimed;       ///< messages received up to the last call_credit
    uint32_t claim_at;      ///< more that lead to the next one: what was due at first
    std::atomic<bool> shut; ///< nothing more may be sent or posted; callbacks check it, too
    Counter rx_buffers;
    // Written by the worker's thread.
    alignas(64) uint64_t credited; ///< received messages whose credit was returned or is owed
    uint64_t credited_buffers;
    std::atomic<uint32_t> tail; ///< of the send ring
    bool shutting, closing;     ///< when the send ring is empty
    Counter delivered; ///< messages passed to the application; final once the channel has ended
    // Written by both, rarely.
    alignas(64) std::atomic<rte_mbuf *> inbox;
    std::atomic<bool> backlog;    ///< more messages wait until the inbox is empty
    std::atomic<bool> want_write; ///< a send was cut short
    std::atomic<uint32_t> events; ///< for the poll set
    Channel *next_reported;
    std::atomic<uint32_t> reason; ///< of call_reset
    uint32_t depth;               ///< of the ring: power of two
    // The send ring.
    alignas(64) std::atomic<uint32_t> head; ///< advanced by the application
    std::atomic<SendItem *> items;          ///< allocated for the first message
};

static_assert(sizeof(Proxy) == 256, "an idle channel costs less than 1 KiB");

/// @return NULL: no memory
Proxy *make_proxy(const ntbmsg_channel_options &options);
/// Asks the worker's thread to do something. After call_close the caller must not touch @p c. Any
/// thread.
void call(Channel &c, uint32_t bits);
/// Wakes the worker's thread if it sleeps. Any thread.
void wake_thread(Worker &w);

} // namespace ntbmsg

#endif

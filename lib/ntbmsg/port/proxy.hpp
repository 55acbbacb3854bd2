// SPDX-License-Identifier: BSD-3-Clause
// Channels of a dedicated worker: one thread drives the engine, others use the channels. They meet
// in what is here, without a lock.
//
// From an application's thread to the engine: messages in a ring of the channel; all else as bits
// of the channel, which hangs in a stack of the worker while it has any. From the engine to the
// application: received messages as a list that is passed on whole; events as bits, with a stack
// of the poll set.
#ifndef NTBMSG_PORT_PROXY_HPP
#define NTBMSG_PORT_PROXY_HPP

#include <atomic>
#include <cstdint>

#include "port/worker.hpp"

namespace ntbmsg
{

/// What other threads want of the engine.
enum Call : uint32_t {
    call_begin = 1,   ///< it was connected or accepted
    call_reject = 2,  ///< the request was rejected
    call_send = 4,    ///< there are messages in its ring
    call_credit = 8,  ///< messages were received
    call_more = 16,   ///< the inbox is empty again
    call_shut = 32,   ///< nothing more is sent
    call_reset = 64,  ///< reset it
    call_close = 128, ///< the handle was given back
    call_left = 256,  ///< its poll set knows it no more
    call_post = 512,  ///< operations were posted
};

struct SendItem {
    rte_mbuf *mbuf;
    uint32_t imm;
};

struct alignas(64) Proxy {
    // The application's thread.
    Parked mine;            ///< taken from the inbox
    uint64_t claimed;       ///< received, and the engine was told
    std::atomic<bool> shut; ///< nothing more is sent or posted; a callback looks, too
    Counter rx_buffers;
    // The engine.
    alignas(64) uint64_t credited; ///< messages, of what was received
    uint64_t credited_buffers;
    std::atomic<uint32_t> tail; ///< of the ring
    bool shutting, closing;     ///< once the ring is empty
    Counter delivered;          ///< messages, before a state that ends them
    // Both, rarely.
    alignas(64) std::atomic<rte_mbuf *> inbox;
    std::atomic<bool> backlog;    ///< more waits until the inbox is empty
    std::atomic<bool> want_write; ///< a send was cut short
    std::atomic<uint32_t> events; ///< for the poll set
    Channel *next_reported;
    std::atomic<uint32_t> reason; ///< of call_reset
    uint32_t depth;               ///< of the ring: power of two
    // The ring.
    alignas(64) std::atomic<uint32_t> head; ///< advanced by the application
    std::atomic<SendItem *> items;          ///< made for the first message
};

static_assert(sizeof(Proxy) == 256, "an idle channel costs less than 1 KiB");

/// @return NULL: no memory
Proxy *make_proxy(const ntbmsg_channel_options &options);
/// Asks the engine for something; @p c is not the caller's any more where that is call_close. Any
/// thread.
void call(Channel &c, uint32_t bits);
/// Where the worker's thread sleeps, there is something to poll for. Any thread.
void wake_thread(Worker &w);

} // namespace ntbmsg

#endif

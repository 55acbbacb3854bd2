// SPDX-License-Identifier: BSD-3-Clause
// A worker as data: a queue pair that carries channels, what they hold of it and what it has to do.
#ifndef NTBMSG_PORT_WORKER_HPP
#define NTBMSG_PORT_WORKER_HPP

#include <atomic>
#include <cstdint>

#include <pthread.h>

#include <rte_branch_prediction.h>
#include <rte_pmd_plx_ntb.h>

#include "port/channel.hpp"
#include "port/slots.hpp"

struct ntbmsg_endpoint;
struct rte_mempool;

namespace ntbmsg
{

using Endpoint = ::ntbmsg_endpoint;
class Regions;
using Meta = rte_pmd_plx_ntb_meta;

/// Most messages in one burst of a worker.
inline constexpr unsigned burst_max = 64;

/// A short answer to a peer's slot that has no channel here.
struct Reply {
    uint32_t word;
    uint32_t reason;
    uint8_t op;
};
/// A burst is taken only while there is a note for each message in it.
inline constexpr unsigned replies_max = 2 * burst_max;

/// Deadlines are looked at in one poll of so many.
inline constexpr uint32_t polls_per_check = 16;

/// Why a poll has more to do than to look into the ring.
enum Chore : uint32_t {
    chore_hello = 1,      ///< the peer was not greeted yet
    chore_owing = 2,      ///< channels owe something
    chore_replies = 4,    ///< answers without a channel
    chore_timed = 8,      ///< channels have a deadline
    chore_requests = 16,  ///< requests wait, whose listener may have been closed
    chore_operations = 32 ///< one-sided operations met a full ring or queue of completions
};

} // namespace ntbmsg

/// Zeroed by rte_zmalloc, no constructor.
struct alignas(64) ntbmsg_worker {
    rte_pmd_plx_ntb_burst burst;         ///< of its queue pair, once that is set up
    const std::atomic<uint32_t> *losses; ///< of the endpoint: connections that were lost
    std::atomic<uint32_t> epoch;         ///< what it was when the channels began
    uint32_t chores;                     ///< Chore
    rte_mempool *rx_pool;                ///< of messages that came inside the ring
    ntbmsg::Slots slots;
    uint32_t inline_max;          ///< own: longest message that uses no buffer of the peer
    ntbmsg::Buffers peer_buffers; ///< what a longer one is counted in

    // Slow path from here.
    ntbmsg::OwingList owing;
    ntbmsg::TimedList timed;
    ntbmsg::StalledList stalled; ///< want to write and met a full ring
    ntbmsg::RequestList requests;
    ntbmsg::OperatingList operating; ///< have one-sided operations to go on with
    uint32_t reads_left; ///< bytes that may be copied for the peer's reads before the next chores
    std::atomic<ntbmsg::Channel *> calls; ///< channels that other threads have called on
    std::atomic<bool> armed;      ///< its thread sleeps: the next who calls on a channel wakes it
    mutable pthread_mutex_t lock; ///< guards slots, budget, requests and pools of channels: rare
    bool has_lock;
    bool dedicated;
    bool has_service;
    uint32_t service; ///< id of the service that polls it
    uint64_t next_deadline_us;
    uint32_t polls; ///< the clock is read in one of 16
    uint32_t listeners_seen;
    ntbmsg::Budget budget;
    rte_mempool *control_pool;
    rte_mempool *op_pool;      ///< payloads of one-sided operations
    uint32_t peer_operations;  ///< requests that the peer keeps at a time on one channel
    uint32_t peer_max_message; ///< longest message of the queue pair
    rte_mbuf *empty; ///< a message of no bytes, sent again and again by its reference count
    ntbmsg::Endpoint *endpoint;
    ntbmsg::Regions *regions;              ///< of the endpoint
    const std::atomic<bool> *up;           ///< the same: connected
    rte_pmd_plx_ntb_window_store_fn store; ///< into the memory window
    uint16_t dev_id;
    uint16_t index; ///< in the endpoint
    uint16_t queue; ///< its queue pair, as the device counts
    bool hello_seen;
    bool hello_doubtful;               ///< it may have been of the connection before
    std::atomic<const char *> refused; ///< why nothing is said to this peer; NULL
    uint32_t own_buf_bytes;
    uint32_t own_max_message;
    unsigned reply_count;
    ntbmsg::Reply replies[ntbmsg::replies_max];
    ntbmsg::Counter rx_dropped, bad_peer;
    [[no_unique_address]] ntbmsg::Watch watch; ///< of its channels too, where it runs to completion
};

namespace ntbmsg
{

/// Other threads than the worker's look at the channel's state afterwards.
inline bool connection_changed(const Worker &w)
{
    // Pairs with the release in on_event(): what the driver told before is true.
    return unlikely(w.losses->load(std::memory_order_acquire) !=
                    w.epoch.load(std::memory_order_acquire));
}

/// A thread uses a channel: all of a worker that runs to completion are used by one.
inline Watch *watch_of_user(Channel &c)
{
    // A callback of a dedicated worker may come while the call that has posted is on its way out.
    const bool alone = !c.worker->dedicated || is_inside(watch_of(*c.worker));
    return alone ? watch_of(*c.worker) : watch_of(c);
}
/// A thread connects or accepts: any may where the worker is dedicated.
inline Watch *watch_of_user(Worker &w)
{
    return w.dedicated ? nullptr : watch_of(w);
}

} // namespace ntbmsg

#endif

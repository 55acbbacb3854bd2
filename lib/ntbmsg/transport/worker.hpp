// SPDX-License-Identifier: BSD-3-Clause
// The data of a worker: its queue pair, its channels, and the work that waits for its next poll.
#ifndef NTBMSG_TRANSPORT_WORKER_HPP
#define NTBMSG_TRANSPORT_WORKER_HPP

#include <atomic>
#include <cstdint>

#include <pthread.h>

#include <rte_branch_prediction.h>
#include <rte_mbuf.h>
#include <rte_pmd_plx_ntb.h>

#include "transport/channel.hpp"
#include "transport/slots.hpp"

struct ntbmsg_endpoint;
struct rte_mempool;

namespace ntbmsg
{

using Endpoint = ::ntbmsg_endpoint;
class Regions;
using Meta = rte_pmd_plx_ntb_meta;

/// Most messages in one burst of a worker.
inline constexpr unsigned burst_max = 64;

/// A control message without payload to a slot of the peer that has no channel here.
struct Reply {
    uint32_t word;
    uint32_t reason;
    uint8_t op;
};
/// A burst is received only while each message in it could cause one reply.
inline constexpr unsigned replies_max = 2 * burst_max;

/// Polls that owed credit waits for that of other channels, at most.
inline constexpr uint32_t credit_polls_max = 3;

/// Polls between two checks of deadlines.
inline constexpr uint32_t polls_per_check = 16;

/// What a poll of a set has received for one channel, until that receives it: an array, so that it
/// costs neither a list nor a look at each message. The first ones of the channel that wait; what
/// comes behind them, or to other channels, is parked as a list.
struct HeldRun {
    rte_pmd_plx_ntb_rx_flow flow; ///< `bytes` are those that wait
    Parked *of;                   ///< whose they are; NULL: none wait
    unsigned next, end;           ///< of `mbufs` and `words`
    rte_mbuf *mbufs[burst_max];
    uint32_t words[burst_max]; ///< immediate data
};

/// Work of a poll besides receiving.
enum Chore : uint32_t {
    chore_hello = 1,       ///< HELLO was not sent yet
    chore_owing = 2,       ///< channels have control messages to send
    chore_replies = 4,     ///< replies wait to be sent
    chore_timed = 8,       ///< channels have a deadline
    chore_requests = 16,   ///< connection requests wait; their listener may have been closed
    chore_operations = 32, ///< one-sided operations wait for room in a ring or completion queue
    chore_held = 64        ///< a run is held that was not received before the next poll
};

} // namespace ntbmsg

/// Allocated by rte_zmalloc(); no constructor runs.
struct alignas(64) ntbmsg_worker {
    rte_pmd_plx_ntb_burst burst;         ///< of its queue pair; valid once that is set up
    const std::atomic<uint32_t> *losses; ///< the endpoint's count of lost connections
    const std::atomic<uint32_t> *ends;   ///< ... and of those whose peer has stopped
    std::atomic<uint32_t> epoch;         ///< value of `losses` to which the present channels belong
    uint32_t chores;                     ///< Chore
    rte_mempool *rx_pool;                ///< mbufs of received inline messages
    const rte_pmd_plx_ntb_flow_calls *flow_calls; ///< of the endpoint
    ntbmsg::Slots slots;
    uint32_t inline_max;                   ///< up to it a message to the peer counts as inline,
    std::atomic<uint32_t> peer_inline_max; ///< and one from the peer; any thread reads it
    ntbmsg::Buffers peer_buffers;          ///< receive buffers that a long message uses
    // Of which a burst says only what differs from one channel to the next: flags are 0 (DATA).
    rte_pmd_plx_ntb_tx_flow tx_flow;
    rte_pmd_plx_ntb_rx_flow rx_flow;

    // Slow path from here.
    ntbmsg::OwingList owing;
    ntbmsg::TimedList timed;
    ntbmsg::StalledList stalled; ///< have messages to send and found the ring full
    ntbmsg::RequestList requests;
    ntbmsg::OperatingList operating; ///< have one-sided operations to continue
    ntbmsg::LendingList lending;     ///< open; those looked at longest ago first
    uint32_t reads_left; ///< bytes that may still be copied for the peer's reads in this poll
    std::atomic<ntbmsg::Channel *> calls; ///< stack of channels with calls of other threads
    std::atomic<bool> armed;              ///< its thread sleeps; the next call wakes it
    mutable pthread_mutex_t lock;         ///< guards slots, budget and requests; control path
    bool has_lock;
    bool dedicated;
    bool has_service;
    uint32_t service; ///< id of the service that polls it
    uint64_t next_deadline_us;
    uint32_t polls;                       ///< so far; the clock is read in one of 16
    uint32_t credit_polls;                ///< that owed credit has waited for that of others
    const ntbmsg::Channel *last_returned; ///< credit; to be compared only
    uint32_t listeners_seen;
    ntbmsg::Budget budget;
    uint32_t returns;     ///< of credit, so far
    uint32_t search_from; ///< returns from which on channels are asked for credit again
    rte_mempool *control_pool;
    rte_mempool *op_pool;      ///< payloads of one-sided operations
    uint32_t peer_operations;  ///< requests per channel that the peer accepts before it answers
    uint32_t peer_max_message; ///< longest message of the queue pair
    rte_mbuf *empty;           ///< an empty message, sent repeatedly by its reference count
    ntbmsg::Endpoint *endpoint;
    ntbmsg::Regions *regions;              ///< of the endpoint
    const std::atomic<bool> *up;           ///< of the endpoint: connected
    rte_pmd_plx_ntb_window_store_fn store; ///< into the memory window
    uint16_t dev_id;
    uint16_t index; ///< in the endpoint
    uint16_t queue; ///< its queue pair, as the device counts
    bool hello_seen;
    bool lends;                        ///< the peer's worker knows GRANT and what belongs to it
    bool bundles;                      ///< ... and CREDITS
    bool leaves;                       ///< the peer knows that this endpoint closes
    bool hello_doubtful;               ///< it may belong to the previous connection
    std::atomic<bool> peer_leaves;     ///< its endpoint closes: it receives nothing more
    std::atomic<const char *> refused; ///< why the peer is refused; NULL: it is not
    uint32_t own_buf_bytes;
    uint32_t own_max_message;
    const rte_pmd_plx_ntb_room_calls *room_calls; ///< of the endpoint
    ntbmsg::Channel *builder;                     ///< holds rooms; NULL: none does
    uint32_t rooms;                               ///< how many
    unsigned reply_count;
    ntbmsg::Reply replies[ntbmsg::replies_max];
    ntbmsg::HeldRun held;
    ntbmsg::Counter rx_dropped, bad_peer;
    [[no_unique_address]] ntbmsg::Watch watch; ///< of its channels too if it runs to completion
};

namespace ntbmsg
{

/// Receive buffers that a message counts for: by its length, as at the peer. A short one may lie in
/// a receive buffer all the same, where the peer's driver found that faster.
[[gnu::always_inline]] inline uint32_t buffers_counted(uint32_t inline_max, const rte_mbuf *m)
{
    return unlikely(m->pkt_len > inline_max) ? m->nb_segs : 0;
}
[[gnu::always_inline]] inline uint32_t buffers_counted(const Worker &w, const rte_mbuf *m)
{
    return buffers_counted(w.peer_inline_max.load(std::memory_order_relaxed), m);
}

/// Other threads than the worker's must check the channel's state after this.
inline bool connection_changed(const Worker &w)
{
    // Pairs with the release in on_event(): what the driver reported before is visible.
    return unlikely(w.losses->load(std::memory_order_acquire) !=
                    w.epoch.load(std::memory_order_acquire));
}

/// The peer has stopped, and what it sent before is still received.
inline bool is_closing(const Worker &w)
{
    // Pairs with the release in on_event().
    return w.ends->load(std::memory_order_acquire) != w.losses->load(std::memory_order_acquire);
}

/// Also while what the peer sent before it stopped is received: its memory may no longer be its.
inline bool is_ending(const Worker &w)
{
    // Pairs with the release in on_event().
    return unlikely(w.ends->load(std::memory_order_acquire) !=
                    w.epoch.load(std::memory_order_acquire));
}

/// The watch for a call on a channel. All channels of a worker that runs to completion share the
/// worker's, since one thread uses them.
inline Watch *watch_of_user(Channel &c)
{
    // A callback of a dedicated worker may run while the posting call has not returned yet.
    const bool alone = !c.worker->dedicated || is_inside(watch_of(*c.worker));
    return alone ? watch_of(*c.worker) : watch_of(c);
}
/// The watch for connect and accept, which any thread may call if the worker is dedicated.
inline Watch *watch_of_user(Worker &w)
{
    return w.dedicated ? nullptr : watch_of(w);
}

} // namespace ntbmsg

#endif

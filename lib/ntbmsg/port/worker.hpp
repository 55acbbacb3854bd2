// SPDX-License-Identifier: BSD-3-Clause
// A queue pair that carries channels, and the engine that drives it: takes what comes, finds the
// channel, does what is owed, notices the loss of the peer.
#ifndef NTBMSG_PORT_WORKER_HPP
#define NTBMSG_PORT_WORKER_HPP

#include <atomic>
#include <cstdint>

#include <pthread.h>

#include <rte_branch_prediction.h>
#include <rte_pmd_plx_ntb.h>

#include "port/channel.hpp"
#include "port/slots.hpp"
#include "wire/protocol.hpp"

struct ntbmsg_endpoint;
struct rte_mempool;

namespace ntbmsg
{

using Endpoint = ::ntbmsg_endpoint;
using Meta = rte_pmd_plx_ntb_meta;

/// Most messages in one burst of a worker.
inline constexpr unsigned burst_max = 64;

/// A short answer to a peer's slot that has no channel here.
struct Note {
    uint32_t word;
    uint32_t reason;
    uint8_t op;
};
/// A burst is taken only while there is a note for each message in it.
inline constexpr unsigned notes_max = 2 * burst_max;

/// Why a poll has more to do than to look into the ring.
enum Chore : uint32_t {
    chore_hello = 1,      ///< the peer was not greeted yet
    chore_owing = 2,      ///< channels owe something
    chore_notes = 4,      ///< answers without a channel
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
    uint16_t index; ///< in the endpoint
    bool hello_seen;
    bool hello_doubtful;               ///< it may have been of the connection before
    std::atomic<const char *> refused; ///< why nothing is said to this peer; NULL
    uint32_t own_buf_bytes;
    uint32_t own_max_message;
    unsigned note_count;
    ntbmsg::Note notes[ntbmsg::notes_max];
    ntbmsg::Counter rx_dropped, bad_peer;
    [[no_unique_address]] ntbmsg::Watch watch; ///< of its channels too, where it runs to completion
};

namespace ntbmsg
{

/// What a device is configured as, as far as channels count with it.
struct Sizes {
    uint32_t inline_max;
    uint32_t buf_bytes;
    uint32_t max_message;
    uint32_t buffers; ///< that one worker may promise
    int socket;
};

/// Pools and channels of a worker in zeroed memory. @return 0 or -ENOMEM with the reason logged
int init_worker(Worker &w, Endpoint &e, uint16_t index, const Sizes &sizes);
/// Ends all channels and frees what they hold; the device is stopped. Can be called again.
void end_worker(Worker &w);
/// Frees pools and channels.
void free_worker(Worker &w);
/// mbufs of its pools that are still out, when it has ended.
unsigned held_mbufs(const Worker &w);

/// Sends one message of the library. @param payload  taken over when 0 is returned; NULL: no bytes
/// @return 0; -EAGAIN no room or no mbuf: nothing was taken
int send_message(Worker &w, uint32_t word, uint8_t op, uint32_t argument, rte_mbuf *payload);
inline int send_op(Worker &w, Channel &c, uint8_t op, uint32_t argument, rte_mbuf *payload)
{
    return send_message(w, c.tx_word, op, argument, payload);
}
/// An mbuf with a copy of @p bytes, at most 128. @return NULL: none is free now
rte_mbuf *make_payload(Worker &w, const void *from, uint32_t bytes);
/// Sends a copy of @p bytes. @return as send_message()
int send_copy(Worker &w, uint32_t word, uint8_t op, uint32_t argument, const void *from,
              uint32_t bytes);
/// Copies what the peer sent, once. @return false: it is longer than @p room
bool copy_payload(const rte_mbuf *m, void *to, uint32_t room);
/// Takes note of the longest message that the peer takes on a channel.
void take_opening(Channel &c, const protocol::Opening &opening);
/// What messages that came use of a channel's credit.
Credit credit_of(const Worker &w, rte_mbuf *const *mbufs, unsigned n);
/// Notes an answer for a slot of the peer that has no channel here.
void note(Worker &w, uint8_t op, uint32_t word, uint32_t reason);

/// The connection has changed while a burst was taken: ends the channels.
/// @return messages of the burst that may be of the new one, moved to its front
unsigned change_connection(Worker &w, rte_mbuf **mbufs, Meta *meta, unsigned n);
/// Sends what is owed, looks after time; nothing where the connection has changed.
void do_chores(Worker &w);
/// Hands a burst to its channels.
void sort(Worker &w, rte_mbuf **mbufs, const Meta *meta, unsigned n);
/// Sets the deadline of a channel.
void set_deadline(Channel &c, uint64_t from_now_ms);
/// Takes note that messages were freed unread.
inline void drop(Worker &w, uint64_t messages)
{
    w.rx_dropped.add(messages);
}
/// Frees messages unread.
void free_unread(Worker &w, rte_mbuf **mbufs, unsigned n);
/// The next chores look at the clock.
void look_soon(Worker &w);
/// Where its thread sleeps, there is something to poll for. Any thread.
void wake_thread(Worker &w);
/// Tells those that met a full ring to try again.
void tell_stalled(Worker &w);

/// Other threads than the worker's look at the channel's state afterwards.
inline bool connection_changed(const Worker &w)
{
    // Pairs with the release in on_event(): what the driver told before is true.
    return unlikely(w.losses->load(std::memory_order_acquire) !=
                    w.epoch.load(std::memory_order_acquire));
}

/// Ends the channels if their connection is gone. By the thread that drives the worker.
inline void notice_loss(Worker &w)
{
    if (connection_changed(w))
        change_connection(w, nullptr, nullptr, 0);
}

/// Takes a burst, only of the present connection. @return messages
inline unsigned take_burst(Worker &w, rte_mbuf **mbufs, Meta *meta, unsigned n)
{
    if (unlikely(w.chores != 0)) {
        do_chores(w);
        if (unlikely(w.note_count > notes_max - burst_max) && !connection_changed(w))
            return 0;
    }
    const int got = w.burst.rx(w.burst.rx_queue, mbufs, meta, static_cast<uint16_t>(n));
    const unsigned taken = got > 0 ? static_cast<unsigned>(got) : 0;
    return connection_changed(w) ? change_connection(w, mbufs, meta, taken) : taken;
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

/// One turn of the engine. @return messages handled
unsigned poll(Worker &w);

} // namespace ntbmsg

#endif

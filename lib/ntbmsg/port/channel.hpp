// SPDX-License-Identifier: BSD-3-Clause
// A channel as data: a slot of its worker, from a request or a connect until both ends are done
// with it, and what its state allows.
#ifndef NTBMSG_PORT_CHANNEL_HPP
#define NTBMSG_PORT_CHANNEL_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/counter.hpp"
#include "base/list.hpp"
#include "base/use.hpp"
#include "ntbmsg.h"
#include "port/credit.hpp"

struct rte_mbuf;

namespace ntbmsg
{

using Worker = ::ntbmsg_worker;
using Channel = ::ntbmsg_channel;
using PollSet = ::ntbmsg_poll_set;
struct Proxy;
struct Requester;
struct Responder;

/// States of a slot that no handle shows.
inline constexpr uint8_t state_free = 0;
inline constexpr uint8_t state_requested = 32; ///< the peer asked; nobody has answered

/// What a channel owes the peer, until it could be sent.
enum Owed : uint32_t {
    owe_connect = 1,
    owe_accept = 2,
    owe_reject = 4,
    owe_credit = 8,
    owe_close = 16,
    owe_reset = 32,
};

/// Both halves of a channel's one-sided operations. Either is made when it is needed for the first
/// time.
struct OneSided {
    std::atomic<Requester *> made; ///< by who posts
    Requester *requester() const { return made.load(std::memory_order_acquire); }
    Responder *responder;
    bool flushing; ///< one_sided_flush() is under way
};

/// Messages that came and were not received by the application: a list through the mbufs.
struct Parked {
    rte_mbuf *first;
    rte_mbuf *last;
};

} // namespace ntbmsg

/// Cleared when a slot is given back, but for what is marked as lasting. The first two cache lines
/// are what a burst touches.
struct alignas(64) ntbmsg_channel {
    uint32_t tx_word;              ///< of the peer's slot
    std::atomic<uint32_t> rx_word; ///< of this slot; 0: free
    ntbmsg::SendCredit tx;
    ntbmsg::Worker *worker; ///< lasting
    ntbmsg::Parked parked;
    ntbmsg::ReceiveCredit rx;
    uint32_t longest; ///< message that the peer takes
    std::atomic<uint8_t> state;
    bool want_write; ///< a send was cut short
    bool close_seen;
    bool close_waits;         ///< CLOSE is owed once operations under way are done
    std::atomic<bool> handle; ///< the application holds it
    bool begun;               ///< the engine knows it
    ntbmsg::Proxy *proxy;     ///< what threads share where the worker is dedicated; else NULL
    ntbmsg::Counter tx_messages, tx_bytes, rx_messages, rx_bytes;

    // Slow path from here.
    uint32_t owed;   ///< Owed
    uint32_t events; ///< for the poll set
    ntbmsg::PollSet *set;
    void *user;
    ntbmsg::ListNode<ntbmsg_channel> in_owing, in_ready, in_timed, in_stalled, in_requests,
        in_operating;
    ntbmsg::OneSided one_sided;
    ntbmsg_cq *cq;       ///< takes its completions; NULL: no operation can be posted
    uint32_t operations; ///< most that are under way
    bool own_lane;       ///< its worker alone puts into a lane of `cq`
    uint64_t deadline_us;
    ntbmsg::Counter tx_full, tx_confirmed;
    std::atomic<uint32_t> calls; ///< Call: of other threads, where the worker is dedicated
    ntbmsg_channel *next_call;
    uint64_t listener; ///< serial of the listener, of a request
    uint32_t reason;
    uint32_t timeout_ms;
    ntbmsg::Credit peer_credit; ///< of a request, until it is accepted
    uint16_t generation;        ///< lasting; of the next or present use
    uint16_t port;
    uint8_t peer_private_bytes;
    uint8_t own_private_bytes;
    uint8_t peer_private[NTBMSG_MAX_PRIVATE];
    uint8_t own_private[NTBMSG_MAX_PRIVATE];
    [[no_unique_address]] ntbmsg::Watch watch; ///< where the worker is dedicated
};
static_assert(sizeof(ntbmsg_channel) <= 704 + sizeof(ntbmsg::Watch) / 8 * 64,
              "an idle channel costs less than 1 KiB");

namespace ntbmsg
{

using OwingList = List<Channel, &Channel::in_owing>;
using ReadyList = List<Channel, &Channel::in_ready>;
using TimedList = List<Channel, &Channel::in_timed>;
using StalledList = List<Channel, &Channel::in_stalled>;
using RequestList = List<Channel, &Channel::in_requests>;
using OperatingList = List<Channel, &Channel::in_operating>;

inline uint8_t state_of(const Channel &c)
{
    return c.state.load(std::memory_order_acquire);
}
/// Sending is allowed (where there is credit).
inline bool may_send(uint8_t state)
{
    return state == NTBMSG_CHANNEL_OPEN || state == NTBMSG_CHANNEL_PEER_CLOSED;
}
#ifdef NTBMSG_CHECKS
/// What the application gets: the address with the slot's generation in the bits that no address
/// has.
inline Channel *handle_of(Channel &c)
{
    return reinterpret_cast<Channel *>(reinterpret_cast<uintptr_t>(&c) | uint64_t{c.generation}
                                                                             << 48);
}
/// The channel of a handle. @return NULL: there is none, or it was given back
inline Channel *channel_of(const Channel *handle, const char *call)
{
    const auto word = reinterpret_cast<uintptr_t>(handle);
    auto *c = reinterpret_cast<Channel *>(word & ((uintptr_t{1} << 48) - 1));
    if (c != nullptr &&
        (word >> 48 != c->generation || !c->handle.load(std::memory_order_relaxed))) {
        report_stale(handle, call);
        return nullptr;
    }
    return c;
}
#else
inline Channel *handle_of(Channel &c)
{
    return &c;
}
/// The channel of a handle. @return NULL: there is none, or it was given back
template <class C>
inline C *channel_of(C *handle, const char *)
{
    return handle != nullptr && handle->handle.load(std::memory_order_relaxed) ? handle : nullptr;
}
#endif
/// The peer may send.
inline bool may_receive(uint8_t state)
{
    return state == NTBMSG_CHANNEL_OPEN || state == NTBMSG_CHANNEL_SHUT;
}
/// It ended: by an answer, a time-out, a reset, a loss, or a close in both directions.
inline bool has_ended(uint8_t state)
{
    return state >= NTBMSG_CHANNEL_CLOSED && state <= NTBMSG_CHANNEL_LOST;
}
/// It ended, and no operation is under way on it any more.
inline bool is_over(const ntbmsg_channel &c)
{
    return has_ended(state_of(c)) && !c.close_waits;
}
inline bool is_connected(uint8_t state)
{
    return state >= NTBMSG_CHANNEL_OPEN && state <= NTBMSG_CHANNEL_SHUT;
}

/// Why nothing can be sent in this state. @return 0: it can
int send_error(uint8_t state);

} // namespace ntbmsg

#endif

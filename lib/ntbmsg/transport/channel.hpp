// SPDX-License-Identifier: BSD-3-Clause
// The data of a channel: a slot of its worker, in use from connect or connection request until both
// ends have finished with it; and what each state allows.
#ifndef NTBMSG_TRANSPORT_CHANNEL_HPP
#define NTBMSG_TRANSPORT_CHANNEL_HPP

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "base/caller_checks.hpp"
#include "base/counter.hpp"
#include "base/list.hpp"
#include "ntbmsg.h"
#include "transport/credit.hpp"

struct rte_mbuf;

namespace ntbmsg
{

using Worker = ::ntbmsg_worker;
using Channel = ::ntbmsg_channel;
using PollSet = ::ntbmsg_poll_set;
struct Proxy;
struct Requester;
struct Responder;

/// States of a slot that no handle ever shows.
inline constexpr uint8_t state_free = 0;
inline constexpr uint8_t state_requested =
    32; ///< the peer requested a connection, which is not answered yet

/// Control messages that a channel has to send, in this order.
enum Owed : uint32_t {
    owe_connect = 1,
    owe_accept = 2,
    owe_reject = 4,
    owe_credit = 8,
    owe_grant = 16,
    owe_recall = 32,
    owe_surplus = 64,
    owe_more = 128,
    owe_close = 256,
    owe_reset = 512,
    owe_flush = 1024,
};

/// Requester and responder of a channel's one-sided operations, each allocated at its first use.
struct OneSided {
    std::atomic<Requester *> made; ///< by the posting thread
    Requester *requester() const { return made.load(std::memory_order_acquire); }
    Responder *responder;
    bool flushing; ///< one_sided_flush() is running
};

/// Messages that arrived and were not delivered yet: a list through the mbufs.
struct Parked {
    rte_mbuf *first;
    rte_mbuf *last;
};

} // namespace ntbmsg

/// Cleared when the slot is released, except what is marked as lasting. A burst of short messages
/// touches the first two cache lines only.
struct alignas(64) ntbmsg_channel {
    uint32_t tx_word;              ///< of the peer's slot
    std::atomic<uint32_t> rx_word; ///< of this slot; 0: free
    ntbmsg::Worker *worker;        ///< lasting
    ntbmsg::Parked parked;
    ntbmsg::ReceiveCredit rx;
    uint32_t short_max; ///< longest message that the peer accepts and that uses no receive buffer
    std::atomic<uint8_t> state;
    bool want_write; ///< a send was cut short
    bool close_seen;
    bool close_waits;         ///< CLOSE is sent once all operations have completed
    std::atomic<bool> handle; ///< the application holds it
    bool begun;               ///< the worker's thread knows it
    ntbmsg::Proxy *proxy;     ///< shared with other threads if the worker is dedicated; else NULL
    ntbmsg::Counter tx_messages, tx_bytes, rx_messages, rx_bytes;
    ntbmsg::SendCredit tx; ///< `granted` is in the third line

    // Slow path from here.
    uint32_t longest; ///< longest message that the peer accepts
    uint32_t owed;    ///< Owed
    uint32_t events;  ///< for the poll set
    ntbmsg::PollSet *set;
    void *user;
    ntbmsg::ListNode<ntbmsg_channel> in_owing, in_ready, in_timed, in_stalled, in_requests,
        in_operating, in_lending;
    ntbmsg::OneSided one_sided;
    ntbmsg_cq *cq;           ///< gets its completions; NULL: no operation can be posted
    uint32_t operations;     ///< most that may be outstanding
    bool unread;             ///< messages were freed when the handle was closed
    bool asked;              ///< the peer was asked what it has received, and has not answered
    std::atomic<bool> final; ///< the peer confirms nothing more
    bool own_lane;           ///< completions go to the lane of `cq` that belongs to the worker
    uint8_t asked_more;      ///< protocol::Lack: reported to the peer as lacking, until it grants
    uint64_t deadline_us;
    ntbmsg::Counter tx_full, tx_confirmed;
    std::atomic<uint32_t> calls; ///< Call: by other threads if the worker is dedicated
    ntbmsg_channel *next_call;
    uint64_t listener; ///< of a request: serial number of the listener
    uint32_t reason;
    uint32_t timeout_ms;
    ntbmsg::Lending lending;
    ntbmsg::Credit given;       ///< back to the peer, not reported yet
    ntbmsg::Credit peer_credit; ///< of a request: what the peer granted, until it is accepted
    uint16_t generation;        ///< lasting; of the present or the last use
    uint16_t port;
    uint8_t peer_private_bytes;
    uint8_t own_private_bytes;
    uint8_t peer_private[NTBMSG_MAX_PRIVATE];
    uint8_t own_private[NTBMSG_MAX_PRIVATE];
    [[no_unique_address]] ntbmsg::Watch watch; ///< if the worker is dedicated
};
static_assert(offsetof(ntbmsg_channel, tx.granted) == 128);
static_assert(sizeof(ntbmsg_channel) <= 704 + sizeof(ntbmsg::Watch) / 8 * 64,
              "an idle channel costs less than 1 KiB");

namespace ntbmsg
{

using OwingList = List<Channel, &Channel::in_owing>;
using ReadyList = List<Channel, &Channel::in_ready>;
using TimedList = List<Channel, &Channel::in_timed>;
using StalledList = List<Channel, &Channel::in_stalled>;
using RequestList = List<Channel, &Channel::in_requests>;
using LendingList = List<Channel, &Channel::in_lending>;
using OperatingList = List<Channel, &Channel::in_operating>;

inline uint8_t state_of(const Channel &c)
{
    return c.state.load(std::memory_order_acquire);
}
/// Sending is allowed, given credit.
inline bool may_send(uint8_t state)
{
    return state == NTBMSG_CHANNEL_OPEN || state == NTBMSG_CHANNEL_PEER_CLOSED;
}
#ifdef NTBMSG_CHECKS
/// The application's handle: the address, with the slot's generation in the 16 bits that an address
/// does not use.
inline Channel *handle_of(Channel &c)
{
    return reinterpret_cast<Channel *>(reinterpret_cast<uintptr_t>(&c) | uint64_t{c.generation}
                                                                             << 48);
}
/// The channel of a handle. @return NULL: none, or it was closed
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
/// The channel of a handle. @return NULL: none, or it was closed
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
/// It ended: rejected, timed out, reset, lost, or closed in both directions.
inline bool has_ended(uint8_t state)
{
    return state >= NTBMSG_CHANNEL_CLOSED && state <= NTBMSG_CHANNEL_LOST;
}
/// It ended, and no operation is outstanding on it.
inline bool is_over(const ntbmsg_channel &c)
{
    return has_ended(state_of(c)) && !c.close_waits;
}

/// Why nothing can be sent in this state. @return 0: it can
inline int send_error(uint8_t state)
{
    if (may_send(state))
        return 0;
    if (state == NTBMSG_CHANNEL_CONNECTING)
        return -ENOTCONN;
    return state == NTBMSG_CHANNEL_SHUT || state == NTBMSG_CHANNEL_CLOSED ? -ESHUTDOWN
                                                                          : -ECONNRESET;
}

} // namespace ntbmsg

#endif

// SPDX-License-Identifier: BSD-3-Clause
// What the carrier needs of the bridge: a pipe for each connection, and messages between the
// daemons. All of it is used by one thread, the carrier's.
#ifndef NTBD_CARRIER_BRIDGE_HPP
#define NTBD_CARRIER_BRIDGE_HPP

#include "broker/relay_order.hpp"
#include "pair/pair.hpp"
#include "ring/receiver.hpp"
#include "ring/sender.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>

#include <sys/types.h>

namespace ntbd
{

class Carrier;
class Relay;

/// The first thing that is said on a pipe, with the request for it: which connection it is for.
struct Ticket {
    uint32_t magic = 0x54544E52;
    uint32_t version = 1;
    uint64_t id = 0; ///< of the connection at the daemon that is asked
    Token token = {};
    uint32_t ring_bytes = 0; ///< of the memory at the daemon that asks
    uint32_t reserved = 0;
};
static_assert(sizeof(Ticket) == 40);

/// An end of the bytes of one direction, in their order.
struct Mark {
    static constexpr uint32_t end = 1;    ///< no byte follows
    static constexpr uint32_t closed = 2; ///< nor is anything taken there any more
    static constexpr uint32_t reset = 4;
    static constexpr uint32_t all = end | closed | reset;

    uint32_t bits = 0;  ///< not 0
    uint64_t count = 0; ///< bytes of the other direction that its sender has handed to its client
};

/// What a client of a claimed connection has stored, as the other daemon hears it
/// (doc/socket-protocol.md, section 4). Bytes follow: those in front of the head.
struct LineWords {
    static constexpr uint32_t started = 1;
    static constexpr uint32_t seen = 2;
    static constexpr uint32_t ask = 4;
    static constexpr uint32_t gone = 8;
    static constexpr uint32_t closed = 16; ///< that end: nothing is taken there any more
    static constexpr uint32_t all = 31;

    uint32_t bits = 0;
    // As the sender.
    uint32_t want = 0;
    uint32_t generation = 0; ///< 0: nothing of the ring that was granted last
    uint32_t mark = 0;
    uint32_t narrow = 0;
    // As the receiver.
    uint32_t granted = 0;  ///< generation
    uint32_t fin_seen = 0; ///< generation
    uint32_t reserved = 0;
    uint64_t start = 0;
    uint64_t wide = 0;
    uint64_t taken = 0;

    bool operator==(const LineWords &) const = default;
};
static_assert(sizeof(LineWords) == 56);

/// A channel between two daemons that carries one connection. Its end closes it: what was sent
/// still arrives.
class Pipe
{
public:
    // Events.
    static constexpr uint32_t readable = 1; ///< something has arrived, or the end has
    static constexpr uint32_t writable = 2; ///< sending can go on, or begin

    struct Got {
        enum class Kind {
            nothing, ///< and readable follows
            bytes,
            mark,
            words, ///< and bytes behind them
            ended, ///< nothing more arrives
            wrong, ///< what no daemon sends
        } kind;
        size_t bytes = 0;
        Mark mark = {};
    };

    virtual ~Pipe() = default;
    /// Longest message that the peer takes, once the pipe is open.
    virtual size_t longest() const = 0;
    /// Copies the first @p bytes of a ring, at most longest() of them, into a message. They are not
    /// taken.
    /// @return bytes sent, at least 1; 0: not now, and writable follows; -EAGAIN: not now; another
    ///         negative errno: it has ended
    virtual ssize_t send(const ntbc::Receiver &ring, size_t bytes) = 0;
    /// @return 1; otherwise as send()
    virtual int send(const Mark &mark) = 0;
    /// Puts the next message into a ring, which has room for @p most bytes. They are not published.
    /// @param ring NULL: they are dropped
    virtual Got receive(ntbc::Sender *ring, size_t most) = 0;

    // ---- of claimed connections: no others are sent on their pipes

    /// Sends words, and behind them the first @p bytes at a place of a ring, or fewer.
    /// @return bytes sent with those of the words; otherwise as send()
    virtual ssize_t send(const LineWords &words, const ntb::socket::Ring &ring, uint64_t position,
                         size_t bytes) = 0;
    /// The next message. Its bytes stay until the next call.
    virtual Got receive(LineWords *words) = 0;
    /// Copies @p bytes of that message, from its byte @p from on, to a place of a ring.
    virtual void copy(size_t from, const ntb::socket::Ring &ring, uint64_t position,
                      size_t bytes) = 0;

    /// Ends it at once, at both hosts.
    virtual void reset() = 0;
};

class Bridge
{
public:
    enum class Sent {
        sent,
        later, ///< not now
        stale, ///< for a peer that is lost: dropped
    };

    virtual ~Bridge() = default;
    /// Drives it. Calls admit(), join(), ready(), hear() and lose() of the carrier.
    /// @return whether there was something
    virtual bool poll(Carrier &carrier) = 0;
    /// Readable after arm() when poll() has something to do.
    virtual int event_fd() const = 0;
    /// @return false: not armed, poll first
    virtual bool arm() = 0;
    virtual void disarm() = 0;
    /// @return NULL: there is no peer, or no room for one more
    virtual std::unique_ptr<Pipe> connect(const Ticket &ticket, Relay *relay) = 0;
    /// @param epoch of this daemon's introduction to the peer
    virtual Sent send(const Token &epoch, const ntbc::Message &message) = 0;
    /// Ends the connection to the peer's daemon.
    virtual void drop_peer(const Token &epoch) = 0;
};

} // namespace ntbd

#endif

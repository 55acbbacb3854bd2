// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTB_SOCKET_DIRECTION_RECEIVER_HPP
#define NTB_SOCKET_DIRECTION_RECEIVER_HPP

#include <algorithm>
#include <cstdint>

#include "direction/words.hpp"

namespace ntb::socket
{

/// The receiving half of one direction: doc/socket-protocol.md, section 6. Like Sender it makes no
/// call, is plain data, and is called under the lock of the direction.
class Receiver
{
public:
    enum class State : std::uint32_t { Tcp, Granted, Seen, Suspect, Eof, Reset };

    /// What the kernel shows of the shadow, without taking a byte.
    struct Kernel {
        std::uint64_t queued; ///< bytes that can be read at once
        bool fin;
        bool rst;
    };

    /// What a read has to do.
    enum class Source {
        Kernel, ///< read the shadow, up to `most` bytes, whatever it answers; then
                ///< took_from_kernel()
        Ring,   ///< copy up to `most` bytes from `offset`; then took_from_ring()
        End,    ///< end of file
        Reset,  ///< ECONNRESET
        Wait,   ///< nothing yet: EAGAIN, or sleep
    };

    struct Reading {
        Source source;
        std::uint64_t offset; ///< of the first byte in the ring, which lies at place_of()
        std::uint64_t most;
    };

    /// Whether a ring may be granted: the sender wants the one of that generation, and the counts
    /// agree (C1, R7).
    bool may_grant(std::uint32_t wanted, std::uint64_t kernel_count) const;
    /// Grants a ring of that many bytes. The caller clears its lines, stores words() and sends
    /// GRANT.
    /// @return its generation
    std::uint32_t grant(std::uint64_t ring_bytes);

    /// Looks at a copy of the sender's words. A peer that goes back, publishes beyond the room,
    /// says a second mark or one before its head breaks the direction.
    /// @retval true if words() changed and are to be stored: the switch was seen
    bool look(const SenderWords &peer, std::uint64_t kernel_count);
    /// The same for a head alone that has moved on, as it does with each burst: follows() says of
    /// the other words what it said before, as what was taken only grows.
    /// @retval false it is not that, and nothing was looked at
    bool look_at_head(const SenderWords &peer)
    {
        if (state_ != State::Seen || lost_ != 0 || !peer.differs_in_head(peer_) ||
            !peer.is_head(std::max(taken_, peer.start), peer_.head, ring_bytes_))
            return false;
        peer_.head = peer.head;
        return true;
    }

    /// Where the next bytes come from, after look().
    Reading next(const Kernel &kernel)
    {
        if (has_bytes()) [[likely]]
            return {Source::Ring, taken_, peer_.head - taken_};
        return next_but_bytes(kernel);
    }
    /// Whether TCP's bytes below the switch are taken.
    bool is_above() const { return state_ == State::Seen && taken_ >= peer_.start; }
    /// Whether the next bytes are in the ring.
    bool has_bytes() const { return is_above() && peer_.head > taken_; }
    /// Whether there is nothing until a word changes: no bytes, and no mark behind them.
    bool is_drained() const
    {
        return is_above() && peer_.head == taken_ && peer_.mark == Mark::None;
    }
    void took_from_kernel(std::uint64_t bytes);
    void took_from_ring(std::uint64_t bytes) { taken_ += bytes; }

    /// @retval true once: the FIN is to be reported to the sender's daemon (rule R5)
    bool report_fin(const Kernel &kernel);
    /// Please go back, and no ring any more.
    /// @retval true if words() are to be stored
    bool ask();
    /// The rings are lost (rules F2 to F5). The caller has called look() once more before, behind
    /// the fence: what arrived counts, and nothing else is looked at.
    void lost();

    ReceiverWords words() const { return {generation_, state_ == State::Seen, ask_ != 0, taken_}; }
    State state() const { return state_; }
    std::uint64_t taken() const { return taken_; }
    std::uint64_t by_kernel() const { return by_kernel_; }
    /// As last accepted by look().
    const SenderWords &peer() const { return peer_; }
    SenderWords::Place place_of(std::uint64_t offset) const
    {
        return peer_.place_of(offset, ring_bytes_);
    }
    /// After the death of a holder of the lock, perhaps in the kernel's read (rule L3).
    void recount(std::uint64_t kernel_count) { took_from_kernel(kernel_count - by_kernel_); }

private:
    Reading next_but_bytes(const Kernel &kernel);
    Reading read_granted(const Kernel &kernel);
    Reading read_seen(const Kernel &kernel);

    State state_ = State::Tcp;
    std::uint32_t generation_ = 0;
    // As in Sender.
    std::uint32_t ask_ = 0;
    std::uint32_t fin_reported_ = 0;
    std::uint32_t lost_ = 0;
    std::uint64_t taken_ = 0;
    std::uint64_t by_kernel_ = 0;
    std::uint64_t ring_bytes_ = 0;
    SenderWords peer_; // as last accepted
};

} // namespace ntb::socket

#endif

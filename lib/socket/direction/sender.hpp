// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTB_SOCKET_DIRECTION_SENDER_HPP
#define NTB_SOCKET_DIRECTION_SENDER_HPP

#include <algorithm>
#include <cstdint>

#include "direction/words.hpp"

namespace ntb::socket
{

/// The sending half of one direction: doc/socket-protocol.md, section 5. It makes no call: its
/// caller does what it answers. It is plain data, so that processes can share it in memory. Every
/// function is called under the lock of the direction, and changes the record before the caller
/// stores words(): a caller that dies in between is followed by one that stores them again (rule
/// L2).
class Sender
{
public:
    enum class State : std::uint32_t { Tcp, Granted, Ring, Ended, Broken };

    /// Where bytes of a write go.
    enum class Way {
        Kernel, ///< write to the shadow, then wrote_by_kernel(); also where the kernel has to raise
                ///< an error
        Ring,   ///< copy up to `most` bytes to `offset`, then wrote_into_ring()
        Full,   ///< EAGAIN, or sleep
    };

    struct Route {
        Way way;
        bool switched;            ///< store words() before anything else: the switch
        std::uint64_t offset;     ///< of the first byte to copy into the ring
        std::uint64_t most;       ///< bytes of room
        SenderWords::Place place; ///< of that byte
    };

    /// What the caller has to do after an event.
    struct Actions {
        bool store = false; ///< words()
        bool reset = false; ///< the kernel's RST
    };

    /// @param kernel_count  bytes that the kernel has taken since the connection began (section 2).
    /// Other than the
    ///                      record's own count, it keeps the direction on TCP (rule C1).
    Route route(std::uint64_t kernel_count, const ReceiverWords &peer);
    /// Of the state Ring: bytes of room behind count(), and where the first of them lies.
    /// @param said  by the peer to be taken: input, neither below the switch nor above what was
    /// sent
    std::uint64_t room(std::uint64_t said) const
    {
        const std::uint64_t taken = std::clamp(said, start_, count_);
        // The peer's word may also have gone back.
        const std::uint64_t end = words().end_of_room(taken, ring_bytes_);
        return end > count_ ? end - count_ : 0;
    }
    SenderWords::Place place() const { return words().place_of(count_, ring_bytes_); }
    void wrote_by_kernel(std::uint64_t bytes) { count_ += bytes; }
    /// The caller has copied `bytes`, at most what route() said; words() publishes them.
    void wrote_into_ring(std::uint64_t bytes) { count_ += bytes; }

    /// The generation of the ring to ask the receiver for, or 0. It is said behind all stores of
    /// words().
    std::uint32_t want();
    /// The receiver has granted a ring of that many bytes.
    /// @param narrow  how many of them it wants used at first, a power of two; anything else: all
    Actions granted(std::uint32_t generation, std::uint64_t ring_bytes, std::uint32_t narrow = 0);
    /// A write has found no room: from here on all of the ring is used.
    /// @retval true if words() are to be stored before anything else; then there is some
    bool filled();
    /// Bytes of the ring that are in use where the receiver has taken all below @p taken.
    std::uint64_t used_bytes(std::uint64_t taken) const;
    /// No grant is used any more.
    void forbid_rings() { rings_allowed_ = 0; }

    /// Goes back to TCP, if the receiver is known to have seen the switch (rule S3).
    /// @retval true if the direction is on TCP now; `actions` says what to store.
    bool go_back(const ReceiverWords &peer, Actions &actions);
    /// shutdown, or close by the last holder; the kernel's call follows.
    Actions close();
    /// SO_LINGER 0, or a close with unread bytes.
    Actions abort();

    /// The receiver has seen a FIN (rule D2). @param left_unread  all holders died and left bytes
    /// unread (D4).
    Actions fin_seen(std::uint32_t generation, bool left_unread);
    /// There is no receiver any more; `taken` is the last count (rule D5).
    Actions gone(std::uint64_t taken);
    /// The rings are lost (rule F1).
    Actions lost();

    /// What the sender's line has to hold.
    SenderWords words() const
    {
        const std::uint64_t head = mark_ == Mark::None ? count_ : mark_offset_;
        return {generation_,           used_ != 0,   mark_,   start_,
                used_ != 0 ? head : 0, mark_offset_, narrow_, wide_};
    }
    State state() const { return state_; }
    std::uint64_t count() const { return count_; }
    std::uint32_t wanted() const { return wanted_; }
    /// Of count(), what did not go by rings.
    std::uint64_t by_kernel() const
    {
        return (state_ == State::Ring ? start_ : count_) - by_rings_;
    }
    /// After the death of a holder of the lock, perhaps in the kernel's write (rule L3).
    void recount(std::uint64_t kernel_count);

private:
    Actions mark(Mark mark, State next);

    State state_ = State::Tcp;
    std::uint32_t generation_ = 0;
    std::uint32_t wanted_ = 0;
    Mark mark_ = Mark::None;
    // No bool: a daemon reads what a client may have spoilt, and any number is one.
    std::uint32_t rings_allowed_ = 1;
    std::uint32_t used_ = 0; // the ring of this generation
    std::uint64_t count_ = 0;
    std::uint64_t by_rings_ = 0; // bytes that went by rings that are over
    std::uint64_t start_ = 0;
    std::uint64_t mark_offset_ = 0;
    std::uint64_t ring_bytes_ = 0;
    std::uint64_t wide_ = 0;
    std::uint32_t narrow_ = 0;
};

} // namespace ntb::socket

#endif

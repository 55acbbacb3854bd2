// SPDX-License-Identifier: BSD-3-Clause
// Where in a ring of bytes the next message goes, and what is in front of each: for ports with
// such rings, and so that a lone message is put there without a call (Port::place()).
#ifndef NTB_VERBS_PORT_LANE_HPP
#define NTB_VERBS_PORT_LANE_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ntb::verbs
{
namespace lane
{

/// In front of each message. Both together fill whole lines, so that no line holds parts of two.
struct Prefix {
    std::uint32_t bytes;
    std::uint32_t mark;
};
/// Of a message that has one of these, the peer sees the prefix last. Who has taken a `marked` one
/// finds a zero behind it until the next message begins there, and so the message by its prefix
/// alone: one line goes from CPU to CPU, where a count makes it two. A `counted` one, and one whose
/// mark is zero, is there once the count says so, and the word behind it may be anything.
constexpr std::uint32_t marked = 1, counted = 2;
constexpr std::uint64_t prefix_of(std::uint32_t bytes, std::uint32_t mark)
{
    return bytes | std::uint64_t{mark} << 32; // as a Prefix lies in memory
}
constexpr std::size_t line = 64;
/// Longer ones are not put together in the ring.
constexpr std::size_t together = 512;

constexpr std::size_t footprint(std::uint32_t bytes)
{
    return (sizeof(Prefix) + bytes + line - 1) & ~(line - 1);
}

/// What is said where a message begins, at which the peer may look.
inline void put_prefix(std::byte *at, std::uint64_t prefix)
{
    // release: pairs with load_prefix()
    std::atomic_ref(*reinterpret_cast<std::uint64_t *>(at))
        .store(prefix, std::memory_order_release);
}
inline std::uint64_t load_prefix(const std::byte *at)
{
    // acquire: pairs with put_prefix()
    return std::atomic_ref(*reinterpret_cast<std::uint64_t *>(const_cast<std::byte *>(at)))
        .load(std::memory_order_acquire);
}

/// Asks for a line to write to.
inline void own(const std::byte *at)
{
#if defined(__x86_64__)
    // By hand: without its flag the compiler makes a read prefetch of it.
    asm volatile("prefetchw %0" : : "m"(*at));
#else
    __builtin_prefetch(at, 1);
#endif
}

} // namespace lane

/// The way out. One that is never filled in has no room.
struct Lane {
    std::byte *at = nullptr; ///< where that is that is sent next, if `run` is not 0
    std::size_t run = 0;     ///< at least so many bytes can be sent from there in one piece
    std::size_t kept = 0;    ///< bytes of messages that go before it, and are not there yet
    bool may_mark = false;   ///< the peer reads the memory that is written here
    bool is_watched = false; ///< it looks at the word where the next message begins
    /// Where a zero lies already that a message may have behind it, if that is behind `at`: nothing
    /// is stored there until `at` has passed it.
    const std::byte *zeroed = nullptr;

    /// Room for a message whose footprint that is. NULL: not here, or not now
    std::byte *room(std::size_t wanted)
    {
        if (kept != 0 || wanted > lane::together || wanted + sizeof(lane::Prefix) > run)
            [[unlikely]]
            return nullptr;
        fill_up(wanted);
        return at + sizeof(lane::Prefix);
    }
    /// The last line of what is placed, but for a prefix.
    void fill_up(std::size_t wanted)
    {
        if (wanted == lane::line)
            std::memset(at + sizeof(lane::Prefix), 0, lane::line - sizeof(lane::Prefix));
        else
            std::memset(at + wanted - lane::line, 0, lane::line);
    }
    /// What has a mark has a word behind it, in one piece.
    bool can_mark(std::size_t whole) const
    {
        return may_mark && whole + sizeof(lane::Prefix) <= run;
    }
    /// Shows what was put there. @retval false it cannot have a mark
    bool show(std::uint32_t bytes, std::size_t whole)
    {
        if (!can_mark(whole)) [[unlikely]]
            return false;
        if (at + whole != zeroed)
            lane::put_prefix(at + whole, 0);
        lane::put_prefix(at, lane::prefix_of(bytes, lane::marked));
        is_watched = true;
        return true;
    }
    /// Once a message has been shown: puts the zero that the next one, if it is as long, will have
    /// behind it. The peer, or its prefetcher, asks for that line when it looks in front of it, and
    /// a store to it would hold up the mark (doc/decisions/080-a-zero-that-is-there-already.md).
    void zero_ahead(std::size_t whole)
    {
        if (!can_mark(whole))
            return;
        lane::put_prefix(at + whole, 0);
        zeroed = at + whole;
    }
};

} // namespace ntb::verbs

#endif

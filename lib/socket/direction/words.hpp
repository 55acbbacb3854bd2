// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTB_SOCKET_DIRECTION_WORDS_HPP
#define NTB_SOCKET_DIRECTION_WORDS_HPP

#include <cstdint>

namespace ntb::socket
{

/// The last word on a ring (doc/socket-protocol.md, section 4).
enum class Mark : std::uint32_t {
    None,
    End,    ///< the stream ends at the mark's offset
    Revert, ///< from the mark's offset on by TCP
    Return, ///< the ring was never used and will not be
    Reset,  ///< the stream is broken off
};

/// What the sender says of a ring. All offsets count the bytes of the direction from 0.
///
/// In shared memory each word is stored by itself: generation, start, narrow, head, started; wide,
/// later heads; mark_offset, mark, each with release order. They are copied the other way round,
/// with acquire order: mark, mark_offset, started, head, wide, narrow, start, generation. So a copy
/// never has a word that is older than one that was stored behind it.
struct SenderWords {
    std::uint32_t generation = 0;
    bool started = false;
    Mark mark = Mark::None;
    std::uint64_t start = 0;       ///< of the switch; valid if started
    std::uint64_t head = 0;        ///< behind the last byte in the ring; valid if started
    std::uint64_t mark_offset = 0; ///< of End, Revert and Reset
    std::uint32_t narrow = 0;      ///< bytes of the ring that are used at first; 0: all
    std::uint64_t wide = 0;        ///< from this offset on bytes lie behind those; 0: not yet

    bool operator==(const SenderWords &) const = default;

    /// Whether no other word is another one, both have started, and there is no mark: that one has
    /// more to be looked at.
    bool differs_in_head(const SenderWords &other) const
    {
        return mark == Mark::None && other.mark == mark && other.generation == generation &&
               started && other.started && other.start == start &&
               other.mark_offset == mark_offset && other.narrow == narrow && other.wide == wide;
    }
    /// Whether the head has not gone back behind @p before, nor beyond the room of a receiver that
    /// may read on at @p from.
    bool is_head(std::uint64_t from, std::uint64_t before, std::uint64_t ring_bytes) const
    {
        return head >= from && head >= before && head <= end_of_room(from, ring_bytes);
    }

    /// Where the byte of an offset lies: `position` modulo `used` bytes at the ring's beginning.
    struct Place {
        std::uint64_t used;
        std::uint64_t position;
    };
    Place place_of(std::uint64_t offset, std::uint64_t ring_bytes) const
    {
        if (narrow == 0)
            return {ring_bytes, offset - start};
        if (wide == 0 || offset < wide)
            return {narrow, offset - start};
        return {ring_bytes, offset - wide + narrow};
    }
    /// Up to which offset bytes may lie in the ring while the one at @p taken is the first that may
    /// be read: neither round beyond it, nor over those of the narrow ring.
    std::uint64_t end_of_room(std::uint64_t taken, std::uint64_t ring_bytes) const
    {
        if (narrow != 0 && wide != 0 && taken < wide)
            return wide + ring_bytes - narrow;
        return taken + (narrow == 0 || wide != 0 ? ring_bytes : narrow);
    }
};

/// Whether a sender that keeps to the protocol may say this of a ring of which it has said @p
/// before: what says otherwise is not used. Any number may stand in both.
/// @param taken  behind the last byte that was taken, as far as the sender may know
bool follows(const SenderWords &now, const SenderWords &before, std::uint64_t taken,
             std::uint64_t ring_bytes);

/// What the receiver says of it. At a grant seen and ask are cleared before the new generation is
/// stored, with release order, and the sender copies the generation first: the word of an older
/// ring never looks like that of this one.
struct ReceiverWords {
    std::uint32_t generation = 0;
    bool seen = false; ///< the switch was seen
    bool ask = false;  ///< please go back
    std::uint64_t taken = 0;
};

} // namespace ntb::socket

#endif

// SPDX-License-Identifier: BSD-3-Clause
// HOT. Bursts of messages that are built in receive buffers of the peer (rooms). They are reserved,
// stored to, committed, and given back where they were not needed, within one call: so none is held
// between two of them, whatever becomes of the connection, and no other message has to wait.
#ifndef APP_BUILT_BURSTS_HPP
#define APP_BUILT_BURSTS_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include <ntbmsg.h>

namespace app
{

/// What came of a burst.
struct Built {
    int sent = 0; ///< messages, the first ones; or a negative errno: none
    /// None, as the first one wants more rooms than there were, or ever are. As an mbuf it may go.
    bool beyond = false;
};

/// Of one queue or channel.
class BuiltBursts
{
public:
    /// The driver sets no more aside at once.
    static constexpr uint32_t most_rooms = 8192;

    /// Sends as many of the messages as there are rooms for, in their order.
    /// @param way      what has reserve(rooms, n), commit(lengths, n) and abort(), which do as
    ///                 ntbmsg_queue_reserve() and its companions
    /// @param lengths  in bytes; of one message at least, and none is 0
    /// @param store    (i, to, bytes, offset): stores a part of message i, one after the other from
    ///                 its first byte on, and never loads from there
    template <typename Way, typename Store>
    Built send(Way &way, std::span<const uint32_t> lengths, const Store &store)
    {
        const uint32_t wanted = rooms_for(lengths);
        const int got = way.reserve(rooms_.get(), static_cast<uint16_t>(wanted));
        if (got <= 0)
            return {got, false};
        room_bytes_ = rooms_[0].bytes;
        const auto rooms = static_cast<uint32_t>(got);
        const Filled filled = fill(rooms, lengths, store);
        const int sent = filled.messages != 0 ? way.commit(lengths.data(), filled.messages) : 0;
        if (sent < 0 || filled.rooms != rooms)
            way.abort();
        // Where less was asked for, because rooms were thought larger, the next call asks for more.
        const uint32_t needed = rooms_of(lengths[0]);
        return {sent, filled.messages == 0 && (needed <= wanted || needed > most_rooms)};
    }

private:
    struct Filled {
        uint16_t messages;
        uint32_t rooms;
    };

    /// Most messages need one: no division then.
    uint32_t rooms_of(uint32_t length) const
    {
        return length <= room_bytes_ ? 1 : (length + room_bytes_ - 1) / room_bytes_;
    }

    uint32_t rooms_for(std::span<const uint32_t> lengths) const
    {
        uint32_t rooms = 0;
        for (const uint32_t length : lengths)
            rooms = std::min(rooms + rooms_of(length), most_rooms);
        return rooms;
    }

    template <typename Store>
    Filled fill(uint32_t rooms, std::span<const uint32_t> lengths, const Store &store) const
    {
        uint16_t n = 0;
        uint32_t used = 0;
        for (; n < lengths.size(); ++n) {
            const uint32_t needed = rooms_of(lengths[n]);
            if (needed > rooms - used)
                break;
            for (uint32_t i = 0, done = 0; i < needed; ++i, done += room_bytes_)
                store(n, static_cast<std::byte *>(rooms_[used + i].address),
                      std::min(lengths[n] - done, room_bytes_), done);
            used += needed;
        }
        return {n, used};
    }

    /// Not initialized: pages that no burst needs take no memory.
    const std::unique_ptr<ntbmsg_room[]> rooms_{new ntbmsg_room[most_rooms]};
    uint32_t room_bytes_ = UINT32_MAX; ///< of the last rooms; none yet: one each is tried
};

} // namespace app

#endif

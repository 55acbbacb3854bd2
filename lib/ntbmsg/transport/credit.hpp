// SPDX-License-Identifier: BSD-3-Clause
// Credits of a channel, at both ends, and what a worker has to grant: arithmetic alone.
#ifndef NTBMSG_TRANSPORT_CREDIT_HPP
#define NTBMSG_TRANSPORT_CREDIT_HPP

#include <algorithm>
#include <cstdint>

namespace ntbmsg
{

/// A number of messages, and of receive buffers that they use.
struct Credit {
    uint32_t messages;
    uint32_t buffers;

    bool covers(Credit other) const
    {
        return other.messages <= messages && other.buffers <= buffers;
    }
    void operator+=(Credit other)
    {
        messages += other.messages;
        buffers += other.buffers;
    }
    void operator-=(Credit other)
    {
        messages -= other.messages;
        buffers -= other.buffers;
    }
};

/// Computes the receive buffers that a message needs, without a division.
class Buffers
{
public:
    /// @param bytes  of a buffer, 64 to 65536
    void set(uint32_t bytes)
    {
        bytes_ = bytes;
        inverse_ = (uint64_t{1} << shift) / bytes + 1;
    }
    /// Exact for @p length below 2^24: (2^24 + 2^16) * 2^16 < 2^44 bounds the error.
    uint32_t of(uint32_t length) const
    {
        return static_cast<uint32_t>((uint64_t{length} + bytes_ - 1) * inverse_ >> shift);
    }
    uint32_t bytes() const { return bytes_; }

private:
    static constexpr unsigned shift = 44;
    uint64_t inverse_;
    uint32_t bytes_;
};

/// The sender's end.
struct SendCredit {
    Credit now;     ///< may be sent; messages is also 0 where the state forbids sending
    Credit out;     ///< sent, not returned yet
    Credit granted; ///< by the peer, in all

    void grant(Credit all)
    {
        granted = all;
        now = all;
        out = {};
    }
    void sent(Credit used)
    {
        now -= used;
        out += used;
    }
    /// For @p rooms receive buffers that the application fills, and as many messages.
    void set_aside(uint32_t rooms) { now -= {rooms, rooms}; }
    /// @param open  messages may be sent
    void give_back(uint32_t rooms, bool open) { now += {open ? rooms : 0, rooms}; }
    /// @param open  messages may be sent
    /// @return false: more is returned than was sent
    bool returned(Credit back, bool open)
    {
        if (!out.covers(back))
            return false;
        out -= back;
        now += {open ? back.messages : 0, back.buffers};
        return true;
    }
};

/// The receiver's end.
struct ReceiveCredit {
    Credit left;    ///< what the peer may still use
    Credit owed;    ///< received by the application, not returned yet
    Credit granted; ///< in all
    uint32_t due_at;

    void grant(Credit all)
    {
        granted = all;
        left = owed = {};
        due_at = std::max(1U, all.messages / 2);
    }
    /// From now on the peer may send.
    void open() { left = granted; }
    /// @return false: the peer used more than it has
    bool use(Credit used)
    {
        if (!left.covers(used))
            return false;
        left -= used;
        return true;
    }
    void received(Credit used) { owed += used; }
    /// Receive buffers are returned at once: a long message may need all of them.
    bool due() const { return owed.messages >= due_at || owed.buffers != 0; }
    void returned()
    {
        left += owed;
        owed = {};
    }
};

/// The credit that a worker may still grant.
struct Budget {
    Credit left;

    /// What a channel gets by default: @p most, or less as the budget shrinks, so that each of
    /// @p others further channels can still get @p floor. If the budget does not suffice for that,
    /// half of it is kept for them.
    static uint32_t share(uint32_t left, uint32_t others, uint32_t floor, uint32_t most)
    {
        const uint64_t kept = uint64_t{floor} * others;
        const uint64_t spare = left - (kept <= left ? kept : left / 2);
        return static_cast<uint32_t>(std::clamp<uint64_t>(spare / 4, floor, most));
    }

    /// Grants as much of @p wanted as there is. @return false: fewer than @p least messages are
    /// left
    bool reserve(Credit wanted, uint32_t least, Credit &granted)
    {
        if (left.messages < std::min(least, wanted.messages))
            return false;
        granted = {std::min(left.messages, wanted.messages),
                   std::min(left.buffers, wanted.buffers)};
        left -= granted;
        return true;
    }
    void release(Credit granted) { left += granted; }
};

} // namespace ntbmsg

#endif

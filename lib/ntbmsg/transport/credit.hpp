// SPDX-License-Identifier: BSD-3-Clause
// Credits of a channel, at both ends, and what a worker has to grant: arithmetic alone.
#ifndef NTBMSG_TRANSPORT_CREDIT_HPP
#define NTBMSG_TRANSPORT_CREDIT_HPP

#include <algorithm>
#include <cstdint>

#include "wire/protocol.hpp"

namespace ntbmsg
{

/// A number of messages, and of receive buffers that they use.
struct Credit {
    uint32_t messages;
    uint32_t buffers;

    /// Written by one thread, read by any.
    void set(Credit now)
    {
        __atomic_store_n(&messages, now.messages, __ATOMIC_RELAXED);
        __atomic_store_n(&buffers, now.buffers, __ATOMIC_RELAXED);
    }
    Credit get() const
    {
        return {__atomic_load_n(&messages, __ATOMIC_RELAXED),
                __atomic_load_n(&buffers, __ATOMIC_RELAXED)};
    }
    bool covers(Credit other) const
    {
        return other.messages <= messages && other.buffers <= buffers;
    }
    Credit least(Credit other) const
    {
        return {std::min(messages, other.messages), std::min(buffers, other.buffers)};
    }
    Credit operator+(Credit other) const
    {
        return {messages + other.messages, buffers + other.buffers};
    }
    Credit operator-(Credit other) const
    {
        return {messages - other.messages, buffers - other.buffers};
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
    Credit granted; ///< by the peer, in all; get() for other threads

    void grant(Credit all)
    {
        granted.set(all);
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
    void cancel(uint32_t rooms, bool open) { now += {open ? rooms : 0, rooms}; }
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
    /// @param open  messages may be sent
    /// @return false: it would be more than @p most
    bool grow(Credit extra, uint32_t most, bool open)
    {
        if (extra.messages > most - granted.messages || extra.buffers > most - granted.buffers)
            return false;
        granted.set(granted + extra);
        now += {open ? extra.messages : 0, extra.buffers};
        return true;
    }
    /// Gives back as much of @p wanted as is not in use, but for one message. @return how much
    Credit yield(Credit wanted)
    {
        const uint32_t spare = granted.messages != 0 ? granted.messages - 1 : 0;
        const Credit given = {std::min({wanted.messages, now.messages, spare}),
                              std::min(wanted.buffers, now.buffers)};
        granted.set(granted - given);
        now -= given;
        return given;
    }
};

/// The receiver's end.
struct ReceiveCredit {
    /// Half of what is granted is due, up to 256 messages, and an eighth where that is more, up to
    /// 512: a sender with much credit does not wait for half of it, and each return costs some
    /// 150 ns.
    static constexpr uint32_t most_half = 256, most_due = 512;

    Credit left;    ///< what the peer may still use
    Credit owed;    ///< received by the application, not returned yet
    Credit granted; ///< in all; get() for other threads
    uint32_t due_at;

    void grant(Credit all)
    {
        granted.set(all);
        left = owed = {};
        set_due();
    }
    /// @p extra is reported to the peer.
    void grow(Credit extra)
    {
        granted.set(granted + extra);
        left += extra;
        set_due();
    }
    /// @return false: the peer gives back more than it has
    bool shrink(Credit given)
    {
        if (!left.covers(given))
            return false;
        left -= given;
        granted.set(granted - given);
        set_due();
        return true;
    }
    void set_due()
    {
        const uint32_t all = granted.messages;
        due_at = std::clamp(all / 8, std::clamp(all / 2, 1U, most_half), most_due);
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

/// How far the credit that a channel's receiver grants may change, and what changes now.
struct Lending {
    Credit least, most; ///< equal where the application has chosen
    Credit extra;       ///< reserved, not reported to the peer yet
    Credit recalled;    ///< asked back
    bool answer_due;    ///< the peer has not answered to that yet
    uint8_t lacks;      ///< Lack: what the peer said that it lacks, since it last got more
    uint64_t grown_at;  ///< messages received when it last got more
    uint32_t used_at;   ///< returns of the worker when credit was last returned

    /// The kinds of @p credit that the peer lacks.
    Credit lacking(Credit credit) const
    {
        return {(lacks & protocol::lack_messages) != 0 ? credit.messages : 0,
                (lacks & protocol::lack_buffers) != 0 ? credit.buffers : 0};
    }
    /// What it gets in addition to @p granted if there is enough: as much again.
    Credit wanted(Credit granted) const { return lacking(granted.least(most - granted)); }
    /// What one that has much in use gives to one that has less than half of it.
    static Credit part(Credit much, Credit little)
    {
        const auto of = [](uint32_t one, uint32_t other) {
            return one / 2 > other ? (one - other) / 2 : 0;
        };
        return {of(much.messages, little.messages), of(much.buffers, little.buffers)};
    }
    /// What it can do without.
    Credit surplus(Credit granted) const { return granted - granted.least(least); }
    /// @return false: it was not asked for, or not for as much
    bool answered(Credit given)
    {
        if (!answer_due || !recalled.covers(given))
            return false;
        recalled = {};
        answer_due = false;
        return true;
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
        return std::clamp(spare(left, others, floor) / 4, floor, most);
    }
    /// What @p others further channels leave.
    static uint32_t spare(uint32_t left, uint32_t others, uint32_t floor)
    {
        const uint64_t kept = uint64_t{floor} * others;
        return left - static_cast<uint32_t>(kept <= left ? kept : left / 2);
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

// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTB_SOCKET_READINESS_SOURCE_HPP
#define NTB_SOCKET_READINESS_SOURCE_HPP

#include <cstdint>

namespace ntb::socket
{

/// What a waiter knows of one upgraded connection (doc/socket-protocol.md, section 9). Any thread
/// calls at any time; errno stays as it is. A source outlives its memberships: Set::closed() comes
/// before its end.
class Source
{
public:
    /// false: the shadow's events are all there is, now and for good. One load.
    virtual bool upgraded() const = 0;

    /// EPOLLIN, EPOLLOUT, EPOLLRDHUP, EPOLLHUP, EPOLLERR and EPOLLPRI as they are now. EPOLLHUP
    /// and EPOLLERR are always shown, of the others those that are @p wanted: more may be.
    virtual std::uint32_t look(std::uint32_t wanted) = 0;
    /// What a waiter reads between two looks, some loads: a number that is another one once
    /// EPOLLIN or EPOLLOUT, as named, may have arrived by ring or anything may be wrong. To be read
    /// before a look, whose answer then holds until it changes, but for what the kernel and time
    /// bring: a look now and then finds that. 0: each time only a look says.
    virtual std::uint64_t signs(std::uint32_t events) const = 0;
    /// Whether EPOLLOUT may come with time alone: a peer that can say nothing any more is only
    /// known by taking nothing for a while. Who sleeps for room looks again within
    /// longest_doubt_ns.
    virtual bool is_in_doubt() const = 0;
    static constexpr std::uint64_t longest_doubt_ns = 250000000;
    /// Numbers that differ when something has arrived since: what may be read or is wrong, and
    /// room where there was none. They are read before look() (rule W7).
    virtual std::uint64_t arrivals_in() const = 0;
    virtual std::uint64_t arrivals_out() const = 0;
    /// When the last of what may be read came by ring: larger than that of another source for what
    /// came there before.
    virtual std::uint64_t arrived_at() const = 0;

    /// Asks to be rung when EPOLLIN or EPOLLOUT, as named, arrives or anything is wrong, also where
    /// they are there already. A full fence: who calls looks again afterwards (rule W1). Calls are
    /// counted (rule W3). After each call the next arrival rings once more, whatever the bell
    /// has in it: a waiter may have taken its edge and left the bell as it was.
    virtual void arm(std::uint32_t events) = 0;
    /// Withdraws one arm() with the same events.
    /// @param rung  and reads the bell, unless others are armed. Who waits for its level may leave
    ///              it where it was not seen to be rung: then its next sleep ends at once
    virtual void disarm(std::uint32_t events, bool rung) = 0;
    /// As arm(), for who waits for one of EPOLLIN and EPOLLOUT in a futex's wait, which ends when a
    /// word is no longer `value`, for some milliseconds at most: it sees neither what the kernel
    /// has to say nor that the other end is gone.
    /// @return the word; NULL: not in this state
    virtual const std::uint32_t *doze(std::uint32_t event, std::uint32_t &value) = 0;
    /// Withdraws one doze().
    virtual void wake(std::uint32_t event) = 0;
    /// Readable when rung, and when the other end is gone. -1: not yet, and a set leaves the member
    /// to the kernel until upgrade(). Then it stays the same while upgraded().
    virtual int bell() const = 0;
    /// The shadow: any open descriptor of it in this process.
    virtual int shadow() const = 0;
    /// What the kernel said of the shadow: the connection keeps it until a read of the kernel finds
    /// nothing (rule W6).
    virtual void kernel_said(std::uint32_t events) = 0;
    /// Goes back to TCP, in both directions and for good, as far as the other end has done its
    /// part.
    /// @retval true the shadow's events are all there is. false: to be called again
    virtual bool go_back() = 0;

protected:
    ~Source() = default;
};

} // namespace ntb::socket

#endif

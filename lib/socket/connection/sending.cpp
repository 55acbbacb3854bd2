// SPDX-License-Identifier: BSD-3-Clause
#include "connection/halves.hpp"

#include <algorithm>
#include <ctime>
#include <limits>

#include "connection/attachment.hpp"
#include "kernel/shadow.hpp"
#include "kernel/system.hpp"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

namespace ntb::socket
{

using kernel::call;
using ntbc::load;
using ntbc::store;

namespace
{

constexpr int places_max = 16;
constexpr std::uint32_t mistrust_max = 8;
constexpr int urgent_tries = 1000;
constexpr long urgent_pause_ns = 1000000;

} // namespace

void Connection::Sending::recover()
{
    repair();
    // What is stored into a ring now, the daemon may take away.
    if (taken_ == Lock::Taken::Doubt)
        connection_.break_off(fd_);
}

// Rules L2 and L3. Words that were wanted behind were stored before: the receiver may have cleared
// the line since.
void Connection::Sending::repair()
{
    Lines &lines = connection_.lines_out();
    const auto written = kernel::bytes_written(fd_, connection_.index_ == 0, sender_.by_kernel());
    if (written)
        sender_.recount(*written);
    commit();
    if (sender_.wanted() != sender_.words().generation)
        store(lines.sender_asks.want, sender_.wanted());
    else if (sender_.wanted() != 0)
        store_words(lines.sender, sender_.words());
    half_.rung = 0;
    half_.woken = 0;
    half_.attended = ~std::uint64_t{0}; // which no signs are
    connection_.ring_reader();
}

void Connection::Sending::act(const Sender::Actions &actions, bool once_read)
{
    commit();
    if (actions.store) {
        store_words(connection_.lines_out().sender, sender_.words());
        connection_.ring_reader();
    }
    if (actions.reset)
        connection_.break_off(fd_, once_read);
}

void Connection::Sending::attend_to_news()
{
    Lines &lines = connection_.lines_out();
    const Sender::State before = sender_.state();
    store(half_.attended, connection_.signs_to_sender());
    if (connection_.is_lost())
        act(sender_.lost());
    if (load(lines.receiver_asks.gone) != 0 &&
        (before == Sender::State::Ring || before == Sender::State::Granted))
        act(sender_.gone(load(lines.receiver.taken)), true);
    const std::uint32_t granted = load(lines.receiver_asks.generation);
    if (granted == sender_.wanted() && granted != sender_.words().generation) {
        const std::uint32_t bytes = load(lines.receiver_asks.ring_bytes);
        half_.taken = 0;
        act(sender_.granted(granted, bytes == connection_.ring_bytes_ ? bytes : 0,
                            load(lines.receiver_asks.narrow_bytes)));
    }
    if (load(lines.receiver_asks.ask) != 0)
        go_back();
    // The other direction has reset the connection: what a write gets is the kernel's to say.
    if (load(connection_.record_->broken) != 0 &&
        (sender_.state() == Sender::State::Ring || sender_.state() == Sender::State::Granted))
        act(sender_.abort());
    if (sender_.state() != before)
        Attachment::turn();
}

/// Whether somebody has written to the kernel what belongs between the ring's bytes: by a system
/// call that is not seen, or in a process that has no library (rule C1).
bool Connection::Sending::has_unseen() const
{
    if (sender_.state() != Sender::State::Ring)
        return false;
    const std::uint64_t expected = sender_.by_kernel();
    const auto written = kernel::bytes_written(fd_, connection_.index_ == 0, expected);
    return written && *written != expected;
}

/// The end, or a reset where it would hide that bytes are lost.
void Connection::Sending::close()
{
    if (has_unseen()) {
        connection_.attachment_->count(&Attachment::Figures::unseen);
        act(sender_.abort());
    } else {
        act(sender_.close());
    }
}

/// And no ring any more.
bool Connection::Sending::go_back()
{
    Sender::Actions actions;
    if (has_unseen()) {
        close();
        return true;
    }
    sender_.forbid_rings();
    const bool back = sender_.go_back(load_words(connection_.lines_out().receiver_asks), actions);
    act(actions);
    return back;
}

/// Bytes of room in the ring, where it is one. The peer's word is looked at where the last one does
/// not say that there is room for so many.
inline std::uint64_t Connection::Sending::room(std::size_t wanted)
{
    const std::uint64_t known = sender_.room(half_.taken);
    if (known >= wanted) [[likely]]
        return known;
    half_.taken = load(connection_.lines_out().receiver.taken);
    return sender_.room(half_.taken);
}

Sender::Route Connection::Sending::route(std::size_t wanted)
{
    if (sender_.state() != Sender::State::Ring)
        return route_to_ring(wanted);
    room(wanted);
    ReceiverWords peer;
    peer.taken = half_.taken;
    return sender_.route(0, peer);
}

/// By the kernel, or from here on by ring.
Sender::Route Connection::Sending::route_to_ring(std::size_t wanted)
{
    std::uint64_t written = 0;
    bool differs = false;
    if (sender_.state() == Sender::State::Granted) {
        const std::uint64_t expected = sender_.by_kernel();
        const auto said = kernel::bytes_written(fd_, connection_.index_ == 0, expected);
        if (!said)
            return {Sender::Way::Kernel, false, 0, 0, {}};
        written = *said;
        differs = written != expected;
    }
    const Sender::Route found = sender_.route(written, {});
    if (found.switched) {
        commit();
        store_words(connection_.lines_out().sender, sender_.words());
        Attachment::turn();
        return route(wanted);
    }
    if (differs && ++half_.mistrust >= mistrust_max) {
        connection_.attachment_->count(&Attachment::Figures::unseen);
        go_back();
    }
    return found;
}

ssize_t Connection::Sending::write_kernel(const Parts &parts, int flags)
{
    iovec places[places_max];
    const int n = parts.next(places, places_max, std::numeric_limits<std::size_t>::max());
    // What the peer had said before it went is read: nothing goes to it any more.
    if (load(connection_.record_->owes_reset) != 0 && kernel::bytes_queued(fd_) == 0)
        if (const ssize_t said = connection_.say_reset(fd_); said < 0)
            return said;
    const ssize_t owed = connection_.say_owed();
    const ssize_t written = owed != 0 ? owed : kernel::send(fd_, places, n, flags);
    if (written > 0) {
        sender_.wrote_by_kernel(static_cast<std::uint64_t>(written));
        half_.by_kernel += static_cast<std::uint64_t>(written);
        commit();
    }
    half_.open_room = 0;
    connection_.note(written);
    if (const std::uint32_t want = written > 0 ? sender_.want() : 0; want != 0) {
        commit();
        store(connection_.lines_out().sender_asks.want, want);
        connection_.ring_carrier(&Connection::ring_reader);
    }
    return written;
}

inline void Connection::Sending::put(Parts &parts, std::size_t bytes,
                                     const SenderWords::Place &place)
{
    parts.copy_into(connection_.ring_out(place.used), place.position, bytes);
    sender_.wrote_into_ring(bytes);
    half_.by_ring += bytes;
    connection_.sent_.add(bytes);
    commit();
    publish_head(connection_.lines_out().sender, sender_.count());
    connection_.ring_reader();
}

inline ssize_t Connection::Sending::write(Parts &parts, std::size_t total, int flags)
{
    if (sender_.state() == Sender::State::Ring && room(total) >= total) [[likely]] {
        put(parts, total, sender_.place());
        return static_cast<ssize_t>(total);
    }
    return write_on(parts, total, flags);
}

/// As far as there is room: where not all goes into the ring at once.
ssize_t Connection::Sending::write_on(Parts &parts, std::size_t total, int flags)
{
    std::size_t done = 0;
    while (done < total) {
        const Sender::Route to = route(total - done);
        if (to.way == Sender::Way::Full) {
            if (sender_.filled())
                act({.store = true});
            else if (!is_over())
                break;
            continue;
        }
        if (to.way == Sender::Way::Kernel) {
            const ssize_t written = write_kernel(parts, flags);
            if (written == -EAGAIN)
                break;
            if (written < 0 && done > 0)
                connection_.owe(written);
            if (written < 0)
                return done > 0 ? static_cast<ssize_t>(done) : written;
            parts.skip(static_cast<std::size_t>(written));
            done += static_cast<std::size_t>(written);
            continue;
        }
        const std::size_t bytes = std::min<std::size_t>(total - done, to.most);
        put(parts, bytes, to.place);
        done += bytes;
    }
    if (done < total)
        half_.refused = 1;
    return done > 0 ? static_cast<ssize_t>(done) : -EAGAIN;
}

// Urgent data and pages sent without a copy are the kernel's business: not in a ring, and none
// follows. Who asks for the latter where it is seen has no ring (preload/options.cpp).
ssize_t Connection::Sending::write_urgent(const iovec *parts, int n, int flags)
{
    for (int i = 0; !go_back(); i++) {
        if (i == urgent_tries) {
            act(sender_.abort());
            break;
        }
        const timespec some = {0, urgent_pause_ns};
        call(SYS_nanosleep, &some, nullptr);
        attend();
    }
    return write_kernel(Parts(parts, n), flags);
}

ssize_t Connection::send(int fd, const iovec *parts, int n, int flags)
{
    if (!is_matched())
        return kernel::send(fd, parts, n, flags);
    Parts places(parts, n);
    const std::size_t total = places.total();
    if (total == 0)
        return kernel::send(fd, parts, n, flags);
    Sending out(*this, fd);
    out.attend();
    if ((flags & (MSG_OOB | MSG_ZEROCOPY)) != 0)
        return out.write_urgent(parts, n, flags);
    return out.write(places, total, flags);
}

/// Whether a peer that sends nothing any more has taken nothing for a while, either. It may be one
/// whose last holder died without a close, and whose daemon does not know it by number: what is
/// sent by TCP is answered by a reset then, and by one that is slow it is read.
bool Connection::Sending::is_stalled()
{
    constexpr std::uint64_t while_ns = 500000000; // its daemon may know in half of that
    if (load(connection_.record_->in.is_shut) != 0)
        return false; // then it was this end that said so
    if (connection_.stalled_at_ != half_.taken || connection_.stalled_since_ == 0) {
        connection_.stalled_at_ = half_.taken;
        connection_.stalled_since_ = half_.asked;
    }
    return half_.asked - connection_.stalled_since_ >= while_ns;
}

/// Whether the kernel's connection has ended: a sender that waits for room has no other way to
/// learn of it. The error then comes from the kernel's call. Nor has it of the end of its daemon,
/// if the program only calls again: the next call attends to that.
bool Connection::Sending::is_over()
{
    const bool kept = (load(connection_.record_->in.kernel) & (EPOLLHUP | EPOLLERR)) != 0;
    const bool is_time = kernel::is_time(half_.asked);
    if (is_time)
        connection_.check_daemon();
    if (!kept && !is_time)
        return false;
    // One that has ended is hung up: an error alone may be one of the queue of errors.
    const std::uint32_t events = kernel::events_of(fd_, POLLRDHUP);
    if ((events & POLLHUP) == 0) {
        if ((events & POLLRDHUP) != 0 && is_stalled())
            go_back();
        return false;
    }
    sender_.abort();
    commit();
    Attachment::turn();
    return true;
}

bool Connection::Sending::has_room()
{
    half_.taken = load(connection_.lines_out().receiver.taken);
    ReceiverWords peer;
    peer.taken = half_.taken;
    const Sender::Route to = sender_.route(0, peer);
    return to.way == Sender::Way::Ring && to.most >= sender_.used_bytes(half_.taken) / 3;
}

std::uint32_t Connection::Sending::look()
{
    attend();
    std::uint32_t events = 0;
    switch (sender_.state()) {
    case Sender::State::Tcp:
    case Sender::State::Granted:
        // Behind the peer's FIN a reset may come, which no call of ours finds.
        if (half_.open_room == 0 ||
            (load(connection_.record_->in.kernel) & ReceiveHalf::ends) != 0) {
            const std::uint32_t said = kernel::events_of(fd_, POLLIN | POLLOUT | POLLRDHUP);
            half_.open_room = half_.open_room != 0 || (said & POLLOUT) != 0;
            events = (said & EPOLLHUP) != 0 ? said : said & EPOLLERR;
        }
        events |= half_.open_room != 0 ? std::uint32_t{EPOLLOUT} : 0;
        break;
    case Sender::State::Ring:
        events = has_room() ? std::uint32_t{EPOLLOUT} : is_over() ? connection_.reset_events() : 0;
        break;
    case Sender::State::Ended:
        events = EPOLLOUT;
        break;
    case Sender::State::Broken:
        events = connection_.reset_events();
        break;
    }
    if (events != 0 && half_.refused != 0) {
        half_.refused = 0;
        half_.openings++;
    }
    return events;
}

} // namespace ntb::socket

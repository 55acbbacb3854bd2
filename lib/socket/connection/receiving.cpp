// SPDX-License-Identifier: BSD-3-Clause
#include "connection/halves.hpp"

#include <algorithm>
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
using State = Receiver::State;
using Source = Receiver::Source;

namespace
{

constexpr int places_max = 16;

} // namespace

void Connection::Receiving::recover()
{
    repair();
    // What is stored into a ring now, the daemon may take away.
    if (taken_ == Lock::Taken::Doubt)
        connection_.break_off(fd_);
}

// Rules L2 and L3.
void Connection::Receiving::repair()
{
    Lines &lines = connection_.lines_in();
    if (const auto taken = kernel::bytes_taken(fd_, receiver_.by_kernel()); taken)
        receiver_.recount(*taken);
    commit();
    half_.rung = 0;
    half_.woken = 0;
    const ReceiverWords words = receiver_.words();
    if (words.generation == 0)
        return;
    if (load(lines.receiver_asks.generation) != words.generation)
        store_grant(lines, words, connection_.ring_bytes_);
    else
        store_words(lines.receiver_asks, words);
    connection_.ring_carrier(&Connection::ring_writer);
    publish_taken(true);
}

void Connection::Receiving::grant()
{
    const std::uint32_t want = load(connection_.lines_in().sender_asks.want);
    if (!receiver_.may_grant(want, receiver_.by_kernel()))
        return;
    if ((kernel::events_of(fd_, POLLRDHUP) & (POLLRDHUP | POLLHUP | POLLERR)) != 0)
        return;
    const auto taken = kernel::bytes_taken(fd_, receiver_.by_kernel());
    if (!taken)
        return; // later
    if (!receiver_.may_grant(want, *taken)) {
        connection_.attachment_->count(&Attachment::Figures::unseen);
        receiver_.ask();
        commit();
        return;
    }
    receiver_.grant(connection_.ring_bytes_);
    commit();
    half_.shown = receiver_.taken();
    store_grant(connection_.lines_in(), receiver_.words(), connection_.ring_bytes_);
    connection_.ring_carrier(&Connection::ring_writer);
    Attachment::turn();
}

void Connection::Receiving::attend_to_news(bool lost)
{
    const State before = receiver_.state();
    if (before == State::Tcp) {
        if (!lost)
            grant();
        return;
    }
    if (before != State::Granted && before != State::Seen)
        return;
    const SenderWords words = load_words(connection_.lines_in().sender);
    std::uint64_t taken = 0;
    if (before == State::Granted && words.started &&
        words.generation == receiver_.peer().generation) {
        const auto said = kernel::bytes_taken(fd_, receiver_.by_kernel());
        if (!said && !lost)
            return; // the bytes that are in its way come first, and wake who sleeps
        taken = said.value_or(~std::uint64_t{0});
    }
    const bool seen = receiver_.look(words, taken);
    if (lost)
        receiver_.lost();
    if (!seen && !lost && receiver_.state() == before)
        return; // what was looked at is looked at again
    commit();
    if (seen) {
        store_words(connection_.lines_in().receiver_asks, receiver_.words());
        connection_.ring_carrier(&Connection::ring_writer);
    }
    if (receiver_.state() == State::Reset)
        connection_.attachment_->count(&Attachment::Figures::resets);
    Attachment::turn();
}

/// Whether a mark's offset is reached.
bool Connection::Receiving::at_mark() const
{
    const SenderWords &peer = receiver_.peer();
    return receiver_.is_above() && peer.mark != Mark::None && receiver_.taken() == peer.head;
}

/// As kernel::events_of(). An error is forgotten once the kernel shows it no more: the program may
/// have read the queue that it was in.
std::uint32_t Connection::Receiving::ask_events(std::uint32_t events)
{
    // In this order: what the kernel says to another thread meanwhile is kept.
    if ((load(half_.kernel) & EPOLLERR) != 0)
        std::atomic_ref(half_.kernel).fetch_and(~std::uint32_t{EPOLLERR});
    const std::uint32_t said = kernel::events_of(fd_, events);
    if ((said & POLLERR) != 0)
        std::atomic_ref(half_.kernel).fetch_or(EPOLLERR);
    return said;
}

/// Above the switch it is asked now and then.
Receiver::Kernel Connection::Receiving::ask_kernel_behind()
{
    const bool above = receiver_.is_above();
    if (receiver_.state() == State::Tcp || at_mark())
        return {};
    const bool broken = load(connection_.record_->broken) != 0;
    const bool is_time = kernel::is_time(half_.asked);
    if (above && (half_.kernel & ReceiveHalf::ends) == 0 && !broken && !is_time)
        return {};
    const std::uint32_t events = ask_events(POLLIN | POLLRDHUP);
    Receiver::Kernel kernel = {};
    kernel.rst =
        broken || kernel::is_reset(fd_, events) || load(connection_.record_->kernel_reset) != 0;
    kernel.fin = !kernel.rst && (events & (POLLRDHUP | POLLHUP)) != 0 &&
                 (load(half_.is_shut) == 0 || kernel::has_fin(fd_));
    if (!above)
        kernel.queued = kernel::bytes_queued(fd_);
    if (kernel.rst)
        store(connection_.record_->kernel_reset, std::uint32_t{1});
    if (above && (kernel.fin || kernel.rst))
        attend(); // what was stored before it
    // Nor may an end hide that some have come past the ring (rule C1).
    if (above && kernel.fin && receiver_.is_above() && !goes_on_by_kernel() &&
        kernel::bytes_queued(fd_) > 0) {
        connection_.attachment_->count(&Attachment::Figures::unseen);
        connection_.break_off(fd_);
        kernel = {.queued = 0, .fin = false, .rst = true};
    }
    if (receiver_.report_fin(kernel)) {
        commit();
        if (receiver_.peer().mark == Mark::None)
            connection_.report_fin(receiver_.words().generation);
    }
    if (is_time)
        connection_.check_daemon();
    return kernel;
}

ssize_t Connection::Receiving::read_kernel(const Parts &parts, std::size_t most, int flags,
                                           bool all)
{
    iovec places[places_max];
    const int n = parts.next(places, places_max, most);
    const ssize_t owed = connection_.say_owed();
    const ssize_t got = owed != 0 ? owed : kernel::receive(fd_, places, n, flags & ~MSG_WAITALL);
    connection_.note(got);
    // All that it had is read. A call that it refuses is none of that.
    if ((got == 0 || got == -EAGAIN || Connection::is_end(got)) &&
        load(connection_.record_->owes_reset) != 0)
        return connection_.say_reset(fd_);
    // The other direction has reset the connection: the kernel no longer knows that there was one.
    if (got == -ENOTCONN && load(connection_.record_->broken) != 0)
        return connection_.say_reset(fd_);
    if (got > 0 && (flags & MSG_PEEK) == 0) {
        receiver_.took_from_kernel(static_cast<std::uint64_t>(got));
        half_.by_kernel += static_cast<std::uint64_t>(got);
        commit();
    }
    if (got == -EAGAIN && all)
        std::atomic_ref(half_.kernel).fetch_and(~std::uint32_t{EPOLLIN});
    return got;
}

void Connection::Receiving::publish()
{
    const std::uint64_t taken = receiver_.taken();
    if (receiver_.words().generation == 0 || taken == half_.shown)
        return;
    half_.shown = taken;
    std::atomic_ref(connection_.lines_in().receiver.taken)
        .exchange(taken, std::memory_order_seq_cst);
    connection_.ring_writer();
}

inline void Connection::Receiving::copy_place(Parts &parts, std::uint64_t offset,
                                              std::size_t bytes) const
{
    const SenderWords::Place place = receiver_.place_of(offset);
    parts.copy_from(connection_.ring_in(place.used), place.position, bytes);
}

/// Bytes of the narrow ring, and behind them those of the wide one.
inline void Connection::Receiving::copy_out(Parts &parts, std::uint64_t offset,
                                            std::size_t bytes) const
{
    const std::uint64_t wide = receiver_.peer().wide;
    if (offset < wide && wide - offset < bytes) [[unlikely]] {
        copy_place(parts, offset, wide - offset);
        bytes -= wide - offset;
        offset = wide;
    }
    copy_place(parts, offset, bytes);
}

/// Whether what follows the ring's bytes is the kernel's.
bool Connection::Receiving::goes_on_by_kernel() const
{
    return receiver_.state() == State::Seen && receiver_.peer().mark == Mark::Revert;
}

std::size_t Connection::Receiving::peek_behind(const Parts &parts, std::size_t most, int flags)
{
    iovec places[places_max];
    const int n = parts.next(places, places_max, most);
    const ssize_t got = kernel::receive(fd_, places, n, (flags & MSG_TRUNC) | MSG_PEEK);
    return static_cast<std::size_t>(std::max<ssize_t>(got, 0));
}

/// Takes what the ring has, as far as it is wanted. @return bytes
[[gnu::always_inline]] inline std::size_t Connection::Receiving::take(Parts &parts,
                                                                      std::size_t most, int flags)
{
    const std::uint64_t offset = receiver_.taken();
    const std::size_t bytes = std::min<std::uint64_t>(most, receiver_.peer().head - offset);
    if ((flags & MSG_TRUNC) != 0) [[unlikely]]
        parts.skip(bytes);
    else
        copy_out(parts, offset, bytes);
    count_taken(bytes);
    return bytes;
}

[[gnu::always_inline]] inline void Connection::Receiving::count_taken(std::size_t bytes)
{
    receiver_.took_from_ring(bytes);
    half_.by_ring += bytes;
    connection_.received_.add(bytes);
    commit();
    publish_taken(false);
}

/// Where the next bytes come from.
inline Receiver::Reading Connection::Receiving::find_next(const Receiver::Kernel &kernel)
{
    const State before = receiver_.state();
    const Receiver::Reading from = receiver_.next(kernel);
    if (receiver_.state() != before) {
        commit();
        Attachment::turn();
    }
    return from;
}

inline ssize_t Connection::Receiving::read(Parts &parts, std::size_t total, int flags)
{
    attend();
    std::size_t done = 0;
    if (receiver_.has_bytes() && (flags & MSG_PEEK) == 0) [[likely]] {
        done = take(parts, total, flags);
        if (done == total || connection_.finds_nothing())
            return static_cast<ssize_t>(done);
        attend();
    }
    return read_on(parts, total, flags, done);
}

/// @param done  bytes that were taken before, from the ring; and then it was attended
ssize_t Connection::Receiving::read_on(Parts &parts, std::size_t total, int flags, std::size_t done)
{
    const bool peeks = (flags & MSG_PEEK) != 0;
    std::uint64_t peeked = 0; // bytes of the kernel
    while (done < total) {
        const Receiver::Kernel kernel = ask_kernel();
        Receiver::Reading from = find_next(kernel);
        if (peeked > 0) {
            // Behind the kernel's bytes, if they reach the switch, the ring's.
            const SenderWords &peer = receiver_.peer();
            if (receiver_.state() != State::Seen || receiver_.taken() + peeked != peer.start)
                break;
            from = {Source::Ring, peer.start, peer.head - peer.start};
        }
        // What follows may be urgent, and may come only now: TCP ends a read in front of it.
        if (from.source == Source::Kernel && done > 0 && receiver_.state() == State::Tcp)
            break;
        if (from.source == Source::Kernel) {
            const std::size_t most = std::min<std::uint64_t>(total - done, from.most);
            const ssize_t got = read_kernel(parts, most, flags, from.most >= total - done);
            if (got < 0 && done > 0)
                connection_.owe(got);
            if (got <= 0)
                return done > 0 ? static_cast<ssize_t>(done) : got;
            parts.skip(static_cast<std::size_t>(got));
            done += static_cast<std::size_t>(got);
            peeked = peeks ? static_cast<std::uint64_t>(got) : 0;
            if (receiver_.state() == State::Tcp || static_cast<std::size_t>(got) < most)
                break;
            continue;
        }
        if (from.source == Source::Ring && peeks) {
            const std::size_t bytes = std::min<std::uint64_t>(total - done, from.most);
            if ((flags & MSG_TRUNC) != 0)
                parts.skip(bytes);
            else
                copy_out(parts, from.offset, bytes);
            done += bytes;
            if (bytes == from.most && done < total && peeked == 0 && goes_on_by_kernel() &&
                !kernel::is_at_mark(fd_))
                done += peek_behind(parts, total - done, flags);
            break;
        }
        if (from.source == Source::Ring) {
            done += take(parts, total - done, flags);
            if (done < total)
                attend();
            continue;
        }
        if (done > 0)
            break;
        if (from.source == Source::End)
            return 0;
        if (from.source == Source::Reset)
            return connection_.say_reset(fd_);
        return load(half_.is_shut) != 0 ? 0 : -EAGAIN;
    }
    return static_cast<ssize_t>(done);
}

ssize_t Connection::receive(int fd, const iovec *parts, int n, int flags)
{
    if (!is_matched() || (flags & (MSG_OOB | MSG_ERRQUEUE)) != 0)
        return kernel::receive(fd, parts, n, flags);
    Parts places(parts, n);
    const std::size_t total = places.total();
    if (total == 0)
        return kernel::receive(fd, parts, n, flags);
    if (finds_nothing())
        return -EAGAIN;
    return Receiving(*this, fd).read(places, total, flags);
}

// What goes round in the ring goes as two parts. The pipe has room, so nothing waits under the
// lock, unless another one fills it at this very moment.
ssize_t Connection::Receiving::splice_ring(int pipe, std::size_t most)
{
    const std::uint64_t offset = receiver_.taken();
    const std::uint64_t wide = receiver_.peer().wide;
    std::uint64_t bytes = std::min<std::uint64_t>(most, receiver_.peer().head - offset);
    if (offset < wide)
        bytes = std::min(bytes, wide - offset);
    const SenderWords::Place place = receiver_.place_of(offset);
    const Ring ring = connection_.ring_in(place.used);
    const std::uint64_t at = place.position & (ring.bytes - 1);
    const std::uint64_t first = std::min(bytes, ring.bytes - at);
    const iovec parts[2] = {{ring.data + at, first}, {ring.data, bytes - first}};
    const ssize_t put = call(SYS_writev, pipe, parts, bytes > first ? 2 : 1);
    if (put > 0)
        count_taken(static_cast<std::size_t>(put));
    return put;
}

// The kernel's splice() waits for bytes whatever its flags say: whether there are some, and what is
// to be said instead, a look at one of them finds.
ssize_t Connection::Receiving::splice_kernel(int pipe, std::size_t most)
{
    char byte;
    const iovec part = {&byte, 1};
    ssize_t got = read_kernel(Parts(&part, 1), 1, MSG_PEEK, receiver_.state() == State::Tcp);
    if (got <= 0)
        return got;
    got = kernel::splice(fd_, pipe, most);
    if (got > 0) {
        receiver_.took_from_kernel(static_cast<std::uint64_t>(got));
        half_.by_kernel += static_cast<std::uint64_t>(got);
        commit();
    }
    return got;
}

ssize_t Connection::Receiving::splice(int pipe, std::size_t size)
{
    attend();
    const Receiver::Kernel kernel = ask_kernel();
    const Receiver::Reading from = find_next(kernel);
    const std::size_t most = std::min<std::uint64_t>(size, from.most);
    switch (from.source) {
    case Source::Kernel:
        return splice_kernel(pipe, most);
    case Source::Ring:
        return splice_ring(pipe, most);
    case Source::End:
        return 0;
    case Source::Reset:
        return connection_.say_reset(fd_);
    case Source::Wait:
        break;
    }
    return load(half_.is_shut) != 0 ? 0 : -EAGAIN;
}

ssize_t Connection::splice(int fd, int pipe, std::size_t size)
{
    if (is_matched())
        return Receiving(*this, fd).splice(pipe, size);
    char byte;
    const iovec part = {&byte, 1};
    const ssize_t there = kernel::receive(fd, &part, 1, MSG_PEEK);
    return there > 0 ? kernel::splice(fd, pipe, size) : there;
}

std::uint64_t Connection::Receiving::readable()
{
    attend();
    switch (receiver_.state()) {
    case State::Seen: {
        const SenderWords &peer = receiver_.peer();
        if (receiver_.is_above())
            return peer.head - receiver_.taken() +
                   (goes_on_by_kernel() ? kernel::bytes_queued(fd_) : 0);
        const std::uint64_t below = peer.start - receiver_.taken();
        const std::uint64_t queued = kernel::bytes_queued(fd_);
        if (queued < below)
            return queued;
        return peer.head - peer.start + (goes_on_by_kernel() ? queued : below);
    }
    case State::Eof:
    case State::Reset:
        return 0;
    default:
        return kernel::bytes_queued(fd_);
    }
}

std::uint32_t Connection::Receiving::look()
{
    attend();
    const Receiver::Kernel kernel = ask_kernel();
    if (receiver_.state() != State::Tcp) {
        const State before = receiver_.state();
        const Receiver::Reading from = find_next(kernel);
        if (from.source == Source::Ring || (from.source == Source::Kernel && before != State::Tcp &&
                                            receiver_.state() != State::Tcp)) {
            const Mark mark = receiver_.state() == State::Seen ? receiver_.peer().mark : Mark::None;
            // What the kernel has said of the connection as a whole does not wait for the ring's.
            std::uint32_t error = 0;
            if ((half_.kernel & (EPOLLHUP | EPOLLERR)) != 0) {
                constexpr std::uint32_t ends = POLLRDHUP | POLLHUP | POLLERR;
                const std::uint32_t now = ask_events(POLLRDHUP) & ends;
                if ((now & POLLHUP) != 0 && mark != Mark::End)
                    return EPOLLIN | EPOLLOUT | now;
                error = (now & POLLHUP) != 0 ? 0 : now & POLLERR;
            }
            if (mark == Mark::End)
                return EPOLLIN | EPOLLRDHUP | error;
            // Urgent data and the end are announced before what precedes them is read.
            constexpr std::uint32_t behind = POLLPRI | POLLRDHUP;
            return EPOLLIN | error |
                   (mark == Mark::Revert ? kernel::events_of(fd_, behind) & behind : 0);
        }
    }
    // Of the queue of errors, which the kernel was just asked for.
    const std::uint32_t error = kernel.rst ? 0 : load(half_.kernel) & EPOLLERR;
    switch (receiver_.state()) {
    case State::Tcp: {
        const std::uint32_t events = kernel::events_of(fd_, POLLIN | POLLPRI | POLLRDHUP);
        return events; // the bits of poll are those of epoll
    }
    case State::Eof:
        return EPOLLIN | EPOLLRDHUP | error;
    case State::Reset:
        return connection_.reset_events();
    default:
        return error;
    }
}

bool Connection::Receiving::ask()
{
    attend();
    const bool store = receiver_.ask();
    if (at_mark())
        receiver_.next({});
    commit();
    if (store) {
        store_words(connection_.lines_in().receiver_asks, receiver_.words());
        // It goes back when it looks.
        connection_.ring_all();
    }
    return receiver_.state() == State::Tcp;
}

bool Connection::Receiving::has_unread()
{
    attend();
    return receiver_.state() == State::Seen && receiver_.peer().head > receiver_.taken();
}

} // namespace ntb::socket

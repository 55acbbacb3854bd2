// SPDX-License-Identifier: BSD-3-Clause
// Readiness: doc/socket-protocol.md, section 9.
#include "connection/attachment.hpp"
#include "connection/halves.hpp"
#include "kernel/shadow.hpp"
#include "kernel/system.hpp"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

namespace ntb::socket
{

using kernel::call;
using ntbc::load;

namespace
{

void sleep(Sleepers &sleepers, std::uint32_t &word)
{
    std::atomic_ref(sleepers.count).fetch_add(1);
    std::uint32_t number = std::atomic_ref(sleepers.number).fetch_add(1) + 1;
    if (number == 0)
        number = std::atomic_ref(sleepers.number).fetch_add(1) + 1;
    std::atomic_ref(word).exchange(number, std::memory_order_seq_cst);
}

// With its last sleeper gone the bell is not to be rung, unless another sleep has begun meanwhile.
void wake(Sleepers &sleepers, std::uint32_t &word)
{
    std::uint32_t number = load(sleepers.number);
    if (std::atomic_ref(sleepers.count).fetch_sub(1) == 1)
        std::atomic_ref(word).compare_exchange_strong(number, 0);
}

} // namespace

// Each term grows as long as the state is one that has signs: so does the sum.
std::uint64_t Connection::signs(std::uint32_t events) const
{
    if (stage_.load(std::memory_order_acquire) != Stage::Matched)
        return 0;
    const ReceiveHalf &in = record_->in;
    const std::uint64_t to_sender = signs_to_sender();
    if ((to_sender & 1) != 0)
        return 0;
    std::uint64_t sum = 1 + to_sender + load(in.edges) + load(in.is_shut);
    if ((events & EPOLLIN) != 0) {
        const SenderLine &line = lines_in().sender;
        if (load(in.above) == 0)
            return 0;
        sum += load(line.head) + load(line.mark);
    }
    if ((events & EPOLLOUT) != 0) {
        if (record_->out.sender.now().state() != Sender::State::Ring || is_in_doubt())
            return 0;
        sum += load(lines_out().receiver.taken);
    }
    return sum;
}

// Whoever sleeps may do so while another thread switches to the ring.
bool Connection::is_in_doubt() const
{
    if (stage_.load(std::memory_order_acquire) != Stage::Matched)
        return false;
    const ReceiveHalf &in = record_->in;
    return (load(in.kernel) & EPOLLRDHUP) != 0 && load(in.is_shut) == 0;
}

/// Of one that was reset. An error that a call has said is shown no more.
std::uint32_t Connection::reset_events() const
{
    constexpr std::uint32_t over = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLHUP;
    return over | (load(record_->reset_reported) == 0 ? std::uint32_t{EPOLLERR} : 0);
}

std::uint32_t Connection::look(int fd, std::uint32_t wanted)
{
    if (!is_matched())
        return kernel::events_of(fd, POLLIN | POLLOUT | POLLRDHUP);
    Receiver::State receiver;
    std::uint32_t events;
    {
        Receiving in(*this, fd);
        events = in.look();
        receiver = in.receiver().state();
    }
    // Shut for reading, it is readable like an ended one, and has what comes all the same.
    const bool is_shut = load(record_->in.is_shut) != 0;
    if (is_shut)
        events |= EPOLLIN | EPOLLRDHUP;
    // The sending half has room to show, or an end: neither is there where no one asks for room and
    // nothing was said to it.
    const Sender::State sender = record_->out.sender.now().state();
    if ((wanted & EPOLLOUT) == 0 && receiver == Receiver::State::Seen &&
        sender != Sender::State::Ended && sender != Sender::State::Broken && is_attended())
        return events;
    Sending out(*this, fd);
    events |= out.look();
    // Also while bytes that came before the end are unread.
    if ((events & EPOLLRDHUP) != 0 && out.sender().state() == Sender::State::Ended)
        events |= EPOLLHUP;
    return events;
}

bool Connection::has_ring() const
{
    if (stage_.load(std::memory_order_acquire) != Stage::Matched)
        return false;
    const Sender::State sender = record_->out.sender.now().state();
    const Receiver::State receiver = record_->in.receiver.now().state();
    return sender == Sender::State::Ring || receiver != Receiver::State::Tcp ||
           load(record_->broken) != 0;
}

std::uint32_t Connection::kernel_part() const
{
    if (!has_ring())
        return EPOLLIN | EPOLLRDHUP | EPOLLOUT;
    const Sender::State sender = record_->out.sender.now().state();
    const bool sends = sender == Sender::State::Tcp || sender == Sender::State::Granted;
    return EPOLLIN | EPOLLRDHUP | (sends ? std::uint32_t{EPOLLOUT} : 0);
}

std::uint64_t Connection::arrivals_in() const
{
    if (stage_.load(std::memory_order_acquire) != Stage::Matched)
        return 0;
    const SenderLine &line = lines_in().sender;
    return load(line.head) + load(line.mark) + load(line.generation) +
           (load(record_->in.edges) << 48);
}

std::uint64_t Connection::arrivals_out() const
{
    return stage_.load(std::memory_order_acquire) == Stage::Matched ? load(record_->out.openings)
                                                                    : 0;
}

std::uint64_t Connection::arrived_at() const
{
    return stage_.load(std::memory_order_acquire) == Stage::Matched ? load(lines_in().sender.stamp)
                                                                    : 0;
}

void Connection::arm(std::uint32_t events)
{
    if (stage_.load(std::memory_order_acquire) != Stage::Matched)
        return;
    if ((events & EPOLLIN) != 0)
        sleep(record_->in.sleepers, lines_in().receiver_asks.wants_data);
    if ((events & EPOLLOUT) != 0)
        sleep(record_->out.sleepers, lines_out().sender_asks.wants_room);
}

void Connection::disarm(std::uint32_t events, bool rung)
{
    if (stage_.load(std::memory_order_acquire) != Stage::Matched)
        return;
    if ((events & EPOLLIN) != 0)
        socket::wake(record_->in.sleepers, lines_in().receiver_asks.wants_data);
    if ((events & EPOLLOUT) != 0)
        socket::wake(record_->out.sleepers, lines_out().sender_asks.wants_room);
    if (!rung)
        return;
    drain_bell((load(record_->in.sleepers.count) != 0 ? std::uint32_t{rung_in} : 0) |
               (load(record_->out.sleepers.count) != 0 ? std::uint32_t{rung_out} : 0));
}

const std::uint32_t *Connection::doze(std::uint32_t event, std::uint32_t &value)
{
    if (signs(event) == 0)
        return nullptr;
    const bool reads = event == EPOLLIN;
    const std::uint32_t &word =
        reads ? lines_in().sender_asks.woken_for_data : lines_out().receiver_asks.woken_for_room;
    value = load(word);
    if (reads)
        sleep(record_->in.dozers, lines_in().receiver_asks.dozes_for_data);
    else
        sleep(record_->out.dozers, lines_out().sender_asks.dozes_for_room);
    return &word;
}

void Connection::wake(std::uint32_t event)
{
    if (stage_.load(std::memory_order_acquire) != Stage::Matched)
        return;
    if (event == EPOLLIN)
        socket::wake(record_->in.dozers, lines_in().receiver_asks.dozes_for_data);
    else
        socket::wake(record_->out.dozers, lines_out().sender_asks.dozes_for_room);
}

/// Takes bytes up to one that somebody who still sleeps was rung by.
void Connection::drain_bell(std::uint32_t others)
{
    for (;;) {
        char bytes[64];
        const long got = call(SYS_recvfrom, bell_, bytes, others != 0 ? 1 : sizeof(bytes),
                              MSG_DONTWAIT | (others != 0 ? MSG_PEEK : 0), nullptr, nullptr);
        if (got == -EINTR)
            continue;
        if (got <= 0 || (others == 0 && got < static_cast<long>(sizeof(bytes))))
            return;
        if (others == 0)
            continue;
        if ((static_cast<std::uint32_t>(bytes[0]) & others) != 0)
            return;
        call(SYS_recvfrom, bell_, bytes, 1, MSG_DONTWAIT, nullptr, nullptr);
    }
}

void Connection::kernel_said(std::uint32_t events)
{
    if (stage_.load(std::memory_order_acquire) != Stage::Matched)
        return;
    ReceiveHalf &half = record_->in;
    std::atomic_ref(half.kernel).fetch_or(events);
    std::atomic_ref(half.edges).fetch_add(1);
}

std::uint64_t Connection::turns()
{
    return Attachment::turns_.load(std::memory_order_acquire);
}

} // namespace ntb::socket

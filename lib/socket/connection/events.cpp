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

// Of the bytes of a bell.
constexpr std::uint32_t rung_in = 1;
constexpr std::uint32_t rung_out = 2;

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

std::uint32_t Connection::look(int fd)
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
    Sending out(*this, fd);
    events |= out.look();
    if (receiver == Receiver::State::Eof && out.sender().state() == Sender::State::Ended)
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

void Connection::disarm(std::uint32_t events)
{
    if (stage_.load(std::memory_order_acquire) != Stage::Matched)
        return;
    if ((events & EPOLLIN) != 0)
        wake(record_->in.sleepers, lines_in().receiver_asks.wants_data);
    if ((events & EPOLLOUT) != 0)
        wake(record_->out.sleepers, lines_out().sender_asks.wants_room);
    drain_bell((load(record_->in.sleepers.count) != 0 ? rung_in : 0) |
               (load(record_->out.sleepers.count) != 0 ? rung_out : 0));
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

// SPDX-License-Identifier: BSD-3-Clause
#include "readiness/deadline.hpp"

namespace ntb::socket
{

namespace
{

constexpr std::uint64_t second_ns = 1000000000;
constexpr std::uint64_t longest_s = std::uint64_t{1} << 33;

} // namespace

std::uint64_t Deadline::now_ns()
{
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * second_ns +
           static_cast<std::uint64_t>(now.tv_nsec);
}

Deadline::Deadline(const timespec *timeout) : never_(timeout == nullptr)
{
    if (never_)
        return;
    const auto seconds = static_cast<std::uint64_t>(timeout->tv_sec);
    at_once_ = timeout->tv_sec == 0 && timeout->tv_nsec == 0;
    never_ = seconds > longest_s;
    if (!at_once_ && !never_)
        until_ns_ = now_ns() + seconds * second_ns + static_cast<std::uint64_t>(timeout->tv_nsec);
}

Deadline Deadline::sooner_at(std::uint64_t ns) const
{
    Deadline made = *this;
    if (at_once_ || (!never_ && until_ns_ <= ns))
        return made;
    made.never_ = false;
    made.until_ns_ = ns;
    return made;
}

std::uint64_t Deadline::left_ns() const
{
    const std::uint64_t now = at_once_ ? until_ns_ : now_ns();
    return now < until_ns_ ? until_ns_ - now : 0;
}

const timespec *Deadline::left(timespec &room) const
{
    if (never_)
        return nullptr;
    const std::uint64_t ns = left_ns();
    room.tv_sec = static_cast<time_t>(ns / second_ns);
    room.tv_nsec = static_cast<long>(ns % second_ns);
    return &room;
}

void Deadline::set(timespec &time) const
{
    if (left(time) == nullptr)
        time = {static_cast<time_t>(longest_s), 0};
}

bool is_valid(const timespec &timeout)
{
    return timeout.tv_sec >= 0 && timeout.tv_nsec >= 0 &&
           timeout.tv_nsec < static_cast<long>(second_ns);
}

} // namespace ntb::socket

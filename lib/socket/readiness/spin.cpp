// SPDX-License-Identifier: BSD-3-Clause
#include "readiness/spin.hpp"

#include <algorithm>
#include <ctime>

#include <sched.h>

#include "kernel/system.hpp"

namespace ntb::socket
{

namespace
{

constexpr std::uint32_t pauses = 8;     // of a lap: about 0.15 us
constexpr std::uint32_t yield_laps = 8; // others get to run each microsecond or so
constexpr std::uint32_t least_us = 1;

std::atomic<std::uint32_t> spinners_here;

std::uint64_t monotonic_ns()
{
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1000000000 +
           static_cast<std::uint64_t>(now.tv_nsec);
}

std::uint32_t processors_here()
{
    unsigned long mask[1024 / sizeof(unsigned long)] = {};
    const long bytes = kernel::call(SYS_sched_getaffinity, 0, sizeof mask, mask);
    std::uint32_t n = 0;
    for (long i = 0; i * static_cast<long>(sizeof mask[0]) < bytes; i++)
        n += static_cast<std::uint32_t>(__builtin_popcountl(mask[i]));
    return std::max(n, 1u);
}

void pause()
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

} // namespace

Spinning &process_spinning()
{
    static Spinning spinning = {50, processors_here(), &spinners_here, monotonic_ns, 16};
    return spinning;
}

void Window::succeeded(std::uint32_t most_us)
{
    const std::uint32_t now = us();
    us_.store(std::clamp(now + now / 2 + 1, least_us, std::max(most_us, least_us)),
              std::memory_order_relaxed);
}

void Window::failed()
{
    us_.store(std::max(us() / 2, least_us), std::memory_order_relaxed);
}

void forget_spinners_after_fork()
{
    spinners_here.store(0, std::memory_order_relaxed);
}

bool Spin::begin()
{
    if (spinning_.most_us == 0)
        return false;
    if (spinning_.spinners->fetch_add(1, std::memory_order_relaxed) >= spinning_.processors) {
        spinning_.spinners->fetch_sub(1, std::memory_order_relaxed);
        return false;
    }
    spins_ = true;
    until_ = spinning_.now_ns() + std::uint64_t{std::min(window_.us(), spinning_.most_us)} * 1000;
    return true;
}

bool Spin::lap()
{
    if (over_)
        return false;
    if (!spins_ && !begin()) {
        over_ = true;
        return false;
    }
    if (spinning_.now_ns() >= until_) {
        end(false);
        return false;
    }
    for (std::uint32_t i = 0; i < pauses; i++)
        pause();
    if (++laps_ % yield_laps == 0)
        kernel::call(SYS_sched_yield);
    return true;
}

void Spin::end(bool success)
{
    over_ = true;
    if (!spins_)
        return;
    spins_ = false;
    spinning_.spinners->fetch_sub(1, std::memory_order_relaxed);
    if (success)
        window_.succeeded(spinning_.most_us);
    else
        window_.failed();
}

} // namespace ntb::socket

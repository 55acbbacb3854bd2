// SPDX-License-Identifier: BSD-3-Clause
#include "core_probe.hpp"

#include "pin.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <sched.h>
#include <thread>

namespace app
{

namespace
{

using Clock = std::chrono::steady_clock;

constexpr uint64_t rounds = 10000;
constexpr uint64_t polls_per_clock = 4096;
constexpr std::chrono::milliseconds patience(100);

/// Two lines apart: adjacent lines are fetched in pairs.
struct alignas(128) Word {
    std::atomic<uint64_t> value{0};
};

struct Table {
    Word ours, theirs;
    Clock::time_point give_up;
};

/// @return false: time is up
bool await(const Word &word, uint64_t value, Clock::time_point give_up)
{
    for (uint64_t spin = 1; word.value.load(std::memory_order_acquire) != value; ++spin) {
        if (spin % polls_per_clock == 0 && Clock::now() > give_up)
            return false;
    }
    return true;
}

void answer(Table &table)
{
    for (uint64_t round = 0; round <= rounds; ++round) {
        if (!await(table.ours, round + 1, table.give_up))
            return;
        table.theirs.value.store(round + 1, std::memory_order_release);
    }
}

/// The first round waits for the other thread to start and is not timed.
std::optional<double> ask(Table &table)
{
    Clock::time_point begin;
    for (uint64_t round = 0; round <= rounds; ++round) {
        table.ours.value.store(round + 1, std::memory_order_release);
        if (!await(table.theirs, round + 1, table.give_up))
            return std::nullopt;
        if (round == 0)
            begin = Clock::now();
    }
    const std::chrono::duration<double, std::nano> passed = Clock::now() - begin;
    return passed.count() / static_cast<double>(rounds);
}

} // namespace

std::optional<double> probe_core(int other_cpu)
{
    if (other_cpu < 0 || other_cpu >= CPU_SETSIZE || other_cpu == sched_getcpu())
        return std::nullopt;
    Table table;
    table.give_up = Clock::now() + patience;
    std::thread other([&] {
        if (pin(static_cast<unsigned>(other_cpu)))
            answer(table);
    });
    const std::optional<double> round_trip = ask(table);
    other.join();
    return round_trip;
}

} // namespace app

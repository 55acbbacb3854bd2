// SPDX-License-Identifier: BSD-3-Clause
#include "core_probe.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <pthread.h>
#include <sched.h>

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

using Shared = std::shared_ptr<Table>;

void *run(void *arg)
{
    const std::unique_ptr<Shared> table(static_cast<Shared *>(arg));
    answer(**table);
    return nullptr;
}

/// Starts a thread on that CPU that answers. No thread waits for its end: a real-time thread there
/// may never let it run. It does not inherit such a priority itself.
/// @return false: the CPU is not for this process
bool start_answering(unsigned cpu, const Shared &table)
{
    cpu_set_t there;
    CPU_ZERO(&there);
    CPU_SET(cpu, &there);
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0)
        return false;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    const sched_param normal{}; // set, or the C library takes the caller's
    pthread_attr_setschedparam(&attributes, &normal);
    pthread_attr_setschedpolicy(&attributes, SCHED_OTHER);
    pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
    pthread_attr_setaffinity_np(&attributes, sizeof(there), &there);
    auto mine = std::make_unique<Shared>(table);
    pthread_t thread;
    const bool started = pthread_create(&thread, &attributes, run, mine.get()) == 0;
    if (started)
        (void)mine.release(); // the thread's now
    pthread_attr_destroy(&attributes);
    return started;
}

} // namespace

std::optional<double> probe_core(int other_cpu)
{
    if (other_cpu < 0 || other_cpu >= CPU_SETSIZE || other_cpu == sched_getcpu())
        return std::nullopt;
    const auto table = std::make_shared<Table>();
    table->give_up = Clock::now() + patience;
    if (!start_answering(static_cast<unsigned>(other_cpu), table))
        return std::nullopt;
    return ask(*table);
}

} // namespace app

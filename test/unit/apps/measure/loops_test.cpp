// SPDX-License-Identifier: BSD-3-Clause
// The measuring loops over a queue in memory, whose messages can be changed on their way.
#include "loops.hpp"

#include <array>
#include <gtest/gtest.h>
#include <thread>

using namespace measure;

namespace
{

constexpr uint64_t run_ns = 30'000'000;
constexpr uint64_t bound_ns = 20'000'000'000;

/// Values from one thread to another one.
struct Pipe {
    std::array<uint64_t, 64> values{};
    std::atomic<uint64_t> sent{0}, taken{0};
};

/// One end of two pipes. A message of two lines reads as twice its value.
struct PipeLink {
    Pipe &out, &in;
    uint64_t changed = UINT64_MAX; ///< number of the message that arrives changed

    int send(uint64_t value, unsigned n, uint64_t give_up)
    {
        for (unsigned i = 0; i < n; i++) {
            const uint64_t number = out.sent.load(std::memory_order_relaxed);
            if (await(give_up, [&] { return has_room(number); }) < 0)
                return ETIMEDOUT;
            out.values[number % out.values.size()] = value + i + (number == changed ? 1 : 0);
            out.sent.store(number + 1, std::memory_order_release);
        }
        return 0;
    }
    int receive(unsigned n, uint64_t &sum)
    {
        int got = 0;
        for (; got < static_cast<int>(n) && in.sent.load(std::memory_order_acquire) != in.taken;
             got++, in.taken++)
            sum += 2 * in.values[in.taken % in.values.size()];
        if (got == 0)
            std::this_thread::yield(); // both ends may have to share a core
        return got;
    }
    bool has_room(uint64_t number) const
    {
        const bool room = number - out.taken.load() < out.values.size();
        if (!room)
            std::this_thread::yield();
        return room;
    }
    uint64_t sum_of(uint64_t, uint64_t values) const { return 2 * values; }
};

struct Loops : testing::Test {
    Pipe there, back;
    PipeLink near{there, back}, far{back, there};
    Outcome here, beyond;
};

TEST_F(Loops, RoundTripsAreTimedAndCountedAtBothEnds)
{
    std::thread answering([&] { answer(far, bound_ns, beyond); });
    uint64_t recorded = 0;
    ask(
        near, {bound_ns, bound_ns, 1000}, [&](uint64_t) { recorded++; }, here);
    answering.join();
    EXPECT_EQ(here.error, 0) << here.what;
    EXPECT_EQ(beyond.error, 0) << beyond.what;
    EXPECT_EQ(here.counted, 1000u);
    EXPECT_EQ(beyond.count, 1000u);
    EXPECT_EQ(recorded, 1000u);
    EXPECT_GT(here.ns, 0u);
}

TEST_F(Loops, RoundTripsEndWithTheirTime)
{
    std::thread answering([&] { answer(far, bound_ns, beyond); });
    ask(near, {run_ns, bound_ns}, Untimed{}, here);
    answering.join();
    EXPECT_EQ(here.error, 0) << here.what;
    EXPECT_GE(here.ns, run_ns);
    EXPECT_EQ(here.count, beyond.count);
}

TEST_F(Loops, AChangedMessageIsNoticedWhereItComes)
{
    near.changed = 3;
    std::thread answering([&] { answer(far, bound_ns, beyond); });
    ask(near, {bound_ns, 1'000'000'000}, Untimed{}, here);
    answering.join();
    EXPECT_EQ(beyond.error, EBADMSG);
    EXPECT_EQ(here.error, ETIMEDOUT);
    EXPECT_EQ(here.count, 3u);
}

TEST_F(Loops, AStreamIsCountedAtItsReceiver)
{
    std::atomic<uint64_t> total{0};
    const Span span{10 * run_ns, bound_ns}; // a busy machine lets the ends run in turns only
    std::thread receiving([&] { receive_stream(far, 8, span, total, beyond); });
    send_stream(near, 8, span, total, here);
    receiving.join();
    EXPECT_EQ(here.error, 0) << here.what;
    EXPECT_EQ(beyond.error, 0) << beyond.what;
    EXPECT_EQ(beyond.count, here.count);
    EXPECT_LT(beyond.counted, beyond.count);
}

TEST_F(Loops, AStreamWithAChangedMessageFails)
{
    near.changed = 10;
    std::atomic<uint64_t> total{0};
    std::thread receiving([&] { receive_stream(far, 8, {run_ns, bound_ns}, total, beyond); });
    send_stream(near, 8, {run_ns, bound_ns}, total, here);
    receiving.join();
    EXPECT_EQ(beyond.error, EBADMSG);
}

TEST(ClockReads, AreRareWhereMuchIsDone)
{
    ClockReads clock(512);
    uint64_t reads = 0;
    for (uint64_t done = 0; done < 100'000; done++)
        reads += clock.due(done) ? 1 : 0;
    EXPECT_LT(reads, 250u);
    EXPECT_GT(reads, 100'000u / 512);
}

} // namespace

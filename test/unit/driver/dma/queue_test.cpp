// SPDX-License-Identifier: BSD-3-Clause
// A queue of copies over an engine of the test's own, which walks the ring as the facts have it
// and whose failings are at the test's command. Bus addresses are virtual ones; the clock is the
// test's.
#include "dma/queue.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>

namespace
{

using namespace plx;
using pmd::DmaOutcome;
using pmd::DmaQueue;

uint64_t bus_of(const void *p)
{
    return reinterpret_cast<uintptr_t>(p);
}

/// Registers by offset, and what START does.
class Engine
{
public:
    std::map<uint32_t, uint32_t> regs{{0x000, 0x87D010B5}, {0x258, 1}};
    bool asleep = false;                ///< START is not noticed: work waits for run()
    unsigned stall_after = ~0u;         ///< E8: so many descriptors, and then it forgets the next
    bool hung = false;                  ///< E9: in progress for ever
    bool gone = false;                  ///< nothing answers
    bool deaf = false;                  ///< E7: registers keep nothing
    bool short_count = false;           ///< says that it wrote one byte less
    std::map<unsigned, uint32_t> fails; ///< n-th descriptor of all: what is written back
    unsigned starts = 0;
    unsigned reads = 0;
    unsigned walked = 0;

    hw::RegIo io() { return {&ops_, this}; }

    void run()
    {
        const uint32_t count = regs[0x220];
        if ((regs[0x004] & 4) == 0 || count == 0 || hung)
            return;
        const uint64_t base = uint64_t{regs[0x218]} << 32 | regs[0x214];
        auto *ring = reinterpret_cast<hw::DmaDescriptor *>(base);
        for (unsigned n = 0; n < stall_after; ++n) {
            const uint32_t at = (regs[0x21C] - static_cast<uint32_t>(base)) / 16;
            uint32_t *words = ring[at].words;
            const uint32_t control = __atomic_load_n(words, __ATOMIC_ACQUIRE);
            if ((control & 0x80000000) == 0)
                break;
            regs[0x224] = regs[0x21C];
            regs[0x21C] = static_cast<uint32_t>(base) + (at + 1) % count * 16;
            __atomic_store_n(words, done(words, control & 0x7FFFFFF), __ATOMIC_RELEASE);
        }
    }

private:
    uint32_t done(const uint32_t *words, uint32_t bytes)
    {
        const auto failure = fails.find(walked++);
        if (failure != fails.end())
            return failure->second;
        const uint64_t src = uint64_t{words[1] >> 16} << 32 | words[3];
        const uint64_t dst = uint64_t{words[1] & 0xFFFF} << 32 | words[2];
        std::memcpy(reinterpret_cast<void *>(dst), reinterpret_cast<void *>(src), bytes);
        return 0x40000000 | (bytes - (short_count ? 1 : 0));
    }
    uint32_t read(uint32_t offset)
    {
        ++reads;
        if (gone)
            return ~0u;
        return regs[offset] | (offset == 0x238 && hung ? 0x40000000 : 0);
    }
    void write(uint32_t offset, uint32_t value)
    {
        if (gone || (deaf && offset == 0x214))
            return;
        if (offset != 0x238) {
            regs[offset] = value;
            return;
        }
        regs[offset] = value & 0x3FFF0000;
        if ((value & 8) != 0) {
            ++starts;
            if (!asleep)
                run();
        }
    }

    static Engine &self(void *ctx) { return *static_cast<Engine *>(ctx); }
    static uint32_t read32(void *ctx, uint32_t offset) { return self(ctx).read(offset); }
    static void write32(void *ctx, uint32_t offset, uint32_t value)
    {
        self(ctx).write(offset, value);
    }
    static void delay_us(void *, uint32_t) {}
    static constexpr hw::RegIoOps ops_ = {read32, write32, nullptr, nullptr, delay_us};
};

class DmaQueueTest : public ::testing::Test
{
protected:
    static constexpr uint32_t copies = 48; ///< 64 slots
    Engine engine_;
    hw::DmaChannel channel_;
    std::unique_ptr<DmaQueue> queue_ = std::make_unique<DmaQueue>();
    hw::Refusal why_;
    uint64_t now_us_ = 7'000'000;
    std::array<uint8_t, 4096> from_{};
    std::array<uint8_t, 4096> to_{};
    alignas(4096) std::array<std::byte, 8192> memory_;

    DmaQueueTest()
    {
        std::iota(from_.begin(), from_.end(), uint8_t{1});
        memory_.fill(std::byte{0xFF}); // as if every slot were valid
    }
    int open_rc()
    {
        const int rc = channel_.open(engine_.io(), 4, &why_);
        const auto clock = [](void *ctx) { return *static_cast<uint64_t *>(ctx); };
        return rc != 0 ? rc
                       : queue_->open(&channel_, {memory_.data(), bus_of(memory_.data())}, copies,
                                      clock, &now_us_, &why_);
    }
    void open() { ASSERT_EQ(open_rc(), 0) << why_.what; }
    /// Copies byte number @p i, with a fence if asked.
    void give(unsigned i, bool fence = false)
    {
        queue_->copy(bus_of(&from_[i % 4096]), bus_of(&to_[i % 4096]), 1, fence);
    }
    DmaOutcome take()
    {
        const DmaOutcome outcome = queue_->outcome();
        if (outcome != DmaOutcome::pending)
            queue_->collect();
        return outcome;
    }
    /// Ticks of the control side, 10 ms apart, until it says something; at most @p ticks.
    DmaQueue::Seen watch(unsigned ticks)
    {
        DmaQueue::Seen seen = DmaQueue::Seen::nothing;
        for (unsigned i = 0; i < ticks && seen == DmaQueue::Seen::nothing; ++i) {
            seen = queue_->watch();
            now_us_ += 10'000;
        }
        return seen;
    }
    void expect_given_up()
    {
        EXPECT_TRUE(queue_->failed());
        EXPECT_EQ(engine_.regs[0x004] & 4, 0u) << "bus mastering";
        const unsigned starts = engine_.starts;
        give(0);
        queue_->start();
        EXPECT_EQ(engine_.starts, starts);
    }
};

TEST_F(DmaQueueTest, SizesOfRings)
{
    EXPECT_EQ(DmaQueue::slots_for(1), 32u);
    EXPECT_EQ(DmaQueue::slots_for(16), 32u);
    EXPECT_EQ(DmaQueue::slots_for(17), 64u);
    EXPECT_EQ(DmaQueue::slots_for(DmaQueue::copies_max), DmaQueue::slots_max);
    EXPECT_EQ(DmaQueue::memory_bytes(64), 4096u);
    EXPECT_GE(DmaQueue::memory_bytes(256), 256 * 16u + hw::dma_ring_slack * 16u);
}

TEST_F(DmaQueueTest, CopiesInOrderAndAroundTheRing)
{
    open();
    EXPECT_EQ(queue_->room(), copies);
    for (unsigned i = 0; i < 1000; ++i) {
        give(i);
        if (i % 3 == 0)
            queue_->start();
        while (take() == DmaOutcome::ok) {
        }
    }
    queue_->start();
    while (take() == DmaOutcome::ok) {
    }
    EXPECT_EQ(queue_->collected(), 1000u);
    EXPECT_EQ(std::memcmp(from_.data(), to_.data(), 1000), 0);
    EXPECT_EQ(to_[1000], 0);
    EXPECT_EQ(queue_->room(), copies);
}

TEST_F(DmaQueueTest, ADescriptorAsItLiesInMemory)
{
    engine_.asleep = true;
    open();
    queue_->copy(0x1234'89AB'CDEF, 0xFEDC'7654'3210, 0x7FFFFFF, false);
    uint32_t words[4];
    std::memcpy(words, memory_.data(), sizeof(words));
    EXPECT_EQ(words[0], 0x87FFFFFFu);
    EXPECT_EQ(words[1], 0x1234FEDCu);
    EXPECT_EQ(words[2], 0x76543210u);
    EXPECT_EQ(words[3], 0x89ABCDEFu);
}

TEST_F(DmaQueueTest, NothingButStartTouchesRegisters)
{
    engine_.asleep = true;
    open();
    engine_.reads = 0;
    for (unsigned i = 0; i < 10; ++i)
        give(i);
    EXPECT_EQ(engine_.starts, 0u);
    queue_->start();
    EXPECT_EQ(engine_.starts, 1u) << "one doorbell a batch";
    queue_->start();
    EXPECT_EQ(engine_.starts, 1u) << "nothing new";
    EXPECT_EQ(take(), DmaOutcome::pending);
    EXPECT_FALSE(queue_->idle());
    engine_.run();
    EXPECT_TRUE(queue_->idle());
    for (unsigned i = 0; i < 10; ++i)
        EXPECT_EQ(take(), DmaOutcome::ok);
    EXPECT_EQ(take(), DmaOutcome::pending);
    EXPECT_EQ(engine_.reads, 0u);
}

TEST_F(DmaQueueTest, SlotsAheadOfTheOldestAreNeverValid)
{
    engine_.asleep = true;
    open();
    for (unsigned i = 0; i < copies; ++i)
        give(i);
    EXPECT_EQ(queue_->room(), 0u);
    const auto *slots = reinterpret_cast<const hw::DmaDescriptor *>(memory_.data());
    for (unsigned i = copies; i < 64 + hw::dma_ring_slack; ++i)
        EXPECT_EQ(slots[i].words[0] & hw::dma_valid, 0u) << i;
}

TEST_F(DmaQueueTest, EachFailureIsReportedByItself)
{
    engine_.fails = {{1, 0x20000000}, {3, 0x10000000}, {4, 0}};
    open();
    for (unsigned i = 0; i < 6; ++i)
        give(i);
    queue_->start();
    const DmaOutcome wanted[] = {DmaOutcome::ok,           DmaOutcome::read_failed, DmaOutcome::ok,
                                 DmaOutcome::write_failed, DmaOutcome::unknown,     DmaOutcome::ok};
    for (const DmaOutcome outcome : wanted)
        EXPECT_EQ(take(), outcome);
}

TEST_F(DmaQueueTest, SuccessWithBytesMissingIsNone)
{
    engine_.short_count = true;
    open();
    give(0);
    queue_->start();
    EXPECT_EQ(queue_->collect_good(1), 0u);
    EXPECT_EQ(take(), DmaOutcome::unknown);
}

TEST_F(DmaQueueTest, CollectsWhatEndedWellUpToAFailure)
{
    engine_.fails = {{4, 0x20000000}};
    open();
    EXPECT_EQ(queue_->collect_good(copies), 0u);
    for (unsigned i = 0; i < 7; ++i)
        give(i);
    queue_->start();
    EXPECT_EQ(queue_->collect_good(3), 3u);
    EXPECT_EQ(queue_->collect_good(copies), 1u);
    EXPECT_EQ(queue_->collect_good(copies), 0u);
    EXPECT_EQ(take(), DmaOutcome::read_failed);
    EXPECT_EQ(queue_->collect_good(copies), 2u);
    EXPECT_EQ(take(), DmaOutcome::pending);
    EXPECT_EQ(queue_->room(), copies);
}

TEST_F(DmaQueueTest, CollectsNothingThatIsUnderWay)
{
    engine_.asleep = true;
    open();
    give(0);
    give(1);
    queue_->start();
    engine_.stall_after = 1;
    engine_.run();
    EXPECT_EQ(queue_->collect_good(copies), 1u);
    EXPECT_EQ(queue_->collect_good(copies), 0u);
    EXPECT_EQ(queue_->collected(), 1u);
}

TEST_F(DmaQueueTest, CollectsUpToAFence)
{
    engine_.asleep = true;
    open();
    give(0);
    give(1);
    give(2, true);
    queue_->start();
    engine_.run();
    EXPECT_EQ(queue_->collect_good(copies), 2u);
    EXPECT_EQ(queue_->collect_good(copies), 0u);
    EXPECT_EQ(take(), DmaOutcome::pending); // lets 2 go
    engine_.run();
    EXPECT_EQ(queue_->collect_good(copies), 1u);
    EXPECT_TRUE(queue_->idle());
}

TEST_F(DmaQueueTest, AFenceWaitsForAllBeforeIt)
{
    engine_.asleep = true;
    open();
    give(0);
    give(1);
    give(2, true);
    give(3);
    give(4, true);
    queue_->start();
    engine_.run();
    EXPECT_EQ(engine_.walked, 2u);
    EXPECT_FALSE(queue_->idle()); // lets 2 and 3 go
    EXPECT_EQ(engine_.starts, 2u);
    engine_.run();
    EXPECT_EQ(engine_.walked, 4u);
    EXPECT_EQ(take(), DmaOutcome::ok);
    EXPECT_EQ(take(), DmaOutcome::ok);
    EXPECT_EQ(take(), DmaOutcome::ok);
    EXPECT_EQ(take(), DmaOutcome::ok);
    EXPECT_EQ(take(), DmaOutcome::pending); // lets 4 go
    engine_.run();
    EXPECT_TRUE(queue_->idle());
    EXPECT_EQ(take(), DmaOutcome::ok);
    EXPECT_EQ(engine_.walked, 5u);
}

TEST_F(DmaQueueTest, AFenceWithNothingBeforeItWaitsForNothing)
{
    open();
    for (unsigned i = 0; i < 3; ++i) {
        give(i, true);
        queue_->start();
        EXPECT_EQ(engine_.walked, i + 1);
        EXPECT_TRUE(queue_->idle());
    }
}

TEST_F(DmaQueueTest, WhatIsBehindAFenceIsNotReportedBeforeItWasStarted)
{
    open();
    give(0);
    queue_->start();
    give(1, true); // 0 is done, but was not looked at
    EXPECT_FALSE(queue_->idle());
    EXPECT_EQ(engine_.starts, 1u);
    EXPECT_EQ(watch(300), DmaQueue::Seen::nothing) << "no stall: it was not started";
    queue_->start();
    EXPECT_TRUE(queue_->idle());
}

// ---- the control side

TEST_F(DmaQueueTest, AStalledEngineIsStartedAgain)
{
    open();
    engine_.stall_after = 2;
    for (unsigned i = 0; i < 5; ++i)
        give(i);
    queue_->start();
    EXPECT_EQ(watch(10), DmaQueue::Seen::stalled);
    EXPECT_EQ(queue_->last_seen(), static_cast<uint32_t>(bus_of(memory_.data())) + 16);
    EXPECT_EQ(engine_.walked, 4u);
    EXPECT_EQ(watch(10), DmaQueue::Seen::stalled);
    EXPECT_EQ(watch(300), DmaQueue::Seen::nothing);
    EXPECT_EQ(queue_->stalls(), 2u);
    EXPECT_TRUE(queue_->idle());
    EXPECT_FALSE(queue_->failed());
}

TEST_F(DmaQueueTest, AnEngineThatGoesOnIsLeftAlone)
{
    engine_.asleep = true;
    engine_.stall_after = 1;
    open();
    for (unsigned i = 0; i < 40; ++i)
        give(i);
    queue_->start();
    engine_.reads = 0;
    for (unsigned i = 0; i < 40; ++i) {
        EXPECT_EQ(watch(1), DmaQueue::Seen::nothing);
        engine_.run();
    }
    EXPECT_EQ(engine_.reads, 0u);
    EXPECT_EQ(queue_->stalls(), 0u);
}

TEST_F(DmaQueueTest, OneLateTickIsNoStall)
{
    engine_.asleep = true;
    open();
    EXPECT_EQ(watch(1), DmaQueue::Seen::nothing);
    now_us_ += 60'000'000;
    give(0);
    queue_->start();
    EXPECT_EQ(watch(1), DmaQueue::Seen::nothing);
    EXPECT_EQ(queue_->stalls(), 0u);
}

TEST_F(DmaQueueTest, TimeWithoutAPollIsNoHang)
{
    open();
    engine_.hung = true;
    give(0);
    queue_->start();
    for (unsigned i = 0; i < 30; ++i) {
        EXPECT_EQ(watch(1), DmaQueue::Seen::nothing) << i;
        now_us_ += 60'000'000;
    }
}

TEST_F(DmaQueueTest, AnEngineThatNeverStartsIsGivenUp)
{
    open();
    engine_.stall_after = 0;
    for (unsigned i = 0; i < 3; ++i)
        give(i);
    queue_->start();
    for (unsigned i = 0; i < 5; ++i)
        EXPECT_EQ(watch(10), DmaQueue::Seen::stalled) << i;
    EXPECT_EQ(watch(10), DmaQueue::Seen::given_up);
    EXPECT_EQ(take(), DmaOutcome::unknown);
    EXPECT_EQ(take(), DmaOutcome::not_tried);
    EXPECT_EQ(take(), DmaOutcome::not_tried);
    EXPECT_TRUE(queue_->idle());
    expect_given_up();
    // It came to rest, so it may be tried once more.
    engine_.stall_after = ~0u;
    EXPECT_TRUE(queue_->halt());
    EXPECT_FALSE(queue_->failed());
    give(9);
    queue_->start();
    EXPECT_EQ(take(), DmaOutcome::ok);
}

TEST_F(DmaQueueTest, AHungEngineIsCutOffAndGivenUpForGood)
{
    open();
    give(0);
    queue_->start();
    engine_.hung = true;
    give(1);
    give(2);
    give(3, true);
    queue_->start();
    EXPECT_EQ(watch(95), DmaQueue::Seen::nothing) << "not within a second";
    EXPECT_EQ(take(), DmaOutcome::ok);
    EXPECT_EQ(take(), DmaOutcome::pending);
    EXPECT_EQ(watch(20), DmaQueue::Seen::given_up);
    EXPECT_EQ(watch(20), DmaQueue::Seen::nothing) << "reported once";
    EXPECT_EQ(take(), DmaOutcome::unknown);
    EXPECT_EQ(take(), DmaOutcome::not_tried);
    EXPECT_EQ(take(), DmaOutcome::not_tried);
    EXPECT_EQ(take(), DmaOutcome::pending);
    expect_given_up();
    for (unsigned i = 0; i < 10 && !queue_->halt(); ++i)
        now_us_ += 10'000;
    EXPECT_TRUE(queue_->failed());
    engine_.hung = false; // whatever it says now
    EXPECT_TRUE(queue_->halt());
    EXPECT_TRUE(queue_->failed());
}

TEST_F(DmaQueueTest, AnEngineThatVanishesIsGivenUpAtOnce)
{
    engine_.asleep = true;
    open();
    give(0);
    queue_->start();
    engine_.gone = true;
    EXPECT_EQ(watch(5), DmaQueue::Seen::given_up);
    EXPECT_EQ(take(), DmaOutcome::unknown);
    EXPECT_TRUE(queue_->halt());
    EXPECT_TRUE(queue_->failed());
}

TEST_F(DmaQueueTest, AHaltForgetsWhatWasUnderWay)
{
    engine_.asleep = true;
    open();
    give(0);
    give(1);
    queue_->start();
    EXPECT_TRUE(queue_->halt());
    EXPECT_EQ(queue_->room(), copies);
    EXPECT_EQ(take(), DmaOutcome::pending);
    engine_.run();
    EXPECT_EQ(engine_.walked, 0u);
    give(2);
    queue_->start();
    engine_.run();
    EXPECT_EQ(take(), DmaOutcome::ok);
    EXPECT_EQ(to_[2], from_[2]);
    EXPECT_EQ(to_[0], 0);
}

TEST_F(DmaQueueTest, AClosedQueueLeavesAQuietChannel)
{
    open();
    EXPECT_TRUE(queue_->close());
    for (const uint32_t offset : {0x200u, 0x210u, 0x214u, 0x218u, 0x21Cu, 0x220u})
        EXPECT_EQ(engine_.regs[offset], 0u) << offset;
    EXPECT_EQ(engine_.regs[0x004] & 4, 0u);
    EXPECT_TRUE(queue_->close()) << "again";
    EXPECT_EQ(queue_->watch(), DmaQueue::Seen::nothing);
}

TEST_F(DmaQueueTest, ADeadChannelIsRefusedWithAReason)
{
    engine_.hung = true;
    EXPECT_EQ(open_rc(), -EIO);
    EXPECT_STRNE(why_.what, "");
    engine_.hung = false;
    engine_.deaf = true;
    EXPECT_EQ(open_rc(), -EIO);
    engine_.deaf = false;
    engine_.gone = true;
    EXPECT_EQ(open_rc(), -ENODEV);
}

// ---- as the engine of a sending half

TEST_F(DmaQueueTest, AsAnEngineItCountsWhatIsDone)
{
    engine_.asleep = true;
    open();
    const queue::Engine e = queue_->engine();
    EXPECT_EQ(e.capacity, copies);
    for (unsigned i = 0; i < copies; ++i) {
        EXPECT_EQ(e.room(e.ctx), copies - i);
        e.copy(e.ctx, bus_of(&from_[i]), bus_of(&to_[i]), 1);
    }
    e.start(e.ctx);
    EXPECT_EQ(e.room(e.ctx), 0u);
    EXPECT_EQ(e.completed(e.ctx), 0u);
    engine_.run();
    EXPECT_EQ(e.completed(e.ctx), copies);
    EXPECT_EQ(e.room(e.ctx), copies);
    EXPECT_FALSE(e.failed(e.ctx));
}

TEST_F(DmaQueueTest, AsAnEngineItFailsAtTheFirstFailure)
{
    engine_.fails = {{2, 0x10000000}};
    open();
    const queue::Engine e = queue_->engine();
    for (unsigned i = 0; i < 5; ++i)
        e.copy(e.ctx, bus_of(&from_[i]), bus_of(&to_[i]), 1);
    e.start(e.ctx);
    EXPECT_EQ(e.completed(e.ctx), 2u);
    EXPECT_TRUE(e.failed(e.ctx));
    EXPECT_EQ(e.completed(e.ctx), 2u);
    EXPECT_TRUE(e.halt(e.ctx));
    EXPECT_FALSE(e.failed(e.ctx));
    EXPECT_EQ(e.completed(e.ctx), 0u);
}

TEST_F(DmaQueueTest, AsAnEngineItFailsWhenItIsGivenUp)
{
    open();
    const queue::Engine e = queue_->engine();
    engine_.hung = true;
    e.copy(e.ctx, bus_of(&from_[0]), bus_of(&to_[0]), 1);
    e.start(e.ctx);
    EXPECT_EQ(watch(200), DmaQueue::Seen::given_up);
    EXPECT_TRUE(e.failed(e.ctx));
    EXPECT_EQ(e.completed(e.ctx), 0u);
}

} // namespace

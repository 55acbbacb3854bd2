// SPDX-License-Identifier: BSD-3-Clause
// The queue of copies on an engine of the twin: what it promises holds whatever the chip turns out
// to be, so the same body runs with each of the twin's switches in its other position. The clock is
// the test's; local memory is the engine's under other addresses than the process's.
#include "dma/queue.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include <twin.hpp>
#include <unistd.h>

namespace
{

using namespace plx;
using pmd::DmaOutcome;
using pmd::DmaQueue;
using Seen = DmaQueue::Seen;

constexpr uint64_t ring_bus = 0x0000'1234'5600'0000;
constexpr uint64_t local_bus = 0x0000'7000'0000'0000 - (uint64_t{64} << 20);
constexpr size_t local_bytes = 1 << 20;
constexpr uint32_t takes_back = ~uint32_t{0};

struct Variant {
    const char *name;
    void (*set)(twin::Switches *);
};

class DmaTwin : public ::testing::TestWithParam<Variant>
{
protected:
    static constexpr uint32_t copies = 48;

    struct RegCtx {
        twin::Host *host;
        unsigned channel;
    };
    twin::Host *host_ = nullptr;
    RegCtx ctx_{};
    hw::DmaChannel channel_;
    std::unique_ptr<DmaQueue> queue_ = std::make_unique<DmaQueue>();
    hw::Refusal why_;
    uint64_t now_us_ = 1;
    std::vector<uint8_t> local_ = std::vector<uint8_t>(local_bytes);
    alignas(4096) std::byte ring_[8192];
    std::mt19937 random_{20261121};

    void SetUp() override
    {
        static unsigned cables = 0;
        const std::string cable =
            "mem:dma-" + std::to_string(getpid()) + "-" + std::to_string(cables++);
        twin::Config config;
        config.cable = cable.c_str();
        config.bar2_bytes = uint64_t{16} << 20;
        GetParam().set(&config.switches);
        twin::Error error{};
        ASSERT_EQ(twin::attach(config, &host_, &error), 0) << error.text;
        ASSERT_EQ(twin::dma_map(host_, ring_, ring_bus, sizeof(ring_)), 0);
        ASSERT_EQ(twin::dma_map(host_, local_.data(), local_bus, local_bytes), 0);
        for (size_t at = 0; at < local_bytes; at += 4) {
            const auto word = static_cast<uint32_t>(random_());
            std::memcpy(&local_[at], &word, sizeof(word));
        }
        ctx_ = {host_, 1};
        ASSERT_EQ(open(), 0) << why_.what;
    }
    void TearDown() override
    {
        if (host_ != nullptr)
            twin::detach(host_);
    }
    int open()
    {
        static const hw::RegIoOps ops = {
            [](void *ctx, uint32_t offset) {
                const auto *self = static_cast<const RegCtx *>(ctx);
                return twin::dma_read32(self->host, self->channel, offset);
            },
            [](void *ctx, uint32_t offset, uint32_t value) {
                const auto *self = static_cast<const RegCtx *>(ctx);
                twin::dma_write32(self->host, self->channel, offset, value);
            },
            nullptr, nullptr, [](void *, uint32_t) {}};
        const int rc = channel_.open({&ops, &ctx_}, 4, &why_);
        const auto clock = [](void *ctx) { return *static_cast<uint64_t *>(ctx); };
        return rc != 0 ? rc
                       : queue_->open(&channel_, {ring_, ring_bus}, copies, clock, &now_us_, &why_);
    }
    void inject(twin::Fault fault, uint32_t argument)
    {
        ASSERT_EQ(twin::inject(host_, fault, argument), 0);
    }
    /// Looks of the control side, 10 ms apart, until it says something.
    Seen watch(unsigned ticks)
    {
        Seen seen = Seen::nothing;
        for (unsigned i = 0; i < ticks && seen == Seen::nothing; ++i) {
            seen = queue_->watch();
            now_us_ += 10'000;
        }
        return seen;
    }
    /// Collects @p n copies; the control side helps. @return how many of them went well
    unsigned collect(unsigned n)
    {
        unsigned good = 0;
        for (unsigned looks = 0; n > 0 && looks < 10'000;) {
            const DmaOutcome outcome = queue_->outcome();
            if (outcome == DmaOutcome::pending) {
                watch(1);
                ++looks;
                continue;
            }
            good += outcome == DmaOutcome::ok;
            queue_->collect();
            --n;
        }
        EXPECT_EQ(n, 0u) << "copies that never ended";
        return good;
    }
    /// @p n copies of random pieces, in bursts, each behind a fence, as they may overlap what is
    /// still under way; the same is done by hand. @return how many went well
    unsigned exercise(unsigned n)
    {
        std::vector<uint8_t> wanted = local_;
        unsigned under_way = 0;
        unsigned good = 0;
        for (unsigned i = 0; i < n; ++i) {
            const size_t bytes = random_() % 3000;
            const size_t from = random_() % (local_bytes / 2 - 3000);
            const size_t to = local_bytes / 2 + random_() % (local_bytes / 2 - 3000);
            const bool back = random_() % 2 == 0;
            std::memcpy(&wanted[back ? from : to], &wanted[back ? to : from], bytes);
            queue_->copy(local_bus + (back ? to : from), local_bus + (back ? from : to),
                         static_cast<uint32_t>(bytes), true);
            ++under_way;
            if (random_() % 4 == 0 || queue_->room() == 0)
                queue_->start();
            if (queue_->room() < random_() % copies) {
                queue_->start();
                good += collect(under_way);
                under_way = 0;
            }
        }
        queue_->start();
        good += collect(under_way);
        EXPECT_EQ(std::memcmp(local_.data(), wanted.data(), local_bytes), 0);
        return good;
    }
    /// @p n copies that have nothing to do with each other.
    void give(unsigned n)
    {
        for (unsigned i = 0; i < n; ++i)
            queue_->copy(local_bus + i * 64, local_bus + local_bytes / 2 + i * 64, 64, false);
        queue_->start();
    }
};

TEST_P(DmaTwin, CopiesArriveWhole)
{
    EXPECT_EQ(exercise(400), 400u);
    EXPECT_EQ(queue_->stalls(), 0u);
}

TEST_P(DmaTwin, ManyUnderWayAtTheSameTime)
{
    for (unsigned round = 0; round < 20; ++round) {
        give(copies);
        EXPECT_EQ(collect(copies), copies);
    }
    EXPECT_EQ(std::memcmp(local_.data(), &local_[local_bytes / 2], copies * 64), 0);
}

TEST_P(DmaTwin, AChannelIsTakenOverAsADeadProcessLeftIt)
{
    inject(twin::Fault::dma_stall, 3);
    give(10); // some of it stays valid, and the ring where it was
    queue_ = std::make_unique<DmaQueue>();
    ASSERT_EQ(open(), 0) << why_.what;
    EXPECT_EQ(exercise(100), 100u);
    EXPECT_TRUE(queue_->close());
    ASSERT_EQ(open(), 0) << why_.what;
    EXPECT_EQ(exercise(100), 100u);
}

TEST_P(DmaTwin, AStallIsMended)
{
    for (unsigned n = 0; n < 5; ++n) {
        inject(twin::Fault::dma_stall, n);
        give(8);
        EXPECT_EQ(collect(8), 8u);
        EXPECT_EQ(queue_->stalls(), n + 1);
    }
    EXPECT_EQ(exercise(50), 50u);
    EXPECT_FALSE(queue_->failed());
}

TEST_P(DmaTwin, AFailureIsReportedForItsCopyAlone)
{
    for (const auto &[fault, told] :
         {std::pair(twin::Fault::dma_read_error, DmaOutcome::read_failed),
          {twin::Fault::dma_write_error, DmaOutcome::write_failed}}) {
        inject(fault, 2);
        give(8);
        for (unsigned i = 0; i < 8; ++i) {
            EXPECT_EQ(queue_->outcome(), i == 2 ? told : DmaOutcome::ok) << i;
            queue_->collect();
        }
    }
}

TEST_P(DmaTwin, MemoryThatTheEngineDoesNotKnowFails)
{
    queue_->copy(local_bus - 64, local_bus, 64, false);
    queue_->copy(local_bus, local_bus + local_bytes, 64, false);
    queue_->copy(local_bus + local_bytes - 32, local_bus, 64, false); // its end
    queue_->copy(local_bus, local_bus + 4096, 64, false);
    queue_->start();
    const DmaOutcome wanted[] = {DmaOutcome::read_failed, DmaOutcome::write_failed,
                                 DmaOutcome::read_failed, DmaOutcome::ok};
    for (const DmaOutcome outcome : wanted) {
        EXPECT_EQ(queue_->outcome(), outcome);
        queue_->collect();
    }
}

TEST_P(DmaTwin, AHangEndsAndReturnsEverything)
{
    inject(twin::Fault::dma_hang, 3);
    give(8);
    EXPECT_EQ(watch(300), Seen::given_up);
    for (unsigned i = 0; i < 8; ++i) {
        EXPECT_EQ(queue_->outcome(), i < 3    ? DmaOutcome::ok
                                     : i == 3 ? DmaOutcome::unknown
                                              : DmaOutcome::not_tried)
            << i;
        queue_->collect();
    }
    EXPECT_TRUE(queue_->idle());
    EXPECT_EQ(twin::dma_read32(host_, 1, 0x004) & 4, 0u) << "bus mastering";
    // Its memory is the caller's again: the engine leaves it alone, whatever becomes of it.
    const std::vector<uint8_t> left = local_;
    inject(twin::Fault::dma_hang, takes_back);
    twin::dma_write32(host_, 1, 0x238, 0x80C2174C);
    EXPECT_EQ(left, local_);
    EXPECT_TRUE(queue_->halt());
    EXPECT_TRUE(queue_->failed()) << "only a reset of the switch mends it";
    // The other channels go on.
    ctx_.channel = 2;
    queue_ = std::make_unique<DmaQueue>();
    ASSERT_EQ(open(), 0) << why_.what;
    EXPECT_EQ(exercise(50), 50u);
}

/// What a reset wiped, and VFIO does one at each open, stands again as an EEPROM has it.
TEST_P(DmaTwin, TheTuningIsTheSameWithAndWithoutAReset)
{
    const uint32_t tuning[] = {0x22C, 0x254, 0x258, 0x25C, 0x260, 0x2A4, 0x2A8};
    std::vector<uint32_t> without;
    for (const uint32_t at : tuning)
        without.push_back(twin::dma_read32(host_, 1, at));
    EXPECT_EQ(without[0], 0x01000010u);
    queue_ = std::make_unique<DmaQueue>();
    twin::dma_write32(host_, 1, 0x070, 0x8000); // function-level reset
    ASSERT_EQ(open(), 0) << why_.what;
    for (size_t i = 0; i < without.size(); ++i)
        EXPECT_EQ(twin::dma_read32(host_, 1, tuning[i]), without[i]) << std::hex << tuning[i];
    EXPECT_EQ(exercise(50), 50u);
}

TEST_P(DmaTwin, LateWriteBacksAreAwaited)
{
    inject(twin::Fault::dma_late, 2);
    EXPECT_EQ(exercise(60), 60u);
    EXPECT_FALSE(queue_->failed());
}

TEST_P(DmaTwin, AHaltInMidTransferIsQuiet)
{
    inject(twin::Fault::dma_pace, 16); // bytes an access of a register
    queue_->copy(local_bus, local_bus + local_bytes / 2, 200'000, false);
    queue_->start();
    EXPECT_EQ(queue_->outcome(), DmaOutcome::pending);
    bool quiet = false;
    for (unsigned i = 0; i < 100 && !quiet; ++i) {
        quiet = queue_->halt();
        now_us_ += 1'000;
    }
    ASSERT_TRUE(quiet);
    const std::vector<uint8_t> left = local_;
    inject(twin::Fault::dma_pace, 0);
    for (unsigned i = 0; i < 50; ++i)
        (void)twin::dma_read32(host_, 1, 0x238);
    EXPECT_EQ(left, local_);
    ASSERT_FALSE(queue_->failed());
    EXPECT_EQ(exercise(50), 50u);
}

TEST_P(DmaTwin, AnEngineAtWorkOnSomethingBigIsNoHang)
{
    inject(twin::Fault::dma_pace, 5'000); // a look of the control side is two accesses
    queue_->copy(local_bus, local_bus + local_bytes / 2, 300'000, false);
    queue_->start();
    EXPECT_EQ(collect(1), 1u);
    EXPECT_EQ(queue_->stalls(), 0u);
    EXPECT_EQ(std::memcmp(local_.data(), &local_[local_bytes / 2], 300'000), 0);
}

TEST_P(DmaTwin, ACardThatIsGoneIsGivenUp)
{
    inject(twin::Fault::card_gone, 1);
    give(4);
    EXPECT_EQ(watch(300), Seen::given_up);
    EXPECT_EQ(collect(4), 0u);
    EXPECT_TRUE(queue_->halt());
    EXPECT_TRUE(queue_->failed());
}

TEST_P(DmaTwin, TheControlSideLooksWhileTheOwnerWorks)
{
    std::atomic<bool> stop{false};
    std::atomic<uint64_t> clock{1};
    ASSERT_TRUE(queue_->close());
    ASSERT_EQ(
        queue_->open(
            &channel_, {ring_, ring_bus}, copies,
            [](void *ctx) { return static_cast<std::atomic<uint64_t> *>(ctx)->fetch_add(7'000); },
            &clock, &why_),
        0);
    std::thread control([&] {
        while (!stop.load(std::memory_order_relaxed)) {
            queue_->watch();
            std::this_thread::yield();
        }
    });
    unsigned good = 0;
    for (unsigned round = 0; round < 200; ++round) {
        give(copies);
        while (!queue_->idle()) {
        }
        for (unsigned i = 0; i < copies; ++i) {
            good += queue_->outcome() == DmaOutcome::ok;
            queue_->collect();
        }
    }
    stop = true;
    control.join();
    // A clock that runs ahead may have made the control side ring, or give up an engine whose lcore
    // was not running; but nothing is lost, and nothing is reported that is not so.
    EXPECT_TRUE(good == 200 * copies || queue_->failed());
}

const Variant variants[] = {
    {"defaults", [](twin::Switches *) {}},
    {"timeouts_do_not_hang", [](twin::Switches *s) { s->dma_timeout_hangs = false; }},
    {"no_stale_tail", [](twin::Switches *s) { s->dma_stale_tail = false; }},
    {"rewrite_keeps_what_was_read", [](twin::Switches *s) { s->dma_rewrite_drops = false; }},
    {"pause_repeats", [](twin::Switches *s) { s->dma_pause_repeats = true; }},
    {"reorders_if_relaxed", [](twin::Switches *s) { s->dma_relaxed_reorders = true; }},
    {"last_is_completed", [](twin::Switches *s) { s->dma_last_is_completed = true; }},
    {"writes_back_all", [](twin::Switches *s) { s->dma_writes_back_all = true; }},
    {"fetches_past_end", [](twin::Switches *s) { s->dma_fetches_past_end = true; }},
    {"prefetch_by_four", [](twin::Switches *s) { s->dma_prefetch_unit = 4; }},
    {"ring_on_4096", [](twin::Switches *s) { s->dma_ring_align = 4096; }},
};

INSTANTIATE_TEST_SUITE_P(Switch, DmaTwin, testing::ValuesIn(variants),
                         [](const auto &v) { return std::string(v.param.name); });

} // namespace

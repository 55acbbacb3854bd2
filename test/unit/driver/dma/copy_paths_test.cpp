// SPDX-License-Identifier: BSD-3-Clause
// The engines of a device's queue pairs, with engines of the test's own.
#include "dma/copy_paths.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <deque>

#include <rte_memory.h>

#include "queue/wire.hpp"

using namespace plx;
using namespace plx::pmd;

namespace
{

/// Copies in start(), between pointers of this process.
struct Engine {
    struct Copy {
        uint64_t from, to;
        uint32_t bytes;
    };
    std::deque<Copy> given;
    uint64_t done = 0;
    unsigned halts = 0;
    unsigned copies = 0;
    bool dead = false, moving = false;

    static Engine *self(void *ctx) { return static_cast<Engine *>(ctx); }
    static void start(void *ctx)
    {
        Engine &e = *self(ctx);
        for (const Copy &c : e.given)
            std::memcpy(reinterpret_cast<void *>(c.to), rte_mem_iova2virt(c.from), c.bytes);
        e.copies += static_cast<unsigned>(e.given.size());
        e.done += e.given.size();
        e.given.clear();
    }
    static bool halt(void *ctx)
    {
        Engine &e = *self(ctx);
        e.halts++;
        e.done = 0;
        return !e.moving;
    }
    queue::Engine border()
    {
        return {.ctx = this,
                .room = [](void *) { return 1024u; },
                .copy =
                    [](void *ctx, uint64_t from, uint64_t to, uint32_t bytes) {
                        self(ctx)->given.push_back({from, to, bytes});
                    },
                .start = start,
                .completed = [](void *ctx) { return self(ctx)->done; },
                .failed = [](void *ctx) { return self(ctx)->dead; },
                .halt = halt,
                .capacity = 1024};
    }
};

class Paths : public testing::Test
{
protected:
    CopyPaths paths;
    Engine engines[CopyPaths::engines_max];
    alignas(4096) std::byte window[wire::page_bytes] = {};
    const queue::Ops &ops = *queue::select_ops(queue::Policy::plain);

    ~Paths() override { paths.drop(); }
    void add(unsigned count)
    {
        for (unsigned i = 0; i < count; i++)
            EXPECT_EQ(paths.add_engine(engines[i].border()), static_cast<int>(i));
        ASSERT_EQ(paths.make_staging("test", SOCKET_ID_ANY), 0);
    }
    const CopyChoice &choose(const CopyRequest &request, unsigned queues, bool reachable = true)
    {
        paths.choose(request, ops, window, reachable ? reinterpret_cast<uintptr_t>(window) : 0, 256,
                     queues);
        return paths.choice();
    }
    bool has(unsigned queue) const { return paths.setup(queue, nullptr).engine.copy != nullptr; }
};

constexpr CopyRequest from_600{.dma_min = 600};

TEST_F(Paths, EachQueuePairHasAnEngineOfItsOwnWhileTheyLast)
{
    add(2);
    EXPECT_EQ(choose(from_600, 3).dma_queues, 2u);
    const queue::EngineSetup first = paths.setup(0, nullptr), second = paths.setup(1, nullptr);
    EXPECT_EQ(first.engine.ctx, &engines[0]);
    EXPECT_EQ(second.engine.ctx, &engines[1]);
    EXPECT_FALSE(has(2));
    EXPECT_EQ(first.min_bytes, 600u);
    EXPECT_EQ(first.peer_block, reinterpret_cast<uintptr_t>(window));
    EXPECT_EQ(rte_mem_iova2virt(first.staging_iova), first.staging);
    EXPECT_EQ(rte_mem_iova2virt(second.staging_iova), second.staging);
    EXPECT_EQ(second.staging - first.staging, static_cast<std::ptrdiff_t>(queue::staging_bytes));
}

TEST_F(Paths, ThereAreAsManyAsTheChipHasChannels)
{
    add(CopyPaths::engines_max);
    EXPECT_EQ(paths.add_engine(engines[0].border()), -1);
}

TEST_F(Paths, WithoutAnEngineNothingIsMadeOrChosen)
{
    add(0);
    EXPECT_EQ(choose({}, 1).dma_min, 0u);
    EXPECT_STREQ(paths.choice().why, "there is no DMA channel");
    EXPECT_FALSE(has(0));
    EXPECT_FALSE(paths.failed(0));
}

TEST_F(Paths, AWindowOutOfReachIsAsNoEngine)
{
    add(1);
    EXPECT_EQ(choose(from_600, 1, false).dma_min, 0u);
    EXPECT_FALSE(has(0));
}

TEST_F(Paths, AnEngineThatMovesOrIsDeadIsPassedOver)
{
    add(3);
    engines[0].moving = true;
    engines[1].dead = true;
    EXPECT_EQ(choose(from_600, 4).dma_queues, 1u);
    EXPECT_FALSE(has(0));
    EXPECT_FALSE(has(1));
    EXPECT_TRUE(has(2));
    EXPECT_FALSE(paths.failed(1)); // it is not used
    engines[2].dead = true;
    EXPECT_TRUE(paths.failed(2));
    engines[0].moving = false;
    EXPECT_EQ(choose(from_600, 4).dma_queues, 1u);
    EXPECT_TRUE(has(0));
    EXPECT_FALSE(has(2));
}

TEST_F(Paths, MeasuresOnceAndInTheScratchOnly)
{
    add(1);
    std::memset(window, 0x5a, sizeof(window));
    const CopyChoice first = choose({}, 1);
    EXPECT_TRUE(first.measured);
    EXPECT_EQ(first.curve.count, 8u);
    EXPECT_GT(engines[0].copies, 0u);
    for (size_t i = 0; i < sizeof(window); i++) {
        if (i >= wire::scratch_offset && i < wire::scratch_offset + wire::scratch_bytes)
            continue;
        ASSERT_EQ(window[i], std::byte{0x5a}) << i;
    }
    EXPECT_EQ(window[wire::scratch_offset], std::byte{0}); // of the staging memory

    const unsigned copies = engines[0].copies;
    const CopyChoice second = choose({}, 1);
    EXPECT_EQ(engines[0].copies, copies);
    EXPECT_EQ(second.dma_min, first.dma_min);
}

TEST_F(Paths, AGivenCurveSparesTheMeasuring)
{
    add(1);
    CopyRequest request;
    ASSERT_EQ(read_curve("512:100:900/4096:800:400", &request.curve), nullptr);
    EXPECT_EQ(choose(request, 1).dma_min, 4096u);
    EXPECT_EQ(engines[0].copies, 0u);
    EXPECT_EQ(paths.setup(0, nullptr).min_bytes, 4096u);
    ASSERT_EQ(read_curve("512:100:900/4096:800:4000", &request.curve), nullptr);
    EXPECT_EQ(choose(request, 1).dma_min, 0u);
    EXPECT_FALSE(has(0));
}

} // namespace

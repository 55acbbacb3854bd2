// SPDX-License-Identifier: BSD-3-Clause
// How a curve of costs is measured, with an engine and stores that take the time of a clock.
#include "dma/copy_choice.hpp"
#include "dma/copy_measure.hpp"

#include <gtest/gtest.h>

using namespace plx;
using namespace plx::pmd;

namespace
{

/// Both ways of copying on a clock that only they move.
struct Bench {
    static inline uint64_t now = 0;
    static inline uint64_t per_copy_cpu, per_kib_cpu;
    uint64_t per_start = 5000, per_copy = 100, per_kib = 50;
    uint64_t given = 0, done = 0;
    bool fails = false, hangs = false;
    uint32_t capacity = 4096;
    unsigned looks = 0;

    static void cpu(void *, const void *, size_t n)
    {
        now += per_copy_cpu + per_kib_cpu * n / 1024;
    }
    static Bench *self(void *ctx) { return static_cast<Bench *>(ctx); }
    CopyCurve measure()
    {
        now = 0;
        alignas(64) static std::byte memory[2048];
        const queue::Engine engine{
            .ctx = this,
            .room = [](void *c) { return self(c)->capacity; },
            .copy =
                [](void *c, uint64_t, uint64_t, uint32_t bytes) {
                    self(c)->given++;
                    now += self(c)->per_copy + self(c)->per_kib * bytes / 1024;
                },
            .start =
                [](void *c) {
                    now += self(c)->per_start;
                    self(c)->done = self(c)->hangs ? 0 : self(c)->given;
                },
            .completed =
                [](void *c) {
                    self(c)->looks++;
                    now += 10;
                    return self(c)->done;
                },
            .failed = [](void *c) { return self(c)->fails; },
            .halt = [](void *) { return true; },
            .capacity = capacity,
        };
        return measure_copy({.cpu = cpu,
                             .engine = engine,
                             .to = memory,
                             .to_bus = 0,
                             .from = memory,
                             .from_iova = 0,
                             .piece = sizeof(memory),
                             .now_ns = [] { return now; }});
    }
    Bench()
    {
        per_copy_cpu = 5;
        per_kib_cpu = 500;
    }
};

TEST(Measure, FindsTheCosts)
{
    Bench bench;
    const CopyCurve curve = bench.measure();
    ASSERT_EQ(curve.count, 8u);
    EXPECT_EQ(curve.points[0].bytes, 512u);
    EXPECT_EQ(curve.points[7].bytes, 65536u);
    // 4096 bytes: two pieces, and two more for the header; an eighth of a start.
    EXPECT_EQ(curve.points[3].cpu_ns, 2u * 5 + 4 * 500);
    EXPECT_NEAR(curve.points[3].dma_ns, 4 * 100 + 4 * 50 + 5000 / 8, 10);
    EXPECT_EQ(crossover(curve), 2048u);
}

TEST(Measure, AnEngineThatIsSlowerNeverPays)
{
    Bench bench;
    bench.per_kib = 500;
    EXPECT_EQ(crossover(bench.measure()), 0u);
}

TEST(Measure, AnEngineThatFailsOrHangsGivesNoCurve)
{
    Bench failing;
    failing.hangs = failing.fails = true;
    EXPECT_EQ(failing.measure().count, 0u);
    EXPECT_EQ(failing.looks, 1u);
    Bench hanging;
    hanging.hangs = true;
    EXPECT_EQ(hanging.measure().count, 0u);
}

TEST(Measure, AShortRingMeasuresWhatItHolds)
{
    Bench bench;
    bench.capacity = 20; // a message of 32 KiB takes 18 copies
    const CopyCurve curve = bench.measure();
    ASSERT_EQ(curve.count, 7u);
    EXPECT_EQ(curve.points[6].bytes, 32768u);
}

} // namespace

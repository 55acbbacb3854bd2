// SPDX-License-Identifier: BSD-3-Clause
#include "device/footprint.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "queue/wire.hpp"

using namespace plx::pmd;

namespace
{

constexpr uint64_t kib = 1024, mib = kib << 10;
constexpr uint32_t element = 2048 + 128;
constexpr Machine roomy(uint64_t cache)
{
    return {.cache_bytes = cache, .window_bytes = 256 * mib};
}

TEST(Footprint, ARingIsLargerThanThePrivateCache)
{
    for (const uint64_t cache : {256 * kib, 512 * kib, 1 * mib, 1280 * kib, 2 * mib, 3 * mib}) {
        const Footprint f = choose_footprint(roomy(cache), 1, element);
        EXPECT_TRUE(std::has_single_bit(f.ring_lines));
        EXPECT_GT(uint64_t{f.ring_lines} * 64, cache) << cache;
        EXPECT_GT(f.buffers / 2 * element, cache) << "those in the receive-buffer ring";
    }
    EXPECT_EQ(choose_footprint(roomy(256 * kib), 1, element).ring_lines, 16384u);
    EXPECT_EQ(choose_footprint(roomy(1 * mib), 1, element).ring_by, SizedBy::cache);
    const Footprint most = choose_footprint(roomy(16 * mib), 1, element);
    EXPECT_EQ(most.ring_lines, plx::wire::ring_lines_max);
    EXPECT_EQ(most.ring_by, SizedBy::limit);
}

TEST(Footprint, AnUnknownCacheIsAssumed)
{
    const Footprint f = choose_footprint({}, 1, element);
    EXPECT_EQ(f.ring_lines, choose_footprint(roomy(cache_bytes_default), 1, element).ring_lines);
}

TEST(Footprint, ACacheThatIsAssumedSaysSo)
{
    EXPECT_EQ(private_cache(0).bytes, cache_bytes_default);
    EXPECT_STREQ(private_cache(0).mark, " (assumed)");
    EXPECT_EQ(private_cache(512 * kib).bytes, 512 * kib);
    EXPECT_STREQ(private_cache(512 * kib).mark, "");
}

TEST(Footprint, NonsenseOfTheSystemIsBounded)
{
    for (const uint64_t cache : {uint64_t{1}, uint64_t{1} << 31, UINT64_MAX}) {
        const Footprint f = choose_footprint(roomy(cache), 1, element);
        EXPECT_GE(f.ring_lines, ring_lines_least);
        EXPECT_LE(f.ring_lines, plx::wire::ring_lines_max);
        EXPECT_LE(uint64_t{f.buffers} * element, buffers_bytes_most);
    }
}

TEST(Footprint, ManyQueuePairsShareTheMemory)
{
    uint32_t before = UINT32_MAX;
    for (uint32_t queues = 1; queues <= 64; queues++) {
        const Footprint f = choose_footprint(roomy(1 * mib), queues, element);
        EXPECT_LE(f.ring_lines, before);
        EXPECT_GE(f.ring_lines, ring_lines_least);
        EXPECT_LE(uint64_t{f.ring_lines} * 64 * queues, rings_bytes_most);
        EXPECT_LE(uint64_t{f.buffers} * element, buffers_bytes_most);
        EXPECT_GE(f.buffers, buffers_least);
        EXPECT_EQ(f.ring_by, queues <= 8 ? SizedBy::cache : SizedBy::memory) << queues;
        before = f.ring_lines;
    }
    EXPECT_EQ(choose_footprint(roomy(1 * mib), 1, element).buffers_by, SizedBy::limit);
    EXPECT_EQ(choose_footprint(roomy(1 * mib), 4, element).buffers_by, SizedBy::cache);
    EXPECT_EQ(choose_footprint(roomy(1 * mib), 64, element).buffers_by, SizedBy::memory);
}

TEST(Footprint, TheBlockFitsTheWindow)
{
    for (uint64_t window = 16 * mib; window <= 512 * mib; window *= 2) {
        for (const uint32_t queues : {1u, 2u, 7u, 16u}) {
            const Footprint f =
                choose_footprint({.cache_bytes = mib, .window_bytes = window}, queues, element);
            if (f.ring_lines > ring_lines_least && f.buffers > buffers_least) {
                EXPECT_LE(uint64_t{f.ring_lines} * 64 * queues + uint64_t{f.buffers} * element,
                          window);
            }
        }
    }
    const Footprint f =
        choose_footprint({.cache_bytes = mib, .window_bytes = 12 * mib}, 1, element);
    EXPECT_EQ(f.ring_by, SizedBy::window);
    EXPECT_LT(f.ring_lines, 65536u);
    EXPECT_EQ(choose_footprint({.cache_bytes = mib, .window_bytes = mib}, 1, element).ring_lines,
              ring_lines_least);
}

TEST(Footprint, GivenBuffersLeaveTheRingTheRest)
{
    const Machine machine{.cache_bytes = mib, .window_bytes = 256 * mib};
    const Footprint some = choose_footprint(machine, 1, element, 115000);
    EXPECT_EQ(some.buffers, 115000u);
    EXPECT_EQ(some.buffers_by, SizedBy::given);
    EXPECT_EQ(some.ring_by, SizedBy::window);
    EXPECT_EQ(some.ring_lines, 16384u);
    const Footprint little = choose_footprint(machine, 1, element, 116000);
    EXPECT_EQ(little.ring_by, SizedBy::limit);
    EXPECT_EQ(little.ring_lines, ring_lines_least);
}

TEST(Footprint, ASmallerBlockIsHalvedBetweenRingsAndBuffers)
{
    const Footprint f = choose_footprint(
        {.cache_bytes = mib, .window_bytes = 256 * mib, .memory_bytes = 2 * mib}, 1, element);
    EXPECT_EQ(f.ring_lines, 16384u);
    EXPECT_EQ(f.ring_by, SizedBy::memory);
}

/// A folder like /sys/devices/system/cpu.
class System : public testing::Test
{
protected:
    System()
    {
        char name[] = "/tmp/footprint-XXXXXX";
        folder_ = mkdtemp(name);
    }
    ~System() override { std::filesystem::remove_all(folder_); }
    void cache(unsigned cpu, unsigned index, const char *level, const char *type, const char *size)
    {
        const std::filesystem::path at = std::filesystem::path(folder_) /
                                         ("cpu" + std::to_string(cpu)) / "cache" /
                                         ("index" + std::to_string(index));
        std::filesystem::create_directories(at);
        std::ofstream(at / "level") << level << '\n';
        std::ofstream(at / "type") << type << '\n';
        std::ofstream(at / "size") << size << '\n';
    }
    uint64_t read() const
    {
        const unsigned cpus[] = {0, 1};
        return read_private_cache(folder_.c_str(), cpus);
    }

private:
    std::string folder_;
};

TEST_F(System, TheLargestSecondLevelIsTaken)
{
    EXPECT_EQ(read(), 0u) << "nothing is reported";
    cache(0, 0, "1", "Data", "32K");
    cache(0, 1, "1", "Instruction", "32K");
    EXPECT_EQ(read(), 0u) << "no second level";
    cache(0, 2, "2", "Unified", "1024K");
    cache(0, 3, "3", "Unified", "32768K");
    EXPECT_EQ(read(), mib);
    cache(1, 0, "2", "Instruction", "8M");
    cache(1, 1, "2", "Data", "2M");
    EXPECT_EQ(read(), 2 * mib);
}

TEST_F(System, WhatIsNoSizeIsNotTaken)
{
    for (const char *size : {"", "-1K", "K", "99999999999999999999K"}) {
        cache(0, 0, "2", "Unified", size);
        EXPECT_EQ(read(), 0u) << size;
    }
}

} // namespace

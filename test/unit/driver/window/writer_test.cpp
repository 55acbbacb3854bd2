// SPDX-License-Identifier: BSD-3-Clause
#include "window/writer.hpp"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "queue/wire.hpp"

using namespace plx;
using namespace plx::pmd;
using queue::Stores;

namespace
{

// ---- a CPU whose stores cost what a test says

struct Cpu {
    uint64_t now, calls[2], bytes[2], longest;
    double cycles_a_line[2];
};
Cpu cpu;

template <int way>
void fake_copy(void *, const void *, size_t n)
{
    cpu.calls[way]++;
    cpu.bytes[way] += n;
    cpu.longest = std::max<uint64_t>(cpu.longest, n);
    cpu.now +=
        static_cast<uint64_t>(cpu.cycles_a_line[way] * static_cast<double>(n / wire::line_bytes));
}

const queue::Ops fake_ops{.name = "fake",
                          .tx_burst = nullptr,
                          .rx_burst = nullptr,
                          .copy = fake_copy<0>,
                          .copy_past = fake_copy<1>};

class Writers : public testing::Test
{
protected:
    Writers() { cpu = {.now = 1, .calls = {}, .bytes = {}, .longest = 0, .cycles_a_line = {5, 5}}; }

    WriterSetup setup(bool fixed = false)
    {
        return {.ops = &fake_ops, .learned = &learned, .fixed = fixed, .cycles = [] {
                    return cpu.now;
                }};
    }
    void write(Writer &writer, size_t bytes, int times)
    {
        for (int i = 0; i < times; i++)
            writer.store(nullptr, nullptr, bytes);
    }

    LearnedStores learned = Stores::plain;
};

TEST_F(Writers, TakeTheCheaperWayAndTellOthers)
{
    cpu.cycles_a_line[0] = 56;
    Writer writer(setup());
    write(writer, 4096, 2000);
    EXPECT_EQ(learned, Stores::non_temporal);
    EXPECT_LT(cpu.calls[0], 100u);
    Writer other(setup());
    const uint64_t before = cpu.calls[0];
    write(other, 4096, 4);
    EXPECT_EQ(cpu.calls[0], before) << "it begins with what the first one found";
}

TEST_F(Writers, LeaveWhatIsFixed)
{
    cpu.cycles_a_line[0] = 56;
    Writer writer(setup(true));
    write(writer, 65536, 1000);
    EXPECT_EQ(cpu.calls[1], 0u);
    EXPECT_EQ(learned, Stores::plain);
}

TEST_F(Writers, CutWhatIsLong)
{
    Writer writer(setup());
    write(writer, (16u << 20) + 100, 1);
    EXPECT_LE(cpu.longest, 65536u);
    EXPECT_EQ(cpu.bytes[0] + cpu.bytes[1], (16u << 20) + 100);
    EXPECT_LT(cpu.bytes[1], 2u << 20);
}

// ---- real stores, both ways

TEST(WriterStores, EachByteWhereItBelongs)
{
    constexpr size_t room = 70000;
    alignas(64) static std::byte target[room];
    std::vector<std::byte> source(room), expected(room);
    for (size_t i = 0; i < room; i++)
        source[i] = static_cast<std::byte>(i * 7 + i / 251);
    for (const Stores way : {Stores::plain, Stores::non_temporal}) {
        LearnedStores learned = way;
        Writer writer({.ops = queue::select_ops(queue::Policy::plain),
                       .learned = &learned,
                       .fixed = true,
                       .cycles = [] { return uint64_t{0}; }});
        for (const size_t bytes : {0u, 1u, 63u, 64u, 65u, 130u, 4096u, 4159u, 65536u, 65600u})
            for (const size_t at : {64u, 65u, 72u, 96u, 127u}) {
                std::fill(std::begin(target), std::end(target), std::byte{0xee});
                std::fill(expected.begin(), expected.end(), std::byte{0xee});
                std::copy_n(source.begin() + 3, bytes, expected.begin() + static_cast<long>(at));
                writer.store(target + at, source.data() + 3, bytes);
                ASSERT_TRUE(std::equal(expected.begin(), expected.end(), target))
                    << bytes << " bytes at " << at;
            }
    }
}

} // namespace

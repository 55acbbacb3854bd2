// SPDX-License-Identifier: BSD-3-Clause
// Messages of every length arrive whole, in order, with their metadata.
#include "pair.hpp"

#include <array>
#include <cerrno>

using namespace contract;

namespace
{

class Messages : public Pair
{
};

TEST_P(Messages, LengthsAroundEveryBorder)
{
    bring_up();
    // One line; two lines; the inline limit of 256; one buffer of 2048; several buffers.
    both_ways(
        stream(0, 7, 2300, {0,    1,    47,   48,   49,   103,  104,  105,  160,  255,  256, 257,
                            1023, 1024, 2047, 2048, 2049, 4095, 4096, 4097, 6144, 6145, 64}));
}

TEST_P(Messages, LongestInline)
{
    HostSetup setup = usual();
    setup.config.inline_max = 1024;
    bring_up(setup, setup);
    both_ways(stream(0, 8, 2000, {1023, 1024, 1025, 0, 944, 945, 48}));
    EXPECT_GT(near().xstat("tx_inline_messages"), 0u);
    EXPECT_GT(near().xstat("tx_long_messages"), 0u);
    EXPECT_EQ(near().xstat("tx_inline_messages") + near().xstat("tx_long_messages"), 2000u);
}

TEST_P(Messages, LongestOfAll)
{
    HostSetup setup = usual();
    setup.config.queue_buffers = 252;
    bring_up(setup, setup);
    const uint32_t longest = near().link().peer_max_message;
    ASSERT_EQ(longest, (252u - 13) * 2048);
    both_ways(stream(0, 9, 24, {longest, longest - 1, 3}));
}

TEST_P(Messages, ChainsAreGathered)
{
    bring_up();
    Stream s = stream(0, 10, 300, {1, 48, 100, 256, 257, 600});
    s.burst = 3; // no more mbufs at a time than the pool has
    for (const uint32_t segment : {1u, 7u, 64u}) {
        s.segment = segment;
        s.seed += 1;
        both_ways(s);
    }
    s = stream(0, 20, 600, {1, 1000, 1001, 2048, 2049, 5000});
    for (const uint32_t segment : {64u, 1000u, 2048u}) {
        s.segment = segment;
        s.seed += 1;
        both_ways(s);
    }
}

TEST_P(Messages, SmallBuffersMakeChains)
{
    HostSetup setup = usual();
    setup.config = {.buffers = 1024, .buf_bytes = 64, .queue_buffers = 504, .inline_max = 48};
    bring_up(setup, setup);
    both_ways(stream(0, 11, 3000, {49, 63, 64, 65, 127, 128, 129, 640, 641, 20000}));
}

TEST_P(Messages, BurstsOfEverySize)
{
    bring_up();
    Stream s = stream(0, 12, 500, {8, 300, 60});
    for (const uint32_t burst : {1u, 2u, 3u, 33u, 64u}) {
        s.burst = burst;
        s.seed += 1;
        both_ways(s);
    }
}

TEST_P(Messages, QueuesDoNotMix)
{
    HostSetup setup = usual();
    setup.config.queues = 4;
    setup.config.ring_lines = 256;
    setup.pool_mbufs = 1023;
    bring_up(setup, setup);
    const auto each = [](uint32_t seed) {
        return std::array{
            stream(0, seed, 4000, {8, 48, 49}), stream(1, seed + 1, 1000, {256, 257, 3000}),
            stream(2, seed + 2, 3000, {1, 2, 3, 4, 500}), stream(3, seed + 3, 500, {0, 4096})};
    };
    const auto out = each(100);
    const auto in = each(200);
    exchange(traffic({out[0], out[1], out[2], out[3]}, {in[0], in[1], in[2], in[3]}),
             traffic({in[0], in[1], in[2], in[3]}, {out[0], out[1], out[2], out[3]}));
}

TEST_P(Messages, EachHalfOnAThreadOfItsOwn)
{
    HostSetup setup = usual();
    setup.config.queues = 2;
    setup.pool_mbufs = 2047;
    bring_up(setup, setup);
    const Stream first = stream(0, 300, 4000, {8, 64, 256, 257});
    const Stream second = stream(1, 301, 2000, {2000, 5});
    Command command = traffic({first, second}, {first, second});
    command.threads = true;
    exchange(command, command);
}

TEST_P(Messages, DifferentQueueCountsUseTheSmaller)
{
    HostSetup wide = usual();
    wide.config.queues = 3;
    bring_up(wide, usual());
    EXPECT_EQ(near().link().queues, 1u);
    EXPECT_EQ(far().link().queues, 1u);
    both_ways(stream(0, 20, 500, {8, 400}));
    rte_mbuf *none = nullptr;
    EXPECT_EQ(rte_pmd_plx_ntb_rx_burst(id(), 2, &none, nullptr, 1), 0);
    EXPECT_EQ(rte_pmd_plx_ntb_tx_burst(id(), 2, &none, nullptr, 1), -ENOTCONN);
}

TEST_P(Messages, OtherSizesOnEachSide)
{
    HostSetup small = usual();
    small.config = {.ring_lines = 64, .buffers = 256, .buf_bytes = 512, .queue_buffers = 56};
    HostSetup large = usual();
    large.config = {.ring_lines = 4096, .buf_bytes = 4096, .queue_buffers = 504, .inline_max = 512};
    bring_up(small, large);
    EXPECT_EQ(far().link().peer_max_message, (56u - 13) * 512);
    both_ways(stream(0, 21, 3000, {8, 256, 512, 513, 1024, 22000, 22016}));
}

TEST_P(Messages, SmallestRingTakesTheLongestInline)
{
    HostSetup setup = usual();
    setup.config = {.ring_lines = 64, .inline_max = 1024};
    bring_up(setup, setup);
    both_ways(stream(0, 22, 5000, {1024, 8, 1000, 48, 49}));
}

TEST_P(Messages, MemoryPolicyAndCacheHintDoNotMatter)
{
    bring_up({.devargs = patient + ",mem=wc,cache_hint=none"}, {.devargs = patient + ",mem=plain"});
    both_ways(stream(0, 23, 3000, {8, 48, 49, 256, 257, 3000}));
}

CONTRACT_EVERYWHERE(Messages);

} // namespace

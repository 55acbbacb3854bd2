// SPDX-License-Identifier: BSD-3-Clause
// rx=stable: delivered mbufs are private, and no message is lost for want of memory to copy it.
#include "pair.hpp"

#include <rte_mbuf.h>
#include <rte_rawdev.h>

#include <poll.h>

using namespace contract;

namespace
{

class Stable : public Pair
{
protected:
    static HostSetup stable(const std::string &more = "")
    {
        return {.devargs = patient + ",rx=stable" + more};
    }
    uint64_t received() { return rte_rawdev_xstats_by_name_get(id(), "rx_messages", nullptr); }
    uint64_t nombuf() { return rte_rawdev_xstats_by_name_get(id(), "rx_nombuf", nullptr); }
    rte_mempool *window_pool()
    {
        rte_pmd_plx_ntb_info mine{};
        mine.size = sizeof(mine);
        rte_rawdev_info info{};
        info.dev_private = &mine;
        EXPECT_EQ(rte_rawdev_info_get(id(), &info, sizeof(mine)), 0);
        return mine.buffer_pool;
    }
};

TEST_P(Stable, LengthsAroundTheBounds)
{
    bring_up(stable(), stable());
    both_ways(
        stream(0, 7, 2400, {0, 48, 256, 257, 2047, 2048, 2049, 4096, 4097, 6144, 6145, 64, 20000}));
    EXPECT_EQ(near().xstat("link_losses"), 0u);
    EXPECT_EQ(near().xstat("rx_nombuf"), 0u);
}

TEST_P(Stable, SmallBuffersAndManyQueues)
{
    HostSetup setup = stable();
    setup.config = {
        .queues = 3, .buffers = 1024, .buf_bytes = 512, .queue_buffers = 280, .inline_max = 48};
    setup.pool_mbufs = 1023;
    bring_up(setup, setup);
    const Stream a = stream(0, 31, 300, {3000, 8, 700}), b = stream(1, 32, 300, {600, 30000}),
                 c = stream(2, 33, 300, {2048, 700, 1});
    const Command all = traffic({a, b, c}, {a, b, c});
    exchange(all, all);
    exchange(all, all);
}

TEST_P(Stable, EachHalfOnAThreadOfItsOwn)
{
    bring_up(stable(), stable());
    const Stream s = stream(0, 300, 3000, {8, 64, 700, 257, 4000});
    Command command = traffic({s}, {s});
    command.threads = true;
    exchange(command, command);
}

TEST_P(Stable, NothingDeliveredLiesInExposedMemory)
{
    bring_up(stable(), usual());
    const Stream s = stream(0, 9, 200, {8, 700, 5000});
    Command keep = traffic({}, {s});
    keep.keep = true;
    exchange(keep, traffic({s}, {}));
    ASSERT_EQ(local_device().kept().size(), 200u);
    for (const rte_mbuf *m : local_device().kept()) {
        EXPECT_EQ(m->pkt_len == 5000 ? 3 : 1, m->nb_segs);
        for (; m != nullptr; m = m->next) {
            EXPECT_NE(m->pool, window_pool());
            EXPECT_EQ(m->ol_flags, 0u);
            EXPECT_EQ(m->data_off, RTE_PKTMBUF_HEADROOM);
        }
    }
}

/// The application holds all that there is: the rest waits in the ring, and is not lost.
TEST_P(Stable, AnEmptyPoolIsBackPressure)
{
    HostSetup setup = stable();
    setup.config = {.buffers = 256, .buf_bytes = 512, .queue_buffers = 112, .max_message = 4096};
    HostSetup sender = usual();
    sender.config.inline_max = 256; // all by receive buffers
    bring_up(setup, sender);
    const Stream s = stream(0, 11, 600, {700, 400, 3000});
    Command hold = traffic({}, {s});
    hold.keep = true;
    hold.in[0].count = 75; // 225 buffers of 256: 31 are left
    far().begin(traffic({s}, {}));
    const Answer held_all = near().ask(hold);
    ASSERT_EQ(held_all.rc, 0) << held_all.text;
    rte_mbuf *more[64];
    unsigned held = 0;
    for (int idle = 0; idle < 10'000 && held < 64;) {
        const int got = rte_pmd_plx_ntb_rx_burst(id(), 0, more + held, nullptr, 1);
        ASSERT_GE(got, 0);
        held += static_cast<unsigned>(got);
        idle = nombuf() > 0 && got == 0 ? idle + 1 : 0;
    }
    EXPECT_LT(held, 64u);
    EXPECT_GT(near().xstat("rx_nombuf"), 0u);
    rte_pktmbuf_free_bulk(more, held);
    near().ask(Op::release);
    Command rest = traffic({}, {s});
    rest.in[0].first = 75 + held;
    rest.in[0].count = 600 - 75 - held;
    const Answer here = near().ask(rest);
    EXPECT_EQ(here.rc, 0) << here.text;
    const Answer there = far().end();
    EXPECT_EQ(there.rc, 0) << there.text;
}

TEST_P(Stable, StartsAgainWithOtherSizes)
{
    HostSetup setup = stable();
    setup.config = {.buffers = 256, .buf_bytes = 512, .queue_buffers = 28};
    bring_up(setup, usual());
    both_ways(stream(0, 20, 200, {8, 700, 3000}));
    setup.config = {.buffers = 1024, .buf_bytes = 1024, .queue_buffers = 504};
    near().stop();
    ASSERT_EQ(near().configure(setup.config), 0);
    ASSERT_EQ(near().ask(Op::start).rc, 0); // with the queues as they are
    await_connected(2);
    both_ways(stream(0, 21, 2000, {8, 700, 3000, 30000}));
}

TEST_P(Stable, ALossTakesNothingWithIt)
{
    bring_up(stable(), stable());
    const Stream s = stream(0, 30, 1u << 30, {8, 300, 3000});
    Command command = traffic({s}, {s});
    command.until = test::Until::lost;
    far().begin(command);
    near().begin(command);
    for (int i = 0; i < 20'000 && received() < 100; ++i)
        poll(nullptr, 0, 1);
    ASSERT_EQ(rte_pmd_plx_ntb_inject(id(), RTE_PMD_PLX_NTB_FAULT_LINK_DOWN, 1), 0);
    EXPECT_EQ(near().end().rc, 0);
    EXPECT_EQ(far().end().rc, 0);
    ASSERT_EQ(rte_pmd_plx_ntb_inject(id(), RTE_PMD_PLX_NTB_FAULT_LINK_DOWN, 0), 0);
    await_connected(2);
    both_ways(stream(0, 32, 300, {8, 300, 3000}));
}

CONTRACT_EVERYWHERE(Stable);

} // namespace

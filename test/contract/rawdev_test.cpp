// SPDX-License-Identifier: BSD-3-Clause
// The rawdev's other calls: attributes, statistics, information, dump, self-test, configuration.
#include "pair.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <rte_dev.h>
#include <rte_lcore.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_rawdev.h>

using namespace contract;

namespace
{

class Rawdev : public Pair
{
protected:
    int64_t configure(rte_pmd_plx_ntb_config config) { return near().configure(config); }
    uint64_t attribute(const char *name)
    {
        uint64_t value = ~uint64_t{0};
        EXPECT_EQ(rte_rawdev_get_attr(id(), name, &value), 0) << name;
        return value;
    }
};

TEST_P(Rawdev, AttributesUnderTheNamesOfRawNtb)
{
    HostSetup setup = usual();
    setup.config = {.queues = 2, .ring_lines = 256};
    bring_up(setup, setup);
    const uint64_t topo = attribute("topo");
    if (!one_chip()) {
        EXPECT_EQ(topo, uint64_t{RTE_PMD_PLX_NTB_TOPO_B2B});
    } else {
        EXPECT_EQ(topo, uint64_t{near_beyond_link() ? RTE_PMD_PLX_NTB_TOPO_RP_LINK
                                                    : RTE_PMD_PLX_NTB_TOPO_RP_VIRTUAL});
    }
    EXPECT_EQ(attribute("link_status"), 1u);
    EXPECT_GE(attribute("speed"), 1u);
    EXPECT_GE(attribute("width"), 1u);
    EXPECT_EQ(attribute("queue_num"), 2u);
    EXPECT_EQ(attribute("queue_size"), 256u);
    EXPECT_EQ(attribute("queue_size_by"), 0u) << "given";
    EXPECT_NE(attribute("buffers_by"), 0u) << "not given";
    EXPECT_LE(attribute("private_cache"), uint64_t{1} << 30);
    EXPECT_GE(attribute("mw_count"), 1u);
    EXPECT_EQ(attribute("db_count"), 16u);
    EXPECT_GE(attribute("spad_count"), 4u);
    EXPECT_EQ(attribute("connected"), 1u);
    EXPECT_EQ(attribute("peer_epoch"), near().link().peer_epoch);
    uint64_t value = 0;
    EXPECT_EQ(rte_rawdev_get_attr(id(), "no_such", &value), -EINVAL);
    EXPECT_EQ(rte_rawdev_get_attr(id(), "spad_user_99", &value), -EINVAL);
    EXPECT_EQ(rte_rawdev_set_attr(id(), "no_such", 1), -EINVAL);
    EXPECT_EQ(rte_rawdev_set_attr(id(), "queue_num", 4), -EBUSY) << "while it runs";
    EXPECT_EQ(rte_rawdev_set_attr(id(), "spad_user_0", 0x12345678), 0);
}

TEST_P(Rawdev, AttributesSetWhatConfigureLeavesOpen)
{
    ASSERT_EQ(near().attach(cable(), patient), 0);
    EXPECT_EQ(rte_rawdev_set_attr(id(), "queue_num", 3), 0);
    EXPECT_EQ(rte_rawdev_set_attr(id(), "queue_size", 128), 0);
    EXPECT_EQ(rte_rawdev_set_attr(id(), "queue_size", 100), -EINVAL);
    EXPECT_EQ(rte_rawdev_set_attr(id(), "queue_num", 0), -EINVAL);
    EXPECT_EQ(rte_rawdev_set_attr(id(), "queue_num", uint64_t{1} << 40), -EINVAL);
    ASSERT_EQ(configure({}), 0);
    EXPECT_EQ(rte_rawdev_queue_count(id()), 3);
    EXPECT_EQ(attribute("queue_size"), 128u);
}

TEST_P(Rawdev, TheCopyModeIsChosenAnewAtEachStart)
{
    bring_up(usual(), usual());
    EXPECT_EQ(rte_rawdev_set_attr(id(), "copy_mode", 1), -EBUSY) << "while it runs";
    for (const uint64_t mode : {1u, 2u, 0u, 1u}) {
        rte_rawdev_stop(id());
        EXPECT_EQ(rte_rawdev_set_attr(id(), "copy_mode", 3), -EINVAL);
        ASSERT_EQ(rte_rawdev_set_attr(id(), "copy_mode", mode), 0);
        EXPECT_EQ(attribute("copy_mode"), mode);
        if (mode == 2 && near_beyond_link()) { // the engine belongs to the other side
            EXPECT_EQ(rte_rawdev_start(id()), -ENOTSUP);
            continue;
        }
        ASSERT_EQ(rte_rawdev_start(id()), 0);
        ASSERT_TRUE(near().await_state(RTE_PMD_PLX_NTB_CONNECTED));
        if (mode != 0) {
            EXPECT_EQ(attribute("copy_engine"), mode - 1);
        }
    }
}

TEST_P(Rawdev, StatisticsByNumberAndByNameAddUp)
{
    HostSetup setup = usual();
    setup.config.queues = 2;
    bring_up(setup, setup);
    const Stream a = stream(0, 1, 300, {8, 500});
    const Stream b = stream(1, 2, 200, {100});
    exchange(traffic({a, b}, {}), traffic({}, {a, b}));

    const int count = rte_rawdev_xstats_names_get(id(), nullptr, 0);
    ASSERT_GT(count, 0);
    const auto n = static_cast<unsigned>(count);
    std::vector<rte_rawdev_xstats_name> names(n);
    ASSERT_EQ(rte_rawdev_xstats_names_get(id(), names.data(), n), count);
    std::vector<unsigned> ids(n);
    std::vector<uint64_t> values(n);
    for (unsigned i = 0; i < n; ++i)
        ids[i] = i;
    ASSERT_EQ(rte_rawdev_xstats_get(id(), ids.data(), values.data(), n), count);
    std::vector<std::string> seen;
    for (unsigned i = 0; i < n; ++i) {
        unsigned found = ~0u;
        EXPECT_EQ(rte_rawdev_xstats_by_name_get(id(), names[i].name, &found), values[i]);
        EXPECT_EQ(found, i) << names[i].name;
        seen.emplace_back(names[i].name);
    }
    std::sort(seen.begin(), seen.end());
    EXPECT_EQ(std::adjacent_find(seen.begin(), seen.end()), seen.end()) << "no name twice";

    EXPECT_EQ(near().xstat("tx_messages"), 500u);
    EXPECT_EQ(near().xstat("tx_q0_messages"), 300u);
    EXPECT_EQ(near().xstat("tx_q1_messages"), 200u);
    EXPECT_EQ(near().xstat("tx_bytes"), 150u * 508 + 200u * 100);
    EXPECT_EQ(far().xstat("rx_bytes"), near().xstat("tx_bytes"));
    EXPECT_EQ(far().xstat("rx_inline_messages") + far().xstat("rx_long_messages"), 500u);
    EXPECT_EQ(near().xstat("no_such"), UINT64_MAX);
    EXPECT_EQ(rte_rawdev_xstats_reset(id(), nullptr, 0), 0);
    EXPECT_EQ(near().xstat("tx_messages"), 0u);
    EXPECT_EQ(near().xstat("link_connects"), 0u);
    one_way(stream(0, 3, 7, {8}));
    EXPECT_EQ(near().xstat("tx_messages"), 7u);
}

TEST_P(Rawdev, InformationBeforeAndAfterTheStart)
{
    ASSERT_EQ(near().attach(cable(), patient), 0);
    ASSERT_EQ(configure({.queues = 3, .buf_bytes = 1024}), 0);
    rte_pmd_plx_ntb_info mine{};
    mine.size = sizeof(mine);
    rte_rawdev_info info{};
    info.dev_private = &mine;
    ASSERT_EQ(rte_rawdev_info_get(id(), &info, sizeof(mine)), 0);
    EXPECT_STREQ(info.driver_name, "raw_plx_ntb");
    EXPECT_STREQ(mine.platform, "twin");
    EXPECT_EQ(mine.queues, 3u);
    EXPECT_EQ(mine.buf_bytes, 1024u);
    EXPECT_EQ(mine.block_bytes, 0u);
    EXPECT_EQ(mine.buffer_pool, nullptr);
    ASSERT_EQ(near().ask(Op::queue_setup).rc, 0);
    ASSERT_EQ(near().ask(Op::start).rc, 0);
    mine.size = sizeof(mine);
    ASSERT_EQ(rte_rawdev_info_get(id(), &info, sizeof(mine)), 0);
    EXPECT_GE(mine.block_bytes, uint64_t{mine.buffers} * mine.buf_bytes);
    EXPECT_NE(mine.buffer_pool, nullptr);
    EXPECT_EQ(rte_rawdev_info_get(id(), &info, sizeof(mine) - 1), -EINVAL);
}

TEST_P(Rawdev, DumpAndSelfTestAtAnyTime)
{
    bring_up();
    char *text = nullptr;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);
    ASSERT_NE(file, nullptr);
    EXPECT_EQ(rte_rawdev_dump(id(), file), 0);
    std::fclose(file);
    const std::string dump(text, bytes);
    std::free(text);
    EXPECT_NE(dump.find(local_device().name()), std::string::npos);
    EXPECT_NE(dump.find("queue 0: open"), std::string::npos) << dump;
    const char *const names[] = {"given", "cache", "limit", "memory", "window"};
    const std::string sized = std::string("ring sized by ") + names[attribute("queue_size_by")] +
                              ", buffers by " + names[attribute("buffers_by")] + "; private cache";
    EXPECT_NE(dump.find(sized), std::string::npos) << "not: " << sized << "\n" << dump;
    EXPECT_NE(dump.find("E6: "), std::string::npos) << "errata of the chip";
    EXPECT_EQ(rte_rawdev_selftest(id()), 0);
    both_ways(stream(0, 1, 100, {8, 500}));
}

TEST_P(Rawdev, AClosedDeviceRefusesWhatNeedsItsChip)
{
    bring_up();
    near().stop();
    ASSERT_EQ(near().ask(Op::close).rc, 0);
    EXPECT_EQ(near().ask(Op::close).rc, 0) << "a second time";
    uint64_t value = 0;
    EXPECT_EQ(rte_rawdev_get_attr(id(), "spad_user_0", &value), -ENODEV);
    EXPECT_EQ(rte_rawdev_set_attr(id(), "spad_user_0", 1), -ENODEV);
    FILE *file = std::fopen("/dev/null", "w");
    ASSERT_NE(file, nullptr);
    EXPECT_EQ(rte_rawdev_dump(id(), file), -ENODEV);
    std::fclose(file);
    EXPECT_EQ(rte_rawdev_selftest(id()), -ENODEV);
    EXPECT_EQ(configure({}), -ENODEV);
    EXPECT_EQ(rte_rawdev_start(id()), -EINVAL);
    EXPECT_EQ(near().link().state, RTE_PMD_PLX_NTB_STOPPED);
    rte_mbuf *mbuf = nullptr;
    EXPECT_EQ(rte_pmd_plx_ntb_rx_burst(id(), 0, &mbuf, nullptr, 1), -ENODEV);
}

TEST_P(Rawdev, ImpossibleConfigurationsAreRefused)
{
    ASSERT_EQ(near().attach(cable(), patient), 0);
    const rte_pmd_plx_ntb_config bad[] = {{.queues = 65},
                                          {.ring_lines = 1000},
                                          {.ring_lines = 32},
                                          {.ring_lines = 131072},
                                          {.buffers = 1},
                                          {.buf_bytes = 100},
                                          {.buf_bytes = 1 << 20},
                                          {.queue_buffers = 1},
                                          {.inline_max = 47},
                                          {.inline_max = 1025},
                                          {.max_message = 1u << 24},
                                          {.queues = 64, .buffers = 64}};
    for (const rte_pmd_plx_ntb_config &config : bad)
        EXPECT_EQ(configure(config), -EINVAL);
    rte_pmd_plx_ntb_config short_one{.size = 8};
    rte_rawdev_info info{};
    info.dev_private = &short_one;
    EXPECT_EQ(rte_rawdev_configure(id(), &info, sizeof(short_one)), -EINVAL);
    EXPECT_EQ(rte_rawdev_configure(id(), &info, 8), -EINVAL);
    EXPECT_EQ(rte_rawdev_start(id()), -EINVAL) << "not configured yet";
    EXPECT_EQ(configure({}), 0);
    EXPECT_EQ(rte_rawdev_start(id()), -EINVAL) << "no queue set up yet";
}

size_t allocated()
{
    rte_malloc_socket_stats stats{};
    EXPECT_EQ(rte_malloc_get_socket_stats(static_cast<int>(rte_socket_id()), &stats), 0);
    return stats.heap_allocsz_bytes;
}

/// More than EAL has in this process: for the headers of receive buffers, and for what rx=stable
/// copies into.
TEST_P(Rawdev, AStartWithoutMemoryLeavesNothingAndCanBeRepeated)
{
    const size_t before = allocated();
    const rte_pmd_plx_ntb_config too_much[] = {{.buffers = 1u << 20, .buf_bytes = 64},
                                               {.buffers = 100'000}};
    for (const rte_pmd_plx_ntb_config &config : too_much) {
        ASSERT_EQ(near().attach(cable(), patient + ",rx=stable"), 0);
        EXPECT_EQ(near().restart({.config = config}), -ENOMEM);
        EXPECT_EQ(near().link().state, RTE_PMD_PLX_NTB_STOPPED);
        ASSERT_EQ(near().restart({.config = {.buffers = 256}}), 0) << "as much as there is";
        ASSERT_EQ(far().bring_up(cable(), usual()), 0);
        await_connected(1);
        both_ways(stream(0, 1, 100, {8, 500}));
        for (test::Host *host : {&near(), &far()})
            ASSERT_EQ(host->ask(Op::detach).rc, 0);
    }
    EXPECT_EQ(allocated(), before);
}

TEST_P(Rawdev, IsFoundByItsName)
{
    ASSERT_EQ(near().attach(cable(), patient), 0);
    rte_rawdev_info info{};
    ASSERT_EQ(rte_rawdev_info_get(id(), &info, 0), 0);
    EXPECT_EQ(rte_pmd_plx_ntb_find(rte_dev_name(info.device)), id());
    EXPECT_EQ(rte_pmd_plx_ntb_find("no_such_device"), -ENODEV);
    EXPECT_EQ(rte_pmd_plx_ntb_find(nullptr), -EINVAL);
}

TEST_P(Rawdev, QueuesAreSetUpWithinBounds)
{
    ASSERT_EQ(near().attach(cable(), patient), 0);
    ASSERT_EQ(configure({.queues = 2}), 0);
    rte_pmd_plx_ntb_queue_config queue{};
    EXPECT_EQ(rte_rawdev_queue_conf_get(id(), 0, &queue, sizeof(queue)), 0);
    EXPECT_EQ(queue.pool, nullptr);
    EXPECT_EQ(rte_rawdev_queue_setup(id(), 2, &queue, sizeof(queue)), -EINVAL);
    EXPECT_EQ(rte_rawdev_queue_setup(id(), 0, &queue, sizeof(queue) - 1), -EINVAL);
    rte_mempool *tiny = rte_pktmbuf_pool_create("contract_tiny", 63, 0, 0,
                                                RTE_PKTMBUF_HEADROOM + 64, SOCKET_ID_ANY);
    ASSERT_NE(tiny, nullptr);
    queue.pool = tiny;
    const int set_up = rte_rawdev_queue_setup(id(), 0, &queue, sizeof(queue));
    EXPECT_EQ(rte_rawdev_queue_setup(id(), 1, nullptr, 0), 0);
    EXPECT_TRUE(set_up != 0 || rte_rawdev_start(id()) == -EINVAL) << "its mbufs are too small";
    EXPECT_EQ(rte_rawdev_queue_release(id(), 0), 0);
    EXPECT_EQ(rte_rawdev_start(id()), -EINVAL) << "queue 0 is gone";
    EXPECT_EQ(rte_rawdev_queue_setup(id(), 0, nullptr, 0), 0);
    EXPECT_EQ(rte_rawdev_start(id()), 0);
    EXPECT_EQ(rte_rawdev_queue_setup(id(), 0, nullptr, 0), -EBUSY);
    EXPECT_EQ(configure({}), -EBUSY);
    rte_mempool_free(tiny);
}

CONTRACT_EVERYWHERE(Rawdev);

class Probe : public Pair
{
};

TEST_P(Probe, WrongDevargsAreRefused)
{
    for (const char *bad : {"colour=red", "queues=0", "queues=x", "ring=100", "buf=65",
                            "queue_buffers=1", "inline=2000", "state=old", "cache_hint=always",
                            "mem=none", "numa=-2", "heartbeat_ms=100,lost_ms=100"})
        EXPECT_EQ(near().attach(cable(), bad), -EINVAL) << bad;
    EXPECT_EQ(near().ask(Op::attach, 0, "queues=2").rc, -EINVAL) << "no cable";
    EXPECT_NE(near().ask(Op::attach, 0, "cable=/no/such/folder/cable").rc, 0);
    EXPECT_EQ(near().attach(cable(), patient), 0) << "and a good one works after all that";
}

TEST_P(Probe, AThirdEndIsRefused)
{
    bring_up();
    test::LocalHost third;
    EXPECT_LT(third.attach(cable(), patient), 0);
    both_ways(stream(0, 1, 100, {8, 500}));
}

TEST_P(Probe, ASocketCableIsNotJoinedToItsOwnProcess)
{
    test::Folder folder;
    test::LocalHost other;
    ASSERT_EQ(near().attach(folder.file("cable"), patient), 0);
    EXPECT_EQ(other.attach(folder.file("cable"), patient), -EINVAL);
}

CONTRACT_BACK_ENDS(Probe);

} // namespace

// SPDX-License-Identifier: BSD-3-Clause
#include "device/options.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cerrno>
#include <string>

#include "queue/wire.hpp"
#include <log_capture.hpp>

using namespace plx::pmd;

namespace
{

int parse(const char *args, Options *options, bool twin = true)
{
    return parse_options("raw_plx_ntb0", args, twin, options);
}

/// What a device makes of it when nothing is configured on top.
Geometry whole(const Options &o)
{
    rte_pmd_plx_ntb_config config{};
    config.size = sizeof(config);
    Geometry g;
    EXPECT_EQ(apply_config("d", o.geometry, config, {}, &g), 0);
    return g;
}

TEST(Options, DefaultsNeedOnlyACable)
{
    Options o;
    ASSERT_EQ(parse("cable=mem:x", &o), 0);
    EXPECT_STREQ(o.cable, "mem:x");
    EXPECT_EQ(o.geometry.queues, 1u);
    EXPECT_EQ(o.geometry.ring_lines, 0u) << "chosen when the device is configured";
    const Geometry g = whole(o);
    EXPECT_GE(g.ring_lines, ring_lines_least);
    EXPECT_EQ(g.ring_by, SizedBy::cache);
    EXPECT_EQ(g.buffers, 4096u);
    EXPECT_EQ(g.queue_buffers, 2044u);
}

TEST(Options, CardNeedsNothingAndKnowsNoCable)
{
    Options o;
    EXPECT_EQ(parse(nullptr, &o, false), 0);
    EXPECT_EQ(parse("queues=2", &o, false), 0);
    EXPECT_EQ(o.geometry.queues, 2u);
    EXPECT_EQ(parse("cable=mem:x", &o, false), -EINVAL);
    EXPECT_EQ(parse("state=keep", &o, false), -EINVAL);
    EXPECT_EQ(parse("alut=256", &o, false), -EINVAL);
    EXPECT_EQ(parse("split=1", &o, false), 0);
}

TEST(Options, TopologyIsAskedForAndATwinIsMade)
{
    Options o;
    ASSERT_EQ(parse("cable=mem:x", &o), 0);
    EXPECT_EQ(o.topology, plx::hw::Topology::automatic);
    ASSERT_EQ(parse("cable=mem:x,topo=rp,side=link,nt=1", &o), 0);
    EXPECT_EQ(o.topology, plx::hw::Topology::root_port);
    EXPECT_TRUE(o.link_side);
    EXPECT_EQ(o.nt, 1u);
    Options card;
    ASSERT_EQ(parse("topo=b2b", &card, false), 0);
    EXPECT_EQ(card.topology, plx::hw::Topology::back_to_back);
    EXPECT_EQ(parse("side=link", &card, false), -EINVAL);
    EXPECT_EQ(parse("nt=1", &card, false), -EINVAL);
    for (const char *bad : {"cable=mem:x,topo=ring", "cable=mem:x,side=left", "cable=mem:x,nt=2"})
        EXPECT_EQ(parse(bad, &o), -EINVAL) << bad;
}

TEST(Options, EveryKeyArrives)
{
    Options o;
    ASSERT_EQ(
        parse("cable=/a/"
              "b,cable_uid=1000,state=random,queues=4,ring=256,buffers=2048,buf=4096,queue_buffers="
              "100,"
              "inline=128,max_message=5000,heartbeat_ms=60,lost_ms=500,numa=0,cache_hint=none,"
              "stores=plain,mem=wc,copy=dma,dma_min=9000,copy_curve=512:90:800/"
              "4096:400:900,dma=1,dmadev=3,"
              "peer_csr=closed,segment=64,split=3,alut=128,dma_link=2,msi=1,recheck_us=70,spin_us="
              "0,intr=0,"
              "service=1,rx=stable",
              &o),
        0);
    EXPECT_EQ(o.cable_uid, 1000u);
    EXPECT_EQ(o.state, TwinState::random);
    EXPECT_EQ(o.state_seed, 1u);
    ASSERT_EQ(parse("cable=/a/b,state=./card.regs", &o), 0);
    EXPECT_EQ(o.state, TwinState::file);
    EXPECT_STREQ(o.state_file, "./card.regs");
    EXPECT_EQ(parse(("cable=/a/b,state=/" + std::string(255, 'x')).c_str(), &o), -EINVAL);
    ASSERT_EQ(parse("cable=/a/b,state=random:77", &o), 0);
    EXPECT_EQ(o.state, TwinState::random);
    EXPECT_EQ(o.state_seed, 77u);
    EXPECT_EQ(o.geometry.queues, 4u);
    EXPECT_EQ(o.geometry.ring_lines, 256u);
    EXPECT_EQ(o.geometry.buffers, 2048u);
    EXPECT_EQ(o.geometry.buf_bytes, 4096u);
    EXPECT_EQ(whole(o).queue_buffers, 98u) << "whole lines of 14";
    EXPECT_EQ(o.geometry.inline_max, 128u);
    EXPECT_EQ(o.geometry.max_message, 5000u);
    EXPECT_EQ(o.heartbeat_ms, 60u);
    EXPECT_EQ(o.lost_ms, 500u);
    EXPECT_EQ(o.node, 0);
    EXPECT_EQ(o.cache_hint, CacheHintChoice::none);
    EXPECT_EQ(o.stores, StoresChoice::plain);
    EXPECT_EQ(o.memory, MemoryPolicy::write_combining);
    EXPECT_EQ(o.copy.mode, CopyMode::dma);
    EXPECT_EQ(o.copy.dma_min, 9000u);
    EXPECT_EQ(o.copy.curve.count, 2u);
    EXPECT_EQ(o.dma, 1u);
    EXPECT_EQ(o.dmadevs, 3u);
    EXPECT_EQ(o.peer_csr, PeerCsr::closed);
    EXPECT_EQ(o.window.segment_kib, 64u);
    EXPECT_EQ(o.window.split, 3u);
    EXPECT_EQ(o.alut, 128u);
    EXPECT_EQ(o.dma_link, 2u);
    EXPECT_EQ(o.msi, 1u);
    EXPECT_EQ(o.recheck_us, 70u);
    EXPECT_EQ(o.spin_us, 0u);
    EXPECT_EQ(o.interrupts, 0u);
    EXPECT_EQ(o.service, 1u);
    EXPECT_EQ(o.rx, RxMode::stable);
}

TEST(Options, AKeyGivenTwiceIsRefusedByName)
{
    struct {
        const char *args, *said;
    } const cases[] = {
        {"cable=mem:x,queues=2,queues=4", "raw_plx_ntb0: devarg queues is given 2 times"},
        {"cable=mem:x,cable=mem:x", "raw_plx_ntb0: devarg cable is given 2 times"},
        {"cable=mem:x,copy=cpu,copy=dma,copy=cpu", "raw_plx_ntb0: devarg copy is given 3 times"},
    };
    for (const auto &one : cases) {
        Options o;
        const test::LogCapture log;
        EXPECT_EQ(parse(one.args, &o), -EINVAL) << one.args;
        EXPECT_NE(log.driver().find(one.said), std::string::npos) << log.driver();
        EXPECT_STREQ(o.cable, "") << "nothing is changed";
    }
}

TEST(Options, BadOnesAreRefusedAndChangeNothing)
{
    const std::string long_path(120, 'x');
    const std::string bad[] = {"",
                               "queues=2",
                               "cable=",
                               "cable=" + long_path,
                               "cable=mem:x,colour=red",
                               "cable=mem:x,queues=0",
                               "cable=mem:x,queues=65",
                               "cable=mem:x,queues=-1",
                               "cable=mem:x,queues=two",
                               "cable=mem:x,queues=2x",
                               "cable=mem:x,queues=",
                               "cable=mem:x,ring=1000",
                               "cable=mem:x,ring=32",
                               "cable=mem:x,ring=131072",
                               "cable=mem:x,ring=99999999999999999999",
                               "cable=mem:x,buf=100",
                               "cable=mem:x,buf=65344",
                               "cable=mem:x,queue_buffers=13",
                               "cable=mem:x,inline=47",
                               "cable=mem:x,inline=1025",
                               "cable=mem:x,max_message=0",
                               "cable=mem:x,max_message=16777216",
                               "cable=mem:x,buffers=100,queue_buffers=112",
                               "cable=mem:x,queues=64,queue_buffers=252",
                               "cable=mem:x,queue_buffers=14,buffers=64,buf=64,max_message=1000",
                               "cable=mem:x,buffers=1048576,buf=65280",
                               "cable=mem:x,heartbeat_ms=100,lost_ms=100",
                               "cable=mem:x,state=maybe",
                               "cable=mem:x,state=random:",
                               "cable=mem:x,state=random:0",
                               "cable=mem:x,state=random:4294967296",
                               "cable=mem:x,state=reset:1",
                               "cable=mem:x,cache_hint=flush",
                               "cable=mem:x,stores=nt",
                               "cable=mem:x,mem=slow",
                               "cable=mem:x,copy=engine",
                               "cable=mem:x,dma_min=0",
                               "cable=mem:x,dma_min=16777216",
                               "cable=mem:x,copy=cpu,dma_min=4096",
                               "cable=mem:x,copy_curve=",
                               "cable=mem:x,copy_curve=512:90",
                               "cable=mem:x,copy_curve=/nobody/there",
                               "cable=mem:x,numa=x",
                               "cable=mem:x,dma=5",
                               "cable=mem:x,dmadev=5",
                               "cable=mem:x,dmadev=-1",
                               "cable=mem:x,dma=all",
                               "cable=mem:x,peer_csr=shut",
                               "cable=mem:x,segment=3000",
                               "cable=mem:x,segment=2",
                               "cable=mem:x,segment=2097152",
                               "cable=mem:x,split=8",
                               "cable=mem:x,split=-1",
                               "cable=mem:x,alut=64",
                               "cable=mem:x,cable_uid=4294967295",
                               "cable=mem:x,cable_uid=root",
                               "cable=mem:x,dma_link=5",
                               "cable=mem:x,msi=2",
                               "cable=mem:x,recheck_us=49",
                               "cable=mem:x,recheck_us=1000001",
                               "cable=mem:x,spin_us=1000001",
                               "cable=mem:x,intr=yes",
                               "cable=mem:x,service=2",
                               "cable=mem:x,rx=copied",
                               "cable=mem:x,buffers=63",
                               "cable=mem:x,lost_ms=29,heartbeat_ms=20"};
    for (const std::string &args : bad) {
        Options o;
        o.geometry.queues = 3;
        EXPECT_EQ(parse(args.c_str(), &o), -EINVAL) << args;
        EXPECT_EQ(o.geometry.queues, 3u) << args;
        EXPECT_STREQ(o.cable, "") << args;
    }
}

TEST(Options, ARefusalIsOneLineThatNamesTheDevarg)
{
    const struct {
        const char *args;
        const char *said;
    } refused[] = {
        {"queues=2", "cable is missing: expected cable=<socket path>"},
        {"cable=mem:x,colour=red", "colour=red\": known are cable="},
        {"cable=mem:x,queues=65", "queues=65: expected 1 to 64"},
        {"cable=mem:x,ring=1000", "ring=1000: expected a power of two"},
        {"cable=mem:x,ring=32", "ring=32: expected 64 to 65536 lines, a power of two"},
        {"cable=mem:x,segment=5", "segment=5: expected 4 to 1048576 KiB, a power of two"},
        {"cable=mem:x,intr=2", "intr=2: expected 0 or 1"},
        {"cable=mem:x,copy=engine", "copy=engine: expected auto, cpu or dma"},
        {"cable=mem:x,dma_min=0", "dma_min=0: expected 1 to 16777215 bytes"},
        {"cable=mem:x,copy=cpu,dma_min=9", "dma_min=9 has no meaning with copy=cpu"},
        {"cable=mem:x,buffers=100,queue_buffers=112", "buffers=100 is too small"},
        {"cable=mem:x,copy_curve=/nobody/there", "copy_curve=/nobody/there: expected"},
        {"cable=mem:x,heartbeat_ms=90,lost_ms=80", "lost_ms=80 has to be more than heartbeat_ms"},
    };
    for (const auto &[args, said] : refused) {
        const test::LogCapture log;
        Options o;
        EXPECT_EQ(parse(args, &o), -EINVAL) << args;
        const std::string line = log.text();
        EXPECT_NE(line.find(said), std::string::npos) << args << ": " << line;
        EXPECT_NE(line.find("raw_plx_ntb0: "), std::string::npos) << line;
        EXPECT_EQ(line.find('\n'), line.size() - 1) << args << ": " << line;
    }
}

TEST(Options, PostedFollowsFromBuffersAndQueues)
{
    for (const char *args :
         {"cable=mem:x,queues=64", "cable=mem:x,buffers=64", "cable=mem:x,buffers=64,queues=4"}) {
        Options o;
        ASSERT_EQ(parse(args, &o), 0) << args;
        const Geometry g = whole(o);
        EXPECT_GE(g.queue_buffers, 14u) << args;
        EXPECT_EQ(g.queue_buffers % 14, 0u) << args;
        EXPECT_LE(g.queue_buffers * g.queues, g.buffers) << args;
    }
}

TEST(Options, ConfigLaysOverDevargs)
{
    Options o;
    ASSERT_EQ(parse("cable=mem:x,ring=256,queues=2", &o), 0);
    rte_pmd_plx_ntb_config config{};
    config.size = sizeof(config);
    config.queues = 3;
    Geometry g;
    ASSERT_EQ(apply_config("d", o.geometry, config, {}, &g), 0);
    EXPECT_EQ(g.queues, 3u);
    EXPECT_EQ(g.ring_lines, 256u) << "0 keeps the devarg";
    EXPECT_EQ(g.ring_by, SizedBy::given);
    config.queues = 64;
    ASSERT_EQ(apply_config("d", o.geometry, config, {}, &g), 0);
    EXPECT_LE(g.queue_buffers * 64, g.buffers) << "they follow the queues";
    config.size = 8;
    EXPECT_EQ(apply_config("d", o.geometry, config, {}, &g), -EINVAL);
    config.size = sizeof(config);
    config.ring_lines = 1000;
    EXPECT_EQ(apply_config("d", o.geometry, config, {}, &g), -EINVAL);
    EXPECT_EQ(g.ring_lines, 256u);
}

TEST(Options, WhatIsNotGivenIsChosenByTheMachine)
{
    Options o;
    ASSERT_EQ(parse("cable=mem:x,buffers=1024", &o), 0);
    rte_pmd_plx_ntb_config config{};
    config.size = sizeof(config);
    Geometry small, large, given;
    ASSERT_EQ(apply_config("d", o.geometry, config, {.cache_bytes = 256 << 10}, &small), 0);
    ASSERT_EQ(apply_config("d", o.geometry, config, {.cache_bytes = 1 << 20}, &large), 0);
    EXPECT_LT(small.ring_lines, large.ring_lines);
    EXPECT_EQ(large.ring_by, SizedBy::cache);
    EXPECT_EQ(large.buffers, 1024u);
    EXPECT_EQ(large.buffers_by, SizedBy::given);
    config.ring_lines = 128;
    ASSERT_EQ(apply_config("d", o.geometry, config, {.cache_bytes = 1 << 20}, &given), 0);
    EXPECT_EQ(given.ring_lines, 128u);
    EXPECT_EQ(given.ring_by, SizedBy::given);
}

TEST(Options, BlockPlanHoldsRingsAndBuffersApart)
{
    for (uint32_t queues : {1u, 3u, 16u}) {
        for (uint32_t buf : {64u, 2048u, 65280u}) {
            Geometry g;
            g.queues = queues;
            g.ring_lines = g.buffers = 4096;
            g.buf_bytes = buf;
            const BlockPlan plan = plan_block(g);
            EXPECT_TRUE(std::has_single_bit(plan.block_bytes));
            EXPECT_GE(uint64_t{plan.buf_begin} * 64,
                      plx::wire::queue_area_end(queues, g.ring_lines, g.buffer_ring_lines));
            EXPECT_GE((uint64_t{plan.buf_end} - plan.buf_begin) * 64,
                      uint64_t{g.buffers} * plan.element_bytes);
            EXPECT_LE(uint64_t{plan.buf_end} * 64, plan.block_bytes);
        }
    }
}

} // namespace

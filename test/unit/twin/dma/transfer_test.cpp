// SPDX-License-Identifier: BSD-3-Clause
// Engines and the bridge: every gate on the way holds for their requester ID too.
#include "dma_bench.hpp"

using namespace plx;
using namespace plx::test;

namespace
{
class TwinDmaWay : public DmaPair
{
protected:
    uint32_t next_ = 0;

    /// One descriptor; what the engine wrote back.
    uint32_t moves(uint64_t src, uint64_t dst, uint32_t bytes)
    {
        const uint32_t slot = next_++ % slots;
        ring->put_at(slot, describe(src, dst, bytes));
        ring->go();
        return ring->word(slot);
    }
    uint32_t pushes(uint32_t bytes = 64, uint64_t to = 0)
    {
        return moves(local_bus, window(to), bytes);
    }
    uint32_t pulls(uint32_t bytes = 64, uint64_t from = 0)
    {
        return moves(window(from), local_bus + 0x8000, bytes);
    }
    /// The engine finds the way open, or it does not.
    void expect_open(bool open, const char *why)
    {
        static uint8_t mark = 0;
        local->data[0] = ++mark;
        *far(0) = 0;
        EXPECT_EQ(pushes(), open ? dma::ok | 64 : dma::write_failed) << why;
        EXPECT_EQ(*far(0), open ? mark : 0) << why;
        EXPECT_EQ(pulls(), open ? dma::ok | 64 : dma::read_failed) << why;
    }
    void expect_closes(twin::Host *host, uint32_t offset, uint32_t value, const char *why)
    {
        const uint32_t old = twin::csr_read32(host, offset);
        twin::csr_write32(host, offset, value);
        expect_open(false, why);
        twin::csr_write32(host, offset, old);
        expect_open(true, why);
    }
    /// B's memory in segments of @p bar_bytes / 256, all closed.
    void open_by_alut(uint64_t bar_bytes)
    {
        open_engine();
        for (uint32_t i = 0; i < 256; i++)
            alut_entry(i, 0, 0);
        open_inbound(b, 2, ~uint64_t{0}, bar_bytes);
        twin::csr_write32(b, virt_block + reg::alut_control, field::alut_enable.mask());
    }
};

TEST_F(TwinDmaWay, EveryGateClosesForAnEngine)
{
    open_engine();
    ring->write(dma::dev_ctl2, 1u << 4);
    expect_open(true, "programmed as for the CPU, and its ID in the table");
    const uint32_t command = reg::pci_command_status;
    expect_closes(a, virt_block + command, 0x4, "memory space of the own virtual side");
    expect_closes(a, link_block + command, 0x2, "bus master of the own link side");
    expect_closes(b, link_block + command, 0x4, "memory space of the peer's link side");
    expect_closes(b, virt_block + command, 0x2, "bus master of the peer's virtual side");
    expect_closes(a, virt_block + reg::req_id_lut_virt[1], 0, "own table lacks the engine");
    expect_closes(b, link_block + reg::req_id_lut_link[1], 0, "peer's table lacks its slot");
    expect_closes(b, link_block + reg::bar_setup(Side::link, 3), 0, "the peer's BAR is off");
    expect_closes(b, link_block + reg::bar_xlat(3), 0x1, "translated to no memory");
}

TEST_F(TwinDmaWay, TheTableOfTheCpuIsNotTheEngines)
{
    open_engine();
    twin::csr_write32(a, virt_block + reg::req_id_lut_virt[0], 0); // the CPU is out, not the engine
    EXPECT_EQ(load32(a, 2, 0), ~0u);
    expect_open(true, "by the checked way");
    EXPECT_EQ(pushes(100'000, 3), dma::ok | 100'000);
    EXPECT_EQ(memcmp(far(3), local->data, 100'000), 0);
    EXPECT_EQ(pulls(100'000, 3), dma::ok | 100'000);
    EXPECT_EQ(memcmp(local->data + 0x8000, far(3), 100'000), 0);
}

TEST_F(TwinDmaWay, ARefusalIsNotedWhereItHappens)
{
    open_engine();
    admit(false);
    EXPECT_EQ(pushes(), dma::write_failed);
    EXPECT_NE(
        field::unsupported_request.get(twin::csr_read32(a, virt_block + reg::aer_uncorr_status)),
        0u);
}

TEST_F(TwinDmaWay, ARefusedWriteMayBeLostInSilence)
{
    config.switches.dma_refused_writes_fail = false;
    open_engine();
    admit(false);
    EXPECT_EQ(pushes(9000), dma::ok | 9000) << "posted: no one came back";
    EXPECT_EQ(*far(1), 0);
    EXPECT_EQ(moves(local_bus, 0x5000, 64), dma::ok | 64);
    EXPECT_EQ(pulls(), dma::read_failed) << "a read knows";
}

TEST_F(TwinDmaWay, BehindTheFarBlockNothingAnswers)
{
    open_engine();
    EXPECT_EQ(pushes(200, exposed_bytes - 100), dma::write_failed | 100);
    EXPECT_EQ(memcmp(far(exposed_bytes - 100), local->data, 100), 0);
    EXPECT_EQ(pulls(200, exposed_bytes - 100), dma::read_failed | 100);
    EXPECT_EQ(moves(local_bus, window(twin::bar(a, 2).bytes), 64), dma::write_failed);
}

TEST_F(TwinDmaWay, RightsOfSegmentsHoldInOneDirection)
{
    open_by_alut(512 * mib); // segments of 2 MiB
    EXPECT_EQ(pushes(), dma::write_failed);
    alut_entry(0, exposed.bus, field::alut_write.mask());
    EXPECT_EQ(pushes(5000), dma::ok | 5000);
    EXPECT_EQ(memcmp(far(0), local->data, 5000), 0);
    EXPECT_EQ(pulls(), dma::read_failed);
    alut_entry(0, exposed.bus, field::alut_read.mask());
    EXPECT_EQ(pushes(), dma::write_failed);
    EXPECT_EQ(pulls(5000), dma::ok | 5000);
    alut_entry(0, exposed.bus, 3);
    EXPECT_EQ(pushes(5000, 2 * mib - 1000), dma::write_failed | 1000) << "the next one is closed";
    alut_entry(1, exposed.bus + 2 * mib, 3);
    EXPECT_EQ(pushes(5000, 2 * mib - 1000), dma::ok | 5000);
    alut_entry(0, exposed.bus, 0);
    EXPECT_EQ(pushes(), dma::write_failed) << "revoked under the engine";
}

TEST_F(TwinDmaWay, SegmentsBelowAPageAreServed)
{
    open_by_alut(mib); // segments of 4 KiB
    alut_entry(0, exposed.bus + 0x9000, 3);
    alut_entry(1, exposed.bus + 0x4000, 3);
    EXPECT_EQ(pushes(8192), dma::ok | 8192);
    EXPECT_EQ(memcmp(far(0x9000), local->data, 4096), 0);
    EXPECT_EQ(memcmp(far(0x4000), local->data + 4096, 4096), 0);
}

TEST_F(TwinDmaWay, ThePeersRegistersAreReachedInWords)
{
    open_engine();
    const uint64_t spad = twin::bar(a, 4).bus + virt_block + reg::spad[2];
    const uint32_t value = 0x12345678;
    memcpy(local->data, &value, sizeof(value));
    EXPECT_EQ(moves(local_bus, spad, 4), dma::ok | 4);
    EXPECT_EQ(twin::csr_read32(b, virt_block + reg::spad[2]), value);
    EXPECT_EQ(moves(local_bus, spad, 3), dma::write_failed);
    EXPECT_EQ(moves(spad, local_bus + 64, 4), dma::ok | 4);
    EXPECT_EQ(memcmp(local->data + 64, &value, 4), 0);
}

TEST_F(TwinDmaWay, FromOneWindowToAnotherPlaceOfIt)
{
    open_engine();
    memset(far(0), 0x42, 9000);
    EXPECT_EQ(moves(window(0), window(mib), 9000), dma::ok | 9000);
    EXPECT_EQ(memcmp(far(mib), far(0), 9000), 0);
    twin::csr_write32(a, virt_block + reg::req_id_lut_virt[0], 0); // both by the checked way
    EXPECT_EQ(moves(window(0), window(2 * mib), 9000), dma::ok | 9000);
    EXPECT_EQ(memcmp(far(2 * mib), far(0), 9000), 0);
}

TEST_F(TwinDmaWay, ALinkThatIsDownFailsAPush)
{
    open_engine();
    EXPECT_EQ(pushes(), dma::ok | 64);
    twin::inject(a, twin::Fault::link_down, 1);
    EXPECT_EQ(pushes(), dma::write_failed);
    EXPECT_EQ(ring->read(dma::ctrl) & dma::in_progress, 0u);
}

TEST_F(TwinDmaWay, ALinkThatIsDownHangsAPull)
{
    open_engine();
    twin::inject(b, twin::Fault::link_down, 1);
    EXPECT_EQ(pulls(), dma::valid | 64) << "E9: the completion does not come";
    EXPECT_NE(ring->read(dma::ctrl) & dma::in_progress, 0u);
    EXPECT_EQ(moves(local_bus, local_bus + 4096, 64), dma::valid | 64);
}

TEST_F(TwinDmaWay, APullFailsWhereTheTimeoutIsOff)
{
    open_engine();
    ring->write(dma::dev_ctl2, 1u << 4);
    twin::inject(b, twin::Fault::link_down, 1);
    EXPECT_EQ(pulls(), dma::read_failed);
    EXPECT_EQ(moves(local_bus, local_bus + 4096, 64), dma::ok | 64);
}

TEST_F(TwinDmaWay, OrTimeoutsMayBeHarmless)
{
    config.switches.dma_timeout_hangs = false;
    open_engine();
    twin::inject(b, twin::Fault::link_down, 1);
    EXPECT_EQ(pulls(), dma::read_failed);
}

TEST_F(TwinDmaWay, AfterARetrainTheWayIsFoundAnew)
{
    open_engine();
    EXPECT_EQ(pushes(), dma::ok | 64);
    twin::inject(a, twin::Fault::link_down, 1);
    EXPECT_EQ(pushes(), dma::write_failed);
    twin::inject(a, twin::Fault::link_down, 0);
    train();
    EXPECT_EQ(pushes(), dma::write_failed) << "E3: the link blocks were reset";
    bring_up(a);
    bring_up(b);
    open_inbound(b, 2, exposed.bus, exposed_bytes);
    admit(true);
    expect_open(true, "programmed again");
}

TEST_F(TwinDmaWay, AnotherBlockIsFoundAnew)
{
    open_engine();
    EXPECT_EQ(pushes(), dma::ok | 64);
    ASSERT_EQ(twin::memory_remove(b, exposed), 0);
    EXPECT_EQ(pushes(), dma::write_failed);
    ASSERT_EQ(twin::memory_add(b, exposed_bytes, -1, false, &exposed), 0);
    open_inbound(b, 2, exposed.bus, exposed_bytes);
    expect_open(true, "exposed anew");
}

TEST_F(TwinDmaWay, AnEngineGoesWithItsCard)
{
    open_engine();
    ring->put_at(0, describe(local_bus, window(0), 64));
    twin::inject(a, twin::Fault::card_gone, 1);
    ring->go();
    EXPECT_EQ(ring->word(0), dma::valid | 64);
    twin::inject(a, twin::Fault::card_gone, 0);
    EXPECT_EQ(ring->read(dma::ring_count), 0u) << "and comes back as after power-on";
}

TEST_F(TwinDmaWay, WhatAnEngineHadInHandGoesToo)
{
    open_engine();
    ASSERT_EQ(twin::inject(a, twin::Fault::dma_pace, 64), 0);
    ring->put_at(0, describe(local_bus, local_bus + 0x8000, 200));
    ring->go();
    twin::inject(a, twin::Fault::card_gone, 1);
    twin::inject(a, twin::Fault::card_gone, 0);
    ASSERT_EQ(twin::inject(a, twin::Fault::dma_pace, 0), 0);
    ring->program();
    ring->put_at(0, describe(local_bus, local_bus + 0x9000, 10));
    ring->go();
    EXPECT_EQ(ring->word(0), dma::ok | 10);
    EXPECT_EQ(memcmp(local->data + 0x9000, local->data, 10), 0);
    EXPECT_EQ(local->data[0x8000 + 199], static_cast<uint8_t>((0x8000 + 199) * 7 + 128));
}

TEST_F(TwinDmaWay, ThePeerCannotStartIt)
{
    open_engine();
    ring->put_at(0, describe(local_bus, window(0), 64));
    const uint32_t go = dma::go;
    const uint32_t at = facts::dma_base(0) + dma::ctrl;
    ASSERT_TRUE(twin::window_write(b, 4, at, &go, sizeof(go), write_rid));
    EXPECT_EQ(ring->word(0), dma::valid | 64);
    EXPECT_EQ(ring->read(dma::ctrl) & dma::in_progress, 0u);
}
} // namespace

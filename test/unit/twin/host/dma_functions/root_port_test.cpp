// SPDX-License-Identifier: BSD-3-Clause
// DMA functions on either side of one chip: whose they are, what they reach, and what a lost link
// does to those beyond it.
#include "dma_bench.hpp"
#include "root_port_pair.hpp"

#include <cerrno>

using namespace plx;
using namespace plx::test;

namespace
{

constexpr uint64_t ring_bus = uint64_t{0x12} << 32;
constexpr uint64_t local_bus = uint64_t{0x34} << 32;
constexpr size_t local_bytes = mib;
constexpr uint32_t slots = 8;
constexpr uint64_t exposed_bytes = 4 * mib;
constexpr uint16_t link_rid = 0x0500; // bus 5, as B's system numbers

class TwinLinkDma : public RootPortPair
{
protected:
    twin::Memory exposed{}; ///< A's
    std::unique_ptr<Local> local;
    std::unique_ptr<Ring> ring;
    uint32_t next_ = 0;

    TwinLinkDma() { share(4, 2); }
    void share(unsigned channels, unsigned on_link_side)
    {
        for (twin::Config *config : {&on_virtual, &on_link}) {
            config->dma_channels = channels;
            config->dma_link_channels = on_link_side;
        }
        on_link.dma_rid = link_rid;
    }
    void both(bool twin::Switches::*rule, bool value)
    {
        on_virtual.switches.*rule = value;
        on_link.switches.*rule = value;
    }
    /// What a driver on the link side does, and has to do again after a lost link.
    void program()
    {
        enable(b, Side::link);
        admit(true);
        next_ = 0;
        ring->program();
    }
    void open_engine()
    {
        attach_both();
        enable_both();
        exposed = expose(a, exposed_bytes);
        show_a(exposed);
        local = std::make_unique<Local>(b, local_bus, local_bytes);
        ring = std::make_unique<Ring>(b, 0, ring_bus, slots);
        for (size_t i = 0; i < local_bytes; i++)
            local->data[i] = static_cast<uint8_t>(i * 7 + i / 256);
        program();
    }
    void admit(bool yes)
    {
        twin::csr_write32(b, link(reg::req_id_lut_link[1]),
                          yes ? facts::LutEntry::of(link_rid).encode() : 0);
    }
    uint32_t moves(uint64_t src, uint64_t dst, uint32_t bytes)
    {
        const uint32_t slot = next_++ % slots;
        ring->put_at(slot, describe(src, dst, bytes));
        ring->go();
        return ring->word(slot);
    }
    uint32_t pushes(uint32_t bytes = 64) { return moves(local_bus, window(), bytes); }
    uint32_t pulls(uint32_t bytes = 64) { return moves(window(), local_bus + 0x8000, bytes); }
    uint64_t window() const { return twin::bar(b, 2).bus; }
    uint8_t *far() const { return static_cast<uint8_t *>(exposed.base); }
    void lose_link() { twin::inject(a, twin::Fault::link_down, 1); }
    void get_link_back()
    {
        twin::inject(a, twin::Fault::link_down, 0);
        clock.advance_us(on_virtual.switches.train_us);
        ASSERT_TRUE(up(a));
        ASSERT_TRUE(up(b));
    }
    void TearDown() override
    {
        ring.reset();
        local.reset();
        RootPortPair::TearDown();
    }
};

// ---- whose they are

TEST_F(TwinLinkDma, TheEepromSharesThemOut)
{
    attach_both();
    EXPECT_EQ(twin::csr_read32(a, facts::dma_base(0) + 0x1FC), 0x01010000u) << "NT0 is on port 1";
    EXPECT_EQ(twin::csr_read32(a, facts::dma_base(0) + 0x1F8), 0u);
    ASSERT_EQ(twin::dma_channels(a), 2u);
    ASSERT_EQ(twin::dma_channels(b), 2u);
    EXPECT_EQ(twin::dma_channel(a, 1), 1u);
    EXPECT_EQ(twin::dma_channel(b, 0), 2u);
    EXPECT_EQ(twin::dma_channel(b, 1), 3u);
    EXPECT_EQ(twin::dma_channel(b, 2), 4u);
    EXPECT_EQ(twin::dma_read32(b, 0, reg::pci_id), 0x87D010B5u);
    EXPECT_EQ(twin::dma_read32(b, 2, reg::pci_id), ~0u);
}

TEST_F(TwinLinkDma, EachSystemNumbersItsOwn)
{
    attach_both();
    EXPECT_EQ(twin::dma_requester(a, 0), 0x0101);
    EXPECT_EQ(twin::dma_requester(a, 1), 0x0102);
    EXPECT_EQ(twin::dma_requester(b, 0), link_rid | 3);
    EXPECT_EQ(twin::dma_requester(b, 1), link_rid | 4);
    EXPECT_EQ(twin::dma_read32(a, 0, reg::captured_bus), 0x01u);
    EXPECT_EQ(twin::dma_read32(b, 0, reg::captured_bus), 0x05u);
}

TEST_F(TwinLinkDma, FunctionsMayBeCountedOnEachSide)
{
    both(&twin::Switches::dma_function_by_channel, false);
    attach_both();
    EXPECT_EQ(twin::dma_requester(a, 1), 0x0102);
    EXPECT_EQ(twin::dma_requester(b, 0), link_rid | 1);
    EXPECT_EQ(twin::dma_requester(b, 1), link_rid | 2);
}

TEST_F(TwinLinkDma, OrTheRegisterMeansNothingOfTheKind)
{
    both(&twin::Switches::dma_port_assign, false);
    attach_both();
    EXPECT_EQ(twin::dma_channels(a), 4u);
    EXPECT_EQ(twin::dma_channels(b), 0u);
}

TEST_F(TwinLinkDma, OfTwoChannelsOneMayBeTheirs)
{
    share(2, 1);
    attach_both();
    EXPECT_EQ(twin::csr_read32(a, facts::dma_base(0) + 0x1F8), 2u);
    EXPECT_EQ(twin::csr_read32(a, facts::dma_base(0) + 0x1FC), 0x00010000u);
    EXPECT_EQ(twin::dma_channel(a, 0), 0u);
    EXPECT_EQ(twin::dma_channel(b, 0), 2u);
    EXPECT_EQ(twin::dma_requester(b, 0), link_rid | 3);
}

TEST_F(TwinLinkDma, AtRunTimeNothingMoves)
{
    attach_both();
    twin::csr_write32(a, facts::dma_base(0) + 0x1FC, 0);
    EXPECT_EQ(twin::dma_channels(b), 2u);
    twin::inject(a, twin::Fault::card_gone, 1);
    twin::inject(a, twin::Fault::card_gone, 0);
    EXPECT_EQ(twin::csr_read32(a, facts::dma_base(0) + 0x1FC), 0x01010000u) << "power-on";
}

TEST_F(TwinLinkDma, OnTheSecondNtPort)
{
    on_virtual.nt = on_link.nt = 1;
    attach_both();
    EXPECT_EQ(twin::csr_read32(a, facts::dma_base(0) + 0x1FC), 0x09090000u) << "NT1 is on port 9";
    EXPECT_EQ(twin::dma_channels(b), 2u);
}

TEST_F(TwinLinkDma, BothEndsSayTheSame)
{
    attach_a();
    on_link.dma_link_channels = 1;
    twin::Error error{};
    EXPECT_EQ(twin::attach(on_link, &b, &error), -EINVAL);
    EXPECT_NE(std::string(error.text).find("DMA channels"), std::string::npos) << error.text;
    on_link.dma_link_channels = 5;
    EXPECT_EQ(twin::attach(on_link, &b, &error), -EINVAL);
    b = nullptr;
}

TEST_F(TwinLinkDma, BackToBackTheyBelongToNoHost)
{
    on_virtual.topology = twin::Topology::back_to_back;
    attach_a();
    EXPECT_EQ(twin::dma_channels(a), 2u);
    EXPECT_EQ(twin::csr_read32(a, facts::dma_base(2)), 0x87D010B5u) << "on a bus without a system";
}

// ---- what they reach

TEST_F(TwinLinkDma, CopiesOfTheLinkSideArriveAtTheVirtual)
{
    open_engine();
    EXPECT_EQ(pushes(100'000), dma::ok | 100'000);
    EXPECT_EQ(memcmp(far(), local->data, 100'000), 0);
    memset(far(), 0x42, 5000);
    EXPECT_EQ(pulls(5000), dma::ok | 5000);
    EXPECT_EQ(memcmp(local->data + 0x8000, far(), 5000), 0);
    EXPECT_EQ(moves(local_bus, local_bus + 0x10000, 3000), dma::ok | 3000);
}

TEST_F(TwinLinkDma, TheTableOfTheirOwnSideLetsThemThrough)
{
    open_engine();
    admit(false);
    twin::csr_write32(a, virt(reg::req_id_lut_virt[1]), facts::LutEntry::of(link_rid).encode());
    EXPECT_EQ(pushes(), dma::write_failed) << "an entry of the other side does nothing";
    const uint32_t status = link(reg::aer_uncorr_status);
    EXPECT_NE(field::unsupported_request.get(twin::csr_read32(b, status)), 0u);
    EXPECT_NE(twin::csr_read32(a, virt(reg::link_err_status)) & field::err_uncorrectable.mask(),
              0u);
    EXPECT_EQ(pulls(), dma::read_failed);
    admit(true);
    EXPECT_EQ(pushes(), dma::ok | 64);
    EXPECT_EQ(pulls(), dma::ok | 64);
}

TEST_F(TwinLinkDma, EveryGateClosesForThem)
{
    open_engine();
    const auto closes = [&](twin::Host *host, uint32_t offset, uint32_t value, const char *why) {
        const uint32_t old = twin::csr_read32(host, offset);
        twin::csr_write32(host, offset, value);
        EXPECT_EQ(pushes(), dma::write_failed) << why;
        EXPECT_EQ(pulls(), dma::read_failed) << why;
        twin::csr_write32(host, offset, old);
        EXPECT_EQ(pushes(), dma::ok | 64) << why;
    };
    closes(b, link(reg::pci_command_status), 0x4, "memory space of the endpoint that is hit");
    closes(a, virt(reg::pci_command_status), 0x2, "bus master of the endpoint opposite");
    closes(a, link(reg::bar_xlat(3)), 0x1, "translated to no memory");
}

TEST_F(TwinLinkDma, AForeignRequesterHasToBeEntered)
{
    open_engine();
    EXPECT_EQ(pushes(), dma::ok | 64);
    EXPECT_EQ(twin::inject(b, twin::Fault::dma_requester, 0x10000), -EINVAL);
    ASSERT_EQ(twin::inject(b, twin::Fault::dma_requester, 0x4211), 0);
    EXPECT_EQ(pushes(), dma::write_failed);
    twin::csr_write32(b, link(reg::req_id_lut_link[1]),
                      facts::lut_dword(facts::LutEntry::of(link_rid), facts::LutEntry::of(0x4210)));
    EXPECT_EQ(pushes(), dma::ok | 64);
    ASSERT_EQ(twin::inject(b, twin::Fault::dma_requester, dma::off), 0);
    EXPECT_EQ(pushes(), dma::ok | 64);
}

TEST_F(TwinLinkDma, TheOtherHostSeesTheRegistersAndStartsNothing)
{
    open_engine();
    const uint32_t block = facts::dma_base(2);
    EXPECT_EQ(twin::csr_read32(a, block + dma::ring_count), slots);
    ring->put_at(0, describe(local_bus, window(), 64));
    twin::csr_write32(a, block + dma::ctrl, dma::go);
    EXPECT_EQ(ring->word(0), dma::valid | 64) << "its addresses are another system's";
    EXPECT_EQ(ring->read(dma::ctrl) & dma::in_progress, 0u);
}

// ---- a lost link

TEST_F(TwinLinkDma, BeyondADeadLinkNothingIsThere)
{
    open_engine();
    lose_link();
    EXPECT_EQ(ring->read(dma::ctrl), ~0u);
    EXPECT_EQ(twin::csr_read32(b, facts::dma_base(2) + dma::ctrl), ~0u);
    EXPECT_EQ(pushes(), dma::valid | 64) << "START does not arrive";
    EXPECT_EQ(twin::csr_read32(a, facts::dma_base(2) + dma::ctrl) & dma::in_progress, 0u);
    EXPECT_EQ(twin::dma_read32(a, 0, reg::pci_id), 0x87D010B5u) << "of this side";
}

TEST_F(TwinLinkDma, ALostLinkResetsThemAndNotTheOthers)
{
    open_engine();
    twin::dma_write32(a, 0, dma::ring_count, 77);
    lose_link();
    ASSERT_FALSE(up(a));
    get_link_back();
    EXPECT_EQ(ring->read(dma::ring_count), 0u);
    EXPECT_EQ(ring->read(reg::pci_command_status) & 0x4, 0u) << "enumerated anew";
    EXPECT_EQ(ring->read(reg::captured_bus), 0x05u);
    EXPECT_EQ(twin::dma_read32(a, 0, dma::ring_count), 77u);
    EXPECT_EQ(twin::csr_read32(a, facts::dma_base(0) + 0x1FC), 0x01010000u);
    program();
    show_a(exposed);
    EXPECT_EQ(pushes(), dma::ok | 64);
}

TEST_F(TwinLinkDma, OrItLeavesThemAsTheyWere)
{
    both(&twin::Switches::dma_link_down_resets, false);
    open_engine();
    lose_link();
    ASSERT_FALSE(up(a));
    get_link_back();
    EXPECT_EQ(ring->read(dma::ring_count), slots);
    EXPECT_EQ(ring->read(reg::pci_command_status) & 0x4, 0x4u);
    enable(b, Side::link);
    admit(true);
    show_a(exposed);
    EXPECT_EQ(pushes(), dma::ok | 64);
}

TEST_F(TwinLinkDma, AHangOutlivesTheReset)
{
    open_engine();
    ASSERT_EQ(twin::inject(b, twin::Fault::dma_hang, 0), 0);
    EXPECT_EQ(pushes(), dma::valid | 64);
    lose_link();
    ASSERT_FALSE(up(a));
    get_link_back();
    EXPECT_EQ(ring->read(dma::ring_count), 0u);
    EXPECT_NE(ring->read(dma::ctrl) & dma::in_progress, 0u) << "E9";
}

/// The link goes in the middle of a copy.
class TwinLinkDmaCut : public TwinLinkDma
{
protected:
    void cut(bool timeout_off)
    {
        open_engine();
        ring->write(dma::dev_ctl2, timeout_off ? 1u << 4 : 0);
        ASSERT_EQ(twin::inject(b, twin::Fault::dma_link_loss, 4096), 0);
        EXPECT_EQ(pushes(100'000), dma::valid | 100'000) << "nothing is written back";
        EXPECT_EQ(memcmp(far(), local->data, 4096), 0);
        EXPECT_NE(memcmp(far() + 4096, local->data + 4096, 4096), 0);
        ASSERT_EQ(ring->read(dma::ctrl), ~0u);
        twin::inject(b, twin::Fault::link_down, 0);
        clock.advance_us(on_virtual.switches.train_us);
        ASSERT_TRUE(up(a));
        ASSERT_TRUE(up(b));
    }
};

TEST_F(TwinLinkDmaCut, ACompletionThatDoesNotComeHangsThem)
{
    both(&twin::Switches::dma_link_down_resets, false);
    cut(false);
    EXPECT_NE(ring->read(dma::ctrl) & dma::in_progress, 0u) << "E9";
    program();
    show_a(exposed);
    EXPECT_EQ(pushes(), dma::valid | 64);
}

TEST_F(TwinLinkDmaCut, UnlessTheResetComesFirst)
{
    cut(false);
    EXPECT_EQ(ring->read(dma::ctrl) & dma::in_progress, 0u);
    program();
    show_a(exposed);
    EXPECT_EQ(pushes(), dma::ok | 64);
}

TEST_F(TwinLinkDmaCut, NotWithTheTimeoutOff)
{
    both(&twin::Switches::dma_link_down_resets, false);
    cut(true);
    EXPECT_EQ(ring->read(dma::ctrl) & dma::in_progress, 0u);
    program();
    show_a(exposed);
    EXPECT_EQ(pushes(5000), dma::ok | 5000);
    EXPECT_EQ(memcmp(far(), local->data, 5000), 0);
}

TEST_F(TwinLinkDma, WhatWasInHandIsForgottenWithTheChipsPower)
{
    open_engine();
    ASSERT_EQ(twin::inject(b, twin::Fault::dma_pace, 64), 0);
    EXPECT_EQ(pushes(200), dma::valid | 200);
    twin::inject(a, twin::Fault::card_gone, 1);
    twin::inject(a, twin::Fault::card_gone, 0);
    clock.advance_us(on_virtual.switches.train_us);
    ASSERT_TRUE(up(b));
    ASSERT_EQ(twin::inject(b, twin::Fault::dma_pace, 0), 0);
    enable_both();
    memset(far(), 0, 200);
    program();
    show_a(exposed);
    EXPECT_EQ(moves(local_bus, local_bus + 0x9000, 10), dma::ok | 10);
    EXPECT_EQ(far()[199], 0);
}

} // namespace

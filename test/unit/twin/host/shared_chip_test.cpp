// SPDX-License-Identifier: BSD-3-Clause
// One chip between two hosts: A on its virtual side, B on its link side.
#include "root_port_pair.hpp"

#include <cerrno>

using namespace plx;
using namespace plx::test;

namespace
{

constexpr uint32_t mem_and_master = 0x6;
constexpr uint32_t alut_on = 0x10000000;

class TwinRootPort : public RootPortPair
{
};

TEST_F(TwinRootPort, EachHostSeesItsOwnEndpoint)
{
    attach_both();
    EXPECT_EQ(twin::config_read32(a, reg::pci_id), 0x87B010B5u);
    EXPECT_EQ(twin::config_read32(a, reg::nt_port_id), 0u);
    EXPECT_EQ(twin::config_read32(b, reg::pci_id), 0x87A010B5u);
    EXPECT_EQ(twin::config_read32(b, reg::nt_port_id), 0x80000000u);
    EXPECT_EQ(twin::csr_read32(b, virt(reg::pci_id)), 0x87B010B5u) << "BAR0 shows the whole chip";
    EXPECT_EQ(twin::csr_read32(b, virt(reg::req_id_readback)), 0x0010u) << "of this very read";
    EXPECT_EQ(twin::bar(a, 2).bytes, 8 * mib);
    EXPECT_EQ(twin::bar(b, 2).bytes, 4 * mib);
    EXPECT_EQ(twin::csr_read32(a, link(reg::bar_setup(Side::link, 2))), 0xFFC0000Cu);
    EXPECT_EQ(twin::csr_read32(b, virt(reg::bar_setup(Side::virt, 2))), 0xFF80000Cu);
}

TEST_F(TwinRootPort, BothSidesAreEnumerated)
{
    attach_both();
    const auto address = [](twin::Host *host) {
        return uint64_t{twin::config_read32(host, reg::pci_bar[3])} << 32 |
               (twin::config_read32(host, reg::pci_bar[2]) & ~0xFu);
    };
    EXPECT_EQ(address(a), twin::bar(a, 2).bus);
    EXPECT_EQ(address(b), twin::bar(b, 2).bus);
    EXPECT_NE(twin::config_read32(b, reg::pci_bar[0]) & ~0xFu, 0u);
    EXPECT_NE(twin::config_read32(b, reg::captured_bus), 0u);
    EXPECT_NE(field::mem_enable.get(twin::config_read32(b, reg::pci_command_status)), 0u);
}

TEST_F(TwinRootPort, ALinkSideHostAloneFindsThePoweredChip)
{
    attach_b();
    EXPECT_EQ(twin::config_read32(b, reg::pci_id), 0x87A010B5u);
    EXPECT_TRUE(up(b));
    twin::csr_write32(b, link(reg::spad[7]), 0x77);
    attach_a();
    EXPECT_EQ(twin::csr_read32(a, virt(reg::spad[7])), 0x77u) << "the same chip";
    EXPECT_TRUE(up(a));
    EXPECT_TRUE(twin::cable_connected(a));
    EXPECT_TRUE(twin::cable_connected(b));
}

TEST_F(TwinRootPort, AVirtualSideHostAloneHasNothingPluggedIn)
{
    attach_a();
    clock.advance_us(1'000'000);
    EXPECT_FALSE(up(a));
    attach_b();
    EXPECT_TRUE(up(a));
    EXPECT_EQ(twin::csr_read32(a, virt(reg::link_err_status)), field::err_link_change.mask());
}

TEST_F(TwinRootPort, ScratchpadsAndDoorbellsAreOneBank)
{
    attach_both();
    twin::csr_write32(a, virt(reg::spad[0]), 0x11);
    twin::csr_write32(b, link(reg::spad[4]), 0x22);
    EXPECT_EQ(twin::csr_read32(b, link(reg::spad[0])), 0x11u);
    EXPECT_EQ(twin::csr_read32(a, virt(reg::spad[4])), 0x22u);
    twin::csr_write32(a, virt(reg::db_link_set), 0x5);
    EXPECT_EQ(twin::csr_read32(b, link(reg::db_link_clear)), 0x5u);
    EXPECT_EQ(twin::csr_read32(b, link(reg::db_virt_clear)), 0u);
    twin::csr_write32(b, link(reg::db_link_clear), 0x4);
    EXPECT_EQ(twin::csr_read32(a, virt(reg::db_link_set)), 0x1u);
    twin::csr_write32(b, link(reg::db_virt_set), 0x8000);
    EXPECT_EQ(twin::csr_read32(a, virt(reg::db_virt_clear)), 0x8000u);
    EXPECT_EQ(twin::csr_read32(b, link(reg::link_err_status)), 0u)
        << "the link block has no link errors";
}

TEST_F(TwinRootPort, StoresCrossOneChipBothWays)
{
    attach_both();
    enable_both();
    const twin::Memory of_a = expose(a, 4 * mib);
    const twin::Memory of_b = expose(b, 8 * mib);
    show_a(of_a);
    show_b(of_b);
    store32(b, 2, 4 * mib - 4, 0xB1);
    EXPECT_EQ(word_at(of_a, 4 * mib - 4), 0xB1u);
    store32(a, 2, 8 * mib - 4, 0xA1);
    EXPECT_EQ(word_at(of_b, 8 * mib - 4), 0xA1u);
    EXPECT_EQ(load32(a, 2, 8 * mib - 4), 0xA1u);
}

TEST_F(TwinRootPort, EachGateStandsAlone)
{
    attach_both();
    enable_both();
    const twin::Memory of_a = expose(a, 4 * mib);
    show_a(of_a);
    const auto arrives = [&] {
        const uint32_t word = 0x31;
        return twin::window_write(b, 2, 0x40, &word, sizeof(word), on_link.cpu_write_rid);
    };
    ASSERT_TRUE(arrives());
    // A's master enable lets what comes from the link out towards A.
    twin::config_write32(a, reg::pci_command_status, 0x2);
    EXPECT_FALSE(arrives());
    twin::config_write32(a, reg::pci_command_status, 0x6);
    EXPECT_TRUE(arrives());
    twin::config_write32(b, reg::pci_command_status, 0x4); // no memory decoding
    EXPECT_FALSE(arrives());
    twin::config_write32(b, reg::pci_command_status, 0x2); // its own mastering plays no part
    EXPECT_TRUE(arrives());
    write64(a, link(reg::bar_xlat(2)), ~uint64_t{0});
    EXPECT_FALSE(arrives());
    show_a(of_a);
    EXPECT_TRUE(arrives());
    twin::csr_write32(b, link(reg::req_id_lut_link[0]), 0);
    EXPECT_FALSE(arrives());
}

TEST_F(TwinRootPort, AnUnknownRequesterIsNotedWhereItWasTurnedAway)
{
    attach_both();
    enable_both();
    const twin::Memory of_a = expose(a, 4 * mib);
    show_a(of_a);
    twin::csr_write32(a, virt(reg::link_err_status), facts::link_err_all);
    uint32_t word = 0;
    EXPECT_FALSE(twin::window_read(b, 2, 0, &word, sizeof(word), 0x4200));
    EXPECT_EQ(word, ~0u);
    EXPECT_EQ(twin::csr_read32(b, link(reg::aer_uncorr_status)), field::unsupported_request.mask());
    EXPECT_EQ(twin::csr_read32(a, virt(reg::link_err_status)), field::err_uncorrectable.mask());
    EXPECT_FALSE(twin::window_read(a, 2, 0, &word, sizeof(word), 0x4200));
    EXPECT_EQ(twin::csr_read32(a, virt(reg::aer_uncorr_status)), 0u)
        << "nothing answers there at all";
}

TEST_F(TwinRootPort, NeitherSideReachesRegistersThroughAWindow)
{
    attach_both();
    enable_both();
    for (twin::Host *host : {a, b})
        for (uint64_t offset = 0; offset < 4 * mib; offset += mib) {
            uint32_t word = 0;
            EXPECT_FALSE(twin::window_read(host, 4, offset, &word, sizeof(word), 0));
            EXPECT_EQ(word, ~0u);
        }
}

class TwinRootPortAlut : public TwinRootPort, public testing::WithParamInterface<uint32_t>
{
protected:
    uint32_t entries() const { return GetParam(); }
    /// Entry of the A-LUT that what hits BAR2 of side @p hit asks.
    void entry(twin::Host *host, Side hit, uint32_t i, uint64_t bus, uint32_t rights)
    {
        const uint32_t array = facts::alut_array(nt(), hit, entries());
        twin::csr_write32(host, array + facts::alut_entry(reg::alut_upper, i),
                          static_cast<uint32_t>(bus >> 32));
        twin::csr_write32(host, array + facts::alut_entry(reg::alut_lower, i),
                          static_cast<uint32_t>(bus));
        twin::csr_write32(host, array + facts::alut_entry(reg::alut_permission, i), rights);
        twin::csr_read32(host, virt(reg::nt_port_id));
    }
};

TEST_P(TwinRootPortAlut, EachDirectionAsksItsOwnArrayAndTheBlockItGoesTo)
{
    on_virtual.alut_entries = on_link.alut_entries = entries();
    on_virtual.bar2_bytes = 512 * mib;
    on_link.bar2_bytes = 1024 * mib;
    attach_both();
    enable_both();
    const twin::Memory of_a = expose(a, 16 * mib);
    const twin::Memory of_b = expose(b, 16 * mib);
    twin::csr_write32(a, virt(reg::alut_control), alut_on);
    twin::csr_write32(b, link(reg::alut_control), alut_on);
    entry(a, Side::link, 3, of_a.bus + 8 * mib, 3);
    entry(b, Side::virt, entries() - 1, of_b.bus + 4 * mib, 3);
    const uint64_t in_b = 1024 * mib / entries();
    const uint64_t in_a = 512 * mib / entries();
    store32(b, 2, 3 * in_b + 0x40, 0xB2);
    EXPECT_EQ(word_at(of_a, 8 * mib + 0x40), 0xB2u);
    store32(a, 2, (entries() - 1) * in_a + 0x44, 0xA2);
    EXPECT_EQ(word_at(of_b, 4 * mib + 0x44), 0xA2u);
    EXPECT_EQ(load32(a, 2, 0), ~0u);
    entry(b, Side::virt, entries() - 1, of_b.bus + 4 * mib, 0);
    EXPECT_EQ(load32(a, 2, (entries() - 1) * in_a + 0x44), ~0u);
    store32(b, 2, 3 * in_b + 0x40, 0xB3);
    EXPECT_EQ(word_at(of_a, 8 * mib + 0x40), 0xB3u) << "the other direction is untouched";
    entry(b, Side::virt, 0, of_b.bus, 3);
    store32(a, 2, 0x48, 0xA4);
    EXPECT_EQ(word_at(of_b, 0x48), 0xA4u);
    twin::csr_write32(b, link(reg::alut_control), 0);
    EXPECT_EQ(load32(a, 2, 0x48), ~0u) << "by base and offset, to nowhere";
}

INSTANTIATE_TEST_SUITE_P(Entries, TwinRootPortAlut, testing::Values(128u, 256u),
                         testing::PrintToStringParamName());

// ---- the link

TEST_F(TwinRootPort, LinkDownCutsTheLinkSideOffAndWipesIt)
{
    attach_both();
    enable_both();
    const twin::Memory of_a = expose(a, 4 * mib);
    show_a(of_a);
    twin::csr_write32(a, virt(reg::link_err_status), facts::link_err_all);
    set_port(true);
    EXPECT_FALSE(up(a));
    EXPECT_EQ(twin::csr_read32(a, virt(reg::link_err_status)), field::err_link_change.mask());
    EXPECT_EQ(twin::config_read32(b, reg::pci_id), ~0u);
    EXPECT_EQ(twin::csr_read32(b, virt(reg::nt_port_id)), ~0u);
    EXPECT_EQ(load32(b, 2, 0x40), ~0u);
    twin::csr_write32(b, virt(reg::spad[2]), 0x99);
    EXPECT_EQ(twin::csr_read32(a, virt(reg::spad[2])), 0u) << "it does not get there";
    EXPECT_EQ(twin::csr_read32(a, link(reg::req_id_lut_link[0])), 0x1u) << "as after power-on";
    EXPECT_EQ(twin::csr_read32(a, link(reg::bar_setup(Side::link, 2))), 0xFFC0000Cu)
        << "with the BAR sizes of its own side";

    set_port(false);
    EXPECT_FALSE(up(a)) << "it has to train";
    EXPECT_EQ(twin::config_read32(b, reg::pci_id), ~0u);
    clock.advance_us(on_virtual.switches.train_us);
    EXPECT_TRUE(up(a));
    EXPECT_TRUE(up(b));
    EXPECT_EQ(twin::config_read32(b, reg::pci_id), 0x87A010B5u);
    EXPECT_NE(twin::config_read32(b, reg::pci_bar[3]), 0u) << "enumerated anew";
    EXPECT_EQ(field::bus_master.get(twin::config_read32(b, reg::pci_command_status)), 0u);
    EXPECT_EQ(load32(b, 2, 0x40), ~0u);
    enable(b, Side::link);
    show_a(of_a);
    store32(b, 2, 0x40, 0x41);
    EXPECT_EQ(word_at(of_a, 0x40), 0x41u);
}

TEST_F(TwinRootPort, AShortBreakIsCarriedOutBeforeTheLinkSideGoesOn)
{
    attach_both();
    enable_both();
    twin::inject(a, twin::Fault::freeze_remaps, 1); // A does not look
    twin::inject(b, twin::Fault::link_down, 1);
    twin::inject(b, twin::Fault::link_down, 0);
    clock.advance_us(on_virtual.switches.train_us);
    EXPECT_EQ(twin::config_read32(b, reg::pci_id), ~0u);
    twin::inject(a, twin::Fault::freeze_remaps, 0);
    EXPECT_TRUE(up(a));
    EXPECT_EQ(twin::config_read32(b, reg::pci_id), 0x87A010B5u);
    EXPECT_EQ(twin::csr_read32(b, link(reg::req_id_lut_link[0])), 0x1u) << "wiped";
}

TEST_F(TwinRootPort, TheLinkSideMayBeHeldOverALinkLoss)
{
    attach_both();
    enable_both();
    twin::csr_write32(a, reg::vs_debug,
                      field::dl_down_reset_disable.set(twin::csr_read32(a, reg::vs_debug), 1));
    set_port(true);
    EXPECT_EQ(twin::csr_read32(a, link(reg::req_id_lut_link[0])), 0x00110001u);
}

TEST_F(TwinRootPort, ADeadLinkMayReadAsZeros)
{
    on_link.switches.dead_link_reads_ones = false;
    attach_both();
    set_port(true);
    EXPECT_EQ(twin::csr_read32(b, virt(reg::nt_port_id)), 0u);
    EXPECT_EQ(twin::config_read32(b, reg::pci_id), 0u);
}

TEST_F(TwinRootPort, TheLinkStaysUpWithoutAProcessBeyond)
{
    attach_both();
    detach(b);
    EXPECT_TRUE(up(a));
    EXPECT_FALSE(twin::cable_connected(a));
    attach_b();
    detach(a);
    EXPECT_TRUE(up(b));
    // No one is on the virtual side to carry out what a link change does.
    twin::inject(b, twin::Fault::link_down, 1);
    EXPECT_FALSE(up(b));
    twin::inject(b, twin::Fault::link_down, 0);
    clock.advance_us(on_virtual.switches.train_us);
    EXPECT_TRUE(up(b));
    EXPECT_EQ(twin::csr_read32(b, link(reg::req_id_lut_link[0])), 0x1u);
}

// ---- lives

TEST_F(TwinRootPort, WhoIsLeftKeepsTheChip)
{
    attach_both();
    twin::csr_write32(a, virt(reg::spad[1]), 0x51);
    detach(a);
    EXPECT_EQ(twin::csr_read32(b, link(reg::spad[1])), 0x51u);
    twin::csr_write32(b, link(reg::spad[6]), 0x56);
    attach_a();
    EXPECT_EQ(twin::csr_read32(a, virt(reg::spad[6])), 0x56u);
    detach(b);
    attach_b();
    EXPECT_EQ(twin::csr_read32(b, link(reg::spad[1])), 0x51u);
}

TEST_F(TwinRootPort, MemoryOfOneThatWentIsNotSeenByTheNext)
{
    attach_both();
    enable_both();
    show_a(expose(a, 4 * mib));
    store32(b, 2, 0x40, 1);
    detach(a);
    EXPECT_EQ(load32(b, 2, 0x40), ~0u);
    attach_a();
    const twin::Memory next = expose(a, 4 * mib);
    show_a(next);
    store32(b, 2, 0x40, 2);
    EXPECT_EQ(word_at(next, 0x40), 2u);
}

TEST_F(TwinRootPort, TheVirtualSideMayRestartTheChip)
{
    for (const twin::ChipState state : {twin::ChipState::reset, twin::ChipState::random}) {
        SCOPED_TRACE(static_cast<int>(state));
        on_virtual.state = twin::ChipState::keep;
        attach_both();
        enable_both();
        twin::csr_write32(b, link(reg::spad[5]), 0x55);
        detach(a);
        on_virtual.state = state;
        attach_a();
        EXPECT_FALSE(up(b)) << "the link has to train";
        set_port(false); // garbage may have disabled it
        clock.advance_us(on_virtual.switches.train_us);
        EXPECT_TRUE(up(a));
        EXPECT_TRUE(up(b));
        EXPECT_NE(twin::csr_read32(b, link(reg::spad[5])), 0x55u);
        EXPECT_EQ(twin::csr_read32(b, link(reg::bar_setup(Side::link, 2))), 0xFFC0000Cu);
        EXPECT_NE(twin::config_read32(b, reg::pci_bar[3]), 0u) << "enumerated anew";
        detach(a);
        detach(b);
    }
}

// ---- faults and interrupts

TEST_F(TwinRootPort, DoorbellsAreLostTowardsWhoAskedForIt)
{
    attach_both();
    twin::inject(b, twin::Fault::drop_doorbells, 1);
    twin::csr_write32(b, link(reg::db_virt_set), 0x1);
    EXPECT_EQ(twin::csr_read32(a, virt(reg::db_virt_clear)), 0x1u);
    twin::csr_write32(a, virt(reg::db_link_set), 0x1);
    EXPECT_EQ(twin::csr_read32(b, link(reg::db_link_clear)), 0u);
    twin::csr_write32(a, virt(reg::db_link_set), 0x2);
    EXPECT_EQ(twin::csr_read32(b, link(reg::db_link_clear)), 0x2u);
    twin::inject(a, twin::Fault::late_doorbells, 100);
    twin::csr_write32(b, link(reg::db_virt_set), 0x4);
    EXPECT_EQ(twin::csr_read32(a, virt(reg::db_virt_clear)), 0x1u);
    clock.advance_us(100);
    EXPECT_EQ(twin::csr_read32(a, virt(reg::db_virt_clear)), 0x5u);
}

TEST_F(TwinRootPort, DoorbellsInterruptEitherHost)
{
    attach_both();
    std::atomic<unsigned> calls[2] = {0, 0};
    const auto count = [](void *ctx) { static_cast<std::atomic<unsigned> *>(ctx)->fetch_add(1); };
    const auto unmask = [&](twin::Host *host, uint32_t csr) {
        twin::csr_write32(host, csr, facts::doorbell_mask);
    };
    twin::csr_write32(a, virt(reg::link_err_mask), facts::link_err_all);
    twin::on_interrupt(a, count, &calls[0]);
    twin::on_interrupt(b, count, &calls[1]);
    unmask(b, link(reg::db_link_mask_clear));
    twin::csr_write32(a, virt(reg::db_link_set), 0x1);
    EXPECT_TRUE(await([&] { return calls[1] != 0; }));
    EXPECT_EQ(calls[0], 0u);
    twin::csr_write32(b, link(reg::db_link_clear), 0x1);
    unmask(a, virt(reg::db_virt_mask_clear));
    twin::csr_write32(b, link(reg::db_virt_set), 0x1);
    EXPECT_TRUE(await([&] { return calls[0] != 0; }));
    twin::csr_write32(a, virt(reg::db_virt_clear), 0x1);
    twin::on_interrupt(a, nullptr, nullptr);
    twin::on_interrupt(b, nullptr, nullptr);
}

TEST_F(TwinRootPort, DmaFunctionsSitBesideTheUpstreamPort)
{
    attach_both();
    EXPECT_EQ(twin::dma_channels(a), 4u);
    EXPECT_EQ(twin::dma_channels(b), 0u);
    EXPECT_EQ(twin::dma_read32(b, 0, 0), ~0u);
}

// ---- what does not fit

class TwinWiring : public TwinRootPort
{
protected:
    std::string refusal(const twin::Config &config)
    {
        twin::Host *host = nullptr;
        twin::Error error{};
        EXPECT_EQ(twin::attach(config, &host, &error), -EINVAL);
        return error.text;
    }
    static bool has(const std::string &text, const char *what)
    {
        return text.find(what) != std::string::npos;
    }
};

TEST_F(TwinWiring, BothEndsHaveToAgree)
{
    attach_a();
    twin::Config other = on_virtual;
    EXPECT_TRUE(has(refusal(other), "both are on the virtual side"));
    other.topology = twin::Topology::back_to_back;
    EXPECT_TRUE(has(refusal(other), "back to back here"));
    other = on_link;
    other.nt = 1;
    EXPECT_TRUE(has(refusal(other), "NT port 1 here, 0 there"));
    attach_b();
    EXPECT_TRUE(twin::cable_connected(a)) << "the refused ones left nothing behind";
}

TEST_F(TwinWiring, ALinkSideNeedsASharedChip)
{
    twin::Config config = on_link;
    config.topology = twin::Topology::back_to_back;
    EXPECT_TRUE(has(refusal(config), "root-port"));
    config = on_link;
    config.state = twin::ChipState::reset;
    EXPECT_TRUE(has(refusal(config), "virtual side"));
}

} // namespace

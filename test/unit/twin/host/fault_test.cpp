// SPDX-License-Identifier: BSD-3-Clause
// Faults on demand: what each does to either end, and that it ends.
#include "bench_pair.hpp"

#include <cerrno>

using namespace plx;
using namespace plx::test;
using twin::Fault;

namespace
{
constexpr uint32_t link_change = field::err_link_change.mask();
constexpr uint32_t errors = virt_block + reg::link_err_status;

class TwinFault : public MemPair
{
protected:
    twin::Memory memory{};

    /// Trained, and A's BAR2 shows memory of B.
    void open_way()
    {
        set_up_both();
        ASSERT_EQ(twin::memory_add(b, mib, -1, false, &memory), 0);
        open_inbound(b, 2, memory.bus, mib);
        store32(a, 2, 0, 1);
        ASSERT_EQ(word_at(memory, 0), 1u);
        for (twin::Host *host : {a, b})
            twin::csr_write32(host, errors, 0xF);
    }
    bool changed(twin::Host *host) { return (twin::csr_read32(host, errors) & link_change) != 0; }
    void expect_down()
    {
        clock.advance_us(1'000'000);
        EXPECT_FALSE(link_is_up(b));
        EXPECT_TRUE(changed(b));
        EXPECT_EQ(load32(a, 2, 0), ~0u);
        store32(a, 2, 0, 2);
        EXPECT_EQ(word_at(memory, 0), 1u) << "what is stored now is lost";
    }
};

TEST_F(TwinFault, LinkIsHeldDown)
{
    open_way();
    ASSERT_EQ(twin::inject(a, Fault::link_down, 1), 0);
    expect_down();
    EXPECT_TRUE(twin::cable_connected(a));
    ASSERT_EQ(twin::inject(a, Fault::link_down, 0), 0);
    EXPECT_FALSE(link_is_up(b));
    train();
}

TEST_F(TwinFault, WhatIsNotHeldIsNotLetGo)
{
    open_way();
    ASSERT_EQ(twin::inject(a, Fault::link_down, 0), 0);
    ASSERT_EQ(twin::inject(b, Fault::cable_pulled, 0), 0);
    EXPECT_TRUE(link_is_up(a)) << "it does not train again for nothing";
    EXPECT_FALSE(changed(a));
    ASSERT_EQ(twin::inject(a, Fault::link_down, 1), 0);
    ASSERT_EQ(twin::inject(a, Fault::cable_pulled, 1), 0);
    ASSERT_EQ(twin::inject(a, Fault::link_down, 0), 0);
    clock.advance_us(1'000'000);
    EXPECT_FALSE(link_is_up(a)) << "the cable is still out";
    ASSERT_EQ(twin::inject(a, Fault::cable_pulled, 0), 0);
    train();
}

TEST_F(TwinFault, PortIsDisabledByRegister208)
{
    open_way();
    ASSERT_EQ(twin::inject(a, Fault::port_disabled, 1), 0);
    EXPECT_NE(twin::csr_read32(a, reg::port_control), 0u);
    expect_down();
    ASSERT_EQ(twin::inject(a, Fault::port_disabled, 0), 0);
    EXPECT_EQ(twin::csr_read32(a, reg::port_control), 0u);
    train();
}

/// The last report; that both were plugged in may be reported late.
void take_down(void *ctx, bool connected)
{
    *static_cast<std::atomic<bool> *>(ctx) = connected;
}

TEST_F(TwinFault, PulledCableIsSeenAtBothEnds)
{
    open_way();
    std::atomic<bool> plugged[2] = {true, true};
    twin::Host *const hosts[] = {a, b};
    for (unsigned i = 0; i < 2; i++) {
        twin::on_cable(hosts[i], take_down, &plugged[i]);
    }
    ASSERT_EQ(twin::inject(a, Fault::cable_pulled, 1), 0);
    expect_down();
    for (unsigned i = 0; i < 2; i++) {
        EXPECT_FALSE(twin::cable_connected(hosts[i]));
        EXPECT_TRUE(await([&] { return !plugged[i]; }));
    }
    ASSERT_EQ(twin::inject(a, Fault::cable_pulled, 0), 0);
    for (unsigned i = 0; i < 2; i++) {
        EXPECT_TRUE(twin::cable_connected(hosts[i]));
        EXPECT_TRUE(await([&] { return bool{plugged[i]}; }));
        twin::on_cable(hosts[i], nullptr, nullptr);
    }
    train();
    store32(a, 2, 0, 3);
    EXPECT_EQ(word_at(memory, 0), 1u) << "the link side of B has to be programmed again";
}

TEST_F(TwinFault, ARemovedCardGivesOnesOrZeros)
{
    open_way();
    for (const uint32_t how : {1u, 2u}) {
        const uint32_t nothing = how == 1 ? ~0u : 0;
        ASSERT_EQ(twin::inject(b, Fault::card_gone, how), 0);
        for (const uint32_t offset : {uint32_t{reg::pci_id}, uint32_t{reg::pci_command_status}}) {
            EXPECT_EQ(twin::csr_read32(b, virt_block + offset), nothing);
            EXPECT_EQ(twin::config_read32(b, offset), nothing);
        }
        twin::csr_write32(b, virt_block + reg::spad[0], 0x77);
        EXPECT_EQ(twin::csr_read32(b, virt_block + reg::spad[0]), nothing);
    }
}

TEST_F(TwinFault, ARemovedCardIsALinkThatIsDownForTheOther)
{
    open_way();
    ASSERT_EQ(twin::inject(b, Fault::card_gone, 1), 0);
    EXPECT_FALSE(link_is_up(a));
    EXPECT_TRUE(changed(a));
    EXPECT_EQ(load32(a, 2, 0), ~0u);
    store32(a, 2, 0, 2);
    EXPECT_EQ(word_at(memory, 0), 1u);
}

TEST_F(TwinFault, ACardThatIsBackIsAsAfterPowerOn)
{
    open_way();
    twin::csr_write32(b, virt_block + reg::spad[0], 0x77);
    twin::csr_write32(b, virt_block + reg::req_id_lut_virt[0], 0x00090001);
    ASSERT_EQ(twin::inject(b, Fault::card_gone, 1), 0);
    ASSERT_EQ(twin::inject(b, Fault::card_gone, 0), 0);
    train();
    EXPECT_EQ(twin::csr_read32(b, virt_block + reg::pci_id), 0x87B010B5u);
    EXPECT_EQ(twin::csr_read32(b, virt_block + reg::spad[0]), 0u);
    EXPECT_EQ(twin::csr_read32(b, virt_block + reg::bar_setup(Side::virt, 2)), 0xE000000Cu);
    EXPECT_EQ(load32(a, 2, 0), ~0u) << "no one has programmed it yet";
    bring_up(b);
    open_inbound(b, 2, memory.bus, mib);
    bring_up(a);
    store32(a, 2, 0, 3);
    EXPECT_EQ(word_at(memory, 0), 3u);
}

TEST_F(TwinFault, ImpossibleArgumentsAreRefused)
{
    open_way();
    for (const Fault fault :
         {Fault::link_down, Fault::port_disabled, Fault::cable_pulled, Fault::freeze_remaps})
        EXPECT_EQ(twin::inject(a, fault, 2), -EINVAL);
    EXPECT_EQ(twin::inject(a, Fault::card_gone, 3), -EINVAL);
    EXPECT_EQ(twin::inject(a, Fault::late_doorbells, ~0u), -EINVAL);
    EXPECT_EQ(twin::inject(a, static_cast<Fault>(1000), 0), -ENOTSUP);
    EXPECT_TRUE(link_is_up(a));
    EXPECT_EQ(load32(a, 2, 0), 1u) << "and nothing has happened";
}

TEST_F(TwinFault, EndsWithItsProcess)
{
    open_way();
    for (const Fault fault : {Fault::link_down, Fault::cable_pulled, Fault::card_gone})
        ASSERT_EQ(twin::inject(b, fault, 1), 0);
    twin::detach(b);
    b = nullptr;
    twin::Error error{};
    ASSERT_EQ(twin::attach(config, &b, &error), 0) << error.text;
    EXPECT_TRUE(twin::cable_connected(a));
    train();
}
} // namespace

// SPDX-License-Identifier: BSD-3-Clause
// One chip between two processes: how they come to be on the same one, whoever is late, stopped or
// dead.
#include "far_host.hpp"

#include <cerrno>

using namespace plx;
using namespace plx::test;

namespace
{

constexpr uint32_t spad0 = virt_block + reg::spad[0]; // one bank, whichever block

class TwinSharedChip : public BetweenProcesses
{
protected:
    twin::Config on_virtual;
    twin::Config on_link;

    TwinSharedChip()
    {
        on_virtual.cable = config.cable;
        on_virtual.topology = twin::Topology::root_port;
        on_virtual.bar2_bytes = 4 * mib;
        on_link = on_virtual;
        on_link.link_side = true;
    }

    void attach_near(const twin::Config &side)
    {
        twin::Error error{};
        ASSERT_EQ(twin::attach(side, &near, &error), 0) << error.text;
    }
    void await_connected(FarHost &far)
    {
        ASSERT_TRUE(await([&] { return twin::cable_connected(near); }));
        ASSERT_TRUE(await([&] { return far(Do::connected) == 1; }));
    }
    /// Whether what one writes is what the other reads.
    void expect_one_chip(FarHost &far, uint32_t value)
    {
        ASSERT_TRUE(await([&] { return far(Do::csr_read, spad0) != ~0u; })) << "link down";
        twin::csr_write32(near, spad0, value);
        EXPECT_EQ(far(Do::csr_read, spad0), value);
        far(Do::csr_write, spad0 + 4, value + 1);
        EXPECT_EQ(twin::csr_read32(near, spad0 + 4), value + 1);
    }
};

TEST_F(TwinSharedChip, StoresArriveInTheOtherProcess)
{
    FarHost far(on_virtual);
    ASSERT_EQ(far(Do::attach), 0);
    attach_near(on_link);
    EXPECT_EQ(twin::config_read32(near, reg::pci_id), 0x87A010B5u) << "as soon as it is attached";
    await_connected(far);
    expect_one_chip(far, 0x100);
    twin::csr_write32(near, link_block + reg::req_id_lut_link[0], 0x00090001);
    twin::config_write32(near, reg::pci_command_status, 0x6);
    far(Do::csr_write, virt_block + reg::pci_command_status, 0x6);
    ASSERT_EQ(far(Do::expose, 4), 0);
    ASSERT_TRUE(await([&] {
        store32(near, 2, 0x80, 0x66);
        return far(Do::word, 0x80) == 0x66;
    }));
}

TEST_F(TwinSharedChip, StaysWithTheSurvivorOnEitherSide)
{
    for (const bool link_dies : {false, true}) {
        SCOPED_TRACE(link_dies);
        FarHost first(link_dies ? on_link : on_virtual);
        FarHost second(link_dies ? on_link : on_virtual);
        ASSERT_EQ(first(Do::attach), 0);
        attach_near(link_dies ? on_virtual : on_link);
        await_connected(first);
        expect_one_chip(first, 0x200);
        first.kill_now();
        ASSERT_TRUE(await([&] { return !twin::cable_connected(near); }));
        EXPECT_EQ(twin::csr_read32(near, spad0), 0x200u);
        ASSERT_EQ(second(Do::attach), 0);
        await_connected(second);
        EXPECT_EQ(second(Do::csr_read, spad0), 0x200);
        expect_one_chip(second, 0x300);
        twin::detach(near);
        near = nullptr;
    }
}

// It cannot wait for a stopped process: it begins with a chip of its own, and moves.
TEST_F(TwinSharedChip, IsFoundLateBehindAStoppedProcess)
{
    FarHost far(on_virtual);
    ASSERT_EQ(far(Do::attach), 0);
    far(Do::csr_write, spad0, 0x42);
    far.stop();
    attach_near(on_link);
    EXPECT_EQ(twin::config_read32(near, reg::pci_id), 0x87A010B5u);
    far.go_on();
    await_connected(far);
    expect_one_chip(far, 0x400);
    EXPECT_EQ(twin::csr_read32(near, link_block + reg::req_id_lut_link[0]), 0x1u)
        << "restarted: what either host had programmed is not there any more";
}

TEST_F(TwinSharedChip, OneThatWasInUseWinsOverANewOne)
{
    FarHost dying(on_virtual);
    FarHost survivor(on_link);
    ASSERT_EQ(dying(Do::attach), 0);
    ASSERT_EQ(survivor(Do::attach), 0);
    ASSERT_TRUE(await([&] { return survivor(Do::connected) == 1; }));
    survivor.stop();
    dying.kill_now();
    attach_near(on_virtual); // finds a dead process's socket, and no one who answers
    twin::csr_write32(near, virt_block + reg::link_err_status, facts::link_err_all);
    survivor.go_on();
    await_connected(survivor);
    expect_one_chip(survivor, 0x500);
    EXPECT_EQ(twin::csr_read32(near, virt_block + reg::link_err_status) &
                  field::err_link_change.mask(),
              field::err_link_change.mask())
        << "to its driver, the link has changed";
}

TEST_F(TwinSharedChip, EndsThatDoNotFitAreRefused)
{
    FarHost far(on_virtual);
    ASSERT_EQ(far(Do::attach), 0);
    twin::Config wrong[] = {on_virtual, on_link, on_link};
    wrong[1].nt = 1;
    wrong[2].topology = twin::Topology::back_to_back;
    wrong[2].link_side = false;
    for (const twin::Config &misfit : wrong) {
        twin::Error error{};
        EXPECT_EQ(twin::attach(misfit, &near, &error), -EINVAL);
        EXPECT_NE(std::string(error.text).find("do not fit"), std::string::npos) << error.text;
    }
    attach_near(on_link);
    await_connected(far);
}

} // namespace

// SPDX-License-Identifier: BSD-3-Clause
// The chip's DMA functions behind EAL's own bus code: found beside the upstream port, taken, given
// back. Registers are plain files, so nothing is copied here.
#include "bus.hpp"

#include <cerrno>
#include <cstdint>
#include <string>

#include <rte_dev.h>
#include <rte_dmadev.h>

namespace
{

using test::FakeFunction;
using test::LogCapture;
using test::sysfs;

constexpr char upstream_port[] = "0000:02:00.0";
constexpr char nt_address[] = "0000:04:00.0";

FakeFunction endpoint()
{
    FakeFunction nt;
    nt.address = nt_address;
    nt.bridges = upstream_port;
    nt.bridges += "/0000:03:08.0";
    return nt;
}

FakeFunction engine(unsigned function, const char *bus_device = "0000:02:00")
{
    FakeFunction dma;
    dma.address = std::string(bus_device) + "." + std::to_string(function);
    dma.device = 0x87D0;
    dma.class_code = 0x088000;
    dma.config = {};
    dma.registers = {{0x000, 0x87D010B5}, {0x004, 0x00100002}, {0x258, 0x003A002E}};
    for (test::FakeBar &bar : dma.bars)
        bar = {};
    dma.bars[0] = {0xF6000000 + function * 0x10000, 0x2000, test::flag_memory};
    return dma;
}

class PciDmaProbe : public test::OnTheBus
{
protected:
    uint32_t reg(const std::string &address, uint64_t offset)
    {
        return sysfs().read32(address, "resource0", offset);
    }
    void take_away(const std::string &address)
    {
        EXPECT_EQ(remove(address), 0) << address;
        sysfs().unplug(address);
    }
};

TEST_F(PciDmaProbe, ANtEndpointTakesItsEnginesAndLetsThemThrough)
{
    const FakeFunction first = engine(1);
    const FakeFunction second = engine(2);
    const FakeFunction strange = engine(1, "0000:05:00");
    for (const FakeFunction *f : {&first, &second, &strange})
        ASSERT_EQ(probe(*f), 0);
    ASSERT_EQ(probe(endpoint(), "dmadev=1"), 0);

    // Entry 2 of the virtual side's requester-ID table: bus 2, device 0, whichever function.
    EXPECT_EQ(reg(nt_address, 0x3E000 + 0xD98), 0x00000201u);
    // The first serves queue pairs, the second is a dmadev.
    const int id = rte_dma_get_dev_id_by_name("0000:04:00.0_dma0");
    ASSERT_GE(id, 0);
    const auto dev = static_cast<int16_t>(id);
    const rte_dma_conf conf{.nb_vchans = 1};
    rte_dma_vchan_conf vchan{};
    vchan.direction = RTE_DMA_DIR_MEM_TO_MEM;
    vchan.nb_desc = 100;
    ASSERT_EQ(rte_dma_configure(dev, &conf), 0);
    ASSERT_EQ(rte_dma_vchan_setup(dev, 0, &vchan), 0);
    ASSERT_EQ(rte_dma_start(dev), 0);
    EXPECT_EQ(reg(second.address, 0x220), 128u) << "slots";
    EXPECT_NE(reg(second.address, 0x214), 0u);
    EXPECT_EQ(reg(second.address, 0x004) & 6, 6u) << "memory and bus mastering";
    EXPECT_EQ(reg(second.address, 0x090) & 0x10, 0x10u) << "E9: no completion time-out";
    EXPECT_EQ(reg(strange.address, 0x090), 0u) << "another card's";

    EXPECT_EQ(remove(second.address), -EBUSY) << "while it is a channel";
    take_away(nt_address);
    EXPECT_LT(rte_dma_get_dev_id_by_name("0000:04:00.0_dma0"), 0);
    EXPECT_EQ(reg(second.address, 0x220), 0u) << "E7: left as it should be found";
    EXPECT_EQ(reg(second.address, 0x004) & 4, 0u);
    for (const FakeFunction *f : {&first, &second, &strange})
        take_away(f->address);
}

/// A link endpoint is function 0 of a device whose engines EAL would come to after it.
class PciLinkDmaProbe : public PciDmaProbe
{
protected:
    static constexpr char link_address[] = "0000:05:00.0";
    static constexpr uint32_t nt0_virtual = 0x3E000, nt0_link = 0x3F000, dma0 = 0x21000;

    FakeFunction link_endpoint(uint32_t assigned)
    {
        FakeFunction nt;
        nt.address = link_address;
        nt.bridges = "0000:04:01.0"; // a root port
        nt.rename(0x87A0, 0x80000000, nt0_link);
        nt.registers[nt0_virtual + 0xD4] = 0xFC00000C; // BAR2 of the other side: 64 MiB, 64-bit
        nt.registers[nt0_virtual + 0xD8] = 0xFFFFFFFF;
        nt.registers[dma0] = 0x87D010B5;
        nt.registers[dma0 + 0x1FC] = assigned;
        return nt;
    }
};

TEST_F(PciLinkDmaProbe, TakesTheEnginesBesideItselfBeforeEalComesToThem)
{
    const FakeFunction third = engine(3, "0000:05:00"), fourth = engine(4, "0000:05:00"),
                       upstream = engine(1);
    for (const FakeFunction *f : {&third, &fourth, &upstream})
        sysfs().plug(*f); // EAL has not looked at them
    ASSERT_EQ(probe(link_endpoint(0x01010000), "dmadev=2"), 0);
    EXPECT_EQ(reg(link_address, nt0_link + 0xDB8), 0x00000501u)
        << "entry 2 of its own side's table: bus 5, device 0";
    EXPECT_EQ(reg(link_address, nt0_virtual + 0xD98), 0u);
    EXPECT_GE(rte_dma_get_dev_id_by_name("0000:05:00.0_dma1"), 0);
    for (const FakeFunction *f : {&third, &fourth})
        EXPECT_EQ(rte_eal_hotplug_add("pci", f->address.c_str(), ""), 0) << "as it is";
    EXPECT_EQ(remove(third.address), -EBUSY) << "while it is a channel";
    take_away(link_address);
    take_away(third.address);
    take_away(fourth.address);
    sysfs().unplug(upstream.address);
}

TEST_F(PciLinkDmaProbe, SaysWhyThereIsNone)
{
    const LogCapture log;
    ASSERT_EQ(probe(link_endpoint(0)), 0);
    EXPECT_NE(log.driver().find("gives all 4 of the chip to other ports"), std::string::npos)
        << log.text();
    take_away(link_address);
}

TEST_F(PciLinkDmaProbe, SaysThatTheyAreNotBound)
{
    FakeFunction kernels = engine(3, "0000:05:00");
    kernels.driver = "plx_dma";
    sysfs().plug(kernels);
    const LogCapture log;
    EXPECT_LT(probe(link_endpoint(0x01010000), "dmadev=1"), 0);
    EXPECT_NE(log.driver().find("dmadev=1: 0 DMA channels can be used: 2 of the chip are this "
                                "side's, but none is bound"),
              std::string::npos)
        << log.text();
    sysfs().unplug(link_address);
    sysfs().unplug(kernels.address);
}

TEST_F(PciDmaProbe, EnginesThatAreNotThereCannotBeDmadevs)
{
    const FakeFunction strange = engine(1, "0000:05:00");
    ASSERT_EQ(probe(strange), 0);
    {
        const LogCapture log;
        EXPECT_LT(probe(endpoint(), "dmadev=1"), 0);
        EXPECT_NE(log.driver().find("dmadev=1: 0 DMA channels"), std::string::npos) << log.text();
    }
    EXPECT_EQ(rawdev(nt_address), -1);
    sysfs().unplug(nt_address);
    take_away(strange.address);
}

TEST_F(PciDmaProbe, ADeadEngineIsPassedOverWithAReason)
{
    FakeFunction dead = engine(1);
    dead.registers[0x238] = 0x43C20000; // in progress, for ever
    const FakeFunction alive = engine(2);
    ASSERT_EQ(probe(dead), 0);
    ASSERT_EQ(probe(alive), 0);
    {
        const LogCapture log;
        ASSERT_EQ(probe(endpoint(), "dmadev=1"), 0) << log.text();
        EXPECT_NE(log.driver().find("DMA channel 0 is not used"), std::string::npos) << log.text();
        EXPECT_NE(log.driver().find("E9"), std::string::npos) << log.text();
    }
    EXPECT_GE(rte_dma_get_dev_id_by_name("0000:04:00.0_dma0"), 0);
    take_away(nt_address);
    take_away(dead.address);
    take_away(alive.address);
}

TEST_F(PciDmaProbe, RefusesAFunctionWithoutRegisters)
{
    FakeFunction small = engine(1);
    small.bars[0].bytes = 0x200;
    FakeFunction absent = engine(2);
    absent.bars[0] = {};
    for (const FakeFunction &f : {small, absent}) {
        const LogCapture log;
        EXPECT_LT(probe(f), 0);
        EXPECT_NE(log.driver().find("registers of a DMA engine"), std::string::npos) << log.text();
        sysfs().unplug(f.address);
    }
}

TEST_F(PciDmaProbe, LeavesAFunctionAloneThatNoDriverOffers)
{
    FakeFunction kernels = engine(1);
    kernels.driver = "plx_dma";
    EXPECT_LT(probe(kernels), 0);
    sysfs().unplug(kernels.address);
}

} // namespace

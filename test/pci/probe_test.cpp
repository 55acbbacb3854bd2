// SPDX-License-Identifier: BSD-3-Clause
// The driver's PCI probe behind EAL's own bus code, on made-up functions.
#include "bus.hpp"

#include <cstdint>
#include <string>

#include <rte_dev.h>
#include <rte_rawdev.h>

namespace
{

using test::FakeFunction;
using test::LogCapture;
using test::sysfs;

constexpr uint32_t nt0_virtual = 0x3E000, nt1_virtual = 0x3C000, nt0_link = 0x3F000;

unsigned lines(const std::string &text)
{
    unsigned count = 0;
    for (const char c : text)
        count += c == '\n';
    return count;
}

class PciProbe : public test::OnTheBus
{
protected:
    uint64_t attribute(const std::string &address, const char *name)
    {
        uint64_t value = 0;
        EXPECT_EQ(rte_rawdev_get_attr(static_cast<uint16_t>(rawdev(address)), name, &value), 0);
        return value;
    }
    /// Refused with one line that has every one of @p words, and nothing is left behind.
    void expect_refused(const FakeFunction &function, std::initializer_list<const char *> words,
                        const char *devargs = "")
    {
        const size_t before = open_descriptors();
        {
            const LogCapture log;
            sysfs().plug(function);
            const size_t plugged = open_descriptors();
            EXPECT_LT(rte_eal_hotplug_add("pci", function.address.c_str(), devargs), 0);
            EXPECT_EQ(open_descriptors(), plugged);
            for (const char *word : words)
                EXPECT_NE(log.driver().find(word), std::string::npos)
                    << "no \"" << word << "\" in: " << log.text();
            EXPECT_EQ(errors(log), 1u) << log.text();
        }
        EXPECT_EQ(rawdev(function.address), -1);
        EXPECT_FALSE(is_mapped());
        sysfs().unplug(function.address);
        EXPECT_EQ(open_descriptors(), before);
    }

private:
    /// Lines of the driver that are neither news nor warnings.
    static unsigned errors(const LogCapture &log)
    {
        const std::string text = log.driver();
        return lines(text) - (text.find("BAR2 is mapped") != std::string::npos);
    }
};

TEST_F(PciProbe, TakesTheFunctionOver)
{
    FakeFunction nt;
    const size_t before = open_descriptors();
    const LogCapture log;
    ASSERT_EQ(probe(nt), 0) << log.text();
    EXPECT_GE(rawdev(nt.address), 0);
    EXPECT_NE(
        log.driver().find("PEX 8749 rev ba, NT0, back to back, pci, window 64 MiB, A-LUT 256"),
        std::string::npos)
        << log.driver();
    // EAL made it a bus master; the driver's stores reached BAR0: the requester-ID table of the
    // virtual side, link BAR0 turned on, memory and bus mastering of the link side.
    EXPECT_EQ(sysfs().read32(nt.address, "config", 4) & 6, 6u);
    EXPECT_NE(sysfs().read32(nt.address, "resource0", nt0_virtual + 0xD94), 0u);
    EXPECT_EQ(sysfs().read32(nt.address, "resource0", nt0_link + 0xE4), 3u);
    EXPECT_EQ(sysfs().read32(nt.address, "resource0", nt0_link + 4) & 6, 6u);

    EXPECT_EQ(remove(nt.address), 0) << log.text();
    EXPECT_EQ(rawdev(nt.address), -1);
    EXPECT_FALSE(is_mapped());
    sysfs().unplug(nt.address);
    EXPECT_EQ(open_descriptors(), before);
}

TEST_F(PciProbe, CanBeProbedAgain)
{
    FakeFunction nt;
    nt.address = "0000:04:00.0";
    ASSERT_EQ(probe(nt), 0);
    ASSERT_EQ(remove(nt.address), 0);
    EXPECT_EQ(rte_eal_hotplug_add("pci", nt.address.c_str(), "queues=2"), 0);
    EXPECT_EQ(remove(nt.address), 0);
    sysfs().unplug(nt.address);
}

TEST_F(PciProbe, WindowIsMappedWriteCombining)
{
    FakeFunction nt;
    nt.address = "0000:05:00.0";
    const LogCapture log;
    ASSERT_EQ(probe(nt), 0);
    EXPECT_EQ(attribute(nt.address, "write_combining"), 1u);
    EXPECT_NE(log.driver().find("mapped write-combining"), std::string::npos) << log.driver();
    EXPECT_EQ(remove(nt.address), 0);
    sysfs().unplug(nt.address);
}

TEST_F(PciProbe, AnUncachedWindowIsWarnedAbout)
{
    FakeFunction nt;
    nt.address = "0000:06:00.0";
    nt.wc_files = false;
    const LogCapture log;
    ASSERT_EQ(probe(nt), 0);
    EXPECT_EQ(attribute(nt.address, "write_combining"), 0u);
    EXPECT_NE(log.driver().find("mapped uncached"), std::string::npos) << log.driver();
    EXPECT_NE(log.driver().find("base=0x3800000000 size=0x4000000 type=write-combining"),
              std::string::npos)
        << "no command that mends it: " << log.driver();
    EXPECT_EQ(remove(nt.address), 0);
    sysfs().unplug(nt.address);
}

TEST_F(PciProbe, Nt1IsMatched)
{
    FakeFunction nt;
    nt.address = "0000:07:00.0";
    nt.rename(0x87B1, 1, nt1_virtual);
    nt.registers[0x360] = 0xC0292800;
    const LogCapture log;
    ASSERT_EQ(probe(nt), 0) << log.text();
    EXPECT_NE(log.driver().find("NT1"), std::string::npos) << log.driver();
    EXPECT_EQ(remove(nt.address), 0);
    sysfs().unplug(nt.address);
}

TEST_F(PciProbe, OtherDevicesAreLeftAlone)
{
    FakeFunction nic;
    nic.address = "0000:08:00.0";
    nic.vendor = 0x1234;
    nic.device = 0x5678;
    nic.class_code = 0x020000;
    const LogCapture log;
    EXPECT_LT(probe(nic), 0);
    EXPECT_EQ(log.driver(), "");
    EXPECT_EQ(sysfs().read32(nic.address, "config", 4) & 6, 2u);
    sysfs().unplug(nic.address);
}

TEST_F(PciProbe, AKernelDriverThatOffersNothingIsNamed)
{
    FakeFunction nt;
    nt.address = "0000:09:00.0";
    nt.driver = "ntb_hw_plx";
    expect_refused(nt, {"kernel driver ntb_hw_plx gives user space no access",
                        "driverctl set-override 0000:09:00.0 vfio-pci"});
}

TEST_F(PciProbe, BadDevargsAreRefusedBeforeAnythingIsMapped)
{
    FakeFunction nt;
    nt.address = "0000:0a:00.0";
    expect_refused(nt, {"unknown or malformed devarg"}, "cable=/tmp/x");
    expect_refused(nt, {"queues=65"}, "queues=65");
}

TEST_F(PciProbe, BarsThatWillNotDoAreNamed)
{
    FakeFunction good;
    good.address = "0000:0b:00.0";
    FakeFunction nt = good;
    nt.bars[0].bytes = 64 << 10;
    expect_refused(nt, {"BAR0", "256 KiB"});
    nt = good;
    nt.bars[2] = {};
    expect_refused(nt, {"BAR2", "absent"});
    nt = good;
    nt.bars[2].bytes = 48 << 20;
    expect_refused(nt, {"BAR2", "power of two"});
    nt = good;
    nt.bars[2].bytes = 512 << 10;
    expect_refused(nt, {"BAR2", "at least 1024 KiB"});
    nt = good;
    nt.bars[2] = {0xD0000000, 64 << 20, test::flag_memory | test::flag_prefetch};
    expect_refused(nt, {"BAR2", "32-bit"});
    nt = good;
    nt.bars[4] = {};
    expect_refused(nt, {"BAR4", "absent"});
    nt = good;
    nt.bars[4].start = 0;
    expect_refused(nt, {"BAR4", "no address"});
}

TEST_F(PciProbe, AWindowAbove48BitsIsForTheCpuOnly)
{
    FakeFunction nt;
    nt.address = "0000:0c:00.0";
    nt.bars[2].start = uint64_t{1} << 48;
    const LogCapture log;
    ASSERT_EQ(probe(nt), 0) << log.text();
    EXPECT_NE(log.driver().find("DMA engines do not reach"), std::string::npos) << log.driver();
    EXPECT_EQ(remove(nt.address), 0);
    sysfs().unplug(nt.address);
}

TEST_F(PciProbe, DeadChipsAreRefused)
{
    FakeFunction nt;
    nt.address = "0000:0d:00.0";
    for (uint32_t offset = 0; offset < 4096; offset += 4)
        nt.config[offset] = ~0u;
    expect_refused(nt, {"configuration reads"});

    nt = FakeFunction();
    nt.address = "0000:0d:00.0";
    nt.registers[nt0_virtual] = ~0u;
    expect_refused(nt, {"BAR0 does not show"});
    nt.registers.clear(); // what EAL maps over BARs that have gone
    expect_refused(nt, {"BAR0 does not show"});
}

TEST_F(PciProbe, SmallConfigurationSpaceIsMadeUpForByBar0)
{
    FakeFunction nt;
    nt.address = "0000:12:00.0";
    nt.config_bytes = 256;
    expect_refused(nt, {"extended configuration space"});
    nt.mirror_bars(nt0_virtual);
    const LogCapture log;
    ASSERT_EQ(probe(nt), 0) << log.text();
    EXPECT_NE(log.driver().find("PEX 8749"), std::string::npos) << log.driver();
    EXPECT_EQ(remove(nt.address), 0);
    sysfs().unplug(nt.address);
}

TEST_F(PciProbe, TheLinkSideIsTakenOverWithTheSizesOfTheOtherBlock)
{
    FakeFunction nt;
    nt.address = "0000:13:00.0";
    nt.rename(0x87A0, 0x80000000, nt0_link);
    expect_refused(nt, {"BAR2 of a power of two on the other side"});
    nt.registers[nt0_virtual + 0xD4] = 0xFC00000C; // 64 MiB
    nt.registers[nt0_virtual + 0xD8] = 0xFFFFFFFF;
    const LogCapture log;
    ASSERT_EQ(probe(nt), 0) << log.text();
    EXPECT_NE(log.driver().find("NT0, on the link side, pci"), std::string::npos) << log.driver();
    EXPECT_EQ(remove(nt.address), 0);
    sysfs().unplug(nt.address);
}

TEST_F(PciProbe, CapellaIsRefusedByItsChipId)
{
    FakeFunction nt;
    nt.address = "0000:0e:00.0";
    nt.config[0xE0] = 0x879610B5;
    expect_refused(nt, {"Capella", "0x8796"});
}

TEST_F(PciProbe, TwoCardsAreTwoDevices)
{
    FakeFunction first, second;
    first.address = "0000:10:00.0";
    second.address = "0000:11:00.0";
    ASSERT_EQ(probe(first), 0);
    ASSERT_EQ(probe(second), 0);
    EXPECT_NE(rawdev(first.address), rawdev(second.address));
    EXPECT_EQ(remove(first.address), 0);
    EXPECT_GE(rawdev(second.address), 0);
    EXPECT_EQ(remove(second.address), 0);
    sysfs().unplug(first.address);
    sysfs().unplug(second.address);
}

} // namespace

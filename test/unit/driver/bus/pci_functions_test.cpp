// SPDX-License-Identifier: BSD-3-Clause
// Which PCI functions are taken for the DMA engines of an NT endpoint.
#include "bus/pci_functions.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace
{

using plx::facts::Side;
using plx::pmd::dma_functions_of;
using plx::pmd::PciFunction;

PciFunction engine(uint8_t bus, uint8_t function, uint8_t device = 0)
{
    return {0, bus, device, function, 0x10B5, 0x87D0, 0x088000};
}

std::vector<unsigned> found(const char *path, const std::vector<PciFunction> &all,
                            unsigned room = 4, Side side = Side::virt)
{
    std::vector<unsigned> out(room);
    out.resize(dma_functions_of(side, path, all, out));
    return out;
}

using Found = std::vector<unsigned>;
constexpr char nt[] = "/sys/devices/pci0000:00/0000:00:01.0/0000:02:00.0/0000:03:08.0/0000:04:00.0";

TEST(PciDma, BesideTheUpstreamPortInTheOrderOfTheirFunctions)
{
    EXPECT_EQ(found(nt, {engine(2, 3), engine(2, 1), engine(2, 2), engine(2, 4)}),
              (Found{1, 2, 0, 3}));
    EXPECT_EQ(found(nt, {engine(2, 3)}), Found{0}) << "some may be bound, some not";
    EXPECT_EQ(found(nt, {}), Found{});
}

TEST(PciDma, OfALinkSideBesideTheEndpointItself)
{
    const std::vector<PciFunction> all = {engine(4, 4), engine(2, 1), engine(4, 3), engine(3, 1)};
    EXPECT_EQ(found(nt, all, 4, Side::link), (Found{2, 0})) << "the functions of its own device";
    EXPECT_EQ(found(nt, all, 4, Side::virt), (Found{1}));
    constexpr char below_a_root_port[] = "/sys/devices/pci0000:00/0000:00:01.0/0000:04:00.0";
    EXPECT_EQ(found(below_a_root_port, all, 4, Side::link), (Found{2, 0}));
    EXPECT_EQ(found("0000:04:00.0", all, 4, Side::link), Found{});
}

TEST(PciDma, TheUpstreamPortMayHaveAnyDeviceNumber)
{
    constexpr char path[] = "/x/0001:a2:1f.0/0001:a3:08.0/0001:a4:00.0";
    PciFunction f = engine(0xA2, 1, 0x1F);
    f.domain = 1;
    EXPECT_EQ(found(path, {f}), Found{0});
    EXPECT_EQ(f.requester(), 0xA2F9);
}

TEST(PciDma, NoOtherCardsEngines)
{
    PciFunction other_domain = engine(2, 1);
    other_domain.domain = 1;
    const std::vector<PciFunction> others = {engine(3, 1), engine(4, 1), engine(2, 1, 1),
                                             engine(2, 0), engine(2, 5), other_domain};
    EXPECT_EQ(found(nt, others), Found{});
}

TEST(PciDma, NoOtherKindOfFunction)
{
    PciFunction bridge = engine(2, 1);
    bridge.class_id = 0x060400;
    PciFunction stranger = engine(2, 2);
    stranger.vendor_id = 0x8086;
    PciFunction endpoint = engine(2, 3);
    endpoint.device_id = 0x87B0;
    EXPECT_EQ(found(nt, {bridge, stranger, endpoint}), Found{});
    PciFunction alternative = engine(2, 1);
    alternative.device_id = 0x87E0;
    PciFunction intel = engine(2, 2);
    intel.vendor_id = 0x8086;
    intel.device_id = 0x2952;
    EXPECT_EQ(found(nt, {alternative, intel}), (Found{0, 1}));
}

TEST(PciDma, NoneWhereThePathDoesNotLeadThroughTheSwitch)
{
    const std::vector<PciFunction> all = {engine(0, 1), engine(2, 1), engine(4, 1)};
    for (const char *path : {"", "/", "0000:04:00.0", "/0000:04:00.0", "0000:02:00.0/0000:04:00.0/",
                             "/sys/bus/pci/devices/0000:04:00.0",
                             "/sys/devices/pci0000:00/0000:00:01.0/0000:04:00.0", "///", "a/b/c"})
        EXPECT_EQ(found(path, all), Found{}) << path;
}

TEST(PciDma, NoMoreThanThereIsRoomFor)
{
    EXPECT_EQ(found(nt, {engine(2, 1), engine(2, 2), engine(2, 3)}, 2), (Found{0, 1}));
    EXPECT_EQ(found(nt, {engine(2, 1)}, 0), Found{});
}

} // namespace

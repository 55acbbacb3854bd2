// SPDX-License-Identifier: BSD-3-Clause
// Every function's capability lists, walked as a kernel walks them.
#include "bench_pair.hpp"
#include "dma_bench.hpp"
#include "root_port_pair.hpp"

#include <functional>

using namespace plx;
using namespace plx::test;

namespace
{
using Read = std::function<uint32_t(uint32_t)>;
using Write = std::function<void(uint32_t, uint32_t)>;

constexpr uint32_t listed = 1u << 20; // of the status register

/// Where the capability lies; 0: nowhere.
uint32_t find(const Read &read, uint8_t id)
{
    if ((read(reg::pci_command_status) & listed) == 0)
        return 0;
    uint32_t at = read(reg::pci_cap_pointer) & 0xFC;
    for (unsigned hop = 0; hop < 48 && at >= 0x40; hop++) {
        const uint32_t head = read(at);
        if ((head & 0xFF) == id)
            return at;
        at = head >> 8 & 0xFC;
    }
    return 0;
}
uint32_t find_extended(const Read &read, uint16_t id)
{
    uint32_t at = 0x100;
    for (unsigned hop = 0; hop < 480 && at >= 0x100; hop++) {
        const uint32_t head = read(at);
        if (head == 0)
            return 0;
        if ((head & 0xFFFF) == id)
            return at;
        at = head >> 20 & 0xFFC;
    }
    return 0;
}

void expect_lists(const Read &read)
{
    EXPECT_EQ(find(read, 0x01), 0x40u) << "power management";
    EXPECT_EQ(find(read, 0x05), 0x48u) << "MSI";
    EXPECT_EQ(find(read, 0x10), 0x68u) << "PCI Express";
    EXPECT_EQ(find(read, 0x09), 0u);
    EXPECT_EQ(find_extended(read, 0x0001), 0xFB4u) << "error reporting";
    const uint32_t vendor_specific = find_extended(read, 0x000B);
    ASSERT_NE(vendor_specific, 0u);
    EXPECT_EQ(read(vendor_specific + 4) & 0xFFFF, 1u);
    EXPECT_EQ(read(vendor_specific + 8), 0x874910B5u) << "chip id";
    EXPECT_EQ(read(vendor_specific + 0xC) & 0xFF, 0xBAu);
    EXPECT_EQ(read(0x68) >> 16 & 0xF, 2u) << "version, with the second device control";
    EXPECT_EQ(read(0x68) >> 20 & 0xF, 0u) << "an endpoint";
    EXPECT_NE(read(0x48) & 1u << 23, 0u) << "64-bit MSI: its data is at 54";
}

void expect_lists_that_stay(const Read &read, const Write &write)
{
    expect_lists(read);
    for (const uint32_t at :
         {0x04u, 0x34u, 0x40u, 0x48u, 0x68u, 0x100u, 0xFB4u, 0xB70u, 0xB74u, 0xB78u, 0xB7Cu})
        for (const uint32_t value : {0u, ~0u})
            write(at, value);
    expect_lists(read);
}

class TwinCapabilities : public MemPair
{
protected:
    Read config_read = [this](uint32_t at) { return twin::config_read32(a, at); };
    Write config_write = [this](uint32_t at, uint32_t value) {
        twin::config_write32(a, at, value);
    };
};

TEST_F(TwinCapabilities, OfTheVirtualFunction)
{
    attach_both();
    expect_lists_that_stay(config_read, config_write);
}

TEST_F(TwinCapabilities, OfAChipFullOfGarbage)
{
    config.state = twin::ChipState::random;
    attach_both();
    expect_lists(config_read);
}

TEST_F(TwinCapabilities, OfTheLinkBlockAlsoAfterALinkLoss)
{
    set_up_both();
    const Read read = [this](uint32_t at) { return twin::csr_read32(a, link_block + at); };
    expect_lists(read);
    twin::inject(b, twin::Fault::link_down, 1);
    EXPECT_EQ(read(reg::pci_bar[0]), 0u) << "reset";
    expect_lists(read);
}

TEST_F(TwinCapabilities, OfADmaFunctionAlsoAfterItsReset)
{
    attach_both();
    const Read read = [this](uint32_t at) { return twin::dma_read32(a, 1, at); };
    const Write write = [this](uint32_t at, uint32_t value) { twin::dma_write32(a, 1, at, value); };
    expect_lists_that_stay(read, write);
    write(dma::dev_ctl, 0x8000);
    EXPECT_EQ(read(dma::ring_count), 0u) << "reset";
    expect_lists(read);
}

class TwinLinkSideCapabilities : public RootPortPair
{
};

TEST_F(TwinLinkSideCapabilities, OfTheLinkFunction)
{
    attach_both();
    expect_lists_that_stay(
        [this](uint32_t at) { return twin::config_read32(b, at); },
        [this](uint32_t at, uint32_t value) { twin::config_write32(b, at, value); });
}
} // namespace

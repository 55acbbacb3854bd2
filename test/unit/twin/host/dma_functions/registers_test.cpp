// SPDX-License-Identifier: BSD-3-Clause
// The registers of the DMA functions, and what memory the engines know.
#include "bench_pair.hpp"

#include "plx_ids.hpp"

using namespace plx;
using namespace plx::test;

namespace
{
using facts::detail::at;
using facts::detail::field_of;

constexpr uint32_t ctrl = at("DMA_CTRL_STATUS");
constexpr uint32_t intr = at("DMA_INTR_CTRL_STATUS");
constexpr uint32_t dev_cap = at("DMA_PCIE_DEV_CAP");

class TwinDmaRegisters : public MemPair
{
protected:
    uint32_t read(uint32_t offset, unsigned channel = 0)
    {
        return twin::dma_read32(a, channel, offset);
    }
    void write(uint32_t offset, uint32_t value, unsigned channel = 0)
    {
        twin::dma_write32(a, channel, offset, value);
    }
};

TEST_F(TwinDmaRegisters, EveryChannelIsAFunctionOfItsOwn)
{
    attach_both();
    ASSERT_EQ(twin::dma_channels(a), 4u);
    for (unsigned channel = 0; channel < 4; channel++) {
        EXPECT_EQ(read(reg::pci_id, channel), 0x87D010B5u);
        EXPECT_EQ(read(reg::pci_class_revision, channel) >> 8, facts::class_dma);
        EXPECT_EQ(twin::dma_requester(a, channel), 0x0100 + channel + 1);
        write(at("DMA_RING_ADDR_LO"), 0x1000 * (channel + 1), channel);
        EXPECT_EQ(twin::csr_read32(a, facts::dma_base(channel) + at("DMA_RING_ADDR_LO")),
                  0x1000 * (channel + 1));
    }
    EXPECT_EQ(read(reg::pci_id, 4), ~0u);
    EXPECT_EQ(read(0x1000), ~0u);
    write(at("DMA_RING_ADDR_LO"), 1, 4);
}

TEST_F(TwinDmaRegisters, AChipMayHaveFewerOrNone)
{
    config.dma_channels = 2;
    config.switches.dma_flr = false;
    attach_both();
    EXPECT_EQ(twin::dma_channels(a), 2u);
    EXPECT_EQ(read(dev_cap), 0x8FE4u);
    EXPECT_EQ(read(at("DMA_BANDWIDTH")), 0x01000004u) << "as an EEPROM has it for two";
    EXPECT_EQ(twin::dma_channel(a, 0), 0u);
    EXPECT_EQ(twin::dma_channel(a, 1), 2u) << "the other channels expose them their memory";
    EXPECT_EQ(twin::csr_read32(a, facts::dma_base(1)), 0u) << "no such block";
    EXPECT_EQ(twin::csr_read32(a, facts::dma_base(2)), 0x87D010B5u);
    EXPECT_EQ(twin::csr_read32(a, facts::dma_base(3)), 0u) << "no such block";
    twin::detach(a);
    config.dma_channels = 5;
    twin::Error error{};
    EXPECT_EQ(twin::attach(config, &a, &error), -EINVAL);
    a = nullptr;
}

TEST_F(TwinDmaRegisters, PowerOnValuesAreThoseOfABoardWithFour)
{
    attach_both();
    EXPECT_EQ(read(ctrl), 0x03C20000u);
    EXPECT_EQ(read(at("DMA_BANDWIDTH")), 0x01000010u);
    EXPECT_EQ(read(at("DMA_STA_RAM_THRESH")), 0x001D0018u);
    EXPECT_EQ(read(dev_cap), 0x10008FE4u);
    EXPECT_EQ(read(reg::captured_bus), 1u);
}

TEST_F(TwinDmaRegisters, StatusIsNotStoredAndTuningIs)
{
    attach_both();
    write(ctrl, 0x03C60000 | field_of("DMA_CTRL_STATUS", "IN_PROGRESS").mask());
    EXPECT_EQ(read(ctrl), 0x03C60000u);
    write(intr, 0xFFFF0000);
    EXPECT_EQ(read(intr), 0u);
    write(at("DMA_RING_LAST_LO"), 0x1234);
    EXPECT_EQ(read(at("DMA_RING_LAST_LO")), 0u) << "read-only";
}

TEST_F(TwinDmaRegisters, SurpriseRemovalTakesThemAlong)
{
    attach_both();
    twin::inject(a, twin::Fault::card_gone, 1);
    EXPECT_EQ(read(ctrl), ~0u);
    write(at("DMA_RING_COUNT"), 5);
    twin::inject(a, twin::Fault::card_gone, 0);
    EXPECT_EQ(read(ctrl), 0x03C20000u) << "as after power-on";
    EXPECT_EQ(read(at("DMA_RING_COUNT")), 0u);
}

TEST_F(TwinDmaRegisters, MemoryIsRefusedWhereItCannotBe)
{
    attach_both();
    static uint8_t local[8192];
    const twin::Bar window = twin::bar(a, 2);
    twin::Memory exposed{};
    ASSERT_EQ(twin::memory_add(a, mib, -1, false, &exposed), 0);
    EXPECT_EQ(window.bus, reinterpret_cast<uintptr_t>(window.base));
    EXPECT_EQ(twin::dma_map(a, local, 0x1000, 0), -EINVAL);
    EXPECT_EQ(twin::dma_map(a, nullptr, 0x1000, 16), -EINVAL);
    EXPECT_EQ(twin::dma_map(a, local, (uint64_t{1} << 48) - 4096, 8192), -EINVAL);
    EXPECT_EQ(twin::dma_map(a, local, ~uint64_t{0} - 4095, 8192), -EINVAL);
    EXPECT_EQ(twin::dma_map(a, local, window.bus + window.bytes - 1, 16), -EINVAL);
    EXPECT_EQ(twin::dma_map(a, local, exposed.bus - 16, 17), -EINVAL);
    ASSERT_EQ(twin::dma_map(a, local, 0x1000, 4096), 0);
    EXPECT_EQ(twin::dma_map(a, local, 0x1FFF, 1), -EINVAL) << "taken";
    EXPECT_EQ(twin::dma_map(a, local, 0x2000, 4096), 0) << "beside it";
    EXPECT_EQ(twin::dma_unmap(a, 0x1000, 8192), -ENOENT) << "not as it was given";
    EXPECT_EQ(twin::dma_unmap(a, 0x1000, 4096), 0);
    EXPECT_EQ(twin::dma_unmap(a, 0x1000, 4096), -ENOENT);
    EXPECT_EQ(twin::dma_unmap(a, exposed.bus, mib), -ENOENT) << "not given by dma_map";
    EXPECT_EQ(twin::memory_remove(a, exposed), 0);
    EXPECT_EQ(twin::dma_map(a, local, exposed.bus, mib), 0);
}

TEST_F(TwinDmaRegisters, ThereIsAnEndToRanges)
{
    attach_both();
    static uint8_t local[16];
    int code = 0;
    uint64_t given = 0;
    for (; code == 0 && given < 100'000; given++)
        code = twin::dma_map(a, local, (1 + given) * 64, sizeof(local));
    EXPECT_EQ(code, -ENOSPC);
    EXPECT_EQ(given, 65'536u - 2 + 1) << "the two windows have their own";
}
} // namespace

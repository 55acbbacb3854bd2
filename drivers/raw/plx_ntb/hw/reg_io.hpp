// SPDX-License-Identifier: BSD-3-Clause
// Register access: the only path from chip operations to a chip, be it silicon, the twin or a
// test's fake. Control path only: nothing here is called per message.
#ifndef PLX_NTB_HW_REG_IO_HPP
#define PLX_NTB_HW_REG_IO_HPP

#include <cstdint>

namespace plx::hw
{

/// How to reach the registers of one chip. Plain function pointers, so that one compiled driver
/// runs on silicon and on the twin, and a test records every access.
struct RegIoOps {
    /// Reads the 32-bit register at CSR offset @p offset (bytes, multiple of 4, below 256 KiB).
    /// All-ones when the chip cannot be reached. Flushes earlier writes to the same chip.
    uint32_t (*read32)(void *ctx, uint32_t offset);
    /// Writes the 32-bit register at CSR offset @p offset. Posted: only a later read32 of the same
    /// chip shows that it has taken effect.
    void (*write32)(void *ctx, uint32_t offset, uint32_t value);
    /// Reads @p offset (bytes, multiple of 4, below 4096) of the NT function's own PCI
    /// configuration space. NULL where there is none, as for the peer's chip.
    uint32_t (*config_read32)(void *ctx, uint32_t offset);
    /// Writes the NT function's own PCI configuration space. NULL where there is none.
    void (*config_write32)(void *ctx, uint32_t offset, uint32_t value);
    /// Waits for @p microseconds; a test's clock may advance instead.
    void (*delay_us)(void *ctx, uint32_t microseconds);
};

/// Access to a chip: operations and their context. Copied freely; owns nothing.
struct RegIo {
    const RegIoOps *ops = nullptr;
    void *ctx = nullptr;

    uint32_t read32(uint32_t offset) const { return ops->read32(ctx, offset); }
    void write32(uint32_t offset, uint32_t value) const { ops->write32(ctx, offset, value); }
    uint32_t config_read32(uint32_t offset) const { return ops->config_read32(ctx, offset); }
    void config_write32(uint32_t offset, uint32_t value) const
    {
        ops->config_write32(ctx, offset, value);
    }
    void delay_us(uint32_t microseconds) const { ops->delay_us(ctx, microseconds); }
};

} // namespace plx::hw

#endif

// SPDX-License-Identifier: BSD-3-Clause
// The registers and fields of a DMA function, as the twin uses them.
#ifndef PLX_TWIN_CHIP_DMA_REGS_HPP
#define PLX_TWIN_CHIP_DMA_REGS_HPP

#include "plx_fields.hpp"

namespace plx::twin
{

namespace dma_reg
{
using facts::detail::at;

inline constexpr uint32_t dev_cap = at("DMA_PCIE_DEV_CAP");
inline constexpr uint32_t dev_ctl_status = at("DMA_PCIE_DEV_CTL_STATUS");
inline constexpr uint32_t dev_ctl2 = at("DMA_PCIE_DEV_CTL2");
inline constexpr uint32_t global_control = at("DMA_GLOBAL_CONTROL");
inline constexpr uint32_t port_assign = at("DMA_PORT_ASSIGN");
inline constexpr uint32_t block_src_lo = at("DMA_BLK_SRC_LO");
inline constexpr uint32_t block_dst_lo = at("DMA_BLK_DST_LO");
inline constexpr uint32_t block_size = at("DMA_BLK_XFER_SIZE");
inline constexpr uint32_t ring_lo = at("DMA_RING_ADDR_LO");
inline constexpr uint32_t ring_hi = at("DMA_RING_ADDR_HI");
inline constexpr uint32_t ring_next = at("DMA_RING_NEXT_LO");
inline constexpr uint32_t ring_count = at("DMA_RING_COUNT");
inline constexpr uint32_t ring_last = at("DMA_RING_LAST_LO");
inline constexpr uint32_t ring_last_size = at("DMA_RING_LAST_SIZE");
inline constexpr uint32_t bandwidth = at("DMA_BANDWIDTH");
inline constexpr uint32_t prefetch = at("DMA_PREFETCH");
inline constexpr uint32_t ctrl_status = at("DMA_CTRL_STATUS");
inline constexpr uint32_t intr_ctrl_status = at("DMA_INTR_CTRL_STATUS");
inline constexpr uint32_t station_ram_thresholds = at("DMA_STA_RAM_THRESH");
} // namespace dma_reg

namespace dma_field
{
using facts::Field;
using facts::detail::field_of;

inline constexpr Field flr_capable = field_of("DMA_PCIE_DEV_CAP", "FLR_CAPABLE");
/// Initiate FLR, of the capability's layout (G).
inline constexpr Field initiate_flr = {"DMA_PCIE_DEV_CTL_STATUS", "INITIATE_FLR", 15, 15};
inline constexpr Field timeout_off = field_of("DMA_PCIE_DEV_CTL2", "CPL_TIMEOUT_DISABLE");
inline constexpr Field halt_reads = field_of("DMA_BANDWIDTH", "HALT_READS");
inline constexpr Field fetch_limit = field_of("DMA_PREFETCH", "MAX_DESC_FETCH");

inline constexpr Field pause = field_of("DMA_CTRL_STATUS", "GRACEFUL_PAUSE");
inline constexpr Field abort = field_of("DMA_CTRL_STATUS", "ABORT");
inline constexpr Field write_back = field_of("DMA_CTRL_STATUS", "WRITE_BACK_EN");
inline constexpr Field start = field_of("DMA_CTRL_STATUS", "START");
inline constexpr Field stop_at_end = field_of("DMA_CTRL_STATUS", "RING_STOP_MODE");
inline constexpr Field mode = field_of("DMA_CTRL_STATUS", "DESC_MODE");
inline constexpr Field invalid = field_of("DMA_CTRL_STATUS", "DESC_INVALID");
inline constexpr Field pause_done = field_of("DMA_CTRL_STATUS", "PAUSE_DONE");
inline constexpr Field abort_done = field_of("DMA_CTRL_STATUS", "ABORT_DONE");
inline constexpr Field stop_done = field_of("DMA_CTRL_STATUS", "IMM_PAUSE_DONE");
inline constexpr Field relaxed_data_write = field_of("DMA_CTRL_STATUS", "RO_DATA_WRITE");
inline constexpr Field in_progress = field_of("DMA_CTRL_STATUS", "IN_PROGRESS");
inline constexpr Field header_log = field_of("DMA_CTRL_STATUS", "HEADER_LOG");

inline constexpr Field error = field_of("DMA_INTR_CTRL_STATUS", "ERROR");
inline constexpr Field descriptor_done = field_of("DMA_INTR_CTRL_STATUS", "DESC_DONE");
inline constexpr Field invalid_enable = field_of("DMA_INTR_CTRL_STATUS", "INV_DESC_EN");
inline constexpr Field invalid_descriptor = field_of("DMA_INTR_CTRL_STATUS", "INV_DESC");

inline constexpr Field desc_bytes = field_of("DMA_DESC_DW0", "SIZE");
inline constexpr Field desc_extended = field_of("DMA_DESC_DW0", "EXTENDED");
inline constexpr Field desc_const_dst = field_of("DMA_DESC_DW0", "CONST_DST");
inline constexpr Field desc_const_src = field_of("DMA_DESC_DW0", "CONST_SRC");
inline constexpr Field desc_interrupt = field_of("DMA_DESC_DW0", "INT_WHEN_DONE");
inline constexpr Field desc_valid = field_of("DMA_DESC_DW0", "VALID");
inline constexpr Field desc_dst_hi = field_of("DMA_DESC_DW1", "DST_ADDR_HI");
inline constexpr Field desc_src_hi = field_of("DMA_DESC_DW1", "SRC_ADDR_HI");
inline constexpr Field done_write_failed = field_of("DMA_DESC_DW0_WB", "WRITE_FAIL");
inline constexpr Field done_read_failed = field_of("DMA_DESC_DW0_WB", "READ_FAIL");
inline constexpr Field done_success = field_of("DMA_DESC_DW0_WB", "SUCCESS");
} // namespace dma_field

/// Where descriptors come from.                                              LPD;SDK;VCA R
inline constexpr uint32_t dma_mode_block = 0;
inline constexpr uint32_t dma_mode_host_ring = 2;

/// DMA_CTRL_STATUS: bits that a write stores, and those that it clears by ones; START is a strobe
/// and IN_PROGRESS read-only (5.3). The factory bit does nothing here.
inline constexpr uint32_t dma_ctrl_cleared =
    dma_field::invalid.mask() | dma_field::pause_done.mask() | dma_field::abort_done.mask() |
    dma_field::stop_done.mask() | dma_field::header_log.mask();
inline constexpr uint32_t dma_ctrl_stored =
    ~(dma_ctrl_cleared | dma_field::start.mask() | dma_field::in_progress.mask());
/// DMA_INTR_CTRL_STATUS: the events that happened (5.4).
inline constexpr uint32_t dma_intr_cleared = 0x003F0000;

} // namespace plx::twin

#endif

// SPDX-License-Identifier: BSD-3-Clause
// The bit fields of the registers in plx_regs.hpp and of the DMA descriptor: a table of all, names
// for those that code uses, and the register values that consist of several.
#ifndef PLX_FIELDS_HPP
#define PLX_FIELDS_HPP

#include "plx_regs.hpp"

namespace plx::facts
{

/// Bits @p msb to @p lsb of a 32-bit register.
struct Field {
    std::string_view reg;
    std::string_view name;
    uint8_t msb;
    uint8_t lsb;

    constexpr uint32_t mask() const
    {
        return (msb == 31 ? ~uint32_t{0} : (uint32_t{1} << (msb + 1)) - 1) &
               ~((uint32_t{1} << lsb) - 1);
    }
    constexpr uint32_t get(uint32_t value) const { return (value & mask()) >> lsb; }
    /// @p value at the field's place; bits too many for the field are cut off.
    constexpr uint32_t put(uint32_t value) const { return value << lsb & mask(); }
    /// @p word with the field replaced.
    constexpr uint32_t set(uint32_t word, uint32_t value) const
    {
        return (word & ~mask()) | put(value);
    }
};

/// Every documented field, by register.
inline constexpr Field fields[] = {
    // clang-format off
    {"PORT_CONTROL", "PORT_DISABLE", 7, 0},
    {"RECOVERY_DIAGNOSTIC", "PORT_SELECT", 31, 24},
    {"RECOVERY_DIAGNOSTIC", "COUNT", 15, 0},
    {"EEP_STATUS_CONTROL", "BLOCK_ADDR", 12, 0},
    {"EEP_STATUS_CONTROL", "COMMAND", 15, 13},
    {"EEP_STATUS_CONTROL", "PRESENT", 17, 16},
    {"EEP_STATUS_CONTROL", "CMD_BUSY", 18, 18},
    {"EEP_STATUS_CONTROL", "CRC_ERROR", 19, 19},
    {"EEP_STATUS_CONTROL", "ADDR_UPPER_BIT", 20, 20},
    {"EEP_STATUS_CONTROL", "ADDR_WIDTH_OVERRIDE", 21, 21},
    {"EEP_STATUS_CONTROL", "ADDR_WIDTH", 23, 22},
    {"EEP_STATUS_CONTROL", "NOT_READY", 24, 24},
    {"EEP_STATUS_CONTROL", "WRITE_ENABLED", 25, 25},
    {"EEP_STATUS_CONTROL", "BLOCK_PROTECT", 27, 26},
    {"EEP_STATUS_CONTROL", "WRITE_STATUS", 30, 28},
    {"EEP_STATUS_CONTROL", "WRITE_PROTECT_EN", 31, 31},
    {"MGMT_PORT", "ACTIVE_PORT", 4, 0},
    {"MGMT_PORT", "ACTIVE_ENABLE", 5, 5},
    {"MGMT_PORT", "REDUNDANT_PORT", 12, 8},
    {"MGMT_PORT", "REDUNDANT_ENABLE", 13, 13},
    {"VS_ENABLE", "VS_MASK", 7, 0},
    {"VS0_UPSTREAM", "UPSTREAM_PORT", 4, 0},
    {"VS0_UPSTREAM", "NT0_PORT", 12, 8},
    {"VS0_UPSTREAM", "NT0_ENABLE", 13, 13},
    {"VS0_UPSTREAM", "NT1_PORT", 20, 16},
    {"VS0_UPSTREAM", "NT1_ENABLE", 21, 21},
    {"VS0_UPSTREAM", "DMA_MODE", 24, 24},
    {"VS0_UPSTREAM", "NT0_ALUT_ENABLE", 30, 30},
    {"VS0_UPSTREAM", "NT1_ALUT_ENABLE", 31, 31},
    {"VS1_UPSTREAM", "UPSTREAM_PORT", 4, 0},
    {"VS2_7_UPSTREAM", "UPSTREAM_PORT", 4, 0},
    {"VS_DOWNSTREAM_PORTS", "PORT_VECTOR", 23, 0},
    {"GPIO_DIRECTION1", "PIN_MODE", 29, 0},
    {"VS_DEBUG", "DL_DOWN_RESET_DISABLE", 4, 4},
    {"VS_DEBUG", "NT0_VIRT_ACCESS", 24, 24},
    {"VS_DEBUG", "NT0_LINK_ACCESS", 25, 25},
    {"PCI_COMMAND_STATUS", "MEM_ENABLE", 1, 1},
    {"PCI_COMMAND_STATUS", "BUS_MASTER", 2, 2},
    {"PCI_COMMAND_STATUS", "SERR_ENABLE", 8, 8},
    {"PCI_COMMAND_STATUS", "INTX_DISABLE", 10, 10},
    {"MSI_CONTROL", "MULTI_MSG_CAPABLE", 19, 17},
    {"MSI_CONTROL", "MULTI_MSG_ENABLE", 22, 20},
    {"PCIE_LINK_CAP", "PORT_NUMBER", 31, 24},
    {"PCIE_LINK_CTL_STATUS", "LINK_SPEED", 19, 16},
    {"PCIE_LINK_CTL_STATUS", "LINK_WIDTH", 25, 20},
    {"CAPTURED_BUS", "BUS", 7, 0},
    {"BAR2_XLAT", "XLAT_ADDR", 31, 0},
    {"BAR3_XLAT", "XLAT_ADDR", 31, 0},
    {"BAR4_XLAT", "XLAT_ADDR", 31, 0},
    {"BAR5_XLAT", "XLAT_ADDR", 31, 0},
    {"DB_VIRT_SET", "DOORBELL", 15, 0},
    {"DB_VIRT_CLEAR", "DOORBELL", 15, 0},
    {"DB_VIRT_MASK_SET", "DOORBELL", 15, 0},
    {"DB_VIRT_MASK_CLEAR", "DOORBELL", 15, 0},
    {"DB_LINK_SET", "DOORBELL", 15, 0},
    {"DB_LINK_CLEAR", "DOORBELL", 15, 0},
    {"DB_LINK_MASK_SET", "DOORBELL", 15, 0},
    {"DB_LINK_MASK_CLEAR", "DOORBELL", 15, 0},
    {"SPAD", "DATA", 31, 0},
    {"NT_PORT_ID", "NT_INDEX", 0, 0},
    {"NT_PORT_ID", "LINK_SIDE", 31, 31},
    {"REQ_ID_READBACK", "REQ_ID", 15, 0},
    {"ALUT_CONTROL", "ALUT_ENABLE", 28, 28},
    {"ALUT_CONTROL", "ALUT_ENABLE_VCA", 31, 31},
    {"REQ_ID_TABLE_DATA", "ENABLE", 0, 0},
    {"REQ_ID_TABLE_DATA", "NO_SNOOP", 1, 1},
    {"REQ_ID_TABLE_DATA", "REQ_ID", 19, 4},
    {"REQ_ID_TABLE_DATA", "INDEX", 31, 24},
    {"REQ_ID_TABLE_INDEX", "INDEX", 7, 0},
    {"AER_UNCORR_STATUS", "UNSUPPORTED_REQUEST", 20, 20},
    {"AER_CAP_CONTROL", "FIRST_ERROR_POINTER", 4, 0},
    {"AER_HEADER_LOG_DW1", "REQ_ID", 31, 16},
    {"REQ_ID_LUT_VIRT", "EVEN_ENABLE", 0, 0},
    {"REQ_ID_LUT_VIRT", "EVEN_NO_SNOOP", 1, 1},
    {"REQ_ID_LUT_VIRT", "EVEN_DEVICE", 7, 3},
    {"REQ_ID_LUT_VIRT", "EVEN_BUS", 15, 8},
    {"REQ_ID_LUT_VIRT", "ODD_ENABLE", 16, 16},
    {"REQ_ID_LUT_VIRT", "ODD_NO_SNOOP", 17, 17},
    {"REQ_ID_LUT_VIRT", "ODD_DEVICE", 23, 19},
    {"REQ_ID_LUT_VIRT", "ODD_BUS", 31, 24},
    {"LINK_ERR_STATUS", "CORRECTABLE", 0, 0},
    {"LINK_ERR_STATUS", "UNCORRECTABLE", 1, 1},
    {"LINK_ERR_STATUS", "LINK_STATE_CHANGE", 2, 2},
    {"LINK_ERR_STATUS", "UNCORR_MSG_DROP", 3, 3},
    {"LINK_ERR_MASK", "CORRECTABLE", 0, 0},
    {"LINK_ERR_MASK", "UNCORRECTABLE", 1, 1},
    {"LINK_ERR_MASK", "LINK_STATE_CHANGE", 2, 2},
    {"LINK_ERR_MASK", "UNCORR_MSG_DROP", 3, 3},
    {"BAR0_SETUP", "TYPE", 1, 0},
    {"BAR2_SETUP", "IS_64BIT", 2, 2},
    {"BAR2_SETUP", "PREFETCHABLE", 3, 3},
    {"BAR2_SETUP", "SIZE_MASK", 31, 20},
    {"BAR3_SETUP", "SIZE_MASK_HI", 31, 0},
    {"BAR4_SETUP", "IS_64BIT", 2, 2},
    {"BAR4_SETUP", "PREFETCHABLE", 3, 3},
    {"BAR4_SETUP", "SIZE_MASK", 31, 20},
    {"BAR5_SETUP", "SIZE_MASK_HI", 31, 0},
    {"REQ_ID_LUT_LINK", "EVEN_ENABLE", 0, 0},
    {"REQ_ID_LUT_LINK", "EVEN_NO_SNOOP", 1, 1},
    {"REQ_ID_LUT_LINK", "EVEN_DEVICE", 7, 3},
    {"REQ_ID_LUT_LINK", "EVEN_BUS", 15, 8},
    {"REQ_ID_LUT_LINK", "ODD_ENABLE", 16, 16},
    {"REQ_ID_LUT_LINK", "ODD_NO_SNOOP", 17, 17},
    {"REQ_ID_LUT_LINK", "ODD_DEVICE", 23, 19},
    {"REQ_ID_LUT_LINK", "ODD_BUS", 31, 24},
    {"INGRESS_CONTROL", "DROP_POISONED", 9, 9},
    {"PM_HOTPLUG_CONFIG", "LINK_CTL_WRITE_ENABLE", 11, 11},
    {"ALUT_LOWER", "ADDR_LO", 31, 0},
    {"ALUT_UPPER", "ADDR_HI", 31, 0},
    {"ALUT_PERMISSION", "WRITE_ENABLE", 0, 0},
    {"ALUT_PERMISSION", "READ_ENABLE", 1, 1},
    {"ALUT_LOWER_HI", "ADDR_LO", 31, 0},
    {"ALUT_UPPER_HI", "ADDR_HI", 31, 0},
    {"ALUT_PERMISSION_HI", "WRITE_ENABLE", 0, 0},
    {"ALUT_PERMISSION_HI", "READ_ENABLE", 1, 1},
    {"DMA_MSI_CONTROL", "MULTI_MSG_CAPABLE", 19, 17},
    {"DMA_PCIE_DEV_CAP", "FLR_CAPABLE", 28, 28},
    {"DMA_PCIE_DEV_CTL2", "CPL_TIMEOUT", 3, 0},
    {"DMA_PCIE_DEV_CTL2", "CPL_TIMEOUT_DISABLE", 4, 4},
    {"DMA_BLK_XFER_SIZE", "BYTE_COUNT", 26, 0},
    {"DMA_BLK_XFER_SIZE", "CONST_DST", 28, 28},
    {"DMA_BLK_XFER_SIZE", "CONST_SRC", 29, 29},
    {"DMA_BLK_XFER_SIZE", "INT_WHEN_DONE", 30, 30},
    {"DMA_BLK_XFER_SIZE", "VALID", 31, 31},
    {"DMA_BANDWIDTH", "READ_REQ_DELAY", 15, 0},
    {"DMA_BANDWIDTH", "HALT_READS", 16, 16},
    {"DMA_BANDWIDTH", "MAX_DST_WRITE_SIZE", 26, 24},
    {"DMA_PREFETCH", "MAX_DESC_FETCH", 7, 0},
    {"DMA_CTRL_STATUS", "GRACEFUL_PAUSE", 0, 0},
    {"DMA_CTRL_STATUS", "ABORT", 1, 1},
    {"DMA_CTRL_STATUS", "WRITE_BACK_EN", 2, 2},
    {"DMA_CTRL_STATUS", "START", 3, 3},
    {"DMA_CTRL_STATUS", "RING_STOP_MODE", 4, 4},
    {"DMA_CTRL_STATUS", "DESC_MODE", 6, 5},
    {"DMA_CTRL_STATUS", "DESC_INVALID", 8, 8},
    {"DMA_CTRL_STATUS", "PAUSE_DONE", 9, 9},
    {"DMA_CTRL_STATUS", "ABORT_DONE", 10, 10},
    {"DMA_CTRL_STATUS", "FACTORY_TEST", 11, 11},
    {"DMA_CTRL_STATUS", "IMM_PAUSE_DONE", 12, 12},
    {"DMA_CTRL_STATUS", "RING_WRAP_DELAY", 15, 13},
    {"DMA_CTRL_STATUS", "MAX_SRC_XFER_SIZE", 18, 16},
    {"DMA_CTRL_STATUS", "TRAFFIC_CLASS", 21, 19},
    {"DMA_CTRL_STATUS", "RO_DESC_READ", 22, 22},
    {"DMA_CTRL_STATUS", "RO_DATA_READ", 23, 23},
    {"DMA_CTRL_STATUS", "RO_DESC_WRITE", 24, 24},
    {"DMA_CTRL_STATUS", "RO_DATA_WRITE", 25, 25},
    {"DMA_CTRL_STATUS", "NS_DESC_READ", 26, 26},
    {"DMA_CTRL_STATUS", "NS_DATA_READ", 27, 27},
    {"DMA_CTRL_STATUS", "NS_DESC_WRITE", 28, 28},
    {"DMA_CTRL_STATUS", "NS_DATA_WRITE", 29, 29},
    {"DMA_CTRL_STATUS", "IN_PROGRESS", 30, 30},
    {"DMA_CTRL_STATUS", "HEADER_LOG", 31, 31},
    {"DMA_INTR_CTRL_STATUS", "ERROR_EN", 0, 0},
    {"DMA_INTR_CTRL_STATUS", "INV_DESC_EN", 1, 1},
    {"DMA_INTR_CTRL_STATUS", "ABORT_DONE_EN", 3, 3},
    {"DMA_INTR_CTRL_STATUS", "PAUSE_DONE_EN", 4, 4},
    {"DMA_INTR_CTRL_STATUS", "IMM_PAUSE_DONE_EN", 5, 5},
    {"DMA_INTR_CTRL_STATUS", "IRQ_PIN_EN", 15, 15},
    {"DMA_INTR_CTRL_STATUS", "ERROR", 16, 16},
    {"DMA_INTR_CTRL_STATUS", "INV_DESC", 17, 17},
    {"DMA_INTR_CTRL_STATUS", "DESC_DONE", 18, 18},
    {"DMA_INTR_CTRL_STATUS", "ABORT_DONE", 19, 19},
    {"DMA_INTR_CTRL_STATUS", "PAUSE_DONE", 20, 20},
    {"DMA_INTR_CTRL_STATUS", "IMM_PAUSE_DONE", 21, 21},
    {"DMA_MAX_PENDING_READS", "MAX_PENDING", 5, 0},
    {"DMA_MAX_PENDING_READS", "FIELD_21_16", 21, 16},
    // The standard descriptor, and its first word once the engine has written it back.
    {"DMA_DESC_DW0", "SIZE", 26, 0},
    {"DMA_DESC_DW0", "EXTENDED", 27, 27},
    {"DMA_DESC_DW0", "CONST_DST", 28, 28},
    {"DMA_DESC_DW0", "CONST_SRC", 29, 29},
    {"DMA_DESC_DW0", "INT_WHEN_DONE", 30, 30},
    {"DMA_DESC_DW0", "VALID", 31, 31},
    {"DMA_DESC_DW1", "DST_ADDR_HI", 15, 0},
    {"DMA_DESC_DW1", "SRC_ADDR_HI", 31, 16},
    {"DMA_DESC_DW2", "DST_ADDR_LO", 31, 0},
    {"DMA_DESC_DW3", "SRC_ADDR_LO", 31, 0},
    {"DMA_DESC_DW0_WB", "SIZE", 26, 0},
    {"DMA_DESC_DW0_WB", "WRITE_FAIL", 28, 28},
    {"DMA_DESC_DW0_WB", "READ_FAIL", 29, 29},
    {"DMA_DESC_DW0_WB", "SUCCESS", 30, 30},
    {"DMA_DESC_DW0_WB", "VALID", 31, 31},
    // clang-format on
};

namespace detail
{
constexpr bool fields_well_formed()
{
    for (const Field &f : fields)
        if (f.msb > 31 || f.lsb > f.msb || (!f.reg.starts_with("DMA_DESC_") && !has_reg(f.reg)))
            return false;
    return true;
}
static_assert(fields_well_formed(), "a field lies outside its register, or has none");

// As for registers: a name that is not in the table does not compile.
consteval Field field_of(std::string_view reg, std::string_view name)
{
    const Field *found = nullptr;
    for (const Field &f : fields)
        if (f.reg == reg && f.name == name)
            found = &f;
    return *found;
}
} // namespace detail

/// Fields for use in code.
namespace field
{
using detail::field_of;

inline constexpr Field dl_down_reset_disable = field_of("VS_DEBUG", "DL_DOWN_RESET_DISABLE");
inline constexpr Field alut_modes[] = {field_of("VS0_UPSTREAM", "NT0_ALUT_ENABLE"),
                                       field_of("VS0_UPSTREAM", "NT1_ALUT_ENABLE")};
inline constexpr Field mem_enable = field_of("PCI_COMMAND_STATUS", "MEM_ENABLE");
inline constexpr Field bus_master = field_of("PCI_COMMAND_STATUS", "BUS_MASTER");
inline constexpr Field intx_disable = field_of("PCI_COMMAND_STATUS", "INTX_DISABLE");
inline constexpr Field port_number = field_of("PCIE_LINK_CAP", "PORT_NUMBER");
inline constexpr Field link_speed = field_of("PCIE_LINK_CTL_STATUS", "LINK_SPEED");
inline constexpr Field link_width = field_of("PCIE_LINK_CTL_STATUS", "LINK_WIDTH");
inline constexpr Field captured_bus = field_of("CAPTURED_BUS", "BUS");
inline constexpr Field nt_index = field_of("NT_PORT_ID", "NT_INDEX");
inline constexpr Field link_side = field_of("NT_PORT_ID", "LINK_SIDE");
inline constexpr Field req_id = field_of("REQ_ID_READBACK", "REQ_ID");
inline constexpr Field alut_enable = field_of("ALUT_CONTROL", "ALUT_ENABLE");
inline constexpr Field alut_write = field_of("ALUT_PERMISSION", "WRITE_ENABLE");
inline constexpr Field alut_read = field_of("ALUT_PERMISSION", "READ_ENABLE");
inline constexpr Field err_correctable = field_of("LINK_ERR_STATUS", "CORRECTABLE");
inline constexpr Field err_uncorrectable = field_of("LINK_ERR_STATUS", "UNCORRECTABLE");
inline constexpr Field err_link_change = field_of("LINK_ERR_STATUS", "LINK_STATE_CHANGE");
inline constexpr Field err_message_drop = field_of("LINK_ERR_STATUS", "UNCORR_MSG_DROP");
inline constexpr Field unsupported_request = field_of("AER_UNCORR_STATUS", "UNSUPPORTED_REQUEST");
inline constexpr Field bar0_setup_type = field_of("BAR0_SETUP", "TYPE");
inline constexpr Field bar_setup_64bit = field_of("BAR2_SETUP", "IS_64BIT");
inline constexpr Field bar_setup_prefetch = field_of("BAR2_SETUP", "PREFETCHABLE");
inline constexpr Field bar_setup_size = field_of("BAR2_SETUP", "SIZE_MASK");
} // namespace field

/// Link errors as they lie in LINK_ERR_STATUS and LINK_ERR_MASK.
inline constexpr uint32_t link_err_all =
    field::err_correctable.mask() | field::err_uncorrectable.mask() |
    field::err_link_change.mask() | field::err_message_drop.mask();

/// Both rights of an A-LUT entry.
inline constexpr uint32_t alut_rights_all = field::alut_write.mask() | field::alut_read.mask();

/// BAR0_SETUP: whether and how wide link BAR0 decodes.                              FBSD;TNL R
inline constexpr uint32_t bar0_setup_32bit = 2;
inline constexpr uint32_t bar0_setup_64bit = 3;

/// VS0_UPSTREAM for one NT port.
struct NtPort {
    bool enabled;
    uint8_t port; ///< 0 to 31 as read: bound it before use
};
constexpr NtPort nt_port(uint32_t vs0_upstream, unsigned nt)
{
    constexpr Field port[] = {detail::field_of("VS0_UPSTREAM", "NT0_PORT"),
                              detail::field_of("VS0_UPSTREAM", "NT1_PORT")};
    constexpr Field enable[] = {detail::field_of("VS0_UPSTREAM", "NT0_ENABLE"),
                                detail::field_of("VS0_UPSTREAM", "NT1_ENABLE")};
    return {enable[nt].get(vs0_upstream) != 0, static_cast<uint8_t>(port[nt].get(vs0_upstream))};
}
/// Whether a chip shows DMA channel @p channel, by what DMA_GLOBAL_CONTROL of its first function
/// holds: 2 stands for two channels, 0 and 2.                                EEP R; decode I (Q11)
constexpr bool dma_channel_shown(uint32_t global_control, unsigned channel)
{
    return global_control != 2 || channel % 2 == 0;
}
/// The port in whose hierarchy a DMA channel sits, by what DMA_PORT_ASSIGN of the first function
/// holds: a byte for each.                                                   EEP R; decode I (Q11)
constexpr uint8_t dma_channel_port(uint32_t port_assign, unsigned channel)
{
    return static_cast<uint8_t>(port_assign >> 8 * channel);
}
/// The port that leads to this host.
constexpr uint8_t upstream_port(uint32_t vs0_upstream)
{
    return static_cast<uint8_t>(
        detail::field_of("VS0_UPSTREAM", "UPSTREAM_PORT").get(vs0_upstream));
}

/// An entry of a requester-ID table. The function takes no part in the match: its bits hold the
/// flags, so they are cut off an ID that was read back.                      FBSD;SDK;KAO R
struct LutEntry {
    bool enable = false;
    bool no_snoop = false;
    uint8_t bus = 0;
    uint8_t device = 0;

    static constexpr LutEntry of(uint16_t requester_id)
    {
        return {true, false, static_cast<uint8_t>(requester_id >> 8),
                static_cast<uint8_t>(requester_id >> 3 & 0x1F)};
    }
    static constexpr LutEntry decode(uint16_t bits)
    {
        LutEntry entry = of(bits);
        entry.enable = (bits & 1) != 0;
        entry.no_snoop = (bits & 2) != 0;
        return entry;
    }
    constexpr uint16_t encode() const
    {
        return static_cast<uint16_t>(bus << 8 | (device & 0x1F) << 3 | (no_snoop ? 2 : 0) |
                                     (enable ? 1 : 0));
    }
    constexpr bool matches(uint16_t requester_id) const
    {
        return enable && bus == of(requester_id).bus && device == of(requester_id).device;
    }
};
/// The register that holds entries @p even and, in its upper half, @p odd.
constexpr uint32_t lut_dword(LutEntry even, LutEntry odd)
{
    return even.encode() | uint32_t{odd.encode()} << 16;
}

/// A pair of BAR set-up registers (the second counts for 64-bit BARs only).
struct BarSetup {
    uint64_t size = 0; ///< bytes, power of two from window_size_min; 0: the BAR is off
    bool is_64bit = false;
    bool prefetchable = false;

    /// Sizes that the register cannot say (below 1 MiB, no power of two, 4 GiB and more in a
    /// 32-bit BAR) decode to 0: such a BAR opens nothing.
    static constexpr BarSetup decode(uint32_t low, uint32_t high)
    {
        BarSetup s;
        s.is_64bit = field::bar_setup_64bit.get(low) != 0;
        s.prefetchable = field::bar_setup_prefetch.get(low) != 0;
        const uint64_t mask = (s.is_64bit ? uint64_t{high} << 32 : ~uint64_t{0} << 32) |
                              (low & field::bar_setup_size.mask());
        const bool on = s.is_64bit ? high >> 31 != 0 : low >> 31 != 0;
        const uint64_t size = ~mask + 1;
        s.size = on && (size & (size - 1)) == 0 ? size : 0;
        return s;
    }
    constexpr uint64_t mask() const { return size == 0 ? 0 : ~(size - 1); }
    constexpr uint32_t low() const
    {
        return (static_cast<uint32_t>(mask()) & field::bar_setup_size.mask()) |
               field::bar_setup_64bit.put(is_64bit) | field::bar_setup_prefetch.put(prefetchable);
    }
    constexpr uint32_t high() const { return static_cast<uint32_t>(mask() >> 32); }
};

static_assert(BarSetup::decode(0xC000000C, 0xFFFFFFFF).size == uint64_t{1} << 30);
static_assert(BarSetup{uint64_t{1} << 30, true, true}.low() == 0xC000000C);

} // namespace plx::facts

#endif

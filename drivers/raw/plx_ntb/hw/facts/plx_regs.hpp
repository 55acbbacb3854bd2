// SPDX-License-Identifier: BSD-3-Clause
// The registers of the PEX 87xx that public sources document: where each lies, how it answers a
// write, what it holds after reset, and who says so. Facts only, no behaviour: driver and twin
// both stand on this table and on nothing else in common. doc/hardware.md explains the sources.
#ifndef PLX_REGS_HPP
#define PLX_REGS_HPP

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace plx::facts
{

/// The two faces of a non-transparent port.
enum class Side : uint8_t {
    virt, ///< the endpoint that the host owning the switch's upstream port sees
    link, ///< the endpoint behind the NT port's cable
};
constexpr Side other(Side side)
{
    return side == Side::virt ? Side::link : Side::virt;
}

/// What a register's offset counts from.
enum class Block : uint8_t {
    chip,       ///< port 0, that is CSR offset 0
    station,    ///< the lowest-numbered port of each station, see station_base()
    port,       ///< every port, see port_base()
    nt_both,    ///< both NT blocks of an NT port, see nt_base()
    nt_virtual, ///< the virtual block alone
    nt_link,    ///< the link block alone
    alut,       ///< an A-LUT RAM array, see alut_array()
    dma,        ///< BAR0 of a DMA function, or dma_base() in the CSR space of an NT function
};

/// What a write does. `unknown`: no source writes it, or no source reads it back.
enum class Access : uint8_t {
    ro,
    rw,
    w1s,  ///< ones set bits; the bits set are read
    w1c,  ///< ones clear bits that another register sets
    rw1c, ///< ones clear bits that hardware sets
    mixed,
    unknown,
};

/// How far a reset value can be trusted.
enum class Mark : uint8_t {
    known,   ///< in the EEPROM image of a production board with one NT port
    assumed, ///< our guess, to be confirmed on hardware
    unknown,
};

struct Reset {
    Mark mark;
    uint32_t value; ///< of element 0; the further elements of an array are zero
};

struct Reg {
    std::string_view name;
    std::string_view source; ///< document tags; then the confidence: R read, D derived, I inferred
    uint32_t offset;         ///< bytes from the start of the block
    uint32_t count;          ///< elements of an array
    uint32_t stride;         ///< bytes between elements
    Reset reset;
    Block block;
    Access access;
    uint8_t width; ///< bits
};

namespace detail
{
inline constexpr Reset none{Mark::unknown, 0};
constexpr Reset image(uint32_t value)
{
    return {Mark::known, value};
}
constexpr Reset guess(uint32_t value)
{
    return {Mark::assumed, value};
}

constexpr Reg one(Block block, std::string_view name, uint32_t offset, Access access, Reset reset,
                  std::string_view source)
{
    return {name, source, offset, 1, 4, reset, block, access, 32};
}
constexpr Reg many(Block block, std::string_view name, uint32_t offset, uint32_t count,
                   Access access, Reset reset, std::string_view source)
{
    return {name, source, offset, count, 4, reset, block, access, 32};
}

using B = Block;
using A = Access;
} // namespace detail

/// Every documented register, in the order of blocks and offsets.
inline constexpr auto regs = [] {
    using namespace detail;
    // clang-format off
    constexpr Reg list[] = {
    // ---- chip-wide, in the block of port 0
    one(B::chip, "EEP_STATUS_CONTROL",    0x260, A::mixed,   none, "VCA;SDK R"),
    one(B::chip, "EEP_BUFFER",            0x264, A::rw,      none, "VCA;SDK R"),
    one(B::chip, "EEP_CLOCK",             0x268, A::unknown, image(0x2), "EEP R; meaning I"),
    one(B::chip, "EEP_THIRD_ADDR_BYTE",   0x26C, A::rw,      none, "VCA;SDK R"),
    one(B::chip, "EEP_CRC",               0x270, A::ro,      none, "VCA R"),
    one(B::chip, "PORT_ENABLE_ALT",       0x30C, A::unknown, image(0x80000001), "EEP;SDK R; meaning on Draco unknown"),
    one(B::chip, "PORT_ENABLE_STATUS",    0x314, A::ro,      none, "SDK R; access D"),
    one(B::chip, "DEBUG_CONTROL",         0x350, A::unknown, none, "SDK R"),
    one(B::chip, "MGMT_PORT",             0x354, A::unknown, none, "SDK R"),
    one(B::chip, "VS_ENABLE",             0x358, A::rw,      guess(0x1), "SDK R"),
    one(B::chip, "VS0_UPSTREAM",          0x360, A::rw,      image(0x40002100), "FBSD;TNL;KAO;SDK;VCA;EEP R; access I"),
    one(B::chip, "VS1_UPSTREAM",          0x364, A::unknown, none, "TNL;SDK R"),
    many(B::chip, "VS2_7_UPSTREAM",       0x368, 6, A::unknown, none, "SDK R"),
    many(B::chip, "VS_DOWNSTREAM_PORTS",  0x380, 8, A::rw,   none, "SDK R"),
    one(B::chip, "VS_RESET",              0x3A0, A::rw,      guess(0), "SDK R"),
    one(B::chip, "CHIP_3AC",              0x3AC, A::unknown, image(0x1), "EEP R; meaning unknown"),
    one(B::chip, "PERF_MONITOR_CONTROL",  0x3E0, A::unknown, none, "SDK R"),
    one(B::chip, "PERF_MONITOR_FIFO",     0x3E4, A::unknown, none, "SDK R"),
    one(B::chip, "PERF_MONITOR_RAM",      0x3F0, A::unknown, none, "SDK R"),
    one(B::chip, "GPIO_DIRECTION1",       0x600, A::unknown, none, "VCA R"),
    one(B::chip, "GPIO_DIRECTION2",       0x604, A::unknown, none, "VCA R"),
    one(B::chip, "GPIO_INPUT",            0x61C, A::unknown, none, "VCA R"),
    one(B::chip, "GPIO_OUTPUT",           0x624, A::rw,      none, "VCA R"),
    // ---- per station
    one(B::station, "PORT_CONTROL",       0x208, A::rw,      guess(0), "FBSD;TNL;KAO R"),
    many(B::station, "PHY_TEST_PATTERN",  0x20C, 4, A::rw,   guess(0), "FBSD;TNL R"),
    one(B::station, "STATION_9EC",        0x9EC, A::unknown, image(0x010000A0), "EEP R; meaning unknown"),
    one(B::station, "RECOVERY_DIAGNOSTIC", 0xBC4, A::mixed,  none, "KAO R"),
    // ---- per port
    one(B::port, "PORT_LANE_CONFIG",      0x300, A::unknown, image(0x4), "EEP R; meaning I"),
    one(B::port, "PERF_COUNTER_ENABLE1",  0x768, A::unknown, none, "SDK R"),
    one(B::port, "VS_DEBUG",              0xA30, A::rw,      image(0x03000000), "KAO;VCA;EEP R; upstream port; access I"),
    one(B::port, "PERF_COUNTER_ENABLE2",  0xF30, A::unknown, none, "SDK R"),
    one(B::port, "PORT_AER_CORR_MASK",    0xFC8, A::rw,      none, "KAO R"),
    // ---- both NT endpoints: configuration header and capabilities
    one(B::nt_both, "PCI_ID",             0x000, A::ro,      none, "EEP R; access D"),
    one(B::nt_both, "PCI_COMMAND_STATUS", 0x004, A::mixed,   guess(0), "KAO;SDK R"),
    one(B::nt_both, "PCI_CLASS_REVISION", 0x008, A::ro,      none, "SDK R; access D"),
    many(B::nt_both, "PCI_BAR",           0x010, 6, A::rw,   guess(0), "FBSD;TNL;KAO;SDK R"),
    one(B::nt_both, "PCI_SUBSYSTEM_ID",   0x02C, A::ro,      none, "EEP;SDK R; access D"),
    one(B::nt_both, "PCI_CAP_POINTER",    0x034, A::ro,      guess(0x40), "SDK R; value I"),
    one(B::nt_both, "PCI_INT_LINE_PIN",   0x03C, A::rw,      none, "SDK R"),
    one(B::nt_both, "PM_CAP",             0x040, A::unknown, none, "SDK R"),
    one(B::nt_both, "MSI_CONTROL",        0x048, A::unknown, none, "KAO;SDK R"),
    one(B::nt_both, "MSI_ADDR_LO",        0x04C, A::rw,      guess(0), "KAO;SDK R; access D"),
    one(B::nt_both, "MSI_ADDR_HI",        0x050, A::rw,      guess(0), "KAO;SDK R; access D"),
    one(B::nt_both, "MSI_DATA",           0x054, A::rw,      guess(0), "KAO;SDK R; access D"),
    one(B::nt_both, "MSI_MASK",           0x058, A::unknown, none, "KAO;SDK R"),
    one(B::nt_both, "MSI_PENDING",        0x05C, A::unknown, none, "SDK R"),
    one(B::nt_both, "PCIE_CAP",           0x068, A::unknown, none, "SDK R"),
    one(B::nt_both, "PCIE_DEV_CAP",       0x06C, A::ro,      none, "EEP;SDK R; access D"),
    one(B::nt_both, "PCIE_DEV_CTL_STATUS", 0x070, A::mixed,  image(0x285E), "KAO;SDK;EEP R"),
    one(B::nt_both, "PCIE_LINK_CAP",      0x074, A::ro,      none, "SDK R; access D"),
    one(B::nt_both, "PCIE_LINK_CTL_STATUS", 0x078, A::unknown, none, "FBSD;KAO;SDK;VCA R"),
    one(B::nt_both, "PCIE_DEV_CTL2",      0x090, A::rw,      none, "VCA R; access D"),
    one(B::nt_both, "PCIE_LINK_CTL2_STATUS2", 0x098, A::unknown, none, "KAO R"),
    one(B::nt_both, "CAPTURED_BUS",       0x1DC, A::ro,      guess(0), "SDK R; access D"),
    // ---- both NT endpoints: the NT machinery
    one(B::nt_both, "BAR2_XLAT",          0xC3C, A::rw,      guess(0), "FBSD;TNL;KAO;SDK;VCA R"),
    one(B::nt_both, "BAR3_XLAT",          0xC40, A::rw,      guess(0), "FBSD;TNL;KAO;SDK;VCA R"),
    one(B::nt_both, "BAR4_XLAT",          0xC44, A::rw,      guess(0), "FBSD;TNL;KAO;SDK;VCA R"),
    one(B::nt_both, "BAR5_XLAT",          0xC48, A::rw,      guess(0), "FBSD;TNL;KAO;SDK;VCA R"),
    one(B::nt_both, "DB_VIRT_SET",        0xC4C, A::w1s,     guess(0), "FBSD;TNL;KAO;SDK;VCA R"),
    one(B::nt_both, "DB_VIRT_CLEAR",      0xC50, A::w1c,     guess(0), "FBSD;TNL;KAO;SDK;VCA R"),
    one(B::nt_both, "DB_VIRT_MASK_SET",   0xC54, A::w1s,     guess(0xFFFF), "FBSD;TNL;KAO;SDK;VCA R"),
    one(B::nt_both, "DB_VIRT_MASK_CLEAR", 0xC58, A::w1c,     guess(0xFFFF), "FBSD;TNL;KAO;SDK;VCA R"),
    one(B::nt_both, "DB_LINK_SET",        0xC5C, A::w1s,     guess(0), "FBSD;TNL;SDK;VCA R"),
    one(B::nt_both, "DB_LINK_CLEAR",      0xC60, A::w1c,     guess(0), "FBSD;TNL;SDK;VCA R"),
    one(B::nt_both, "DB_LINK_MASK_SET",   0xC64, A::w1s,     guess(0xFFFF), "FBSD;TNL;SDK;VCA R"),
    one(B::nt_both, "DB_LINK_MASK_CLEAR", 0xC68, A::w1c,     guess(0xFFFF), "FBSD;TNL;SDK;VCA R"),
    many(B::nt_both, "SPAD",              0xC6C, 8, A::rw,   guess(0), "FBSD;TNL;KAO;SDK;VCA R"),
    one(B::nt_both, "NT_PORT_ID",         0xC8C, A::ro,      none, "FBSD;TNL;SDK;VCA R; access D"),
    one(B::nt_both, "REQ_ID_READBACK",    0xC90, A::ro,      none, "FBSD;TNL;KAO;SDK R; access D"),
    one(B::nt_both, "ALUT_CONTROL",       0xC94, A::rw,      guess(0), "FBSD;TNL;VCA R; access D"),
    one(B::nt_both, "REQ_ID_TABLE_DATA",  0xC98, A::unknown, none, "SDK R; Capella only"),
    one(B::nt_both, "REQ_ID_TABLE_INDEX", 0xC9C, A::unknown, none, "SDK R; Capella only"),
    one(B::nt_both, "AER_CAP",            0xFB4, A::unknown, none, "SDK R"),
    one(B::nt_both, "AER_UNCORR_STATUS",  0xFB8, A::rw1c,    guess(0), "KAO;SDK R"),
    one(B::nt_both, "AER_UNCORR_MASK",    0xFBC, A::rw,      guess(0), "SDK R"),
    one(B::nt_both, "AER_UNCORR_SEVERITY", 0xFC0, A::rw,     none, "KAO;SDK R"),
    one(B::nt_both, "AER_CORR_STATUS",    0xFC4, A::rw1c,    guess(0), "KAO R"),
    one(B::nt_both, "AER_CORR_MASK",      0xFC8, A::rw,      none, "KAO R"),
    one(B::nt_both, "AER_CAP_CONTROL",    0xFCC, A::unknown, none, "SDK R"),
    one(B::nt_both, "AER_HEADER_LOG_DW0", 0xFD0, A::ro,      none, "SDK R; access D"),
    one(B::nt_both, "AER_HEADER_LOG_DW1", 0xFD4, A::ro,      none, "SDK R; access D"),
    one(B::nt_both, "AER_HEADER_LOG_DW2", 0xFD8, A::ro,      none, "SDK R; access D"),
    one(B::nt_both, "AER_HEADER_LOG_DW3", 0xFDC, A::ro,      none, "SDK R; access D"),
    // ---- virtual side alone
    one(B::nt_virtual, "BAR0_SETUP_VIRT", 0x0D0, A::unknown, none, "I: by symmetry, never written"),
    one(B::nt_virtual, "BAR2_SETUP_VIRT", 0x0D4, A::rw,      image(0xC000000C), "SDK;EEP R"),
    one(B::nt_virtual, "BAR3_SETUP_VIRT", 0x0D8, A::rw,      image(0xFFFFFFFF), "SDK;EEP R"),
    one(B::nt_virtual, "BAR4_SETUP_VIRT", 0x0DC, A::rw,      none, "SDK R"),
    one(B::nt_virtual, "BAR5_SETUP_VIRT", 0x0E0, A::rw,      none, "SDK R"),
    many(B::nt_virtual, "REQ_ID_LUT_VIRT", 0xD94, 16, A::rw, image(0x1), "FBSD;TNL;KAO;SDK;EEP R"),
    one(B::nt_virtual, "LINK_ERR_STATUS", 0xFE0, A::rw1c,    guess(0), "FBSD;TNL;KAO;SDK R"),
    one(B::nt_virtual, "LINK_ERR_MASK",   0xFE4, A::rw,      guess(0xF), "FBSD;TNL;KAO;SDK R"),
    // ---- link side alone
    one(B::nt_link, "BAR0_SETUP",         0x0E4, A::rw,      guess(0x2), "FBSD;TNL R; access D"),
    one(B::nt_link, "BAR2_SETUP",         0x0E8, A::rw,      image(0xC000000C), "FBSD;TNL;KAO;SDK;EEP R"),
    one(B::nt_link, "BAR3_SETUP",         0x0EC, A::rw,      image(0xFFFFFFFF), "FBSD;TNL;KAO;EEP R; access D"),
    one(B::nt_link, "BAR4_SETUP",         0x0F0, A::rw,      none, "FBSD;TNL;KAO R"),
    one(B::nt_link, "BAR5_SETUP",         0x0F4, A::rw,      none, "FBSD;TNL;KAO R"),
    one(B::nt_link, "FRAMING_ERR_STATUS", 0x724, A::unknown, none, "KAO R"),
    many(B::nt_link, "REQ_ID_LUT_LINK",   0xDB4, 16, A::rw,  image(0x1), "FBSD;TNL;KAO;SDK;VCA;EEP R"),
    one(B::nt_link, "INGRESS_CONTROL",    0xF60, A::rw,      none, "KAO R"),
    one(B::nt_link, "PM_HOTPLUG_CONFIG",  0xF70, A::rw,      image(0x800), "KAO;EEP R"),
    one(B::nt_link, "BAD_TLP_COUNT",      0xFAC, A::unknown, none, "KAO R"),
    one(B::nt_link, "BAD_DLLP_COUNT",     0xFB0, A::unknown, none, "KAO R"),
    // ---- A-LUT RAM: entries 128 and up lie in the next array
    many(B::alut, "ALUT_LOWER",           0x0000, 128, A::rw, none, "FBSD;TNL;VCA R; access D"),
    many(B::alut, "ALUT_UPPER",           0x0400, 128, A::rw, none, "FBSD;TNL;VCA R; access D"),
    many(B::alut, "ALUT_PERMISSION",      0x0800, 128, A::rw, none, "FBSD;TNL;VCA R"),
    many(B::alut, "ALUT_LOWER_HI",        0x1000, 128, A::rw, none, "FBSD;TNL;VCA R; access D"),
    many(B::alut, "ALUT_UPPER_HI",        0x1400, 128, A::rw, none, "FBSD;TNL;VCA R; access D"),
    many(B::alut, "ALUT_PERMISSION_HI",   0x1800, 128, A::rw, none, "FBSD;TNL;VCA R"),
    // ---- a DMA function
    one(B::dma, "DMA_DEV_VEN_ID",         0x000, A::ro,      guess(0x87D010B5), "SDK;VCA;LPD R; access D"),
    one(B::dma, "DMA_MSI_CONTROL",        0x048, A::unknown, none, "SDK R"),
    one(B::dma, "DMA_PCIE_DEV_CAP",       0x06C, A::ro,      none, "VCA;EEP R; access D"),
    one(B::dma, "DMA_PCIE_DEV_CTL_STATUS", 0x070, A::mixed,  image(0x285E), "VCA;EEP R; access G"),
    one(B::dma, "DMA_PCIE_DEV_CTL2",      0x090, A::rw,      none, "VCA R; access D"),
    one(B::dma, "DMA_GLOBAL_CONTROL",     0x1F8, A::unknown, image(0x2), "VCA;EEP R; meaning I"),
    one(B::dma, "DMA_PORT_ASSIGN",        0x1FC, A::unknown, image(0x01010000), "EEP R; meaning I"),
    one(B::dma, "DMA_BLK_SRC_LO",         0x200, A::rw,      guess(0), "VCA;SDK R"),
    one(B::dma, "DMA_BLK_SRC_HI",         0x204, A::rw,      guess(0), "VCA;SDK R"),
    one(B::dma, "DMA_BLK_DST_LO",         0x208, A::rw,      guess(0), "VCA;SDK R"),
    one(B::dma, "DMA_BLK_DST_HI",         0x20C, A::rw,      guess(0), "VCA;SDK R"),
    one(B::dma, "DMA_BLK_XFER_SIZE",      0x210, A::rw,      guess(0), "VCA;SDK R"),
    one(B::dma, "DMA_RING_ADDR_LO",       0x214, A::rw,      guess(0), "LPD;VCA;SDK R"),
    one(B::dma, "DMA_RING_ADDR_HI",       0x218, A::rw,      guess(0), "LPD;VCA;SDK R"),
    one(B::dma, "DMA_RING_NEXT_LO",       0x21C, A::rw,      guess(0), "LPD;VCA;SDK R"),
    one(B::dma, "DMA_RING_COUNT",         0x220, A::rw,      guess(0), "LPD;VCA;SDK R"),
    one(B::dma, "DMA_RING_LAST_LO",       0x224, A::ro,      guess(0), "LPD;VCA R; access D"),
    one(B::dma, "DMA_RING_LAST_SIZE",     0x228, A::rw,      guess(0), "LPD;VCA;SDK R"),
    one(B::dma, "DMA_BANDWIDTH",          0x22C, A::rw,      image(0x01000004), "SDK;VCA;EEP R"),
    one(B::dma, "DMA_PREFETCH",           0x234, A::rw,      none, "LPD;VCA;SDK R"),
    one(B::dma, "DMA_CTRL_STATUS",        0x238, A::mixed,   image(0x03C20000), "LPD;VCA;SDK;EEP R"),
    one(B::dma, "DMA_INTR_CTRL_STATUS",   0x23C, A::mixed,   guess(0), "LPD;VCA;SDK R"),
    one(B::dma, "DMA_MAX_PENDING_READS",  0x254, A::rw,      guess(0x20), "SDK R"),
    one(B::dma, "DMA_STA_RAM_THRESH",     0x258, A::rw,      image(0x003A002E), "VCA;EEP R"),
    one(B::dma, "DMA_STA0_HDR_RAM",       0x25C, A::rw,      image(0x009800A0), "VCA;EEP R"),
    one(B::dma, "DMA_STA0_PLD_RAM",       0x260, A::rw,      image(0x00F80100), "VCA;EEP R"),
    one(B::dma, "DMA_STA1_HDR_RAM",       0x2A4, A::rw,      image(0x009800A0), "VCA;EEP R"),
    one(B::dma, "DMA_STA1_PLD_RAM",       0x2A8, A::rw,      image(0x00F80100), "VCA;EEP R"),
    many(B::dma, "DMA_AER_REGS",          0xFB8, 10, A::unknown, none, "VCA R"),
    };
    // clang-format on
    struct Table {
        Reg items[sizeof(list) / sizeof(list[0])];
        constexpr const Reg *begin() const { return items; }
        constexpr const Reg *end() const { return items + size(); }
        static constexpr size_t size() { return sizeof(list) / sizeof(list[0]); }
    };
    Table table{};
    for (size_t i = 0; i < table.size(); i++)
        table.items[i] = list[i];
    return table;
}();

/// Whether there is one. For static_assert: with -fsanitize=undefined, g++ 12 does not take the
/// comparison of an object's address with null for a constant.
constexpr bool has_reg(std::string_view name)
{
    for (const Reg &r : regs)
        if (r.name == name)
            return true;
    return false;
}

/// A register by name; NULL when there is none.
constexpr const Reg *find_reg(std::string_view name)
{
    for (const Reg &r : regs)
        if (r.name == name)
            return &r;
    return nullptr;
}

namespace detail
{
// A name that is not in the table dereferences NULL, which is no constant: it does not compile.
consteval uint32_t at(std::string_view name)
{
    return find_reg(name)->offset;
}

constexpr bool shares_block(Block a, Block b)
{
    auto nt = [](Block x) { return x == Block::nt_virtual || x == Block::nt_link; };
    return a == b || (a == Block::nt_both && nt(b)) || (b == Block::nt_both && nt(a)) ||
           (a == Block::chip && (b == Block::station || b == Block::port)) ||
           (b == Block::chip && (a == Block::station || a == Block::port)) ||
           (a == Block::station && b == Block::port) || (a == Block::port && b == Block::station);
}
constexpr uint32_t end_of(const Reg &r)
{
    return r.offset + (r.count - 1) * r.stride + 4;
}

constexpr bool none_overlap()
{
    for (size_t i = 0; i < regs.size(); i++)
        for (size_t j = i + 1; j < regs.size(); j++) {
            const Reg &a = regs.items[i];
            const Reg &b = regs.items[j];
            if (a.name == b.name ||
                (shares_block(a.block, b.block) && a.offset < end_of(b) && b.offset < end_of(a)))
                return false;
        }
    return true;
}
constexpr bool all_well_formed()
{
    for (const Reg &r : regs)
        if (r.offset % 4 != 0 || r.stride % 4 != 0 || r.count == 0 || r.width != 32 ||
            r.source.empty() || end_of(r) > (r.block == Block::alut ? 0x2000u : 0x1000u))
            return false;
    return true;
}
static_assert(none_overlap(), "two registers share a name or an offset");
static_assert(all_well_formed(), "a register is unaligned, empty or outside its block");
} // namespace detail

/// Registers of one kind at equal distances.
struct RegArray {
    uint32_t first;
    uint32_t stride;
    uint32_t count;
    constexpr uint32_t operator[](uint32_t i) const { return first + i * stride; }
};

namespace detail
{
consteval RegArray array_at(std::string_view name)
{
    const Reg *r = find_reg(name);
    return {r->offset, r->stride, r->count};
}
} // namespace detail

/// Offsets for use in code, inside the register's block.
namespace reg
{
using detail::array_at;
using detail::at;

// chip
inline constexpr uint32_t vs0_upstream = at("VS0_UPSTREAM");
inline constexpr uint32_t vs_debug = at("VS_DEBUG");
// station
inline constexpr uint32_t port_control = at("PORT_CONTROL");
inline constexpr RegArray phy_test_pattern = array_at("PHY_TEST_PATTERN");
// both NT endpoints
inline constexpr uint32_t pci_id = at("PCI_ID");
inline constexpr uint32_t pci_command_status = at("PCI_COMMAND_STATUS");
inline constexpr uint32_t pci_class_revision = at("PCI_CLASS_REVISION");
inline constexpr RegArray pci_bar = array_at("PCI_BAR");
inline constexpr uint32_t pci_subsystem_id = at("PCI_SUBSYSTEM_ID");
inline constexpr uint32_t pci_cap_pointer = at("PCI_CAP_POINTER");
inline constexpr uint32_t msi_control = at("MSI_CONTROL");
inline constexpr uint32_t msi_mask = at("MSI_MASK");
inline constexpr uint32_t pci_int_line_pin = at("PCI_INT_LINE_PIN");
inline constexpr uint32_t pcie_cap = at("PCIE_CAP");
inline constexpr uint32_t pcie_dev_ctl_status = at("PCIE_DEV_CTL_STATUS");
inline constexpr uint32_t pcie_link_cap = at("PCIE_LINK_CAP");
inline constexpr uint32_t pcie_link_ctl_status = at("PCIE_LINK_CTL_STATUS");
inline constexpr uint32_t captured_bus = at("CAPTURED_BUS");
inline constexpr uint32_t bar2_xlat = at("BAR2_XLAT");
inline constexpr uint32_t db_virt_set = at("DB_VIRT_SET");
inline constexpr uint32_t db_virt_clear = at("DB_VIRT_CLEAR");
inline constexpr uint32_t db_virt_mask_set = at("DB_VIRT_MASK_SET");
inline constexpr uint32_t db_virt_mask_clear = at("DB_VIRT_MASK_CLEAR");
inline constexpr uint32_t db_link_set = at("DB_LINK_SET");
inline constexpr uint32_t db_link_clear = at("DB_LINK_CLEAR");
inline constexpr uint32_t db_link_mask_set = at("DB_LINK_MASK_SET");
inline constexpr uint32_t db_link_mask_clear = at("DB_LINK_MASK_CLEAR");
inline constexpr RegArray spad = array_at("SPAD");
inline constexpr uint32_t nt_port_id = at("NT_PORT_ID");
inline constexpr uint32_t req_id_readback = at("REQ_ID_READBACK");
inline constexpr uint32_t alut_control = at("ALUT_CONTROL");
inline constexpr uint32_t aer_uncorr_status = at("AER_UNCORR_STATUS");
inline constexpr uint32_t aer_uncorr_mask = at("AER_UNCORR_MASK");
inline constexpr uint32_t aer_uncorr_severity = at("AER_UNCORR_SEVERITY");
inline constexpr uint32_t aer_corr_status = at("AER_CORR_STATUS");
inline constexpr uint32_t aer_corr_mask = at("AER_CORR_MASK");
inline constexpr uint32_t aer_header_log_dw0 = at("AER_HEADER_LOG_DW0");
// virtual side
inline constexpr uint32_t bar2_setup_virt = at("BAR2_SETUP_VIRT");
inline constexpr RegArray req_id_lut_virt = array_at("REQ_ID_LUT_VIRT");
inline constexpr uint32_t link_err_status = at("LINK_ERR_STATUS");
inline constexpr uint32_t link_err_mask = at("LINK_ERR_MASK");
// link side
inline constexpr uint32_t bar0_setup_link = at("BAR0_SETUP");
inline constexpr uint32_t bar2_setup_link = at("BAR2_SETUP");
inline constexpr RegArray req_id_lut_link = array_at("REQ_ID_LUT_LINK");
// A-LUT
inline constexpr RegArray alut_lower = array_at("ALUT_LOWER");
inline constexpr RegArray alut_upper = array_at("ALUT_UPPER");
inline constexpr RegArray alut_permission = array_at("ALUT_PERMISSION");

/// Translation register of BAR @p bar (2 to 5) in either NT block.
constexpr uint32_t bar_xlat(unsigned bar)
{
    return bar2_xlat + 4 * (bar - 2);
}
/// Set-up register of BAR @p bar (2 to 5) in the virtual or link block.
constexpr uint32_t bar_setup(Side side, unsigned bar)
{
    return (side == Side::virt ? bar2_setup_virt : bar2_setup_link) + 4 * (bar - 2);
}
/// The requester-ID table of a block.
constexpr RegArray req_id_lut(Side side)
{
    return side == Side::virt ? req_id_lut_virt : req_id_lut_link;
}
} // namespace reg

// Sizes and counts of the chip.                                              FBSD;VCA;SDK R
inline constexpr uint32_t bar0_size = 0x40000;
inline constexpr uint32_t block_size = 0x1000;
inline constexpr uint32_t nt_count = 2;
inline constexpr uint32_t station_count = 3;
inline constexpr uint32_t ports_per_station = 8; ///< in the numbering; 6 exist
inline constexpr uint32_t port_count = station_count * ports_per_station;
inline constexpr uint32_t virtual_switch_count = 8;
inline constexpr uint32_t doorbell_count = 16; ///< per direction
inline constexpr uint32_t doorbell_mask = 0xFFFF;
inline constexpr uint32_t spad_count = 8;
inline constexpr uint32_t test_pattern_count = 4;
inline constexpr uint32_t data_bar_count = 4; ///< BAR2 to BAR5
inline constexpr uint32_t lut_entry_count = 32;
inline constexpr uint32_t alut_array_count = 4;
inline constexpr uint32_t alut_array_entries = 128;
inline constexpr uint32_t alut_entries_two_nt = 128;
inline constexpr uint32_t alut_entries_one_nt = 256;
inline constexpr uint64_t window_size_min = uint64_t{1} << 20; ///< granule of the set-up registers
inline constexpr uint32_t dma_function_count = 4;
inline constexpr uint32_t dma_channels_per_function = 1;
inline constexpr uint32_t dma_channel_base = 0x200;
inline constexpr uint32_t dma_channel_stride = 0x100;
inline constexpr uint32_t dma_desc_bytes = 16;
inline constexpr uint32_t dma_ring_align_bytes = 64;
inline constexpr uint32_t dma_addr_bits = 48;
inline constexpr uint32_t dma_xfer_bytes_max = 0x7FFFFFF;

// Where blocks lie in the CSR space.
inline constexpr uint32_t nt0_virtual_base = 0x3E000; //                  FBSD;TNL;KAO;SDK;VCA R
inline constexpr uint32_t nt_stride = 0x2000;
inline constexpr uint32_t nt_link_delta = 0x1000;
inline constexpr uint32_t alut_array0_base = 0x38000; //                        FBSD;TNL;VCA R
inline constexpr uint32_t dma_ram_base = 0x20000;     //                                 SDK R
inline constexpr uint32_t dma_function0_base = 0x21000;

/// CSR offset of an NT port's block; @p nt 0 or 1. NT1 lies below NT0.
constexpr uint32_t nt_base(unsigned nt, Side side)
{
    return nt0_virtual_base - nt * nt_stride + (side == Side::link ? nt_link_delta : 0);
}
/// CSR offset of the block of port @p port (0 to 23).
constexpr uint32_t port_base(unsigned port)
{
    return port * block_size;
}
/// CSR offset of the registers of the station that @p port belongs to.
constexpr uint32_t station_base(unsigned port)
{
    return port_base(port - port % ports_per_station);
}
/// CSR offset of test-pattern register @p i (0 to 3), the extra scratchpads of NT port @p nt.
constexpr uint32_t test_pattern(unsigned nt, unsigned i)
{
    return station_base(nt * ports_per_station) + reg::phy_test_pattern[i];
}
/// CSR offset of the block of DMA function @p function (0 to 3).
constexpr uint32_t dma_base(unsigned function)
{
    return dma_function0_base + function * block_size;
}

/// A-LUT entries that NT port @p nt has, from what VS0_UPSTREAM holds: 0, 128 or 256.
/// Both mode bits set halve the RAM between the ports.                            FBSD;VCA R
constexpr uint32_t alut_entries(uint32_t vs0_upstream_value, unsigned nt)
{
    const uint32_t mode = vs0_upstream_value >> 30;
    if ((mode >> nt & 1) == 0)
        return 0;
    return mode == 3 ? alut_entries_two_nt : alut_entries_one_nt;
}
/// CSR offset of the A-LUT RAM that translates accesses which hit BAR2 of side @p hit of NT port
/// @p nt, when that port has @p entries (128 or 256) entries.           FBSD;VCA R; direction D
constexpr uint32_t alut_array(unsigned nt, Side hit, uint32_t entries)
{
    const uint32_t array = entries == alut_entries_one_nt ? (hit == Side::link ? 2 : 0)
                                                          : nt * 2 + (hit == Side::link ? 1 : 0);
    return alut_array0_base + array * block_size;
}
/// Offset of entry @p entry (0 to 255) of @p part (reg::alut_lower, alut_upper, alut_permission)
/// from alut_array().
constexpr uint32_t alut_entry(RegArray part, uint32_t entry)
{
    return entry / alut_array_entries * block_size + part[entry % alut_array_entries];
}

/// Draco-1 CSRs that must not be touched.                                              SDK R
inline constexpr uint32_t forbidden_draco1[] = {0x856C, 0x8570, 0x1056C, 0x10570};

static_assert(nt_base(0, Side::link) == 0x3F000 && nt_base(1, Side::virt) == 0x3C000 &&
              nt_base(1, Side::link) == 0x3D000);
static_assert(alut_entry(detail::array_at("ALUT_LOWER"), 128) == detail::at("ALUT_LOWER_HI") &&
              alut_entry(detail::array_at("ALUT_UPPER"), 128) == detail::at("ALUT_UPPER_HI") &&
              alut_entry(detail::array_at("ALUT_PERMISSION"), 128) ==
                  detail::at("ALUT_PERMISSION_HI"));

} // namespace plx::facts

#endif

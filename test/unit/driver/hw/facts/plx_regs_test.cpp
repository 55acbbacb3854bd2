// SPDX-License-Identifier: BSD-3-Clause
// The tables of facts against data/*.csv, typed from the sources a second time. Every row of
// either side is accounted for; what differs on purpose is listed here with its reason.
#include "csv.hpp"

#include "hw/facts/plx_fields.hpp"
#include "hw/facts/plx_ids.hpp"
#include "hw/facts/plx_regs.hpp"

#include <gtest/gtest.h>

#include <set>

namespace
{

using namespace plx::facts;
using test::CsvRow;
using test::number;
using test::read_csv;

const std::string registers_csv = std::string(HW_TEST_DATA) + "/plx-registers.csv";
const std::string fields_csv = std::string(HW_TEST_DATA) + "/plx-fields.csv";

// Rows of the csv that name a part of another register.
struct Alias {
    const char *of;
    uint32_t delta; ///< bytes
};
const std::map<std::string, Alias> aliases = {
    {"REQ_ID_LUT_VIRT_VCA", {"REQ_ID_LUT_VIRT", 8 * 4}}, // entries 16 to 19
    {"DMA_CTRL2", {"DMA_CTRL_STATUS", 2}},               // upper half
    {"DMA_INTR_STATUS", {"DMA_INTR_CTRL_STATUS", 2}},    // upper half
};

// The csv saw these on one side only; both endpoints have the same capability layout.
const std::set<std::string> on_both_sides = {"MSI_CONTROL", "MSI_MASK", "PCIE_LINK_CTL2_STATUS2"};

// Registers of the table that the csv does not have.
const std::set<std::string_view> not_in_csv = {
    // named by EEPROM images or performance tools, meaning unknown or guessed
    "EEP_CLOCK", "PORT_ENABLE_ALT", "CHIP_3AC", "STATION_9EC", "PORT_LANE_CONFIG",
    "PERF_MONITOR_CONTROL", "PERF_MONITOR_FIFO", "PERF_MONITOR_RAM", "PERF_COUNTER_ENABLE1",
    "PERF_COUNTER_ENABLE2", "DMA_PORT_ASSIGN",
    // standard configuration header and capabilities
    "PCI_ID", "PCI_CLASS_REVISION", "PCI_SUBSYSTEM_ID", "PCI_CAP_POINTER", "PM_CAP", "MSI_ADDR_LO",
    "MSI_ADDR_HI", "MSI_DATA", "MSI_PENDING", "PCIE_DEV_CAP", "PCIE_LINK_CAP", "PCIE_DEV_CTL2",
    "CAPTURED_BUS", "AER_CORR_MASK", "AER_HEADER_LOG_DW0", "AER_HEADER_LOG_DW2",
    "AER_HEADER_LOG_DW3",
    // set-up registers of the virtual side, which only EEPROMs write
    "BAR0_SETUP_VIRT", "BAR2_SETUP_VIRT", "BAR3_SETUP_VIRT", "BAR4_SETUP_VIRT", "BAR5_SETUP_VIRT",
    // Capella's requester-ID table
    "REQ_ID_TABLE_DATA", "REQ_ID_TABLE_INDEX"};

bool is_register(const CsvRow &row)
{
    return row.at("block") != "PCI_ID" && row.at("block") != "CONST";
}

bool block_agrees(const CsvRow &row, Block ours)
{
    const std::string &block = row.at("block");
    if (block == "CHIP")
        return ours == Block::chip || ours == Block::station || ours == Block::port;
    if (block == "NT_BOTH" || on_both_sides.contains(row.at("name")))
        return ours == Block::nt_both;
    return (block == "NT_VIRTUAL" && ours == Block::nt_virtual) ||
           (block == "NT_LINK" && ours == Block::nt_link) ||
           (block == "ALUT" && ours == Block::alut) || (block == "DMA_FUNC" && ours == Block::dma);
}

const char *access_name(Access access)
{
    static const char *const names[] = {"RO", "RW", "W1S", "W1C", "RW1C", "MIXED", "UNKNOWN"};
    return names[static_cast<int>(access)];
}

// A register of every station or port is one row with a count in the csv.
void expect_count(const CsvRow &row, const Reg &ours)
{
    const uint32_t count = number(row.at("count"));
    const uint32_t stride = row.at("stride_hex").empty() ? 0 : number(row.at("stride_hex"));
    if (ours.block == Block::port) {
        EXPECT_EQ(stride, block_size);
        EXPECT_EQ(count, ours.name == "VS_DEBUG" ? 1 : port_count); // upstream port's alone
    } else if (ours.block == Block::station && ours.count == 1) {
        EXPECT_EQ(count, station_count);
        EXPECT_EQ(stride, ports_per_station * block_size);
    } else {
        EXPECT_EQ(count, ours.count);
        EXPECT_EQ(stride, count > 1 ? ours.stride : 0);
    }
}

TEST(Facts, RegistersAgreeWithTheSecondTyping)
{
    unsigned seen = 0;
    for (const CsvRow &row : read_csv(registers_csv)) {
        const std::string &name = row.at("name");
        if (!is_register(row) || aliases.contains(name))
            continue;
        SCOPED_TRACE(name);
        const Reg *ours = find_reg(name);
        ASSERT_NE(ours, nullptr);
        EXPECT_TRUE(block_agrees(row, ours->block));
        EXPECT_EQ(number(row.at("offset_hex")), ours->offset);
        EXPECT_EQ(number(row.at("width_bits")), ours->width);
        expect_count(row, *ours);
        if (row.at("access") != "UNKNOWN") {
            EXPECT_EQ(row.at("access"), access_name(ours->access));
        }
        seen++;
    }
    EXPECT_EQ(seen + not_in_csv.size(), regs.size());
}

TEST(Facts, AliasesLieInsideTheirRegister)
{
    unsigned seen = 0;
    for (const CsvRow &row : read_csv(registers_csv)) {
        const auto alias = aliases.find(row.at("name"));
        if (alias == aliases.end())
            continue;
        SCOPED_TRACE(row.at("name"));
        const Reg *ours = find_reg(alias->second.of);
        ASSERT_NE(ours, nullptr);
        EXPECT_EQ(number(row.at("offset_hex")), ours->offset + alias->second.delta);
        EXPECT_LT(alias->second.delta, ours->count * ours->stride);
        seen++;
    }
    EXPECT_EQ(seen, aliases.size());
}

TEST(Facts, EveryRegisterIsInTheCsvOrListed)
{
    std::set<std::string> names;
    for (const CsvRow &row : read_csv(registers_csv))
        names.insert(row.at("name"));
    for (const Reg &r : regs)
        EXPECT_NE(names.contains(std::string(r.name)), not_in_csv.contains(r.name)) << r.name;
}

TEST(Facts, PciIdsAgree)
{
    std::map<std::string_view, std::string> ours;
    for (const PciId &id : pci_ids) {
        char text[16];
        snprintf(text, sizeof(text), "%04x:%04x", id.vendor, id.device);
        ours[id.name] = text;
    }
    unsigned seen = 0;
    for (const CsvRow &row : read_csv(registers_csv)) {
        if (row.at("block") != "PCI_ID")
            continue;
        EXPECT_EQ(ours[row.at("name")], row.at("offset_hex")) << row.at("name");
        seen++;
    }
    EXPECT_EQ(seen, std::size(pci_ids));
}

TEST(Facts, ConstantsAgree)
{
    const std::map<std::string, uint64_t> ours = {
        {"NT0_VIRTUAL_BASE", nt_base(0, Side::virt)},
        {"NT0_LINK_BASE", nt_base(0, Side::link)},
        {"NT1_VIRTUAL_BASE", nt_base(1, Side::virt)},
        {"NT1_LINK_BASE", nt_base(1, Side::link)},
        {"NT_LINK_DELTA", nt_link_delta},
        {"PORT_REGS_BASE", port_base(0)},
        {"STATION_REGS_BASE", station_base(7)},
        {"ALUT_ARRAY0_BASE", alut_array(0, Side::virt, 128)},
        {"ALUT_ARRAY1_BASE", alut_array(0, Side::link, 128)},
        {"ALUT_ARRAY2_BASE", alut_array(1, Side::virt, 128)},
        {"ALUT_ARRAY3_BASE", alut_array(1, Side::link, 128)},
        {"DMA_RAM_CHIP_BASE", dma_ram_base},
        {"DMA_FUNC_CHIP_BASE", dma_base(0)},
        {"DMA_CHANNEL_BASE", dma_channel_base},
        {"BAR0_SIZE", bar0_size},
        {"NT_CLASS_CODE", class_nt},
        {"DMA_CLASS_CODE", class_dma},
        {"MIN_WINDOW_SIZE", window_size_min},
        {"DMA_MAX_XFER_BYTES", dma_xfer_bytes_max},
        {"NUM_NT_PORTS", nt_count},
        {"NUM_DOORBELLS", doorbell_count},
        {"NUM_SPADS", spad_count},
        {"NUM_PHY_PATTERN_SPADS", test_pattern_count},
        {"NUM_DATA_BARS", data_bar_count},
        {"REQ_ID_LUT_ENTRIES", lut_entry_count},
        {"ALUT_ENTRIES_TWO_NT", alut_entries(0xC0000000, 1)},
        {"ALUT_ENTRIES_ONE_NT", alut_entries(0x80000000, 1)},
        {"NUM_STATIONS_MAX", station_count},
        {"PORTS_PER_STATION_NUMBERING", ports_per_station},
        {"NUM_VIRTUAL_SWITCHES", virtual_switch_count},
        {"DMA_FUNCTIONS", dma_function_count},
        {"DMA_CHANNELS_PER_FUNCTION", dma_channels_per_function},
        {"DMA_DESC_BYTES", dma_desc_bytes},
        {"DMA_RING_ALIGN_BYTES", dma_ring_align_bytes},
        {"DMA_ADDR_BITS", dma_addr_bits},
    };
    unsigned seen = 0;
    for (const CsvRow &row : read_csv(registers_csv)) {
        if (row.at("block") != "CONST")
            continue;
        SCOPED_TRACE(row.at("name"));
        ASSERT_TRUE(ours.contains(row.at("name")));
        const std::string &address = row.at("offset_hex");
        EXPECT_EQ(ours.at(row.at("name")), number(address.empty() ? row.at("count") : address));
        seen++;
    }
    EXPECT_EQ(seen, ours.size());
    EXPECT_EQ(port_base(23), 23 * 0x1000u);
    EXPECT_EQ(station_base(17), 0x10000u);
    EXPECT_EQ(dma_base(3), 0x24000u);
}

TEST(Facts, OneAlutPortHasItsLinkSideInTheThirdArray)
{
    EXPECT_EQ(alut_entries(0x40002100, 0), 256u);
    EXPECT_EQ(alut_entries(0x40002100, 1), 0u);
    EXPECT_EQ(alut_entries(0x00002100, 0), 0u);
    EXPECT_EQ(alut_array(0, Side::virt, 256), 0x38000u);
    EXPECT_EQ(alut_array(0, Side::link, 256), 0x3A000u);
    EXPECT_EQ(alut_array(1, Side::link, 256), 0x3A000u);
    EXPECT_EQ(alut_entry(reg::alut_upper, 129), 0x1404u);
}

// ---- fields

const Field *find_field(std::string_view reg_name, std::string_view name)
{
    for (const Field &f : fields)
        if (f.reg == reg_name && f.name == name)
            return &f;
    return nullptr;
}

// The 16-bit views of two DMA registers, field by field.
const std::map<std::string, std::pair<const char *, const char *>> half_views = {
    {"DMA_CTRL2.MAX_XFER_SIZE", {"DMA_CTRL_STATUS", "MAX_SRC_XFER_SIZE"}},
    {"DMA_INTR_STATUS.ERROR", {"DMA_INTR_CTRL_STATUS", "ERROR"}},
    {"DMA_INTR_STATUS.INV_DESC", {"DMA_INTR_CTRL_STATUS", "INV_DESC"}},
    {"DMA_INTR_STATUS.DESC_DONE", {"DMA_INTR_CTRL_STATUS", "DESC_DONE"}},
    {"DMA_INTR_STATUS.ABORT_DONE", {"DMA_INTR_CTRL_STATUS", "ABORT_DONE"}},
};

const std::set<std::string> fields_not_in_csv = {"MSI_CONTROL.MULTI_MSG_CAPABLE", // standard
                                                 "PCIE_LINK_CAP.PORT_NUMBER",     // standard
                                                 "AER_UNCORR_STATUS.UNSUPPORTED_REQUEST",
                                                 "CAPTURED_BUS.BUS",
                                                 "REQ_ID_TABLE_DATA.ENABLE",
                                                 "REQ_ID_TABLE_DATA.NO_SNOOP",
                                                 "REQ_ID_TABLE_DATA.REQ_ID",
                                                 "REQ_ID_TABLE_DATA.INDEX",
                                                 "REQ_ID_TABLE_INDEX.INDEX"};

TEST(Facts, FieldsAgreeWithTheSecondTyping)
{
    unsigned seen = 0;
    for (const CsvRow &row : read_csv(fields_csv)) {
        const std::string key = row.at("register") + "." + row.at("field");
        SCOPED_TRACE(key);
        const auto half = half_views.find(key);
        const uint32_t shift = half == half_views.end() ? 0 : 16;
        const Field *ours = half == half_views.end()
                                ? find_field(row.at("register"), row.at("field"))
                                : find_field(half->second.first, half->second.second);
        ASSERT_NE(ours, nullptr);
        EXPECT_EQ(number(row.at("lsb")) + shift, ours->lsb);
        if (!row.at("msb").empty()) { // DMA_BLK_XFER_SIZE.BYTE_COUNT: top bit not stated
            EXPECT_EQ(number(row.at("msb")) + shift, ours->msb);
        }
        seen++;
    }
    EXPECT_EQ(seen - half_views.size() + fields_not_in_csv.size(), std::size(fields));
}

TEST(Facts, EveryFieldIsInTheCsvOrListed)
{
    std::set<std::string> names;
    for (const CsvRow &row : read_csv(fields_csv))
        names.insert(row.at("register") + "." + row.at("field"));
    for (const Field &f : fields) {
        const std::string key = std::string(f.reg) + "." + std::string(f.name);
        EXPECT_NE(names.contains(key), fields_not_in_csv.contains(key)) << key;
    }
}

// ---- reset values

// What the images of production boards with one NT port hold; nothing else may claim to be known.
TEST(Facts, KnownResetValuesAreThoseOfEepromImages)
{
    const std::map<std::string_view, uint32_t> image = {
        {"PORT_LANE_CONFIG", 4},
        {"EEP_CLOCK", 2},
        {"PORT_ENABLE_ALT", 0x80000001},
        {"VS0_UPSTREAM", 0x40002100},
        {"CHIP_3AC", 1},
        {"STATION_9EC", 0x010000A0},
        {"VS_DEBUG", 0x03000000},
        {"BAR2_SETUP_VIRT", 0xC000000C},
        {"BAR3_SETUP_VIRT", 0xFFFFFFFF},
        {"BAR2_SETUP", 0xC000000C},
        {"BAR3_SETUP", 0xFFFFFFFF},
        {"PM_HOTPLUG_CONFIG", 0x800},
        {"REQ_ID_LUT_VIRT", 1},
        {"REQ_ID_LUT_LINK", 1},
        {"PCIE_DEV_CTL_STATUS", 0x285E},
        {"DMA_PCIE_DEV_CTL_STATUS", 0x285E},
        {"DMA_GLOBAL_CONTROL", 2},
        {"DMA_PORT_ASSIGN", 0x01010000},
        {"DMA_BANDWIDTH", 0x01000004},
        {"DMA_CTRL_STATUS", 0x03C20000},
        {"DMA_STA_RAM_THRESH", 0x003A002E},
        {"DMA_STA0_HDR_RAM", 0x009800A0},
        {"DMA_STA0_PLD_RAM", 0x00F80100},
        {"DMA_STA1_HDR_RAM", 0x009800A0},
        {"DMA_STA1_PLD_RAM", 0x00F80100},
    };
    unsigned known = 0;
    for (const Reg &r : regs) {
        if (r.reset.mark != Mark::known)
            continue;
        ASSERT_TRUE(image.contains(r.name)) << r.name;
        EXPECT_EQ(image.at(r.name), r.reset.value) << r.name;
        known++;
    }
    EXPECT_EQ(known, image.size());
}

// ---- values made of several fields

TEST(Facts, Vs0UpstreamOfProductionBoardsDecodes)
{
    EXPECT_EQ(upstream_port(0x40002100), 0);
    EXPECT_TRUE(nt_port(0x40002100, 0).enabled);
    EXPECT_EQ(nt_port(0x40002100, 0).port, 1);
    EXPECT_FALSE(nt_port(0x40002100, 1).enabled);
    EXPECT_EQ(nt_port(0xC0292800, 0).port, 8);
    EXPECT_EQ(nt_port(0xC0292800, 1).port, 9);
    EXPECT_EQ(alut_entries(0xC0292800, 0), 128u);
}

TEST(Facts, LutEntriesIgnoreTheFunction)
{
    const LutEntry entry = LutEntry::of(0x050F); // bus 5, device 1, function 7
    EXPECT_EQ(entry.encode(), 0x0509);
    EXPECT_TRUE(entry.matches(0x0508));
    EXPECT_TRUE(entry.matches(0x050B));
    EXPECT_FALSE(entry.matches(0x0510));
    EXPECT_FALSE(LutEntry{}.matches(0));
    EXPECT_EQ(lut_dword(LutEntry::of(0x0020), LutEntry::of(0x4020)), 0x40210021u); // as FBSD has it
    const LutEntry back = LutEntry::decode(0xC023);
    EXPECT_TRUE(back.enable && back.no_snoop);
    EXPECT_EQ(back.bus, 0xC0);
    EXPECT_EQ(back.device, 4);
}

TEST(Facts, BarSetupRoundTripsAndRefusesNonsense)
{
    for (unsigned shift = 20; shift < 40; shift++) {
        const BarSetup wide{uint64_t{1} << shift, true, true};
        EXPECT_EQ(BarSetup::decode(wide.low(), wide.high()).size, wide.size);
    }
    const BarSetup narrow{uint64_t{1} << 24, false, false};
    EXPECT_EQ(narrow.low(), 0xFF000000u);
    EXPECT_EQ(BarSetup::decode(narrow.low(), 0).size, narrow.size);
    EXPECT_EQ(BarSetup::decode(0xC, 0).size, 0u);                 // off
    EXPECT_EQ(BarSetup::decode(0xF0F0000C, 0xFFFFFFFF).size, 0u); // holes
    EXPECT_EQ(BarSetup::decode(0x0000000C, 0x7FFFFFFF).size, 0u); // no enable bit
    EXPECT_EQ(BarSetup::decode(0xC000000C, 0xFFFFFFFF).size, 1u << 30);
}

TEST(Facts, FieldsEncodeAndDecode)
{
    EXPECT_EQ(field::link_width.mask(), 0x03F00000u);
    EXPECT_EQ(field::link_speed.get(0x10830000), 3u);
    EXPECT_EQ(field::link_width.set(0xFFFFFFFF, 8), 0xFC8FFFFFu);
    EXPECT_EQ(field::link_width.put(0x1FF), 0x03F00000u); // too many bits are cut off
    EXPECT_EQ(link_err_all, 0xFu);
}

TEST(Facts, FamiliesFollowPartAndRevision)
{
    EXPECT_EQ(family_of(0x8749, 0xAA), Family::draco2);
    EXPECT_EQ(family_of(0x8748, 0xAA), Family::draco1);
    EXPECT_EQ(family_of(0x8748, 0xBA), Family::draco2);
    EXPECT_EQ(family_of(0x8796, 0xAA), Family::capella1);
    EXPECT_EQ(family_of(0x9797, 0xAA), Family::capella2);
    EXPECT_EQ(family_of(0x1234, 0xAA), Family::unknown);
    for (unsigned i = 0; i < std::size(families); i++)
        EXPECT_EQ(static_cast<unsigned>(families[i].family), i);
}

} // namespace

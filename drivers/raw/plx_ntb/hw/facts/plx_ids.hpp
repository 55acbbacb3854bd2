// SPDX-License-Identifier: BSD-3-Clause
// Who is who: PCI ids, class codes, chip families and what their members have.
#ifndef PLX_IDS_HPP
#define PLX_IDS_HPP

#include <cstdint>
#include <string_view>

namespace plx::facts
{

inline constexpr uint16_t vendor_plx = 0x10B5;
inline constexpr uint16_t vendor_lsi = 0x1000; ///< accepted in chip ids beside vendor_plx    SDK R
inline constexpr uint16_t vendor_intel = 0x8086;

// An EEPROM may replace any of these: side and NT number come from NT_PORT_ID alone.
inline constexpr uint16_t device_nt0_virtual = 0x87B0; //                     FBSD;TNL;KAO;SDK R
inline constexpr uint16_t device_nt1_virtual = 0x87B1; //                             FBSD;TNL R
inline constexpr uint16_t device_nt0_link = 0x87A0;    //                             FBSD;TNL R
inline constexpr uint16_t device_nt1_link = 0x87A1;    //                             FBSD;TNL R
inline constexpr uint16_t device_dma = 0x87D0;         //                          LPD;SDK;VCA R
inline constexpr uint16_t device_dma_alt = 0x87E0;     //                              SDK;VCA R

inline constexpr uint32_t class_nt = 0x068000;  //                                         SDK R
inline constexpr uint32_t class_dma = 0x088000; //                                     LPD;SDK R

enum class Function : uint8_t { nt0_virtual, nt1_virtual, nt0_link, nt1_link, dma, other };

struct PciId {
    std::string_view name;
    uint16_t vendor;
    uint16_t device;
    Function function; ///< as shipped; an EEPROM may say otherwise
};

/// Every id that sources know, boards with ids of their own included.
inline constexpr PciId pci_ids[] = {
    {"PLX_NT0_LINK", vendor_plx, device_nt0_link, Function::nt0_link},
    {"PLX_NT1_LINK", vendor_plx, device_nt1_link, Function::nt1_link},
    {"PLX_NT0_VIRTUAL", vendor_plx, device_nt0_virtual, Function::nt0_virtual},
    {"PLX_NT1_VIRTUAL", vendor_plx, device_nt1_virtual, Function::nt1_virtual},
    {"PLX_DMA", vendor_plx, device_dma, Function::dma},
    {"PLX_DMA_ALT", vendor_plx, device_dma_alt, Function::dma},
    {"INTEL_VCA_BRIDGE", vendor_intel, 0x2950, Function::other},
    {"INTEL_VCA_DMA", vendor_intel, 0x2952, Function::dma},
    {"INTEL_VCA_CARD_UPSTREAM", vendor_intel, 0x2953, Function::other},
    {"INTEL_VCA_NODE0_NT0_VIRTUAL", vendor_intel, 0x2954, Function::nt0_virtual},
    {"INTEL_VCA_NODE1_NT1_VIRTUAL", vendor_intel, 0x2955, Function::nt1_virtual},
    {"INTEL_VCA_NODE2_NT0_VIRTUAL", vendor_intel, 0x2956, Function::nt0_virtual},
    {"INTEL_VCA_NODE3", vendor_intel, 0x2957, Function::other},
    {"INTEL_VCA_CPU0_NT0_LINK", vendor_intel, 0x2958, Function::nt0_link},
    {"INTEL_VCA_CPU1_NT1_LINK", vendor_intel, 0x2959, Function::nt1_link},
    {"INTEL_VCA_CPU2_NT0_LINK", vendor_intel, 0x295A, Function::nt0_link},
};

enum class Family : uint8_t { unknown, scout, draco1, draco2, capella1, capella2 };

/// How a family's requester-ID table is reached.
enum class LutType : uint8_t {
    array,   ///< 32 entries of 16 bits in the NT block
    indexed, ///< 256 entries behind an index register
};

struct FamilyFacts {
    std::string_view name;
    Family family;
    LutType lut;
    bool has_alut;
    bool has_nt_port_id; ///< register C8C answers
    uint8_t dma_channels;
};

/// What the families have.                                                      SDK R; FBSD R
/// The parts of Draco-1 and Scout appear with DMA ports in the vendor's map, but no driver is
/// known that drives them: 0 channels here.
inline constexpr FamilyFacts families[] = {
    {"unknown", Family::unknown, LutType::array, false, true, 0},
    {"Scout", Family::scout, LutType::array, false, true, 0},
    {"Draco-1", Family::draco1, LutType::array, false, false, 0},
    {"Draco-2", Family::draco2, LutType::array, true, true, 4},
    {"Capella-1", Family::capella1, LutType::indexed, true, true, 0},
    {"Capella-2", Family::capella2, LutType::indexed, true, true, 0},
};
constexpr const FamilyFacts &family_facts(Family family)
{
    return families[static_cast<unsigned>(family)];
}

struct Part {
    uint16_t number; ///< as in the chip id, hexadecimal digits
    Family family;   ///< at revision BA and later where `aa_family` differs
    Family aa_family;
    uint8_t stations; ///< port numbers 0-5, 8-13, 16-21 of the stations there are; 0: not stated
    uint8_t ports;    ///< 0: not stated
};

/// Part numbers. Draco-1 numbers at a later revision are Draco-2 silicon.               SDK R
inline constexpr Part parts[] = {
    {0x8700, Family::scout, Family::scout, 0, 0},
    {0x8712, Family::draco2, Family::draco1, 0, 0},
    {0x8713, Family::draco2, Family::draco2, 2, 12},
    {0x8714, Family::capella1, Family::capella1, 0, 0},
    {0x8716, Family::draco2, Family::draco1, 0, 0},
    {0x8717, Family::draco2, Family::draco2, 2, 12},
    {0x8718, Family::capella1, Family::capella1, 0, 0},
    {0x8724, Family::draco2, Family::draco1, 0, 0},
    {0x8725, Family::draco2, Family::draco2, 2, 12},
    {0x8732, Family::draco2, Family::draco1, 0, 0},
    {0x8733, Family::draco2, Family::draco2, 3, 18},
    {0x8734, Family::capella1, Family::capella1, 0, 0},
    {0x8747, Family::draco2, Family::draco1, 0, 0},
    {0x8748, Family::draco2, Family::draco1, 0, 0},
    {0x8749, Family::draco2, Family::draco2, 3, 18},
    {0x8750, Family::capella1, Family::capella1, 0, 0},
    {0x8764, Family::capella1, Family::capella1, 0, 0},
    {0x8780, Family::capella1, Family::capella1, 0, 0},
    {0x8796, Family::capella1, Family::capella1, 0, 0},
};

inline constexpr uint8_t revision_aa = 0xAA;

/// The family of chip number @p number at silicon revision @p revision (AAh, BAh, ...).
/// All 97xx are Capella-2.                                                              SDK R
constexpr Family family_of(uint16_t number, uint8_t revision)
{
    for (const Part &p : parts)
        if (p.number == number)
            return revision == revision_aa ? p.aa_family : p.family;
    return number >> 8 == 0x97 ? Family::capella2 : Family::unknown;
}

/// The dword that names a chip: number and vendor.
struct ChipId {
    uint16_t number;
    uint16_t vendor;
    static constexpr ChipId decode(uint32_t dword)
    {
        return {static_cast<uint16_t>(dword >> 16), static_cast<uint16_t>(dword)};
    }
    constexpr bool plausible() const { return vendor == vendor_plx || vendor == vendor_lsi; }
};

} // namespace plx::facts

#endif

// SPDX-License-Identifier: BSD-3-Clause
// Where the chips deviate from what one would expect. What code must act on is a bit, set by
// family; code tests the bit, never the part number. What needs no test in code is only a row of
// the table.
#ifndef PLX_NTB_HW_QUIRKS_HPP
#define PLX_NTB_HW_QUIRKS_HPP

#include <cstdint>

#include "facts/plx_ids.hpp"

namespace plx::hw
{

enum class Quirk : uint32_t {
    none = 0,

    /// E2 (FBSD, read): for about 100 us after the link went down the test-pattern registers that
    /// serve as extra scratchpads take no writes. A write there is read back and repeated for at
    /// most 1 ms, then reported as failed; nothing that bring-up needs lies in them.
    pattern_write_lock = 1u << 0,

    /// E3 (FBSD, read): when the data link goes down, the chip puts the link-side block (BARs,
    /// set-up, command, translation, requester-ID table) back to reset. Programming is therefore
    /// one routine that runs from software's own record after every link event, and VS_DEBUG bit 4
    /// (KAO, read) asks the chip to hold the link side, which shortens the gap where it works.
    link_loss_wipes = 1u << 1,

    /// E4 (SDK, read): no NT_PORT_ID register, so neither side nor port can be read.
    /// The vendor probes it by writes that race with configuration space; such a chip is refused.
    no_nt_port_id = 1u << 2,

    /// E5 (SDK, read): the requester-ID table stands behind an index register and holds other
    /// fields, and there is no DMA engine, under the same device ids. Such a chip is refused.
    indexed_lut = 1u << 3,

    /// E6 (SDK, read): reading A-LUT RAM has caused trouble on Draco-2. It is never read: what it
    /// holds is kept in a shadow, and writes are flushed by reading another register.
    alut_unreadable = 1u << 4,

    /// E4, second half (SDK, read): four CSRs that must not be touched; the dump passes them over.
    forbidden_csrs = 1u << 5,
};

/// The quirks of a chip: a set of Quirk bits.
class Quirks
{
public:
    constexpr Quirks() = default;
    constexpr explicit Quirks(uint32_t bits) : bits_(bits) {}
    constexpr bool has(Quirk quirk) const { return (bits_ & static_cast<uint32_t>(quirk)) != 0; }
    constexpr uint32_t bits() const { return bits_; }

private:
    uint32_t bits_ = 0;
};

/// The quirks of a family. An unknown part is taken for a Draco-2, whose workarounds are harmless
/// on the other supported families.
Quirks quirks_of(facts::Family family);

/// One entry of the list of errata, E1 to E29.
struct QuirkRow {
    unsigned number;
    Quirk bit;          ///< none: no code tests it
    const char *what;   ///< the trap
    const char *source; ///< document tags and confidence
    const char *answer; ///< what this driver does about it
};
inline constexpr unsigned quirk_row_count = 30; ///< E4 has two
extern const QuirkRow quirk_rows[quirk_row_count];

} // namespace plx::hw

#endif

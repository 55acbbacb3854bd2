// SPDX-License-Identifier: BSD-3-Clause
// Identifies the chip, the NT port and the side of a PCI function.
#ifndef PLX_NTB_HW_IDENTIFY_HPP
#define PLX_NTB_HW_IDENTIFY_HPP

#include <cstdint>

#include "facts/plx_regs.hpp"
#include "quirks.hpp"
#include "reg_io.hpp"

namespace plx::hw
{

/// Why something was refused, for the message to the user.
struct Refusal {
    const char *what = ""; ///< what was expected
    uint64_t found = 0;    ///< the value refused
    uint64_t expected = 0; ///< the multiple, limit or value it must meet; 0 where words say it all
};

/// What a chip is.
struct Identity {
    unsigned nt = 0; ///< NT port, 0 or 1
    facts::Side side = facts::Side::virt;
    facts::Family family = facts::Family::unknown;
    uint16_t part = 0;         ///< 0x8749, ...; 0: the chip does not say
    uint8_t revision = 0;      ///< 0xAA, 0xBA, ...; 0: the chip does not say
    uint8_t upstream_port = 0; ///< port towards this host
    uint8_t nt_port = 0;       ///< port towards the cable
    uint32_t alut_entries = 0; ///< 0, 128 or 256
    Quirks quirks;
    uint32_t pci_id = 0; ///< device and vendor: a register that is neither all-ones nor zero
};

/// Identifies the chip behind @p io; reads only. Values of a dead or foreign device (all ones, all
/// zeros) are not taken for registers.
/// Source: NT_PORT_ID by configuration cycle (FBSD, SDK, VCA: R), VS0_UPSTREAM (FBSD: R), chip id
/// in a vendor-specific capability or the subsystem id (SDK: R).
/// @return 0; -ENODEV nothing answers, or no NT port; -ENOTSUP a chip of another kind
int identify(const RegIo &io, Identity *out, Refusal *why);

} // namespace plx::hw

#endif

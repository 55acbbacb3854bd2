// SPDX-License-Identifier: BSD-3-Clause
// Attributes of the device, with the names of raw/ntb.
#ifndef PLX_NTB_API_ATTRIBUTES_HPP
#define PLX_NTB_API_ATTRIBUTES_HPP

#include <cstdint>

struct rte_rawdev;

namespace plx::pmd
{

/// raw/ntb's user scratchpads; the lower ones are reserved for bring-up.
inline constexpr unsigned user_spad_first = 4;
inline constexpr unsigned user_spad_count = 4;

int attr_get(rte_rawdev *, const char *name, uint64_t *value);
int attr_set(rte_rawdev *, const char *name, uint64_t value);

} // namespace plx::pmd

#endif

// SPDX-License-Identifier: BSD-3-Clause
// The dump and the self-test of a rawdev.
#ifndef PLX_NTB_API_DIAGNOSTICS_HPP
#define PLX_NTB_API_DIAGNOSTICS_HPP

#include <cstdint>
#include <cstdio>

struct rte_rawdev;

namespace plx::pmd
{

int dump(rte_rawdev *, FILE *file);
int selftest(uint16_t dev_id);

} // namespace plx::pmd

#endif

// SPDX-License-Identifier: BSD-3-Clause
// xstats of the device, then of each queue pair. Names follow DPDK: direction, queue, detail.
#ifndef PLX_NTB_API_STATISTICS_HPP
#define PLX_NTB_API_STATISTICS_HPP

#include <cstdint>

#include "device/queue_pair.hpp"

struct rte_rawdev;
struct rte_rawdev_xstats_name;

namespace plx::pmd
{

/// Inline messages, never fewer than at the last call. With the device locked, of a queue that is
/// set up.
uint64_t inline_messages(TxHalf &half);
uint64_t inline_messages(RxHalf &half);

int xstats_get(const rte_rawdev *, const unsigned ids[], uint64_t values[], unsigned n);
int xstats_get_names(const rte_rawdev *, rte_rawdev_xstats_name *names, unsigned size);
uint64_t xstats_get_by_name(const rte_rawdev *, const char *name, unsigned *id);
int xstats_reset(rte_rawdev *, const uint32_t ids[], uint32_t n);

} // namespace plx::pmd

#endif

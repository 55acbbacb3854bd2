// SPDX-License-Identifier: BSD-3-Clause
// What a queue pair found out about cache hints, in words: for the log, the dump and telemetry.
#ifndef PLX_NTB_DEVICE_CACHE_HINTS_HPP
#define PLX_NTB_DEVICE_CACHE_HINTS_HPP

#include <cstddef>

#include "queue/queue.hpp"

namespace plx::pmd
{

const char *cache_hint_name(queue::CacheHint hint);

/// Whether a hint was chosen under traffic.
inline bool cache_hint_chosen(const queue::CacheHintReport &report)
{
    return report.relative[static_cast<unsigned>(queue::CacheHint::none)] != 0;
}

inline constexpr size_t cache_hint_text_bytes = 128; // what a string of telemetry holds
/// E.g. "clwb; none 24.2 cycles/line, x0.71 clwb, x0.74 cldemote, 9 rounds"; "none, not tried".
void describe(const queue::CacheHintReport &report, char *out, size_t size);

} // namespace plx::pmd

#endif

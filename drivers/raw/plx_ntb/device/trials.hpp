// SPDX-License-Identifier: BSD-3-Clause
// What the trials of a queue pair found, in words: for the log, the dump and telemetry.
#ifndef PLX_NTB_DEVICE_TRIALS_HPP
#define PLX_NTB_DEVICE_TRIALS_HPP

#include <cstddef>
#include <span>

#include "queue/queue.hpp"

namespace plx::pmd
{

/// Names of the choices of a trial, choice 0 first.
using ChoiceNames = std::span<const char *const>;
extern const ChoiceNames cache_hint_names;
extern const ChoiceNames stores_names;
extern const ChoiceNames inline_names;

/// Whether a choice was made under traffic.
inline bool was_tried(const queue::TrialReport &report)
{
    return report.relative[report.by] != 0;
}

inline constexpr size_t trial_text_bytes = 128; // what a string of telemetry holds
/// E.g. "clwb; none 24.2 cycles/line, x0.71 clwb, x0.74 cldemote, 9 rounds"; "none, not tried".
void describe(const queue::TrialReport &report, ChoiceNames names, char *out, size_t size);
/// Of the stores of long messages, and what goes with plain ones that were chosen under traffic:
/// "plain; plain 9.8 cycles/line, x2.10 non_temporal, 3 rounds; next buffer not asked for".
void describe_stores(const queue::TrialReport &report, bool asks_ahead, char *out, size_t size);
/// E.g. "yes, 1234 pauses".
void describe(const queue::LeadReport &report, char *out, size_t size);

} // namespace plx::pmd

#endif

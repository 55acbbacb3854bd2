// SPDX-License-Identifier: BSD-3-Clause
#include "device/trials.hpp"

#include <cinttypes>
#include <cstdio>
#include <cstring>

namespace plx::pmd
{

namespace
{

/// In the order of queue::CacheHint and of queue::Stores.
constexpr const char *hints[] = {"none", "clwb", "clflushopt", "cldemote"};
constexpr const char *stores[] = {"plain", "non_temporal"};
/// Where messages between the bounds travel.
constexpr const char *places[] = {"ring", "buffers", "buffers_non_temporal"};
static_assert(static_cast<unsigned>(queue::CacheHint::cldemote) == 3 &&
              static_cast<unsigned>(queue::Stores::non_temporal) == 1);

} // namespace

const ChoiceNames cache_hint_names = hints;
const ChoiceNames stores_names = stores;
const ChoiceNames inline_names = places;

void describe(const queue::TrialReport &report, ChoiceNames names, char *out, size_t size)
{
    const char *name = names[report.in_force];
    if (!was_tried(report)) {
        std::snprintf(out, size, "%s, not tried", name);
        return;
    }
    constexpr auto scale = static_cast<double>(queue::trial_scale);
    char costs[trial_text_bytes] = "";
    size_t used = 0;
    for (unsigned i = 0; i < names.size() && used < sizeof(costs); ++i)
        if (i != report.by && report.relative[i] != 0)
            used += static_cast<size_t>(
                std::snprintf(costs + used, sizeof(costs) - used, ", x%.2f %s",
                              static_cast<double>(report.relative[i]) / scale, names[i]));
    std::snprintf(out, size, "%s; %s %.1f cycles/line%s, %" PRIu64 " rounds", name,
                  names[report.by], static_cast<double>(report.by_cost) / scale, costs,
                  report.rounds);
}

void describe_stores(const queue::TrialReport &report, bool asks_ahead, char *out, size_t size)
{
    describe(report, stores_names, out, size);
    if (!was_tried(report) || static_cast<queue::Stores>(report.in_force) != queue::Stores::plain)
        return;
    const size_t used = std::strlen(out);
    std::snprintf(out + used, size - used, "; next buffer %s",
                  asks_ahead ? "asked for" : "not asked for");
}

void describe(const queue::LeadReport &report, char *out, size_t size)
{
    std::snprintf(out, size, "%s, %" PRIu64 " pauses", report.in_force ? "yes" : "no",
                  report.pauses);
}

} // namespace plx::pmd

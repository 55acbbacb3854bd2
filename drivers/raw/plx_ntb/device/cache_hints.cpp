// SPDX-License-Identifier: BSD-3-Clause
#include "device/cache_hints.hpp"

#include <cinttypes>
#include <cstdio>

namespace plx::pmd
{

const char *cache_hint_name(queue::CacheHint hint)
{
    switch (hint) {
    case queue::CacheHint::none:
        return "none";
    case queue::CacheHint::clwb:
        return "clwb";
    case queue::CacheHint::clflushopt:
        return "clflushopt";
    case queue::CacheHint::cldemote:
        return "cldemote";
    }
    return "?";
}

void describe(const queue::CacheHintReport &report, char *out, size_t size)
{
    const char *name = cache_hint_name(static_cast<queue::CacheHint>(report.in_force));
    if (!cache_hint_chosen(report)) {
        std::snprintf(out, size, "%s, not tried", name);
        return;
    }
    constexpr auto scale = static_cast<double>(queue::cache_hint_scale);
    char costs[cache_hint_text_bytes] = "";
    size_t used = 0;
    for (unsigned i = 1; i < queue::cache_hint_count && used < sizeof(costs); ++i)
        if (report.relative[i] != 0)
            used += static_cast<size_t>(
                std::snprintf(costs + used, sizeof(costs) - used, ", x%.2f %s",
                              static_cast<double>(report.relative[i]) / scale,
                              cache_hint_name(static_cast<queue::CacheHint>(i))));
    std::snprintf(out, size, "%s; none %.1f cycles/line%s, %" PRIu64 " rounds", name,
                  static_cast<double>(report.none_cost) / scale, costs, report.rounds);
}

} // namespace plx::pmd

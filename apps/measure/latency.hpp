// SPDX-License-Identifier: BSD-3-Clause
// Times as result files have them (doc/results.md).
#ifndef APP_LATENCY_HPP
#define APP_LATENCY_HPP

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "histogram.hpp"
#include "json.hpp"

namespace app
{

/// A histogram in nanoseconds.
struct Latency {
    struct Bucket {
        double from_ns, to_ns; ///< to_ns does not belong to it
        uint64_t count;
    };
    uint64_t count = 0;
    double min_ns = 0, mean_ns = 0, max_ns = 0;
    double p50_ns = 0, p90_ns = 0, p99_ns = 0, p99_9_ns = 0, p99_99_ns = 0;
    std::vector<Bucket> buckets;
};

/// @param ns_per_tick  of the histogram's values
Latency latency_of(const Histogram &histogram, double ns_per_tick);

/// A member of an object; null where nothing was timed.
void put_latency(JsonText &json, std::string_view name, const std::optional<Latency> &latency);

} // namespace app

#endif

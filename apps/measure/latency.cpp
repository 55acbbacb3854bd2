// SPDX-License-Identifier: BSD-3-Clause
#include "latency.hpp"

namespace app
{

Latency latency_of(const Histogram &histogram, double ns_per_tick)
{
    const auto ns = [&](uint64_t ticks) { return static_cast<double>(ticks) * ns_per_tick; };
    Latency latency;
    latency.count = histogram.count();
    latency.min_ns = ns(histogram.min());
    latency.mean_ns = histogram.mean() * ns_per_tick;
    latency.max_ns = ns(histogram.max());
    latency.p50_ns = ns(histogram.quantile(0.5));
    latency.p90_ns = ns(histogram.quantile(0.9));
    latency.p99_ns = ns(histogram.quantile(0.99));
    latency.p99_9_ns = ns(histogram.quantile(0.999));
    latency.p99_99_ns = ns(histogram.quantile(0.9999));
    histogram.for_each_bucket([&](uint64_t from, uint64_t to, uint64_t count) {
        latency.buckets.push_back({ns(from), ns(to), count});
    });
    return latency;
}

void put_latency(JsonText &json, std::string_view name, const std::optional<Latency> &latency)
{
    json.key(name);
    if (!latency) {
        json.null();
        return;
    }
    json.begin_object();
    json.member("count", latency->count);
    json.member("min", latency->min_ns);
    json.member("mean", latency->mean_ns);
    json.member("p50", latency->p50_ns);
    json.member("p90", latency->p90_ns);
    json.member("p99", latency->p99_ns);
    json.member("p99_9", latency->p99_9_ns);
    json.member("p99_99", latency->p99_99_ns);
    json.member("max", latency->max_ns);
    json.key("histogram");
    json.begin_array();
    for (const Latency::Bucket &bucket : latency->buckets)
        json.row({bucket.from_ns, bucket.to_ns, static_cast<double>(bucket.count)});
    json.end_array();
    json.end_object();
}

} // namespace app

// SPDX-License-Identifier: BSD-3-Clause
#include "plan.hpp"

#include <algorithm>

namespace pktgen
{

namespace
{

constexpr uint64_t default_burst = 32;
constexpr uint64_t default_burst_bytes = 65536;
constexpr double us_per_second = 1e6;

Way way_of(Mode mode)
{
    switch (mode) {
    case Mode::latency:
    case Mode::load:
        return Way::echo;
    case Mode::bidirectional:
        return Way::both;
    case Mode::incast:
        return Way::in;
    case Mode::rate:
    case Mode::throughput:
    case Mode::replay:
        break;
    }
    return Way::out;
}

uint64_t burst_for(Mode mode, uint64_t asked, uint64_t size)
{
    if (asked != 0)
        return asked;
    return mode == Mode::latency
               ? 1
               : std::clamp<uint64_t>(default_burst_bytes / size, 1, default_burst);
}

/// The sizes of one point: from and to are the same but for a mix.
struct Span {
    uint64_t from, to;
};

std::vector<Span> spans_of(const Options &o, const Packets &packets)
{
    std::vector<Span> spans;
    if (packets.count() != 0) {
        const std::vector<uint32_t> sizes = packets.sizes();
        const auto [least, most] = std::minmax_element(sizes.begin(), sizes.end());
        return {{*least, *most}};
    }
    if (o.mix.kind != MixKind::fixed)
        return {{o.mix.from, o.mix.to}};
    for (const uint64_t size : o.sizes)
        spans.push_back({size, size});
    return spans;
}

Point base_of(const Options &o, Mode mode, const Packets &packets)
{
    Point p;
    p.mode = mode;
    p.way = way_of(mode);
    p.pattern = o.pattern;
    p.mix = mode == Mode::replay ? MixKind::pcap : o.mix.kind;
    p.verify = o.verify;
    p.clock = o.clock;
    p.run_us = static_cast<uint64_t>(std::min(o.seconds * us_per_second, double(longest_run_us)));
    p.count = o.count;
    if (mode == Mode::replay) {
        p.count = o.count != 0 ? o.count : packets.count();
        p.run_us = longest_run_us; // the file ends it
    }
    return p;
}

/// All that are due in the time of one measurement, so that none is left out because it waits.
uint64_t count_at(const Options &o, double rate)
{
    const auto due = std::max<uint64_t>(static_cast<uint64_t>(rate * o.seconds), 1);
    return o.count != 0 ? std::min(o.count, due) : due;
}

/// Burst, window, queues and rate of one mode and one size.
void add_combinations(const Options &o, Point p, size_t device, uint32_t repeat,
                      std::vector<Planned> &plan)
{
    const std::vector<uint64_t> full_window = {largest_window};
    const std::vector<double> no_rate = {0};
    const std::vector<uint64_t> &windows = p.mode == Mode::latency ? o.windows : full_window;
    const std::vector<double> &rates = p.mode == Mode::load ? o.rates : no_rate;
    for (const uint64_t queues : o.queues) {
        for (const uint64_t burst : o.bursts) {
            for (const uint64_t window : windows) {
                for (const double rate : rates) {
                    p.queues = static_cast<uint32_t>(queues);
                    p.burst = static_cast<uint32_t>(burst_for(p.mode, burst, p.size_to));
                    p.window = static_cast<uint32_t>(window);
                    p.rate = rate;
                    if (rate > 0)
                        p.count = count_at(o, rate);
                    plan.push_back({p, device, repeat});
                }
            }
        }
    }
}

/// Operations next to each other, so that a size of one is compared with the same of the other.
void add_operations(const Options &o, Point p, const Span &span, size_t device, uint32_t repeat,
                    std::vector<Planned> &plan)
{
    p.size = static_cast<uint32_t>(span.from);
    p.size_to = static_cast<uint32_t>(span.to);
    for (const Operation operation : o.operations) {
        p.operation = operation;
        add_combinations(o, p, device, repeat, plan);
    }
}

} // namespace

std::vector<Planned> plan_for(const Options &o, const Packets &packets)
{
    std::vector<Planned> plan;
    const std::vector<Span> spans = spans_of(o, packets);
    for (uint32_t repeat = 0; repeat < o.repeat; ++repeat) {
        for (const Mode mode : o.modes) {
            // All devices at once, or one after the other.
            const size_t devices = mode == Mode::incast ? 1 : o.devices.size();
            for (size_t device = 0; device < devices; ++device) {
                for (const Span &span : spans)
                    add_operations(o, base_of(o, mode, packets), span, device, repeat, plan);
            }
        }
    }
    return plan;
}

uint32_t longest_message(const std::vector<Planned> &plan)
{
    uint32_t longest = 0;
    for (const Planned &planned : plan)
        longest = std::max(longest, std::min(planned.point.size_to, largest_size));
    return longest;
}

} // namespace pktgen

// SPDX-License-Identifier: BSD-3-Clause
#include "options/plan.hpp"

#include <algorithm>

namespace pktgen
{

namespace
{

constexpr uint64_t default_burst = 32;
constexpr uint64_t default_burst_bytes = 65536;
constexpr double us_per_second = 1e6;
// Of one-sided operations that are to go as fast as they can.
constexpr uint64_t default_in_flight = 64, default_bytes_in_flight = uint64_t{8} << 20;

Direction direction_of(Mode mode)
{
    switch (mode) {
    case Mode::latency:
    case Mode::load:
        return Direction::echo;
    case Mode::bidirectional:
        return Direction::both;
    case Mode::incast:
        return Direction::in;
    case Mode::rate:
    case Mode::throughput:
    case Mode::replay:
        break;
    }
    return Direction::out;
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
    p.direction = direction_of(mode);
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

std::vector<uint64_t> in_flight_for(const Options &o, const Point &p)
{
    const bool one_sided = is_one_sided(p.operation);
    if (p.mode == Mode::latency || (one_sided && p.mode != Mode::load && o.in_flight_given))
        return o.in_flight;
    if (!one_sided)
        return {most_in_flight};
    const uint64_t most = p.mode == Mode::load ? most_in_flight : default_in_flight;
    return {std::clamp<uint64_t>(default_bytes_in_flight / p.size_to, 2, most)};
}

/// What one-sided operations want of the number in flight, burst and completion.
void fit_one_sided(const Options &o, Point &p)
{
    p.in_flight = std::min(p.in_flight, in_flight_room(p.size_to, p.queues));
    p.burst = std::min(p.burst, p.in_flight);
    p.served = o.served && is_write(p.operation);
    p.confirm =
        p.operation == Operation::write && o.confirm.value_or(p.direction == Direction::echo);
}

/// Burst, number in flight, queues and rate of one mode and one size.
void add_combinations(const Options &o, Point p, Planned planned, std::vector<Planned> &plan)
{
    const std::vector<double> no_rate = {0};
    const std::vector<uint64_t> counts = in_flight_for(o, p);
    const std::vector<double> &rates = p.mode == Mode::load ? o.rates : no_rate;
    for (const uint64_t queues : o.queues) {
        for (const uint64_t burst : o.bursts) {
            for (const uint64_t in_flight : counts) {
                for (const double rate : rates) {
                    p.queues = static_cast<uint32_t>(queues);
                    p.burst = static_cast<uint32_t>(burst_for(p.mode, burst, p.size_to));
                    p.in_flight = static_cast<uint32_t>(in_flight);
                    p.rate = rate;
                    if (rate > 0)
                        p.count = count_at(o, rate);
                    if (is_one_sided(p.operation))
                        fit_one_sided(o, p);
                    planned.point = p;
                    plan.push_back(planned);
                }
            }
        }
    }
}

/// Operations next to each other, so that a size of one is compared with the same of the other.
void add_operations(const Options &o, Point p, const Span &span, bool first, const Planned &planned,
                    std::vector<Planned> &plan)
{
    for (const Operation operation : o.operations) {
        p.operation = operation;
        p.size = static_cast<uint32_t>(span.from);
        p.size_to = static_cast<uint32_t>(span.to);
        if (is_atomic(operation)) {
            if (!first)
                continue;
            p.size = p.size_to = atomic_bytes;
            p.mix = MixKind::fixed;
        }
        add_combinations(o, p, planned, plan);
    }
}

void add_devices(const Options &o, const Packets &packets, Planned planned,
                 std::vector<Planned> &plan)
{
    const std::vector<Span> spans = spans_of(o, packets);
    for (const Mode mode : o.modes) {
        // All devices at once, or one after the other.
        const size_t devices = mode == Mode::incast ? 1 : o.devices.size();
        for (planned.device = 0; planned.device < devices; ++planned.device) {
            for (const Span &span : spans)
                add_operations(o, base_of(o, mode, packets), span, &span == spans.data(), planned,
                               plan);
        }
    }
}

} // namespace

std::vector<Planned> plan_for(const Options &o, const Packets &packets)
{
    std::vector<Planned> plan;
    for (uint32_t repeat = 0; repeat < o.repeat; ++repeat) {
        Planned planned{{}, 0, repeat, std::nullopt};
        if (o.copy_modes.empty())
            add_devices(o, packets, planned, plan);
        for (const CopyMode mode : o.copy_modes) {
            planned.copy = mode;
            add_devices(o, packets, planned, plan);
        }
    }
    return plan;
}

uint32_t longest_message(const std::vector<Planned> &plan)
{
    uint32_t longest = 0;
    for (const Planned &planned : plan) {
        if (!is_one_sided(planned.point.operation))
            longest = std::max(longest, std::min(planned.point.size_to, largest_size));
    }
    return longest;
}

} // namespace pktgen

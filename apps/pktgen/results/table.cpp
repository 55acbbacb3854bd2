// SPDX-License-Identifier: BSD-3-Clause
#include "results/table.hpp"

#include <cinttypes>
#include <cstdio>

#include "units.hpp"

namespace pktgen
{

namespace
{

constexpr const char *layout = "%-14s %-12s %9s %5s %6s %3s %10s %10s %11s %9s %9s %9s %9s %s\n";

std::string time_of(double ns)
{
    constexpr double ns_per_second = 1e9;
    return app::with_unit(ns / ns_per_second, "s");
}

std::string format(const char *const (&cells)[14])
{
    char line[256];
    std::snprintf(line, sizeof(line), layout, cells[0], cells[1], cells[2], cells[3], cells[4],
                  cells[5], cells[6], cells[7], cells[8], cells[9], cells[10], cells[11], cells[12],
                  cells[13]);
    return line;
}

std::string latency_line(const app::ResultPoint &p, const app::Latency *l, const std::string &mode)
{
    const app::ResultRate rate = app::rate_of(p);
    const bool timed = l != nullptr;
    const auto cell = [&](double ns) { return timed ? time_of(ns) : std::string("-"); };
    const app::Latency none;
    const app::Latency &t = timed ? *l : none;
    // Of writes it matters when they count as complete.
    const std::string what = p.operation == "write"  ? p.operation + " " + p.completion
                             : p.build == "in-place" ? p.operation + ", built"
                                                     : p.operation;
    return format({mode.c_str(), what.c_str(), std::to_string(p.size).c_str(),
                   std::to_string(p.burst).c_str(), std::to_string(p.in_flight).c_str(),
                   std::to_string(p.queues).c_str(),
                   p.offered_rate > 0 ? app::with_unit(p.offered_rate, "/s").c_str() : "-",
                   app::with_unit(rate.messages_per_second, "msg/s").c_str(),
                   app::with_unit(rate.bytes_per_second, "B/s").c_str(), cell(t.p50_ns).c_str(),
                   cell(t.p99_ns).c_str(), cell(t.p99_9_ns).c_str(), cell(t.max_ns).c_str(),
                   p.placement.c_str()});
}

std::string checks_of(const app::ResultPoint &p)
{
    if (p.lost + p.corrupt + p.out_of_order == 0)
        return {};
    char line[128];
    std::snprintf(line, sizeof(line),
                  "  lost %" PRIu64 ", corrupt %" PRIu64 ", out of order %" PRIu64 "\n", p.lost,
                  p.corrupt, p.out_of_order);
    return line;
}

} // namespace

std::string table_head()
{
    return format({"mode", "operation", "bytes", "burst", "flight", "q", "offered", "msg/s", "B/s",
                   "rtt p50", "p99", "p99.9", "max", "cores"});
}

std::string table_line(const app::ResultPoint &p)
{
    const app::Latency *left = p.latency ? &*p.latency : nullptr;
    std::string text;
    // What a user of the system would see comes first.
    if (p.latency_from_intended)
        text = latency_line(p, &*p.latency_from_intended, p.mode + ", due") +
               latency_line(p, left, "  from sending");
    else
        text = latency_line(p, left, p.mode);
    text += checks_of(p);
    if (!p.disturbed.empty())
        text += "  disturbed: " + p.disturbed + "\n";
    return p.error.empty() ? text : text + "  " + p.error + "\n";
}

} // namespace pktgen

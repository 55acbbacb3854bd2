// SPDX-License-Identifier: BSD-3-Clause
#include "measure/work.hpp"

#include <rte_cycles.h>

namespace pktgen
{

namespace
{

// Rings, pools and their caches have been round by then.
constexpr uint64_t warm_part = 8; ///< of the run

} // namespace

Work::Work(const Point &point)
    : warm_ticks_(static_cast<uint64_t>(static_cast<double>(point.run_us / warm_part) *
                                        static_cast<double>(rte_get_tsc_hz()) / 1e6))
{
}

void Work::begin(uint64_t) {}

void Work::start(uint64_t now)
{
    created_ = come_.begin.tsc = done_.begin.tsc = now;
    come_.last = done_.last = come_.begin;
    begin(now);
}

void Work::look(uint64_t now)
{
    look_at(received_, come_, now);
    look_at(completed_, done_, now);
}

void Work::look_at(const Received &what, Meter &meter, uint64_t now) const
{
    if (what.messages == meter.last.messages)
        return;
    meter.last = {now, what.messages, what.bytes};
    const bool warmed_up = meter.phase == Phase::warming && now - meter.begin.tsc >= warm_ticks_;
    if (meter.phase == Phase::cold || warmed_up) {
        meter.phase = warmed_up ? Phase::warm : Phase::warming;
        meter.begin = meter.last;
    }
}

Received Work::counted(const Received &what, const Meter &meter) const
{
    // Too short a run to leave anything out of it: a moment in which what had piled up was taken is
    // no rate.
    const Mark all_of_it{created_, 0, 0};
    const Mark &from = meter.last.tsc - meter.begin.tsc < warm_ticks_ ? all_of_it : meter.begin;
    Received all = what;
    all.counted_messages = meter.last.messages - from.messages;
    all.counted_bytes = meter.last.bytes - from.bytes;
    all.counted_ns = static_cast<uint64_t>(static_cast<double>(meter.last.tsc - from.tsc) * 1e9 /
                                           static_cast<double>(rte_get_tsc_hz()));
    return all;
}

unsigned steps_for(const Point &point)
{
    constexpr uint32_t small = 4096, large = 65536;
    constexpr unsigned many = 512, some = 32, few = 2;
    if (point.size_to < small)
        return many;
    return point.size_to < large ? some : few;
}

} // namespace pktgen

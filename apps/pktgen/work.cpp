// SPDX-License-Identifier: BSD-3-Clause
#include "work.hpp"

#include <rte_cycles.h>

namespace pktgen
{

namespace
{

// Rings, pools and their caches have been round by then.
constexpr uint64_t warm_part = 8; ///< of the run

} // namespace

Work::Work(const Point &point, uint64_t begin)
    : warm_ticks_(static_cast<uint64_t>(static_cast<double>(point.run_us / warm_part) *
                                        static_cast<double>(rte_get_tsc_hz()) / 1e6)),
      created_{begin, 0, 0}, begin_(created_), last_(created_)
{
}

void Work::look(uint64_t now)
{
    if (received_.messages == last_.messages)
        return;
    last_ = mark(now);
    const bool warmed_up = phase_ == Phase::warming && now - begin_.tsc >= warm_ticks_;
    if (phase_ == Phase::cold || warmed_up) {
        phase_ = warmed_up ? Phase::warm : Phase::warming;
        begin_ = last_;
    }
}

Received Work::received() const
{
    // Too short a run to leave anything out of it: a moment in which what had piled up was taken is
    // no rate.
    const Mark &from = last_.tsc - begin_.tsc < warm_ticks_ ? created_ : begin_;
    Received all = received_;
    all.counted_messages = last_.messages - from.messages;
    all.counted_bytes = last_.bytes - from.bytes;
    all.counted_ticks = last_.tsc - from.tsc;
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

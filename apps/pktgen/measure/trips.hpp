// SPDX-License-Identifier: BSD-3-Clause
// HOT. The times of what goes and comes back in order, whatever it is: when each is due, by
// the number in flight or by a rate alone, and how long it took.
#ifndef PKTGEN_MEASURE_TRIPS_HPP
#define PKTGEN_MEASURE_TRIPS_HPP

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include <rte_cycles.h>

#include "histogram.hpp"
#include "point/point.hpp"

namespace pktgen
{

/// In ticks of the TSC.
struct Timings {
    app::Histogram actual;   ///< from when one left
    app::Histogram intended; ///< from when it should have left; with a rate only
};

class Trips
{
public:
    /// @param point    of one queue; @param timed  each trip by itself
    /// @param timings  outlives it
    Trips(const Point &point, bool timed, Timings &timings)
        : timed_(timed), in_flight_(point.in_flight),
          ticks_per_trip_(point.rate > 0 ? static_cast<double>(rte_get_tsc_hz()) / point.rate : 0),
          under_way_(std::bit_ceil(uint64_t{point.in_flight})), timings_(timings)
    {
    }

    /// @param begin  now; the first is due then
    void start(uint64_t begin) { begin_ = now_ = begin; }

    /// The time for a step: with a rate the clock is read, without one it is when the last came
    /// back, which made room for the next.
    uint64_t step_time() const { return ticks_per_trip_ > 0 ? rte_rdtsc() : now_; }

    /// How many may be made at @p now. What is beyond the number in flight waits, and its wait
    /// counts.
    uint16_t due(uint64_t now, uint16_t most) const
    {
        const auto room =
            static_cast<uint16_t>(std::min<uint64_t>(most, in_flight_ - (made_ - back_)));
        if (ticks_per_trip_ <= 0)
            return room;
        uint16_t n = 0;
        while (n < room && intended_tsc(made_ + n) <= now)
            ++n;
        return n;
    }

    void make(uint16_t n)
    {
        for (uint16_t i = 0; timed_ && i < n; ++i)
            times_of(made_ + i).intended = ticks_per_trip_ > 0 ? intended_tsc(made_ + i) : now_;
        made_ += n;
    }

    void leave(unsigned n, uint64_t now)
    {
        for (unsigned i = 0; timed_ && i < n; ++i)
            times_of(sent_ + i).left = now;
        sent_ += n;
    }

    /// The oldest has come back. Between two record() at most largest_burst do.
    void come_back()
    {
        if (timed_)
            came_[came_count_++] = times_of(back_);
        ++back_;
    }

    /// Takes the time of what has come back.
    void stamp()
    {
        if (!timed_)
            return;
        now_ = rte_rdtsc();
        for (unsigned i = 0; i < came_count_; ++i) {
            came_[i].intended = now_ - came_[i].intended;
            came_[i].left = now_ - came_[i].left;
        }
    }

    /// What came last is recorded when the next is on its way, which hides what it costs.
    void record()
    {
        for (unsigned i = 0; i < came_count_; ++i) {
            timings_.actual.record(came_[i].left);
            if (ticks_per_trip_ > 0)
                timings_.intended.record(came_[i].intended);
        }
        came_count_ = 0;
    }

    uint64_t made() const { return made_; }
    uint64_t sent() const { return sent_; }
    uint64_t back() const { return back_; }

private:
    struct Times {
        uint64_t intended, left;
    };

    Times &times_of(uint64_t number) { return under_way_[number & (under_way_.size() - 1)]; }
    uint64_t intended_tsc(uint64_t number) const
    {
        return begin_ + static_cast<uint64_t>(static_cast<double>(number) * ticks_per_trip_);
    }

    const bool timed_;
    const uint64_t in_flight_;
    const double ticks_per_trip_;  ///< 0: no rate
    std::vector<Times> under_way_; ///< ring; number n is in its slot n mod size
    uint64_t made_ = 0, sent_ = 0, back_ = 0;
    Timings &timings_;
    uint64_t begin_ = 0;
    uint64_t now_ = 0;                      ///< when the last one came back
    std::array<Times, largest_burst> came_; ///< and is not recorded yet: how long it took
    unsigned came_count_ = 0;
};

} // namespace pktgen

#endif

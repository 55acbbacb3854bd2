// SPDX-License-Identifier: BSD-3-Clause
// What was measured of one message size, as one line of JSON for tools/compare.
#ifndef BENCH_PEERS_PAIR_PRINT_HPP
#define BENCH_PEERS_PAIR_PRINT_HPP

#include "histogram.hpp"
#include "peers/pair/meeting.hpp"

#include <cstddef>

namespace peers
{

/// So many in that time.
struct Count {
    uint64_t n = 0;
    uint64_t ns = 0;

    /// @return 0 where nothing was counted
    double ns_each() const { return n != 0 ? static_cast<double>(ns) / static_cast<double>(n) : 0; }
};

struct Figures {
    size_t bytes = 0;
    double probe_before_ns = 0; ///< round trip of a word between the cores
    double probe_after_ns = 0;
    Count round_trips;    ///< without a look at the clock in between
    Count messages;       ///< one way, at the receiver
    app::Histogram ticks; ///< of round trips, by the time-stamp counter, in a run of its own
};

/// @param near, far  what both sides say of their cores
void print(const Figures &figures, const Report &near, const Report &far);

} // namespace peers

#endif

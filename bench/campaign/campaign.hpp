// SPDX-License-Identifier: BSD-3-Clause
// Which pairs are taken when: until every measure has enough of them in one placement class,
// whichever it is, or time is up.
#ifndef BENCH_CAMPAIGN_CAMPAIGN_HPP
#define BENCH_CAMPAIGN_CAMPAIGN_HPP

#include "campaign/measure.hpp"

#include <array>
#include <iterator>

namespace bench
{

inline constexpr size_t measure_count = std::size(measures);

struct Plan {
    std::array<bool, measure_count> wanted{};
    bool memory = false;
    bool idle = false;
    bool kill = false;
    bool restart = false; ///< kill too
    bool crossover = false;
    bool turnover = false;
    bool wakeup = false;
    unsigned kills = 1; ///< if there are any
    unsigned pairs;     ///< undisturbed ones of each measure in a class
    uint64_t pairs_ns;  ///< how long to go on taking pairs
};

/// A figure that stands for itself.
struct Single {
    std::optional<double> value;
    std::string failure; ///< why there is none
    std::string note = {};
};

struct Findings {
    std::array<std::vector<Pair>, measure_count> pairs;
    std::array<std::string, measure_count> failures; ///< empty, or why a measure was given up
    std::array<unsigned, class_count> probes{};      ///< how often each class was seen
    Single memory_bytes;                             ///< the larger of the two hosts
    Single idle_share; ///< CPU time over time of the threads that do not poll, one host
    Single kill_to_event_ns;
    Single restart_to_message_ns; ///< from the device start of a host that was killed before
    Single wakeup_ns;             ///< from the sending of a message to its receiver, who slept
    Single turnover_rate;         ///< descriptors of a DMA engine per second
    Single crossover_bytes;       ///< 0: never
};

/// Runs the plan on open hosts. What could not be taken is said in the findings.
void run_campaign(Session &, const Plan &, Findings &);

/// Undisturbed pairs of a class.
unsigned good_pairs(const std::vector<Pair> &, Class);
/// Whether some class has so many of them.
bool enough_pairs(const std::vector<Pair> &, unsigned wanted);

} // namespace bench

#endif

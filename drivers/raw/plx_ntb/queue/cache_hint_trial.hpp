// SPDX-License-Identifier: BSD-3-Clause
// The cache-hint trial: finds the best cache hint under the real traffic. Now and then each hint
// that the CPU supports is in force for an interval of lines, and the cycles per line decide. No
// DPDK, no clock of its own, and no cost per message or burst: the queue calls step() when it is
// due.
#ifndef PLX_QUEUE_CACHE_HINT_TRIAL_HPP
#define PLX_QUEUE_CACHE_HINT_TRIAL_HPP

#include <cstdint>

#include "queue/queue.hpp"

namespace plx::queue
{

/// Works in rounds. In a round each hint has a turn: laps of the ring until its effect is visible
/// (a line's hint matters when the line is written again), then a timed interval. Costs are
/// relative to that of no hint in the same round, so that changes of the traffic between rounds do
/// not matter, and the median of the last rounds decides.
///
/// One writer, the receiving lcore. Other threads read report() while it changes, each field by
/// itself.
class CacheHintTrial
{
public:
    /// Rounds that count; odd, for the median.
    static constexpr unsigned rounds = 7;
    static constexpr uint64_t settle_laps = 2;
    static constexpr uint64_t interval_lines_min = 4096;
    /// If a line takes longer than this many cycles, the ring is mostly empty: such traffic says
    /// nothing about hints.
    static constexpr uint64_t dense_cycles = 256;
    /// After a round, the choice is in force for this many times the round's lines: a trial of
    /// three hints, one of which triples the cost of a line, then costs about 0.03 %.
    static constexpr uint64_t rest_factor = 2048;
    /// The same before the first choice.
    static constexpr uint64_t first_rest_factor = 16;
    /// Laps of the ring before the first round, and after a round was aborted at its beginning.
    static constexpr uint64_t laps_before = 8;

    /// Restarts at position 0 with @p start in force.
    /// @param tried hints to choose from, bit i for CacheHint i, including none; 0: no trial
    void open(CacheHint start, unsigned tried, uint32_t ring_lines);
    /// Position at which step() is due.
    uint64_t due() const { return due_; }
    /// @param position lines consumed
    /// @param now      cycles
    /// @return the hint for what is consumed from here on
    CacheHint step(uint64_t position, uint64_t now);
    const CacheHintReport &report() const { return report_; }

private:
    enum class Phase : uint8_t { resting, settling, measuring };

    uint64_t lap_; ///< lines
    uint64_t interval_lines_;
    uint64_t due_;
    uint64_t round_begin_;                        ///< position
    uint64_t interval_begin_;                     ///< position
    uint64_t interval_began_;                     ///< cycles
    uint32_t now_[cache_hint_count];              ///< costs in this round
    uint32_t relative_[cache_hint_count][rounds]; ///< of the last rounds
    CacheHint turns_[cache_hint_count];           ///< in the order of their turns
    uint8_t turn_count_;
    uint8_t turn_;
    Phase phase_;
    CacheHintReport report_;

    CacheHint begin_round(uint64_t position);
    CacheHint settle(uint64_t position);
    CacheHint open_interval(uint64_t position, uint64_t now);
    CacheHint close_interval(uint64_t position, uint64_t now);
    CacheHint leave_round(uint64_t position);
    CacheHint rest(uint64_t position);
    void keep_round();
    void choose();
    CacheHint in_force() const { return static_cast<CacheHint>(report_.in_force); }
};

} // namespace plx::queue

#endif

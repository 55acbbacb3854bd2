// SPDX-License-Identifier: BSD-3-Clause
// Which cache hint is best here, found out by the reader on the traffic itself: each hint the CPU
// has is in force for an interval of lines in turn, now and then, and what a line took decides. No
// DPDK, no clock of its own, and nothing a message or a burst: the queue asks when something is
// due.
#ifndef PLX_QUEUE_CACHE_HINT_TRIAL_HPP
#define PLX_QUEUE_CACHE_HINT_TRIAL_HPP

#include <cstdint>

#include "queue/queue.hpp"

namespace plx::queue
{

/// Goes round by round. In a round each hint has a turn: laps of the ring in which its effect
/// arrives (what it does to a line is felt when the line is written again), then an interval that
/// is timed. A cost is taken relative to that of none in the same round, so it does not matter that
/// traffic differs from round to round, and the median of the last rounds decides.
///
/// One writer, the lcore that receives. What report() leads to changes under any other thread, each
/// field by itself.
class CacheHintTrial
{
public:
    /// Rounds that count; odd, for the median.
    static constexpr unsigned rounds = 7;
    static constexpr uint64_t settle_laps = 2;
    static constexpr uint64_t interval_lines_min = 4096;
    /// A line that takes longer than this many cycles does not wait for its writer, but for
    /// something to be sent: such traffic says nothing about hints.
    static constexpr uint64_t dense_cycles = 256;
    /// A round is paid by this many times its lines in force of what was chosen: three hints of
    /// which one makes lines three times as dear then cost some 0.03 %.
    static constexpr uint64_t rest_factor = 2048;
    /// The same before the first choice.
    static constexpr uint64_t first_rest_factor = 16;
    /// Laps of the ring before the first round, and where traffic was too thin to begin one.
    static constexpr uint64_t laps_before = 8;

    /// Starts anew, with @p start in force at position 0.
    /// @param tried hints to choose from, bit i for CacheHint i, with none; 0: @p start stays for
    /// ever
    void open(CacheHint start, unsigned tried, uint32_t ring_lines);
    /// Position from which on step() is to be called.
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

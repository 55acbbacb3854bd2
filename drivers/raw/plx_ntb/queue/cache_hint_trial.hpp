// SPDX-License-Identifier: BSD-3-Clause
// The cache-hint trial: finds the best cache hint under the real traffic, by the cycles per line of
// neighbouring parts of the ring. No DPDK, no clock of its own, and no cost per message or burst:
// the queue calls step() when it is due (doc/decisions/015-cache-hints-in-time.md).
#ifndef PLX_QUEUE_CACHE_HINT_TRIAL_HPP
#define PLX_QUEUE_CACHE_HINT_TRIAL_HPP

#include <cstdint>

#include "queue/queue.hpp"

namespace plx::queue
{

/// Works in rounds. A line's hint matters when the line is written again, so in the first lap of a
/// round segments of the ring are given the hint in force and the others in turn; in the next laps
/// they are given the same again, and timed. Each segment is compared with the one before it, so
/// that changes of the traffic do not matter. A full round has several samples of each hint and
/// decides; a look has one, and shows when a full round is worth while. A small ring has no room
/// for segments: there they are some laps long.
///
/// One writer, the receiving lcore. Other threads read report() while it changes, each field by
/// itself.
class CacheHintTrial
{
public:
    /// Samples of each hint that a full round takes, and the latest ones that decide.
    static constexpr unsigned samples = 4, window = 5;
    /// If a line takes longer than this many cycles, the ring is mostly empty: such traffic says
    /// nothing about hints.
    static constexpr uint64_t dense_cycles = 256;
    /// Of the lines, 1 / young_share are given other hints until so many rounds have confirmed the
    /// choice, afterwards 1 / old_share. A line with a dear hint counts as often as it is dearer.
    static constexpr uint64_t young_share = 50, old_share = 200;
    static constexpr unsigned young_rounds = 8;
    /// For so many times the cost of a full round no other one is begun because costs have changed;
    /// for twice as many each time that changes nothing. So a peer that sends at odd times has few
    /// of them. In cycles: when lines become dear, it is not to take longer.
    static constexpr uint64_t forced_share = 16, forced_share_most = 128;

    /// Restarts at position 0 with @p start in force.
    /// @param tried   hints to choose from, bit i for CacheHint i, including none; 0: no trial
    /// @param batch   lines between two calls of step(), at most; a burst may add some
    /// @param learned of the device; NULL: nothing is kept
    void open(CacheHint start, unsigned tried, uint32_t ring_lines, uint32_t batch,
              LearnedHints *learned);
    /// Position at which step() is due.
    uint64_t due() const { return due_; }
    /// @param position lines consumed
    /// @param messages consumed, modulo 2^32
    /// @param now      cycles
    /// @return the hint for what is consumed from here on
    CacheHint step(uint64_t position, uint32_t messages, uint64_t now);
    const CacheHintReport &report() const { return report_; }

private:
    enum class Phase : uint8_t { resting, gap, seeding, guard, timing, leaving };
    /// A point in the stream, from which an interval is timed.
    struct Mark {
        uint64_t position;
        uint64_t now;
        uint32_t messages;
    };
    /// Costs of a hint by that of the hint in force, the latest ones.
    struct Samples {
        uint32_t count;
        uint32_t cost[window];
        unsigned size() const { return count < window ? count : window; }
        uint32_t median() const;
    };

    uint64_t lap_;     ///< lines
    uint64_t segment_; ///< lines
    uint64_t batch_;   ///< lines
    uint64_t guard_;   ///< lines of a segment that are not timed, at its beginning
    uint64_t due_;
    uint64_t round_begin_; ///< position
    uint64_t next_round_;  ///< position
    uint64_t forced_from_; ///< cycles from which a full round may be forced
    uint64_t charge_;      ///< lines that this round has given other hints, dear ones several times
    uint64_t base_cost_;   ///< of the segment before; 0: not known
    uint64_t round_ratio_; ///< lines a message, scaled, of the segment before; 0: not known
    uint64_t usual_cost_[traffic_kinds]; ///< of a line, while nothing is tried; 0: not known
    Mark mark_;
    Samples sample_[traffic_kinds][cache_hint_count];
    CacheHint others_[cache_hint_count]; ///< the hints that are not in force
    CacheHint kind_hint_[traffic_kinds]; ///< in force for each kind of traffic
    bool kind_known_[traffic_kinds];
    unsigned tried_;
    LearnedHints *learned_;
    uint32_t confirmed_; ///< rounds since the last choice
    uint64_t backoff_;   ///< as forced_share, now
    uint16_t segments_, segment_index_;
    uint8_t other_count_;
    uint8_t patterns_; ///< of a full round, in a lap
    uint8_t passes_, pass_;
    uint8_t jumps_; ///< intervals in a row whose cost was unusual
    uint8_t kind_, kind_next_;
    bool inside_laps_; ///< segments are parts of a lap
    bool full_;        ///< this round
    bool signs_;       ///< this look has found a much cheaper hint
    Phase phase_;
    CacheHintReport report_;

    CacheHint rest_step(const Mark &at);
    void observe(const Mark &at);
    void follow_kind(const Mark &at, uint64_t lines);
    void enter_kind(unsigned kind);
    void follow_cost(const Mark &at, uint64_t cost);
    CacheHint begin_round(const Mark &at, bool full);
    CacheHint enter_segment(const Mark &at);
    CacheHint end_segment(const Mark &at);
    CacheHint end_round(const Mark &at, bool changed);
    CacheHint leave_round(const Mark &at, bool thin);
    bool other_traffic(uint64_t lines, uint64_t messages);
    void learn(bool changed);
    CacheHint rest(const Mark &at);
    bool force(const Mark &at);
    void add_sample(CacheHint hint, uint64_t relative);
    bool choose();
    void adopt(CacheHint hint);
    void report_costs();
    void forget_samples(unsigned kind);
    void list_others();
    uint64_t border(unsigned pass, unsigned segment) const
    {
        return round_begin_ + pass * lap_ + segment * segment_;
    }
    CacheHint segment_hint() const
    {
        return segment_index_ % 2 == 0 ? in_force() : others_[segment_index_ / 2 % other_count_];
    }
    CacheHint in_force() const { return static_cast<CacheHint>(report_.in_force); }
};

} // namespace plx::queue

#endif

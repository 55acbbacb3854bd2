// SPDX-License-Identifier: BSD-3-Clause
// A trial: finds the cheapest of a few ways to treat lines, under the real traffic, by the cycles
// per line of neighbouring parts of the stream. No DPDK, no clock of its own, and no cost per
// message or burst: the queue calls step() when it is due
// (doc/decisions/015-cache-hints-in-time.md).
#ifndef PLX_QUEUE_TRIAL_HPP
#define PLX_QUEUE_TRIAL_HPP

#include <algorithm>
#include <array>
#include <cstdint>

#include "queue/queue.hpp"

namespace plx::queue
{

/// A choice for each kind of traffic.
using TrialStart = std::array<uint8_t, traffic_kinds>;
/// The same one for all kinds.
constexpr TrialStart everywhere(uint64_t choice)
{
    TrialStart start;
    start.fill(static_cast<uint8_t>(choice));
    return start;
}

struct TrialSetup {
    /// The choice in force at first for each kind of traffic; before any is seen, the first one's.
    TrialStart start;
    /// Kinds whose first choice is likely the best, bit i for kind i: there the first round is a
    /// look.
    unsigned likely = 0;
    unsigned tried; ///< to choose from, bit i for choice i, including choice 0; 0: no trial
    uint64_t lap;   ///< lines after which a place is used again
    uint32_t batch; ///< lines between two calls of step(), at most; a burst may add some
    /// What a choice costs shows when its lines are used again, as with hints on consumed lines;
    /// otherwise while they are on their way, up to a lap later.
    bool shows_on_reuse = true;
    Learned *learned = nullptr; ///< of the device; NULL: nothing is kept
};

/// Works in rounds. Where a choice shows on reuse, segments of the first lap of a round are given
/// the choice in force and the others in turn; in the next laps they are given the same again, and
/// timed. Each segment is compared with the one before it, so that changes of the traffic do not
/// matter. A full round has several samples of each choice and decides; a look has one, and shows
/// when a full round is worth while. A small ring has no room for segments: there they are some
/// laps long, and so they are where a choice shows while its lines are on their way. There a
/// segment of another choice ends early that is plainly dear from its beginning, since it has cost
/// enough; one that costs half is taken at once, if what is in force is plainly dearer once more.
///
/// One writer, the lcore of the half. Other threads read report() while it changes, each field by
/// itself.
class Trial
{
public:
    /// Samples of each choice that a full round takes, at most so many where they disagree; and the
    /// latest ones that decide in looks.
    static constexpr unsigned samples = 4, samples_most = 12, window = 5;
    /// If a line takes longer than this many cycles, little is on its way: such traffic says
    /// nothing.
    static constexpr uint64_t dense_cycles = 256;
    /// Of an interval that is looked at early, at least.
    static constexpr uint64_t interval_lines = 8192;
    /// Of the lines, 1 / young_share are given other choices until so many rounds have confirmed
    /// the one in force, afterwards 1 / old_share. A dear line counts as often as it is dearer.
    static constexpr uint64_t young_share = 50, old_share = 200;
    static constexpr unsigned young_rounds = 8;
    /// For so many times the cost of a full round no other one is begun because costs have changed;
    /// for twice as many each time that changes nothing. So a peer that sends at odd times has few
    /// of them. In cycles: when lines become dear, it is not to take longer.
    static constexpr uint64_t forced_share = 16, forced_share_most = 128;

    /// A choice that did not last is followed by so many times its duration without rounds, twice
    /// as many each time up to distrust_most; never by more cycles than calm_most, as its duration
    /// may be hours in which nothing was sent.
    static constexpr uint64_t calm_share = 16, calm_most = uint64_t{1} << 31;
    static constexpr uint8_t distrust_most = 2;

    /// Restarts at position 0.
    void open(const TrialSetup &setup);
    /// Position at which step() is due.
    uint64_t due() const { return due_; }
    /// @param position lines so far
    /// @param messages so far, modulo 2^32
    /// @param now      cycles
    /// @return the choice for what comes from here on
    unsigned step(uint64_t position, uint32_t messages, uint64_t now);
    const TrialReport &report() const { return report_; }
    /// No round is under way.
    bool resting() const { return phase_ == Phase::resting; }

private:
    enum class Phase : uint8_t { resting, gap, seeding, guard, timing, leaving };
    /// A point in the stream, from which an interval is timed.
    struct Mark {
        uint64_t position;
        uint64_t now;
        uint32_t messages;
    };
    /// Costs of a choice by that of the one in force, the latest ones.
    struct Samples {
        uint32_t count;
        uint32_t cost[samples_most]; ///< the latest one last
        void keep_last()
        {
            if (count > 0)
                cost[0] = cost[count - 1];
            count = count > 0;
        }
        uint32_t median() const;
        uint32_t least() const { return *std::min_element(cost, cost + count); }
        uint32_t most() const { return *std::max_element(cost, cost + count); }
    };

    uint64_t lap_;     ///< lines
    uint64_t segment_; ///< lines
    uint64_t batch_;   ///< lines
    uint64_t guard_;   ///< lines of a segment that are not timed, at its beginning
    uint64_t due_;
    uint64_t round_begin_; ///< position
    uint64_t next_round_;  ///< position
    uint64_t forced_from_; ///< cycles from which a full round may be forced
    uint64_t left_home_;   ///< cycles
    uint64_t calm_until_;  ///< cycles before which no round begins
    uint64_t charge_;    ///< lines that this round has given other choices, dear ones several times
    uint64_t base_cost_; ///< of the segment before; 0: not known
    uint64_t other_cost_;  ///< of the segment before, if that was half of base_cost_; else 0
    uint64_t seen_cost_;   ///< of another choice that seemed plainly cheap; 0: none has
    uint64_t round_ratio_; ///< lines a message, scaled, of the segment before; 0: not known
    uint64_t usual_cost_[traffic_kinds]; ///< of a line, while nothing is tried; 0: not known
    Mark mark_;
    Mark settled_; ///< from where the choice in force is timed once more
    Samples sample_[traffic_kinds][trial_choices];
    uint8_t others_[trial_choices];      ///< the choices that are not in force
    uint8_t kind_choice_[traffic_kinds]; ///< in force for each kind of traffic
    bool kind_known_[traffic_kinds];
    unsigned tried_;
    Learned *learned_;
    uint32_t confirmed_; ///< rounds since the last choice
    uint64_t backoff_;   ///< as forced_share, now
    uint16_t segments_, segment_index_;
    uint8_t other_count_;
    uint8_t patterns_; ///< of a full round, in a lap
    uint8_t home_;     ///< the last choice that was confirmed, or the first one
    uint8_t distrust_; ///< how often one was left for home_ before it was
    bool away_;        ///< from home_, since left_home_
    uint8_t passes_, pass_;
    uint8_t jumps_;                 ///< intervals in a row whose cost was unusual
    uint8_t intervals_;             ///< of this segment that were looked at
    uint8_t seen_intervals_;        ///< of the segment that seen_cost_ is of
    uint8_t dear_, dearer_, cheap_; ///< of them, in a row, that cost twice, plainly more, half
    uint8_t kind_, kind_next_;
    bool inside_laps_; ///< segments are parts of a lap
    bool full_;        ///< this round
    bool rough_;       ///< this segment and the next are first looks
    bool unsettled_;   ///< lines of another choice are on their way
    bool signs_;       ///< this look has found a much cheaper one; then: the next round is for it
    Phase phase_;
    TrialReport report_;

    unsigned rest_step(const Mark &at);
    void observe(const Mark &at);
    void follow_kind(const Mark &at, uint64_t lines);
    void enter_kind(unsigned kind);
    void follow_cost(const Mark &at, uint64_t cost);
    unsigned begin_round(const Mark &at, bool full);
    unsigned enter_segment(const Mark &at);
    void watch(const Mark &at);
    unsigned look_early(const Mark &at);
    unsigned look_at_base(const Mark &at, uint64_t cost);
    unsigned look_at_other(const Mark &at, uint64_t cost);
    unsigned confirm(const Mark &at, uint64_t cost);
    unsigned begin_again(const Mark &at);
    unsigned begin_pair(const Mark &at, bool rough);
    void begin_segment_here(const Mark &at);
    unsigned leave_segment_early(const Mark &at);
    unsigned end_segment(const Mark &at);
    bool decided(const Mark &at, unsigned *next);
    unsigned end_round(const Mark &at, bool changed);
    unsigned leave_round(const Mark &at, bool thin);
    void look_back();
    bool other_traffic(uint64_t lines, uint64_t messages);
    void follow_change(const Mark &at);
    void learn(bool changed);
    unsigned rest(const Mark &at);
    bool force(const Mark &at);
    void add_sample(unsigned choice, uint64_t relative);
    bool choose();
    bool is_close() const;
    bool is_doubtful() const;
    bool others_are_dear() const;
    void adopt(unsigned choice);
    void report_costs();
    void forget_samples(unsigned kind);
    void list_others();
    /// From which on the kind of the traffic is known.
    uint64_t begin_lines() const { return 4 * batch_; }
    uint64_t border(unsigned pass, unsigned segment) const
    {
        return round_begin_ + pass * lap_ + segment * segment_;
    }
    unsigned segment_choice() const
    {
        return segment_index_ % 2 == 0 ? in_force() : others_[segment_index_ / 2 % other_count_];
    }
    /// Lines of an interval of a first look. They are not few: somebody else may have the CPU.
    uint64_t interval() const { return std::max(interval_lines, 2 * batch_); }
    /// Laps are too long to wait for before anything is known.
    bool has_looks() const { return !inside_laps_ && guard_ > interval(); }
    unsigned in_force() const { return static_cast<unsigned>(report_.in_force); }
};

} // namespace plx::queue

#endif

// SPDX-License-Identifier: BSD-3-Clause
#include "queue/trial.hpp"

#include <algorithm>
#include <atomic>

namespace plx::queue
{

namespace
{

constexpr uint64_t scale = trial_scale;
/// A choice must save at least 5 % to be taken, with all samples that are asked for.
constexpr uint64_t worth_it = scale - scale / 20;
/// With two samples, both must say that it saves a quarter, or costs a quarter more.
constexpr uint64_t plain_to_see = scale - scale / 4, plainly_dear = scale + scale / 4;
constexpr unsigned plain_samples = 2;
/// A cost is unusual from 1.5 times the usual one on, either way, in so many intervals in a row.
constexpr uint8_t jumps_min = 2;
constexpr uint64_t relative_max = 64 * scale;
/// A segment ends early once it costs twice or half as much in so many intervals in a row. Two:
/// somebody else may have had the CPU in one.
constexpr uint64_t dear_at_once = 2 * scale, cheap_at_once = scale / 2;
constexpr uint8_t at_once_min = 2, at_once_most = 4;
/// So many of what is in force, which cost nothing: with noise of 30 % two in a row agree in nearly
/// half of the cases.
constexpr uint8_t base_most = 12;
/// What a segment that was too slow to be judged is charged for.
constexpr uint64_t thin_charge = 16;
/// What a burst adds to the lines between two calls, usually.
constexpr uint64_t burst_lines = 64;

void put(uint64_t &field, uint64_t value)
{
    std::atomic_ref<uint64_t>(field).store(value, std::memory_order_relaxed);
}

void count_in_row(uint8_t &count, bool one_more)
{
    count = one_more ? static_cast<uint8_t>(count + 1) : uint8_t{0};
}

unsigned kind_of(uint64_t lines, uint64_t messages)
{
    if (4 * lines <= 5 * messages)
        return 0;
    return 2 * lines <= 5 * messages ? 1 : 2;
}

} // namespace

/// The upper median: with an even number, the dearer of the two in the middle.
uint32_t Trial::Samples::median() const
{
    uint32_t sorted[samples_most];
    const unsigned n = count;
    for (unsigned i = 0; i < n; i++) {
        unsigned at = i;
        for (; at > 0 && sorted[at - 1] > cost[i]; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = cost[i];
    }
    return sorted[n / 2];
}

void Trial::open(const TrialSetup &setup)
{
    lap_ = setup.lap;
    batch_ = setup.batch + burst_lines;
    tried_ = setup.tried;
    learned_ = setup.learned;
    put(report_.in_force, setup.start[0]);
    put(report_.rounds, 0);
    put(report_.thin, 0);
    put(report_.by, 0);
    put(report_.by_cost, 0);
    for (uint64_t &cost : report_.relative)
        put(cost, 0);
    round_begin_ = next_round_ = forced_from_ = charge_ = base_cost_ = other_cost_ = 0;
    for (uint64_t &cost : usual_cost_)
        cost = 0;
    backoff_ = forced_share;
    left_home_ = calm_until_ = 0;
    home_ = setup.start[0];
    distrust_ = 0;
    away_ = false;
    confirmed_ = 0;
    jumps_ = intervals_ = dear_ = dearer_ = cheap_ = 0;
    rough_ = unsettled_ = false;
    seen_cost_ = 0;
    mark_ = {};
    full_ = signs_ = false;
    phase_ = Phase::resting;
    for (unsigned kind = 0; kind < traffic_kinds; kind++)
        forget_samples(kind);
    list_others();
    due_ = other_count_ != 0 ? begin_lines() : UINT64_MAX;
    if (other_count_ == 0)
        return;
    const uint64_t pattern = 2 * uint64_t{other_count_};
    segment_ = std::max(lap_ / 16, std::min(7 * batch_, lap_ / pattern));
    inside_laps_ = setup.shows_on_reuse && segment_ >= 5 * batch_;
    if (inside_laps_) {
        guard_ = batch_ + batch_ / 2;
        patterns_ = static_cast<uint8_t>(std::min<uint64_t>(lap_ / (pattern * segment_), samples));
    } else {
        segment_ = 2 * lap_ + 8 * batch_;
        guard_ = lap_ + batch_;
        patterns_ = samples;
    }
    for (unsigned kind = 0; kind < traffic_kinds; kind++) {
        const uint8_t known =
            learned_ != nullptr ? learned_->of_kind[kind].load(std::memory_order_relaxed) : 0;
        kind_known_[kind] = known != 0 && known <= trial_choices && (tried_ >> (known - 1) & 1);
        kind_choice_[kind] =
            kind_known_[kind] ? static_cast<uint8_t>(known - 1) : setup.start[kind];
        kind_known_[kind] = kind_known_[kind] || (setup.likely >> kind & 1) != 0;
    }
    kind_ = kind_next_ = traffic_kinds; // not seen yet
}

unsigned Trial::step(uint64_t position, uint32_t messages, uint64_t now)
{
    const Mark at{position, now, messages};
    switch (phase_) {
    case Phase::resting:
        return rest_step(at);
    case Phase::seeding:
        segment_index_++;
        break;
    case Phase::guard:
        if (rough_ || at.position < border(pass_, segment_index_) + guard_)
            return look_early(at);
        mark_ = at;
        phase_ = Phase::timing;
        due_ = border(pass_, segment_index_ + 1u) - (inside_laps_ ? batch_ : 0);
        return segment_choice();
    case Phase::timing:
        return end_segment(at);
    case Phase::gap:
    case Phase::leaving:
        break;
    }
    return enter_segment(at);
}

/// While nothing is tried: watches kind and cost of the traffic, and begins rounds.
unsigned Trial::rest_step(const Mark &at)
{
    observe(at);
    mark_ = at;
    if (at.position >= next_round_ && at.now >= calm_until_ && kind_ < traffic_kinds &&
        kind_ == kind_next_)
        return begin_round(at, !kind_known_[kind_]);
    due_ = at.position + (kind_ < traffic_kinds ? segment_ : begin_lines());
    return in_force();
}

void Trial::observe(const Mark &at)
{
    const uint64_t lines = at.position - mark_.position, cycles = at.now - mark_.now;
    if (mark_.now == 0 || lines == 0)
        return;
    if (cycles > lines * dense_cycles) {
        jumps_ = 0;
        if (at.position >= next_round_) {
            put(report_.thin, report_.thin + 1);
            next_round_ = at.position + lap_;
        }
        return;
    }
    follow_kind(at, lines);
    // What was tried last still shows until it has been written again.
    if (kind_ == kind_next_ && at.position >= round_begin_ + lap_)
        follow_cost(at, cycles * scale / lines);
}

void Trial::follow_kind(const Mark &at, uint64_t lines)
{
    const unsigned kind = kind_of(lines, at.messages - mark_.messages);
    const bool twice = kind == kind_next_;
    kind_next_ = static_cast<uint8_t>(kind);
    if (kind != kind_ && (twice || kind_ == traffic_kinds))
        enter_kind(kind);
}

void Trial::enter_kind(unsigned kind)
{
    kind_ = static_cast<uint8_t>(kind);
    jumps_ = 0;
    confirmed_ = 0;
    if (kind_choice_[kind] != in_force()) {
        put(report_.in_force, kind_choice_[kind]);
        list_others();
    }
    home_ = static_cast<uint8_t>(in_force());
    away_ = false;
    if (!kind_known_[kind])
        next_round_ = calm_until_ = 0;
}

/// A sudden change of the cost may mean that the CPUs were moved: a full round at once.
void Trial::follow_cost(const Mark &at, uint64_t cost)
{
    uint64_t &usual = usual_cost_[kind_];
    if (usual == 0) {
        usual = cost;
        return;
    }
    if (2 * cost <= 3 * usual && 2 * usual <= 3 * cost) {
        usual = (7 * usual + cost) / 8;
        jumps_ = 0;
        return;
    }
    jumps_ = std::min<uint8_t>(jumps_ + 1, jumps_min);
    if (jumps_ < jumps_min || !force(at))
        return; // where none may be forced yet, the usual cost stays as it was
    jumps_ = 0;
    usual = cost;
}

/// @return whether a full round may be begun now
bool Trial::force(const Mark &at)
{
    if (at.now < forced_from_ || at.now < calm_until_)
        return false;
    kind_known_[kind_] = false;
    next_round_ = at.position;
    forced_from_ = UINT64_MAX; // until the round has ended
    return true;
}

unsigned Trial::begin_round(const Mark &at, bool full)
{
    full_ = full;
    charge_ = 0;
    base_cost_ = other_cost_ = round_ratio_ = 0;
    round_begin_ = at.position;
    rough_ = has_looks();
    seen_cost_ = 0;
    const unsigned patterns = full ? patterns_ : 1;
    segments_ = static_cast<uint16_t>(2 * other_count_ * patterns);
    passes_ = 1;
    if (inside_laps_)
        passes_ = static_cast<uint8_t>(1 + (full ? (samples + patterns - 1) / patterns : 1));
    segment_index_ = pass_ = 0;
    if (full && signs_) // what the look has found that asked for this round is a sample of it
        for (Samples &of : sample_[kind_])
            of.keep_last();
    else if (full)
        forget_samples(kind_);
    signs_ = false;
    return enter_segment(at);
}

unsigned Trial::enter_segment(const Mark &at)
{
    if (segment_index_ == segments_) {
        segment_index_ = 0;
        if (++pass_ == passes_) {
            if (pass_ > samples_most || !is_doubtful())
                return end_round(at, choose());
            passes_++;
        }
        if (at.position < border(pass_, 0)) {
            phase_ = Phase::gap;
            due_ = border(pass_, 0);
            return in_force();
        }
    }
    if (passes_ > 1 && pass_ == 0) {
        phase_ = Phase::seeding;
        due_ = border(0, segment_index_ + 1u);
    } else {
        phase_ = Phase::guard;
        due_ = border(pass_, segment_index_) + guard_;
        intervals_ = dear_ = dearer_ = cheap_ = 0;
        // Lines of another choice are on their way for up to a lap: what is in force is looked at
        // when they are through.
        unsettled_ = segment_index_ % 2 == 0 && (segment_index_ != 0 || seen_cost_ != 0);
        settled_ = {};
        if (!inside_laps_ && (segment_index_ % 2 != 0 ? base_cost_ != 0
                              : unsettled_            ? seen_cost_ != 0
                                                      : rough_))
            watch(at);
    }
    return segment_choice();
}

/// Looks at what is not timed, too.
void Trial::watch(const Mark &at)
{
    mark_ = at;
    due_ = at.position + interval();
    if (!rough_)
        due_ = std::min(due_, border(pass_, segment_index_) + guard_);
}

unsigned Trial::look_early(const Mark &at)
{
    const uint64_t lines = at.position - mark_.position, cycles = at.now - mark_.now;
    const bool thin = lines == 0 || cycles > lines * dense_cycles;
    const uint64_t cost = thin ? 0 : cycles * scale / lines;
    if (seen_cost_ != 0)
        return confirm(at, cost);
    if (unsettled_) {
        unsettled_ = false;
        watch(at);
        return in_force();
    }
    intervals_++;
    return segment_index_ % 2 == 0 ? look_at_base(at, cost) : look_at_other(at, cost);
}

/// What is in force when a round begins has been for a while: its cost is known as soon as two
/// intervals agree. That is good enough for what is plain to see, and for nothing else.
/// @param cost of this interval; 0: not known
unsigned Trial::look_at_base(const Mark &at, uint64_t cost)
{
    const uint64_t before = base_cost_;
    const bool agree = cost != 0 && 9 * before >= 8 * cost && 9 * cost >= 8 * before;
    base_cost_ = agree ? (before + cost) / 2 : cost;
    if (agree)
        return leave_segment_early(at);
    if (intervals_ < base_most) {
        watch(at);
        return in_force();
    }
    return begin_again(at);
}

unsigned Trial::look_at_other(const Mark &at, uint64_t cost)
{
    const uint64_t relative = std::min(cost * scale / base_cost_, relative_max);
    count_in_row(dear_, relative >= dear_at_once);
    count_in_row(dearer_, relative >= plainly_dear);
    count_in_row(cheap_, cost != 0 && relative <= cheap_at_once);
    const bool at_once =
        dear_ >= at_once_min || cheap_ >= at_once_min || (rough_ && dearer_ >= at_once_most);
    // What is on its way hides the other one for up to a lap. A full round waits for it, since to
    // begin again takes longer; for a look that would be too dear.
    const uint64_t hidden = full_ ? guard_ : 0;
    const bool enough =
        at.position >= border(pass_, segment_index_) + hidden + at_once_most * interval();
    if (!at_once && !(rough_ && enough)) {
        watch(at);
        return segment_choice();
    }
    charge_ += (at.position - border(pass_, segment_index_)) * std::max(relative, scale) / scale;
    if (!at_once)
        return begin_again(at);
    if (cheap_ >= at_once_min) {
        seen_cost_ = cost;
        seen_intervals_ = intervals_;
        return begin_pair(at, true);
    }
    add_sample(segment_choice(), relative);
    return leave_segment_early(at);
}

/// Another choice seemed to cost half: whether what is in force is plainly dearer once more. Else
/// traffic that becomes faster by itself would be put down to the choice. Lines of the other one
/// may be on their way, and dear: so it takes more dear intervals than those can be, or two when
/// they are through.
unsigned Trial::confirm(const Mark &at, uint64_t cost)
{
    const bool settled = settled_.now != 0;
    intervals_++;
    if (cost * plain_to_see >= seen_cost_ * scale)
        dear_++;
    if (!settled && at.position >= border(pass_, segment_index_) + guard_) {
        settled_ = at;
        intervals_ = 0;
    }
    const bool through = settled && intervals_ >= at_once_min;
    if (dear_ < seen_intervals_ + at_once_min && !through) {
        watch(at);
        return in_force();
    }
    if (through) {
        const uint64_t lines = at.position - settled_.position, cycles = at.now - settled_.now;
        cost = lines != 0 && cycles <= lines * dense_cycles ? cycles * scale / lines : 0;
    }
    if (cost * plain_to_see < seen_cost_ * scale)
        return begin_again(at);
    // Nothing else can save much more.
    const unsigned choice = others_[segment_index_ / 2 % other_count_];
    base_cost_ = cost;
    forget_samples(kind_);
    for (unsigned i = 0; i < plain_samples; i++)
        add_sample(choice, seen_cost_ * scale / base_cost_);
    seen_cost_ = 0;
    return end_round(at, choose());
}

/// Nothing was plain to see: what is in force and the other one have their full time.
unsigned Trial::begin_again(const Mark &at)
{
    seen_cost_ = 0;
    return begin_pair(at, false);
}

/// From what is in force on.
unsigned Trial::begin_pair(const Mark &at, bool rough)
{
    rough_ = rough;
    segment_index_ &= 0xfffe;
    base_cost_ = 0;
    begin_segment_here(at);
    return enter_segment(at);
}

void Trial::begin_segment_here(const Mark &at)
{
    round_begin_ = at.position - pass_ * lap_ - segment_index_ * segment_;
}

unsigned Trial::leave_segment_early(const Mark &at)
{
    segment_index_++;
    begin_segment_here(at);
    unsigned next;
    return decided(at, &next) ? next : enter_segment(at);
}

/// Whether what a full round has found so far is enough. @param next  what to go on with then
bool Trial::decided(const Mark &at, unsigned *next)
{
    const unsigned pattern = 2u * other_count_;
    const bool looked_back = inside_laps_ && segment_index_ == pattern + 1;
    if (!full_ || (segment_index_ % pattern != 0 && !looked_back))
        return false;
    const bool changed = !is_close() && !is_doubtful() && choose();
    if (!changed && (looked_back || !others_are_dear()))
        return false;
    *next = end_round(at, changed);
    return true;
}

unsigned Trial::end_segment(const Mark &at)
{
    const uint64_t lines = at.position - mark_.position, cycles = at.now - mark_.now;
    if (cycles > lines * dense_cycles)
        return leave_round(at, true);
    if (other_traffic(lines, at.messages - mark_.messages))
        return leave_round(at, false);
    const uint64_t end = border(pass_, segment_index_ + 1u);
    const unsigned choice = segment_choice();
    // One division in thousands of lines.
    const uint64_t cost = lines != 0 ? cycles * scale / lines : 0;
    // A late call has timed lines of the next segment too.
    const bool valid = cost != 0 && at.position <= end + batch_;
    if (segment_index_ % 2 == 0) {
        base_cost_ = valid ? cost : 0;
        if (segment_index_ != 0)
            look_back();
    } else {
        const uint64_t relative =
            valid && base_cost_ != 0 ? std::min(cost * scale / base_cost_, relative_max) : 0;
        // The first lap of a round, which is not timed, took about as long.
        charge_ +=
            segment_ * std::max(relative, scale) / scale * (inside_laps_ && pass_ == 1 ? 2 : 1);
        other_cost_ = relative != 0 && relative <= cheap_at_once ? cost : 0;
        if (relative != 0) {
            add_sample(choice, relative);
            signs_ |= relative <= plain_to_see;
        }
    }
    segment_index_++;
    if (unsigned next; decided(at, &next))
        return next;
    if (at.position >= end)
        return enter_segment(at);
    phase_ = Phase::leaving;
    due_ = end;
    return choice;
}

/// A segment that costs half of those on both sides of it is a sample by each of them: what others
/// did to one side would have to be done to the other too, and noise of 30 % does not make half.
void Trial::look_back()
{
    if (!full_ || !inside_laps_ || other_cost_ == 0 || base_cost_ == 0)
        return;
    const uint64_t relative = other_cost_ * scale / base_cost_;
    if (relative <= cheap_at_once)
        add_sample(others_[(segment_index_ / 2u - 1) % other_count_],
                   std::max<uint64_t>(relative, 1));
}

/// Whether the kind of traffic has changed since the segment before.
bool Trial::other_traffic(uint64_t lines, uint64_t messages)
{
    const uint64_t now = messages != 0 ? lines * scale / messages : 0;
    const uint64_t before = round_ratio_;
    round_ratio_ = now;
    return before != 0 && (2 * now > 3 * before || 2 * before > 3 * now);
}

/// Thin or other traffic: what was tried is paid for, and nothing is learned. A segment that took
/// so long may have been a dear one, or a pause in it.
unsigned Trial::leave_round(const Mark &at, bool thin)
{
    if (thin)
        put(report_.thin, report_.thin + 1);
    const bool dear = thin && segment_index_ % 2 != 0;
    charge_ += segment_ * (dear ? thin_charge : 1);
    signs_ = false;
    confirmed_ += dear ? 1 : 0;
    return rest(at);
}

unsigned Trial::end_round(const Mark &at, bool changed)
{
    put(report_.rounds, report_.rounds + 1);
    if (!changed)
        confirmed_++;
    if (changed)
        follow_change(at);
    if (changed)
        backoff_ = forced_share;
    else if (full_)
        backoff_ = std::min(2 * backoff_, forced_share_most);
    if (full_ || changed)
        learn(changed);
    if (full_ && !changed)
        report_costs();
    const bool again = !full_ && !changed && signs_;
    const unsigned next = rest(at);
    signs_ = again && force(at);
    return next;
}

/// A choice that was left again before it was confirmed may be the work of a peer whose delays keep
/// time with the rounds: then nothing is tried for some times as long as that has lasted.
void Trial::follow_change(const Mark &at)
{
    if (inside_laps_)
        return;
    if (in_force() != home_) {
        left_home_ = away_ ? left_home_ : at.now;
        away_ = true;
    } else if (away_) {
        const uint64_t away = std::min(at.now - left_home_, calm_most);
        calm_until_ = at.now + std::min(away * (calm_share << distrust_), calm_most);
        distrust_ = std::min<uint8_t>(distrust_ + 1, distrust_most);
        away_ = false;
    }
}

/// Keeps what is in force now. What has changed for one kind of traffic is doubtful for the others.
void Trial::learn(bool changed)
{
    usual_cost_[kind_] = changed ? 0 : usual_cost_[kind_];
    for (unsigned kind = 0; changed && kind < traffic_kinds; kind++) {
        if (kind_known_[kind] && kind_choice_[kind] != in_force())
            kind_known_[kind] = false;
        if (!kind_known_[kind])
            kind_choice_[kind] = static_cast<uint8_t>(in_force());
    }
    kind_known_[kind_] = true;
    if (learned_ != nullptr)
        learned_->of_kind[kind_].store(static_cast<uint8_t>(report_.in_force + 1),
                                       std::memory_order_relaxed);
}

unsigned Trial::rest(const Mark &at)
{
    const uint64_t pause = charge_ * (confirmed_ < young_rounds ? young_share : old_share);
    // Some more or less, by the clock: no peer shall know when.
    next_round_ = at.position + pause + pause * (at.now >> 4 & 63) / 256;
    if (full_)
        forced_from_ = at.now + backoff_ * charge_ * base_cost_ / scale;
    round_begin_ = at.position;
    jumps_ = 0;
    mark_ = at;
    phase_ = Phase::resting;
    due_ = at.position + segment_;
    return in_force();
}

void Trial::add_sample(unsigned choice, uint64_t relative)
{
    Samples &of = sample_[kind_][choice];
    const unsigned room = full_ ? samples_most : window;
    if (of.count >= room) {
        std::copy(of.cost + of.count - room + 1, of.cost + of.count, of.cost);
        of.count = room - 1;
    }
    of.cost[of.count++] = static_cast<uint32_t>(relative);
}

/// Puts the cheapest in force, if one is cheap enough by enough samples. @return whether
bool Trial::choose()
{
    unsigned best = in_force();
    uint32_t least = UINT32_MAX;
    for (unsigned i = 0; i < other_count_; i++) {
        const Samples &of = sample_[kind_][others_[i]];
        if (of.count < plain_samples)
            continue;
        const uint32_t cost = of.count >= samples ? of.median() : of.most();
        if (cost <= (of.count >= samples ? worth_it : plain_to_see) && cost < least) {
            least = cost;
            best = others_[i];
        }
    }
    if (best == in_force())
        return false;
    report_costs();
    adopt(best);
    return true;
}

/// Whether another choice may be cheaper than the one that seems cheapest, by some of the samples.
/// Rounds inside laps are short enough to go on; others have their long segments against noise.
bool Trial::is_close() const
{
    if (!inside_laps_)
        return false;
    const Samples *best = nullptr;
    for (unsigned i = 0; i < other_count_; i++) {
        const Samples &of = sample_[kind_][others_[i]];
        if (of.count != 0 && (best == nullptr || of.median() < best->median()))
            best = &of;
    }
    for (unsigned i = 0; best != nullptr && i < other_count_; i++) {
        const Samples &of = sample_[kind_][others_[i]];
        if (&of != best && of.count != 0 && of.least() < best->most())
            return true;
    }
    return false;
}

/// Whether a full round that has its samples is better continued: they disagree on whether another
/// choice is worth it, or on which.
bool Trial::is_doubtful() const
{
    bool disagree = false;
    for (unsigned i = 0; full_ && inside_laps_ && i < other_count_; i++) {
        const Samples &of = sample_[kind_][others_[i]];
        if (of.count < samples || of.count >= samples_most)
            return false;
        disagree |= of.least() <= worth_it && of.most() > worth_it;
    }
    return disagree || (full_ && is_close());
}

/// Whether two samples of each other choice say at once that the one in force is better.
bool Trial::others_are_dear() const
{
    for (unsigned i = 0; i < other_count_; i++) {
        const Samples &of = sample_[kind_][others_[i]];
        if (of.count < plain_samples || of.least() < plainly_dear)
            return false;
    }
    return true;
}

void Trial::adopt(unsigned choice)
{
    if (confirmed_ >= young_rounds && in_force() != home_) {
        home_ = static_cast<uint8_t>(in_force());
        away_ = false;
        distrust_ = 0;
    }
    put(report_.in_force, choice);
    confirmed_ = 0;
    list_others();
    for (unsigned kind = 0; kind < traffic_kinds; kind++)
        forget_samples(kind);
}

/// Costs by that of choice 0, which may be one of the others, or, where that was not timed, of the
/// one in force.
void Trial::report_costs()
{
    uint64_t cost[trial_choices] = {};
    cost[in_force()] = scale;
    for (unsigned i = 0; i < other_count_; i++) {
        const unsigned at = others_[i];
        if (const Samples &of = sample_[kind_][at]; of.count != 0)
            cost[at] = std::max(of.median(), 1u);
    }
    const unsigned by = cost[0] != 0 ? 0 : in_force();
    put(report_.by, by);
    put(report_.by_cost, base_cost_ * cost[by] / scale);
    for (unsigned i = 0; i < trial_choices; i++)
        put(report_.relative[i], cost[i] * scale / cost[by]);
}

void Trial::forget_samples(unsigned kind)
{
    for (Samples &of : sample_[kind])
        of.count = 0;
}

void Trial::list_others()
{
    other_count_ = 0;
    // The last ones first: they are those that differ most from the first.
    for (unsigned i = trial_choices; i-- > 0;)
        if ((tried_ >> i & 1) != 0 && i != report_.in_force)
            others_[other_count_++] = static_cast<uint8_t>(i);
}

} // namespace plx::queue

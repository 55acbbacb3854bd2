// SPDX-License-Identifier: BSD-3-Clause
#include "queue/cache_hint_trial.hpp"

#include <algorithm>
#include <atomic>
#include <iterator>

namespace plx::queue
{

namespace
{

/// A hint must save at least 5 % to be chosen, which is more than equal intervals differ by.
constexpr uint64_t worth_it = cache_hint_scale - cache_hint_scale / 20;

constexpr unsigned index(CacheHint hint)
{
    return static_cast<unsigned>(hint);
}

void put(uint64_t &field, uint64_t value)
{
    std::atomic_ref<uint64_t>(field).store(value, std::memory_order_relaxed);
}

uint32_t median(const uint32_t (&costs)[CacheHintTrial::rounds])
{
    uint32_t sorted[CacheHintTrial::rounds];
    std::copy(std::begin(costs), std::end(costs), sorted);
    std::nth_element(sorted, sorted + CacheHintTrial::rounds / 2, std::end(sorted));
    return sorted[CacheHintTrial::rounds / 2];
}

} // namespace

void CacheHintTrial::open(CacheHint start, unsigned tried, uint32_t ring_lines)
{
    lap_ = ring_lines;
    interval_lines_ = std::max<uint64_t>(ring_lines, interval_lines_min);
    turn_count_ = 0;
    for (unsigned i = 0; i < cache_hint_count; i++)
        if ((tried >> i & 1) != 0)
            turns_[turn_count_++] = static_cast<CacheHint>(i);
    phase_ = Phase::resting;
    due_ = turn_count_ > 1 ? laps_before * lap_ : UINT64_MAX;
    put(report_.in_force, index(start));
    put(report_.rounds, 0);
    put(report_.thin, 0);
    put(report_.none_cost, 0);
    for (uint64_t &cost : report_.relative)
        put(cost, 0);
}

CacheHint CacheHintTrial::step(uint64_t position, uint64_t now)
{
    switch (phase_) {
    case Phase::resting:
        return begin_round(position);
    case Phase::settling:
        return open_interval(position, now);
    case Phase::measuring:
        break;
    }
    return close_interval(position, now);
}

/// The hint in force goes first: slow traffic then aborts the round before any other is tried.
CacheHint CacheHintTrial::begin_round(uint64_t position)
{
    std::iter_swap(turns_, std::find(turns_, turns_ + turn_count_ - 1, in_force()));
    turn_ = 0;
    round_begin_ = position;
    return settle(position);
}

CacheHint CacheHintTrial::settle(uint64_t position)
{
    phase_ = Phase::settling;
    due_ = position + settle_laps * lap_;
    return turns_[turn_];
}

CacheHint CacheHintTrial::open_interval(uint64_t position, uint64_t now)
{
    phase_ = Phase::measuring;
    interval_begin_ = position;
    interval_began_ = now;
    due_ = position + interval_lines_;
    return turns_[turn_];
}

CacheHint CacheHintTrial::close_interval(uint64_t position, uint64_t now)
{
    const uint64_t lines = position - interval_begin_, cycles = now - interval_began_;
    if (cycles > lines * dense_cycles)
        return leave_round(position);
    // Bounded by the check above. One division in thousands of lines.
    now_[index(turns_[turn_])] = static_cast<uint32_t>(cycles * cache_hint_scale / lines);
    if (++turn_ < turn_count_)
        return settle(position);
    keep_round();
    if (report_.rounds >= rounds)
        choose();
    return rest(position);
}

CacheHint CacheHintTrial::leave_round(uint64_t position)
{
    put(report_.thin, report_.thin + 1);
    const CacheHint hint = rest(position);
    if (turn_ == 0)
        due_ = position + laps_before * lap_; // no other hint was in force
    return hint;
}

CacheHint CacheHintTrial::rest(uint64_t position)
{
    const uint64_t factor = report_.rounds < rounds ? first_rest_factor : rest_factor;
    phase_ = Phase::resting;
    due_ = position + factor * (position - round_begin_);
    return in_force();
}

void CacheHintTrial::keep_round()
{
    const uint64_t none = std::max<uint64_t>(now_[index(CacheHint::none)], 1);
    for (unsigned i = 0; i < turn_count_; i++) {
        const unsigned at = index(turns_[i]);
        relative_[at][report_.rounds % rounds] = static_cast<uint32_t>(
            std::min<uint64_t>(now_[at] * cache_hint_scale / none, UINT32_MAX));
    }
    put(report_.none_cost, none);
    put(report_.rounds, report_.rounds + 1);
}

void CacheHintTrial::choose()
{
    CacheHint best = CacheHint::none;
    uint64_t least = worth_it + 1;
    for (unsigned i = 0; i < turn_count_; i++) {
        const uint64_t cost = median(relative_[index(turns_[i])]);
        put(report_.relative[index(turns_[i])], cost);
        if (cost < least) {
            least = cost;
            best = turns_[i];
        }
    }
    put(report_.in_force, index(best));
}

} // namespace plx::queue

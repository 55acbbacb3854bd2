// SPDX-License-Identifier: BSD-3-Clause
#include "queue/cache_hint_trial.hpp"

#include <algorithm>
#include <atomic>
#include <iterator>

namespace plx::queue
{

namespace
{

/// Another hint than none must save so much: a 20th, which is above what equal windows differ by.
constexpr uint64_t worth_it = drain_scale - drain_scale / 20;

constexpr unsigned index(Drain drain)
{
    return static_cast<unsigned>(drain);
}

void put(uint64_t &field, uint64_t value)
{
    std::atomic_ref<uint64_t>(field).store(value, std::memory_order_relaxed);
}

uint32_t median(const uint32_t (&costs)[DrainTrial::rounds])
{
    uint32_t sorted[DrainTrial::rounds];
    std::copy(std::begin(costs), std::end(costs), sorted);
    std::nth_element(sorted, sorted + DrainTrial::rounds / 2, std::end(sorted));
    return sorted[DrainTrial::rounds / 2];
}

} // namespace

void DrainTrial::open(Drain start, unsigned tried, uint32_t ring_lines)
{
    lap_ = ring_lines;
    window_lines_ = std::max<uint64_t>(ring_lines, window_lines_min);
    turn_count_ = 0;
    for (unsigned i = 0; i < drain_count; i++)
        if ((tried >> i & 1) != 0)
            turns_[turn_count_++] = static_cast<Drain>(i);
    phase_ = Phase::resting;
    due_ = turn_count_ > 1 ? laps_before * lap_ : UINT64_MAX;
    put(report_.in_force, index(start));
    put(report_.rounds, 0);
    put(report_.thin, 0);
    put(report_.none_cost, 0);
    for (uint64_t &cost : report_.relative)
        put(cost, 0);
}

Drain DrainTrial::step(uint64_t position, uint64_t now)
{
    switch (phase_) {
    case Phase::resting:
        return begin_round(position);
    case Phase::settling:
        return open_window(position, now);
    case Phase::measuring:
        break;
    }
    return close_window(position, now);
}

/// What is in force goes first: traffic that turns out to be thin then meets nothing else.
Drain DrainTrial::begin_round(uint64_t position)
{
    std::iter_swap(turns_, std::find(turns_, turns_ + turn_count_ - 1, in_force()));
    turn_ = 0;
    round_begin_ = position;
    return settle(position);
}

Drain DrainTrial::settle(uint64_t position)
{
    phase_ = Phase::settling;
    due_ = position + settle_laps * lap_;
    return turns_[turn_];
}

Drain DrainTrial::open_window(uint64_t position, uint64_t now)
{
    phase_ = Phase::measuring;
    window_begin_ = position;
    window_began_ = now;
    due_ = position + window_lines_;
    return turns_[turn_];
}

Drain DrainTrial::close_window(uint64_t position, uint64_t now)
{
    const uint64_t lines = position - window_begin_, cycles = now - window_began_;
    if (cycles > lines * dense_cycles)
        return leave_round(position);
    // Bounded by the line above. A division, but one in thousands of lines.
    now_[index(turns_[turn_])] = static_cast<uint32_t>(cycles * drain_scale / lines);
    if (++turn_ < turn_count_)
        return settle(position);
    keep_round();
    if (report_.rounds >= rounds)
        choose();
    return rest(position);
}

Drain DrainTrial::leave_round(uint64_t position)
{
    put(report_.thin, report_.thin + 1);
    const Drain drain = rest(position);
    if (turn_ == 0)
        due_ = position + laps_before * lap_; // it has cost nothing
    return drain;
}

Drain DrainTrial::rest(uint64_t position)
{
    const uint64_t factor = report_.rounds < rounds ? first_rest_factor : rest_factor;
    phase_ = Phase::resting;
    due_ = position + factor * (position - round_begin_);
    return in_force();
}

void DrainTrial::keep_round()
{
    const uint64_t none = std::max<uint64_t>(now_[index(Drain::none)], 1);
    for (unsigned i = 0; i < turn_count_; i++) {
        const unsigned at = index(turns_[i]);
        relative_[at][report_.rounds % rounds] =
            static_cast<uint32_t>(std::min<uint64_t>(now_[at] * drain_scale / none, UINT32_MAX));
    }
    put(report_.none_cost, none);
    put(report_.rounds, report_.rounds + 1);
}

void DrainTrial::choose()
{
    Drain best = Drain::none;
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

// SPDX-License-Identifier: BSD-3-Clause
#include "queue/lead.hpp"

namespace plx::queue
{

namespace
{

/// What a pause must save, beside what TimedChoice asks for: an eighth. So pauses end where they
/// save nothing, though they cost nothing either.
constexpr uint64_t with_price(uint64_t cycles)
{
    return cycles + cycles / 8;
}

} // namespace

bool Lead::caught_up(uint64_t position, uint32_t messages, uint64_t now, bool trying)
{
    const uint64_t lines = position - position_, cycles = now - now_;
    const uint32_t more = messages - messages_;
    position_ = position;
    now_ = now;
    messages_ = messages;
    const bool thin = cycles > lines * dense_cycles;
    times_ = thin || more < dense_messages ? 0 : times_ + (times_ < dense_times);
    if (thin || trying) {
        begun_ = 0;
    } else if (begun_ == 0 || position - begin_ >= piece_lines) {
        const uint64_t took = now - begun_;
        if (begun_ != 0)
            choice_.took(position - begin_, choice_.way() != 0 ? with_price(took) : took);
        begin_ = position;
        begun_ = now;
    }
    const bool pause = times_ == dense_times && (trying || choice_.way() != 0);
    if (pause)
        pauses_.store(pauses() + 1, std::memory_order_relaxed);
    return pause;
}

} // namespace plx::queue

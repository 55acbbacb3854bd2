// SPDX-License-Identifier: BSD-3-Clause
#include "queue/inline_bound.hpp"

#include <algorithm>

#include "queue/wire.hpp"

namespace plx::queue
{

namespace
{

/// Choice 0 is the ring; behind it come the ways to store to receive buffers.
constexpr unsigned choice_of(Stores stores)
{
    return 1 + static_cast<unsigned>(stores);
}
/// The trial tells one, two and more lines a message apart; times this, the kinds are messages of
/// up to 5 lines, up to 10, and longer ones.
constexpr uint32_t kinds_scale = 4;
/// Lines between two steps, at least: those of a long burst. And at most, since a change of the
/// lengths in between goes unnoticed.
constexpr uint32_t step_lines = 512, step_lines_most = 16 * step_lines;

} // namespace

void InlineBound::open(const Setup &setup)
{
    s_ = setup;
    bytes_ = setup.bytes;
    now_ = 0;
    messages_ = kind_messages_ = 0;
    position_ = clock_ = 0;
    choice_ = 0;
    const bool tried = setup.always < setup.at_most;
    const unsigned buffers =
        setup.any_stores ? 1u << choice_of(Stores::plain) | 1u << choice_of(Stores::non_temporal)
                         : 1u << choice_of(setup.stores);
    trial_.open({.start = 0,
                 .tried = tried ? 1u | buffers : 0u,
                 .lap = setup.lap,
                 .batch = step_lines,
                 .shows_on_reuse = false,
                 .learned = setup.learned});
    due_ = tried ? setup.bytes : UINT64_MAX;
}

InlineBound::Way InlineBound::step(uint64_t bytes, uint32_t messages, uint64_t now)
{
    const uint64_t more = bytes - bytes_, cycles = now - now_;
    const uint32_t sent = messages - messages_;
    const bool between =
        now_ != 0 && more > uint64_t{s_.always} * sent && more <= uint64_t{s_.at_most} * sent;
    bytes_ = bytes;
    messages_ = messages;
    now_ = now;
    uint64_t next = step_lines;
    if (between) {
        position_ += more / wire::line_bytes;
        clock_ += cycles;
        kind_messages_ += kinds_scale * sent;
        if (position_ >= trial_.due())
            choice_ = trial_.step(position_, kind_messages_, clock_);
        const uint64_t left = trial_.due() - std::min(position_, trial_.due());
        next = std::clamp<uint64_t>(left, step_lines, step_lines_most);
    }
    due_ = bytes + next * wire::line_bytes;
    if (choice_ == 0)
        return {false, s_.at_most, s_.stores};
    return {between, s_.always, static_cast<Stores>(choice_ - 1)};
}

} // namespace plx::queue

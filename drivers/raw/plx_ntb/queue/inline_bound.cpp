// SPDX-License-Identifier: BSD-3-Clause
#include "queue/inline_bound.hpp"

#include <algorithm>

#include "queue/wire.hpp"

namespace plx::queue
{

namespace
{

/// Choice 0 is the ring; behind it come the ways to store to receive buffers.
constexpr uint8_t choice_of(Stores stores)
{
    return static_cast<uint8_t>(1 + static_cast<unsigned>(stores));
}
/// The trial separates one, two and more lines a message; times this, the kinds are messages of
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
    messages_ = waiting_ = kind_messages_ = 0;
    position_ = clock_ = 0;
    choice_ = 0;
    const bool tried = setup.always < setup.at_most;
    const unsigned buffers =
        setup.any_stores ? 1u << choice_of(Stores::plain) | 1u << choice_of(Stores::non_temporal)
                         : 1u << choice_of(setup.stores);
    // Messages of more than 10 lines were dearer in the ring on each CPU but one, and there by a
    // tenth at most (doc/decisions/040-inline-bound-by-trial.md).
    const Stores first = setup.any_stores ? Stores::plain : setup.stores;
    trial_.open({.start = {0, 0, tried ? choice_of(first) : uint8_t{0}},
                 .likely = 1u << 2,
                 .tried = tried ? 1u | buffers : 0u,
                 .lap = setup.lap,
                 .batch = step_lines + setup.returned * wire::inline_lines(setup.at_most),
                 .shows_on_reuse = false,
                 .learned = setup.learned});
    due_ = tried ? setup.bytes : UINT64_MAX;
}

InlineBound::Way InlineBound::step(uint64_t bytes, uint32_t messages, uint32_t waiting,
                                   uint64_t now)
{
    const uint64_t more = bytes - bytes_, cycles = now - now_;
    const uint32_t sent = messages - messages_;
    const bool between =
        now_ != 0 && more > uint64_t{s_.always} * sent && more <= uint64_t{s_.at_most} * sent;
    const uint32_t due = sent + waiting_, taken = waiting < due ? due - waiting : 0;
    bytes_ = bytes;
    messages_ = messages;
    waiting_ = waiting;
    now_ = now;
    uint64_t next = step_lines;
    if (between) {
        position_ += more * taken / (uint64_t{wire::line_bytes} * sent);
        clock_ += cycles;
        kind_messages_ += kinds_scale * taken;
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

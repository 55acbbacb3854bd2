// SPDX-License-Identifier: BSD-3-Clause
#include "direction/sender.hpp"

#include <algorithm>

namespace ntb::socket
{

std::uint64_t Sender::used_bytes(std::uint64_t taken) const
{
    return words().place_of(std::clamp(taken, start_, count_), ring_bytes_).used;
}

bool Sender::filled()
{
    if (state_ != State::Ring || narrow_ == 0 || wide_ != 0)
        return false;
    wide_ = count_;
    return true;
}

Sender::Route Sender::route(std::uint64_t kernel_count, const ReceiverWords &peer)
{
    const bool switches = state_ == State::Granted && kernel_count + by_rings_ == count_;
    if (switches) {
        start_ = count_;
        used_ = 1;
        state_ = State::Ring;
    }
    if (state_ != State::Ring)
        return {Way::Kernel, false, 0, 0, {}};
    const std::uint64_t free = room(peer.taken);
    return {free > 0 ? Way::Ring : Way::Full, switches, count_, free, place()};
}

std::uint32_t Sender::want()
{
    if (state_ != State::Tcp || rings_allowed_ == 0 || wanted_ != generation_)
        return 0;
    return ++wanted_;
}

Sender::Actions Sender::granted(std::uint32_t generation, std::uint64_t ring_bytes,
                                std::uint32_t narrow)
{
    // A grant that was not wanted is the peer's mistake, and changes nothing.
    if (generation != wanted_ || generation != generation_ + 1)
        return {};
    generation_ = generation;
    used_ = 0;
    if (state_ != State::Tcp || rings_allowed_ == 0 || ring_bytes == 0) {
        mark_ = Mark::Return;
        return {.store = true};
    }
    mark_ = Mark::None;
    ring_bytes_ = ring_bytes;
    narrow_ = narrow < ring_bytes && (narrow & (narrow - 1)) == 0 ? narrow : 0;
    wide_ = 0;
    state_ = State::Granted;
    return {};
}

Sender::Actions Sender::mark(Mark mark, State next)
{
    mark_ = mark;
    mark_offset_ = count_;
    if (used_ != 0)
        by_rings_ += count_ - start_;
    state_ = next;
    return {.store = true};
}

bool Sender::go_back(const ReceiverWords &peer, Actions &actions)
{
    if (state_ == State::Granted)
        actions = mark(Mark::Return, State::Tcp);
    else if (state_ == State::Ring && peer.seen && peer.generation == generation_)
        actions = mark(Mark::Revert, State::Tcp);
    return state_ != State::Ring;
}

Sender::Actions Sender::close()
{
    if (state_ == State::Granted)
        return mark(Mark::Return, State::Ended);
    if (state_ == State::Ring)
        return mark(Mark::End, State::Ended);
    if (state_ == State::Tcp)
        state_ = State::Ended;
    return {};
}

Sender::Actions Sender::abort()
{
    state_ = State::Broken;
    return {.reset = true};
}

Sender::Actions Sender::fin_seen(std::uint32_t generation, bool left_unread)
{
    if (generation != generation_)
        return {};
    if (state_ == State::Ring)
        return mark(left_unread ? Mark::Reset : Mark::End, State::Ended);
    if (state_ == State::Granted)
        return mark(Mark::Return, State::Ended);
    if (state_ == State::Broken && used_ != 0 && mark_ == Mark::None)
        return mark(Mark::Reset, State::Broken);
    // The mark was recorded, and perhaps not stored by one who died.
    return {.store = mark_ != Mark::None};
}

Sender::Actions Sender::gone(std::uint64_t taken)
{
    forbid_rings();
    if (state_ == State::Ring && count_ != start_ && taken < count_)
        return abort();
    if (state_ == State::Ring || state_ == State::Granted)
        mark(state_ == State::Ring ? Mark::Revert : Mark::Return, State::Tcp);
    return {};
}

Sender::Actions Sender::lost()
{
    forbid_rings();
    if (state_ == State::Ring)
        return abort();
    if (state_ == State::Granted)
        state_ = State::Tcp;
    return {};
}

void Sender::recount(std::uint64_t kernel_count)
{
    // In a ring the count is recorded before it is published, and the kernel takes nothing.
    if (state_ != State::Ring)
        count_ = kernel_count + by_rings_;
}

} // namespace ntb::socket

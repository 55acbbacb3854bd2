// SPDX-License-Identifier: BSD-3-Clause
#include "direction/receiver.hpp"

#include <algorithm>
#include <limits>

namespace ntb::socket
{

namespace
{

constexpr std::uint64_t unbounded = std::numeric_limits<std::uint64_t>::max();
constexpr Receiver::Reading native{Receiver::Source::Kernel, 0, unbounded};
constexpr Receiver::Reading nothing{Receiver::Source::Wait, 0, 0};

} // namespace

bool Receiver::may_grant(std::uint32_t wanted, std::uint64_t kernel_count) const
{
    return state_ == State::Tcp && wanted == generation_ + 1 && fin_reported_ == 0 && ask_ == 0 &&
           lost_ == 0 && kernel_count == by_kernel_;
}

std::uint32_t Receiver::grant(std::uint64_t ring_bytes)
{
    state_ = State::Granted;
    ring_bytes_ = ring_bytes;
    peer_ = {};
    return peer_.generation = ++generation_;
}

bool Receiver::look(const SenderWords &peer, std::uint64_t kernel_count)
{
    if ((state_ != State::Granted && state_ != State::Seen) || lost_ != 0 ||
        peer.generation != generation_)
        return false;
    // The switch cannot lie before what was taken by TCP.
    const bool before = peer.started && state_ == State::Granted && peer.start < taken_;
    if (!follows(peer, peer_, taken_, ring_bytes_) || before) {
        state_ = State::Reset;
        return false;
    }
    peer_ = peer;
    if (state_ == State::Seen)
        return false;
    if (peer.mark == Mark::Return) {
        state_ = State::Tcp;
        return false;
    }
    if (!peer.started)
        return false;
    state_ = kernel_count == by_kernel_ ? State::Seen : State::Reset;
    return state_ == State::Seen;
}

Receiver::Reading Receiver::next_but_bytes(const Kernel &kernel)
{
    switch (state_) {
    case State::Tcp:
        return native;
    case State::Granted:
    case State::Suspect:
        return read_granted(kernel);
    case State::Seen:
        return read_seen(kernel);
    case State::Eof:
        return {Source::End, 0, 0};
    case State::Reset:
        break;
    }
    return {Source::Reset, 0, 0};
}

Receiver::Reading Receiver::read_granted(const Kernel &kernel)
{
    if (kernel.queued > 0)
        return {Source::Kernel, 0, kernel.queued};
    if (kernel.rst || (kernel.fin && state_ == State::Suspect)) {
        state_ = State::Reset;
        return {Source::Reset, 0, 0};
    }
    return nothing;
}

Receiver::Reading Receiver::read_seen(const Kernel &kernel)
{
    if (taken_ < peer_.start) {
        if (kernel.queued > 0)
            return {Source::Kernel, 0, std::min(kernel.queued, peer_.start - taken_)};
        // Behind RST or FIN nothing follows.
        if (kernel.rst || kernel.fin)
            state_ = State::Reset;
        return state_ == State::Reset ? Reading{Source::Reset, 0, 0} : nothing;
    }
    if (peer_.mark == Mark::Revert) {
        state_ = State::Tcp;
        return native;
    }
    if (peer_.mark == Mark::End)
        state_ = State::Eof;
    else if (peer_.mark == Mark::Reset || kernel.rst || lost_ != 0)
        state_ = State::Reset;
    else
        return nothing;
    return {state_ == State::Eof ? Source::End : Source::Reset, 0, 0};
}

void Receiver::took_from_kernel(std::uint64_t bytes)
{
    taken_ += bytes;
    by_kernel_ += bytes;
}

bool Receiver::report_fin(const Kernel &kernel)
{
    if ((state_ != State::Granted && state_ != State::Seen) || !kernel.fin || fin_reported_ != 0 ||
        lost_ != 0)
        return false;
    fin_reported_ = 1;
    return true;
}

bool Receiver::ask()
{
    ask_ = 1;
    return state_ == State::Granted || state_ == State::Seen;
}

void Receiver::lost()
{
    lost_ = 1;
    if (state_ == State::Granted)
        state_ = State::Suspect;
}

} // namespace ntb::socket

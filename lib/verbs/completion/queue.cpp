// SPDX-License-Identifier: BSD-3-Clause
#include "completion/queue.hpp"

#include <algorithm>
#include <bit>

namespace ntb::verbs
{

bool CompletionQueue::create(std::uint32_t entries, Pipe *channel, std::uint64_t cookie)
{
    const std::uint32_t size = std::bit_ceil(entries);
    if (!ring_.create(size))
        return false;
    mask_ = size - 1;
    entries_ = entries;
    channel_ = channel;
    cookie_ = cookie;
    return true;
}

bool CompletionQueue::resize(std::uint32_t entries)
{
    const std::uint32_t size = std::bit_ceil(entries);
    Lazy<ntbv_wc> ring;
    if (!ring.create(size))
        return false;
    for (std::uint32_t at = tail_; at != head_; ++at)
        ring[at & (size - 1)] = ring_[at & mask_];
    ring_.swap(ring);
    mask_ = size - 1;
    entries_ = entries;
    return true;
}

void CompletionQueue::report(bool counts)
{
    if (armed_ == Armed::Solicited && !counts)
        return;
    armed_ = Armed::No;
    notify();
}

bool CompletionQueue::notify()
{
    owes_event_ = !channel_->write(&cookie_, sizeof(cookie_));
    return !owes_event_;
}

void CompletionQueue::arm(bool solicited_only)
{
    if (!solicited_only)
        armed_ = Armed::Any;
    else if (armed_ == Armed::No)
        armed_ = Armed::Solicited;
}

void CompletionQueue::forget(std::uint32_t qpn)
{
    std::uint32_t kept = tail_;
    for (std::uint32_t at = tail_; at != head_; ++at) {
        const ntbv_wc completion = ring_[at & mask_];
        if (completion.qpn != qpn)
            ring_[kept++ & mask_] = completion;
    }
    head_ = kept;
}

} // namespace ntb::verbs

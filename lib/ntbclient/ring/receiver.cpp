// SPDX-License-Identifier: BSD-3-Clause
#include "ring/receiver.hpp"

#include <cstring>

namespace ntbc
{

void Receiver::open(Direction *lines, uint8_t *data, uint32_t bytes)
{
    *this = {};
    lines_ = lines;
    data_ = data;
    bytes_ = bytes;
}

// The cursor may only advance, by no more than fits into the ring, and not at all behind an end:
// the first end that was seen stays. A reset counts wherever it comes.
size_t Receiver::learn(uint64_t word)
{
    const uint64_t advance = (word - known_) & count_mask;
    if (broken_)
        return 0;
    if (advance > bytes_ - readable() || (marks_ != 0 && advance != 0)) {
        broken_ = true;
        known_ = taken_;
        return 0;
    }
    known_ = word & count_mask;
    marks_ |= word & marks;
    return readable();
}

void Receiver::copy(void *to, size_t skip, size_t bytes) const
{
    if (bytes == 0) // a place of no bytes may be NULL
        return;
    const uint64_t at = (taken_ + skip) & (bytes_ - 1);
    const size_t first = std::min<size_t>(bytes, bytes_ - at);
    memcpy(to, data_ + at, first);
    if (first != bytes)
        memcpy(static_cast<uint8_t *>(to) + first, data_, bytes - first);
}

// The exchange is a full barrier: it pairs with the store of wants_room in Sender::arm().
bool Receiver::publish_taken()
{
    published_taken_ = taken_;
    std::atomic_ref(lines_->consumed).exchange(taken_, std::memory_order_seq_cst);
    const uint32_t sleep = load(lines_->wants_room, std::memory_order_seq_cst);
    if (sleep == 0 || sleep == rung_)
        return false;
    // What the producer has put since is not known, and does not count: with less than a quarter
    // free it would sleep on. It is woken by a later call, at the latest by the one that empties
    // the ring.
    look();
    if (!broken_ && bytes_ - readable() < bytes_ / 4)
        return false;
    rung_ = sleep;
    return true;
}

bool Receiver::arm()
{
    if (++sleeps_ == 0)
        ++sleeps_;
    std::atomic_ref(lines_->wants_data).exchange(sleeps_, std::memory_order_seq_cst);
    if (look() == 0 && marks_ == 0 && !broken_)
        return true;
    disarm();
    return false;
}

void Receiver::disarm()
{
    store(lines_->wants_data, uint32_t{0}, std::memory_order_relaxed);
}

} // namespace ntbc

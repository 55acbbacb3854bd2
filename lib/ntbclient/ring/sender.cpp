// SPDX-License-Identifier: BSD-3-Clause
#include "ring/sender.hpp"

#include <algorithm>
#include <cstring>

namespace ntbc
{

void Sender::open(Direction *lines, uint8_t *data, uint32_t bytes)
{
    *this = {};
    lines_ = lines;
    data_ = data;
    bytes_ = bytes;
}

// The cursor may only advance, and not beyond what was shown. The acquire pairs with the release of
// Receiver::give_back(): the consumer has read the bytes before they are overwritten.
void Sender::look()
{
    const uint64_t now = load(lines_->consumed) & count_mask;
    if (((now - returned_) & count_mask) > ((published_ - returned_) & count_mask))
        broken_ = true;
    else
        returned_ = now;
}

size_t Sender::room(size_t wanted)
{
    if (bytes_ - outstanding() < wanted && !broken_)
        look();
    return broken_ ? 0 : bytes_ - outstanding();
}

void Sender::put(const void *from, size_t bytes)
{
    if (bytes == 0) // a place of no bytes may be NULL
        return;
    const uint64_t at = sent_ & (bytes_ - 1);
    const size_t first = std::min<size_t>(bytes, bytes_ - at);
    memcpy(data_ + at, from, first);
    memcpy(data_, static_cast<const uint8_t *>(from) + first, bytes - first);
    store(sent_, (sent_ + bytes) & count_mask, std::memory_order_relaxed);
}

// The exchange is a full barrier: it pairs with the store of wants_data in Receiver::arm(), so that
// either the consumer sees the bytes when it looks again or we see that it sleeps.
bool Sender::publish()
{
    published_ = sent_;
    std::atomic_ref(lines_->published).exchange(sent_ | marks_, std::memory_order_seq_cst);
    const uint32_t sleep = load(lines_->wants_data, std::memory_order_seq_cst);
    const bool ring = sleep != 0 && sleep != rung_;
    rung_ = sleep;
    return ring;
}

bool Sender::publish_end(uint64_t mark)
{
    marks_ |= mark & marks;
    return publish();
}

bool Sender::arm()
{
    if (++sleeps_ == 0)
        ++sleeps_;
    std::atomic_ref(lines_->wants_room).exchange(sleeps_, std::memory_order_seq_cst);
    look();
    if (!broken_ && bytes_ - outstanding() < bytes_ / 4)
        return true;
    disarm();
    return false;
}

void Sender::disarm()
{
    store(lines_->wants_room, uint32_t{0}, std::memory_order_relaxed);
}

} // namespace ntbc

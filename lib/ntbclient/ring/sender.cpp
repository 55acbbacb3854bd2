// SPDX-License-Identifier: BSD-3-Clause
#include "ring/sender.hpp"

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
// Receiver::publish_taken(): the consumer has read the bytes before they are overwritten.
void Sender::look()
{
    const uint64_t now = load(lines_->consumed) & count_mask;
    if (((now - returned_) & count_mask) > ((published_ - returned_) & count_mask))
        broken_ = true;
    else
        returned_ = now;
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

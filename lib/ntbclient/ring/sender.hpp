// SPDX-License-Identifier: BSD-3-Clause
// The producer of a ring of bytes. Its own cursors lie in private memory and are never read back
// from the ring.
#ifndef NTBCLIENT_RING_SENDER_HPP
#define NTBCLIENT_RING_SENDER_HPP

#include "ring/layout.hpp"

#include <algorithm>
#include <cstring>
#include <span>

namespace ntbc
{

class Sender
{
public:
    /// @param bytes of the ring, is_ring_size()
    void open(Direction *lines, uint8_t *data, uint32_t bytes);

    /// Bytes that can be put. Looks at the consumer's cursor if less than @p wanted is known free.
    size_t room(size_t wanted)
    {
        if (bytes_ - outstanding() < wanted && !broken_)
            look();
        return broken_ ? 0 : bytes_ - outstanding();
    }
    /// Copies @p bytes, at most room(), behind what was put before. The consumer sees nothing yet.
    void put(const void *from, size_t bytes)
    {
        if (bytes == 0) // a place of no bytes may be NULL
            return;
        const uint64_t at = sent_ & (bytes_ - 1);
        const size_t first = std::min<size_t>(bytes, bytes_ - at);
        memcpy(data_ + at, from, first);
        if (first != bytes)
            memcpy(data_, static_cast<const uint8_t *>(from) + first, bytes - first);
        store(sent_, (sent_ + bytes) & count_mask, std::memory_order_relaxed);
    }
    /// Where bytes would go that are put next: as many as are free, as far as the consumer's cursor
    /// was looked at, and follow each other in memory.
    std::span<uint8_t> place()
    {
        const uint64_t at = sent_ & (bytes_ - 1);
        return {data_ + at, std::min<size_t>(bytes_ - outstanding(), bytes_ - at)};
    }
    /// They were put there by the caller: at most as many as are known free.
    void placed(size_t bytes)
    {
        store(sent_, (sent_ + bytes) & count_mask, std::memory_order_relaxed);
    }
    /// Shows the consumer all that was put. @return whether it sleeps and is to be woken
    bool publish()
    {
        // The exchange is a full barrier: it pairs with the store of wants_data in Receiver::arm(),
        // so that either the consumer sees the bytes when it looks again or we see that it sleeps.
        published_ = sent_;
        std::atomic_ref(lines_->published).exchange(sent_ | marks_, std::memory_order_seq_cst);
        const uint32_t sleep = load(lines_->wants_data, std::memory_order_seq_cst);
        const bool ring = sleep != 0 && sleep != rung_;
        rung_ = sleep;
        return ring;
    }
    /// Publishes, with the end of the bytes. @param mark of mark_end, mark_closed, mark_reset
    bool publish_end(uint64_t mark);

    /// Asks to be woken when a quarter of the ring is free. @return false: it is already
    bool arm();
    void disarm();

    /// Whether the consumer has written a cursor that cannot be: the connection is to be reset.
    bool is_broken() const { return broken_; }
    bool has_ended() const { return marks_ != 0; }
    /// Any thread.
    uint64_t sent() const { return load(sent_, std::memory_order_relaxed); }
    /// Bytes that the consumer has not returned yet, as far as it was looked at.
    uint64_t outstanding() const { return (sent_ - returned_) & count_mask; }
    bool has_unpublished() const { return sent_ != published_; }

private:
    void look();

    Direction *lines_ = nullptr;
    uint8_t *data_ = nullptr;
    uint64_t bytes_ = 0;
    uint64_t sent_ = 0;      // put
    uint64_t published_ = 0; // of them, shown
    uint64_t returned_ = 0;  // the consumer's cursor, checked
    uint64_t marks_ = 0;
    uint32_t sleeps_ = 0; // the word for the latest sleep
    uint32_t rung_ = 0;   // the consumer's sleep that it was woken from
    bool broken_ = false;
};

} // namespace ntbc

#endif

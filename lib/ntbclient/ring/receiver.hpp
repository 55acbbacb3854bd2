// SPDX-License-Identifier: BSD-3-Clause
// The consumer of a ring of bytes. Its own cursors lie in private memory and are never read back
// from the ring.
#ifndef NTBCLIENT_RING_RECEIVER_HPP
#define NTBCLIENT_RING_RECEIVER_HPP

#include "ring/layout.hpp"

#include <algorithm>
#include <span>

namespace ntbc
{

class Receiver
{
public:
    /// @param bytes of the ring, is_ring_size()
    void open(Direction *lines, uint8_t *data, uint32_t bytes);

    /// Bytes that can be taken, as far as the producer's cursor was looked at.
    size_t readable() const { return (known_ - taken_) & count_mask; }
    /// Looks at the producer's cursor. @return readable()
    size_t look()
    {
        const uint64_t word = load(lines_->published);
        if (word == (known_ | marks_))
            return readable();
        // No marks, before and now, and no more than fits: most often there is nothing else to see.
        const uint64_t advance = word - known_;
        if (((marks_ | word) & ~count_mask) != 0 || broken_ || advance > bytes_ - readable())
            return learn(word);
        known_ = word;
        return readable();
    }
    /// The producer's cursor, and what it is while there is nothing: no bytes, also none that are
    /// known, and no other mark than those that were seen.
    const uint64_t &cursor() const { return lines_->published; }
    uint64_t cursor_of_nothing() const { return taken_ | marks_; }
    /// Copies bytes out without taking them. @p skip and @p bytes are at most readable() together.
    void copy(void *to, size_t skip, size_t bytes) const;
    /// Where those lie that can be taken, as many as follow each other in memory. The producer may
    /// still change them.
    std::span<const uint8_t> view() const
    {
        const uint64_t at = taken_ & (bytes_ - 1);
        return {data_ + at, std::min<size_t>(readable(), bytes_ - at)};
    }
    /// Takes @p bytes, at most readable(). @return whether the producer sleeps and is to be woken
    bool take(size_t bytes)
    {
        // The producer sleeps only where more than three quarters of the ring were not returned, so
        // nothing is lost if less than a quarter is kept back: taking the rest returns it.
        store(taken_, (taken_ + bytes) & count_mask, std::memory_order_relaxed);
        return ((taken_ - published_taken_) & count_mask) >= bytes_ / 4 && publish_taken();
    }
    /// Returns all that was taken to the producer. @return as take()
    bool publish_taken();

    /// Asks to be woken when there is something. @return false: there is, or the end
    bool arm();
    void disarm();

    /// What the producer has said of its end, once look() has seen it: mark_end and others.
    uint64_t end() const { return marks_; }
    /// Whether the producer has written a cursor that cannot be: the connection is to be reset.
    bool is_broken() const { return broken_; }
    /// Any thread.
    uint64_t taken() const { return load(taken_, std::memory_order_relaxed); }

private:
    size_t learn(uint64_t word);

    Direction *lines_ = nullptr;
    uint8_t *data_ = nullptr;
    uint64_t bytes_ = 0;
    uint64_t known_ = 0; // the producer's cursor, checked
    uint64_t taken_ = 0;
    uint64_t published_taken_ = 0;
    uint64_t marks_ = 0;
    uint32_t sleeps_ = 0; // the word for the latest sleep
    uint32_t rung_ = 0;   // the producer's sleep that it was woken from
    bool broken_ = false;
};

} // namespace ntbc

#endif

// SPDX-License-Identifier: BSD-3-Clause
// The table of channels: finds the channel that a header word of the peer names, bounded.
#ifndef NTBMSG_TRANSPORT_SLOTS_HPP
#define NTBMSG_TRANSPORT_SLOTS_HPP

#include <atomic>
#include <cstdint>

#include "transport/channel.hpp"
#include "wire/protocol.hpp"

namespace ntbmsg
{

/// All channels of a worker, allocated at once: connecting allocates nothing, and a peer can
/// exhaust nothing but slots.
class Slots
{
public:
    /// @return 0 or -ENOMEM
    int init(Worker &worker, uint32_t count, int socket);
    void destroy();

    // With the worker's lock held.
    /// A slot, cleared, with its next generation. @return NULL: none is free
    Channel *take();
    void release(Channel &c);

    /// The channel that a header word names. @return NULL: none, or it was released
    Channel *find(uint32_t word) const
    {
        const uint16_t slot = protocol::word_slot(word);
        if (slot >= count_)
            return nullptr;
        Channel *c = channels_ + slot;
        return word != 0 && c->rx_word.load(std::memory_order_relaxed) == word ? c : nullptr;
    }
    uint16_t slot_of(const Channel &c) const { return static_cast<uint16_t>(&c - channels_); }
    uint32_t count() const { return count_; }
    /// Slots in use, including those that only wait to be released. Any thread.
    uint32_t used() const { return used_.load(std::memory_order_relaxed); }
    Channel &operator[](uint32_t slot) const { return channels_[slot]; }

private:
    Channel *channels_;
    uint32_t count_;
    std::atomic<uint32_t> used_;
    List<Channel, &Channel::in_requests> free_; ///< the longest-free slot first
};

} // namespace ntbmsg

#endif

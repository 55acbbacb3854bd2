// SPDX-License-Identifier: BSD-3-Clause
// One DMA channel as a queue of copies: a ring of descriptors in host memory, executed in order.
// The only register access of a copy is START; completion is a word in local memory.
//
// Threads: one *user* prepares, starts and collects copies. The control side calls watch(),
// possibly at the same time, and open(), halt() and close() while the user is known to be outside.
#ifndef PLX_NTB_DMA_QUEUE_HPP
#define PLX_NTB_DMA_QUEUE_HPP

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "hw/dma.hpp"
#include "queue/engine.hpp"

namespace plx::pmd
{

/// Outcome of a copy.
enum class DmaOutcome : uint8_t {
    pending,
    ok,
    read_failed,  ///< the source could not be read
    write_failed, ///< the destination could not be written
    unknown,      ///< failed without a status, or the engine hung in it
    not_tried,    ///< abandoned before it was tried
};

/// Memory that an engine reads descriptors from: local, contiguous in bus addresses.
struct DmaMemory {
    std::byte *base = nullptr; ///< multiple of hw::dma_ring_align
    uint64_t bus = 0;          ///< the same
};

class DmaQueue
{
public:
    /// Slots kept free between the newest and the oldest one: an engine that prefetches descriptors
    /// must not take the oldest for its next (Q10).
    static constexpr uint32_t gap = 16;
    static constexpr uint32_t slots_min = 32;
    static constexpr uint32_t slots_max = 2048; ///< LPD, VCA: R; more was never tried
    static constexpr uint32_t copies_max = slots_max - gap;
    /// Slots for @p copies outstanding at a time (1 to copies_max).
    static uint32_t slots_for(uint32_t copies);
    static size_t memory_bytes(uint32_t slots);

    using Clock = uint64_t (*)(void *ctx); ///< microseconds, monotonic

    /// Programs @p channel, which was opened; it outlives the queue's use.
    /// @param copies most outstanding, 1 to copies_max
    /// @param memory memory_bytes(slots_for(copies)) of it
    /// @return 0 or negative errno as DmaChannel::program()
    int open(hw::DmaChannel *channel, const DmaMemory &memory, uint32_t copies, Clock clock,
             void *clock_ctx, hw::Refusal *why);

    // ---- the user's calls

    uint32_t capacity() const { return capacity_; }
    /// Copies that can be prepared before some are collected.
    uint32_t room() const { return capacity_ - static_cast<uint32_t>(given_ - collected()); }
    uint64_t given() const { return given_; }
    uint64_t collected() const { return collected_.load(std::memory_order_relaxed); }

    /// Prepares one copy; there is room. It begins at the latest after start(). The engine sees
    /// earlier stores of the caller.
    /// @param src, dst bus addresses below 2^48, any alignment
    /// @param bytes    0 to facts::dma_xfer_bytes_max
    /// @param fence    begins after all earlier copies are done. It may then wait for a call of
    ///   outcome().
    void copy(uint64_t src, uint64_t dst, uint32_t bytes, bool fence)
    {
        if (fence && held_from_ == none && finished_ != given_) [[unlikely]]
            held_from_ = given_;
        const uint64_t at = given_++ & (slots_ - 1);
        slot_[at] = {bytes, fence};
        uint32_t *const words = ring_[at].words;
        words[hw::DmaDescriptor::high] =
            static_cast<uint32_t>(src >> 32 << 16) | static_cast<uint32_t>(dst >> 32);
        words[hw::DmaDescriptor::dst_low] = static_cast<uint32_t>(dst);
        words[hw::DmaDescriptor::src_low] = static_cast<uint32_t>(src);
        // Release: an engine that reads VALID reads the rest of the descriptor and the source data.
        if (held_from_ == none) [[likely]]
            __atomic_store_n(words + hw::DmaDescriptor::control, bytes | hw::dma_valid,
                             __ATOMIC_RELEASE);
    }
    /// One register write, if copies were prepared since the last.
    void start();

    /// Of the oldest copy not collected; pending if there is none. Reads local memory, and
    /// continues copies that wait at a fence.
    DmaOutcome outcome();
    /// Collects the oldest; its outcome is not pending.
    void collect() { collected_.store(collected() + 1, std::memory_order_release); }
    /// Collects the oldest copies that have ended well, @p most of them at the most. Reads as
    /// outcome() does, which says what is with the one behind them, and goes on at a fence.
    /// @return how many
    uint32_t collect_good(uint32_t most)
    {
        const uint64_t first = collected();
        const uint64_t end = std::min({first + most, given_, held_from_});
        uint64_t at = first;
        while (at < end && ended_well(at))
            ++at;
        finished_ = std::max(finished_, at);
        collected_.store(at, std::memory_order_release);
        return static_cast<uint32_t>(at - first);
    }
    /// Whether all prepared copies have ended, collected or not. Polls as outcome() does.
    bool idle();

    // ---- the control side's calls

    enum class Seen { nothing, stalled, given_up };
    /// Checks the engine's progress: restarts it if it stopped with work pending (E8), abandons it
    /// if it hangs or fails to start. Never waits. An abandoned channel accesses no memory any
    /// more.
    Seen watch();
    bool failed() const { return given_up_.load(std::memory_order_acquire); }
    uint32_t stalls() const { return stalls_.load(std::memory_order_relaxed); }
    uint32_t last_seen() const { return last_seen_; } ///< register 224 at the last stall

    /// One step of halting, while the user is outside. @return false: call again. Afterwards the
    /// queue is empty, and ready for use unless it is failed().
    bool halt();
    /// As halt(), and does not access the channel afterwards.
    bool close();

    /// The queue as the engine of a sending half. The queue outlives it.
    queue::Engine engine();

private:
    struct Slot {
        uint32_t bytes;
        bool fence;
    };
    static constexpr uint64_t none = ~uint64_t{0};
    static constexpr uint64_t stall_us = 20'000;
    static constexpr uint64_t hang_us = 1'000'000;
    static constexpr uint64_t watch_step_us = 20'000; ///< most time counted between two calls
    static constexpr unsigned kicks_max = 5;

    uint32_t *control_of(uint64_t index) const
    {
        return ring_[index & (slots_ - 1)].words + hw::DmaDescriptor::control;
    }
    bool valid(uint64_t index) const;
    /// Whole, and without an error.
    bool ended_well(uint64_t index) const
    {
        constexpr uint32_t all = hw::dma_valid | hw::dma_done_ok | hw::dma_read_failed |
                                 hw::dma_write_failed | hw::dma_size_mask;
        // Acquire: as in valid().
        return (__atomic_load_n(control_of(index), __ATOMIC_ACQUIRE) & all) ==
               (hw::dma_done_ok | slot_[index & (slots_ - 1)].bytes);
    }
    void poll();
    void release_held();
    void publish(uint64_t end);
    DmaOutcome lost(uint64_t index) const;
    uint64_t engine_completed();
    int reset(hw::Refusal *why);
    bool end(bool again);
    Seen give_up_step(uint64_t now);

    // Set up by the control side.
    hw::DmaChannel *channel_ = nullptr;
    hw::DmaDescriptor *ring_ = nullptr;
    uint64_t bus_ = 0;
    uint32_t slots_ = 0;
    uint32_t capacity_ = 0;
    Clock clock_ = nullptr;
    void *clock_ctx_ = nullptr;
    // Written by the user. collected <= finished <= held_from, given; published <= submitted <=
    // given.
    uint64_t given_ = 0;
    uint64_t submitted_ = 0;    ///< start() was called for these
    uint64_t finished_ = 0;     ///< known to be done
    uint64_t held_from_ = none; ///< a fence: from here on nothing is valid yet
    Slot slot_[slots_max] = {};
    // Written by the user, read by the control side.
    std::atomic<uint64_t> collected_{0};
    std::atomic<uint64_t> published_{0}; ///< valid, and the engine was started for it
    // Written by the control side, but engine_failed_.
    std::atomic<bool> given_up_{false};
    std::atomic<bool> engine_failed_{false};
    std::atomic<uint32_t> stalls_{0};
    bool giving_up_ = false;
    bool waiting_ = false;
    uint64_t watched_ = 0;   ///< the copy that is waited for
    uint64_t last_us_ = 0;   ///< of the last call of watch()
    uint64_t waited_us_ = 0; ///< for that copy
    uint64_t asked_us_ = 0;  ///< waited_us_ when the engine was asked last
    unsigned kicks_ = 0;
    uint32_t last_seen_ = 0;
};

} // namespace plx::pmd

#endif

// SPDX-License-Identifier: BSD-3-Clause
#include "dma/queue.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace plx::pmd
{

using hw::DmaDescriptor;

uint32_t DmaQueue::slots_for(uint32_t copies)
{
    return std::max(std::bit_ceil(copies + gap), slots_min);
}

size_t DmaQueue::memory_bytes(uint32_t slots)
{
    const size_t bytes = (size_t{slots} + hw::dma_ring_slack) * sizeof(DmaDescriptor);
    return (bytes + hw::dma_ring_align - 1) & ~size_t{hw::dma_ring_align - 1};
}

int DmaQueue::open(hw::DmaChannel *channel, const DmaMemory &memory, uint32_t copies, Clock clock,
                   void *clock_ctx, hw::Refusal *why)
{
    channel_ = channel;
    ring_ = reinterpret_cast<DmaDescriptor *>(memory.base);
    bus_ = memory.bus;
    slots_ = slots_for(copies);
    capacity_ = copies;
    clock_ = clock;
    clock_ctx_ = clock_ctx;
    stalls_.store(0, std::memory_order_relaxed);
    return reset(why);
}

int DmaQueue::reset(hw::Refusal *why)
{
    std::memset(ring_, 0, memory_bytes(slots_)); // the slack too, which is never valid
    given_ = submitted_ = finished_ = 0;
    held_from_ = none;
    collected_.store(0, std::memory_order_relaxed);
    published_.store(0, std::memory_order_relaxed);
    engine_failed_.store(false, std::memory_order_relaxed);
    giving_up_ = waiting_ = false;
    watched_ = 0;
    const int rc = channel_->program({bus_, slots_}, why);
    given_up_.store(rc != 0, std::memory_order_release);
    return rc;
}

// ---- the user's calls

bool DmaQueue::valid(uint64_t index) const
{
    // Acquire: with the completion, the copied data are visible. Pairs with the engine, which
    // writes the data before it writes the descriptor back.
    return (__atomic_load_n(control_of(index), __ATOMIC_ACQUIRE) & hw::dma_valid) != 0;
}

/// Starts the engine for the valid descriptors below @p end.
void DmaQueue::publish(uint64_t end)
{
    if (end == published_.load(std::memory_order_relaxed))
        return;
    // Release: the control side takes a slot below this that remains valid for a stall.
    published_.store(end, std::memory_order_release);
    // An abandoned channel has no ring; this only avoids the register write.
    if (!given_up_.load(std::memory_order_relaxed))
        channel_->start();
}

void DmaQueue::start()
{
    submitted_ = given_;
    publish(std::min(submitted_, held_from_));
}

/// Makes copies valid that waited at a fence, up to the next fence.
void DmaQueue::release_held()
{
    uint64_t i = held_from_;
    do {
        __atomic_store_n(control_of(i), slot_[i & (slots_ - 1)].bytes | hw::dma_valid,
                         __ATOMIC_RELEASE);
        ++i;
    } while (i < given_ && !slot_[i & (slots_ - 1)].fence);
    held_from_ = i < given_ ? i : none;
    publish(std::min(submitted_, held_from_));
}

/// Polls the progress of the engine.
void DmaQueue::poll()
{
    for (;;) {
        const uint64_t end = std::min(given_, held_from_);
        while (finished_ < end && !valid(finished_))
            ++finished_;
        if (finished_ != held_from_ || failed())
            return;
        release_held();
    }
}

/// Outcome of a copy that an abandoned engine left valid, or that was never made valid.
DmaOutcome DmaQueue::lost(uint64_t index) const
{
    // Copies are executed in order: only the oldest can have been in progress.
    return index == watched_ ? DmaOutcome::unknown : DmaOutcome::not_tried;
}

DmaOutcome DmaQueue::outcome()
{
    const uint64_t index = collected();
    if (index == given_)
        return DmaOutcome::pending;
    const bool gave_up = failed(); // first: earlier write-backs count
    if (index >= finished_)
        poll();
    if (index >= finished_)
        return gave_up ? lost(index) : DmaOutcome::pending;
    if (ended_well(index))
        return DmaOutcome::ok;
    const uint32_t word = __atomic_load_n(control_of(index), __ATOMIC_RELAXED);
    if ((word & hw::dma_read_failed) != 0)
        return DmaOutcome::read_failed;
    return (word & hw::dma_write_failed) != 0 ? DmaOutcome::write_failed : DmaOutcome::unknown;
}

bool DmaQueue::idle()
{
    poll();
    return finished_ == given_ || failed();
}

// ---- the control side's calls

DmaQueue::Seen DmaQueue::give_up_step(uint64_t now)
{
    giving_up_ = true;
    if (channel_->rest(now) == hw::DmaChannel::Rest::moving)
        return Seen::nothing;
    given_up_.store(true, std::memory_order_release);
    return Seen::given_up;
}

DmaQueue::Seen DmaQueue::watch()
{
    if (channel_ == nullptr || failed())
        return Seen::nothing;
    const uint64_t now = clock_(clock_ctx_);
    // Time between two calls counts up to a limit: after a stop of the process, in which an engine
    // of the twin was stopped too, the engine gets its time.
    const uint64_t passed = std::min(now - last_us_, watch_step_us);
    last_us_ = now;
    if (giving_up_)
        return give_up_step(now);
    // A copy may be done that its user has not polled yet. A slot is reused only after it was
    // collected, which moves the mark past it, so a successor is not mistaken for it.
    const uint64_t end = published_.load(std::memory_order_acquire);
    uint64_t oldest = std::max(watched_, collected_.load(std::memory_order_acquire));
    while (oldest < end && !valid(oldest))
        ++oldest;
    if (oldest == end) {
        waiting_ = false;
        return Seen::nothing;
    }
    if (!waiting_ || oldest != watched_) {
        waiting_ = true;
        watched_ = oldest;
        waited_us_ = asked_us_ = 0;
        kicks_ = 0;
        return Seen::nothing;
    }
    waited_us_ += passed;
    if (waited_us_ - asked_us_ < stall_us)
        return Seen::nothing;
    asked_us_ = waited_us_;
    const hw::DmaChannel::Status status = channel_->status();
    if (!status.answers || (status.in_progress && waited_us_ >= hang_us) ||
        (!status.in_progress && kicks_ == kicks_max))
        return give_up_step(now);
    if (status.in_progress)
        return Seen::nothing; // a large copy, or hung: a later call decides
    ++kicks_;
    last_seen_ = status.last;
    stalls_.fetch_add(1, std::memory_order_relaxed);
    channel_->start();
    return Seen::stalled;
}

bool DmaQueue::end(bool again)
{
    if (channel_ == nullptr)
        return true;
    if (channel_->rest(clock_(clock_ctx_)) == hw::DmaChannel::Rest::moving)
        return false;
    hw::Refusal why;
    if (again)
        (void)reset(&why); // failed() reports it
    else
        channel_ = nullptr;
    return true;
}

bool DmaQueue::halt()
{
    return end(true);
}

bool DmaQueue::close()
{
    return end(false);
}

// ---- as an engine

uint64_t DmaQueue::engine_completed()
{
    while (!engine_failed_.load(std::memory_order_relaxed)) {
        collect_good(capacity_);
        const DmaOutcome now = outcome();
        if (now == DmaOutcome::pending)
            break;
        if (now != DmaOutcome::ok)
            engine_failed_.store(true, std::memory_order_relaxed);
    }
    return collected();
}

queue::Engine DmaQueue::engine()
{
    return {
        .ctx = this,
        .room =
            [](void *ctx) {
                auto *self = static_cast<DmaQueue *>(ctx);
                self->engine_completed();
                return self->room();
            },
        .copy = [](void *ctx, uint64_t src, uint64_t dst,
                   uint32_t bytes) { static_cast<DmaQueue *>(ctx)->copy(src, dst, bytes, false); },
        .start = [](void *ctx) { static_cast<DmaQueue *>(ctx)->start(); },
        .completed = [](void *ctx) { return static_cast<DmaQueue *>(ctx)->engine_completed(); },
        .failed =
            [](void *ctx) {
                const auto *self = static_cast<const DmaQueue *>(ctx);
                return self->failed() || self->engine_failed_.load(std::memory_order_relaxed);
            },
        .halt = [](void *ctx) { return static_cast<DmaQueue *>(ctx)->halt(); },
        .capacity = capacity_};
}

} // namespace plx::pmd

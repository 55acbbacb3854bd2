// SPDX-License-Identifier: BSD-3-Clause
// A channel's descriptor ring in host memory: what is fetched when, and what is written back.
#include "dma/engine.hpp"

#include "chip/dma_regs.hpp"
#include "twin.hpp"

#include <algorithm>

namespace plx::twin
{

namespace
{
// VALID, and of the format that is described (Q7).
bool usable(uint32_t first_word)
{
    return dma_field::desc_valid.get(first_word) != 0 &&
           dma_field::desc_extended.get(first_word) == 0;
}

uint32_t low(uint64_t bus)
{
    return static_cast<uint32_t>(bus);
}
} // namespace

// The chip rounds down to what it takes for alignment (Q12).
uint64_t DmaChannel::ring_base() const
{
    const uint64_t base = uint64_t{reg(dma_reg::ring_hi)} << 32 | reg(dma_reg::ring_lo);
    return base & ~uint64_t{host_->switches().dma_ring_align - 1};
}

uint64_t DmaChannel::ring_end() const
{
    return ring_base() + uint64_t{reg(dma_reg::ring_count)} * facts::dma_desc_bytes;
}

uint64_t DmaChannel::after(uint64_t slot) const
{
    const uint64_t next = slot + facts::dma_desc_bytes;
    return next == ring_end() ? ring_base() : next;
}

bool DmaChannel::at_stop(uint64_t slot) const
{
    return dma_field::stop_at_end.get(reg(dma_reg::ctrl_status)) != 0 && after(slot) == ring_base();
}

/// @return NULL where the engine cannot reach a descriptor
uint32_t *DmaChannel::descriptor_at(uint64_t bus)
{
    if (host_->cut_off())
        return nullptr; // the ring lies on the other side of the dead link
    if (!ring_memory_.covers(bus)) {
        const DmaRange *const range = dma_memory_find(host_->bus_memory(), bus);
        if (range == nullptr || range->kind == RangeKind::window)
            return nullptr;
        ring_memory_ = *range;
    }
    const uint64_t inside = bus - ring_memory_.bus;
    uint8_t *const place = ring_memory_.address + inside;
    const bool whole = ring_memory_.bytes - inside >= facts::dma_desc_bytes;
    const bool aligned = reinterpret_cast<uintptr_t>(place) % sizeof(uint32_t) == 0;
    return whole && aligned ? reinterpret_cast<uint32_t *>(place) : nullptr;
}

bool DmaChannel::fetch_one(uint64_t slot)
{
    // A read does not pass the write before it.
    if (late_.keeps(slot))
        release_late(true);
    const uint32_t *const words = descriptor_at(slot);
    if (words == nullptr) {
        fetch_failed_ = true;
        return false;
    }
    // Pairs with the driver's barrier between the other words and this one.
    const uint32_t first = __atomic_load_n(words, __ATOMIC_ACQUIRE);
    if (!usable(first))
        return false;
    DmaDescriptor &d = fetched_[fetched_count_++];
    d = {slot, {first, words[1], words[2], words[3]}, false};
    return true;
}

// An engine that reads on behind the end before it wraps finds there what is of no use, or nothing.
bool DmaChannel::slack_answers(uint64_t end, unsigned descriptors)
{
    if (!host_->switches().dma_fetches_past_end)
        return true;
    for (unsigned i = 0; i < descriptors; i++)
        if (descriptor_at(end + i * facts::dma_desc_bytes) == nullptr)
            return false;
    return true;
}

// Reads ahead until a slot is not valid. What is written into a slot later than that is not seen
// before the next fetch.
void DmaChannel::fetch(uint64_t slot)
{
    settle(); // or what was moved would be found valid
    fetched_count_ = fetched_next_ = 0;
    fetch_failed_ = false;
    expire_direct();
    const uint32_t limit = dma_field::fetch_limit.get(reg(dma_reg::prefetch));
    const uint64_t unit = host_->switches().dma_prefetch_unit;
    unsigned wanted = fetch_max; // which is what 0 stands for (SDK R)
    if (limit != 0)
        wanted = static_cast<unsigned>(std::min<uint64_t>(limit * unit, fetch_max));
    const uint64_t first = slot;
    while (wanted-- != 0 && fetch_one(slot)) {
        const bool stop = at_stop(slot);
        slot = after(slot);
        if (slot == ring_base() && !slack_answers(ring_end(), wanted)) {
            fetched_count_ = 0;
            fetch_failed_ = true;
            return;
        }
        if (slot == first || stop)
            return;
    }
}

// E13: with relaxed ordering of data writes, a descriptor's data may pass those before it.
void DmaChannel::reorder()
{
    DmaDescriptor *const d = fetched_ + fetched_next_;
    const bool relaxed = dma_field::relaxed_data_write.get(reg(dma_reg::ctrl_status)) != 0;
    if (!relaxed || !host_->switches().dma_relaxed_reorders || d->passed ||
        fetched_count_ - fetched_next_ < 2)
        return;
    std::swap(d[0], d[1]);
    d[1].passed = true;
}

/// @return nullptr: there is none, and the engine has halted
const DmaDescriptor *DmaChannel::next_in_ring()
{
    const bool marks = dma_field::write_back.get(reg(dma_reg::ctrl_status)) != 0;
    if (reg(dma_reg::ring_count) == 0 || (!marks && lap_left_ == 0)) {
        halt(0);
        return nullptr;
    }
    if (fetched_next_ == fetched_count_) {
        const uint64_t slot = uint64_t{reg(dma_reg::ring_hi)} << 32 | reg(dma_reg::ring_next);
        fetch(slot);
        if (fetched_count_ == 0) {
            stop_at(slot);
            return nullptr;
        }
    }
    reorder();
    const DmaDescriptor &next = fetched_[fetched_next_];
    if (faults_.stall.strikes()) { // E8
        fetch_failed_ = false;
        stop_at(next.slot);
        return nullptr;
    }
    fetched_next_++;
    if (lap_left_ != 0)
        lap_left_--;
    if (!next.passed) {
        if (!host_->switches().dma_last_is_completed)
            set(dma_reg::ring_last, low(next.slot));
        set(dma_reg::ring_next, low(after(next.slot)));
    }
    return &next;
}

void DmaChannel::stop_at(uint64_t slot)
{
    fetched_count_ = fetched_next_ = 0;
    if (!host_->switches().dma_last_is_completed)
        set(dma_reg::ring_last, low(slot));
    if (!fetch_failed_)
        return halt(dma_field::invalid.mask());
    if (host_->cut_off() && timeout_hangs())
        return hang();
    latch(dma_field::error.mask());
    halt(dma_field::header_log.mask());
}

void DmaChannel::report(const DmaWriteBack &done)
{
    if (host_->switches().dma_last_is_completed)
        set(dma_reg::ring_last, low(done.slot));
    if (dma_field::write_back.get(reg(dma_reg::ctrl_status)) != 0)
        write_back(done);
}

void DmaChannel::write_back(const DmaWriteBack &done)
{
    if (!late_.on())
        return store_back(done);
    if (late_.full())
        release_late(true);
    late_.keep(done);
}

void DmaChannel::release_late(bool all)
{
    DmaWriteBack done;
    while (late_.take(all, &done))
        store_back(done);
}

// The data before the word that reports them: pairs with the driver's load of that word.
void DmaChannel::store_back(const DmaWriteBack &done)
{
    uint32_t *const words = descriptor_at(done.slot);
    if (words == nullptr)
        return;
    if (host_->switches().dma_writes_back_all)
        for (unsigned i = 1; i < 4; i++)
            __atomic_store_n(words + i, 0, __ATOMIC_RELEASE);
    __atomic_store_n(words, done.first_word, __ATOMIC_RELEASE);
}

} // namespace plx::twin

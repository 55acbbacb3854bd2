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

// The data before the word that reports them: pairs with the driver's load of that word.
void put_first_word(uint32_t *words, uint32_t value)
{
    __atomic_store_n(words, value, __ATOMIC_RELEASE);
}
} // namespace

// The chip rounds down to what it takes for alignment (Q12).
uint64_t DmaChannel::ring_base() const
{
    return reg64(dma_reg::ring_lo) & ~uint64_t{switches().dma_ring_align - 1};
}

inline DmaChannel::Extent DmaChannel::extent() const
{
    const uint64_t base = ring_base();
    return {base, base + uint64_t{reg(dma_reg::ring_count)} * facts::dma_desc_bytes};
}

inline uint64_t DmaChannel::Extent::after(uint64_t slot) const
{
    const uint64_t next = slot + facts::dma_desc_bytes;
    return next == end ? base : next;
}

bool DmaChannel::at_stop(uint64_t slot) const
{
    if (dma_field::stop_at_end.get(reg(dma_reg::ctrl_status)) == 0)
        return false;
    const Extent ring = extent();
    return ring.after(slot) == ring.base;
}

bool DmaChannel::find_ring_memory(uint64_t bus)
{
    const DmaRange *const range = dma_memory_find(host_->bus_memory(), bus);
    if (range == nullptr || range->kind == RangeKind::window)
        return false;
    ring_memory_ = *range;
    return true;
}

/// If the engine is not cut off: the ring lies on the other side of the dead link then.
/// @return NULL where it cannot reach a descriptor
inline uint32_t *DmaChannel::descriptor_at(uint64_t bus)
{
    if (!ring_memory_.covers(bus) && !find_ring_memory(bus))
        return nullptr;
    const uint64_t inside = bus - ring_memory_.bus;
    uint8_t *const place = ring_memory_.address + inside;
    const bool whole = ring_memory_.bytes - inside >= facts::dma_desc_bytes;
    const bool aligned = reinterpret_cast<uintptr_t>(place) % sizeof(uint32_t) == 0;
    return whole && aligned ? reinterpret_cast<uint32_t *>(place) : nullptr;
}

/// @return false: it is not valid, or cannot be read
inline bool DmaChannel::fetch_one(uint64_t slot, bool reachable, DmaDescriptor *out)
{
    // A read does not pass the write before it.
    if (late_.on() && late_.keeps(slot))
        release_late(true);
    const uint32_t *const words = reachable ? descriptor_at(slot) : nullptr;
    if (words == nullptr) {
        fetch_failed_ = true;
        return false;
    }
    // Pairs with the driver's barrier between the other words and this one.
    const uint32_t first = __atomic_load_n(words, __ATOMIC_ACQUIRE);
    if (!usable(first))
        return false;
    *out = {slot, {first, words[1], words[2], words[3]}, false};
    return true;
}

// An engine that reads on behind the end before it wraps finds there what is of no use, or nothing.
bool DmaChannel::slack_answers(uint64_t end, unsigned descriptors)
{
    if (!switches().dma_fetches_past_end)
        return true;
    for (unsigned i = 0; i < descriptors; i++)
        if (descriptor_at(end + i * facts::dma_desc_bytes) == nullptr)
            return false;
    return true;
}

// Reads ahead until a slot is not valid. What is written into a slot later than that is not seen
// before the next fetch.
void DmaChannel::fetch(uint64_t slot, const Extent &ring)
{
    settle(); // or what was moved would be found valid
    fetched_count_ = fetched_next_ = 0;
    fetch_failed_ = false;
    expire_direct();
    const uint32_t limit = dma_field::fetch_limit.get(reg(dma_reg::prefetch));
    const uint64_t unit = switches().dma_prefetch_unit;
    unsigned wanted = fetch_max; // which is what 0 stands for (SDK R)
    if (limit != 0)
        wanted = static_cast<unsigned>(std::min<uint64_t>(limit * unit, fetch_max));
    const bool stops = dma_field::stop_at_end.get(reg(dma_reg::ctrl_status)) != 0;
    const bool reachable = !host_->cut_off();
    const uint64_t first = slot;
    unsigned count = 0;
    while (count < wanted && fetch_one(slot, reachable, fetched_ + count)) {
        count++;
        slot = ring.after(slot);
        if (slot == ring.base && !slack_answers(ring.end, wanted - count)) {
            fetch_failed_ = true;
            return;
        }
        if (slot == first || (stops && slot == ring.base))
            break;
    }
    fetched_count_ = count;
}

// E13: with relaxed ordering of data writes, a descriptor's data may pass those before it.
void DmaChannel::reorder()
{
    DmaDescriptor *const d = fetched_ + fetched_next_;
    const bool relaxed = dma_field::relaxed_data_write.get(reg(dma_reg::ctrl_status)) != 0;
    if (!relaxed || !switches().dma_relaxed_reorders || d->passed ||
        fetched_count_ - fetched_next_ < 2)
        return;
    std::swap(d[0], d[1]);
    d[1].passed = true;
}

/// @return false: there is none, and the engine has halted
inline bool DmaChannel::has_fetched(const Extent &ring)
{
    if (fetched_next_ != fetched_count_)
        return true;
    const uint64_t slot = uint64_t{reg(dma_reg::ring_hi)} << 32 | reg(dma_reg::ring_next);
    fetch(slot, ring);
    if (fetched_count_ != 0)
        return true;
    stop_at(slot);
    return false;
}

/// @return nullptr: there is none, and the engine has halted
const DmaDescriptor *DmaChannel::next_in_ring()
{
    const bool marks = dma_field::write_back.get(reg(dma_reg::ctrl_status)) != 0;
    if (reg(dma_reg::ring_count) == 0 || (!marks && lap_left_ == 0)) {
        halt(0);
        return nullptr;
    }
    const Extent ring = extent();
    if (!has_fetched(ring))
        return nullptr;
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
        if (!switches().dma_last_is_completed)
            set(dma_reg::ring_last, low(next.slot));
        set(dma_reg::ring_next, low(ring.after(next.slot)));
    }
    return &next;
}

// ---- most descriptors

/// Nothing that concerns single descriptors was asked for.
bool DmaChannel::is_usual() const
{
    const Switches &s = switches();
    return faults_.quiet() && !late_.on() && !host_->beyond_link() && !s.dma_relaxed_reorders &&
           !s.dma_last_is_completed && !s.dma_writes_back_all && reg(dma_reg::ring_count) != 0;
}

/// may_go_on(), where nothing has been asked for since it was true, and the ring is as it was.
/// @param csr  of the channel
inline bool DmaChannel::goes_on_as_usual(const std::atomic<uint32_t> *csr) const
{
    constexpr uint32_t asks = dma_field::pause.mask() | dma_field::abort.mask() |
                              dma_field::stop_at_end.mask() | dma_field::write_back.mask() |
                              dma_field::mode.mask();
    constexpr uint32_t usual =
        dma_field::write_back.mask() | dma_field::mode.put(dma_mode_host_ring);
    return (csr[dma_reg::ctrl_status / 4].load() & asks) == usual &&
           dma_field::halt_reads.get(csr[dma_reg::bandwidth / 4].load()) == 0 &&
           facts::field::bus_master.get(csr[facts::reg::pci_command_status / 4].load()) != 0 &&
           !hung() && !reset_.load() && !pause_asked_.load() && !rewritten_.load();
}

/// What take_next() and move() do, for a descriptor of which they would ask much in vain: plain,
/// and as a whole between memory that is known and open.
/// @return false: it is no such, and nothing has been done
inline bool DmaChannel::move_usual(const DmaDescriptor &d, const Extent &ring,
                                   std::atomic<uint32_t> *csr)
{
    const Transfer t = Transfer::of(d);
    const bool plain = (d.words[0] & ~dma_field::desc_bytes.mask()) == dma_field::desc_valid.mask();
    if (!plain || t.bytes - 1 >= plain_max)
        return false;
    const uint8_t *const from = known_place(source_, t.src, t.bytes);
    uint8_t *const to = known_place(destination_, t.dst, t.bytes);
    uint32_t *const words = descriptor_at(d.slot);
    if (from == nullptr || to == nullptr || words == nullptr)
        return false;
    csr[dma_reg::ring_last / 4].store(low(d.slot), std::memory_order_release);
    csr[dma_reg::ring_next / 4].store(low(ring.after(d.slot)), std::memory_order_release);
    copier_.copy(to, from, t.bytes);
    spend_trust(source_, destination_, t.bytes);
    const uint32_t word = t.bytes | dma_field::done_success.mask();
    if (copier_.loose()) {
        put_off({d.slot, word, 0});
        return true;
    }
    settle();
    csr[dma_reg::ring_last_size / 4].store(t.bytes, std::memory_order_release);
    put_first_word(words, word);
    return true;
}

/// Descriptors of a ring one after the other, as long as they are usual ones and nothing else is to
/// be seen to. @return whether there was one, or the engine has halted
bool DmaChannel::run_usual()
{
    if (!is_usual())
        return false;
    const Extent ring = extent();
    std::atomic<uint32_t> *const csr = chip_->csr + base_ / 4;
    uint64_t moved = 0;
    bool usual = true;
    while (usual && goes_on_as_usual(csr) && has_fetched(ring)) {
        const unsigned first = fetched_next_;
        const unsigned end = fetched_count_;
        unsigned next = first;
        do {
            usual = move_usual(fetched_[next], ring, csr);
            next += usual ? 1 : 0;
        } while (usual && next != end && goes_on_as_usual(csr));
        fetched_next_ = next;
        moved += next - first;
    }
    lap_left_ -= std::min(lap_left_, moved);
    return moved != 0 || !running_;
}

void DmaChannel::stop_at(uint64_t slot)
{
    fetched_count_ = fetched_next_ = 0;
    if (!switches().dma_last_is_completed)
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
    if (switches().dma_last_is_completed)
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

void DmaChannel::store_back(const DmaWriteBack &done)
{
    uint32_t *const words = host_->cut_off() ? nullptr : descriptor_at(done.slot);
    if (words == nullptr)
        return;
    if (switches().dma_writes_back_all)
        for (unsigned i = 1; i < 4; i++)
            __atomic_store_n(words + i, 0, __ATOMIC_RELEASE);
    put_first_word(words, done.first_word);
}

} // namespace plx::twin

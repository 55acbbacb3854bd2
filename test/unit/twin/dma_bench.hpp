// SPDX-License-Identifier: BSD-3-Clause
// A channel of the twin's DMA engine under test: a ring, local memory, and a window to a far block.
#ifndef PLX_TEST_TWIN_DMA_BENCH_HPP
#define PLX_TEST_TWIN_DMA_BENCH_HPP

#include "bench_pair.hpp"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <vector>

namespace plx::test
{

namespace dma
{
using facts::detail::at;
using facts::detail::field_of;

inline constexpr uint32_t ctrl = at("DMA_CTRL_STATUS");
inline constexpr uint32_t intr = at("DMA_INTR_CTRL_STATUS");
inline constexpr uint32_t bandwidth = at("DMA_BANDWIDTH");
inline constexpr uint32_t ring_lo = at("DMA_RING_ADDR_LO");
inline constexpr uint32_t ring_hi = at("DMA_RING_ADDR_HI");
inline constexpr uint32_t ring_next = at("DMA_RING_NEXT_LO");
inline constexpr uint32_t ring_count = at("DMA_RING_COUNT");
inline constexpr uint32_t ring_last = at("DMA_RING_LAST_LO");
inline constexpr uint32_t last_size = at("DMA_RING_LAST_SIZE");
inline constexpr uint32_t prefetch = at("DMA_PREFETCH");
inline constexpr uint32_t dev_ctl = at("DMA_PCIE_DEV_CTL_STATUS");
inline constexpr uint32_t dev_ctl2 = at("DMA_PCIE_DEV_CTL2");

inline constexpr uint32_t valid = 1u << 31;
inline constexpr uint32_t ok = 1u << 30;
inline constexpr uint32_t read_failed = 1u << 29;
inline constexpr uint32_t write_failed = 1u << 28;

inline constexpr uint32_t statuses = 0x1700; // invalid, pause done, abort done, immediate pause
inline constexpr uint32_t host_ring = 2u << 5;
inline constexpr uint32_t marks = 1u << 2; // write-back
inline constexpr uint32_t start = 1u << 3;
inline constexpr uint32_t in_progress = 1u << 30;
inline constexpr uint32_t invalid = 1u << 8;
inline constexpr uint32_t pause_done = 1u << 9;
inline constexpr uint32_t abort_done = 1u << 10;
inline constexpr uint32_t stop_done = 1u << 12;
inline constexpr uint32_t go = statuses | marks | start | host_ring; // what LPD writes
inline constexpr uint32_t off = ~0u;                                 // takes a fault back
} // namespace dma

struct Descriptor {
    uint32_t words[4];
};
static_assert(sizeof(Descriptor) == facts::dma_desc_bytes);

inline Descriptor describe(uint64_t src, uint64_t dst, uint32_t bytes, uint32_t flags = 0)
{
    return {{dma::valid | flags | bytes,
             static_cast<uint32_t>(src >> 32) << 16 | static_cast<uint32_t>(dst >> 32),
             static_cast<uint32_t>(dst), static_cast<uint32_t>(src)}};
}

/// A ring in memory of its own, with the bus addresses that a test chooses.
class Ring
{
public:
    Ring(twin::Host *host, unsigned channel, uint64_t bus, uint32_t slots, uint32_t slack = 0)
        : host_(host), channel_(channel), bus_(bus), slots_(slots)
    {
        bytes_ = (slots + slack) * sizeof(Descriptor);
        slots_at_ = static_cast<Descriptor *>(aligned_alloc(4096, (bytes_ + 4095) / 4096 * 4096));
        std::fill_n(slots_at_, slots + slack, Descriptor{});
        EXPECT_EQ(twin::dma_map(host, slots_at_, bus, bytes_), 0);
    }
    ~Ring()
    {
        if (mapped_)
            unmap();
        free(slots_at_);
    }
    Ring(const Ring &) = delete;
    Ring &operator=(const Ring &) = delete;

    /// Engines do not know it any more; it can still be looked at.
    void unmap()
    {
        mapped_ = false;
        EXPECT_EQ(twin::dma_unmap(host_, bus_, bytes_), 0);
    }

    void program()
    {
        write(dma::ctrl, dma::statuses);
        for (uint32_t at = 0x200; at <= dma::ring_count; at += 4)
            write(at, 0);
        write(dma::ring_lo, static_cast<uint32_t>(bus_));
        write(dma::ring_hi, static_cast<uint32_t>(bus_ >> 32));
        write(dma::ring_next, static_cast<uint32_t>(bus_));
        write(dma::ring_count, slots_);
        write(dma::bandwidth, 0x01000004);
        write(dma::prefetch, 8);
        write(reg::pci_command_status, 0x6);
        head_ = 0;
    }
    /// The next slot, as the engine walks them.
    void put(const Descriptor &d) { put_at(head_++ % slots_, d); }
    void put_at(uint32_t slot, const Descriptor &d)
    {
        Descriptor &to = slots_at_[slot];
        std::copy_n(d.words + 1, 3, to.words + 1);
        __atomic_store_n(to.words, d.words[0], __ATOMIC_RELEASE);
    }
    uint32_t word(uint32_t slot, unsigned i = 0) const
    {
        return __atomic_load_n(slots_at_[slot].words + i, __ATOMIC_ACQUIRE);
    }
    uint32_t slot_low(uint32_t slot) const
    {
        return static_cast<uint32_t>(bus_ + slot * sizeof(Descriptor));
    }
    void go(uint32_t more = 0) { write(dma::ctrl, dma::go | more); }
    uint32_t read(uint32_t offset) const { return twin::dma_read32(host_, channel_, offset); }
    void write(uint32_t offset, uint32_t value) const
    {
        twin::dma_write32(host_, channel_, offset, value);
    }

private:
    twin::Host *host_;
    unsigned channel_;
    uint64_t bus_;
    uint32_t slots_;
    uint64_t bytes_ = 0;
    Descriptor *slots_at_ = nullptr;
    uint32_t head_ = 0;
    bool mapped_ = true;
};

/// Local memory that engines know.
class Local
{
public:
    Local(twin::Host *host, uint64_t bus, size_t bytes) : host_(host), bus_(bus), bytes_(bytes)
    {
        data = static_cast<uint8_t *>(aligned_alloc(4096, (bytes + 4095) / 4096 * 4096));
        memset(data, 0, bytes);
        EXPECT_EQ(twin::dma_map(host, data, bus, bytes), 0);
    }
    ~Local()
    {
        if (mapped_)
            unmap();
        free(data);
    }
    /// Engines do not know it any more.
    void unmap()
    {
        mapped_ = false;
        EXPECT_EQ(twin::dma_unmap(host_, bus_, bytes_), 0);
    }
    Local(const Local &) = delete;
    Local &operator=(const Local &) = delete;
    uint8_t *data = nullptr;
    uint64_t bus() const { return bus_; }

private:
    twin::Host *host_;
    uint64_t bus_;
    size_t bytes_;
    bool mapped_ = true;
};

/// Host A's channel 0 between local memory at local_bus and a window to memory of B.
class DmaPair : public MemPair
{
protected:
    static constexpr uint64_t ring_bus = uint64_t{0x12} << 32;
    static constexpr uint64_t local_bus = uint64_t{0x34} << 32;
    static constexpr size_t local_bytes = mib;
    static constexpr uint32_t slots = 8;
    static constexpr uint64_t exposed_bytes = 4 * mib;
    twin::Memory exposed{};
    std::unique_ptr<Local> local;
    std::unique_ptr<Ring> ring;

    void open_engine(uint32_t ring_slots = slots)
    {
        set_up_both();
        ASSERT_EQ(twin::memory_add(b, exposed_bytes, -1, false, &exposed), 0);
        open_inbound(b, 2, exposed.bus, exposed_bytes);
        admit(true);
        local = std::make_unique<Local>(a, local_bus, local_bytes);
        ring = std::make_unique<Ring>(a, 0, ring_bus, ring_slots);
        for (size_t i = 0; i < local_bytes; i++)
            local->data[i] = static_cast<uint8_t>(i * 7 + i / 256);
        ring->program();
    }
    /// The engines' requester ID in A's table.
    void admit(bool yes)
    {
        twin::csr_write32(a, virt_block + reg::req_id_lut_virt[1],
                          yes ? facts::LutEntry::of(config.dma_rid).encode() : 0);
    }
    uint64_t window(uint64_t offset) const { return twin::bar(a, 2).bus + offset; }
    uint8_t *far(uint64_t offset) const { return static_cast<uint8_t *>(exposed.base) + offset; }
    void TearDown() override
    {
        ring.reset();
        local.reset();
        MemPair::TearDown();
    }
};

} // namespace plx::test

#endif

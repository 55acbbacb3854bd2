// SPDX-License-Identifier: BSD-3-Clause
// Random rings of random descriptors, good and bad, against a model that moves single bytes.
#include "dma_bench.hpp"

#include <random>

using namespace plx;
using namespace plx::test;

namespace
{
constexpr uint64_t none_bus = 0x5000; // no memory
constexpr uint32_t bytes_max = 12'000;

/// What a descriptor asks for, in the words of the test.
struct Order {
    uint64_t src;
    uint64_t dst;
    uint32_t bytes;
    bool const_src;
    bool const_dst;
    uint32_t expected = 0;
};

// Sources lie in the lower half of either memory, destinations in the upper one.
class TwinDmaRandom : public DmaPair
{
protected:
    std::mt19937 random;
    std::vector<uint8_t> local_model;
    std::vector<uint8_t> far_model;
    bool admitted = true;

    uint32_t pick(uint32_t below) { return static_cast<uint32_t>(random() % below); }

    uint64_t pick_address(bool source)
    {
        const uint32_t kind = pick(16);
        if (kind == 0)
            return none_bus + pick(64);
        const bool remote = kind % 2 != 0;
        const uint64_t bytes = remote ? exposed_bytes : local_bytes;
        const uint64_t half = bytes / 2;
        const uint64_t from = source ? 0 : half;
        // Now and then over the end, where there is no memory.
        const uint64_t at = !source && pick(8) == 0 ? bytes - 1 - pick(bytes_max)
                                                    : from + random() % (half - bytes_max);
        return remote ? window(at) : local_bus + at;
    }
    Order pick_order()
    {
        constexpr uint32_t sizes[] = {1, 8, 64, 300, 4096, bytes_max};
        Order o{pick_address(true), pick_address(false), pick(sizes[pick(6)] + 1), pick(12) == 0,
                pick(12) == 0};
        o.expected = model(o);
        return o;
    }

    /// @return NULL where there is none
    uint8_t *model_at(uint64_t bus)
    {
        if (bus >= local_bus && bus < local_bus + local_bytes)
            return local_model.data() + (bus - local_bus);
        if (admitted && bus >= window(0) && bus < window(exposed_bytes))
            return far_model.data() + (bus - window(0));
        return nullptr;
    }
    /// Carries the order out. @return the word that the engine is to write back
    uint32_t model(const Order &o)
    {
        const bool stays = o.const_src || o.const_dst;
        for (uint32_t i = 0; i < o.bytes; i++) {
            const uint32_t unit = stays ? 4 : 1;
            const uint8_t *const from = model_at(o.src + (o.const_src ? i % unit : i));
            uint8_t *const to = model_at(o.dst + (o.const_dst ? i % unit : i));
            if (from == nullptr)
                return dma::read_failed | i;
            if (to == nullptr)
                return dma::write_failed | i;
            *to = *from;
        }
        return dma::ok | o.bytes;
    }

    void change_way()
    {
        const uint32_t what = pick(8);
        if (what < 2)
            admit(admitted = what == 0);
        else if (what < 4) // the CPU's access: another way for the engine, with the same end
            twin::csr_write32(a, virt_block + reg::req_id_lut_virt[0], what == 2 ? 0 : 0x00090001);
    }

    void run(uint32_t seed)
    {
        random.seed(seed);
        const uint32_t ring_slots = 1 + pick(40);
        ring = std::make_unique<Ring>(a, 0, ring_bus, ring_slots);
        ring->program();
        ring->write(dma::prefetch, pick(20));
        ring->write(dma::dev_ctl2, 1u << 4);
        for (uint32_t slot = 0, batch = 0; batch < 12; batch++) {
            change_way();
            const uint32_t count = 1 + pick(ring_slots);
            std::vector<Order> orders;
            for (uint32_t i = 0; i < count; i++)
                orders.push_back(pick_order());
            give(orders);
            for (const Order &o : orders) {
                ASSERT_EQ(ring->word(slot), o.expected) << "seed " << seed << " batch " << batch;
                slot = (slot + 1) % ring_slots;
            }
        }
    }
    void give(const std::vector<Order> &orders)
    {
        const bool slow = pick(6) == 0;
        const bool stalls = pick(4) == 0;
        ASSERT_EQ(twin::inject(a, twin::Fault::dma_pace, slow ? 1 + pick(5000) : 0), 0);
        if (stalls) {
            ASSERT_EQ(
                twin::inject(a, twin::Fault::dma_stall, pick(static_cast<uint32_t>(orders.size()))),
                0);
        }
        for (const Order &o : orders)
            ring->put(describe(o.src, o.dst, o.bytes,
                               (o.const_src ? 1u << 29 : 0) | (o.const_dst ? 1u << 28 : 0)));
        ring->go();
        ring->go(); // over a stall, or while it runs
        ASSERT_EQ(twin::inject(a, twin::Fault::dma_pace, 0), 0);
        if (stalls)
            ring->go();
        EXPECT_EQ(ring->read(dma::ctrl) & dma::in_progress, 0u);
    }
    void compare(uint32_t seed)
    {
        EXPECT_EQ(memcmp(local->data, local_model.data(), local_bytes), 0) << "seed " << seed;
        EXPECT_EQ(memcmp(far(0), far_model.data(), exposed_bytes), 0) << "seed " << seed;
    }
};

TEST_F(TwinDmaRandom, EnginesDoWhatTheModelDoes)
{
    open_engine();
    for (uint64_t i = 0; i < exposed_bytes; i++)
        *far(i) = static_cast<uint8_t>(i * 13 + i / 1000);
    local_model.assign(local->data, local->data + local_bytes);
    far_model.assign(far(0), far(0) + exposed_bytes);
    ring.reset();
    for (uint32_t seed = 1; seed <= 40 && !HasFailure(); seed++) {
        run(seed);
        compare(seed);
        ring.reset();
    }
}
} // namespace

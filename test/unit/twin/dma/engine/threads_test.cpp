// SPDX-License-Identifier: BSD-3-Clause
// Engines and several threads: who may start them, what order others see, what is in use.
#include "dma_bench.hpp"

#include <thread>

using namespace plx;
using namespace plx::test;

namespace
{
class TwinDmaThreads : public DmaPair
{
protected:
    std::atomic<bool> stop_{false};

    /// The engine and everybody else is done with the slot.
    bool completes(uint32_t slot)
    {
        return await([&] { return (ring->word(slot) & dma::valid) == 0; });
    }
    uint32_t *flag(uint64_t offset) const
    {
        return reinterpret_cast<uint32_t *>(local->data + offset);
    }
};

TEST_F(TwinDmaThreads, AFlagDoesNotPassTheDataBeforeIt)
{
    open_engine();
    constexpr uint32_t rounds = 200;
    constexpr uint64_t small_to = 0x20000;
    constexpr uint64_t large_to = 0x30000;
    constexpr uint64_t flag_to = 0x40000;
    constexpr uint64_t flag_from = 0x50000;
    std::atomic<uint32_t> taken{0};
    uint64_t wrong = 0;
    std::thread consumer([&] {
        for (uint32_t round = 1; round <= rounds; round++) {
            const auto arrived = [&] {
                return __atomic_load_n(flag(flag_to), __ATOMIC_ACQUIRE) == round;
            };
            for (int i = 0; i < 1000 && !arrived(); i++)
                std::this_thread::yield();
            if (!await(arrived))
                return;
            for (const uint64_t at : {small_to + 4, small_to + 100, large_to + 8, large_to + 4096})
                wrong += *flag(at) != round;
            taken.store(round);
        }
    });
    for (uint32_t round = 1; round <= rounds; round++) {
        std::fill_n(flag(0), 0x2000, round);
        *flag(flag_from) = round;
        ring->put(describe(local_bus, local_bus + small_to + 4, 200));
        ring->put(describe(local_bus, local_bus + large_to, 0x2000));
        ring->put(describe(local_bus + flag_from, local_bus + flag_to, 4));
        ring->go();
        if (!await([&] { return taken.load() == round; }))
            break;
    }
    consumer.join();
    EXPECT_EQ(taken.load(), rounds);
    EXPECT_EQ(wrong, 0u);
}

TEST_F(TwinDmaThreads, AnybodyMayStartIt)
{
    open_engine();
    constexpr uint32_t batches = 500;
    std::thread other([&] {
        while (!stop_.load()) {
            ring->go();
            ring->read(dma::ring_last);
        }
    });
    uint32_t put = 0;
    bool complete = true;
    for (uint32_t batch = 0; batch < batches && complete; batch++) {
        const uint32_t first = put;
        for (uint32_t i = 0; i < 3; i++, put++)
            ring->put(describe(local_bus + put, window(put), 1));
        ring->go();
        for (uint32_t i = first; i < put; i++)
            complete = complete && completes(i % slots);
    }
    stop_.store(true);
    other.join();
    EXPECT_TRUE(complete);
    EXPECT_EQ(memcmp(far(0), local->data, put), 0);
}

TEST_F(TwinDmaThreads, MemoryIsInUseUntilItIsRevoked)
{
    open_engine();
    constexpr uint64_t bus = 0x900000;
    constexpr uint32_t bytes = 64 * 1024;
    constexpr uint8_t poison = 0xEE;
    std::atomic<uint32_t> laps{0};
    std::thread engine([&] {
        for (uint32_t slot = 0; !stop_.load(); slot = (slot + 1) % slots) {
            ring->put_at(slot, describe(bus, window(0), bytes));
            ring->go();
            laps.fetch_add(1);
        }
    });
    const auto passes = [&](uint32_t more) {
        const uint32_t from = laps.load();
        return await([&] { return laps.load() - from >= more; });
    };
    for (uint8_t round = 1; round <= 50; round++) {
        Local passing(a, bus, bytes);
        memset(passing.data, round, bytes);
        // The second lap that ends began after the memory was filled; another one is under way.
        EXPECT_TRUE(passes(2));
        passing.unmap();
        // Who still reads it carries this over; that it is freed is seen by the address sanitizer.
        memset(passing.data, poison, bytes);
        EXPECT_TRUE(passes(2));
        EXPECT_EQ(*far(0), round) << "it was not in use";
        EXPECT_EQ(memchr(far(0), poison, bytes), nullptr) << round << ": read after it was revoked";
    }
    stop_.store(true);
    engine.join();
}

TEST_F(TwinDmaThreads, AnAbortFromElsewhereIsTheEndOfIt)
{
    open_engine(256);
    for (int round = 0; round < 20; round++) {
        ring->program();
        for (uint32_t i = 0; i < 256; i++)
            ring->put(describe(local_bus, window(0), local_bytes));
        std::thread engine([&] { ring->go(); });
        await([&] { return (ring->word(0) & dma::valid) == 0; });
        ring->write(dma::ctrl, dma::statuses | dma::marks | dma::host_ring | 2);
        EXPECT_TRUE(await([&] { return (ring->read(dma::ctrl) & dma::abort_done) != 0; }));
        uint32_t left = 0;
        for (uint32_t i = 0; i < 256; i++)
            left += (ring->word(i) & dma::valid) != 0;
        memset(far(0), 0x11, local_bytes);
        engine.join();
        uint32_t left_later = 0;
        for (uint32_t i = 0; i < 256; i++)
            left_later += (ring->word(i) & dma::valid) != 0;
        EXPECT_EQ(left, left_later);
        EXPECT_EQ(*far(local_bytes - 1), 0x11);
    }
}

TEST_F(TwinDmaThreads, WhatIsTakenAwayIsNotWrittenAnyMore)
{
    open_engine();
    std::thread engine([&] {
        for (uint32_t slot = 0; !stop_.load(); slot = (slot + 1) % slots) {
            ring->put_at(slot, describe(local_bus, window(0), slot % 2 == 0 ? 64 : 8192));
            ring->go();
            std::this_thread::yield();
        }
    });
    for (int round = 0; round < 10; round++) {
        memset(far(0), 0, 8192);
        open_inbound(b, 2, exposed.bus, exposed_bytes);
        EXPECT_TRUE(await([&] { return __atomic_load_n(far(1), __ATOMIC_ACQUIRE) != 0; }));
        close_inbound(b, 2);
        twin::csr_read32(b, reg::vs0_upstream);
        memset(far(0), 0x77, 8192);
        for (int i = 0; i < 100; i++)
            std::this_thread::yield();
        for (const uint64_t at : {0u, 1u, 63u, 64u, 8191u})
            EXPECT_EQ(*far(at), 0x77) << "round " << round;
    }
    stop_.store(true);
    engine.join();
}
} // namespace

// SPDX-License-Identifier: BSD-3-Clause
// What an engine does with a ring: which descriptors, in which order, and what it says of them.
#include "dma_bench.hpp"

using namespace plx;
using namespace plx::test;

namespace
{
class TwinDma : public DmaPair
{
};

TEST_F(TwinDma, ARingIsWorkedOffUntilASlotIsNotValid)
{
    open_engine();
    ring->put(describe(local_bus, window(64), 4096));
    ring->put(describe(local_bus + 5000, local_bus + 100'000, 333));
    ring->put(describe(local_bus, local_bus, 0)); // a marker: legal
    EXPECT_EQ(ring->word(0) & dma::valid, dma::valid) << "nothing before START";
    ring->go();
    EXPECT_EQ(ring->word(0), dma::ok | 4096);
    EXPECT_EQ(ring->word(1), dma::ok | 333);
    EXPECT_EQ(ring->word(2), dma::ok);
    EXPECT_EQ(memcmp(far(64), local->data, 4096), 0);
    EXPECT_EQ(memcmp(local->data + 100'000, local->data + 5000, 333), 0);
    EXPECT_EQ(ring->read(dma::ctrl) & (dma::in_progress | dma::start), 0u);
    EXPECT_NE(ring->read(dma::ctrl) & dma::invalid, 0u);
    EXPECT_EQ(ring->read(dma::ring_next), ring->slot_low(3));
    EXPECT_EQ(ring->read(dma::ring_last), ring->slot_low(3)) << "fetched last";
    EXPECT_EQ(ring->read(dma::last_size), 0u);
}

TEST_F(TwinDma, ItGoesOnWhereItStoppedAndWraps)
{
    open_engine();
    for (uint32_t i = 0; i < 3 * slots; i++) {
        ring->put(describe(local_bus + i, window(i), 1));
        if (i % 3 == 2)
            ring->go();
    }
    ring->go();
    for (uint32_t slot = 0; slot < slots; slot++)
        EXPECT_EQ(ring->word(slot), dma::ok | 1);
    EXPECT_EQ(memcmp(far(0), local->data, 3 * slots), 0);
}

TEST_F(TwinDma, AFullRingIsWalkedOnce)
{
    open_engine();
    for (uint32_t i = 0; i < slots; i++)
        ring->put(describe(local_bus, window(i * 64), 64));
    ring->go();
    for (uint32_t slot = 0; slot < slots; slot++)
        EXPECT_EQ(ring->word(slot), dma::ok | 64);
    EXPECT_EQ(ring->read(dma::ring_next), ring->slot_low(0));
}

// Enough of them that the engine tries stores past the caches on the way, behind which several
// descriptors are reported at once.
TEST_F(TwinDma, EachOfManyLongOnesIsReported)
{
    constexpr uint32_t many = 100, bytes = 8192;
    open_engine(2 * many);
    const auto source = [](uint32_t i) { return local_bus + i * 64; };
    const auto target = [](uint32_t i) { return uint64_t{i} * bytes; };
    for (uint32_t i = 0; i < many; i++)
        ring->put(describe(source(i), window(target(i)), bytes));
    ring->put(describe(local_bus, window(many * bytes), 5000));
    ring->go();
    for (uint32_t i = 0; i < many; i++) {
        ASSERT_EQ(ring->word(i), dma::ok | bytes) << i;
        ASSERT_EQ(memcmp(far(target(i)), local->data + (source(i) - local_bus), bytes), 0) << i;
    }
    EXPECT_EQ(ring->word(many), dma::ok | 5000);
    EXPECT_EQ(ring->read(dma::last_size), 5000u);
    EXPECT_EQ(ring->read(dma::ring_next), ring->slot_low(many + 1));
}

TEST_F(TwinDma, StopModeEndsAtTheEndOfTheRing)
{
    open_engine();
    for (uint32_t i = 0; i < slots; i++)
        ring->put(describe(local_bus, window(i * 64), 64));
    ring->go(1u << 4);
    EXPECT_EQ(ring->word(slots - 1), dma::ok | 64);
    EXPECT_EQ(ring->read(dma::ctrl) & (dma::in_progress | dma::invalid), 0u);
    ring->put(describe(local_bus, window(0), 64));
    ring->go(1u << 4);
    EXPECT_EQ(ring->word(0), dma::ok | 64) << "and begins anew with the next START";
}

TEST_F(TwinDma, WithoutWriteBackAStartIsOneLap)
{
    open_engine();
    for (uint32_t i = 0; i < slots; i++)
        ring->put(describe(local_bus + i, window(i), 1));
    ring->write(dma::ctrl, dma::statuses | dma::start | dma::host_ring);
    EXPECT_EQ(memcmp(far(0), local->data, slots), 0);
    for (uint32_t slot = 0; slot < slots; slot++)
        EXPECT_EQ(ring->word(slot), dma::valid | 1) << "left as they were";
    EXPECT_EQ(ring->read(dma::ctrl) & dma::in_progress, 0u);
    EXPECT_EQ(ring->read(dma::last_size), 1u);
}

// 128 MiB of bus addresses for one MiB of memory.
TEST_F(TwinDma, TheLargestDescriptorIsMovedWhole)
{
    open_engine();
    constexpr uint32_t bytes = facts::dma_xfer_bytes_max;
    constexpr uint64_t folded = uint64_t{0x77} << 32;
    for (uint64_t i = 0; i < 128; i++)
        ASSERT_EQ(twin::dma_map(a, local->data, folded + i * mib, mib), 0);
    Local to(a, folded + 128 * mib, 2 * mib);
    for (uint64_t i = 1; i < 64; i++)
        ASSERT_EQ(twin::dma_map(a, to.data, folded + (128 + i * 2) * mib, 2 * mib), 0);
    ring->put(describe(folded, folded + 128 * mib, bytes));
    ring->go();
    EXPECT_EQ(ring->word(0), dma::ok | bytes);
    EXPECT_EQ(ring->read(dma::last_size), bytes);
    EXPECT_EQ(memcmp(to.data, local->data, mib), 0);
    EXPECT_EQ(memcmp(to.data + mib, local->data, mib), 0);
    for (uint64_t i = 0; i < 128; i++)
        ASSERT_EQ(twin::dma_unmap(a, folded + i * mib, mib), 0);
    for (uint64_t i = 1; i < 64; i++)
        ASSERT_EQ(twin::dma_unmap(a, folded + (128 + i * 2) * mib, 2 * mib), 0);
}

TEST_F(TwinDma, BlockModeMovesOneBlock)
{
    open_engine();
    const uint64_t to = window(8);
    ring->write(0x200, static_cast<uint32_t>(local_bus));
    ring->write(0x204, static_cast<uint32_t>(local_bus >> 32));
    ring->write(0x208, static_cast<uint32_t>(to));
    ring->write(0x20C, static_cast<uint32_t>(to >> 32));
    ring->write(0x210, dma::valid | 1u << 30 | 777);
    ring->write(dma::ctrl, dma::statuses | dma::start);
    EXPECT_EQ(memcmp(far(8), local->data, 777), 0);
    EXPECT_EQ(ring->read(dma::ctrl) & (dma::in_progress | dma::invalid), 0u);
    EXPECT_EQ(ring->read(dma::last_size), 777u);
    EXPECT_EQ(ring->read(dma::intr) >> 16, 1u << 2) << "done, as asked for";
    ring->write(dma::ctrl, dma::statuses | dma::start);
    EXPECT_NE(ring->read(dma::ctrl) & dma::invalid, 0u) << "nothing valid any more";
}

TEST_F(TwinDma, AnAddressMayStay)
{
    open_engine();
    ring->put(describe(local_bus + 16, local_bus + 4096, 64, 1u << 29));
    ring->put(describe(local_bus + 32, local_bus + 8192, 64, 1u << 28));
    ring->go();
    for (uint32_t i = 0; i < 64; i += 4)
        EXPECT_EQ(memcmp(local->data + 4096 + i, local->data + 16, 4), 0);
    EXPECT_EQ(memcmp(local->data + 8192, local->data + 32 + 60, 4), 0);
    EXPECT_EQ(ring->word(1), dma::ok | 64);
}

TEST_F(TwinDma, NoDescriptionOfExtendedDescriptorsIsNeeded)
{
    open_engine();
    ring->put(describe(local_bus, window(0), 64, 1u << 27));
    ring->go();
    EXPECT_EQ(ring->word(0) & dma::valid, dma::valid);
    EXPECT_NE(ring->read(dma::ctrl) & dma::invalid, 0u);
}

TEST_F(TwinDma, FailuresAreTheDescriptorsOwn)
{
    open_engine();
    ring->put(describe(0x5000, window(0), 64));
    ring->put(describe(local_bus, 0x5000, 64));
    ring->put(describe(local_bus + local_bytes - 100, window(0), 164));
    ring->put(describe(local_bus, window(0), 64));
    ring->go();
    EXPECT_EQ(ring->word(0), dma::read_failed);
    EXPECT_EQ(ring->word(1), dma::write_failed);
    EXPECT_EQ(ring->word(2), dma::read_failed | 100) << "behind the end of its memory";
    EXPECT_EQ(ring->word(3), dma::ok | 64) << "the engine goes on";
    EXPECT_NE(ring->read(dma::intr) & 1u << 16, 0u);
    EXPECT_NE(ring->read(dma::ctrl) & 1u << 31, 0u) << "a header was logged";
    ring->write(dma::ctrl, 1u << 31);
    ring->write(dma::intr, 1u << 16);
    EXPECT_EQ(ring->read(dma::ctrl) >> 31, 0u);
    EXPECT_EQ(ring->read(dma::intr), 0u);
}

// The engine has a shorter way for plain descriptors whose memory it remembers.
TEST_F(TwinDma, OneOfAnotherKindIsInTurn)
{
    constexpr uint32_t constant_src = 1u << 29, interrupt = 1u << 30;
    open_engine(64);
    struct {
        Descriptor given;
        uint32_t word;
    } const all[] = {
        {describe(local_bus, window(0), 64), dma::ok | 64},
        {describe(local_bus + 64, window(64), 64), dma::ok | 64},
        {describe(local_bus, local_bus, 0), dma::ok},
        {describe(local_bus + 128, window(128), 8), dma::ok | 8},
        {describe(local_bus, window(136), 8, constant_src), dma::ok | 8},
        {describe(local_bus + 144, window(144), 112), dma::ok | 112},
        {describe(0x5000, window(256), 64), dma::read_failed},
        {describe(local_bus + 256, window(256), 64), dma::ok | 64},
        {describe(local_bus + 320, window(320), 64, interrupt), dma::ok | 64},
        {describe(local_bus + 384, 0x5000, 64), dma::write_failed},
        {describe(local_bus + local_bytes - 32, window(1024), 64), dma::read_failed | 32},
        {describe(window(0), local_bus + 4096, 64), dma::ok | 64},
        // What was written before is read, and the one behind gets what that read.
        {describe(local_bus + 4096, window(384), 64), dma::ok | 64},
        {describe(local_bus + 448, window(448), 64), dma::ok | 64},
    };
    for (const auto &one : all)
        ring->put(one.given);
    ring->go();
    uint32_t slot = 0;
    for (const auto &one : all) {
        EXPECT_EQ(ring->word(slot), one.word) << slot;
        slot++;
    }
    EXPECT_EQ(ring->read(dma::ring_next), ring->slot_low(slot));
    EXPECT_EQ(ring->read(dma::last_size), 64u);
    std::vector<uint8_t> expected(local->data, local->data + 512);
    for (uint32_t i = 0; i < 8; i++)
        expected[136 + i] = local->data[i % 4];
    std::copy_n(local->data, 64, expected.begin() + 384);
    EXPECT_EQ(memcmp(far(0), expected.data(), expected.size()), 0);
    EXPECT_EQ(memcmp(far(1024), local->data + local_bytes - 32, 32), 0);
}

TEST_F(TwinDma, AnErrorMayHangIt)
{
    config.switches.dma_errors_hang = true;
    open_engine();
    ring->put(describe(0x5000, window(0), 64));
    ring->go();
    EXPECT_EQ(ring->word(0) & dma::valid, dma::valid);
    EXPECT_NE(ring->read(dma::ctrl) & dma::in_progress, 0u);
}

TEST_F(TwinDma, RangesSideBySideAreOne)
{
    open_engine();
    Local before(a, local_bus - 4096, 4096);
    memset(before.data, 0x5A, 4096);
    ring->put(describe(local_bus - 10, window(0), 20));
    ring->go();
    EXPECT_EQ(ring->word(0), dma::ok | 20);
    EXPECT_EQ(memcmp(far(0), before.data, 10), 0);
    EXPECT_EQ(memcmp(far(10), local->data, 10), 0);
}

TEST_F(TwinDma, MemoryThatIsRevokedIsNotUsedAnyMore)
{
    open_engine();
    {
        Local gone(a, 0x10000, 4096);
        ring->put(describe(0x10000, window(0), 64));
        ring->go();
        EXPECT_EQ(ring->word(0), dma::ok | 64);
    }
    ring->put(describe(0x10000, window(0), 64));
    ring->go();
    EXPECT_EQ(ring->word(1), dma::read_failed);
}

TEST_F(TwinDma, ExposedMemoryIsKnownToTheEngines)
{
    open_engine();
    twin::Memory own{};
    ASSERT_EQ(twin::memory_add(a, mib, -1, false, &own), 0);
    memset(own.base, 0x33, 4096);
    ring->put(describe(own.bus, window(0), 4096));
    ring->put(describe(local_bus, own.bus + 4096, 64));
    ring->go();
    EXPECT_EQ(memcmp(far(0), own.base, 4096), 0);
    EXPECT_EQ(memcmp(static_cast<uint8_t *>(own.base) + 4096, local->data, 64), 0);
}

TEST_F(TwinDma, ARingInNoMemoryIsAnError)
{
    open_engine();
    ring->write(dma::ring_next, 0x7000);
    ring->go();
    EXPECT_EQ(ring->read(dma::ctrl) & (dma::in_progress | dma::invalid), 0u);
    EXPECT_NE(ring->read(dma::intr) & 1u << 16, 0u);
    ring->write(dma::ring_count, 0);
    ring->write(dma::ring_next, ring->slot_low(0));
    ring->put(describe(local_bus, window(0), 64));
    ring->go();
    EXPECT_EQ(ring->word(0) & dma::valid, dma::valid) << "a ring of no descriptors";
}

TEST_F(TwinDma, StatusBitsFollowTheirEnables)
{
    open_engine();
    ring->go();
    EXPECT_EQ(ring->read(dma::intr) >> 16, 0u);
    ring->write(dma::intr, 0x3F);
    ring->put(describe(local_bus, window(0), 64, 1u << 30));
    ring->go();
    EXPECT_EQ(ring->read(dma::intr) >> 16, 1u << 1 | 1u << 2) << "invalid descriptor, and done";
}

TEST_F(TwinDma, WithoutBusMasteringItReadsNothing)
{
    open_engine();
    ring->put(describe(local_bus, window(0), 64));
    ring->write(reg::pci_command_status, 0x2);
    ring->go();
    EXPECT_EQ(ring->word(0) & dma::valid, dma::valid);
    EXPECT_EQ(ring->read(dma::ctrl) & dma::in_progress, 0u);
    ring->write(reg::pci_command_status, 0x6);
    EXPECT_EQ(ring->word(0) & dma::valid, dma::valid) << "that START is forgotten";
    ring->go();
    EXPECT_EQ(ring->word(0), dma::ok | 64);
}

TEST_F(TwinDma, StartThroughTheNtFunction)
{
    open_engine();
    ring->put(describe(local_bus, window(0), 64));
    twin::csr_write32(a, facts::dma_base(0) + dma::ctrl, dma::go);
    EXPECT_EQ(ring->word(0), dma::ok | 64);
}

TEST_F(TwinDma, ChannelsDoNotShareRings)
{
    open_engine();
    Ring other(a, 3, ring_bus + 4096, 4);
    other.program();
    other.put(describe(local_bus, window(4096), 64));
    ring->put(describe(local_bus, window(0), 64));
    ring->go();
    EXPECT_EQ(other.word(0) & dma::valid, dma::valid);
    other.go();
    EXPECT_EQ(other.word(0), dma::ok | 64);
}
} // namespace

// SPDX-License-Identifier: BSD-3-Clause
// Engines that stall, hang, fail, are slow, are stopped, are reset; and what is uncertain.
#include "dma_bench.hpp"

using namespace plx;
using namespace plx::test;
using twin::Fault;

namespace
{
constexpr uint32_t keep = dma::marks | dma::host_ring;

class TwinDmaFault : public DmaPair
{
protected:
    void put(unsigned descriptors, uint32_t bytes = 64)
    {
        for (unsigned i = 0; i < descriptors; i++, put_++)
            ring->put(describe(local_bus + put_ * bytes, window(put_ * bytes), bytes));
    }
    unsigned done() const
    {
        unsigned n = 0;
        while (n < put_ && (ring->word(n) & dma::valid) == 0)
            n++;
        return n;
    }
    bool busy() const { return (ring->read(dma::ctrl) & dma::in_progress) != 0; }
    void inject(Fault fault, uint32_t argument) { ASSERT_EQ(twin::inject(a, fault, argument), 0); }
    /// A ring elsewhere than Ring would have it.
    void program_two_slots(uint32_t bus)
    {
        ring->program();
        for (const uint32_t at : {dma::ring_hi, dma::ring_lo, dma::ring_next, dma::ring_count})
            ring->write(at, 0);
        ring->write(dma::ring_lo, bus);
        ring->write(dma::ring_next, bus);
        ring->write(dma::ring_count, 2);
    }
    unsigned put_ = 0;
};

TEST_F(TwinDmaFault, AStallIsUndoneByAnotherStart)
{
    open_engine();
    inject(Fault::dma_stall, 2);
    put(5);
    ring->go();
    EXPECT_EQ(done(), 2u);
    EXPECT_FALSE(busy());
    EXPECT_EQ(ring->read(dma::ring_last), ring->slot_low(2)) << "E8: at the one that it missed";
    EXPECT_EQ(ring->word(2), dma::valid | 64);
    ring->go();
    EXPECT_EQ(done(), 5u) << "once only";
    inject(Fault::dma_stall, 0);
    inject(Fault::dma_stall, dma::off);
    put(1);
    ring->go();
    EXPECT_EQ(done(), 6u) << "taken back";
}

TEST_F(TwinDmaFault, AHangEndsWithTheChipAlone)
{
    open_engine();
    inject(Fault::dma_hang, 1);
    put(3);
    ring->go();
    EXPECT_EQ(done(), 1u);
    EXPECT_TRUE(busy());
    ring->go();
    ring->write(dma::ctrl, keep | dma::statuses | 1); // pause
    EXPECT_EQ(ring->read(dma::ctrl) & dma::pause_done, 0u);
    ring->write(dma::ctrl, keep | dma::statuses | 2); // abort
    EXPECT_EQ(ring->read(dma::ctrl) & dma::abort_done, 0u);
    twin::dma_write32(a, 0, dma::dev_ctl, 0x8000); // FLR
    EXPECT_TRUE(busy());
    EXPECT_EQ(done(), 1u);
    inject(Fault::card_gone, 1);
    inject(Fault::card_gone, 0);
    EXPECT_FALSE(busy());
}

TEST_F(TwinDmaFault, FlrMayReviveIt)
{
    config.switches.dma_flr_revives = true;
    open_engine();
    inject(Fault::dma_hang, 0);
    put(1);
    ring->go();
    EXPECT_TRUE(busy());
    twin::dma_write32(a, 0, dma::dev_ctl, 0x8000);
    EXPECT_FALSE(busy());
    ring->program();
    ring->go();
    EXPECT_EQ(done(), 1u);
}

TEST_F(TwinDmaFault, FlrWipesTheTuning)
{
    open_engine();
    EXPECT_NE(ring->read(0x258), 0u);
    twin::dma_write32(a, 0, dma::dev_ctl, 0x8000);
    for (const uint32_t at :
         {0x70u, 0x22Cu, 0x238u, 0x258u, 0x25Cu, 0x260u, 0x2A4u, 0x2A8u, dma::ring_count})
        EXPECT_EQ(ring->read(at), 0u) << std::hex << at;
    EXPECT_EQ(ring->read(reg::pci_command_status) & 0xFFFF, 0u);
    EXPECT_EQ(ring->read(reg::pci_id), 0x87D010B5u);
    EXPECT_EQ(twin::dma_read32(a, 1, 0x258), 0x001D0018u) << "the other functions keep theirs";
    ring->program();
    put(1);
    ring->go();
    EXPECT_EQ(done(), 1u);
}

TEST_F(TwinDmaFault, WithoutTheCapabilityThereIsNoFlr)
{
    config.switches.dma_flr = false;
    open_engine();
    twin::dma_write32(a, 0, dma::dev_ctl, 0x8000);
    EXPECT_NE(ring->read(0x258), 0u);
}

TEST_F(TwinDmaFault, TransfersFailOnDemand)
{
    open_engine();
    inject(Fault::dma_read_error, 1);
    inject(Fault::dma_write_error, 1);
    put(4);
    ring->go();
    EXPECT_EQ(ring->word(0), dma::ok | 64);
    EXPECT_EQ(ring->word(1), dma::read_failed);
    EXPECT_EQ(ring->word(2), dma::write_failed) << "counted among those that came so far";
    EXPECT_EQ(ring->word(3), dma::ok | 64);
}

TEST_F(TwinDmaFault, TheLinkGoesInTheMiddle)
{
    open_engine();
    inject(Fault::dma_link_loss, 1500);
    put(3, 1000);
    ring->put(describe(local_bus, local_bus + 0x8000, 64));
    ring->go();
    EXPECT_EQ(ring->word(0), dma::ok | 1000);
    EXPECT_EQ(ring->word(1), dma::write_failed | 500);
    EXPECT_EQ(ring->word(2), dma::write_failed);
    EXPECT_EQ(ring->word(3), dma::ok | 64) << "local memory is still there";
    EXPECT_EQ(memcmp(far(0), local->data, 1500), 0);
    EXPECT_EQ(*far(1500), 0);
    EXPECT_FALSE(link_is_up(a));
    EXPECT_EQ(twin::inject(a, Fault::dma_link_loss, 0), -EINVAL);
    inject(Fault::dma_link_loss, dma::off);
}

TEST_F(TwinDmaFault, WriteBacksMayCarryALateDate)
{
    open_engine();
    inject(Fault::dma_late, 2);
    put(3);
    ring->go();
    EXPECT_EQ(memcmp(far(0), local->data, 3 * 64), 0) << "the data are there";
    EXPECT_EQ(done(), 0u);
    ring->read(dma::ring_last);
    EXPECT_EQ(done(), 0u);
    ring->read(dma::ring_last);
    EXPECT_EQ(done(), 3u);
    put(1);
    ring->go();
    EXPECT_EQ(done(), 3u);
    inject(Fault::dma_late, 0);
    EXPECT_EQ(done(), 4u) << "released";
}

TEST_F(TwinDmaFault, LateWriteBacksAreNotOvertakenByTheRing)
{
    open_engine();
    inject(Fault::dma_late, 1000);
    put(slots);
    ring->go(); // all valid: the engine comes round to its own
    EXPECT_EQ(done(), slots);
    EXPECT_FALSE(busy());
    inject(Fault::dma_late, 0);
}

TEST_F(TwinDmaFault, LateWriteBacksOfMemoryThatWentAreDropped)
{
    open_engine();
    inject(Fault::dma_late, 1000);
    Ring other(a, 1, 0x100000, 4);
    other.program();
    other.put(describe(local_bus, window(0), 64));
    other.go();
    EXPECT_EQ(memcmp(far(0), local->data, 64), 0) << "the data are there, the write-back is not";
    const uint32_t before = other.word(0);
    EXPECT_NE(before & dma::valid, 0u);
    other.unmap();
    inject(Fault::dma_late, 0); // releases what is late
    EXPECT_EQ(other.word(0), before) << "written after the memory was revoked";
}

TEST_F(TwinDmaFault, ASlowEngineIsInProgress)
{
    open_engine();
    inject(Fault::dma_pace, 100);
    put(2, 150);
    ring->go();
    EXPECT_EQ(done(), 0u);
    EXPECT_EQ(memcmp(far(0), local->data, 100), 0);
    EXPECT_EQ(*far(101), 0);
    EXPECT_TRUE(busy()); // the read lets it go on: 200 bytes
    EXPECT_EQ(done(), 1u);
    inject(Fault::dma_pace, 0);
    EXPECT_EQ(done(), 2u);
    EXPECT_FALSE(busy());
}

TEST_F(TwinDmaFault, AGracefulPauseEndsTheDescriptorFirst)
{
    open_engine();
    inject(Fault::dma_pace, 64);
    put(3, 100);
    ring->go();
    EXPECT_EQ(done(), 0u);
    ring->write(dma::ctrl, keep | dma::statuses | 1);
    EXPECT_EQ(done(), 1u) << "it had begun";
    EXPECT_NE(ring->read(dma::ctrl) & dma::pause_done, 0u);
    EXPECT_TRUE(busy());
    ring->write(dma::ctrl, keep | dma::pause_done | 1);
    EXPECT_EQ(ring->read(dma::ctrl) & dma::pause_done, 0u) << "said once";
    EXPECT_EQ(done(), 1u);
    inject(Fault::dma_pace, 0);
    EXPECT_EQ(done(), 1u) << "paused, not slow";
    ring->go(1); // START does not undo it
    EXPECT_EQ(done(), 1u);
    ring->write(dma::ctrl, keep | dma::statuses);
    EXPECT_EQ(done(), 3u);
    EXPECT_FALSE(busy());
}

// The ring of a paused engine is exchanged: what it had read ahead of the old one.
TEST_F(TwinDmaFault, APausedEngineForgetsTheOldRingUnlessTheSwitchSaysSo)
{
    for (const bool drops : {true, false}) {
        SCOPED_TRACE(drops);
        config.switches.dma_rewrite_drops = drops;
        put_ = 0;
        open_engine();
        inject(Fault::dma_pace, 64);
        put(3, 100);
        ring->go();
        ring->write(dma::ctrl, keep | dma::statuses | 1);
        ASSERT_EQ(done(), 1u);
        auto other = std::make_unique<Ring>(a, 0, ring_bus + mib, slots);
        for (uint32_t at = 0x200; at <= dma::ring_count; at += 4)
            ring->write(at, 0);
        for (uint32_t slot = 0; slot < slots; slot++)
            ring->put_at(slot, {});
        ring->write(dma::ring_lo, static_cast<uint32_t>(ring_bus + mib));
        ring->write(dma::ring_hi, static_cast<uint32_t>((ring_bus + mib) >> 32));
        ring->write(dma::ring_next, static_cast<uint32_t>(ring_bus + mib));
        ring->write(dma::ring_count, slots);
        inject(Fault::dma_pace, 0);
        other->put_at(0, describe(local_bus, window(4096), 64));
        ring->write(dma::ctrl, keep | dma::statuses); // goes on, without START
        EXPECT_EQ(word_at(exposed, 100) == 0, drops) << "the second of the old ring";
        if (drops) {
            EXPECT_EQ(other->word(0), dma::ok | 64);
        }
        other.reset();
        TearDown();
        a = b = nullptr;
    }
}

// LPD and VCA wait for the answer to each pause, whatever the engine does already.
TEST_F(TwinDmaFault, APauseIsAnsweredAgainWhereTheSwitchSaysSo)
{
    config.switches.dma_pause_repeats = true;
    open_engine();
    for (int i = 0; i < 2; i++) {
        ring->write(dma::ctrl, keep | dma::statuses | 1);
        EXPECT_NE(ring->read(dma::ctrl) & dma::pause_done, 0u) << i;
    }
}

/// A driver that sleeps until a completion: it counts, and takes the events.
struct DmaSleeper {
    const Ring *ring;
    std::atomic<unsigned> calls{0};
    std::atomic<uint32_t> events{0};
    static void call(void *ctx)
    {
        auto *self = static_cast<DmaSleeper *>(ctx);
        const uint32_t found = self->ring->read(dma::intr);
        self->ring->write(dma::intr, found);
        self->events.fetch_or(found & 0x003F0000);
        self->calls.fetch_add(1);
    }
};

TEST_F(TwinDmaFault, ACompletionInterruptsOneThatSleeps)
{
    constexpr uint32_t interrupts = 1u << 30;
    constexpr uint32_t event_done = 1u << 18;
    constexpr uint32_t event_error = 1u << 16;
    open_engine();
    DmaSleeper sleeper{ring.get()};
    twin::on_dma_interrupt(a, 0, DmaSleeper::call, &sleeper);
    ring->write(dma::intr, 0x8001); // pin, error
    Descriptor with = describe(local_bus, window(0), 64);
    with.words[0] |= interrupts;
    ring->put(with);
    ring->go();
    ASSERT_TRUE(await([&] { return sleeper.calls.load() == 1; }));
    EXPECT_EQ(sleeper.events.load(), event_done);
    inject(Fault::dma_read_error, 0);
    ring->put(describe(local_bus, window(0), 64));
    ring->go();
    ASSERT_TRUE(await([&] { return (sleeper.events.load() & event_error) != 0; }));
    // Without the pin it is pending, and comes when that is enabled.
    ring->write(dma::intr, 0x003F0000);
    const unsigned calls = sleeper.calls.load();
    ring->put(with);
    ring->go();
    EXPECT_NE(ring->read(dma::intr) & event_done, 0u);
    EXPECT_EQ(sleeper.calls.load(), calls);
    ring->write(dma::intr, 0x8000);
    EXPECT_TRUE(await([&] { return sleeper.calls.load() > calls; }));
    twin::on_dma_interrupt(a, 0, nullptr, nullptr);
}

TEST_F(TwinDmaFault, AnIdleEnginePausesAtOnce)
{
    open_engine();
    ring->write(dma::ctrl, keep | dma::statuses | 1);
    EXPECT_NE(ring->read(dma::ctrl) & dma::pause_done, 0u);
    EXPECT_FALSE(busy());
    put(1);
    ring->go(1);
    EXPECT_EQ(done(), 0u);
    ring->write(dma::ctrl, keep | dma::statuses);
    EXPECT_EQ(done(), 1u) << "the START waited";
}

TEST_F(TwinDmaFault, AnImmediatePauseLeavesTheDescriptorInHand)
{
    open_engine();
    inject(Fault::dma_pace, 64);
    put(2, 100);
    ring->go();
    const uint32_t tuning = ring->read(dma::bandwidth); // lets it go on: 100 and 28 bytes
    ring->write(dma::bandwidth, tuning | 1u << 16);
    EXPECT_NE(ring->read(dma::ctrl) & dma::stop_done, 0u);
    EXPECT_TRUE(busy());
    const unsigned before = done();
    EXPECT_LT(before, 2u);
    inject(Fault::dma_pace, 0);
    EXPECT_EQ(done(), before);
    ring->write(dma::ctrl, keep | dma::stop_done);
    EXPECT_EQ(ring->read(dma::ctrl) & dma::stop_done, 0u);
    ring->write(dma::bandwidth, tuning);
    EXPECT_EQ(done(), 2u);
    EXPECT_EQ(memcmp(far(0), local->data, 200), 0);
}

TEST_F(TwinDmaFault, AnAbortDropsWhatIsInHand)
{
    open_engine();
    inject(Fault::dma_pace, 64);
    put(3, 100);
    ring->go();
    ring->write(dma::ctrl, keep | dma::statuses | 2);
    EXPECT_NE(ring->read(dma::ctrl) & dma::abort_done, 0u);
    EXPECT_FALSE(busy());
    EXPECT_EQ(done(), 0u);
    inject(Fault::dma_pace, 0);
    EXPECT_EQ(done(), 0u);
    ring->go(2);
    EXPECT_EQ(done(), 0u) << "aborted it stays while the bit is set";
    ring->write(dma::ctrl, keep | dma::statuses);
    ring->program();
    ring->go();
    EXPECT_EQ(done(), 3u);
}

TEST_F(TwinDmaFault, OneRingAfterAnotherNeedsZeros)
{
    open_engine();
    put(1);
    ring->go();
    Ring other(a, 0, ring_bus + 0x10000, 4);
    const auto begin = [&] {
        other.write(dma::ring_lo, other.slot_low(0));
        other.write(dma::ring_hi, static_cast<uint32_t>(ring_bus >> 32));
        other.write(dma::ring_next, other.slot_low(0));
        other.write(dma::ring_count, 4);
    };
    begin();
    EXPECT_EQ(other.read(dma::ring_next), 0u) << "E7";
    other.put_at(0, describe(local_bus, window(0), 64));
    other.go();
    EXPECT_EQ(other.word(0), dma::valid | 64);
    other.program(); // zeros first
    other.go();
    EXPECT_EQ(other.word(0), dma::ok | 64);
}

TEST_F(TwinDmaFault, OrItDoesNot)
{
    config.switches.dma_stale_tail = false;
    open_engine();
    put(1);
    ring->go();
    Ring other(a, 0, ring_bus + 0x10000, 4);
    other.write(dma::ring_lo, other.slot_low(0));
    other.write(dma::ring_next, other.slot_low(0));
    other.put_at(0, describe(local_bus, window(0), 64));
    other.go();
    EXPECT_EQ(other.word(0), dma::ok | 64);
}

// ---- what is not documented, both ways

TEST_F(TwinDmaFault, PrefetchedDescriptorsAreNotReadAgain)
{
    open_engine();
    ring->write(dma::prefetch, 3);
    inject(Fault::dma_pace, 64);
    put(4);
    ring->go();
    EXPECT_EQ(done(), 1u);
    // The second is in the engine already, the fourth is not.
    ring->put_at(1, describe(local_bus + 0x1000, window(0x1000), 64));
    ring->put_at(3, describe(local_bus + 0x2000, window(0x2000), 64));
    inject(Fault::dma_pace, 0);
    EXPECT_EQ(done(), 4u);
    EXPECT_EQ(*far(0x1001), 0);
    EXPECT_EQ(memcmp(far(64), local->data + 64, 64), 0);
    EXPECT_EQ(memcmp(far(0x2000), local->data + 0x2000, 64), 0);
}

TEST_F(TwinDmaFault, ThePrefetchLimitMayCountGroups)
{
    config.switches.dma_prefetch_unit = 4;
    open_engine();
    ring->write(dma::prefetch, 1);
    inject(Fault::dma_pace, 64);
    put(4);
    ring->go();
    ring->put_at(3, describe(local_bus + 0x2000, window(0x2000), 64));
    inject(Fault::dma_pace, 0);
    EXPECT_EQ(*far(0x2001), 0) << "Q10: the fourth was fetched with the first";
}

TEST_F(TwinDmaFault, StartReadsAgainWhatWasNotValid)
{
    open_engine();
    inject(Fault::dma_pace, 64);
    put(2);
    ring->go(); // both fetched, one done
    ring->put_at(1, describe(local_bus + 0x1000, window(0x1000), 64));
    ring->go();
    inject(Fault::dma_pace, 0);
    EXPECT_EQ(memcmp(far(0x1000), local->data + 0x1000, 64), 0);
}

TEST_F(TwinDmaFault, TheLastAddressMayTellOfCompletions)
{
    config.switches.dma_last_is_completed = true;
    open_engine();
    put(2);
    ring->go();
    EXPECT_EQ(ring->read(dma::ring_last), ring->slot_low(1)) << "Q8";
}

TEST_F(TwinDmaFault, TheWriteBackMayTakeAllOfTheDescriptor)
{
    open_engine();
    put(1);
    ring->go();
    EXPECT_NE(ring->word(0, 1) | ring->word(0, 2) | ring->word(0, 3), 0u);
    ring.reset();
    local.reset();
    twin::detach(a);
    twin::detach(b);
    a = b = nullptr;
    config.switches.dma_writes_back_all = true;
    put_ = 0;
    open_engine();
    put(1);
    ring->go();
    EXPECT_EQ(ring->word(0), dma::ok | 64);
    EXPECT_EQ(ring->word(0, 1) | ring->word(0, 2) | ring->word(0, 3), 0u) << "Q9";
}

TEST_F(TwinDmaFault, TheEngineMayReadBehindItsRing)
{
    config.switches.dma_fetches_past_end = true;
    open_engine();
    ring->write(dma::prefetch, 2 * slots);
    put(slots); // ends where its memory ends
    ring->go();
    EXPECT_NE(ring->read(dma::intr) & 1u << 16, 0u);
    Ring roomy(a, 1, ring_bus + 0x10000, 4, 9);
    roomy.program();
    for (int i = 0; i < 6; i++) {
        roomy.put(describe(local_bus, window(0), 64));
        roomy.go();
    }
    for (uint32_t slot = 0; slot < 4; slot++)
        EXPECT_EQ(roomy.word(slot), dma::ok | 64);
    EXPECT_EQ(roomy.read(dma::intr), 0u);
}

TEST_F(TwinDmaFault, StartWhileRunningMayBeHarmful)
{
    config.switches.dma_restart_harmless = false;
    open_engine();
    inject(Fault::dma_pace, 64);
    put(2, 100);
    ring->go();
    ring->go();
    inject(Fault::dma_pace, 0);
    EXPECT_EQ(done(), 2u);
    put(1);
    ring->go();
    EXPECT_EQ(done(), 3u);
    inject(Fault::dma_pace, 64);
    put(2, 100);
    ring->go();
    ring->go(); // Q13: back to the base, where nothing is valid
    inject(Fault::dma_pace, 0);
    EXPECT_EQ(done(), 3u);
    EXPECT_FALSE(busy());
}

TEST_F(TwinDmaFault, RingsMayBeAlignedToSixteen)
{
    config.switches.dma_ring_align = 16;
    open_engine();
    Local memory(a, 0x20000, 4096);
    const Descriptor d = describe(local_bus, window(0), 64);
    memcpy(memory.data + 16, &d, sizeof(d));
    memcpy(memory.data + 32, &d, sizeof(d));
    program_two_slots(0x20010);
    ring->go();
    ring->go();
    uint32_t words[2];
    memcpy(words, memory.data + 16, 4);
    memcpy(words + 1, memory.data + 32, 4);
    EXPECT_EQ(words[0], dma::ok | 64);
    EXPECT_EQ(words[1], dma::ok | 64);
    EXPECT_EQ(ring->read(dma::ring_next), 0x20010u) << "wrapped where it began";
}

TEST_F(TwinDmaFault, OrToSixtyFour)
{
    open_engine();
    Local memory(a, 0x20000, 4096);
    ring->write(dma::ring_lo, 0x20010);
    program_two_slots(0x20010);
    const Descriptor d = describe(local_bus, window(0), 64);
    memcpy(memory.data + 16, &d, sizeof(d));
    ring->go();
    EXPECT_EQ(ring->read(dma::ring_next), 0x20000u) << "Q12: the ring ends 16 bytes earlier";
}

TEST_F(TwinDmaFault, RelaxedWritesMayPass)
{
    config.switches.dma_relaxed_reorders = true;
    open_engine();
    const auto last_writer = [&](uint32_t more) {
        ring->program();
        ring->put(describe(local_bus + 1, window(0), 1));
        ring->put(describe(local_bus + 2, window(0), 1));
        ring->go(more);
        EXPECT_EQ(ring->word(0), dma::ok | 1);
        EXPECT_EQ(ring->word(1), dma::ok | 1);
        EXPECT_EQ(ring->read(dma::ring_next), ring->slot_low(2));
        return *far(0);
    };
    EXPECT_EQ(last_writer(0), local->data[2]);
    EXPECT_EQ(last_writer(1u << 25), local->data[1]) << "E13";
}

// ---- what a process leaves behind

TEST_F(TwinDmaFault, ANewProcessFindsAHungEngine)
{
    open_engine();
    inject(Fault::dma_hang, 0);
    put(1);
    ring->go();
    ring.reset();
    local.reset();
    twin::detach(a);
    twin::Error error{};
    ASSERT_EQ(twin::attach(config, &a, &error), 0) << error.text;
    EXPECT_NE(twin::dma_read32(a, 0, dma::ctrl) & dma::in_progress, 0u) << "E9";
    EXPECT_EQ(twin::dma_read32(a, 1, dma::ctrl) & dma::in_progress, 0u);
    twin::detach(a);
    config.state = twin::ChipState::reset;
    ASSERT_EQ(twin::attach(config, &a, &error), 0) << error.text;
    EXPECT_EQ(twin::dma_read32(a, 0, dma::ctrl) & dma::in_progress, 0u);
}

TEST_F(TwinDmaFault, ANewProcessFindsAnEndedEngineAndAnOldRing)
{
    open_engine();
    inject(Fault::dma_pace, 16);
    put(1);
    ring->go();
    ring.reset();
    local.reset();
    twin::detach(a);
    twin::Error error{};
    ASSERT_EQ(twin::attach(config, &a, &error), 0) << error.text;
    EXPECT_EQ(twin::dma_read32(a, 0, dma::ctrl) & (dma::in_progress | dma::start), 0u);
    EXPECT_EQ(twin::dma_read32(a, 0, dma::ring_count), slots);
    twin::dma_write32(a, 0, dma::ctrl, dma::go);
    EXPECT_NE(twin::dma_read32(a, 0, dma::intr) & 1u << 16, 0u) << "not memory";
}

TEST_F(TwinDmaFault, AScrambledChipNeedsZerosFirst)
{
    config.state = twin::ChipState::random;
    for (config.random_seed = 1; config.random_seed < 8; config.random_seed++) {
        twin::Error error{};
        ASSERT_EQ(twin::attach(config, &a, &error), 0) << error.text;
        {
            Local memory(a, local_bus, 4096);
            Ring tried(a, 0, ring_bus, slots);
            memory.data[0] = 1;
            tried.put(describe(local_bus, local_bus + 64, 1));
            tried.program();
            tried.go();
            EXPECT_EQ(memory.data[64], 1) << "seed " << config.random_seed;
        }
        twin::detach(a);
        a = nullptr;
    }
}
} // namespace

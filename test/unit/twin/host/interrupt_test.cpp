// SPDX-License-Identifier: BSD-3-Clause
// What makes a chip interrupt its host, with INTx and with MSI, and that the host gets to know.
#include "far_host.hpp"

using namespace plx;
using namespace plx::test;

namespace
{
constexpr uint32_t doorbells = virt_block + reg::db_virt_set;
constexpr uint32_t doorbells_clear = virt_block + reg::db_virt_clear;
constexpr uint32_t mask = virt_block + reg::db_virt_mask_set;
constexpr uint32_t unmask = virt_block + reg::db_virt_mask_clear;
constexpr uint32_t errors = virt_block + reg::link_err_status;
constexpr uint32_t errors_mask = virt_block + reg::link_err_mask;
constexpr uint32_t link_change = field::err_link_change.mask();

/// What a driver does when it is called: counts, and takes what is pending unless set not to.
struct Handler {
    twin::Host *host = nullptr;
    std::atomic<bool> takes{true};
    std::atomic<unsigned> calls{0};
    std::atomic<uint32_t> taken{0};

    static void call(void *ctx)
    {
        auto *self = static_cast<Handler *>(ctx);
        if (self->takes.load()) {
            const uint32_t pending = twin::csr_read32(self->host, doorbells);
            twin::csr_write32(self->host, doorbells_clear, pending);
            twin::csr_write32(self->host, errors, twin::csr_read32(self->host, errors));
            self->taken.fetch_or(pending);
        }
        self->calls.fetch_add(1);
    }
};

class TwinInterrupt : public MemPair
{
protected:
    Handler handler;

    void watch(bool takes = true)
    {
        set_up_both();
        twin::csr_write32(b, errors, 0xF); // what training latched
        handler.host = b;
        handler.takes = takes;
        twin::csr_write32(b, unmask, 0xFFFF);
        twin::on_interrupt(b, Handler::call, &handler);
    }
    /// As the peer does it.
    void ring(uint32_t bits)
    {
        twin::window_write(a, 4, doorbells, &bits, sizeof(bits), write_rid);
    }
    bool called(unsigned times)
    {
        return await([&] { return handler.calls.load() >= times; });
    }
    /// The calls until now, none being under way.
    unsigned calls()
    {
        twin::on_interrupt(b, nullptr, nullptr);
        return handler.calls.load();
    }
    void use_msi()
    {
        const uint32_t control = virt_block + reg::msi_control;
        twin::csr_write32(b, control, twin::csr_read32(b, control) | 1u << 16);
    }
    void TearDown() override
    {
        if (b != nullptr)
            twin::on_interrupt(b, nullptr, nullptr);
        MemPair::TearDown();
    }
};

TEST_F(TwinInterrupt, DoorbellOfThePeerCallsTheHost)
{
    watch();
    ring(0x8001);
    ASSERT_TRUE(called(1));
    EXPECT_EQ(handler.taken.load(), 0x8001u);
    ring(0x0002);
    ASSERT_TRUE(await([&] { return handler.taken.load() == 0x8003u; }));
}

TEST_F(TwinInterrupt, LevelStaysUntilItsCauseIsTaken)
{
    watch(false);
    ring(1);
    ASSERT_TRUE(called(3)) << "the level was let down by itself";
    handler.takes = true;
    ASSERT_TRUE(await([&] { return twin::csr_read32(b, doorbells) == 0; }));
    const unsigned so_far = calls();
    twin::on_interrupt(b, Handler::call, &handler);
    ring(2);
    ASSERT_TRUE(called(so_far + 1));
    EXPECT_EQ(handler.taken.load() & 2, 2u);
}

TEST_F(TwinInterrupt, MaskedDoorbellsWaitForTheirUnmasking)
{
    watch();
    twin::csr_write32(b, mask, 0x2);
    ring(0x2);
    EXPECT_EQ(twin::csr_read32(b, doorbells), 0x2u);
    EXPECT_EQ(handler.calls.load(), 0u);
    twin::csr_write32(b, unmask, 0x2);
    ASSERT_TRUE(called(1));
    EXPECT_EQ(handler.taken.load(), 0x2u);
}

TEST_F(TwinInterrupt, CommandRegisterTurnsIntxOff)
{
    watch();
    const uint32_t command = virt_block + reg::pci_command_status;
    const uint32_t old = twin::csr_read32(b, command);
    twin::csr_write32(b, command, old | field::intx_disable.mask());
    ring(0x4);
    EXPECT_EQ(handler.calls.load(), 0u);
    twin::csr_write32(b, command, old);
    ASSERT_TRUE(called(1));
}

TEST_F(TwinInterrupt, LinkErrorsInterruptOnceUnmasked)
{
    watch();
    twin::csr_write32(b, errors_mask, 0xF & ~link_change);
    twin::inject(a, twin::Fault::link_down, 1);
    ASSERT_TRUE(called(1)) << "the peer took the link down";
    EXPECT_EQ(twin::csr_read32(b, errors), 0u);
}

TEST_F(TwinInterrupt, PendingBeforeTheCallbackIsTold)
{
    set_up_both();
    twin::csr_write32(b, unmask, 0xFFFF);
    ring(0x10);
    handler.host = b;
    twin::on_interrupt(b, Handler::call, &handler);
    ASSERT_TRUE(called(1));
    EXPECT_EQ(handler.taken.load(), 0x10u);
}

TEST_F(TwinInterrupt, MsiComesOnlyFromZero) // E1
{
    watch(false);
    use_msi();
    ring(0x1);
    ASSERT_TRUE(called(1));
    ring(0x2);
    ring(0x1);
    twin::csr_write32(b, doorbells_clear, 0x1);
    ring(0x4);
    EXPECT_EQ(twin::csr_read32(b, doorbells), 0x6u);
    twin::csr_write32(b, doorbells_clear, 0xFFFF);
    ring(0x8);
    ASSERT_TRUE(called(2));
    EXPECT_EQ(calls(), 2u);
}

TEST_F(TwinInterrupt, MaskedMsiWaitsForItsUnmasking)
{
    watch(false);
    use_msi();
    twin::csr_write32(b, virt_block + reg::msi_mask, 1);
    ring(0x1);
    EXPECT_EQ(twin::csr_read32(b, doorbells), 0x1u);
    EXPECT_EQ(handler.calls.load(), 0u);
    twin::csr_write32(b, virt_block + reg::msi_mask, 0);
    ASSERT_TRUE(called(1));
    EXPECT_EQ(calls(), 1u);
}

TEST_F(TwinInterrupt, MsiForEachNewBitIsASwitch)
{
    config.switches.msi_needs_zero = false;
    watch(false);
    use_msi();
    ring(0x1);
    ASSERT_TRUE(called(1));
    ring(0x2);
    ASSERT_TRUE(called(2));
    ring(0x2); // set already
    ring(0x4);
    ASSERT_TRUE(called(3));
    EXPECT_EQ(calls(), 3u);
}

TEST_F(TwinInterrupt, MaskedBitsCountForZero)
{
    watch(false);
    use_msi();
    twin::csr_write32(b, mask, 0x1);
    ring(0x1);
    ring(0x2);
    twin::csr_write32(b, doorbells_clear, 0xFFFF);
    ring(0x4);
    ASSERT_TRUE(called(1));
    EXPECT_EQ(calls(), 1u);
}

TEST_F(TwinInterrupt, MaskedBitsDoNotCountWhereTheSwitchSaysSo)
{
    config.switches.masked_doorbells_count = false;
    watch(false);
    use_msi();
    twin::csr_write32(b, mask, 0x1);
    ring(0x1);
    ring(0x2);
    ASSERT_TRUE(called(1));
    EXPECT_EQ(twin::csr_read32(b, doorbells), 0x3u);
}

TEST_F(TwinInterrupt, UnmaskingSendsNoMsi)
{
    watch(false);
    use_msi();
    twin::csr_write32(b, mask, 0x1);
    ring(0x1);
    twin::csr_write32(b, unmask, 0x1);
    twin::csr_write32(b, doorbells_clear, 0x1);
    ring(0x2);
    ASSERT_TRUE(called(1));
    EXPECT_EQ(calls(), 1u);
}

TEST_F(TwinInterrupt, LinkErrorSendsAnMsi)
{
    watch();
    use_msi();
    twin::csr_write32(b, errors_mask, 0xF & ~link_change);
    twin::inject(a, twin::Fault::link_down, 1);
    ASSERT_TRUE(called(1));
}

TEST_F(TwinInterrupt, LateOnDemand)
{
    watch();
    twin::inject(b, twin::Fault::late_doorbells, 1000);
    ring(0x1);
    EXPECT_EQ(twin::csr_read32(b, doorbells), 0u);
    EXPECT_EQ(handler.calls.load(), 0u);
    clock.advance_us(1000);
    EXPECT_EQ(twin::csr_read32(b, doorbells) & ~0x1u, 0u);
    ASSERT_TRUE(called(1));
}

TEST_F(TwinInterrupt, ChipThatIsGoneDoesNotInterrupt)
{
    watch();
    twin::inject(b, twin::Fault::card_gone, 1);
    ring(0x1);
    EXPECT_EQ(calls(), 0u);
}

TEST_F(TwinInterrupt, LostDoorbellInterruptsNoHost)
{
    watch();
    twin::inject(b, twin::Fault::drop_doorbells, 1);
    ring(0x1);
    ring(0x2);
    ASSERT_TRUE(called(1));
    EXPECT_EQ(handler.taken.load(), 0x2u);
}

/// What a driver knows that sleeps until it is interrupted: nothing reads a register before.
struct Sleeper {
    twin::Host *host = nullptr;
    std::atomic<unsigned> ups{0};
    std::atomic<unsigned> downs{0};

    static void call(void *ctx)
    {
        auto *self = static_cast<Sleeper *>(ctx);
        if ((twin::csr_read32(self->host, errors) & link_change) == 0)
            return;
        twin::csr_write32(self->host, errors, link_change);
        (link_is_up(self->host) ? self->ups : self->downs).fetch_add(1);
    }
    void sleep(twin::Host *on)
    {
        host = on;
        twin::csr_write32(host, errors, 0xF);
        twin::csr_write32(host, errors_mask, 0xF & ~link_change);
        twin::on_interrupt(host, call, this);
    }
    bool woken(const std::atomic<unsigned> &count, unsigned times) const
    {
        return await([&] { return count.load() >= times; }, 20);
    }
};

TEST_F(TwinInterrupt, TheEndOfTrainingCallsOneThatSleeps)
{
    config.clock = nullptr;
    config.switches.train_us = 20'000;
    twin::Error error{};
    ASSERT_EQ(twin::attach(config, &a, &error), 0) << error.text;
    Sleeper sleeper;
    sleeper.sleep(a);
    ASSERT_EQ(twin::attach(config, &b, &error), 0) << error.text;
    ASSERT_TRUE(sleeper.woken(sleeper.ups, 1)) << "plugged in";
    for (const twin::Fault fault :
         {twin::Fault::link_down, twin::Fault::port_disabled, twin::Fault::card_gone}) {
        const unsigned ups = sleeper.ups.load();
        const unsigned downs = sleeper.downs.load();
        twin::inject(b, fault, 1);
        ASSERT_TRUE(sleeper.woken(sleeper.downs, downs + 1)) << static_cast<int>(fault);
        twin::inject(b, fault, 0);
        ASSERT_TRUE(sleeper.woken(sleeper.ups, ups + 1)) << static_cast<int>(fault);
    }
    twin::csr_write32(a, reg::port_control, 2); // its own port 1
    EXPECT_FALSE(link_is_up(a));
    const unsigned ups = sleeper.ups.load();
    twin::csr_write32(a, reg::port_control, 0);
    ASSERT_TRUE(sleeper.woken(sleeper.ups, ups + 1)) << "enabled by itself";
    twin::on_interrupt(a, nullptr, nullptr);
}

TEST_F(TwinInterrupt, WhereOnlyADownIsLatchedAnUpCallsNobody)
{
    config.clock = nullptr;
    config.switches.link_up_latches_fe0 = false;
    twin::Error error{};
    ASSERT_EQ(twin::attach(config, &a, &error), 0) << error.text;
    Sleeper sleeper;
    sleeper.sleep(a);
    ASSERT_EQ(twin::attach(config, &b, &error), 0) << error.text;
    ASSERT_TRUE(await([&] { return link_is_up(a) && link_is_up(b); }));
    twin::inject(b, twin::Fault::link_down, 1);
    ASSERT_TRUE(sleeper.woken(sleeper.downs, 1));
    twin::inject(b, twin::Fault::link_down, 0);
    ASSERT_TRUE(await([&] { return link_is_up(a); }));
    EXPECT_EQ(twin::csr_read32(a, errors), 0u);
    EXPECT_EQ(sleeper.ups.load(), 0u);
    twin::on_interrupt(a, nullptr, nullptr);
}

class TwinInterruptProcesses : public BetweenProcesses
{
protected:
    void join_both(FarHost &far)
    {
        twin::Error error{};
        ASSERT_EQ(far(Do::attach), 0);
        ASSERT_EQ(twin::attach(config, &near, &error), 0) << error.text;
        ASSERT_TRUE(await([&] { return link_is_up(near); }));
        ASSERT_TRUE(await([&] {
            return field::link_width.get(static_cast<uint32_t>(
                       far(Do::csr_read, virt_block + reg::pcie_link_ctl_status))) != 0;
        }));
        bring_up(near);
        ASSERT_EQ(far(Do::bring_up), 0);
        far(Do::csr_write, unmask, 0xFFFF);
        far(Do::watch_doorbells);
    }
    bool ring(uint32_t bits)
    {
        return twin::window_write(near, 4, doorbells, &bits, sizeof(bits), write_rid);
    }
};

TEST_F(TwinInterruptProcesses, DoorbellCallsTheOtherProcess)
{
    FarHost far(config);
    ASSERT_NO_FATAL_FAILURE(join_both(far));
    for (const uint32_t bit : {0x1u, 0x80u, 0x8000u}) {
        ASSERT_TRUE(ring(bit));
        ASSERT_TRUE(await([&] { return (far(Do::doorbells_taken) & bit) != 0; })) << bit;
    }
}

TEST_F(TwinInterruptProcesses, TheEndOfTrainingCallsOneThatSleeps)
{
    twin::Error error{};
    config.switches.train_us = 20'000;
    ASSERT_EQ(twin::attach(config, &near, &error), 0) << error.text;
    Sleeper sleeper;
    sleeper.sleep(near);
    FarHost far(config);
    ASSERT_EQ(far(Do::attach), 0);
    ASSERT_TRUE(sleeper.woken(sleeper.ups, 1)) << "plugged in";
    far(Do::csr_write, reg::port_control, 2);
    ASSERT_TRUE(sleeper.woken(sleeper.downs, 1));
    far(Do::csr_write, reg::port_control, 0);
    ASSERT_TRUE(sleeper.woken(sleeper.ups, 2)) << "enabled at the other end";
    twin::on_interrupt(near, nullptr, nullptr);
}

TEST_F(TwinInterruptProcesses, StoppedProcessFindsItsDoorbellAndAWholeCable)
{
    FarHost far(config);
    ASSERT_NO_FATAL_FAILURE(join_both(far));
    far.stop();
    for (unsigned i = 0; i < 20'000; i++)
        ASSERT_TRUE(ring(1u << i % 16));
    EXPECT_TRUE(twin::cable_connected(near)) << "the cable was filled with doorbells";
    far.go_on();
    ASSERT_TRUE(await([&] { return far(Do::doorbells_taken) == 0xFFFF; }));
    EXPECT_TRUE(twin::cable_connected(near));
}

} // namespace

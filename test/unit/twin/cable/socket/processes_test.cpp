// SPDX-License-Identifier: BSD-3-Clause
// A cable between processes: how ends connect, die, come back and are refused.
#include "far_host.hpp"

#include <fcntl.h>
#include <filesystem>
#include <thread>

using namespace plx;
using namespace plx::test;

namespace
{
constexpr uint32_t spad0 = virt_block + reg::spad[0];

class TwinProcesses : public BetweenProcesses
{
protected:
    int attach_near()
    {
        twin::Error error{};
        const int code = twin::attach(config, &near, &error);
        EXPECT_EQ(code != 0, error.text[0] != '\0') << "an error says what it is";
        return code;
    }
    void await_near_connected(bool connected)
    {
        ASSERT_TRUE(await([&] { return twin::cable_connected(near) == connected; }));
    }
    void join_both(FarHost &far)
    {
        ASSERT_EQ(far(Do::attach), 0);
        ASSERT_EQ(attach_near(), 0);
        await_near_connected(true);
        ASSERT_TRUE(await([&] { return far(Do::connected) == 1; }));
        ASSERT_TRUE(await([&] { return link_is_up(near); }));
        ASSERT_TRUE(await([&] {
            return field::link_width.get(static_cast<uint32_t>(
                       far(Do::csr_read, virt_block + reg::pcie_link_ctl_status))) != 0;
        }));
    }
    void open_way_to(FarHost &far)
    {
        join_both(far);
        bring_up(near);
        far(Do::bring_up);
        ASSERT_EQ(far(Do::expose, 4), 0);
    }
};

// All that an A-LUT can show, reported at once to an end that attaches.
TEST_F(TwinProcesses, ABlockForEachSegmentCrossesTheCable)
{
    FarHost far(config);
    ASSERT_EQ(attach_near(), 0);
    twin::Memory last{};
    for (int i = 0; i < 256; i++)
        ASSERT_EQ(twin::memory_add(near, mib, -1, false, &last), 0);
    ASSERT_EQ(far(Do::attach), 0);
    await_near_connected(true);
    ASSERT_TRUE(await([&] { return link_is_up(near); }));
    ASSERT_TRUE(await([&] { return far(Do::connected) == 1; }));
    ASSERT_TRUE(await([&] {
        // Again and again: the link may come up for either end only now, and resets its block.
        bring_up(near);
        open_inbound(near, 2, last.bus, mib);
        far(Do::bring_up);
        far(Do::store, 0x80, 0x66);
        return word_at(last, 0x80) == 0x66u;
    }));
}

TEST_F(TwinProcesses, StoreArrivesInTheOtherProcess)
{
    FarHost far(config);
    open_way_to(far);
    store32(near, 2, 64, 0xCAFE);
    EXPECT_EQ(far(Do::word, 64), 0xCAFE);
}

TEST_F(TwinProcesses, DoorbellsAndScratchpadsOfTheOtherProcess)
{
    FarHost far(config);
    open_way_to(far);
    const uint32_t bell = 0x10;
    EXPECT_TRUE(
        twin::window_write(near, 4, virt_block + reg::db_virt_set, &bell, sizeof(bell), write_rid));
    EXPECT_EQ(far(Do::csr_read, virt_block + reg::db_virt_set), 0x10);
    far(Do::csr_write, spad0, 0x5AD);
    uint32_t value = 0;
    EXPECT_TRUE(twin::window_read(near, 4, spad0, &value, sizeof(value), read_rid));
    EXPECT_EQ(value, 0x5ADu);
}

TEST_F(TwinProcesses, TheFarEndFollowsAClosedWindow)
{
    FarHost far(config);
    open_way_to(far);
    EXPECT_EQ(load32(near, 2, 0), 0u);
    far(Do::close);
    EXPECT_EQ(load32(near, 2, 0), ~0u);
}

TEST_F(TwinProcesses, AStoppedProcessThatGoesOnWritesNothing)
{
    FarHost far(config);
    config.remap_wait_us = 5000;
    join_both(far);
    bring_up(near);
    far(Do::bring_up);
    twin::Memory exposed{};
    ASSERT_EQ(twin::memory_add(near, 4 * mib, -1, false, &exposed), 0);
    open_inbound(near, 2, exposed.bus, 4 * mib);
    ASSERT_TRUE(await([&] { return far(Do::load, 32) == 0; }));
    ASSERT_EQ(far(Do::store, 32, 0x600D), 0);
    ASSERT_EQ(word_at(exposed, 32), 0x600Du);
    far(Do::freeze, 1);     // its mapping stays as it is
    close_inbound(near, 2); // waits in vain, for a bounded time
    far(Do::store, 32, 0xBAD);
    EXPECT_EQ(word_at(exposed, 32), 0x600Du);
    far(Do::freeze, 0);
    ASSERT_TRUE(await([&] { return far(Do::load, 32) == 0xFFFFFFFF; }));
}

TEST_F(TwinProcesses, AReallyStoppedProcessBlocksNoHost)
{
    config.remap_wait_us = 5000;
    FarHost far(config);
    join_both(far);
    bring_up(near);
    far(Do::bring_up);
    twin::Memory exposed{};
    ASSERT_EQ(twin::memory_add(near, 4 * mib, -1, false, &exposed), 0);
    far.stop();
    // Far more changes than a socket would hold messages.
    for (int i = 0; i < 100; i++) {
        open_inbound(near, 2, exposed.bus, mib);
        close_inbound(near, 2);
    }
    open_inbound(near, 2, exposed.bus, 4 * mib);
    EXPECT_TRUE(twin::cable_connected(near));
    far.go_on();
    // It works off what was reported meanwhile, and ends up where the registers are now.
    EXPECT_TRUE(await([&] {
        far(Do::store, 32, 0x1);
        return word_at(exposed, 32) == 1;
    }));
}

TEST_F(TwinProcesses, KilledAndBackWithItsRegisters)
{
    for (const bool far_listens : {true, false}) {
        FarHost far(config);
        if (!far_listens) {
            ASSERT_EQ(attach_near(), 0);
            ASSERT_EQ(far(Do::attach), 0);
            await_near_connected(true);
        } else {
            join_both(far);
        }
        ASSERT_TRUE(await([&] { return link_is_up(near); }));
        far(Do::csr_write, spad0, 0xABCD);
        twin::csr_write32(near, virt_block + reg::link_err_status, 0xF);
        far.kill_now();
        FarHost again(config); // at once: the survivor has not looked up yet
        ASSERT_EQ(again(Do::attach), 0);
        EXPECT_EQ(again(Do::csr_read, spad0), 0xABCD);
        await_near_connected(true);
        EXPECT_TRUE(link_is_up(near)) << "a chip stays powered";
        EXPECT_EQ(twin::csr_read32(near, virt_block + reg::link_err_status), 0u);
        twin::detach(near);
        near = nullptr;
    }
}

TEST_F(TwinProcesses, BackWithPowerOnValuesOrGarbage)
{
    for (const auto state : {twin::ChipState::reset, twin::ChipState::random}) {
        FarHost far(config);
        join_both(far);
        far(Do::csr_write, spad0, 0xABCD);
        twin::csr_write32(near, virt_block + reg::link_err_status, 0xF);
        far.kill_now();
        await_near_connected(false);
        FarHost again(config);
        ASSERT_EQ(again(Do::attach, static_cast<uint64_t>(state)), 0);
        const auto spad = again(Do::csr_read, spad0);
        EXPECT_EQ(spad == 0, state == twin::ChipState::reset);
        EXPECT_NE(spad, 0xABCD);
        await_near_connected(true);
        EXPECT_TRUE(
            field::err_link_change.get(twin::csr_read32(near, virt_block + reg::link_err_status)))
            << "the survivor saw it go";
        twin::detach(near);
        near = nullptr;
    }
}

TEST_F(TwinProcesses, ADetachedEndComesBackAtOnce)
{
    FarHost far(config);
    join_both(far);
    far(Do::csr_write, spad0, 0xABCD);
    for (int i = 0; i < 20; i++) {
        far(Do::detach);
        ASSERT_EQ(far(Do::attach), 0);
        ASSERT_EQ(far(Do::csr_read, spad0), 0xABCD) << i;
    }
    await_near_connected(true);
}

TEST_F(TwinProcesses, EitherEndMayGoInTurn)
{
    FarHost far(config);
    join_both(far);
    twin::csr_write32(near, spad0, 0x1111);
    far(Do::csr_write, spad0, 0x2222);
    for (int i = 0; i < 10; i++) {
        twin::detach(near);
        ASSERT_EQ(attach_near(), 0);
        ASSERT_EQ(twin::csr_read32(near, spad0), 0x1111u) << i;
        ASSERT_TRUE(await([&] { return far(Do::connected) == 1; }));
        far(Do::detach);
        ASSERT_EQ(far(Do::attach), 0);
        ASSERT_EQ(far(Do::csr_read, spad0), 0x2222) << i;
        await_near_connected(true);
        // An end that is not connected yet does not keep the other one's chip.
        ASSERT_TRUE(await([&] { return far(Do::connected) == 1; }));
    }
}

TEST_F(TwinProcesses, AKilledBorrowerLosesAccess)
{
    FarHost far(config);
    join_both(far);
    bring_up(near);
    far(Do::bring_up);
    twin::Memory exposed{};
    ASSERT_EQ(twin::memory_add(near, 4 * mib, -1, false, &exposed), 0);
    open_inbound(near, 2, exposed.bus, 4 * mib);
    far(Do::store, 32, 0x600D);
    far.kill_now();
    await_near_connected(false);
    EXPECT_EQ(word_at(exposed, 32), 0x600Du);
}

TEST_F(TwinProcesses, AWindowLedIntoADeadProcessIsAbsent)
{
    FarHost far(config);
    open_way_to(far);
    EXPECT_EQ(load32(near, 2, 0), 0u);
    far.kill_now();
    await_near_connected(false);
    EXPECT_EQ(load32(near, 2, 0), ~0u);
}

/// The connection does not close with the process: what closes it comes last in a process that is
/// taken apart, or later.
TEST_F(TwinProcesses, ADeathIsToldThoughSomebodyStillHasTheConnection)
{
    for (const bool far_listens : {true, false}) {
        FarHost far(config);
        if (!far_listens) {
            ASSERT_EQ(attach_near(), 0);
            ASSERT_EQ(far(Do::attach), 0);
            await_near_connected(true);
        } else {
            join_both(far);
        }
        const auto child = static_cast<pid_t>(far(Do::give_birth));
        ASSERT_GT(child, 0);
        far.kill_now();
        await_near_connected(false);
        EXPECT_EQ(kill(child, SIGKILL), 0) << "it had the connection until now";
        twin::detach(near);
        near = nullptr;
    }
}

TEST_F(TwinProcesses, AThirdEndIsRefused)
{
    FarHost far(config);
    join_both(far);
    FarHost third(config);
    EXPECT_EQ(third(Do::attach), -EBUSY);
    EXPECT_TRUE(twin::cable_connected(near));
    EXPECT_EQ(far(Do::connected), 1);
}

TEST_F(TwinProcesses, BothEndsInOneProcessAreRefused)
{
    ASSERT_EQ(attach_near(), 0);
    twin::Host *other = nullptr;
    twin::Error error{};
    EXPECT_EQ(twin::attach(config, &other, &error), -EINVAL);
    EXPECT_NE(strstr(error.text, "mem:"), nullptr) << error.text;
    FarHost far(config);
    EXPECT_EQ(far(Do::attach), 0);
    await_near_connected(true);
}

TEST_F(TwinProcesses, ASocketOfADeadProcessIsReplaced)
{
    {
        FarHost dead(config);
        ASSERT_EQ(dead(Do::attach), 0);
        dead.kill_now();
    }
    ASSERT_TRUE(std::filesystem::exists(path));
    ASSERT_EQ(attach_near(), 0);
    FarHost far(config);
    ASSERT_EQ(far(Do::attach), 0);
    await_near_connected(true);
}

TEST_F(TwinProcesses, TwoThatStartAtOnceConnect)
{
    for (int i = 0; i < 10; i++) {
        FarHost far(config);
        std::thread starter([&] { EXPECT_EQ(far(Do::attach), 0); });
        EXPECT_EQ(attach_near(), 0);
        starter.join();
        await_near_connected(true);
        twin::detach(near);
        near = nullptr;
    }
}

TEST_F(TwinProcesses, NothingIsLeftBehind)
{
    ASSERT_EQ(attach_near(), 0);
    twin::detach(near);
    near = nullptr;
    EXPECT_TRUE(std::filesystem::is_empty(folder));
}

// Either it says at once how many it needs, or it gets as far as the other end.
TEST_F(TwinProcesses, TooFewDescriptorsAreTold)
{
    ASSERT_EQ(attach_near(), 0);
    unsigned refused = 0;
    unsigned joined = 0;
    for (unsigned limit = 4; limit < 24; limit++) {
        SCOPED_TRACE(limit);
        FarHost far(config);
        ASSERT_EQ(far(Do::limit, limit), 0);
        const int64_t code = far(Do::attach);
        if (code != 0) {
            EXPECT_EQ(code, -EMFILE);
            refused++;
            continue;
        }
        joined++;
        ASSERT_TRUE(await([&] { return far(Do::connected) == 1; }, 20));
        EXPECT_EQ(far(Do::expose, 1), 0);
        ASSERT_EQ(far(Do::detach), 0);
        await_near_connected(false);
    }
    EXPECT_GT(refused, 0u);
    EXPECT_GT(joined, 0u);
}

TEST_F(TwinProcesses, ThatNumberIsNamed)
{
    rlimit before{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    const int next = dup(0);
    close(next);
    const rlimit few{static_cast<rlim_t>(next) + 3, before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
    twin::Error error{};
    EXPECT_EQ(twin::attach(config, &near, &error), -EMFILE);
    setrlimit(RLIMIT_NOFILE, &before);
    EXPECT_NE(strstr(error.text, "more file descriptors"), nullptr) << error.text;
    EXPECT_EQ(attach_near(), 0);
}

// Out of them while it runs: it waits until there are some again.
TEST_F(TwinProcesses, DescriptorsThatComeBackLetThePeerIn)
{
    FarHost far(config);
    ASSERT_EQ(attach_near(), 0);
    rlimit before{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    const int next = dup(0);
    close(next);
    for (const unsigned spare : {0u, 1u}) { // for the connection, for what comes over it
        SCOPED_TRACE(spare);
        const rlimit few{static_cast<rlim_t>(next) + spare, before.rlim_max};
        ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
        const int64_t code = far(Do::attach);
        setrlimit(RLIMIT_NOFILE, &before);
        ASSERT_EQ(code, 0);
        await_near_connected(true);
        ASSERT_EQ(far(Do::detach), 0);
        await_near_connected(false);
    }
}

TEST_F(TwinProcesses, WrongPathsAreNamed)
{
    twin::Host *host = nullptr;
    twin::Error error{};
    const std::string missing = folder + "/none/cable";
    config.cable = missing.c_str();
    EXPECT_EQ(twin::attach(config, &host, &error), -ENOENT);
    const std::string file = folder + "/file";
    close(creat(file.c_str(), 0600));
    config.cable = file.c_str();
    // Not -EEXIST: EAL takes that from a probe for "is probed already", which is no error to it.
    EXPECT_EQ(twin::attach(config, &host, &error), -ENOTSOCK);
    EXPECT_TRUE(std::filesystem::exists(file));
    const std::string endless(200, 'x');
    config.cable = endless.c_str();
    EXPECT_EQ(twin::attach(config, &host, &error), -ENAMETOOLONG);
    config.cable = "";
    EXPECT_EQ(twin::attach(config, &host, &error), -EINVAL);
    EXPECT_NE(error.text[0], '\0');
}

TEST_F(TwinProcesses, ComingAndGoingIsReported)
{
    std::atomic<int> came{0};
    std::atomic<int> went{0};
    struct Both {
        std::atomic<int> *came;
        std::atomic<int> *went;
    } both{&came, &went};
    ASSERT_EQ(attach_near(), 0);
    twin::on_cable(
        near,
        [](void *ctx, bool connected) {
            auto *counts = static_cast<Both *>(ctx);
            (connected ? *counts->came : *counts->went)++;
        },
        &both);
    FarHost far(config);
    ASSERT_EQ(far(Do::attach), 0);
    EXPECT_TRUE(await([&] { return came == 1; }));
    far.kill_now();
    EXPECT_TRUE(await([&] { return went == 1; }));
    twin::on_cable(near, nullptr, nullptr);
    FarHost again(config);
    ASSERT_EQ(again(Do::attach), 0);
    await_near_connected(true);
    EXPECT_EQ(came, 1);
}
} // namespace

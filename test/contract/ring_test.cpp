// SPDX-License-Identifier: BSD-3-Clause
// More than two hosts: three processes with two devices each, joined in a ring by three cables.
#include "host.hpp"

#include <gtest/gtest.h>

namespace
{

using test::Answer;
using test::Command;
using test::HostSetup;
using test::LocalHost;
using test::Op;
using test::RemoteHost;
using test::Stream;
using test::stream;
using test::traffic;

constexpr uint32_t to_next = 0;
constexpr uint32_t from_previous = 1;

class Ring : public testing::Test
{
protected:
    /// No heartbeat is missed by these, however busy the machine.
    const HostSetup setup_{.devargs = "heartbeat_ms=30000,lost_ms=60000"};

    static void good(const Answer &answer, const char *who)
    {
        EXPECT_EQ(answer.rc, 0) << who << ": " << answer.text;
    }

    void SetUp() override
    {
        const std::string cables[] = {folder_.file("1-2"), folder_.file("2-3"),
                                      folder_.file("3-1")};
        ASSERT_EQ(out_.bring_up(cables[0], setup_), 0);
        ASSERT_EQ(second_.device(from_previous).bring_up(cables[0], setup_), 0);
        ASSERT_EQ(second_.device(to_next).bring_up(cables[1], setup_), 0);
        ASSERT_EQ(third_.device(from_previous).bring_up(cables[1], setup_), 0);
        ASSERT_EQ(third_.device(to_next).bring_up(cables[2], setup_), 0);
        ASSERT_EQ(in_.bring_up(cables[2], setup_), 0);
        for (RemoteHost *host : {&second_, &third_})
            for (const uint32_t device : {to_next, from_previous})
                ASSERT_TRUE(host->device(device).await_event('C')) << host->link().why;
        ASSERT_TRUE(out_.await_event('C') && in_.await_event('C'));
    }
    static void end(test::Host &host)
    {
        host.ask(Op::release);
        host.stop();
        EXPECT_EQ(host.outstanding(), 0u);
        EXPECT_EQ(host.ask(Op::detach).rc, 0);
    }
    /// Sent by one device here, on by both other processes, received by the other device here.
    void around(const Stream &s)
    {
        Command on;
        on.op = Op::forward;
        on.value = s.count;
        second_.device(from_previous).begin(on);
        third_.device(from_previous).begin(on);
        in_.begin(traffic({}, {s}));
        out_.begin(traffic({s}, {}));
        good(out_.end(), "first, out");
        good(second_.end(), "second");
        good(third_.end(), "third");
        good(in_.end(), "first, in");
    }

    test::Folder folder_;
    LocalHost out_;
    LocalHost in_;
    RemoteHost second_;
    RemoteHost third_;
};

TEST_F(Ring, MessagesGoAroundThreeProcesses)
{
    around(stream(0, 1, 3000, {8, 60, 500, 3000}));
    around(stream(0, 2, 300, {9000, 48}));
    end(out_);
    end(in_);
    for (RemoteHost *host : {&second_, &third_})
        for (const uint32_t device : {to_next, from_previous})
            end(host->device(device));
}

TEST_F(Ring, AKilledOneIsLostOnItsTwoCablesAlone)
{
    around(stream(0, 1, 200, {8, 500}));
    third_.kill_now();
    EXPECT_TRUE(in_.await_event('L'));
    EXPECT_TRUE(second_.device(to_next).await_event('L'));
    const Stream s = stream(0, 3, 500, {8, 500});
    second_.device(from_previous).begin(traffic({}, {s}));
    out_.begin(traffic({s}, {}));
    good(out_.end(), "first, out");
    good(second_.end(), "second");
    EXPECT_EQ(out_.events(), "C");
    EXPECT_EQ(second_.events(), "C");
    end(out_);
    end(in_);
    for (const uint32_t device : {to_next, from_previous})
        end(second_.device(device));
}

} // namespace

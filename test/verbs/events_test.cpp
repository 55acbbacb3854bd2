// SPDX-License-Identifier: BSD-3-Clause
// Completion events, and how long a thread looks before it sleeps for one.
#include <thread>

#include "engine/look.hpp"
#include "hosts.hpp"

namespace
{

using namespace verbs_test;

class Events : public Hosts
{
};

TEST_F(Events, OneFollowsEachArmingAndSolicitedOnesAreTold)
{
    connect(NTBV_RC);
    for (std::uint64_t i = 0; i < 4; ++i)
        ASSERT_EQ(post_recv(qb, i), 0);
    ASSERT_EQ(ntbv_cq_arm(b.recv_cq, 1), 0);
    ASSERT_EQ(Work(NTBV_SEND, 1).post(qa), 0);
    run();
    EXPECT_TRUE(b.notifications().empty());
    ASSERT_EQ(Work(NTBV_SEND, 1, {}, NTBV_SOLICITED).post(qa), 0);
    run();
    EXPECT_EQ(b.notifications(), (std::vector<std::uint64_t>{2}));
    ASSERT_EQ(ntbv_cq_arm(b.recv_cq, 0), 0);
    ASSERT_EQ(Work(NTBV_SEND, 1).post(qa), 0);
    ASSERT_EQ(Work(NTBV_SEND, 1).post(qa), 0);
    run();
    EXPECT_EQ(b.notifications(), (std::vector<std::uint64_t>{2}));
    EXPECT_TRUE(a.notifications().empty());
    ASSERT_EQ(ntbv_cq_arm(b.recv_cq, 1), 0);
    ASSERT_EQ(post_recv(qb, 9), 0);
    ASSERT_EQ(to_state(qb, NTBV_ERR), 0);
    EXPECT_EQ(b.notifications().size(), 1u) << "errors count as solicited";
}

TEST_F(Events, AFullChannelGetsThemLater)
{
    connect(NTBV_RC);
    std::size_t told = 0;
    while (told < 9000) { // of 8 bytes; a pipe has 65536
        ASSERT_EQ(ntbv_cq_arm(a.cq, 0), 0);
        ASSERT_EQ(Work(NTBV_WRITE, 1).post(qa), 0);
        ntbv_wc wc;
        while (ntbv_cq_poll(a.cq, 1, &wc) == 0)
            ntbv_engine_drive(b.engine);
        ++told;
    }
    std::size_t got = a.notifications().size();
    EXPECT_LT(got, told);
    ntbv_engine_drive(a.engine);
    EXPECT_EQ(a.notifications().size(), 1u) << "armed again and again, but one event at a time";
}

TEST_F(Events, AnOverrunQueueSaysSoAndTakesItsQueuePairsAlong)
{
    Host small{3, clock, 2};
    const auto way = ntb::verbs::Loopback::create(1 << 16);
    ASSERT_EQ(small.attach(way->end(0), 2), 0);
    ASSERT_EQ(b.attach(way->end(1), 3), 0);
    const auto drive = [&] {
        while (ntbv_engine_drive(small.engine) + ntbv_engine_drive(b.engine) != 0) {
        }
    };
    ntbv_qp *one_qp = small.make(NTBV_RC), *other = b.make(NTBV_RC);
    ntbv_qp_attr attr = attributes();
    ASSERT_EQ(to_init(one_qp, NTBV_RC), 0);
    ASSERT_EQ(to_init(other, NTBV_RC), 0);
    ASSERT_EQ(to_rtr(one_qp, NTBV_RC, 2, ntbv_qp_number(other), attr), 0);
    ASSERT_EQ(to_rtr(other, NTBV_RC, 3, ntbv_qp_number(one_qp), attr), 0);
    ASSERT_EQ(to_rts(one_qp, NTBV_RC), 0);
    for (std::uint64_t i = 0; i < 3; ++i)
        ASSERT_EQ(Work(NTBV_WRITE, i).post(one_qp), 0);
    drive();
    EXPECT_EQ(state_of(one_qp), NTBV_ERR);
    EXPECT_EQ(small.events(), (std::vector<std::uint32_t>{NTBV_EVENT_CQ_ERR}));
    ntbv_wc wc[4];
    EXPECT_EQ(ntbv_cq_poll(small.cq, 4, wc), 2);
    EXPECT_EQ(ntbv_cq_poll(small.cq, 4, wc), -EIO);
    small.drop(one_qp);
    b.drop(other);
}

// Who polls is left alone for a millisecond. Who waits for what is written to its memory, and polls
// only for its own requests in between, is looked for.
TEST_F(Events, WhoWaitsForItsMemoryIsNotTakenForOneThatPolls)
{
    connect(NTBV_RC);
    ntb::verbs::Engine &engine = *b.engine;
    const auto is_polled = [&] {
        ntbv_wc wc;
        for (int i = 0; i < 1000; ++i)
            EXPECT_EQ(ntbv_cq_poll(b.recv_cq, 1, &wc), 0);
        return !engine.begin_look();
    };
    const auto nap = [&] {
        std::uint64_t nanoseconds = 0;
        EXPECT_EQ(engine.rest(nanoseconds), ntb::verbs::Engine::Rest::Nap);
        engine.rise();
        return nanoseconds;
    };
    Memory ma(a.pd, 64), mb(b.pd, 64);
    const auto is_written_to_and_writes = [&] {
        ASSERT_EQ(Work(NTBV_WRITE, 1, ma.all()).to(mb).post(qa), 0);
        ASSERT_EQ(Work(NTBV_WRITE, 2, mb.all()).to(ma).post(qb), 0);
        run();
    };
    std::uint64_t calls = 0;
    is_written_to_and_writes();
    EXPECT_FALSE(engine.may_be_away(calls)) << "it has not taken its completion";
    EXPECT_EQ(one(b.cq).id, 2u);
    EXPECT_TRUE(engine.may_be_away(calls));
    EXPECT_TRUE(engine.may_be_away(calls)) << "it has made no call in between";
    EXPECT_FALSE(is_polled());
    EXPECT_FALSE(engine.may_be_away(calls)) << "it has polled in vain";
    for (int i = 0; i < 15; ++i)
        EXPECT_FALSE(is_polled());
    EXPECT_TRUE(is_polled()) << "it was not away for 16 times";
    EXPECT_EQ(nap(), 1000000u);

    is_written_to_and_writes();
    EXPECT_EQ(one(b.cq).id, 2u);
    EXPECT_TRUE(engine.may_be_away(calls));
    is_written_to_and_writes();
    EXPECT_EQ(one(b.cq).id, 2u);
    EXPECT_TRUE(engine.may_be_away(calls)) << "it has made calls in between";
    EXPECT_TRUE(is_polled());
}

// ---- looks before a sleep

std::uint64_t look_clock;

class Looks : public Hosts
{
protected:
    Looks() { look_clock = 1000; }
    void SetUp() override
    {
        ASSERT_NO_FATAL_FAILURE(Hosts::SetUp());
        connect(NTBV_RC);
        run();
    }
    void poll(int times)
    {
        ntbv_wc wc;
        for (int i = 0; i < times; ++i)
            EXPECT_EQ(ntbv_cq_poll(b.recv_cq, 1, &wc), 0);
    }
    bool may_look() { return b.engine->begin_look(); }
    /// @param now_and_then  what happens meanwhile: whether the service is called
    template <typename NowAndThen>
    bool look(NowAndThen now_and_then)
    {
        ntb::Spin spin(spinning, spin_time);
        return ntb::verbs::look(*b.engine, spinning, spin, now_and_then);
    }
    bool is_over() const { return look_clock >= 1000 + 20000; }

    std::atomic<std::uint32_t> spinners = 0;
    ntb::Spinning spinning = {200,   2,  &spinners, [] { return look_clock += 100; },
                              [] {}, 16, false};
    ntb::SpinTime spin_time;
    Memory ma{a.pd, 64}, mb{b.pd, 64};
};

TEST_F(Looks, EndByWorkOrWithTheirWindow)
{
    ma.count_up();
    EXPECT_TRUE(look([&] {
        EXPECT_EQ(Work(NTBV_WRITE, 1, ma.all()).to(mb).post(qa), 0);
        return false;
    }));
    EXPECT_EQ(ma.bytes, mb.bytes) << "it was served";
    EXPECT_FALSE(is_over());
    run();
    EXPECT_FALSE(look([] { return false; }));
    EXPECT_TRUE(is_over());
    EXPECT_EQ(spinners, 0u);
}

TEST_F(Looks, EndWhenTheServiceIsCalled)
{
    EXPECT_FALSE(look([] { return true; }));
    EXPECT_FALSE(is_over());
}

TEST_F(Looks, AreNotForWhoPolls)
{
    EXPECT_TRUE(may_look());
    poll(64);
    EXPECT_TRUE(may_look()) << "now and then";
    poll(65);
    EXPECT_FALSE(may_look());
    std::uint64_t nanoseconds;
    EXPECT_EQ(b.engine->rest(nanoseconds), ntb::verbs::Engine::Rest::Nap);
    b.engine->rise();
    EXPECT_TRUE(may_look()) << "it has not polled since";
    EXPECT_FALSE(look([&] {
        poll(65);
        return false;
    })) << "it has begun to poll meanwhile";
    EXPECT_FALSE(is_over());
    EXPECT_FALSE(may_look());
    ASSERT_EQ(ntbv_cq_arm(b.recv_cq, 0), 0);
    EXPECT_TRUE(may_look()) << "it is going to sleep";
}

TEST_F(Looks, AreNoMoreThanThereAreProcessors)
{
    spinners = 2;
    ASSERT_EQ(Work(NTBV_WRITE, 1, ma.all()).to(mb).post(qa), 0);
    EXPECT_FALSE(look([] { return false; })) << "nor does one drive that may not";
    EXPECT_EQ(spinners, 2u);
}

// Arm, poll again, sleep: no completion is slept through.
TEST_F(Events, ArmAndPollAgainSleepsThroughNothing)
{
    const char *rounds = getenv("NTBV_RACES");
    const std::uint64_t messages = rounds ? strtoull(rounds, nullptr, 10) : 20000;
    connect(NTBV_RC);
    for (std::uint64_t i = 0; i < 64; ++i)
        ASSERT_EQ(post_recv(qb, i), 0);
    std::atomic<bool> done{false};
    std::thread sender([&] {
        std::uint64_t sent = 0, completed = 0;
        ntbv_wc wc[16];
        while (completed < messages) {
            while (sent < messages && sent - completed < 32)
                sent += Work(NTBV_SEND, sent).post(qa) == 0;
            const int n = ntbv_cq_poll(a.cq, 16, wc);
            for (int i = 0; i < n; ++i)
                completed += wc[i].status == NTBV_SUCCESS;
        }
        done = true;
    });
    // Who serves the sleeper.
    std::thread server([&] {
        while (!done)
            ntbv_engine_drive(b.engine);
    });
    std::uint64_t received = 0;
    const auto poll_all = [&] {
        ntbv_wc wc[16];
        int any = 0;
        for (int n; (n = ntbv_cq_poll(b.recv_cq, 16, wc)) > 0; any = 1)
            for (int i = 0; i < n; ++i, ++received)
                EXPECT_EQ(post_recv(qb, 0), 0);
        return any;
    };
    while (received < messages) {
        ASSERT_EQ(ntbv_cq_arm(b.recv_cq, 0), 0);
        if (poll_all() != 0)
            continue;
        std::uint64_t cookie;
        ASSERT_EQ(read(ntbv_channel_descriptor(b.channel), &cookie, sizeof(cookie)), 8);
    }
    sender.join();
    server.join();
}

} // namespace

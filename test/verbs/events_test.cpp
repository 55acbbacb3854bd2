// SPDX-License-Identifier: BSD-3-Clause
// States, completion events, shared receive queues, datagrams, the end of objects and of the peer.
#include <thread>
#include <utility>

#include "engine/look.hpp"
#include "hosts.hpp"

namespace
{

using namespace verbs_test;

class States : public Hosts
{
};
class Events : public Hosts
{
};
class SharedReceives : public Hosts
{
};
class Datagrams : public Hosts
{
};
class Ends : public Hosts
{
};

// ---- states

TEST_F(States, PostsAreTakenOnlyWhereTheyMay)
{
    qa = a.make(NTBV_RC);
    EXPECT_EQ(post_recv(qa, 1), -EINVAL) << "RESET";
    EXPECT_EQ(Work(NTBV_SEND, 1).post(qa), -EINVAL);
    ASSERT_EQ(to_init(qa, NTBV_RC), 0);
    EXPECT_EQ(post_recv(qa, 1), 0);
    EXPECT_EQ(Work(NTBV_SEND, 1).post(qa), -EINVAL);
    ASSERT_EQ(to_rtr(qa, NTBV_RC, 2, 5), 0);
    EXPECT_EQ(Work(NTBV_SEND, 1).post(qa), -EINVAL);
    ASSERT_EQ(to_rts(qa, NTBV_RC), 0);
    ASSERT_EQ(to_state(qa, NTBV_ERR), 0);
    EXPECT_EQ(post_recv(qa, 2), 0);
    EXPECT_EQ(Work(NTBV_SEND, 3, {}, 0).post(qa), 0);
    expect(a.recv_cq, {{1, NTBV_WR_FLUSH_ERR}, {2, NTBV_WR_FLUSH_ERR}});
    expect(a.cq, {{3, NTBV_WR_FLUSH_ERR}});
}

TEST_F(States, AModifyThatFailsChangesNothing)
{
    qa = a.make(NTBV_RC);
    ntbv_qp_attr attr = attributes();
    attr.port = 2;
    EXPECT_EQ(to_init(qa, NTBV_RC, attr), -EINVAL);
    EXPECT_EQ(state_of(qa), NTBV_RESET);
    ASSERT_EQ(to_init(qa, NTBV_RC), 0);
    EXPECT_EQ(to_rts(qa, NTBV_RC), -EINVAL);
    attr = attributes();
    attr.state = NTBV_RTR;
    attr.dest_lid = 2;
    EXPECT_EQ(ntbv_qp_modify(qa, &attr, rc_rtr_mask & ~static_cast<unsigned>(NTBV_QP_AV)), -EINVAL);
    attr.cur_state = NTBV_RTS;
    attr.state = NTBV_INIT;
    EXPECT_EQ(ntbv_qp_modify(qa, &attr, NTBV_QP_STATE | NTBV_QP_CUR_STATE), -EINVAL);
    EXPECT_EQ(state_of(qa), NTBV_INIT);
}

TEST_F(States, QueryGivesBackWhatWasSet)
{
    connect(NTBV_RC);
    ntbv_qp_attr attr;
    ASSERT_EQ(ntbv_qp_query(qa, &attr), 0);
    EXPECT_EQ(attr.state, NTBV_RTS);
    EXPECT_EQ(attr.cur_state, NTBV_RTS);
    EXPECT_EQ(attr.dest_qpn, ntbv_qp_number(qb));
    EXPECT_EQ(attr.dest_lid, 2);
    EXPECT_EQ(attr.sq_psn, 0xfffffeu);
    EXPECT_EQ(attr.rq_psn, 77u);
    EXPECT_EQ(attr.timeout, 14);
    EXPECT_EQ(attr.max_rd_atomic, 16);
}

TEST_F(States, AResetQueuePairStartsAnew)
{
    connect(NTBV_RC);
    ASSERT_EQ(post_recv(qb, 1), 0);
    ASSERT_EQ(post_recv(qb, 2), 0);
    ASSERT_EQ(Work(NTBV_SEND, 1).post(qa), 0);
    run();
    ASSERT_EQ(to_state(qa, NTBV_RESET), 0);
    ASSERT_EQ(to_state(qb, NTBV_RESET), 0);
    EXPECT_TRUE(take(a.cq).empty()) << "not polled before the reset";
    EXPECT_TRUE(take(b.recv_cq).empty()) << "and nothing is flushed";
    connect(qa, qb, NTBV_RC);
    ASSERT_EQ(post_recv(qb, 3), 0);
    ASSERT_EQ(Work(NTBV_SEND, 4).post(qa), 0);
    expect(a.cq, {{4, NTBV_SUCCESS}});
    expect(b.recv_cq, {{3, NTBV_SUCCESS}});
}

TEST_F(States, SqdFinishesWhatHasBegunAndSaysSo)
{
    connect(NTBV_RC);
    loopback->hold(1, true);
    ASSERT_EQ(post_recv(qb, 1), 0);
    ASSERT_EQ(post_recv(qb, 2), 0);
    run();
    ASSERT_EQ(Work(NTBV_SEND, 1).post(qa), 0);
    run();
    ntbv_qp_attr attr = {};
    attr.state = NTBV_SQD;
    attr.sqd_notify = 1;
    loopback->hold(1, false);
    run();
    ASSERT_EQ(Work(NTBV_WRITE, 2).post(qa), 0);
    ASSERT_EQ(ntbv_qp_modify(qa, &attr, NTBV_QP_STATE | NTBV_QP_SQD_NOTIFY), 0);
    ASSERT_EQ(Work(NTBV_SEND, 3).post(qa), 0);
    run();
    expect(a.cq, {{1, NTBV_SUCCESS}, {2, NTBV_SUCCESS}});
    EXPECT_EQ(a.events(), (std::vector<std::uint32_t>{NTBV_EVENT_SQ_DRAINED}));
    ASSERT_EQ(to_state(qa, NTBV_RTS), 0);
    expect(a.cq, {{3, NTBV_SUCCESS}});
}

TEST_F(States, WhatIsNotThereIsRefused)
{
    ntbv_qp_init init = {};
    ntbv_qp *qp;
    init.type = static_cast<ntbv_qp_type>(1);
    EXPECT_EQ(ntbv_qp_create(a.pd, &init, &qp), -EOPNOTSUPP);
    init.type = NTBV_RC;
    EXPECT_EQ(ntbv_qp_create(a.pd, &init, &qp), -EINVAL) << "no completion queues";
    init.send_cq = a.cq;
    init.recv_cq = b.cq;
    EXPECT_EQ(ntbv_qp_create(a.pd, &init, &qp), -EINVAL) << "another engine's";
    init.recv_cq = a.cq;
    init.max_send_wr = NTBV_MAX_WR + 1;
    EXPECT_EQ(ntbv_qp_create(a.pd, &init, &qp), -EINVAL);
    init.max_send_wr = 0;
    init.max_inline = NTBV_MAX_INLINE + 1;
    EXPECT_EQ(ntbv_qp_create(a.pd, &init, &qp), -EINVAL);
    init.max_inline = 0;
    init.max_send_sge = 2;
    ASSERT_EQ(ntbv_qp_create(a.pd, &init, &qp), 0);
    EXPECT_EQ(init.max_inline, 32u) << "what there is room for";
    EXPECT_EQ(ntbv_qp_destroy(qp), 0);
    ntbv_cq *cq;
    EXPECT_EQ(ntbv_cq_create(a.engine, 0, nullptr, 0, &cq), -EINVAL);
    EXPECT_EQ(ntbv_cq_create(a.engine, NTBV_MAX_CQE + 1, nullptr, 0, &cq), -EINVAL);
    EXPECT_EQ(ntbv_cq_create(a.engine, 1, b.channel, 0, &cq), -EINVAL);
    EXPECT_EQ(ntbv_engine_create(0, 0, nullptr, nullptr), nullptr);
    EXPECT_EQ(errno, EINVAL);
    errno = 0;
    EXPECT_EQ(ntbv_engine_create(1, 1024, nullptr, nullptr), nullptr);
    EXPECT_EQ(errno, EINVAL);
}

// ---- completion events

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
        ntb::Spin spin(spinning, window);
        return ntb::verbs::look(*b.engine, spinning, spin, now_and_then);
    }
    bool is_over() const { return look_clock >= 1000 + 20000; }

    std::atomic<std::uint32_t> spinners = 0;
    ntb::Spinning spinning = {200,   2,  &spinners, [] { return look_clock += 100; },
                              [] {}, 16, false};
    ntb::Window window;
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

// ---- shared receive queues

TEST_F(SharedReceives, ServeManyQueuePairsInOrderAndTellTheLimitOnce)
{
    ntbv_srq *srq;
    ASSERT_EQ(ntbv_srq_create(b.pd, 16, 1, 0, 500, &srq), 0);
    ntbv_qp *ours[3], *theirs[3];
    for (int i = 0; i < 3; ++i) {
        ours[i] = a.make(NTBV_RC);
        theirs[i] = b.make(NTBV_RC, srq);
        connect(ours[i], theirs[i], NTBV_RC);
    }
    EXPECT_EQ(post_recv(theirs[0], 1), -EINVAL);
    for (std::uint64_t i = 0; i < 6; ++i)
        ASSERT_EQ(post_srq(srq, i), 0);
    ASSERT_EQ(ntbv_srq_modify(srq, NTBV_SRQ_LIMIT, 5), 0);
    EXPECT_EQ(ntbv_srq_modify(srq, NTBV_SRQ_LIMIT, 17), -EINVAL);
    EXPECT_EQ(ntbv_srq_modify(srq, NTBV_SRQ_MAX_WR, 5), -EINVAL);
    EXPECT_EQ(ntbv_srq_destroy(srq), -EBUSY);
    for (std::uint64_t i = 0; i < 6; ++i) {
        ASSERT_EQ(Work(NTBV_SEND, i).post(ours[i % 3]), 0);
        const ntbv_wc got = one(b.recv_cq);
        EXPECT_EQ(got.id, i);
        EXPECT_EQ(got.qpn, ntbv_qp_number(theirs[i % 3]));
        EXPECT_EQ(b.events().size(), i == 1 ? 1u : 0u) << "below five, once";
    }
    // Those without a receive are served in the order in which they came.
    for (std::uint64_t i = 0; i < 3; ++i)
        ASSERT_EQ(Work(NTBV_SEND, 10 + i).post(ours[i]), 0);
    run();
    take(a.cq);
    for (std::uint64_t i = 0; i < 3; ++i) {
        ASSERT_EQ(post_srq(srq, 20 + i), 0);
        EXPECT_EQ(one(b.recv_cq).qpn, ntbv_qp_number(theirs[i]));
    }
    // Receives are not flushed.
    ASSERT_EQ(post_srq(srq, 30), 0);
    ASSERT_EQ(to_state(theirs[0], NTBV_ERR), 0);
    EXPECT_EQ(b.events(), (std::vector<std::uint32_t>{NTBV_EVENT_LAST_WQE_REACHED}));
    EXPECT_TRUE(take(b.recv_cq).empty());
    ASSERT_EQ(Work(NTBV_SEND, 5).post(ours[1]), 0);
    EXPECT_EQ(one(b.recv_cq).id, 30u);
    for (ntbv_qp *qp : theirs)
        b.drop(qp);
    EXPECT_EQ(ntbv_srq_destroy(srq), 0);
}

// ---- datagrams

class DatagramPair : public Datagrams
{
protected:
    void SetUp() override
    {
        Hosts::SetUp();
        qa = ready(a);
        qb = ready(b);
        run();
    }
    static ntbv_qp *ready(Host &host)
    {
        ntbv_qp *qp = host.make(NTBV_UD);
        EXPECT_EQ(to_init(qp, NTBV_UD), 0);
        EXPECT_EQ(to_rtr(qp, NTBV_UD, 0, 0), 0);
        EXPECT_EQ(to_rts(qp, NTBV_UD), 0);
        return qp;
    }
    Work to_b(std::uint64_t id, ntbv_sge piece, std::uint32_t qkey = 0x1234)
    {
        Work work(NTBV_SEND_IMM, id, piece);
        work.wr.remote_lid = 2;
        work.wr.remote_qpn = ntbv_qp_number(qb);
        work.wr.remote_qkey = qkey;
        work.wr.imm = 3;
        return work;
    }
    Memory ma{a.pd, 5000}, mb{b.pd, 5000};
};

TEST_F(DatagramPair, ArriveBehind40BytesWithTheirSource)
{
    ma.count_up();
    for (const std::size_t bytes : {0ul, 1ul, 4096ul}) {
        ASSERT_EQ(post_recv(qb, 4, mb.all()), 0);
        ASSERT_EQ(to_b(1, ma.piece(0, bytes)).post(qa), 0);
        const ntbv_wc got = one(b.recv_cq);
        EXPECT_EQ(got.bytes, bytes + 40);
        EXPECT_EQ(got.imm, 3u);
        EXPECT_EQ(got.source_qpn, ntbv_qp_number(qa));
        EXPECT_EQ(got.source_lid, 1);
        EXPECT_TRUE(std::equal(ma.bytes.begin(), ma.bytes.begin() + static_cast<long>(bytes),
                               mb.bytes.begin() + 40));
        expect(a.cq, {{1, NTBV_SUCCESS}});
    }
    EXPECT_EQ(to_b(1, ma.piece(0, 4097)).post(qa), -EINVAL);
    EXPECT_EQ(Work(NTBV_WRITE, 1).post(qa), -EINVAL);
}

TEST_F(DatagramPair, WhatCannotBeReceivedIsLost)
{
    ASSERT_EQ(to_b(1, ma.piece(0, 8)).post(qa), 0); // no receive
    run();
    ASSERT_EQ(post_recv(qb, 1, mb.piece(0, 47)), 0);
    ASSERT_EQ(to_b(2, ma.piece(0, 8)).post(qa), 0);         // too long
    ASSERT_EQ(to_b(3, ma.piece(0, 7), 0x1235).post(qa), 0); // wrong queue key
    Work nobody = to_b(4, ma.piece(0, 7));
    nobody.wr.remote_qpn ^= 0x4000;
    ASSERT_EQ(nobody.post(qa), 0);
    nobody = to_b(5, ma.piece(0, 7));
    nobody.wr.remote_lid = 9;
    ASSERT_EQ(nobody.post(qa), 0);
    EXPECT_TRUE(take(b.recv_cq).empty());
    ASSERT_EQ(to_b(6, ma.piece(0, 7), 0x80000000).post(qa), 0); // the queue pair's own key
    EXPECT_EQ(one(b.recv_cq).bytes, 47u);
    const std::vector<ntbv_wc> sent = take(a.cq);
    EXPECT_EQ(sent.size(), 6u);
    for (const ntbv_wc &wc : sent)
        EXPECT_EQ(wc.status, NTBV_SUCCESS);
}

TEST_F(DatagramPair, ABadLocalKeyStopsTheSendQueueAlone)
{
    ntbv_sge bad = ma.piece(0, 8);
    bad.key ^= 0x10000;
    ASSERT_EQ(post_recv(qa, 1), 0);
    ASSERT_EQ(to_b(1, bad).post(qa), 0);
    ASSERT_EQ(to_b(2, ma.piece(0, 8)).post(qa), 0);
    expect(a.cq, {{1, NTBV_LOC_PROT_ERR}, {2, NTBV_WR_FLUSH_ERR}});
    EXPECT_EQ(state_of(qa), NTBV_SQE);
    EXPECT_TRUE(take(a.recv_cq).empty());
    ASSERT_EQ(to_state(qa, NTBV_RTS), 0);
    ASSERT_EQ(post_recv(qb, 1, mb.all()), 0);
    ASSERT_EQ(to_b(3, ma.piece(0, 8)).post(qa), 0);
    EXPECT_EQ(one(b.recv_cq).status, NTBV_SUCCESS);
}

TEST_F(DatagramPair, WhatIsPostedInSqdGoesBehindIt)
{
    ASSERT_EQ(post_recv(qb, 1, mb.all()), 0);
    ASSERT_EQ(to_state(qa, NTBV_SQD), 0);
    ASSERT_EQ(to_b(2, ma.piece(0, 8)).post(qa), 0);
    EXPECT_TRUE(take(a.cq).empty());
    ASSERT_EQ(to_state(qa, NTBV_RTS), 0);
    expect(a.cq, {{2, NTBV_SUCCESS}});
    expect(b.recv_cq, {{1, NTBV_SUCCESS}});
}

TEST_F(DatagramPair, AFullPortDelaysThem)
{
    for (std::uint64_t i = 0; i < 100; ++i)
        ASSERT_EQ(post_recv(qb, i, mb.piece(0, 48)), 0);
    loopback->set_full(0, true);
    for (std::uint64_t i = 0; i < 100; ++i)
        ASSERT_EQ(to_b(i, ma.piece(0, 8)).post(qa), 0);
    EXPECT_TRUE(take(a.cq).empty());
    loopback->set_full(0, false);
    EXPECT_EQ(take(a.cq).size(), 100u);
    EXPECT_EQ(take(b.recv_cq).size(), 100u);
}

// To a peer that is not up yet they are sent as they would be into a cable: the first ones are kept
// for it, and hold back nothing for others.
TEST_F(DatagramPair, ThatComeEarlyAreKeptAndComplete)
{
    const std::unique_ptr<ntb::verbs::Loopback> way = ntb::verbs::Loopback::create(1 << 16);
    ASSERT_EQ(a.attach(way->end(0), 3), 0);
    Host late(3, clock);
    ntbv_qp *qp = ready(late);
    Memory received(late.pd, 100 * 48);
    for (std::uint64_t i = 0; i < 100; ++i)
        ASSERT_EQ(post_recv(qp, i, received.piece(48 * i, 48)), 0);
    ASSERT_EQ(post_recv(qb, 1, mb.all()), 0);
    const auto send = [&](std::uint8_t number) {
        ma.bytes[0] = number;
        Work work = to_b(number, ma.piece(0, 8), 0x80000000);
        work.wr.remote_lid = 3;
        work.wr.remote_qpn = ntbv_qp_number(qp);
        EXPECT_EQ(work.post(qa), 0);
    };
    send(0);
    ASSERT_EQ(to_b(200, ma.piece(0, 8)).post(qa), 0);
    ntbv_wc done[100];
    EXPECT_EQ(ntbv_cq_poll(a.cq, 100, done), 2);
    EXPECT_EQ(one(b.recv_cq).id, 1u);
    for (std::uint8_t i = 1; i < 100; ++i)
        send(i);
    const std::size_t kept = take(a.cq).size();
    EXPECT_GE(kept, 32u);
    EXPECT_LT(kept, 99u) << "not without end";
    ASSERT_EQ(late.attach(way->end(1), 1), 0);
    std::size_t completed = kept;
    for (int i = 0; i < 10; ++i) {
        completed += take(a.cq).size();
        ntbv_engine_drive(late.engine);
    }
    EXPECT_EQ(completed, 99u);
    EXPECT_EQ(ntbv_cq_poll(late.recv_cq, 100, done), 100);
    for (std::uint64_t i = 0; i < 100; ++i) {
        EXPECT_EQ(done[i].id, i);
        EXPECT_EQ(received.bytes[48 * i + 40], i < 64 ? i : 99);
    }
}

TEST_F(DatagramPair, ThatComeEarlyAreLostWithTheirPeer)
{
    for (int round = 0; round < 3; ++round) {
        lost.push_back(ntb::verbs::Loopback::create(1 << 16));
        ASSERT_EQ(a.attach(lost.back()->end(0), 3), 0);
        Work work = to_b(1, ma.piece(0, 8));
        work.wr.remote_lid = 3;
        for (int i = 0; i < 40; ++i)
            ASSERT_EQ(work.post(qa), 0);
        EXPECT_EQ(take(a.cq).size(), 40u);
        lost.back()->kill();
        run();
    }
}

// ---- ends

TEST_F(Ends, NobodyIsThereUntilTheTriesAreOver)
{
    ntbv_qp_attr attr = attributes();
    attr.retry_cnt = 2;
    qa = a.make(NTBV_RC);
    ASSERT_EQ(to_init(qa, NTBV_RC), 0);
    ASSERT_EQ(to_rtr(qa, NTBV_RC, 2, 0x123), 0);
    ASSERT_EQ(to_rts(qa, NTBV_RC, attr), 0);
    for (std::uint64_t i = 0; i < 100; ++i)
        ASSERT_EQ(Work(NTBV_SEND, i, {}, 0).post(qa), 0);
    for (int i = 0; i < 2; ++i) {
        EXPECT_TRUE(take(a.cq).empty());
        clock.advance_us(67000);
        EXPECT_TRUE(take(a.cq).empty());
        clock.advance_us(200);
    }
    const std::vector<ntbv_wc> all = take(a.cq);
    ASSERT_EQ(all.size(), 100u);
    EXPECT_EQ(all[0].status, NTBV_RETRY_EXC_ERR);
    for (std::uint64_t i = 1; i < 100; ++i) {
        EXPECT_EQ(all[i].id, i);
        EXPECT_EQ(all[i].status, NTBV_WR_FLUSH_ERR);
    }
}

TEST_F(Ends, ThePeerMayBecomeReadyLater)
{
    qa = a.make(NTBV_RC);
    qb = b.make(NTBV_RC);
    Memory from(a.pd, 30000), to(b.pd, 30000);
    from.count_up();
    ASSERT_EQ(to_init(qa, NTBV_RC), 0);
    ASSERT_EQ(to_init(qb, NTBV_RC), 0);
    ASSERT_EQ(post_recv(qb, 1, to.all()), 0);
    ASSERT_EQ(to_rtr(qa, NTBV_RC, 2, ntbv_qp_number(qb)), 0);
    ASSERT_EQ(to_rts(qa, NTBV_RC), 0);
    loopback->set_full(0, true);
    ASSERT_EQ(Work(NTBV_SEND, 1, from.all()).post(qa), 0);
    loopback->set_full(0, false);
    ntbv_engine_drive(b.engine);
    ntbv_engine_drive(a.engine); // hello and some of the pieces
    ntbv_engine_drive(b.engine);
    ntbv_engine_drive(a.engine);
    // In the middle of the message.
    ASSERT_EQ(to_rtr(qb, NTBV_RC, 1, ntbv_qp_number(qa)), 0);
    EXPECT_TRUE(take(a.cq).empty() && take(b.recv_cq).empty());
    clock.advance_us(70000);
    EXPECT_EQ(one(b.recv_cq).bytes, 30000u);
    EXPECT_EQ(one(a.cq).status, NTBV_SUCCESS);
    EXPECT_EQ(to.bytes, from.bytes);
}

TEST_F(Ends, OtherNumbersThanThePeersNeverDeliver)
{
    ntbv_qp_attr attr = attributes();
    attr.retry_cnt = 0;
    for (const std::uint32_t psn : {5u, 7u}) {
        ntbv_qp *one_qp = a.make(NTBV_RC), *other = b.make(NTBV_RC);
        attr.sq_psn = psn;
        ntbv_qp_attr of_other = attributes();
        of_other.rq_psn = 6;
        ASSERT_EQ(to_init(one_qp, NTBV_RC), 0);
        ASSERT_EQ(to_init(other, NTBV_RC), 0);
        ASSERT_EQ(to_rtr(one_qp, NTBV_RC, 2, ntbv_qp_number(other)), 0);
        ASSERT_EQ(to_rtr(other, NTBV_RC, 1, ntbv_qp_number(one_qp), of_other), 0);
        ASSERT_EQ(to_rts(one_qp, NTBV_RC, attr), 0);
        ASSERT_EQ(post_recv(other, 1), 0);
        ASSERT_EQ(Work(NTBV_SEND, 1).post(one_qp), 0);
        ASSERT_EQ(Work(NTBV_READ, 2).post(one_qp), 0);
        const std::vector<ntbv_wc> all = take(a.cq);
        ASSERT_EQ(all.size(), 2u) << psn;
        EXPECT_EQ(all[0].status, NTBV_RETRY_EXC_ERR);
        EXPECT_EQ(all[1].status, NTBV_WR_FLUSH_ERR);
        EXPECT_TRUE(take(b.recv_cq).empty());
    }
}

TEST_F(Ends, ALostPeerEndsWhatIsUnderWayInOrder)
{
    connect(NTBV_RC);
    Memory from(a.pd, 20000), to(b.pd, 20000);
    run();
    loopback->hold(0, true);
    constexpr ntbv_opcode opcodes[] = {NTBV_SEND, NTBV_WRITE, NTBV_READ};
    for (std::uint64_t i = 0; i < 64; ++i)
        ASSERT_EQ(Work(opcodes[i % 3], i, from.all(), 0).to(to).post(qa), 0);
    ASSERT_EQ(post_recv(qa, 900), 0);
    run();
    loopback->kill();
    EXPECT_TRUE(take(a.cq).empty());
    clock.outlast_silence();
    const std::vector<ntbv_wc> all = take(a.cq);
    ASSERT_EQ(all.size(), 64u);
    for (std::uint64_t i = 0; i < 64; ++i) {
        EXPECT_EQ(all[i].id, i);
        EXPECT_EQ(all[i].status, i == 0 ? NTBV_RETRY_EXC_ERR : NTBV_WR_FLUSH_ERR);
    }
    expect(a.recv_cq, {{900, NTBV_WR_FLUSH_ERR}});
    // One that had nothing under way learns of it when it asks.
    ASSERT_EQ(Work(NTBV_SEND, 5).post(qb), 0);
    EXPECT_TRUE(take(b.cq).empty());
    clock.outlast_silence();
    expect(b.cq, {{5, NTBV_RETRY_EXC_ERR}});
}

// A program that ends owes nothing to one that has what it waited for, as ibv_srq_pingpong has.
TEST_F(Ends, ALostPeerIsAsLongInDoubtAsOneThatDoesNotAnswer)
{
    struct {
        std::uint8_t timeout, retry_cnt;
        std::uint64_t microseconds;
    } const cases[] = {
        {14, 7, 536870}, {14, 0, 67108}, {0, 1, 134217}, {1, 7, 65}, {31, 7, 1000000}};
    for (const auto &[timeout, retry_cnt, microseconds] : cases) {
        ntbv_qp_attr attr = attributes();
        attr.timeout = timeout;
        attr.retry_cnt = retry_cnt;
        qa = a.make(NTBV_RC);
        qb = b.make(NTBV_RC);
        connect(qa, qb, NTBV_RC, attr, attr);
        ASSERT_EQ(post_recv(qa, 1), 0);
        ASSERT_EQ(Work(NTBV_SEND, 2).post(qb), 0);
        run();
        loopback->hold(0, true);
        ASSERT_EQ(Work(NTBV_SEND, 3).post(qa), 0);
        loopback->kill();
        run();
        expect(a.recv_cq, {{1, NTBV_SUCCESS}});
        clock.advance_us(microseconds - 1);
        EXPECT_TRUE(take(a.cq).empty()) << unsigned{timeout};
        // What is posted meanwhile does not begin the silence anew.
        ASSERT_EQ(Work(NTBV_SEND, 4).post(qa), 0);
        clock.advance_us(2);
        expect(a.cq, {{3, NTBV_RETRY_EXC_ERR}, {4, NTBV_WR_FLUSH_ERR}});
        a.drop(qa);
        b.drop(qb);
        ASSERT_NO_FATAL_FAILURE(join_again());
    }
}

TEST_F(Ends, DestroyedWhileUnderWay)
{
    for (int stop = 0; stop < 40; ++stop) {
        ntbv_qp_attr attr = attributes();
        attr.retry_cnt = 1;
        ntbv_qp *one_qp = a.make(NTBV_RC), *other = b.make(NTBV_RC);
        connect(one_qp, other, NTBV_RC, attr, attr);
        Memory from(a.pd, 60000), to(b.pd, 60000);
        for (std::uint64_t i = 0; i < 10; ++i) {
            ASSERT_EQ(post_recv(other, i, to.all()), 0);
            ASSERT_EQ(Work(i % 2 ? NTBV_READ : NTBV_SEND, i, from.all()).to(to).post(one_qp), 0);
        }
        for (int i = 0; i < stop; ++i)
            ntbv_engine_drive(i % 2 ? a.engine : b.engine);
        const bool requester = stop % 2 != 0;
        if (requester)
            a.drop(one_qp);
        else
            b.drop(other);
        if (requester) {
            EXPECT_TRUE(take(a.cq).empty());
            take(b.recv_cq);
            b.drop(other);
            continue;
        }
        run();
        clock.advance_us(100000);
        const std::vector<ntbv_wc> all = take(a.cq);
        ASSERT_EQ(all.size(), 10u) << stop;
        bool failed = false;
        for (std::uint64_t i = 0; i < 10; ++i) {
            EXPECT_EQ(all[i].id, i);
            if (failed)
                EXPECT_EQ(all[i].status, NTBV_WR_FLUSH_ERR);
            else if (all[i].status != NTBV_SUCCESS) {
                EXPECT_EQ(all[i].status, NTBV_RETRY_EXC_ERR);
                failed = true;
            }
        }
        a.drop(one_qp);
    }
}

TEST_F(Ends, WhatIsInUseStays)
{
    connect(NTBV_RC);
    Memory memory(a.pd, 8);
    EXPECT_EQ(ntbv_pd_destroy(a.pd), -EBUSY);
    EXPECT_EQ(ntbv_cq_destroy(a.cq), -EBUSY);
    EXPECT_EQ(ntbv_channel_destroy(a.channel), -EBUSY);
    EXPECT_EQ(ntbv_engine_destroy(a.engine), -EBUSY);
}

TEST_F(Ends, AnEngineIsJoinedToItself)
{
    const auto own = ntb::verbs::Loopback::create(1 << 16);
    ASSERT_EQ(a.attach(own->end(0), 1), 0);
    ASSERT_EQ(a.attach(own->end(1), 1), 0);
    ntbv_qp *one_qp = a.make(NTBV_RC), *other = a.make(NTBV_RC);
    Memory from(a.pd, 50000), to(a.pd, 50000);
    from.count_up();
    for (ntbv_qp *qp : {one_qp, other}) {
        ASSERT_EQ(to_init(qp, NTBV_RC), 0);
        ASSERT_EQ(to_rtr(qp, NTBV_RC, 1, ntbv_qp_number(qp == one_qp ? other : one_qp)), 0);
        ASSERT_EQ(to_rts(qp, NTBV_RC), 0);
    }
    ASSERT_EQ(post_recv(other, 1, to.all()), 0);
    ASSERT_EQ(Work(NTBV_SEND, 2, from.all()).post(one_qp), 0);
    EXPECT_EQ(one(a.recv_cq).bytes, 50000u);
    expect(a.cq, {{2, NTBV_SUCCESS}});
    EXPECT_EQ(to.bytes, from.bytes);
    a.drop(one_qp);
    a.drop(other);
}

TEST_F(Ends, AReceiveForALostPeerHoldsNoRequestBack)
{
    connect(NTBV_RC);
    ntbv_qp *other_a = a.make(NTBV_RC), *other_b = b.make(NTBV_RC);
    connect(other_a, other_b, NTBV_RC);
    ASSERT_EQ(Work(NTBV_SEND, 1).post(qa), 0);
    run(); // it was told to wait for a receive
    loopback->kill();
    run();
    ASSERT_EQ(post_recv(qb, 2), 0);
    ASSERT_EQ(Work(NTBV_SEND, 3).post(qb), 0);
    ASSERT_EQ(Work(NTBV_SEND, 4).post(other_b), 0);
    EXPECT_TRUE(take(b.cq).empty());
    clock.outlast_silence();
    expect(b.cq, {{3, NTBV_RETRY_EXC_ERR}, {4, NTBV_RETRY_EXC_ERR}});
}

TEST_F(Ends, WhatIsPostedInSqdToALostPeerFails)
{
    connect(NTBV_RC);
    run();
    ASSERT_EQ(to_state(qa, NTBV_SQD), 0);
    loopback->kill();
    run();
    ASSERT_EQ(Work(NTBV_SEND, 1).post(qa), 0);
    ASSERT_EQ(to_state(qa, NTBV_RTS), 0);
    clock.outlast_silence();
    expect(a.cq, {{1, NTBV_RETRY_EXC_ERR}});
}

TEST_F(Ends, ANewConnectionWorksWhenThePeerComesBack)
{
    connect(NTBV_RC);
    run();
    loopback->hold(0, true);
    ASSERT_EQ(Work(NTBV_SEND, 1).post(qa), 0);
    loopback->kill();
    run();
    clock.outlast_silence();
    expect(a.cq, {{1, NTBV_RETRY_EXC_ERR}});
    ASSERT_NO_FATAL_FAILURE(join_again());
    ASSERT_EQ(to_state(qa, NTBV_RESET), 0);
    ASSERT_EQ(to_state(qb, NTBV_RESET), 0);
    connect(qa, qb, NTBV_RC);
    ASSERT_EQ(post_recv(qb, 2), 0);
    ASSERT_EQ(Work(NTBV_SEND, 3).post(qa), 0);
    expect(a.cq, {{3, NTBV_SUCCESS}});
    expect(b.recv_cq, {{2, NTBV_SUCCESS}});
}

TEST_F(Ends, TwoWaysToOneAddressAreRefused)
{
    const auto other = ntb::verbs::Loopback::create(1 << 16);
    EXPECT_EQ(a.attach(other->end(0), 2), -EEXIST);
    EXPECT_EQ(a.attach(other->end(0), 0), -EINVAL);
    EXPECT_EQ(a.attach(other->end(0), 0xc000), -EINVAL);
}

} // namespace

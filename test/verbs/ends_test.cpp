// SPDX-License-Identifier: BSD-3-Clause
// The end of objects and of the peer.
#include "hosts.hpp"

namespace
{

using namespace verbs_test;

class Ends : public Hosts
{
};

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

// Stopped, or without a CPU: it is not gone, however long its peer's tries would last.
TEST_F(Ends, APeerThatDoesNotRunIsWaitedFor)
{
    connect(NTBV_RC);
    run();
    Memory from(a.pd, 8), to(b.pd, 8);
    ASSERT_EQ(post_recv(qb, 1), 0);
    constexpr ntbv_opcode opcodes[] = {NTBV_SEND, NTBV_WRITE, NTBV_READ};
    for (std::uint64_t i = 0; i < 3; ++i)
        ASSERT_EQ(Work(opcodes[i], i, i == 0 ? ntbv_sge{} : from.all()).to(to).post(qa), 0);
    for (int hours = 0; hours < 3; ++hours) {
        ntbv_wc wc;
        for (int i = 0; i < 300; ++i)
            ASSERT_EQ(ntbv_cq_poll(a.cq, 1, &wc), 0);
        ntbv_engine_drive(a.engine);
        clock.advance_us(3600000000);
    }
    expect(a.cq, {{0, NTBV_SUCCESS}, {1, NTBV_SUCCESS}, {2, NTBV_SUCCESS}});
    EXPECT_EQ(one(b.recv_cq).status, NTBV_SUCCESS);
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

// As many as are to be had, and one more once one of them is gone.
template <typename T, typename Make>
std::size_t fill_up(std::size_t most, Make make, int (*destroy)(T *))
{
    std::vector<T *> all;
    int error = 0;
    for (T *one; all.size() <= most && (error = make(&one)) == 0;)
        all.push_back(one);
    EXPECT_EQ(error, -ENOMEM);
    EXPECT_EQ(destroy(all.back()), 0);
    EXPECT_EQ(make(&all.back()), 0);
    for (T *one : all)
        EXPECT_EQ(destroy(one), 0);
    return all.size();
}

TEST_F(Ends, ThereAreAsManyObjectsAsThereAreSaidToBe)
{
    const auto make_pd = [&](ntbv_pd **pd) { return ntbv_pd_create(a.engine, pd); };
    EXPECT_EQ(fill_up<ntbv_pd>(NTBV_MAX_PD, make_pd, ntbv_pd_destroy) + 1, NTBV_MAX_PD);
    const auto make_cq = [&](ntbv_cq **cq) { return ntbv_cq_create(a.engine, 1, nullptr, 0, cq); };
    EXPECT_EQ(fill_up<ntbv_cq>(NTBV_MAX_CQ, make_cq, ntbv_cq_destroy) + 2, NTBV_MAX_CQ);
    const auto make_srq = [&](ntbv_srq **srq) { return ntbv_srq_create(a.pd, 1, 1, 0, 0, srq); };
    EXPECT_EQ(fill_up<ntbv_srq>(NTBV_MAX_SRQ, make_srq, ntbv_srq_destroy), NTBV_MAX_SRQ);
}

TEST_F(Ends, AnEngineIsJoinedToItself)
{
    const auto own = ntb::verbs::Loopback::create(1 << 16);
    ASSERT_EQ(a.attach(own->end(0), 1), 0);
    ASSERT_EQ(a.attach(own->end(1), 1), 0);
    ntbv_qp *one_qp = a.make(NTBV_RC), *other = a.make(NTBV_RC);
    Memory from(a.pd, 50000), to(a.pd, 50000);
    from.count_up();
    to_peer(one_qp, NTBV_RC, 1, ntbv_qp_number(other));
    to_peer(other, NTBV_RC, 1, ntbv_qp_number(one_qp));
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
    run(); // it was to wait for a receive
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

// As the guide says: one more is a peer that does not answer.
TEST_F(Ends, APeerBeyondTheMostIsNotReachedUntilAnotherHasGone)
{
    std::vector<std::unique_ptr<ntb::verbs::Loopback>> others;
    for (std::uint16_t lid = 3; lid < 3 + NTBV_MAX_LINKS - 1; ++lid) {
        others.push_back(ntb::verbs::Loopback::create(1 << 12));
        ASSERT_EQ(a.attach(others.back()->end(0), lid), 0) << lid;
    }
    constexpr std::uint16_t beyond = 3 + NTBV_MAX_LINKS;
    const auto one_more = ntb::verbs::Loopback::create(1 << 12);
    EXPECT_EQ(a.attach(one_more->end(0), beyond), -ENOSPC);
    qa = a.make(NTBV_RC);
    ntbv_qp_attr attr = attributes();
    attr.retry_cnt = 0;
    ASSERT_EQ(to_init(qa, NTBV_RC), 0);
    ASSERT_EQ(to_rtr(qa, NTBV_RC, beyond, 0x123), 0);
    ASSERT_EQ(to_rts(qa, NTBV_RC, attr), 0);
    ASSERT_EQ(Work(NTBV_SEND, 1, {}, 0).post(qa), 0);
    EXPECT_TRUE(take(a.cq).empty());
    clock.outlast_silence();
    expect(a.cq, {{1, NTBV_RETRY_EXC_ERR}});
    others.front()->kill();
    run();
    EXPECT_EQ(a.attach(one_more->end(0), beyond), 0);
}

TEST_F(Ends, TwoWaysToOneAddressAreRefused)
{
    const auto other = ntb::verbs::Loopback::create(1 << 16);
    EXPECT_EQ(a.attach(other->end(0), 2), -EEXIST);
    EXPECT_EQ(a.attach(other->end(0), 0), -EINVAL);
    EXPECT_EQ(a.attach(other->end(0), 0xc000), -EINVAL);
}

} // namespace

// SPDX-License-Identifier: BSD-3-Clause
// Shared receive queues and datagrams.
#include "hosts.hpp"

namespace
{

using namespace verbs_test;

class SharedReceives : public Hosts
{
};
class Datagrams : public Hosts
{
};

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

// A list that is longer than a turn, whose next one goes to nobody where the turn ends.
TEST_F(DatagramPair, ALongListGoesOnBehindWhoIsNotThere)
{
    constexpr std::size_t n = 48, turn = 16;
    constexpr std::uint16_t was_there = 3, never_was = 9;
    const std::unique_ptr<ntb::verbs::Loopback> way = ntb::verbs::Loopback::create(1 << 16);
    ASSERT_EQ(a.attach(way->end(0), was_there), 0);
    way->kill();
    run();
    for (const std::uint16_t nobody : {never_was, was_there}) {
        std::vector<Work> works;
        for (std::uint64_t i = 0; i < n; ++i) {
            works.push_back(to_b(i, ma.piece(0, 8)));
            if (i % turn == 0 && i != 0)
                works.back().wr.remote_lid = nobody;
            else
                ASSERT_EQ(post_recv(qb, i, mb.piece(0, 48)), 0);
        }
        for (std::size_t i = 0; i < n; ++i) {
            works[i].wr.sge = &works[i].sge;
            works[i].wr.next = i + 1 < n ? &works[i + 1].wr : nullptr;
        }
        const ntbv_send_wr *bad = nullptr;
        ASSERT_EQ(ntbv_qp_post_send(qa, &works[0].wr, &bad), 0);
        EXPECT_EQ(take(a.cq).size(), n);
        EXPECT_EQ(take(b.recv_cq).size(), n - 2);
    }
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

} // namespace

// SPDX-License-Identifier: BSD-3-Clause
// SEND on connected queue pairs: completions, order, receives that are not there.
#include <numeric>

#include "hosts.hpp"

namespace
{

using namespace verbs_test;

class Send : public Hosts
{
};

TEST_F(Send, ArrivesInThePostedReceiveAndCompletesAtBothEnds)
{
    connect(NTBV_RC);
    Memory from(a.pd, 1000), to(b.pd, 2000);
    from.count_up();
    ASSERT_EQ(post_recv(qb, 5, to.all()), 0);
    ASSERT_EQ(Work(NTBV_SEND_IMM, 9, from.all()).imm(0xdeadbeef).post(qa), 0);
    const ntbv_wc got = one(b.recv_cq);
    EXPECT_EQ(got.id, 5u);
    EXPECT_EQ(got.status, NTBV_SUCCESS);
    EXPECT_EQ(got.opcode, NTBV_WC_RECV);
    EXPECT_EQ(got.bytes, 1000u);
    EXPECT_EQ(got.imm, 0xdeadbeef);
    EXPECT_EQ(got.flags, NTBV_WC_WITH_IMM);
    EXPECT_EQ(got.qpn, ntbv_qp_number(qb));
    EXPECT_TRUE(std::equal(from.bytes.begin(), from.bytes.end(), to.bytes.begin()));
    EXPECT_EQ(to.bytes[1000], 0);
    const ntbv_wc sent = one(a.cq);
    EXPECT_EQ(sent.id, 9u);
    EXPECT_EQ(sent.status, NTBV_SUCCESS);
    EXPECT_EQ(sent.opcode, NTBV_WC_SEND);
    EXPECT_EQ(sent.qpn, ntbv_qp_number(qa));
}

// Completion means: the responder has accepted it.
TEST_F(Send, IsNotCompleteBeforeTheResponderHasAcceptedIt)
{
    connect(NTBV_RC);
    run();
    ASSERT_EQ(post_recv(qb, 1), 0);
    loopback->hold(0, true);
    ASSERT_EQ(Work(NTBV_SEND, 1).post(qa), 0);
    EXPECT_TRUE(take(a.cq).empty());
    loopback->hold(1, true);
    loopback->hold(0, false);
    EXPECT_EQ(one(b.recv_cq).status, NTBV_SUCCESS);
    EXPECT_TRUE(take(a.cq).empty()) << "the acknowledgement is under way";
    loopback->hold(1, false);
    EXPECT_EQ(one(a.cq).status, NTBV_SUCCESS);
}

TEST_F(Send, EverySizeAndManyPieces)
{
    connect(NTBV_RC);
    Memory from(a.pd, 100000), to(b.pd, 100000);
    from.count_up();
    for (const std::size_t bytes : {0ul, 1ul, 63ul, 64ul, 8127ul, 8128ul, 8129ul, 100000ul}) {
        std::fill(to.bytes.begin(), to.bytes.end(), 0);
        ntbv_sge out[16], in[16];
        std::size_t at = 0, into = 0;
        for (std::size_t i = 0; i < 16; ++i) {
            const std::size_t part = i == 15 ? bytes - at : bytes * i / 200;
            out[i] = from.piece(at, part);
            at += part;
            const std::size_t room = i == 15 ? bytes - into : bytes * (15 - i) / 150;
            in[i] = to.piece(into, room);
            into += room;
        }
        const ntbv_recv_wr receive = {bytes, nullptr, in, 16};
        const ntbv_recv_wr *bad_receive;
        ASSERT_EQ(ntbv_qp_post_recv(qb, &receive, &bad_receive), 0);
        Work work(NTBV_SEND, bytes);
        work.wr.n_sge = 16;
        work.wr.sge = out;
        const ntbv_send_wr *bad;
        ASSERT_EQ(ntbv_qp_post_send(qa, &work.wr, &bad), 0);
        const ntbv_wc got = one(b.recv_cq);
        EXPECT_EQ(got.status, NTBV_SUCCESS);
        EXPECT_EQ(got.bytes, bytes);
        EXPECT_TRUE(std::equal(from.bytes.begin(), from.bytes.begin() + static_cast<long>(bytes),
                               to.bytes.begin()));
        EXPECT_EQ(one(a.cq).status, NTBV_SUCCESS);
    }
}

TEST_F(Send, InlineDataAreTakenByThePostAndNeedNoKey)
{
    connect(NTBV_RC);
    Memory to(b.pd, 256);
    std::uint8_t data[256];
    std::iota(data, data + 256, std::uint8_t{0});
    ASSERT_EQ(post_recv(qb, 1, to.all()), 0);
    loopback->set_full(0, true);
    ASSERT_EQ(Work(NTBV_SEND, 1, {reinterpret_cast<std::uint64_t>(data), 256, 0},
                   NTBV_SIGNALED | NTBV_INLINE)
                  .post(qa),
              0);
    std::fill(data, data + 256, std::uint8_t{0xff});
    loopback->set_full(0, false);
    EXPECT_EQ(one(b.recv_cq).bytes, 256u);
    for (std::size_t i = 0; i < 256; ++i)
        EXPECT_EQ(to.bytes[i], i);
    EXPECT_EQ(
        Work(NTBV_SEND, 1, {reinterpret_cast<std::uint64_t>(data), 257, 0}, NTBV_INLINE).post(qa),
        -EINVAL);
}

TEST_F(Send, UnsignaledStreamsRetireByThemselves)
{
    connect(NTBV_RC);
    for (std::uint64_t i = 0; i < 1000; ++i) {
        ASSERT_EQ(post_recv(qb, i), 0);
        ASSERT_EQ(Work(NTBV_SEND, i, {}, i % 100 == 99 ? unsigned{NTBV_SIGNALED} : 0u).post(qa), 0);
        if (i % 100 == 99) {
            EXPECT_EQ(one(a.cq).id, i);
            EXPECT_EQ(take(b.recv_cq).size(), 100u);
        }
    }
}

TEST_F(Send, QueuesHoldWhatTheyWereMadeForAndSayWhenTheyAreFull)
{
    qa = a.make(NTBV_RC, nullptr, 5);
    qb = b.make(NTBV_RC, nullptr, 5);
    connect(qa, qb, NTBV_RC);
    loopback->set_full(0, true);
    for (std::uint64_t i = 0; i < 5; ++i) {
        ASSERT_EQ(Work(NTBV_SEND, i).post(qa), 0);
        ASSERT_EQ(post_recv(qb, i), 0);
    }
    EXPECT_EQ(Work(NTBV_SEND, 5).post(qa), -ENOMEM);
    EXPECT_EQ(post_recv(qb, 5), -ENOMEM);
    loopback->set_full(0, false);
    EXPECT_EQ(take(a.cq).size(), 5u);
    EXPECT_EQ(Work(NTBV_SEND, 5).post(qa), 0);
}

// A program that hangs up when its peer has: the peer's answers have come before.
TEST_F(Send, WhatHasBeenAnsweredIsNotFlushed)
{
    connect(NTBV_RC);
    run();
    ASSERT_EQ(post_recv(qb, 1), 0);
    ASSERT_EQ(Work(NTBV_SEND, 7).post(qa), 0);
    ASSERT_EQ(Work(NTBV_SEND, 8).post(qa), 0);
    while (ntbv_engine_drive(b.engine) != 0) {
    }
    ASSERT_EQ(to_state(qa, NTBV_ERR), 0);
    expect(a.cq, {{7, NTBV_SUCCESS}, {8, NTBV_WR_FLUSH_ERR}});
}

TEST_F(Send, AListIsTakenUpToTheFirstBadOne)
{
    connect(NTBV_RC);
    ntbv_send_wr wr[3] = {};
    for (int i = 0; i < 3; ++i)
        wr[i] = {.id = static_cast<std::uint64_t>(i),
                 .next = i < 2 ? &wr[i + 1] : nullptr,
                 .opcode = NTBV_SEND,
                 .flags = NTBV_SIGNALED};
    wr[1].opcode = 10;
    const ntbv_send_wr *bad = nullptr;
    EXPECT_EQ(ntbv_qp_post_send(qa, wr, &bad), -EOPNOTSUPP);
    EXPECT_EQ(bad, &wr[1]);
    ASSERT_EQ(post_recv(qb, 1), 0);
    EXPECT_EQ(one(a.cq).id, 0u);
}

// RNR: nothing is posted. The requester tries again by its timer, or at once when asked to.
TEST_F(Send, AListThatIsPostedAsAWholeIsTakenOrLeft)
{
    connect(NTBV_RC);
    Memory from(a.pd, 64), to(b.pd, 64);
    std::vector<Work> list(3, Work(NTBV_SEND, 1, from.all()));
    for (std::size_t i = 0; i < list.size(); ++i) {
        list[i].wr.id = i;
        list[i].wr.sge = &list[i].sge;
        list[i].wr.next = i == 2 ? nullptr : &list[i + 1].wr;
    }
    list[2].wr.n_sge = 17;
    EXPECT_EQ(ntbv_qp_post_send_all(qa, &list[0].wr), -EINVAL);
    list[2].wr.n_sge = 1;
    list[2].wr.opcode = 99;
    EXPECT_EQ(ntbv_qp_post_send_all(qa, &list[0].wr), -EOPNOTSUPP);
    list[2].wr.opcode = NTBV_SEND;
    EXPECT_TRUE(take(a.cq).empty());
    for (std::uint64_t id = 10; id < 13; ++id)
        ASSERT_EQ(post_recv(qb, id, to.all()), 0);
    EXPECT_TRUE(take(b.recv_cq).empty());
    EXPECT_EQ(ntbv_qp_post_send_all(qa, &list[0].wr), 0);
    expect(a.cq, {{0, NTBV_SUCCESS}, {1, NTBV_SUCCESS}, {2, NTBV_SUCCESS}});
    // The queue has room for as many as before.
    for (std::uint64_t id = 0; id < 127; ++id)
        ASSERT_EQ(Work(NTBV_SEND, id).post(qa), 0);
    EXPECT_EQ(ntbv_qp_post_send_all(qa, &list[1].wr), -ENOMEM);
    EXPECT_EQ(Work(NTBV_SEND, 127).post(qa), 0);
}

TEST_F(Send, WaitsForAReceiveForEverIfAskedTo)
{
    connect(NTBV_RC);
    Memory to(b.pd, 8);
    ASSERT_EQ(Work(NTBV_SEND, 1).post(qa), 0);
    ASSERT_EQ(Work(NTBV_SEND, 2).post(qa), 0);
    for (int i = 0; i < 100; ++i) {
        EXPECT_TRUE(take(a.cq).empty());
        clock.advance_us(1000);
    }
    ASSERT_EQ(post_recv(qb, 1, to.all()), 0);
    EXPECT_EQ(one(b.recv_cq).id, 1u);
    expect(a.cq, {{1, NTBV_SUCCESS}});
    ASSERT_EQ(post_recv(qb, 2, to.all()), 0);
    expect(a.cq, {{2, NTBV_SUCCESS}});
}

TEST_F(Send, RnrRetriesAreCountedByTimers)
{
    ntbv_qp_attr attr = attributes();
    attr.rnr_retry = 3;
    connect(NTBV_RC, attr);
    ASSERT_EQ(post_recv(qa, 50), 0);
    ASSERT_EQ(Work(NTBV_SEND, 1).post(qa), 0);
    ASSERT_EQ(Work(NTBV_SEND, 2, {}, 0).post(qa), 0);
    for (int i = 0; i < 3; ++i) {
        EXPECT_TRUE(take(a.cq).empty());
        clock.advance_us(639);
        EXPECT_TRUE(take(a.cq).empty()) << "the timer has 640 us";
        EXPECT_EQ(state_of(qa), NTBV_RTS);
        clock.advance_us(1);
    }
    expect(a.cq, {{1, NTBV_RNR_RETRY_EXC_ERR}, {2, NTBV_WR_FLUSH_ERR}});
    expect(a.recv_cq, {{50, NTBV_WR_FLUSH_ERR}});
    EXPECT_EQ(state_of(qa), NTBV_ERR);
    EXPECT_EQ(state_of(qb), NTBV_RTS) << "the responder is all right";
}

TEST_F(Send, AcceptedRequestsStartTheCountAnew)
{
    ntbv_qp_attr attr = attributes();
    attr.rnr_retry = 1;
    connect(NTBV_RC, attr);
    for (std::uint64_t i = 0; i < 10; ++i) {
        ASSERT_EQ(Work(NTBV_SEND, i).post(qa), 0);
        EXPECT_TRUE(take(a.cq).empty());
        ASSERT_EQ(post_recv(qb, i), 0);
        expect(a.cq, {{i, NTBV_SUCCESS}});
    }
}

// What was sent behind a request that had to wait is executed once and in order.
TEST_F(Send, OrderIsKeptWhenRequestsHaveToWait)
{
    connect(NTBV_RC);
    Memory from(a.pd, 40000), to(b.pd, 40000), target(b.pd, 8);
    from.count_up();
    std::uint64_t received = 0;
    for (std::uint64_t i = 0; i < 60; ++i)
        ASSERT_EQ(Work(NTBV_SEND_IMM, i, from.piece(0, i % 3 == 0 ? 20000 : i))
                      .imm(static_cast<std::uint32_t>(i))
                      .post(qa),
                  0);
    for (int turn = 0; received < 60; ++turn) {
        ASSERT_LT(turn, 1000);
        if (turn % 5 == 0)
            clock.advance_us(700);
        ASSERT_EQ(post_recv(qb, 0, to.all()), 0);
        ntbv_engine_drive(turn % 2 ? a.engine : b.engine);
        ntbv_wc wc;
        while (ntbv_cq_poll(b.recv_cq, 1, &wc) == 1) {
            ASSERT_EQ(wc.status, NTBV_SUCCESS);
            ASSERT_EQ(wc.imm, received);
            ASSERT_EQ(wc.bytes, received % 3 == 0 ? 20000 : received);
            ++received;
        }
    }
    std::uint64_t completed = 0;
    for (const ntbv_wc &wc : take(a.cq)) {
        EXPECT_EQ(wc.id, completed++);
        EXPECT_EQ(wc.status, NTBV_SUCCESS);
    }
    EXPECT_EQ(completed, 60u);
}

TEST_F(Send, BothDirectionsAtOnceThroughPortsThatAreFull)
{
    connect(NTBV_RC);
    Memory ma(a.pd, 50000), mb(b.pd, 50000), ia(a.pd, 50000), ib(b.pd, 50000);
    ma.count_up();
    mb.count_up();
    for (std::uint64_t i = 0; i < 100; ++i) {
        ASSERT_EQ(post_recv(qa, i, ia.all()), 0);
        ASSERT_EQ(post_recv(qb, i, ib.all()), 0);
        ASSERT_EQ(Work(NTBV_SEND, i, ma.all()).post(qa), 0);
        ASSERT_EQ(Work(NTBV_SEND, i, mb.all()).post(qb), 0);
    }
    EXPECT_EQ(take(a.cq).size(), 100u);
    EXPECT_EQ(take(b.cq).size(), 100u);
    EXPECT_EQ(take(a.recv_cq).size(), 100u);
    EXPECT_EQ(take(b.recv_cq).size(), 100u);
    EXPECT_EQ(ia.bytes, mb.bytes);
    EXPECT_EQ(ib.bytes, ma.bytes);
}

// Also what would fit into one message.
TEST_F(Send, LongDataAreDividedAsThePortWouldHaveIt)
{
    connect(NTBV_RC);
    Memory from(a.pd, 60000), to(b.pd, 60000);
    from.count_up();
    for (const std::uint32_t most : {4096u, 4097u, 5000u, 8191u}) {
        loopback->divide(most);
        for (const std::size_t bytes : {4096ul, 4097ul, 8000ul, 60000ul}) {
            SCOPED_TRACE(testing::Message() << bytes << " bytes, messages of " << most);
            const auto half = static_cast<std::ptrdiff_t>(bytes / 2);
            const auto end = static_cast<std::ptrdiff_t>(bytes);
            std::fill(to.bytes.begin(), to.bytes.end(), 0);
            ASSERT_EQ(post_recv(qb, 1, to.piece(0, bytes)), 0);
            ASSERT_EQ(Work(NTBV_SEND, 1, from.piece(0, bytes)).post(qa), 0);
            EXPECT_EQ(one(b.recv_cq).bytes, bytes);
            expect(a.cq, {{1, NTBV_SUCCESS}});
            EXPECT_TRUE(std::equal(from.bytes.begin(), from.bytes.begin() + end, to.bytes.begin()));
            // Halves that change places, there and back.
            const std::size_t first = bytes / 2, second = bytes - first;
            Work(NTBV_WRITE, 2, from.piece(first, second)).to(to, 0).post(qa);
            Work(NTBV_WRITE, 3, from.piece(0, first)).to(to, second).post(qa);
            expect(a.cq, {{2, NTBV_SUCCESS}, {3, NTBV_SUCCESS}});
            EXPECT_TRUE(
                std::equal(from.bytes.begin() + half, from.bytes.begin() + end, to.bytes.begin()));
            Memory back(a.pd, bytes);
            Work(NTBV_READ, 4, back.all()).to(to, 0).post(qa);
            expect(a.cq, {{4, NTBV_SUCCESS}});
            EXPECT_TRUE(std::equal(back.bytes.begin(), back.bytes.end(), to.bytes.begin()));
        }
    }
}

// As one that goes in one message: of a request that cannot go whole nothing does.
TEST_F(Send, ABadPieceBehindOthersSendsNothingOfThem)
{
    connect(NTBV_RC);
    Memory from(a.pd, 8000), to(b.pd, 8000);
    from.count_up();
    ASSERT_EQ(post_recv(qb, 1, to.all()), 0);
    loopback->divide(5000);
    ntbv_sge pieces[2] = {from.piece(0, 7000), from.piece(7000, 1000)};
    pieces[1].key ^= 0x10000;
    Work work(NTBV_SEND, 7);
    work.wr.sge = pieces;
    work.wr.n_sge = 2;
    const ntbv_send_wr *bad;
    ASSERT_EQ(ntbv_qp_post_send(qa, &work.wr, &bad), 0);
    expect(a.cq, {{7, NTBV_LOC_PROT_ERR}});
    EXPECT_TRUE(take(b.recv_cq).empty());
    EXPECT_EQ(std::count(to.bytes.begin(), to.bytes.end(), 0), 8000);
}

TEST_F(Send, AReceiveThatIsTooShortIsAnErrorAtBothEnds)
{
    connect(NTBV_RC);
    Memory from(a.pd, 100), to(b.pd, 100);
    ASSERT_EQ(post_recv(qb, 1, to.piece(0, 99)), 0);
    ASSERT_EQ(post_recv(qb, 2, to.all()), 0);
    ASSERT_EQ(Work(NTBV_SEND, 7, from.all()).post(qa), 0);
    ASSERT_EQ(Work(NTBV_SEND, 8, from.all()).post(qa), 0);
    expect(b.recv_cq, {{1, NTBV_LOC_LEN_ERR}, {2, NTBV_WR_FLUSH_ERR}});
    expect(a.cq, {{7, NTBV_REM_INV_REQ_ERR}, {8, NTBV_WR_FLUSH_ERR}});
    EXPECT_EQ(state_of(qa), NTBV_ERR);
    EXPECT_EQ(state_of(qb), NTBV_ERR);
}

TEST_F(Send, ALocalKeyThatIsBadFailsBehindWhatWasBeforeIt)
{
    connect(NTBV_RC);
    Memory from(a.pd, 100), to(b.pd, 100);
    ASSERT_EQ(post_recv(qb, 1, to.all()), 0);
    ntbv_sge bad = from.all();
    bad.key ^= 0x10000;
    loopback->set_full(0, true);
    ASSERT_EQ(Work(NTBV_SEND, 1, from.all()).post(qa), 0);
    ASSERT_EQ(Work(NTBV_SEND, 2, bad).post(qa), 0);
    ASSERT_EQ(Work(NTBV_SEND, 3, from.all(), 0).post(qa), 0);
    loopback->set_full(0, false);
    expect(a.cq, {{1, NTBV_SUCCESS}, {2, NTBV_LOC_PROT_ERR}, {3, NTBV_WR_FLUSH_ERR}});
    expect(b.recv_cq, {{1, NTBV_SUCCESS}});
}

TEST_F(Send, AReceiveWithABadKeyIsAnErrorAtBothEnds)
{
    connect(NTBV_RC);
    Memory from(a.pd, 100), to(b.pd, 100, NTBV_REMOTE_READ);
    ASSERT_EQ(post_recv(qb, 1, to.all()), 0);
    ASSERT_EQ(Work(NTBV_SEND, 7, from.all()).post(qa), 0);
    expect(b.recv_cq, {{1, NTBV_LOC_PROT_ERR}});
    expect(a.cq, {{7, NTBV_REM_OP_ERR}});
}

TEST_F(Send, UcCompletesWhenSentAndLosesWhatNobodyReceives)
{
    connect(NTBV_UC);
    Memory from(a.pd, 20000), to(b.pd, 20000);
    from.count_up();
    ASSERT_EQ(Work(NTBV_SEND, 1, from.all()).post(qa), 0);
    expect(a.cq, {{1, NTBV_SUCCESS}});
    EXPECT_TRUE(take(b.recv_cq).empty());
    ASSERT_EQ(post_recv(qb, 5, to.all()), 0);
    EXPECT_TRUE(take(b.recv_cq).empty());
    ASSERT_EQ(Work(NTBV_SEND_IMM, 2, from.all()).imm(4).post(qa), 0);
    const ntbv_wc got = one(b.recv_cq);
    EXPECT_EQ(got.id, 5u);
    EXPECT_EQ(got.bytes, 20000u);
    EXPECT_EQ(got.imm, 4u);
    EXPECT_EQ(to.bytes, from.bytes);
    EXPECT_EQ(Work(NTBV_READ, 3).post(qa), -EINVAL);
    EXPECT_EQ(Work(NTBV_FETCH_ADD, 3).post(qa), -EINVAL);
}

} // namespace

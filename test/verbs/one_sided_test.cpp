// SPDX-License-Identifier: BSD-3-Clause
// WRITE, READ and atomics: what they do, their order, and what they may not do.
#include <numeric>

#include "hosts.hpp"

namespace
{

using namespace verbs_test;

class OneSided : public Hosts
{
protected:
    void SetUp() override
    {
        Hosts::SetUp();
        connect(NTBV_RC);
    }
    /// The queue pair's request and what the responder's program learns.
    void expect_refused(Work work, ntbv_status status, std::vector<std::uint32_t> events)
    {
        ASSERT_EQ(work.post(qa), 0);
        ASSERT_EQ(Work(NTBV_SEND, 99).post(qa), 0);
        expect(a.cq, {{work.wr.id, status}, {99, NTBV_WR_FLUSH_ERR}});
        EXPECT_EQ(b.events(), events);
        EXPECT_EQ(state_of(qa), NTBV_ERR);
        EXPECT_EQ(state_of(qb), NTBV_ERR);
    }
    Memory ma{a.pd, 100000}, mb{b.pd, 100000};
};

TEST_F(OneSided, AWriteIsPlacedAndTheProgramIsNotTold)
{
    ma.count_up();
    for (const std::size_t bytes : {1ul, 7ul, 8ul, 12ul, 64ul, 65ul, 8128ul, 8129ul, 90001ul}) {
        std::fill(mb.bytes.begin(), mb.bytes.end(), std::uint8_t{0xcc});
        ASSERT_EQ(Work(NTBV_WRITE, bytes, ma.piece(3, bytes)).to(mb, 5).post(qa), 0);
        EXPECT_EQ(one(a.cq).opcode, NTBV_WC_WRITE);
        EXPECT_TRUE(std::equal(ma.bytes.begin() + 3,
                               ma.bytes.begin() + 3 + static_cast<long>(bytes),
                               mb.bytes.begin() + 5));
        EXPECT_EQ(mb.bytes[4], 0xcc);
        EXPECT_EQ(mb.bytes[5 + bytes], 0xcc);
    }
    EXPECT_TRUE(take(b.recv_cq).empty());
}

TEST_F(OneSided, WriteWithImmediateDataConsumesAReceive)
{
    ma.count_up();
    ASSERT_EQ(Work(NTBV_WRITE_IMM, 1, ma.all()).to(mb).imm(7).post(qa), 0);
    EXPECT_TRUE(take(a.cq).empty()) << "no receive";
    ASSERT_EQ(post_recv(qb, 3), 0);
    const ntbv_wc got = one(b.recv_cq);
    EXPECT_EQ(got.id, 3u);
    EXPECT_EQ(got.opcode, NTBV_WC_RECV_WRITE_IMM);
    EXPECT_EQ(got.bytes, 100000u);
    EXPECT_EQ(got.imm, 7u);
    EXPECT_EQ(got.flags, NTBV_WC_WITH_IMM);
    EXPECT_EQ(mb.bytes, ma.bytes);
    EXPECT_EQ(one(a.cq).status, NTBV_SUCCESS);
}

TEST_F(OneSided, AReadIsCompleteWhenItsDataAreHere)
{
    mb.count_up();
    for (const std::size_t bytes : {1ul, 64ul, 8128ul, 8129ul, 100000ul}) {
        std::fill(ma.bytes.begin(), ma.bytes.end(), 0);
        ASSERT_EQ(Work(NTBV_READ, bytes, ma.piece(0, bytes)).to(mb).post(qa), 0);
        const ntbv_wc got = one(a.cq);
        EXPECT_EQ(got.opcode, NTBV_WC_READ);
        EXPECT_EQ(got.bytes, bytes);
        EXPECT_TRUE(std::equal(ma.bytes.begin(), ma.bytes.begin() + static_cast<long>(bytes),
                               mb.bytes.begin()));
    }
}

TEST_F(OneSided, AtomicsBringTheOldValueAndChangeTheWord)
{
    auto *word = reinterpret_cast<std::uint64_t *>(mb.bytes.data());
    auto *old = reinterpret_cast<std::uint64_t *>(ma.bytes.data());
    *word = 40;
    Work add(NTBV_FETCH_ADD, 1, ma.piece(0, 8));
    add.wr.compare_add = 2;
    ASSERT_EQ(add.to(mb).post(qa), 0);
    EXPECT_EQ(one(a.cq).opcode, NTBV_WC_FETCH_ADD);
    EXPECT_EQ(*old, 40u);
    EXPECT_EQ(*word, 42u);
    Work swap(NTBV_CMP_SWP, 2, ma.piece(0, 8));
    swap.wr.compare_add = 42;
    swap.wr.swap = 100;
    ASSERT_EQ(swap.to(mb).post(qa), 0);
    EXPECT_EQ(one(a.cq).opcode, NTBV_WC_CMP_SWP);
    EXPECT_EQ(*old, 42u);
    EXPECT_EQ(*word, 100u);
    ASSERT_EQ(swap.to(mb).post(qa), 0);
    one(a.cq);
    EXPECT_EQ(*old, 100u);
    EXPECT_EQ(*word, 100u) << "was not equal";
    EXPECT_EQ(Work(NTBV_FETCH_ADD, 1, ma.piece(0, 4)).to(mb).post(qa), -EINVAL);
}

TEST_F(OneSided, CompletionsComeInTheOrderOfPosting)
{
    std::vector<std::pair<std::uint64_t, std::uint32_t>> expected;
    constexpr ntbv_opcode opcodes[] = {NTBV_READ, NTBV_WRITE, NTBV_FETCH_ADD, NTBV_SEND,
                                       NTBV_CMP_SWP};
    for (std::uint64_t i = 0; i < 100; ++i) {
        const ntbv_opcode opcode = opcodes[i % 5];
        ASSERT_EQ(post_recv(qb, i), 0);
        const std::size_t bytes = opcode == NTBV_SEND ? 0 : opcode > NTBV_READ ? 8 : i * 300;
        ASSERT_EQ(Work(opcode, i, ma.piece(0, bytes)).to(mb).post(qa), 0);
        expected.emplace_back(i, NTBV_SUCCESS);
    }
    expect(a.cq, expected);
}

TEST_F(OneSided, MoreReadsThanAgreedWaitAtTheRequester)
{
    ntbv_qp_attr few = attributes();
    few.max_rd_atomic = few.max_dest_rd_atomic = 2;
    ntbv_qp *one_qp = a.make(NTBV_RC), *other = b.make(NTBV_RC);
    connect(one_qp, other, NTBV_RC, few, few);
    for (std::uint64_t i = 0; i < 20; ++i)
        ASSERT_EQ(Work(NTBV_READ, i, ma.piece(0, 20000)).to(mb).post(one_qp), 0);
    const std::vector<ntbv_wc> all = take(a.cq);
    ASSERT_EQ(all.size(), 20u);
    for (const ntbv_wc &wc : all)
        EXPECT_EQ(wc.status, NTBV_SUCCESS);
}

TEST_F(OneSided, MoreReadsThanTheResponderTakesAreInvalid)
{
    ntbv_qp_attr many = attributes(), few = attributes();
    few.max_dest_rd_atomic = 1;
    ntbv_qp *one_qp = a.make(NTBV_RC), *other = b.make(NTBV_RC);
    connect(one_qp, other, NTBV_RC, many, few);
    loopback->set_full(1, true);
    for (std::uint64_t i = 0; i < 3; ++i)
        ASSERT_EQ(Work(NTBV_READ, i, ma.piece(0, 100)).to(mb).post(one_qp), 0);
    run();
    loopback->set_full(1, false);
    expect(a.cq, {{0, NTBV_SUCCESS}, {1, NTBV_REM_INV_REQ_ERR}, {2, NTBV_WR_FLUSH_ERR}});
    EXPECT_EQ(b.events(), (std::vector<std::uint32_t>{NTBV_EVENT_QP_REQ_ERR}));
}

// The read is answered from the list, so the write passes it; with a fence it cannot.
TEST_F(OneSided, AFenceKeepsAWriteBehindARead)
{
    mb.bytes[0] = 1;
    ma.bytes[10] = 2;
    run();
    loopback->hold(0, true);
    ASSERT_EQ(Work(NTBV_READ, 1, ma.piece(0, 1)).to(mb).post(qa), 0);
    ASSERT_EQ(Work(NTBV_WRITE, 2, ma.piece(10, 1), NTBV_SIGNALED | NTBV_FENCE).to(mb).post(qa), 0);
    loopback->hold(1, true);
    loopback->hold(0, false);
    run();
    EXPECT_EQ(mb.bytes[0], 1) << "written before the read is complete";
    loopback->hold(1, false);
    expect(a.cq, {{1, NTBV_SUCCESS}, {2, NTBV_SUCCESS}});
    EXPECT_EQ(ma.bytes[0], 1);
    EXPECT_EQ(mb.bytes[0], 2);
}

TEST_F(OneSided, SendWriteSendArriveInThatOrder)
{
    Memory in(b.pd, 8);
    for (std::uint8_t i = 1; i < 100; ++i) {
        ma.bytes[0] = i;
        ASSERT_EQ(post_recv(qb, 1, in.piece(0, 1)), 0);
        ASSERT_EQ(post_recv(qb, 2, in.piece(1, 1)), 0);
        loopback->hold(0, true);
        ASSERT_EQ(Work(NTBV_SEND, 1, ma.piece(0, 1)).post(qa), 0);
        ASSERT_EQ(Work(NTBV_WRITE, 2, ma.piece(0, 1), NTBV_SIGNALED | NTBV_INLINE).to(mb).post(qa),
                  0);
        ASSERT_EQ(Work(NTBV_SEND, 3, ma.piece(0, 1)).post(qa), 0);
        loopback->hold(0, false);
        run();
        ntbv_wc wc[2];
        ASSERT_EQ(ntbv_cq_poll(b.recv_cq, 2, wc), 2);
        EXPECT_EQ(mb.bytes[0], i);
        expect(a.cq, {{1, NTBV_SUCCESS}, {2, NTBV_SUCCESS}, {3, NTBV_SUCCESS}});
    }
}

TEST_F(OneSided, AWriteToAWrongKeyBreaksBothQueuePairs)
{
    Work work(NTBV_WRITE, 1, ma.piece(0, 8));
    work.to(mb).wr.remote_key ^= 0x10000;
    expect_refused(work, NTBV_REM_ACCESS_ERR, {NTBV_EVENT_QP_ACCESS_ERR});
}

TEST_F(OneSided, AWriteOutOfRangeChangesNothing)
{
    ma.bytes[0] = 1;
    expect_refused(Work(NTBV_WRITE, 1, ma.piece(0, 100)).to(mb, 99901), NTBV_REM_ACCESS_ERR,
                   {NTBV_EVENT_QP_ACCESS_ERR});
    EXPECT_EQ(mb.bytes, std::vector<std::uint8_t>(100000));
}

TEST_F(OneSided, AReadOutOfRangeIsRefused)
{
    expect_refused(Work(NTBV_READ, 1, ma.piece(0, 100)).to(mb, 99901), NTBV_REM_ACCESS_ERR,
                   {NTBV_EVENT_QP_ACCESS_ERR});
}

TEST_F(OneSided, EachRightOfTheRegionIsAskedFor)
{
    Memory local(b.pd, 64, NTBV_LOCAL_WRITE);
    for (const ntbv_opcode opcode : {NTBV_WRITE, NTBV_READ, NTBV_FETCH_ADD, NTBV_CMP_SWP}) {
        ntbv_qp *one_qp = a.make(NTBV_RC), *other = b.make(NTBV_RC);
        connect(one_qp, other, NTBV_RC);
        ASSERT_EQ(Work(opcode, 1, ma.piece(0, 8)).to(local).post(one_qp), 0);
        expect(a.cq, {{1, NTBV_REM_ACCESS_ERR}});
        EXPECT_EQ(b.events(), (std::vector<std::uint32_t>{NTBV_EVENT_QP_ACCESS_ERR}));
    }
}

TEST_F(OneSided, EachRightOfTheQueuePairIsAskedFor)
{
    ntbv_qp_attr closed = attributes();
    closed.access = NTBV_LOCAL_WRITE;
    for (const ntbv_opcode opcode : {NTBV_WRITE, NTBV_READ, NTBV_FETCH_ADD, NTBV_CMP_SWP}) {
        ntbv_qp *one_qp = a.make(NTBV_RC), *other = b.make(NTBV_RC);
        connect(one_qp, other, NTBV_RC, attributes(), closed);
        ASSERT_EQ(Work(opcode, 1, ma.piece(0, 8)).to(mb).post(one_qp), 0);
        expect(a.cq, {{1, NTBV_REM_ACCESS_ERR}});
        EXPECT_EQ(b.events().size(), 1u);
    }
}

TEST_F(OneSided, AnotherProtectionDomainIsRefusedAtBothEnds)
{
    ntbv_pd *other;
    ASSERT_EQ(ntbv_pd_create(b.engine, &other), 0);
    {
        Memory foreign(other, 64);
        expect_refused(Work(NTBV_WRITE, 1, ma.piece(0, 8)).to(foreign), NTBV_REM_ACCESS_ERR,
                       {NTBV_EVENT_QP_ACCESS_ERR});
    }
    ASSERT_EQ(ntbv_pd_destroy(other), 0);
    ASSERT_EQ(ntbv_pd_create(a.engine, &other), 0);
    {
        Memory foreign(other, 64);
        ntbv_qp *one_qp = a.make(NTBV_RC), *two = b.make(NTBV_RC);
        connect(one_qp, two, NTBV_RC);
        ASSERT_EQ(Work(NTBV_WRITE, 1, foreign.piece(0, 8)).to(mb).post(one_qp), 0);
        expect(a.cq, {{1, NTBV_LOC_PROT_ERR}});
    }
    ASSERT_EQ(ntbv_pd_destroy(other), 0);
}

TEST_F(OneSided, AnAtomicThatIsNotAlignedIsInvalid)
{
    expect_refused(Work(NTBV_FETCH_ADD, 1, ma.piece(0, 8)).to(mb, 4), NTBV_REM_INV_REQ_ERR,
                   {NTBV_EVENT_QP_REQ_ERR});
}

TEST_F(OneSided, AReadIntoMemoryThatMayNotBeWrittenFailsHere)
{
    Memory constant(a.pd, 64, NTBV_REMOTE_READ);
    ASSERT_EQ(Work(NTBV_READ, 1, constant.all()).to(mb).post(qa), 0);
    expect(a.cq, {{1, NTBV_LOC_PROT_ERR}});
    EXPECT_EQ(state_of(qb), NTBV_RTS);
}

TEST_F(OneSided, NothingNeedsNoKey)
{
    ASSERT_EQ(Work(NTBV_WRITE, 1).post(qa), 0);
    ASSERT_EQ(Work(NTBV_READ, 2).post(qa), 0);
    ASSERT_EQ(post_recv(qb, 1), 0);
    ASSERT_EQ(Work(NTBV_WRITE_IMM, 3).post(qa), 0);
    expect(a.cq, {{1, NTBV_SUCCESS}, {2, NTBV_SUCCESS}, {3, NTBV_SUCCESS}});
    EXPECT_EQ(one(b.recv_cq).bytes, 0u);
}

TEST_F(OneSided, RegionsAreCalledByAnotherAddress)
{
    std::vector<std::uint8_t> bytes(64, 9);
    std::uint32_t key;
    ASSERT_EQ(ntbv_mr_register(b.pd, bytes.data(), 64, 0x1000, all_rights, &key), 0);
    Work work(NTBV_READ, 1, ma.piece(0, 4));
    work.wr.remote_address = 0x103c;
    work.wr.remote_key = key;
    ASSERT_EQ(work.post(qa), 0);
    expect(a.cq, {{1, NTBV_SUCCESS}});
    EXPECT_EQ(ma.bytes[3], 9);
    EXPECT_EQ(ntbv_mr_deregister(b.pd, key), 0);
    EXPECT_EQ(ntbv_mr_deregister(b.pd, key), -EINVAL);
}

TEST_F(OneSided, WhatRegistrationRefuses)
{
    std::uint32_t key;
    std::uint8_t byte;
    EXPECT_EQ(ntbv_mr_register(b.pd, &byte, 1, 0, NTBV_REMOTE_WRITE, &key), -EINVAL);
    EXPECT_EQ(ntbv_mr_register(b.pd, &byte, 1, 0, NTBV_REMOTE_ATOMIC, &key), -EINVAL);
    EXPECT_EQ(ntbv_mr_register(b.pd, &byte, 1, 0, 1u << 5, &key), -EINVAL);
    EXPECT_EQ(ntbv_mr_register(b.pd, &byte, 2, ~0ull, NTBV_LOCAL_WRITE, &key), -EINVAL);
    EXPECT_EQ(ntbv_mr_register(b.pd, &byte, ~0ull, 0, NTBV_LOCAL_WRITE, &key), -EINVAL);
    EXPECT_EQ(ntbv_mr_reregister(b.pd, mb.key, b.pd, &byte, 1, 0, NTBV_REMOTE_WRITE), -EINVAL);
    EXPECT_EQ(ntbv_mr_reregister(b.pd, mb.key, a.pd, &byte, 1, 0, 0), -EINVAL) << "two engines";
    EXPECT_EQ(ntbv_mr_reregister(b.pd, mb.key + 1, b.pd, &byte, 1, 0, 0), -EINVAL);
    ASSERT_EQ(Work(NTBV_WRITE, 1, ma.all()).to(mb).post(qa), 0);
    expect(a.cq, {{1, NTBV_SUCCESS}});
}

TEST_F(OneSided, ARegionMovesUnderItsKey)
{
    ma.count_up();
    std::vector<std::uint8_t> elsewhere(mb.bytes.size());
    const std::uint64_t iova = mb.all().address;
    ASSERT_EQ(ntbv_mr_reregister(b.pd, mb.key, b.pd, elsewhere.data(), elsewhere.size(), iova,
                                 all_rights),
              0);
    ASSERT_EQ(Work(NTBV_WRITE, 1, ma.all()).to(mb).post(qa), 0);
    expect(a.cq, {{1, NTBV_SUCCESS}});
    EXPECT_EQ(elsewhere, ma.bytes);
    EXPECT_NE(mb.bytes, ma.bytes);
}

TEST_F(OneSided, ACompletionQueueIsNotMadeShorterThanWhatWaits)
{
    for (std::uint64_t i = 0; i < 3; ++i)
        ASSERT_EQ(Work(NTBV_WRITE, i, ma.piece(0, 4)).to(mb).post(qa), 0);
    run();
    EXPECT_EQ(ntbv_cq_resize(a.cq, 2), -EINVAL);
    EXPECT_EQ(ntbv_cq_resize(a.cq, 0), -EINVAL);
    EXPECT_EQ(ntbv_cq_resize(a.cq, NTBV_MAX_CQE + 1), -EINVAL);
    EXPECT_EQ(ntbv_cq_resize(a.cq, 3), 0);
    expect(a.cq, {{0, NTBV_SUCCESS}, {1, NTBV_SUCCESS}, {2, NTBV_SUCCESS}});
}

TEST_F(OneSided, NoByteChangesOnceARegionIsDeregistered)
{
    ma.count_up();
    loopback->set_full(0, true);
    ASSERT_EQ(Work(NTBV_WRITE, 1, ma.all()).to(mb).post(qa), 0);
    loopback->set_full(0, false);
    // Of the message's thirteen pieces some are there.
    ntbv_engine_drive(a.engine);
    ntbv_engine_drive(b.engine);
    ntbv_engine_drive(a.engine);
    ntbv_engine_drive(b.engine);
    ASSERT_EQ(ntbv_mr_deregister(b.pd, mb.key), 0);
    mb.key = 0;
    const std::vector<std::uint8_t> before = mb.bytes;
    run();
    EXPECT_EQ(mb.bytes, before);
    EXPECT_NE(mb.bytes, ma.bytes);
    expect(a.cq, {{1, NTBV_REM_ACCESS_ERR}});
}

TEST_F(OneSided, AReadEndsWhenItsRegionGoes)
{
    Memory big(b.pd, 1 << 20), into(a.pd, 1 << 20);
    ASSERT_EQ(Work(NTBV_READ, 1, into.all()).to(big).post(qa), 0);
    ASSERT_EQ(Work(NTBV_WRITE, 2, ma.all()).to(mb).post(qa), 0);
    for (int i = 0; i < 4; ++i) {
        ntbv_engine_drive(a.engine);
        ntbv_engine_drive(b.engine);
    }
    ASSERT_EQ(ntbv_mr_deregister(b.pd, big.key), 0);
    big.key = 0;
    expect(a.cq, {{1, NTBV_REM_ACCESS_ERR}, {2, NTBV_WR_FLUSH_ERR}});
    EXPECT_EQ(b.events(), (std::vector<std::uint32_t>{NTBV_EVENT_QP_ACCESS_ERR}));
}

TEST_F(OneSided, UcWritesAndLosesWhatIsNotAllowed)
{
    ntbv_qp *one_qp = a.make(NTBV_UC), *other = b.make(NTBV_UC);
    connect(one_qp, other, NTBV_UC);
    ma.count_up();
    Work bad(NTBV_WRITE, 1, ma.all());
    bad.to(mb).wr.remote_key ^= 0x10000;
    ASSERT_EQ(bad.post(one_qp), 0);
    expect(a.cq, {{1, NTBV_SUCCESS}});
    EXPECT_EQ(mb.bytes, std::vector<std::uint8_t>(100000));
    EXPECT_EQ(state_of(other), NTBV_RTS);
    ASSERT_EQ(post_recv(other, 4), 0);
    ASSERT_EQ(Work(NTBV_WRITE_IMM, 2, ma.all()).to(mb).imm(5).post(one_qp), 0);
    EXPECT_EQ(one(b.recv_cq).imm, 5u);
    EXPECT_EQ(mb.bytes, ma.bytes);
}

// The longest message there is, from and to sixteen pieces which are the same memory.
TEST_F(OneSided, MessagesHaveUpTo2GiB)
{
    constexpr std::size_t bytes = NTBV_MAX_MESSAGE / 16;
    Memory from(a.pd, bytes), to(b.pd, bytes);
    std::iota(from.bytes.end() - 100, from.bytes.end(), std::uint8_t{1});
    std::vector<ntbv_sge> out(16, from.all()), in(16, to.all());
    const ntbv_recv_wr receive = {1, nullptr, in.data(), 16};
    const ntbv_recv_wr *bad_receive;
    ASSERT_EQ(ntbv_qp_post_recv(qb, &receive, &bad_receive), 0);
    Work work(NTBV_SEND, 1);
    work.wr.sge = out.data();
    work.wr.n_sge = 16;
    const ntbv_send_wr *bad;
    ASSERT_EQ(ntbv_qp_post_send(qa, &work.wr, &bad), 0);
    const ntbv_wc got = one(b.recv_cq);
    EXPECT_EQ(got.status, NTBV_SUCCESS);
    EXPECT_EQ(got.bytes, NTBV_MAX_MESSAGE);
    EXPECT_EQ(one(a.cq).bytes, NTBV_MAX_MESSAGE);
    EXPECT_TRUE(from.bytes == to.bytes);
    // One byte more is too long.
    out[15] = ma.piece(0, 1);
    out[14].length += static_cast<std::uint32_t>(bytes);
    ASSERT_EQ(ntbv_qp_post_send(qa, &work.wr, &bad), -EINVAL);
}

} // namespace

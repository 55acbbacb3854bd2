// SPDX-License-Identifier: BSD-3-Clause
// Short SENDs with data that may go at once, each beside what it must not pass: they have a way of
// their own. What other tests send is empty, or finds no room, and goes the way of all others.
#include <algorithm>

#include "hosts.hpp"

namespace
{

using namespace verbs_test;

class Lone : public Hosts
{
protected:
    static constexpr std::uint32_t longest = 256; // that goes by the short way

    void SetUp() override
    {
        Hosts::SetUp();
        from.count_up();
    }
    ntbv_sge piece(std::size_t bytes = 8) const { return from.piece(0, bytes); }
    /// Receives with the numbers from 1 to n.
    void receive(std::uint64_t n = 1)
    {
        for (std::uint64_t id = 1; id <= n; ++id)
            ASSERT_EQ(post_recv(qb, id, to.all()), 0);
    }
    int send(std::uint64_t id, unsigned flags = NTBV_SIGNALED)
    {
        return Work(NTBV_SEND, id, piece(), flags).post(qa);
    }

    Memory from{a.pd, 4096}, to{b.pd, 4096};
};

TEST_F(Lone, ArriveWhole)
{
    connect(NTBV_RC);
    run();
    for (const std::uint32_t bytes : {1u, 63u, 64u, longest, longest + 1})
        for (const unsigned flags : {0u, unsigned{NTBV_INLINE}})
            for (const ntbv_opcode opcode : {NTBV_SEND, NTBV_SEND_IMM}) {
                if (flags == NTBV_INLINE && bytes > longest)
                    continue;
                std::fill(to.bytes.begin(), to.bytes.end(), 0xee);
                receive();
                ASSERT_EQ(Work(opcode, 2, piece(bytes), flags | NTBV_SIGNALED).imm(0x1234).post(qa),
                          0);
                const ntbv_wc got = one(b.recv_cq);
                EXPECT_EQ(got.status, NTBV_SUCCESS);
                EXPECT_EQ(got.bytes, bytes);
                EXPECT_EQ((got.flags & NTBV_WC_WITH_IMM) != 0, opcode == NTBV_SEND_IMM);
                EXPECT_EQ(got.imm, opcode == NTBV_SEND_IMM ? 0x1234u : 0u);
                EXPECT_TRUE(
                    std::equal(from.bytes.begin(), from.bytes.begin() + bytes, to.bytes.begin()));
                EXPECT_EQ(to.bytes[bytes], 0xee);
                EXPECT_EQ(one(a.cq).id, 2u);
            }
}

TEST_F(Lone, SolicitedOnesAreNoticed)
{
    connect(NTBV_RC);
    run();
    for (const bool solicited : {false, true}) {
        receive();
        ASSERT_EQ(ntbv_cq_arm(b.recv_cq, true), 0);
        ASSERT_EQ(send(2, solicited ? unsigned{NTBV_SOLICITED} : 0u), 0);
        run();
        EXPECT_EQ(b.notifications().size(), solicited ? 1u : 0u);
        EXPECT_EQ(one(b.recv_cq).id, 1u);
    }
}

TEST_F(Lone, FindAWrongKey)
{
    connect(NTBV_RC);
    run();
    ntbv_sge wrong = piece();
    wrong.key ^= 0x100;
    ASSERT_EQ(Work(NTBV_SEND, 1, wrong).post(qa), 0);
    expect(a.cq, {{1, NTBV_LOC_PROT_ERR}});
}

TEST_F(Lone, FindAFullQueue)
{
    qa = a.make(NTBV_RC, nullptr, 4);
    qb = b.make(NTBV_RC);
    connect(qa, qb, NTBV_RC);
    run();
    receive(5);
    loopback->hold(1, true); // no acknowledgement comes
    for (std::uint64_t i = 1; i <= 4; ++i)
        ASSERT_EQ(send(i), 0);
    EXPECT_EQ(send(5), -ENOMEM);
    loopback->hold(1, false);
    expect(a.cq, {{1, NTBV_SUCCESS}, {2, NTBV_SUCCESS}, {3, NTBV_SUCCESS}, {4, NTBV_SUCCESS}});
    EXPECT_EQ(send(5), 0);
    expect(a.cq, {{5, NTBV_SUCCESS}});
}

TEST_F(Lone, StayBehindAFence)
{
    connect(NTBV_RC);
    run();
    receive(2);
    Memory remote(b.pd, 64);
    loopback->hold(1, true);
    ASSERT_EQ(Work(NTBV_READ, 1, from.piece(1024, 8)).to(remote).post(qa), 0);
    ASSERT_EQ(Work(NTBV_SEND, 2, from.piece(100, 9), NTBV_SIGNALED | NTBV_FENCE).post(qa), 0);
    ASSERT_EQ(send(3), 0);
    loopback->hold(1, false);
    expect(a.cq, {{1, NTBV_SUCCESS}, {2, NTBV_SUCCESS}, {3, NTBV_SUCCESS}});
    const std::vector<ntbv_wc> got = take(b.recv_cq);
    ASSERT_EQ(got.size(), 2u);
    EXPECT_EQ(got[0].bytes, 9u);
    EXPECT_EQ(got[1].bytes, 8u);
}

TEST_F(Lone, StayBehindAReadThatWaitsForOthers)
{
    ntbv_qp_attr few = attributes();
    few.max_rd_atomic = few.max_dest_rd_atomic = 1;
    connect(NTBV_RC, few, few);
    run();
    receive();
    Memory remote(b.pd, 64);
    loopback->hold(1, true);
    for (std::uint64_t i = 1; i <= 2; ++i)
        ASSERT_EQ(Work(NTBV_READ, i, from.piece(1024, 8)).to(remote).post(qa), 0);
    ASSERT_EQ(send(3), 0);
    loopback->hold(1, false);
    expect(a.cq, {{1, NTBV_SUCCESS}, {2, NTBV_SUCCESS}, {3, NTBV_SUCCESS}});
    EXPECT_EQ(one(b.recv_cq).bytes, 8u);
}

TEST_F(Lone, StayBehindWhatWaitsForAReceive)
{
    connect(NTBV_RC);
    run();
    ASSERT_EQ(Work(NTBV_SEND, 1, from.piece(100, 9)).post(qa), 0);
    run();
    ASSERT_EQ(send(2), 0);
    run();
    receive(2);
    clock.advance_us(1000);
    expect(a.cq, {{1, NTBV_SUCCESS}, {2, NTBV_SUCCESS}});
    const std::vector<ntbv_wc> got = take(b.recv_cq);
    ASSERT_EQ(got.size(), 2u);
    EXPECT_EQ(got[0].bytes, 9u);
    EXPECT_EQ(got[1].bytes, 8u);
}

// Nothing of a pair goes before the ones that wait for room: else they might wait for ever.
TEST_F(Lone, StayBehindOtherPairsThatWaitForRoom)
{
    connect(NTBV_RC);
    ntbv_qp *const other = a.make(NTBV_RC), *const other_peer = b.make(NTBV_RC);
    connect(other, other_peer, NTBV_RC);
    run();
    receive();
    ASSERT_EQ(post_recv(other_peer, 2, to.all()), 0);
    loopback->set_full(0, true);
    ASSERT_EQ(Work(NTBV_SEND, 1, piece()).post(other), 0);
    loopback->set_full(0, false);
    ASSERT_EQ(send(2), 0);
    const std::vector<ntbv_wc> got = take(b.recv_cq);
    ASSERT_EQ(got.size(), 2u);
    EXPECT_EQ(got[0].id, 2u) << "the first that was posted";
    EXPECT_EQ(got[1].id, 1u);
}

TEST_F(Lone, OfAnUnreliableConnectionFailWhereTheirCompletionHasNoPlace)
{
    auto *const way = lost.emplace_back(ntb::verbs::Loopback::create(1 << 16)).get();
    Host few(3, clock, 1);
    Memory own(few.pd, 64);
    ASSERT_EQ(few.attach(way->end(0), 2), 0);
    ASSERT_EQ(b.attach(way->end(1), 3), 0);
    ntbv_qp *const mine = few.make(NTBV_UC), *const peer = b.make(NTBV_UC);
    to_peer(mine, NTBV_UC, 2, ntbv_qp_number(peer));
    to_peer(peer, NTBV_UC, 3, ntbv_qp_number(mine));
    come_to_rest({few.engine, b.engine}, 1000);
    ASSERT_EQ(Work(NTBV_SEND, 1, own.piece(0, 8)).post(mine), 0);
    EXPECT_EQ(state_of(mine), NTBV_RTS);
    ASSERT_EQ(Work(NTBV_SEND, 2, own.piece(0, 8)).post(mine), 0);
    EXPECT_EQ(state_of(mine), NTBV_ERR);
}

TEST_F(Lone, OneThatIsUnderWayIsAllThatSqdWaitsFor)
{
    connect(NTBV_RC);
    run();
    receive();
    loopback->hold(1, true);
    ASSERT_EQ(send(1), 0);
    run();
    ntbv_qp_attr attr = {};
    attr.state = NTBV_SQD;
    attr.sqd_notify = 1;
    ASSERT_EQ(ntbv_qp_modify(qa, &attr, NTBV_QP_STATE | NTBV_QP_SQD_NOTIFY), 0);
    EXPECT_TRUE(a.events().empty());
    loopback->hold(1, false);
    expect(a.cq, {{1, NTBV_SUCCESS}});
    EXPECT_EQ(a.events(), (std::vector<std::uint32_t>{NTBV_EVENT_SQ_DRAINED}));
}

} // namespace

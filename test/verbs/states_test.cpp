// SPDX-License-Identifier: BSD-3-Clause
// States of a queue pair, and what they refuse.
#include "hosts.hpp"

namespace
{

using namespace verbs_test;

class States : public Hosts
{
};

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

} // namespace

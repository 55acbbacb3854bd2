// SPDX-License-Identifier: BSD-3-Clause
#include "queue/states.hpp"

#include <bit>
#include <initializer_list>

#include <gtest/gtest.h>

#if __has_include(<infiniband/verbs.h>)
#include <infiniband/verbs.h>
#define EQUAL(name) static_assert(static_cast<int>(NTBV_##name) == static_cast<int>(IBV_##name))
#define EQUAL_AS(ours, theirs)                                                                     \
    static_assert(static_cast<int>(NTBV_##ours) == static_cast<int>(IBV_##theirs))
// The border promises the numbers of the public interface.
EQUAL_AS(LOCAL_WRITE, ACCESS_LOCAL_WRITE);
EQUAL_AS(REMOTE_WRITE, ACCESS_REMOTE_WRITE);
EQUAL_AS(REMOTE_READ, ACCESS_REMOTE_READ);
EQUAL_AS(REMOTE_ATOMIC, ACCESS_REMOTE_ATOMIC);
EQUAL_AS(RC, QPT_RC);
EQUAL_AS(UC, QPT_UC);
EQUAL_AS(UD, QPT_UD);
EQUAL_AS(RESET, QPS_RESET);
EQUAL_AS(INIT, QPS_INIT);
EQUAL_AS(RTR, QPS_RTR);
EQUAL_AS(RTS, QPS_RTS);
EQUAL_AS(SQD, QPS_SQD);
EQUAL_AS(SQE, QPS_SQE);
EQUAL_AS(ERR, QPS_ERR);
EQUAL_AS(WRITE, WR_RDMA_WRITE);
EQUAL_AS(WRITE_IMM, WR_RDMA_WRITE_WITH_IMM);
EQUAL_AS(SEND, WR_SEND);
EQUAL_AS(SEND_IMM, WR_SEND_WITH_IMM);
EQUAL_AS(READ, WR_RDMA_READ);
EQUAL_AS(CMP_SWP, WR_ATOMIC_CMP_AND_SWP);
EQUAL_AS(FETCH_ADD, WR_ATOMIC_FETCH_AND_ADD);
EQUAL_AS(FENCE, SEND_FENCE);
EQUAL_AS(SIGNALED, SEND_SIGNALED);
EQUAL_AS(SOLICITED, SEND_SOLICITED);
EQUAL_AS(INLINE, SEND_INLINE);
EQUAL_AS(SUCCESS, WC_SUCCESS);
EQUAL_AS(LOC_LEN_ERR, WC_LOC_LEN_ERR);
EQUAL_AS(LOC_QP_OP_ERR, WC_LOC_QP_OP_ERR);
EQUAL_AS(LOC_PROT_ERR, WC_LOC_PROT_ERR);
EQUAL_AS(WR_FLUSH_ERR, WC_WR_FLUSH_ERR);
EQUAL_AS(BAD_RESP_ERR, WC_BAD_RESP_ERR);
EQUAL_AS(REM_INV_REQ_ERR, WC_REM_INV_REQ_ERR);
EQUAL_AS(REM_ACCESS_ERR, WC_REM_ACCESS_ERR);
EQUAL_AS(REM_OP_ERR, WC_REM_OP_ERR);
EQUAL_AS(RETRY_EXC_ERR, WC_RETRY_EXC_ERR);
EQUAL_AS(RNR_RETRY_EXC_ERR, WC_RNR_RETRY_EXC_ERR);
EQUAL(WC_SEND);
EQUAL_AS(WC_WRITE, WC_RDMA_WRITE);
EQUAL_AS(WC_READ, WC_RDMA_READ);
EQUAL_AS(WC_CMP_SWP, WC_COMP_SWAP);
EQUAL(WC_FETCH_ADD);
EQUAL(WC_RECV);
EQUAL_AS(WC_RECV_WRITE_IMM, WC_RECV_RDMA_WITH_IMM);
EQUAL(WC_GRH);
EQUAL(WC_WITH_IMM);
EQUAL(EVENT_CQ_ERR);
EQUAL(EVENT_QP_FATAL);
EQUAL(EVENT_QP_REQ_ERR);
EQUAL(EVENT_QP_ACCESS_ERR);
EQUAL(EVENT_SQ_DRAINED);
EQUAL(EVENT_SRQ_LIMIT_REACHED);
EQUAL_AS(EVENT_LAST_WQE_REACHED, EVENT_QP_LAST_WQE_REACHED);
EQUAL(QP_STATE);
EQUAL(QP_CUR_STATE);
EQUAL_AS(QP_SQD_NOTIFY, QP_EN_SQD_ASYNC_NOTIFY);
EQUAL_AS(QP_ACCESS, QP_ACCESS_FLAGS);
EQUAL(QP_PKEY_INDEX);
EQUAL(QP_PORT);
EQUAL(QP_QKEY);
EQUAL(QP_AV);
EQUAL(QP_PATH_MTU);
EQUAL(QP_TIMEOUT);
EQUAL(QP_RETRY_CNT);
EQUAL(QP_RNR_RETRY);
EQUAL(QP_RQ_PSN);
EQUAL_AS(QP_MAX_RD_ATOMIC, QP_MAX_QP_RD_ATOMIC);
EQUAL(QP_MIN_RNR_TIMER);
EQUAL(QP_SQ_PSN);
EQUAL(QP_MAX_DEST_RD_ATOMIC);
EQUAL(QP_DEST_QPN);
EQUAL(SRQ_MAX_WR);
EQUAL(SRQ_LIMIT);
#endif

namespace
{

using ntb::verbs::allowed;

constexpr unsigned init = NTBV_QP_STATE | NTBV_QP_PKEY_INDEX | NTBV_QP_PORT;
constexpr unsigned path =
    NTBV_QP_STATE | NTBV_QP_AV | NTBV_QP_PATH_MTU | NTBV_QP_DEST_QPN | NTBV_QP_RQ_PSN;
constexpr unsigned rtr = path | NTBV_QP_MAX_DEST_RD_ATOMIC | NTBV_QP_MIN_RNR_TIMER;
constexpr unsigned rts = NTBV_QP_STATE | NTBV_QP_TIMEOUT | NTBV_QP_RETRY_CNT | NTBV_QP_RNR_RETRY |
                         NTBV_QP_MAX_RD_ATOMIC | NTBV_QP_SQ_PSN;
constexpr unsigned state = NTBV_QP_STATE;

// Whether the mask is taken, and without any one of its bits it is not.
void expect_exactly(ntbv_qp_type type, ntbv_qp_state from, ntbv_qp_state to, unsigned mask)
{
    EXPECT_TRUE(allowed(type, from, to, mask)) << type << ": " << from << " to " << to;
    for (unsigned rest = mask & ~state; rest != 0; rest &= rest - 1)
        EXPECT_FALSE(allowed(type, from, to, mask & ~(1u << std::countr_zero(rest))))
            << type << ": " << from << " to " << to << " without bit " << std::countr_zero(rest);
}

TEST(States, MandatoryAttributesOfEachType)
{
    expect_exactly(NTBV_RC, NTBV_RESET, NTBV_INIT, init | NTBV_QP_ACCESS);
    expect_exactly(NTBV_UC, NTBV_RESET, NTBV_INIT, init | NTBV_QP_ACCESS);
    expect_exactly(NTBV_UD, NTBV_RESET, NTBV_INIT, init | NTBV_QP_QKEY);
    expect_exactly(NTBV_RC, NTBV_INIT, NTBV_RTR, rtr);
    expect_exactly(NTBV_UC, NTBV_INIT, NTBV_RTR, path);
    expect_exactly(NTBV_UD, NTBV_INIT, NTBV_RTR, state);
    expect_exactly(NTBV_RC, NTBV_RTR, NTBV_RTS, rts);
    expect_exactly(NTBV_UC, NTBV_RTR, NTBV_RTS, state | NTBV_QP_SQ_PSN);
    expect_exactly(NTBV_UD, NTBV_RTR, NTBV_RTS, state | NTBV_QP_SQ_PSN);
}

TEST(States, OptionalAttributesAndNoOthers)
{
    EXPECT_TRUE(allowed(NTBV_RC, NTBV_INIT, NTBV_RTR, rtr | NTBV_QP_ACCESS));
    EXPECT_FALSE(allowed(NTBV_RC, NTBV_INIT, NTBV_RTR, rtr | NTBV_QP_QKEY));
    EXPECT_FALSE(allowed(NTBV_UC, NTBV_INIT, NTBV_RTR, rtr)) << "RC's";
    EXPECT_TRUE(allowed(NTBV_RC, NTBV_RTS, NTBV_RTS, state | NTBV_QP_MIN_RNR_TIMER));
    EXPECT_FALSE(allowed(NTBV_RC, NTBV_RTS, NTBV_RTS, state | NTBV_QP_AV));
    EXPECT_TRUE(allowed(NTBV_RC, NTBV_SQD, NTBV_SQD, state | NTBV_QP_AV));
    EXPECT_TRUE(allowed(NTBV_UD, NTBV_RTS, NTBV_RTS, state | NTBV_QP_QKEY));
    EXPECT_FALSE(allowed(NTBV_UD, NTBV_RESET, NTBV_INIT, init | NTBV_QP_QKEY | NTBV_QP_ACCESS));
}

TEST(States, EveryStateEndsInErrAndReset)
{
    for (const ntbv_qp_type type : {NTBV_RC, NTBV_UC, NTBV_UD})
        for (int from = NTBV_RESET; from <= NTBV_ERR; ++from)
            for (const ntbv_qp_state to : {NTBV_RESET, NTBV_ERR}) {
                EXPECT_TRUE(allowed(type, static_cast<ntbv_qp_state>(from), to, state));
                EXPECT_FALSE(
                    allowed(type, static_cast<ntbv_qp_state>(from), to, state | NTBV_QP_PORT));
            }
}

TEST(States, NoOtherWay)
{
    constexpr unsigned everything = ~0u;
    for (const ntbv_qp_type type : {NTBV_RC, NTBV_UC, NTBV_UD})
        for (unsigned mask : {state, init | NTBV_QP_ACCESS, rtr, rts, everything}) {
            for (const ntbv_qp_state to : {NTBV_RTR, NTBV_RTS, NTBV_SQD, NTBV_SQE})
                EXPECT_FALSE(allowed(type, NTBV_RESET, to, mask));
            for (const ntbv_qp_state to : {NTBV_RTS, NTBV_SQD, NTBV_SQE})
                EXPECT_FALSE(allowed(type, NTBV_INIT, to, mask));
            for (const ntbv_qp_state to : {NTBV_INIT, NTBV_RTR, NTBV_SQD, NTBV_SQE})
                EXPECT_FALSE(allowed(type, NTBV_RTR, to, mask));
            for (const ntbv_qp_state to : {NTBV_INIT, NTBV_RTR, NTBV_SQE})
                EXPECT_FALSE(allowed(type, NTBV_RTS, to, mask));
            for (const ntbv_qp_state to : {NTBV_INIT, NTBV_RTR, NTBV_RTS, NTBV_SQD, NTBV_SQE})
                EXPECT_FALSE(allowed(type, NTBV_ERR, to, mask));
        }
    EXPECT_TRUE(allowed(NTBV_UD, NTBV_SQE, NTBV_RTS, state));
    EXPECT_FALSE(allowed(NTBV_RC, NTBV_SQE, NTBV_RTS, state)) << "RC has no SQE";
}

TEST(Attributes, AreCheckedWhereTheyCount)
{
    using ntb::verbs::valid;
    ntbv_qp_attr attr = {};
    attr.port = 1;
    attr.path_mtu = 5;
    attr.dest_lid = 1;
    constexpr unsigned all = (1u << 21) - 1;
    EXPECT_TRUE(valid(attr, all));
    const auto refuses = [&attr](auto ntbv_qp_attr::*member, auto value, unsigned bit) {
        ntbv_qp_attr changed = attr;
        changed.*member = static_cast<std::remove_reference_t<decltype(changed.*member)>>(value);
        EXPECT_FALSE(valid(changed, all)) << bit;
        EXPECT_TRUE(valid(changed, all & ~bit)) << bit;
    };
    refuses(&ntbv_qp_attr::access, 16, NTBV_QP_ACCESS);
    refuses(&ntbv_qp_attr::pkey_index, 1, NTBV_QP_PKEY_INDEX);
    refuses(&ntbv_qp_attr::port, 2, NTBV_QP_PORT);
    refuses(&ntbv_qp_attr::path_mtu, 6, NTBV_QP_PATH_MTU);
    refuses(&ntbv_qp_attr::timeout, 32, NTBV_QP_TIMEOUT);
    refuses(&ntbv_qp_attr::retry_cnt, 8, NTBV_QP_RETRY_CNT);
    refuses(&ntbv_qp_attr::rnr_retry, 8, NTBV_QP_RNR_RETRY);
    refuses(&ntbv_qp_attr::max_rd_atomic, 129, NTBV_QP_MAX_RD_ATOMIC);
    refuses(&ntbv_qp_attr::max_dest_rd_atomic, 129, NTBV_QP_MAX_DEST_RD_ATOMIC);
    refuses(&ntbv_qp_attr::min_rnr_timer, 32, NTBV_QP_MIN_RNR_TIMER);
    refuses(&ntbv_qp_attr::dest_lid, 0xc000, NTBV_QP_AV);
    refuses(&ntbv_qp_attr::dest_qpn, 0x1000000, NTBV_QP_DEST_QPN);
}

TEST(Attributes, OnlyThoseOfTheMaskAreTaken)
{
    ntbv_qp_attr from = {}, to = {};
    from.sq_psn = 0x12345678;
    from.timeout = 14;
    from.qkey = 5;
    ntb::verbs::merge(from, NTBV_QP_SQ_PSN | NTBV_QP_TIMEOUT, to);
    EXPECT_EQ(to.sq_psn, 0x345678u) << "24 bits";
    EXPECT_EQ(to.timeout, 14);
    EXPECT_EQ(to.qkey, 0u);
}

} // namespace

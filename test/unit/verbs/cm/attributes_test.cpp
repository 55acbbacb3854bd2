// SPDX-License-Identifier: BSD-3-Clause
#include "cm/manager.hpp"

#include <gtest/gtest.h>

#include "ntbv.h"

using namespace ntb::verbs::cm;

namespace
{

Id connected(std::uint8_t type)
{
    Id id;
    id.type = type;
    id.has_device = true;
    id.psn = 11;
    id.peer.qpn = 22;
    id.peer.psn = 33;
    id.peer.lid = 44;
    id.responder_resources = 5;
    id.initiator_depth = 6;
    id.retry_count = 3;
    id.rnr_retry_count = 2;
    return id;
}

TEST(CmAttributes, EachStateHasWhatTheEngineWants)
{
    const Id id = connected(type_rc);
    ib_uverbs_qp_attr attr;
    ASSERT_EQ(queue_pair_attributes(id, NTBV_INIT, attr), 0);
    EXPECT_EQ(attr.qp_attr_mask,
              std::uint32_t{NTBV_QP_STATE | NTBV_QP_ACCESS | NTBV_QP_PKEY_INDEX | NTBV_QP_PORT});
    EXPECT_EQ(attr.qp_access_flags,
              std::uint32_t{NTBV_REMOTE_WRITE | NTBV_REMOTE_READ | NTBV_REMOTE_ATOMIC});
    EXPECT_EQ(attr.port_num, 1);
    ASSERT_EQ(queue_pair_attributes(id, NTBV_RTR, attr), 0);
    EXPECT_EQ(attr.qp_attr_mask,
              std::uint32_t{NTBV_QP_STATE | NTBV_QP_AV | NTBV_QP_PATH_MTU | NTBV_QP_DEST_QPN |
                            NTBV_QP_RQ_PSN | NTBV_QP_MAX_DEST_RD_ATOMIC | NTBV_QP_MIN_RNR_TIMER});
    EXPECT_EQ(attr.ah_attr.dlid, 44);
    EXPECT_EQ(attr.dest_qp_num, 22u);
    EXPECT_EQ(attr.rq_psn, 11u);
    EXPECT_EQ(attr.max_dest_rd_atomic, 5);
    ASSERT_EQ(queue_pair_attributes(id, NTBV_RTS, attr), 0);
    EXPECT_EQ(attr.qp_attr_mask,
              std::uint32_t{NTBV_QP_STATE | NTBV_QP_SQ_PSN | NTBV_QP_TIMEOUT | NTBV_QP_RETRY_CNT |
                            NTBV_QP_RNR_RETRY | NTBV_QP_MAX_RD_ATOMIC});
    EXPECT_EQ(attr.sq_psn, 33u);
    EXPECT_EQ(attr.retry_cnt, 3);
    EXPECT_EQ(attr.rnr_retry, 2);
    EXPECT_EQ(attr.max_rd_atomic, 6);
}

TEST(CmAttributes, OtherTypesHaveLess)
{
    ib_uverbs_qp_attr attr;
    ASSERT_EQ(queue_pair_attributes(connected(type_uc), NTBV_RTS, attr), 0);
    EXPECT_EQ(attr.qp_attr_mask, std::uint32_t{NTBV_QP_STATE | NTBV_QP_SQ_PSN});
    Id datagrams;
    datagrams.type = type_ud;
    datagrams.has_device = true;
    ASSERT_EQ(queue_pair_attributes(datagrams, NTBV_INIT, attr), 0);
    EXPECT_EQ(attr.qp_attr_mask,
              std::uint32_t{NTBV_QP_STATE | NTBV_QP_QKEY | NTBV_QP_PKEY_INDEX | NTBV_QP_PORT});
    EXPECT_EQ(attr.qkey, 0x01234567u);
    ASSERT_EQ(queue_pair_attributes(datagrams, NTBV_RTR, attr), 0);
    EXPECT_EQ(attr.qp_attr_mask, std::uint32_t{NTBV_QP_STATE});
}

TEST(CmAttributes, BeforeThePeerIsKnownThereIsOnlyTheFirstState)
{
    Id id = connected(type_rc);
    id.peer.lid = 0;
    ib_uverbs_qp_attr attr;
    ASSERT_EQ(queue_pair_attributes(id, NTBV_INIT, attr), 0);
    EXPECT_EQ(attr.qp_access_flags, 0u);
    EXPECT_EQ(queue_pair_attributes(id, NTBV_RTR, attr), -EINVAL);
    EXPECT_EQ(queue_pair_attributes(id, NTBV_RTS, attr), -EINVAL);
    EXPECT_EQ(queue_pair_attributes(connected(type_rc), NTBV_ERR, attr), -EINVAL);
    EXPECT_EQ(queue_pair_attributes(connected(type_rc), 99, attr), -EINVAL);
    id.has_device = false;
    EXPECT_EQ(queue_pair_attributes(id, NTBV_INIT, attr), -EINVAL);
}

} // namespace

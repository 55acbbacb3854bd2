// SPDX-License-Identifier: BSD-3-Clause
// What librdmacm gives to ibv_modify_qp() on a program's behalf.
#include "cm/manager.hpp"

#include "ntbv.h"

namespace ntb::verbs::cm
{
namespace
{

constexpr std::uint32_t datagram_qkey = 0x01234567;
constexpr std::uint8_t mtu_4096 = 5;
// 4.096 us x 2^18, a second: between tries where the peer's queue pair is not there yet.
constexpr std::uint8_t answer_timeout = 18;

void set_init(const Id &id, ib_uverbs_qp_attr &attr)
{
    attr.qp_attr_mask |= NTBV_QP_PKEY_INDEX | NTBV_QP_PORT;
    attr.port_num = 1;
    if (id.type == type_ud) {
        attr.qp_attr_mask |= NTBV_QP_QKEY;
        attr.qkey = datagram_qkey;
        return;
    }
    attr.qp_attr_mask |= NTBV_QP_ACCESS;
    // The peer's rights are known once it has said what it wants.
    if (id.peer.lid == 0)
        return;
    attr.qp_access_flags = NTBV_REMOTE_WRITE;
    if (id.type == type_rc && id.responder_resources != 0)
        attr.qp_access_flags |= NTBV_REMOTE_READ | NTBV_REMOTE_ATOMIC;
}

void set_rtr(const Id &id, ib_uverbs_qp_attr &attr)
{
    attr.qp_attr_mask |= NTBV_QP_AV | NTBV_QP_PATH_MTU | NTBV_QP_DEST_QPN | NTBV_QP_RQ_PSN;
    attr.ah_attr.dlid = id.peer.lid;
    attr.ah_attr.port_num = 1;
    attr.path_mtu = mtu_4096;
    attr.dest_qp_num = id.peer.qpn;
    attr.rq_psn = id.psn;
    if (id.type != type_rc)
        return;
    attr.qp_attr_mask |= NTBV_QP_MAX_DEST_RD_ATOMIC | NTBV_QP_MIN_RNR_TIMER;
    attr.max_dest_rd_atomic = id.responder_resources;
}

void set_rts(const Id &id, ib_uverbs_qp_attr &attr)
{
    attr.qp_attr_mask |= NTBV_QP_SQ_PSN;
    attr.sq_psn = id.peer.psn;
    if (id.type != type_rc)
        return;
    attr.qp_attr_mask |=
        NTBV_QP_TIMEOUT | NTBV_QP_RETRY_CNT | NTBV_QP_RNR_RETRY | NTBV_QP_MAX_RD_ATOMIC;
    attr.timeout = answer_timeout;
    attr.retry_cnt = id.retry_count;
    attr.rnr_retry = id.rnr_retry_count;
    attr.max_rd_atomic = id.initiator_depth;
}

} // namespace

int queue_pair_attributes(const Id &id, std::uint32_t qp_state, ib_uverbs_qp_attr &attr)
{
    attr = {};
    attr.qp_state = qp_state;
    attr.qp_attr_mask = NTBV_QP_STATE;
    const bool is_connected = id.type != type_ud;
    if (!id.has_device || (is_connected && qp_state != NTBV_INIT && id.peer.lid == 0))
        return -EINVAL;
    switch (qp_state) {
    case NTBV_INIT:
        set_init(id, attr);
        return 0;
    case NTBV_RTR:
        if (is_connected)
            set_rtr(id, attr);
        return 0;
    case NTBV_RTS:
        set_rts(id, attr);
        return 0;
    default:
        return -EINVAL;
    }
}

} // namespace ntb::verbs::cm

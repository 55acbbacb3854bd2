// SPDX-License-Identifier: BSD-3-Clause
// Queue pairs with the usual attributes, and requests of one piece: for tests of any kind.
#ifndef NTB_TEST_VERBS_QUEUE_PAIRS_HPP
#define NTB_TEST_VERBS_QUEUE_PAIRS_HPP

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "ntbv.h"

namespace verbs_test
{

constexpr unsigned all_rights =
    NTBV_LOCAL_WRITE | NTBV_REMOTE_WRITE | NTBV_REMOTE_READ | NTBV_REMOTE_ATOMIC;

inline ntbv_qp_attr attributes()
{
    ntbv_qp_attr attr = {};
    attr.port = 1;
    attr.path_mtu = 5;
    attr.access = all_rights;
    attr.qkey = 0x1234;
    attr.max_rd_atomic = attr.max_dest_rd_atomic = 16;
    attr.min_rnr_timer = 12; // 640 us
    attr.timeout = 14;       // 67 ms
    attr.retry_cnt = 7;
    attr.rnr_retry = 7;
    return attr;
}

constexpr unsigned init_mask = NTBV_QP_STATE | NTBV_QP_PKEY_INDEX | NTBV_QP_PORT;
constexpr unsigned uc_rtr_mask =
    NTBV_QP_STATE | NTBV_QP_AV | NTBV_QP_PATH_MTU | NTBV_QP_DEST_QPN | NTBV_QP_RQ_PSN;
constexpr unsigned rc_rtr_mask = uc_rtr_mask | NTBV_QP_MAX_DEST_RD_ATOMIC | NTBV_QP_MIN_RNR_TIMER;
constexpr unsigned uc_rts_mask = NTBV_QP_STATE | NTBV_QP_SQ_PSN;
constexpr unsigned rc_rts_mask =
    uc_rts_mask | NTBV_QP_TIMEOUT | NTBV_QP_RETRY_CNT | NTBV_QP_RNR_RETRY | NTBV_QP_MAX_RD_ATOMIC;

inline int to_init(ntbv_qp *qp, ntbv_qp_type type, ntbv_qp_attr attr = attributes())
{
    attr.state = NTBV_INIT;
    return ntbv_qp_modify(qp, &attr, init_mask | (type == NTBV_UD ? NTBV_QP_QKEY : NTBV_QP_ACCESS));
}

inline int to_rtr(ntbv_qp *qp, ntbv_qp_type type, std::uint16_t lid, std::uint32_t number,
                  ntbv_qp_attr attr = attributes())
{
    attr.state = NTBV_RTR;
    attr.dest_lid = lid;
    attr.dest_qpn = number;
    return ntbv_qp_modify(qp, &attr,
                          type == NTBV_RC   ? rc_rtr_mask
                          : type == NTBV_UC ? uc_rtr_mask
                                            : unsigned{NTBV_QP_STATE});
}

inline int to_rts(ntbv_qp *qp, ntbv_qp_type type, ntbv_qp_attr attr = attributes())
{
    attr.state = NTBV_RTS;
    return ntbv_qp_modify(qp, &attr, type == NTBV_RC ? rc_rts_mask : uc_rts_mask);
}

inline int to_state(ntbv_qp *qp, ntbv_qp_state state)
{
    ntbv_qp_attr attr = {};
    attr.state = state;
    return ntbv_qp_modify(qp, &attr, NTBV_QP_STATE);
}

/// A request with one piece or none; further fields are the test's.
struct Work {
    ntbv_sge sge = {};
    ntbv_send_wr wr = {};
    Work(ntbv_opcode opcode, std::uint64_t id, ntbv_sge piece = {}, unsigned flags = NTBV_SIGNALED)
        : sge(piece)
    {
        wr.id = id;
        wr.opcode = opcode;
        wr.flags = flags;
        wr.n_sge = piece.length != 0;
    }
    /// What has an address and a key.
    template <typename Memory>
    Work &to(const Memory &memory, std::size_t offset = 0)
    {
        wr.remote_address = memory.address() + offset;
        wr.remote_key = memory.key;
        return *this;
    }
    Work &imm(std::uint32_t value)
    {
        wr.imm = value;
        return *this;
    }
    /// @return that of ntbv_qp_post_send(), or -EBADMSG if it names another request as the bad one
    int post(ntbv_qp *qp)
    {
        wr.sge = &sge;
        const ntbv_send_wr *bad = nullptr;
        const int error = ntbv_qp_post_send(qp, &wr, &bad);
        return bad == (error != 0 ? &wr : nullptr) ? error : -EBADMSG;
    }
};

inline int post_recv(ntbv_qp *qp, std::uint64_t id, ntbv_sge piece = {})
{
    ntbv_recv_wr wr = {id, nullptr, &piece, piece.length != 0};
    const ntbv_recv_wr *bad = nullptr;
    return ntbv_qp_post_recv(qp, &wr, &bad);
}

inline int post_srq(ntbv_srq *srq, std::uint64_t id, ntbv_sge piece = {})
{
    ntbv_recv_wr wr = {id, nullptr, &piece, piece.length != 0};
    const ntbv_recv_wr *bad = nullptr;
    return ntbv_srq_post(srq, &wr, &bad);
}

} // namespace verbs_test

#endif

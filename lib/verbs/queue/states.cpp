// SPDX-License-Identifier: BSD-3-Clause
#include "queue/states.hpp"

#include "wire/address.hpp"

namespace ntb::verbs
{
namespace
{

struct Attributes {
    unsigned mandatory;
    unsigned optional;
};

struct Transition {
    ntbv_qp_state from, to;
    Attributes rc, uc, ud;
};

constexpr unsigned index_port = NTBV_QP_PKEY_INDEX | NTBV_QP_PORT;
constexpr unsigned with_access = index_port | NTBV_QP_ACCESS;
constexpr unsigned with_qkey = index_port | NTBV_QP_QKEY;
constexpr unsigned path = NTBV_QP_AV | NTBV_QP_PATH_MTU | NTBV_QP_DEST_QPN | NTBV_QP_RQ_PSN;
constexpr unsigned current = NTBV_QP_CUR_STATE;
constexpr unsigned retries = NTBV_QP_TIMEOUT | NTBV_QP_RETRY_CNT | NTBV_QP_RNR_RETRY |
                             NTBV_QP_MAX_RD_ATOMIC | NTBV_QP_SQ_PSN;
// From SQD a connected queue pair may change nearly all of its path.
constexpr unsigned path_again = NTBV_QP_PORT | NTBV_QP_AV | NTBV_QP_TIMEOUT | NTBV_QP_RETRY_CNT |
                                NTBV_QP_RNR_RETRY | NTBV_QP_MAX_RD_ATOMIC |
                                NTBV_QP_MAX_DEST_RD_ATOMIC | NTBV_QP_ACCESS | NTBV_QP_PKEY_INDEX |
                                NTBV_QP_MIN_RNR_TIMER;

// InfiniBand specification, volume 1, "Modify Queue Pair". To RESET and ERR: from everywhere,
// alone.
constexpr Transition transitions[] = {
    {NTBV_RESET, NTBV_INIT, {with_access, 0}, {with_access, 0}, {with_qkey, 0}},
    {NTBV_INIT, NTBV_INIT, {0, with_access}, {0, with_access}, {0, with_qkey}},
    {NTBV_INIT,
     NTBV_RTR,
     {path | NTBV_QP_MAX_DEST_RD_ATOMIC | NTBV_QP_MIN_RNR_TIMER,
      NTBV_QP_ACCESS | NTBV_QP_PKEY_INDEX},
     {path, NTBV_QP_ACCESS | NTBV_QP_PKEY_INDEX},
     {0, NTBV_QP_PKEY_INDEX | NTBV_QP_QKEY}},
    {NTBV_RTR,
     NTBV_RTS,
     {retries, current | NTBV_QP_ACCESS | NTBV_QP_MIN_RNR_TIMER},
     {NTBV_QP_SQ_PSN, current | NTBV_QP_ACCESS},
     {NTBV_QP_SQ_PSN, current | NTBV_QP_QKEY}},
    {NTBV_RTS,
     NTBV_RTS,
     {0, current | NTBV_QP_ACCESS | NTBV_QP_MIN_RNR_TIMER},
     {0, current | NTBV_QP_ACCESS},
     {0, current | NTBV_QP_QKEY}},
    {NTBV_RTS, NTBV_SQD, {0, NTBV_QP_SQD_NOTIFY}, {0, NTBV_QP_SQD_NOTIFY}, {0, NTBV_QP_SQD_NOTIFY}},
    {NTBV_SQD,
     NTBV_RTS,
     {0, current | NTBV_QP_ACCESS | NTBV_QP_MIN_RNR_TIMER},
     {0, current | NTBV_QP_ACCESS},
     {0, current | NTBV_QP_QKEY}},
    {NTBV_SQD,
     NTBV_SQD,
     {0, path_again},
     {0, NTBV_QP_AV | NTBV_QP_ACCESS | NTBV_QP_PKEY_INDEX},
     {0, NTBV_QP_PKEY_INDEX | NTBV_QP_QKEY}},
    // RC has no SQE.
    {NTBV_SQE, NTBV_RTS, {~0u, 0}, {0, current | NTBV_QP_ACCESS}, {0, current | NTBV_QP_QKEY}},
};

} // namespace

bool allowed(ntbv_qp_type type, ntbv_qp_state from, ntbv_qp_state to, unsigned mask)
{
    mask &= ~static_cast<unsigned>(NTBV_QP_STATE);
    if (to == NTBV_RESET || to == NTBV_ERR)
        return mask == 0;
    for (const Transition &transition : transitions) {
        if (transition.from != from || transition.to != to)
            continue;
        const Attributes &of = type == NTBV_RC   ? transition.rc
                               : type == NTBV_UC ? transition.uc
                                                 : transition.ud;
        return (mask & of.mandatory) == of.mandatory && (mask & ~(of.mandatory | of.optional)) == 0;
    }
    return false;
}

bool valid(const ntbv_qp_attr &attr, unsigned mask)
{
    const auto bad = [mask](unsigned bit, bool wrong) { return (mask & bit) != 0 && wrong; };
    constexpr unsigned rights =
        NTBV_LOCAL_WRITE | NTBV_REMOTE_WRITE | NTBV_REMOTE_READ | NTBV_REMOTE_ATOMIC;
    return !bad(NTBV_QP_ACCESS, (attr.access & ~rights) != 0) &&
           !bad(NTBV_QP_PKEY_INDEX, attr.pkey_index != 0) && !bad(NTBV_QP_PORT, attr.port != 1) &&
           !bad(NTBV_QP_PATH_MTU, attr.path_mtu < 1 || attr.path_mtu > 5) &&
           !bad(NTBV_QP_TIMEOUT, attr.timeout > 31) &&
           !bad(NTBV_QP_RETRY_CNT, attr.retry_cnt > 7) &&
           !bad(NTBV_QP_RNR_RETRY, attr.rnr_retry > 7) &&
           !bad(NTBV_QP_MAX_RD_ATOMIC, attr.max_rd_atomic > NTBV_MAX_READS) &&
           !bad(NTBV_QP_MAX_DEST_RD_ATOMIC, attr.max_dest_rd_atomic > NTBV_MAX_READS) &&
           !bad(NTBV_QP_MIN_RNR_TIMER, attr.min_rnr_timer > 31) &&
           !bad(NTBV_QP_AV, !is_lid(attr.dest_lid)) &&
           !bad(NTBV_QP_DEST_QPN, attr.dest_qpn > 0xffffff);
}

void merge(const ntbv_qp_attr &from, unsigned mask, ntbv_qp_attr &to)
{
    const auto copy = [mask](unsigned bit, const auto &source, auto &target) {
        if ((mask & bit) != 0)
            target = source;
    };
    copy(NTBV_QP_ACCESS, from.access, to.access);
    copy(NTBV_QP_PKEY_INDEX, from.pkey_index, to.pkey_index);
    copy(NTBV_QP_PORT, from.port, to.port);
    copy(NTBV_QP_QKEY, from.qkey, to.qkey);
    copy(NTBV_QP_AV, from.dest_lid, to.dest_lid);
    copy(NTBV_QP_PATH_MTU, from.path_mtu, to.path_mtu);
    copy(NTBV_QP_TIMEOUT, from.timeout, to.timeout);
    copy(NTBV_QP_RETRY_CNT, from.retry_cnt, to.retry_cnt);
    copy(NTBV_QP_RNR_RETRY, from.rnr_retry, to.rnr_retry);
    copy(NTBV_QP_MAX_RD_ATOMIC, from.max_rd_atomic, to.max_rd_atomic);
    copy(NTBV_QP_MAX_DEST_RD_ATOMIC, from.max_dest_rd_atomic, to.max_dest_rd_atomic);
    copy(NTBV_QP_MIN_RNR_TIMER, from.min_rnr_timer, to.min_rnr_timer);
    copy(NTBV_QP_DEST_QPN, from.dest_qpn, to.dest_qpn);
    copy(NTBV_QP_SQD_NOTIFY, from.sqd_notify, to.sqd_notify);
    // The specification's numbers have 24 bits; what is above is cut off, as adapters do.
    if ((mask & NTBV_QP_SQ_PSN) != 0)
        to.sq_psn = from.sq_psn & 0xffffff;
    if ((mask & NTBV_QP_RQ_PSN) != 0)
        to.rq_psn = from.rq_psn & 0xffffff;
}

} // namespace ntb::verbs

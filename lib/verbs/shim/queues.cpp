// SPDX-License-Identifier: BSD-3-Clause
// Completion queues, shared receive queues, queue pairs: their life and their states.
#include <cerrno>
#include <cstddef>

#include "shim/objects.hpp"

namespace ntb::verbs::shim
{
namespace
{

constexpr std::uint32_t async_record = 16, completion_record = 8;

// The program has acknowledged all its events: until then it may still use what
// they name.
template <typename Object>
void await_acknowledged(Object &object, const std::uint32_t &acknowledged,
                        const std::uint32_t &reported)
{
    pthread_mutex_lock(&object.mutex);
    while (acknowledged != reported)
        pthread_cond_wait(&object.cond, &object.mutex);
    pthread_mutex_unlock(&object.mutex);
}

// ---- completion queues

ibv_cq *create_cq(ibv_context *context, int entries, ibv_comp_channel *channel, int vector)
{
    auto *cq = make<OwnCq>();
    if (!cq)
        return nullptr;
    if (entries < 1 || vector != 0)
        return fail(cq, -EINVAL);
    const int error =
        ntbv_cq_create(context_of(context)->engine, static_cast<std::uint32_t>(entries),
                       channel ? own<Channel>(channel)->own : nullptr,
                       reinterpret_cast<std::uintptr_t>(cq), &cq->own);
    if (error != 0)
        return fail(cq, error);
    cq->base.cq.cqe = entries;
    return &cq->base.cq;
}

ibv_cq_ex *create_cq_ex(ibv_context *context, ibv_cq_init_attr_ex *init)
{
    const bool has_flags = (init->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) != 0;
    const std::uint32_t unknown = init->comp_mask & ~std::uint32_t{IBV_CQ_INIT_ATTR_MASK_FLAGS};
    // The queue has a lock whether one thread polls it or several.
    if (unknown != 0 || (init->wc_flags & ~std::uint64_t{IBV_WC_STANDARD_FLAGS}) != 0 ||
        (has_flags && (init->flags & ~std::uint32_t{IBV_CREATE_CQ_ATTR_SINGLE_THREADED}) != 0)) {
        errno = EOPNOTSUPP;
        return nullptr;
    }
    if (init->cqe > NTBV_MAX_CQE) {
        errno = EINVAL;
        return nullptr;
    }
    ibv_cq *cq = create_cq(context, static_cast<int>(init->cqe), init->channel,
                           static_cast<int>(init->comp_vector));
    if (!cq)
        return nullptr;
    ibv_cq_ex &extended = own<OwnCq>(cq)->base.extended;
    set_extended_calls(extended);
    return &extended;
}

int resize_cq(ibv_cq *cq, int entries)
{
    const int error =
        entries < 1 ? -EINVAL
                    : ntbv_cq_resize(own<OwnCq>(cq)->own, static_cast<std::uint32_t>(entries));
    if (error == 0)
        cq->cqe = entries;
    return -error;
}

int destroy_cq(ibv_cq *cq)
{
    auto *const object = own<OwnCq>(cq);
    const int error = ntbv_cq_destroy(object->own);
    if (error != 0)
        return -error;
    if (cq->channel)
        forget_events(cq->channel->fd, completion_record, cq);
    forget_events(cq->context->async_fd, async_record, cq);
    await_acknowledged(*cq, cq->comp_events_completed, object->reported);
    await_acknowledged(*cq, cq->async_events_completed, object->reported_async);
    free(object);
    return 0;
}

int req_notify_cq(ibv_cq *cq, int solicited_only)
{
    return -ntbv_cq_arm(own<OwnCq>(cq)->own, solicited_only);
}

// ---- shared receive queues

ibv_srq *create_srq(ibv_pd *pd, ibv_srq_init_attr *init)
{
    auto *srq = make<OwnSrq>();
    if (!srq)
        return nullptr;
    const ibv_srq_attr &attr = init->attr;
    const int error = ntbv_srq_create(own<Domain>(pd)->own, attr.max_wr, attr.max_sge, 0,
                                      reinterpret_cast<std::uintptr_t>(srq), &srq->own);
    if (error != 0)
        return fail(srq, error);
    srq->max_wr = attr.max_wr;
    srq->max_sge = attr.max_sge;
    return &srq->base.srq;
}

int modify_srq(ibv_srq *srq, ibv_srq_attr *attr, int mask)
{
    return -ntbv_srq_modify(own<OwnSrq>(srq)->own, static_cast<unsigned>(mask), attr->srq_limit);
}

int query_srq(ibv_srq *srq, ibv_srq_attr *attr)
{
    const auto *const object = own<OwnSrq>(srq);
    *attr = {object->max_wr, object->max_sge, ntbv_srq_limit(object->own)};
    return 0;
}

int destroy_srq(ibv_srq *srq)
{
    auto *const object = own<OwnSrq>(srq);
    const int error = ntbv_srq_destroy(object->own);
    if (error != 0)
        return -error;
    forget_events(srq->context->async_fd, async_record, srq);
    await_acknowledged(*srq, srq->events_completed, object->reported_async);
    free(object);
    return 0;
}

// ---- queue pairs

ntbv_qp_type type_of(ibv_qp_type type)
{
    static_assert(int{IBV_QPT_RC} == NTBV_RC && int{IBV_QPT_UC} == NTBV_UC &&
                  int{IBV_QPT_UD} == NTBV_UD);
    return static_cast<ntbv_qp_type>(type);
}

ibv_qp *create_qp(ibv_pd *pd, ibv_qp_init_attr *init)
{
    auto *object = make<OwnQp>();
    if (!object)
        return nullptr;
    ntbv_qp_init own_init = {};
    own_init.type = type_of(init->qp_type);
    own_init.send_cq = init->send_cq ? own<OwnCq>(init->send_cq)->own : nullptr;
    own_init.recv_cq = init->recv_cq ? own<OwnCq>(init->recv_cq)->own : nullptr;
    own_init.srq = init->srq ? own<OwnSrq>(init->srq)->own : nullptr;
    own_init.max_send_wr = init->cap.max_send_wr;
    own_init.max_recv_wr = init->cap.max_recv_wr;
    own_init.max_send_sge = init->cap.max_send_sge;
    own_init.max_recv_sge = init->cap.max_recv_sge;
    own_init.max_inline = init->cap.max_inline_data;
    own_init.signal_all = init->sq_sig_all;
    own_init.cookie = reinterpret_cast<std::uintptr_t>(object);
    const int error = ntbv_qp_create(own<Domain>(pd)->own, &own_init, &object->own);
    if (error != 0)
        return fail(object, error);
    object->cap = init->cap = {own_init.max_send_wr, own_init.max_recv_wr, own_init.max_send_sge,
                               own_init.max_recv_sge, own_init.max_inline};
    object->signal_all = init->sq_sig_all;
    ibv_qp &qp = object->base.qp;
    qp.context = pd->context;
    qp.qp_context = init->qp_context;
    qp.pd = pd;
    qp.send_cq = init->send_cq;
    qp.recv_cq = init->recv_cq;
    qp.srq = init->srq;
    qp.qp_num = ntbv_qp_number(object->own);
    qp.state = IBV_QPS_RESET;
    qp.qp_type = init->qp_type;
    pthread_mutex_init(&qp.mutex, nullptr);
    pthread_cond_init(&qp.cond, nullptr);
    return &qp;
}

int destroy_qp(ibv_qp *qp)
{
    auto *const object = own<OwnQp>(qp);
    const int error = ntbv_qp_destroy(object->own);
    if (error != 0)
        return -error;
    forget_events(qp->context->async_fd, async_record, qp);
    await_acknowledged(*qp, qp->events_completed, object->reported_async);
    free_batch(object->batch);
    free(object);
    return 0;
}

// Of what an extended call adds, the domain and extended posting are there, and no creation flag.
ibv_qp *create_qp_ex(ibv_context *, ibv_qp_init_attr_ex *init)
{
    const bool extended = (init->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0;
    const std::uint32_t known =
        IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS | IBV_QP_INIT_ATTR_CREATE_FLAGS;
    const bool has_flags =
        (init->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) != 0 && init->create_flags != 0;
    if ((init->comp_mask & ~known) != 0 || has_flags ||
        (extended && !can_post_extended(init->qp_type, init->send_ops_flags))) {
        errno = EOPNOTSUPP;
        return nullptr;
    }
    if ((init->comp_mask & IBV_QP_INIT_ATTR_PD) == 0) {
        errno = EINVAL;
        return nullptr;
    }
    // Both begin alike, up to the mask.
    static_assert(offsetof(ibv_qp_init_attr_ex, sq_sig_all) ==
                  offsetof(ibv_qp_init_attr, sq_sig_all));
    ibv_qp *qp = create_qp(init->pd, reinterpret_cast<ibv_qp_init_attr *>(init));
    if (qp && extended && !make_extended(*own<OwnQp>(qp))) {
        destroy_qp(qp);
        errno = ENOMEM;
        return nullptr;
    }
    return qp;
}

// States and bits of the mask have the numbers of the specification in both.
static_assert(int{IBV_QPS_ERR} == NTBV_ERR && int{IBV_QP_DEST_QPN} == NTBV_QP_DEST_QPN &&
              int{IBV_QP_MAX_DEST_RD_ATOMIC} == NTBV_QP_MAX_DEST_RD_ATOMIC &&
              int{IBV_QP_RQ_PSN} == NTBV_QP_RQ_PSN);

int modify_qp(ibv_qp *qp, ibv_qp_attr *attr, int mask)
{
    constexpr unsigned rights =
        NTBV_LOCAL_WRITE | NTBV_REMOTE_WRITE | NTBV_REMOTE_READ | NTBV_REMOTE_ATOMIC;
    ntbv_qp_attr own_attr = {};
    own_attr.state = static_cast<ntbv_qp_state>(attr->qp_state);
    own_attr.cur_state = static_cast<ntbv_qp_state>(attr->cur_qp_state);
    if ((mask & IBV_QP_ACCESS_FLAGS) != 0)
        own_attr.access = attr->qp_access_flags & rights;
    own_attr.qkey = attr->qkey;
    own_attr.rq_psn = attr->rq_psn;
    own_attr.sq_psn = attr->sq_psn;
    own_attr.dest_qpn = attr->dest_qp_num;
    if ((mask & IBV_QP_AV) != 0) {
        if (attr->ah_attr.port_num != 1)
            return EINVAL;
        own_attr.dest_lid = attr->ah_attr.dlid;
    }
    own_attr.pkey_index = attr->pkey_index;
    own_attr.port = attr->port_num;
    own_attr.path_mtu = static_cast<std::uint8_t>(attr->path_mtu);
    own_attr.max_rd_atomic = attr->max_rd_atomic;
    own_attr.max_dest_rd_atomic = attr->max_dest_rd_atomic;
    own_attr.min_rnr_timer = attr->min_rnr_timer;
    own_attr.timeout = attr->timeout;
    own_attr.retry_cnt = attr->retry_cnt;
    own_attr.rnr_retry = attr->rnr_retry;
    own_attr.sqd_notify = attr->en_sqd_async_notify;
    return -ntbv_qp_modify(own<OwnQp>(qp)->own, &own_attr, static_cast<unsigned>(mask));
}

int query_qp(ibv_qp *qp, ibv_qp_attr *attr, int, ibv_qp_init_attr *init)
{
    const auto *const object = own<OwnQp>(qp);
    ntbv_qp_attr own_attr;
    const int error = ntbv_qp_query(object->own, &own_attr);
    if (error != 0)
        return -error;
    *attr = {};
    attr->qp_state = static_cast<ibv_qp_state>(own_attr.state);
    attr->cur_qp_state = static_cast<ibv_qp_state>(own_attr.cur_state);
    attr->path_mtu = static_cast<ibv_mtu>(own_attr.path_mtu);
    attr->path_mig_state = IBV_MIG_MIGRATED;
    attr->qkey = own_attr.qkey;
    attr->rq_psn = own_attr.rq_psn;
    attr->sq_psn = own_attr.sq_psn;
    attr->dest_qp_num = own_attr.dest_qpn;
    attr->qp_access_flags = own_attr.access;
    attr->cap = object->cap;
    attr->ah_attr.dlid = own_attr.dest_lid;
    attr->ah_attr.port_num = own_attr.port;
    attr->pkey_index = own_attr.pkey_index;
    attr->max_rd_atomic = own_attr.max_rd_atomic;
    attr->max_dest_rd_atomic = own_attr.max_dest_rd_atomic;
    attr->min_rnr_timer = own_attr.min_rnr_timer;
    attr->port_num = own_attr.port;
    attr->timeout = own_attr.timeout;
    attr->retry_cnt = own_attr.retry_cnt;
    attr->rnr_retry = own_attr.rnr_retry;
    *init = {};
    init->qp_context = qp->qp_context;
    init->send_cq = qp->send_cq;
    init->recv_cq = qp->recv_cq;
    init->srq = qp->srq;
    init->cap = object->cap;
    init->qp_type = qp->qp_type;
    init->sq_sig_all = object->signal_all;
    return 0;
}

} // namespace

void set_queue_calls(Ops &ops)
{
    ops.set(Op::CreateCq, create_cq);
    ops.set(Op::CreateCqEx, create_cq_ex);
    ops.set(Op::ResizeCq, resize_cq);
    ops.set(Op::DestroyCq, destroy_cq);
    ops.set(Op::ReqNotifyCq, req_notify_cq);
    ops.set(Op::CreateSrq, create_srq);
    ops.set(Op::ModifySrq, modify_srq);
    ops.set(Op::QuerySrq, query_srq);
    ops.set(Op::DestroySrq, destroy_srq);
    ops.set(Op::CreateQp, create_qp);
    ops.set(Op::CreateQpEx, create_qp_ex);
    ops.set(Op::DestroyQp, destroy_qp);
    ops.set(Op::ModifyQp, modify_qp);
    ops.set(Op::QueryQp, query_qp);
}

} // namespace ntb::verbs::shim

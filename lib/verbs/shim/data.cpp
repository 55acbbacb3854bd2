// SPDX-License-Identifier: BSD-3-Clause
// Posting and polling. Where both sides have the same layout nothing is copied.
#include <cerrno>
#include <cstddef>

#include "shim/objects.hpp"

namespace ntb::verbs::shim
{
namespace
{

static_assert(sizeof(ibv_sge) == sizeof(ntbv_sge) && offsetof(ibv_sge, addr) == 0 &&
              offsetof(ntbv_sge, address) == 0 &&
              offsetof(ibv_sge, length) == offsetof(ntbv_sge, length) &&
              offsetof(ibv_sge, lkey) == offsetof(ntbv_sge, key));
static_assert(sizeof(ibv_send_wr) >= sizeof(ntbv_send_wr) && // one is read as the other
              offsetof(ibv_send_wr, wr_id) == offsetof(ntbv_send_wr, id) &&
              offsetof(ibv_send_wr, next) == offsetof(ntbv_send_wr, next) &&
              offsetof(ibv_send_wr, sg_list) == offsetof(ntbv_send_wr, sge) &&
              offsetof(ibv_send_wr, num_sge) == offsetof(ntbv_send_wr, n_sge) &&
              offsetof(ibv_send_wr, opcode) == offsetof(ntbv_send_wr, opcode) &&
              offsetof(ibv_send_wr, send_flags) == offsetof(ntbv_send_wr, flags) &&
              offsetof(ibv_send_wr, imm_data) == offsetof(ntbv_send_wr, imm) &&
              offsetof(ibv_send_wr, invalidate_rkey) == offsetof(ntbv_send_wr, imm) &&
              offsetof(ibv_send_wr, wr.rdma.remote_addr) ==
                  offsetof(ntbv_send_wr, remote_address) &&
              offsetof(ibv_send_wr, wr.rdma.rkey) == offsetof(ntbv_send_wr, remote_key));
static_assert(sizeof(ibv_recv_wr) == sizeof(ntbv_recv_wr) &&
              offsetof(ibv_recv_wr, wr_id) == offsetof(ntbv_recv_wr, id) &&
              offsetof(ibv_recv_wr, next) == offsetof(ntbv_recv_wr, next) &&
              offsetof(ibv_recv_wr, sg_list) == offsetof(ntbv_recv_wr, sge) &&
              offsetof(ibv_recv_wr, num_sge) == offsetof(ntbv_recv_wr, n_sge));
static_assert(int{IBV_WR_ATOMIC_FETCH_AND_ADD} == NTBV_FETCH_ADD &&
              int{IBV_WR_RDMA_WRITE} == NTBV_WRITE &&
              int{IBV_WR_RDMA_WRITE_WITH_IMM} == NTBV_WRITE_IMM &&
              int{IBV_WR_RDMA_READ} == NTBV_READ && int{IBV_WR_SEND} == NTBV_SEND &&
              int{IBV_WR_SEND_WITH_IMM} == NTBV_SEND_IMM && int{IBV_SEND_INLINE} == NTBV_INLINE &&
              int{IBV_SEND_FENCE} == NTBV_FENCE && int{IBV_WR_LOCAL_INV} == NTBV_LOCAL_INV &&
              int{IBV_WR_BIND_MW} == NTBV_BIND_MW && int{IBV_WR_SEND_WITH_INV} == NTBV_SEND_INV);
static_assert(int{IBV_WC_RNR_RETRY_EXC_ERR} == NTBV_RNR_RETRY_EXC_ERR &&
              int{IBV_WC_REM_ACCESS_ERR} == NTBV_REM_ACCESS_ERR &&
              int{IBV_WC_RECV_RDMA_WITH_IMM} == NTBV_WC_RECV_WRITE_IMM &&
              int{IBV_WC_FETCH_ADD} == NTBV_WC_FETCH_ADD && int{IBV_WC_GRH} == NTBV_WC_GRH &&
              int{IBV_WC_WITH_IMM} == NTBV_WC_WITH_IMM &&
              int{IBV_WC_WITH_INV} == NTBV_WC_WITH_INV && int{IBV_WC_BIND_MW} == NTBV_WC_BIND_MW &&
              int{IBV_WC_LOCAL_INV} == NTBV_WC_LOCAL_INV &&
              int{IBV_WC_MW_BIND_ERR} == NTBV_MW_BIND_ERR);
static_assert(sizeof(ibv_wc) == sizeof(ntbv_wc) &&
              offsetof(ibv_wc, wr_id) == offsetof(ntbv_wc, id) &&
              offsetof(ibv_wc, status) == offsetof(ntbv_wc, status) &&
              offsetof(ibv_wc, opcode) == offsetof(ntbv_wc, opcode) &&
              offsetof(ibv_wc, vendor_err) == offsetof(ntbv_wc, vendor_error) &&
              offsetof(ibv_wc, byte_len) == offsetof(ntbv_wc, bytes) &&
              offsetof(ibv_wc, imm_data) == offsetof(ntbv_wc, imm) &&
              offsetof(ibv_wc, qp_num) == offsetof(ntbv_wc, qpn) &&
              offsetof(ibv_wc, src_qp) == offsetof(ntbv_wc, source_qpn) &&
              offsetof(ibv_wc, wc_flags) == offsetof(ntbv_wc, flags) &&
              offsetof(ibv_wc, pkey_index) == offsetof(ntbv_wc, pkey_index) &&
              offsetof(ibv_wc, slid) == offsetof(ntbv_wc, source_lid) &&
              offsetof(ibv_wc, sl) == offsetof(ntbv_wc, service_level) &&
              offsetof(ibv_wc, dlid_path_bits) == offsetof(ntbv_wc, path_bits));
static_assert(int{IBV_ACCESS_MW_BIND} == NTBV_MW_BIND &&
              int{IBV_ACCESS_ZERO_BASED} == NTBV_ZERO_BASED);

// Requests that are converted at a time.
constexpr int burst = 16;

// To a peer that is known: a SEND, a write or a read. All that the engine uses of them is at the
// same offset.
bool has_same_layout(ibv_wr_opcode opcode)
{
    return opcode <= IBV_WR_RDMA_READ || opcode == IBV_WR_SEND_WITH_INV;
}

// Each field is stored once: to clear all of them first takes as long as all else here.
void convert(const ibv_send_wr &from, ibv_qp_type type, ntbv_send_wr &to, ntbv_bind &bind)
{
    to.id = from.wr_id;
    to.next = nullptr;
    to.sge = reinterpret_cast<const ntbv_sge *>(from.sg_list);
    to.n_sge = from.num_sge;
    to.opcode = from.opcode;
    to.flags = from.send_flags;
    to.imm = from.imm_data;
    to.remote_address = to.compare_add = to.swap = 0;
    to.remote_key = to.remote_qpn = to.remote_qkey = 0;
    to.remote_lid = 0;
    to.bind = nullptr;
    if (type == IBV_QPT_UD) {
        to.remote_lid = from.wr.ud.ah ? own<const Address>(from.wr.ud.ah)->lid : 0;
        to.remote_qpn = from.wr.ud.remote_qpn;
        to.remote_qkey = from.wr.ud.remote_qkey;
    } else if (from.opcode == IBV_WR_BIND_MW) {
        // Windows of type 1 are bound by a call of their own.
        if (from.bind_mw.mw->type == IBV_MW_TYPE_2) {
            bind = binding_of(from.bind_mw.mw, from.bind_mw.rkey, from.bind_mw.bind_info);
            to.bind = &bind;
        }
    } else if (from.opcode >= IBV_WR_ATOMIC_CMP_AND_SWP) {
        to.remote_address = from.wr.atomic.remote_addr;
        to.remote_key = from.wr.atomic.rkey;
        to.compare_add = from.wr.atomic.compare_add;
        to.swap = from.wr.atomic.swap;
    } else {
        to.remote_address = from.wr.rdma.remote_addr;
        to.remote_key = from.wr.rdma.rkey;
    }
}

// The keys of windows whose requests were taken.
void note_keys(const ntbv_send_wr *requests, ibv_send_wr *const *originals, std::ptrdiff_t n)
{
    for (std::ptrdiff_t i = 0; i < n; ++i)
        if (requests[i].bind)
            originals[i]->bind_mw.mw->rkey = requests[i].bind->key;
}

// One request.
int post_lone(ibv_qp *qp, ibv_send_wr *wr, ibv_send_wr **bad)
{
    ntbv_send_wr request;
    ntbv_bind binding;
    convert(*wr, qp->qp_type, request, binding);
    const ntbv_send_wr *refused;
    const int error = ntbv_qp_post_send(own<OwnQp>(qp)->own, &request, &refused);
    if (error != 0)
        *bad = wr;
    else if (request.bind)
        wr->bind_mw.mw->rkey = binding.key;
    return -error;
}

int post_converted(ibv_qp *qp, ibv_send_wr *wr, ibv_send_wr **bad)
{
    if (wr && !wr->next)
        return post_lone(qp, wr, bad);
    ntbv_send_wr requests[burst];
    ntbv_bind bindings[burst];
    while (wr) {
        ibv_send_wr *originals[burst];
        int n = 0;
        for (; wr && n < burst; wr = wr->next, ++n) {
            convert(*wr, qp->qp_type, requests[n], bindings[n]);
            originals[n] = wr;
            if (n != 0)
                requests[n - 1].next = &requests[n];
        }
        const ntbv_send_wr *refused = nullptr;
        const int error = ntbv_qp_post_send(own<OwnQp>(qp)->own, requests, &refused);
        note_keys(requests, originals, error != 0 ? refused - requests : n);
        if (error != 0) {
            *bad = originals[refused - requests];
            return -error;
        }
    }
    return 0;
}

// Most programs that wait for each request post one alone.
int post_send(ibv_qp *qp, ibv_send_wr *wr, ibv_send_wr **bad)
{
    if (!wr || wr->next || qp->qp_type == IBV_QPT_UD || !has_same_layout(wr->opcode))
        return post_converted(qp, wr, bad);
    return -ntbv_qp_post_send(
        own<OwnQp>(qp)->own, reinterpret_cast<const ntbv_send_wr *>(wr),
        const_cast<const ntbv_send_wr **>(reinterpret_cast<ntbv_send_wr **>(bad)));
}

int bind_mw(ibv_qp *qp, ibv_mw *mw, ibv_mw_bind *wanted)
{
    ntbv_bind bind = binding_of(mw, 0, wanted->bind_info);
    ntbv_send_wr request = {};
    request.id = wanted->wr_id;
    request.opcode = NTBV_BIND_MW;
    request.flags = wanted->send_flags;
    request.bind = &bind;
    const ntbv_send_wr *refused;
    const int error = ntbv_qp_post_send(own<OwnQp>(qp)->own, &request, &refused);
    if (error == 0)
        mw->rkey = bind.key;
    return -error;
}

int post_recv(ibv_qp *qp, ibv_recv_wr *wr, ibv_recv_wr **bad)
{
    return -ntbv_qp_post_recv(
        own<OwnQp>(qp)->own, reinterpret_cast<const ntbv_recv_wr *>(wr),
        const_cast<const ntbv_recv_wr **>(reinterpret_cast<ntbv_recv_wr **>(bad)));
}

int post_srq_recv(ibv_srq *srq, ibv_recv_wr *wr, ibv_recv_wr **bad)
{
    return -ntbv_srq_post(
        own<OwnSrq>(srq)->own, reinterpret_cast<const ntbv_recv_wr *>(wr),
        const_cast<const ntbv_recv_wr **>(reinterpret_cast<ntbv_recv_wr **>(bad)));
}

int poll_cq(ibv_cq *cq, int n, ibv_wc *wc)
{
    return ntbv_cq_poll(own<OwnCq>(cq)->own, n, reinterpret_cast<ntbv_wc *>(wc));
}

// ---- one completion at a time, of which the program reads what it wants

int next_poll(ibv_cq_ex *cq)
{
    auto *const object = own<OwnCq>(cq);
    const int got = ntbv_cq_poll(object->own, 1, &object->current);
    if (got <= 0)
        return got == 0 ? ENOENT : -got;
    cq->wr_id = object->current.id;
    cq->status = static_cast<ibv_wc_status>(object->current.status);
    return 0;
}

int start_poll(ibv_cq_ex *cq, ibv_poll_cq_attr *attr)
{
    return attr->comp_mask != 0 ? EINVAL : next_poll(cq);
}

template <typename Result, auto field>
Result read_current(ibv_cq_ex *cq)
{
    return static_cast<Result>(own<OwnCq>(cq)->current.*field);
}

template <typename Result>
Result read_zero(ibv_cq_ex *)
{
    return 0;
}

} // namespace

void set_extended_calls(ibv_cq_ex &cq)
{
    cq.start_poll = start_poll;
    cq.next_poll = next_poll;
    cq.end_poll = [](ibv_cq_ex *) {};
    cq.read_opcode = read_current<ibv_wc_opcode, &ntbv_wc::opcode>;
    cq.read_vendor_err = read_zero<std::uint32_t>;
    cq.read_byte_len = read_current<std::uint32_t, &ntbv_wc::bytes>;
    cq.read_imm_data = read_current<__be32, &ntbv_wc::imm>;
    cq.read_qp_num = read_current<std::uint32_t, &ntbv_wc::qpn>;
    cq.read_src_qp = read_current<std::uint32_t, &ntbv_wc::source_qpn>;
    cq.read_wc_flags = read_current<unsigned, &ntbv_wc::flags>;
    cq.read_slid = read_current<std::uint32_t, &ntbv_wc::source_lid>;
    cq.read_sl = read_zero<std::uint8_t>;
    cq.read_dlid_path_bits = read_zero<std::uint8_t>;
}

void set_data_calls(Ops &ops)
{
    ops.set(Op::PollCq, poll_cq);
    ops.set(Op::PostSend, post_send);
    ops.set(Op::BindMw, bind_mw);
    ops.set(Op::PostRecv, post_recv);
    ops.set(Op::PostSrqRecv, post_srq_recv);
}

} // namespace ntb::verbs::shim

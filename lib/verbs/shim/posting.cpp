// SPDX-License-Identifier: BSD-3-Clause
// Extended posting: a program builds requests one by one, and posts all of them or none.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "shim/objects.hpp"

namespace ntb::verbs::shim
{

/// Requests that are being built, by the thread that has begun.
struct Batch {
    /// Its pieces or its inline data follow it.
    struct Request {
        ntbv_send_wr wr;
        ntbv_sge inline_data; // where they are, as one piece
        ntbv_bind bind;
        ibv_mw *mw; // NULL: nothing is bound
    };

    pthread_mutex_t mutex; // from start to complete or abort
    std::byte *memory;
    std::size_t stride;
    std::uint32_t size, n;
    std::uint32_t max_sge, max_inline;
    int error; // the first of this batch

    Request &at(std::uint32_t i) { return *reinterpret_cast<Request *>(memory + i * stride); }
    void fail(int code)
    {
        if (error == 0)
            error = code;
    }
    /// The one that setters belong to. NULL: it has failed, or there is none.
    Request *last()
    {
        if (n == 0)
            fail(EINVAL);
        return error == 0 ? &at(n - 1) : nullptr;
    }
};

namespace
{

constexpr std::uint64_t datagram_operations = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
constexpr std::uint64_t unreliable_operations = datagram_operations | IBV_QP_EX_WITH_RDMA_WRITE |
                                                IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
                                                IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV;
constexpr std::uint64_t reliable_operations =
    unreliable_operations | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
    IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_SEND_WITH_INV;

Batch &batch_of(ibv_qp_ex *qp)
{
    return *own<OwnQp>(qp)->batch;
}

// ---- the batch

void start(ibv_qp_ex *qp)
{
    Batch &batch = batch_of(qp);
    pthread_mutex_lock(&batch.mutex);
    batch.n = 0;
    batch.error = 0;
}

int complete(ibv_qp_ex *qp)
{
    Batch &batch = batch_of(qp);
    int error = batch.error;
    if (error == 0 && batch.n != 0) {
        for (std::uint32_t i = 1; i < batch.n; ++i)
            batch.at(i - 1).wr.next = &batch.at(i).wr;
        error = -ntbv_qp_post_send_all(own<OwnQp>(qp)->own, &batch.at(0).wr);
        for (std::uint32_t i = 0; i < batch.n && error == 0; ++i)
            if (batch.at(i).mw)
                batch.at(i).mw->rkey = batch.at(i).bind.key;
    }
    pthread_mutex_unlock(&batch.mutex);
    return error;
}

void abort(ibv_qp_ex *qp)
{
    pthread_mutex_unlock(&batch_of(qp).mutex);
}

// ---- requests

void add(ibv_qp_ex *qp, const ntbv_send_wr &wr)
{
    Batch &batch = batch_of(qp);
    if (batch.n == batch.size)
        return batch.fail(ENOMEM);
    Batch::Request &request = batch.at(batch.n++);
    request.mw = nullptr;
    ntbv_send_wr &to = request.wr;
    to = wr;
    to.id = qp->wr_id;
    // Which data are inline is said by their setter.
    to.flags = qp->wr_flags & ~unsigned{IBV_SEND_INLINE};
}

void send(ibv_qp_ex *qp)
{
    add(qp, {.opcode = NTBV_SEND});
}

void send_imm(ibv_qp_ex *qp, __be32 imm)
{
    add(qp, {.opcode = NTBV_SEND_IMM, .imm = imm});
}

void send_inv(ibv_qp_ex *qp, std::uint32_t key)
{
    add(qp, {.opcode = NTBV_SEND_INV, .imm = key});
}

void local_inv(ibv_qp_ex *qp, std::uint32_t key)
{
    add(qp, {.opcode = NTBV_LOCAL_INV, .imm = key});
}

void bind_mw(ibv_qp_ex *qp, ibv_mw *mw, std::uint32_t key, const ibv_mw_bind_info *info)
{
    add(qp, {.opcode = NTBV_BIND_MW});
    // Windows of type 1 are bound by a call of their own.
    Batch::Request *const request = batch_of(qp).last();
    if (!request || mw->type != IBV_MW_TYPE_2)
        return;
    request->mw = mw;
    request->bind = binding_of(mw, key, *info);
    request->wr.bind = &request->bind;
}

void rdma_write(ibv_qp_ex *qp, std::uint32_t key, std::uint64_t address)
{
    add(qp, {.opcode = NTBV_WRITE, .remote_address = address, .remote_key = key});
}

void rdma_write_imm(ibv_qp_ex *qp, std::uint32_t key, std::uint64_t address, __be32 imm)
{
    add(qp, {.opcode = NTBV_WRITE_IMM, .imm = imm, .remote_address = address, .remote_key = key});
}

void rdma_read(ibv_qp_ex *qp, std::uint32_t key, std::uint64_t address)
{
    add(qp, {.opcode = NTBV_READ, .remote_address = address, .remote_key = key});
}

void compare_and_swap(ibv_qp_ex *qp, std::uint32_t key, std::uint64_t address,
                      std::uint64_t compare, std::uint64_t swap)
{
    add(qp, {.opcode = NTBV_CMP_SWP,
             .remote_address = address,
             .remote_key = key,
             .compare_add = compare,
             .swap = swap});
}

void fetch_and_add(ibv_qp_ex *qp, std::uint32_t key, std::uint64_t address, std::uint64_t value)
{
    add(qp, {.opcode = NTBV_FETCH_ADD,
             .remote_address = address,
             .remote_key = key,
             .compare_add = value});
}

// ---- what belongs to the last request

void set_ud_address(ibv_qp_ex *qp, ibv_ah *ah, std::uint32_t number, std::uint32_t key)
{
    if (Batch::Request *request = batch_of(qp).last()) {
        request->wr.remote_lid = own<const Address>(ah)->lid;
        request->wr.remote_qpn = number;
        request->wr.remote_qkey = key;
    }
}

void set_sge_list(ibv_qp_ex *qp, std::size_t n, const ibv_sge *list)
{
    Batch &batch = batch_of(qp);
    Batch::Request *const request = batch.last();
    if (!request)
        return;
    if (n > batch.max_sge)
        return batch.fail(EINVAL);
    auto *const pieces = reinterpret_cast<ntbv_sge *>(request + 1);
    std::copy_n(reinterpret_cast<const ntbv_sge *>(list), n, pieces);
    request->wr.flags &= ~unsigned{NTBV_INLINE};
    request->wr.sge = pieces;
    request->wr.n_sge = static_cast<int>(n);
}

void set_sge(ibv_qp_ex *qp, std::uint32_t key, std::uint64_t address, std::uint32_t bytes)
{
    const ibv_sge piece = {address, bytes, key};
    set_sge_list(qp, 1, &piece);
}

void set_inline_data_list(ibv_qp_ex *qp, std::size_t n, const ibv_data_buf *list)
{
    Batch &batch = batch_of(qp);
    Batch::Request *const request = batch.last();
    if (!request)
        return;
    auto *const data = reinterpret_cast<std::byte *>(request + 1);
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < n; ++i) {
        if (list[i].length > batch.max_inline - bytes)
            return batch.fail(EINVAL);
        if (list[i].length != 0)
            std::memcpy(data + bytes, list[i].addr, list[i].length);
        bytes += list[i].length;
    }
    request->inline_data = {reinterpret_cast<std::uintptr_t>(data),
                            static_cast<std::uint32_t>(bytes), 0};
    request->wr.flags |= NTBV_INLINE;
    request->wr.sge = &request->inline_data;
    request->wr.n_sge = 1;
}

void set_inline_data(ibv_qp_ex *qp, void *data, std::size_t bytes)
{
    const ibv_data_buf all = {data, bytes};
    set_inline_data_list(qp, 1, &all);
}

} // namespace

bool can_post_extended(ibv_qp_type type, std::uint64_t operations)
{
    switch (type) {
    case IBV_QPT_RC:
        return (operations & ~reliable_operations) == 0;
    case IBV_QPT_UC:
        return (operations & ~unreliable_operations) == 0;
    case IBV_QPT_UD:
        return (operations & ~datagram_operations) == 0;
    default:
        return false;
    }
}

bool make_extended(OwnQp &qp)
{
    auto *batch = make<Batch>();
    if (!batch)
        return false;
    batch->size = qp.cap.max_send_wr;
    batch->max_sge = qp.cap.max_send_sge;
    batch->max_inline = qp.cap.max_inline_data;
    const std::size_t behind =
        std::max<std::size_t>(batch->max_sge * sizeof(ntbv_sge), batch->max_inline);
    batch->stride = (sizeof(Batch::Request) + behind + 7) & ~std::size_t{7};
    batch->memory = static_cast<std::byte *>(calloc(batch->size, batch->stride));
    if (!batch->memory) {
        free(batch);
        return false;
    }
    pthread_mutex_init(&batch->mutex, nullptr);
    qp.batch = batch;
    ibv_qp_ex &extended = qp.base.extended;
    extended.wr_start = start;
    extended.wr_complete = complete;
    extended.wr_abort = abort;
    extended.wr_send = send;
    extended.wr_send_imm = send_imm;
    extended.wr_send_inv = send_inv;
    extended.wr_local_inv = local_inv;
    extended.wr_bind_mw = bind_mw;
    extended.wr_rdma_write = rdma_write;
    extended.wr_rdma_write_imm = rdma_write_imm;
    extended.wr_rdma_read = rdma_read;
    extended.wr_atomic_cmp_swp = compare_and_swap;
    extended.wr_atomic_fetch_add = fetch_and_add;
    extended.wr_set_ud_addr = set_ud_address;
    extended.wr_set_sge = set_sge;
    extended.wr_set_sge_list = set_sge_list;
    extended.wr_set_inline_data = set_inline_data;
    extended.wr_set_inline_data_list = set_inline_data_list;
    qp.base.mask |= qp_is_extended;
    return true;
}

void free_batch(Batch *batch)
{
    if (!batch)
        return;
    pthread_mutex_destroy(&batch->mutex);
    free(batch->memory);
    free(batch);
}

} // namespace ntb::verbs::shim

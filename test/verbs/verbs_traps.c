/* SPDX-License-Identifier: BSD-3-Clause */
/* What Debian's own programs do not ask of a device: events of objects that go, refusals, queries.
 * A program of libibverbs, started by ntb-verbs; its queue pairs are connected to each other.
 * Silent if all is right. */
#include <infiniband/verbs.h>

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "line %d: %s (errno %d)\n", __LINE__, #condition, errno);              \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_port_attr port;
static _Alignas(64) char memory[8192];
static struct ibv_mr *mr;

static int readable(int fd)
{
    struct pollfd one = {fd, POLLIN, 0};
    return poll(&one, 1, 0) == 1;
}

static struct ibv_qp *make_qp(struct ibv_cq *cq, struct ibv_srq *srq)
{
    struct ibv_qp_init_attr init = {
        .send_cq = cq, .recv_cq = cq, .srq = srq, .qp_type = IBV_QPT_RC};
    struct ibv_qp *qp;
    init.cap.max_send_wr = init.cap.max_recv_wr = 8;
    init.cap.max_send_sge = init.cap.max_recv_sge = 1;
    init.qp_context = &memory[1];
    qp = ibv_create_qp(pd, &init);
    CHECK(qp && qp->qp_context == &memory[1] && qp->state == IBV_QPS_RESET &&
          init.cap.max_send_wr >= 8);
    return qp;
}

static void join_qps(struct ibv_qp *one, struct ibv_qp *other)
{
    struct ibv_qp_attr attr = {.port_num = 1,
                               .path_mtu = IBV_MTU_1024,
                               .min_rnr_timer = 12,
                               .timeout = 14,
                               .retry_cnt = 7,
                               .rnr_retry = 7,
                               .max_rd_atomic = 3,
                               .max_dest_rd_atomic = 4};
    attr.qp_access_flags =
        IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    attr.ah_attr.dlid = port.lid;
    attr.ah_attr.port_num = 1;
    attr.dest_qp_num = other->qp_num;
    attr.qp_state = IBV_QPS_INIT;
    CHECK(ibv_modify_qp(one, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT) == EINVAL);
    CHECK(one->state == IBV_QPS_RESET);
    CHECK(ibv_modify_qp(one, &attr,
                        IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0);
    attr.qp_state = IBV_QPS_RTR;
    CHECK(ibv_modify_qp(one, &attr,
                        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                            IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0);
    attr.qp_state = IBV_QPS_RTS;
    CHECK(ibv_modify_qp(one, &attr,
                        IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                            IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC) == 0);
    CHECK(one->state == IBV_QPS_RTS);
}

static void post(struct ibv_qp *qp, enum ibv_wr_opcode opcode, uint32_t rkey)
{
    struct ibv_sge piece = {(uintptr_t)memory, 16, mr->lkey};
    struct ibv_send_wr wr = {.wr_id = 5,
                             .sg_list = &piece,
                             .num_sge = 1,
                             .opcode = opcode,
                             .send_flags = IBV_SEND_SIGNALED};
    struct ibv_send_wr *bad;
    wr.wr.rdma.remote_addr = (uintptr_t)memory + 4096;
    wr.wr.rdma.rkey = rkey;
    CHECK(ibv_post_send(qp, &wr, &bad) == 0);
}

static enum ibv_wc_status next_status(struct ibv_cq *cq)
{
    struct ibv_wc wc;
    int n;
    while ((n = ibv_poll_cq(cq, 1, &wc)) == 0)
        ;
    CHECK(n == 1);
    return wc.status;
}

/* Events that no one has read go with their queue, and leave those of others. */
static void unread_events(void)
{
    struct ibv_comp_channel *channel = ibv_create_comp_channel(context);
    struct ibv_cq *cqs[2], *cq;
    struct ibv_qp *qps[4];
    void *cookie;
    CHECK(channel);
    for (int i = 0; i < 2; i++) {
        cqs[i] = ibv_create_cq(context, 16, &cqs[i], channel, 0);
        CHECK(cqs[i] && cqs[i]->cqe >= 16);
        for (int j = 0; j < 2; j++)
            qps[2 * i + j] = make_qp(cqs[i], NULL);
        join_qps(qps[2 * i], qps[2 * i + 1]);
        join_qps(qps[2 * i + 1], qps[2 * i]);
        CHECK(ibv_req_notify_cq(cqs[i], 0) == 0);
        post(qps[2 * i], IBV_WR_RDMA_WRITE, mr->rkey);
        CHECK(next_status(cqs[i]) == IBV_WC_SUCCESS);
    }
    CHECK(ibv_destroy_comp_channel(channel) == EBUSY);
    CHECK(ibv_destroy_cq(cqs[0]) == EBUSY);
    CHECK(ibv_destroy_qp(qps[0]) == 0 && ibv_destroy_qp(qps[1]) == 0);
    CHECK(ibv_destroy_cq(cqs[0]) == 0);
    CHECK(ibv_get_cq_event(channel, &cq, &cookie) == 0);
    CHECK(cq == cqs[1] && cookie == &cqs[1] && !readable(channel->fd));
    ibv_ack_cq_events(cq, 1);
    CHECK(fcntl(channel->fd, F_SETFL, O_NONBLOCK) == 0);
    CHECK(ibv_get_cq_event(channel, &cq, &cookie) == -1 && errno == EAGAIN);
    CHECK(ibv_destroy_qp(qps[2]) == 0 && ibv_destroy_qp(qps[3]) == 0);
    CHECK(ibv_destroy_cq(cqs[1]) == 0);
    CHECK(ibv_destroy_comp_channel(channel) == 0);
}

/* A wrong key: both ends learn of it, and the responder's program by an event. */
static void wrong_key(void)
{
    struct ibv_cq *cq = ibv_create_cq(context, 16, NULL, NULL, 0);
    struct ibv_qp *one = make_qp(cq, NULL), *other = make_qp(cq, NULL);
    struct ibv_async_event event;
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    CHECK(cq);
    join_qps(one, other);
    join_qps(other, one);
    post(one, IBV_WR_RDMA_WRITE, mr->rkey + 1);
    CHECK(next_status(cq) == IBV_WC_REM_ACCESS_ERR);
    CHECK(ibv_get_async_event(context, &event) == 0);
    CHECK(event.event_type == IBV_EVENT_QP_ACCESS_ERR && event.element.qp == other);
    ibv_ack_async_event(&event);
    CHECK(ibv_query_qp(one, &attr, IBV_QP_STATE, &init) == 0);
    CHECK(attr.qp_state == IBV_QPS_ERR && one->state == IBV_QPS_ERR && init.send_cq == cq);
    CHECK(ibv_destroy_qp(one) == 0 && ibv_destroy_qp(other) == 0 && ibv_destroy_cq(cq) == 0);
}

/* The limit is reported once; an unread event goes with its queue. */
static void limit(void)
{
    struct ibv_srq_init_attr init = {.attr = {.max_wr = 16, .max_sge = 2}};
    struct ibv_srq *srq = ibv_create_srq(pd, &init);
    struct ibv_cq *cq = ibv_create_cq(context, 16, NULL, NULL, 0);
    struct ibv_qp *one = make_qp(cq, NULL), *other = make_qp(cq, srq);
    struct ibv_srq_attr attr = {.srq_limit = 2};
    struct ibv_sge piece = {(uintptr_t)memory + 4096, 16, mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = 1, .sg_list = &piece, .num_sge = 1}, *bad;
    CHECK(srq && cq);
    join_qps(one, other);
    join_qps(other, one);
    for (int i = 0; i < 2; i++)
        CHECK(ibv_post_srq_recv(srq, &wr, &bad) == 0);
    CHECK(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT) == 0);
    CHECK(ibv_query_srq(srq, &attr) == 0 && attr.srq_limit == 2 && attr.max_wr >= 16 &&
          attr.max_sge >= 2);
    post(one, IBV_WR_SEND, 0);
    CHECK(next_status(cq) == IBV_WC_SUCCESS && next_status(cq) == IBV_WC_SUCCESS);
    CHECK(readable(context->async_fd));
    CHECK(ibv_query_srq(srq, &attr) == 0 && attr.srq_limit == 0);
    CHECK(ibv_destroy_srq(srq) == EBUSY);
    CHECK(ibv_destroy_qp(one) == 0 && ibv_destroy_qp(other) == 0 && ibv_destroy_cq(cq) == 0);
    CHECK(ibv_destroy_srq(srq) == 0);
    CHECK(!readable(context->async_fd));
}

/* A region under its key: other memory, other rights, another domain; what is wrong changes
 * nothing. */
static void changed_region(void)
{
    struct ibv_cq *cq = ibv_create_cq(context, 16, NULL, NULL, 0);
    struct ibv_qp *one = make_qp(cq, NULL), *other = make_qp(cq, NULL);
    struct ibv_pd *second = ibv_alloc_pd(context);
    struct ibv_mr *region =
        ibv_reg_mr(pd, memory, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    CHECK(cq && second && region);
    const uint32_t key = region->rkey;
    join_qps(one, other);
    join_qps(other, one);
    CHECK(ibv_rereg_mr(region, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, memory + 4096, 4096, 0) == 0);
    CHECK(region->addr == memory + 4096 && region->length == 4096 && region->rkey == key);
    post(one, IBV_WR_RDMA_WRITE, key);
    CHECK(next_status(cq) == IBV_WC_SUCCESS);
    CHECK(ibv_rereg_mr(region, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
                       IBV_ACCESS_REMOTE_WRITE) == IBV_REREG_MR_ERR_CMD &&
          errno == EINVAL);
    CHECK(ibv_rereg_mr(region, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_ON_DEMAND) ==
              IBV_REREG_MR_ERR_CMD &&
          errno == EOPNOTSUPP);
    post(one, IBV_WR_RDMA_WRITE, key);
    CHECK(next_status(cq) == IBV_WC_SUCCESS);
    CHECK(ibv_rereg_mr(region, IBV_REREG_MR_CHANGE_PD, second, NULL, 0, 0) == 0);
    CHECK(region->pd == second && ibv_dealloc_pd(second) == EBUSY);
    CHECK(ibv_rereg_mr(region, IBV_REREG_MR_CHANGE_PD, pd, NULL, 0, 0) == 0);
    CHECK(ibv_rereg_mr(region, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0) == 0);
    post(one, IBV_WR_RDMA_WRITE, key);
    CHECK(next_status(cq) == IBV_WC_REM_ACCESS_ERR);
    CHECK(ibv_destroy_qp(one) == 0 && ibv_destroy_qp(other) == 0 && ibv_destroy_cq(cq) == 0);
    CHECK(ibv_dereg_mr(region) == 0 && ibv_dealloc_pd(second) == 0);
}

/* Memory that is not there, or not for what is asked, is not registered. */
static void missing_memory(void)
{
    char *area = mmap(NULL, 4 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(area != MAP_FAILED && mprotect(area, 4096, PROT_READ) == 0 &&
          munmap(area + 2 * 4096, 4096) == 0);
    errno = 0;
    CHECK(!ibv_reg_mr(pd, area, 3 * 4096, 0) && errno == EFAULT);
    errno = 0;
    CHECK(!ibv_reg_mr(pd, area, 4096, IBV_ACCESS_LOCAL_WRITE) && errno == EFAULT);
    struct ibv_mr *region = ibv_reg_mr(pd, area, 8192, IBV_ACCESS_REMOTE_READ);
    CHECK(region);
    CHECK(ibv_rereg_mr(region, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE) ==
              IBV_REREG_MR_ERR_CMD &&
          errno == EFAULT);
    CHECK(ibv_rereg_mr(region, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, area + 2 * 4096, 1, 0) ==
              IBV_REREG_MR_ERR_CMD &&
          errno == EFAULT);
    CHECK(ibv_dereg_mr(region) == 0 && munmap(area, 8192) == 0 &&
          munmap(area + 3 * 4096, 4096) == 0);
}

/* A queue that is made longer and shorter keeps what waits in it. */
static void resized_queue(void)
{
    struct ibv_cq *cq = ibv_create_cq(context, 2, NULL, NULL, 0);
    struct ibv_qp *one = make_qp(cq, NULL), *other = make_qp(cq, NULL);
    CHECK(cq && ibv_resize_cq(cq, 0) == EINVAL && ibv_resize_cq(cq, 8) == 0 && cq->cqe == 8);
    join_qps(one, other);
    join_qps(other, one);
    for (int i = 0; i < 6; i++)
        post(one, IBV_WR_RDMA_WRITE, mr->rkey);
    CHECK(next_status(cq) == IBV_WC_SUCCESS);
    for (int i = 0; i < 5; i++)
        CHECK(next_status(cq) == IBV_WC_SUCCESS);
    CHECK(ibv_resize_cq(cq, 1) == 0 && cq->cqe == 1);
    CHECK(ibv_destroy_qp(one) == 0 && ibv_destroy_qp(other) == 0 && ibv_destroy_cq(cq) == 0);
}

/* A queue whose completions are read field by field. */
static void extended_queue(void)
{
    struct ibv_cq_init_attr_ex init = {.cqe = 16, .cq_context = &init};
    struct ibv_poll_cq_attr attr = {0};
    struct ibv_sge piece = {(uintptr_t)memory + 4096, 16, mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = 9, .sg_list = &piece, .num_sge = 1}, *bad;
    struct ibv_cq_ex *cq;
    struct ibv_qp *one, *other;
    int left = 2;
    init.wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP;
    CHECK(!ibv_create_cq_ex(context, &init) && errno == EOPNOTSUPP);
    init.wc_flags = IBV_WC_STANDARD_FLAGS;
    init.cqe = 0x80000000u;
    CHECK(!ibv_create_cq_ex(context, &init) && errno == EINVAL);
    init.cqe = 16;
    init.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
    init.flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
    CHECK(!ibv_create_cq_ex(context, &init) && errno == EOPNOTSUPP);
    init.flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
    cq = ibv_create_cq_ex(context, &init);
    CHECK(cq && cq->cqe == 16 && cq->cq_context == &init);
    one = make_qp(ibv_cq_ex_to_cq(cq), NULL);
    other = make_qp(ibv_cq_ex_to_cq(cq), NULL);
    join_qps(one, other);
    join_qps(other, one);
    CHECK(ibv_start_poll(cq, &attr) == ENOENT);
    attr.comp_mask = 1;
    CHECK(ibv_start_poll(cq, &attr) == EINVAL);
    attr.comp_mask = 0;
    CHECK(ibv_post_recv(other, &wr, &bad) == 0);
    post(one, IBV_WR_SEND, 0);
    while (left != 0) {
        int status = ibv_start_poll(cq, &attr);
        if (status == ENOENT)
            continue;
        for (; status == 0; status = ibv_next_poll(cq), left--) {
            const int received = cq->wr_id == 9;
            CHECK(cq->status == IBV_WC_SUCCESS && ibv_wc_read_vendor_err(cq) == 0);
            CHECK(ibv_wc_read_opcode(cq) == (received ? IBV_WC_RECV : IBV_WC_SEND));
            CHECK(ibv_wc_read_qp_num(cq) == (received ? other : one)->qp_num);
            CHECK(!received || (ibv_wc_read_byte_len(cq) == 16 && ibv_wc_read_wc_flags(cq) == 0));
        }
        CHECK(status == ENOENT);
        ibv_end_poll(cq);
    }
    CHECK(ibv_destroy_qp(one) == 0 && ibv_destroy_qp(other) == 0);
    CHECK(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)) == 0);
}

static struct ibv_qp *make_extended_qp(struct ibv_cq *cq, enum ibv_qp_type type,
                                       uint64_t operations)
{
    struct ibv_qp_init_attr_ex init = {.send_cq = cq,
                                       .recv_cq = cq,
                                       .cap = {8, 8, 2, 1, 64},
                                       .qp_type = type,
                                       .comp_mask =
                                           IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
                                       .pd = pd,
                                       .send_ops_flags = operations};
    return ibv_create_qp_ex(context, &init);
}

static void expect_ids(struct ibv_cq *cq, int n)
{
    for (int id = 0; id < n;) {
        struct ibv_wc wc;
        const int got = ibv_poll_cq(cq, 1, &wc);
        CHECK(got >= 0);
        if (got == 1 && wc.wr_id < 100) {
            CHECK(wc.status == IBV_WC_SUCCESS && wc.wr_id == (uint64_t)id);
            id++;
        } else if (got == 1) {
            CHECK(wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RECV && wc.byte_len == 12 &&
                  wc.imm_data == 77);
        }
    }
}

/* Requests that are built one by one, and posted all or none. */
static void extended_posting(void)
{
    const uint64_t all = IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_WRITE |
                         IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
                         IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
    struct ibv_cq *cq = ibv_create_cq(context, 64, NULL, NULL, 0);
    struct ibv_qp *one, *other = make_qp(cq, NULL);
    struct ibv_qp_ex *qp;
    struct ibv_sge pieces[3];
    struct ibv_data_buf parts[2] = {{memory, 4}, {memory + 8, 8}};
    struct ibv_recv_wr receive = {.wr_id = 100, .sg_list = pieces, .num_sge = 1}, *bad;
    uint64_t *const words = (uint64_t *)(void *)(memory + 4096);
    const uintptr_t remote = (uintptr_t)words;
    for (int i = 0; i < 3; i++)
        pieces[i] = (struct ibv_sge){(uintptr_t)memory + 512 + (unsigned)i * 16, 12, mr->lkey};
    CHECK(!make_extended_qp(cq, IBV_QPT_RC, IBV_QP_EX_WITH_TSO) && errno == EOPNOTSUPP);
    CHECK(!make_extended_qp(cq, IBV_QPT_RC, 1ull << 40) && errno == EOPNOTSUPP);
    CHECK(!make_extended_qp(cq, IBV_QPT_UC, IBV_QP_EX_WITH_RDMA_READ) && errno == EOPNOTSUPP);
    CHECK(!make_extended_qp(cq, IBV_QPT_UD, IBV_QP_EX_WITH_RDMA_WRITE) && errno == EOPNOTSUPP);
    one = make_extended_qp(cq, IBV_QPT_RC, all);
    CHECK(one && !ibv_qp_to_qp_ex(other));
    qp = ibv_qp_to_qp_ex(one);
    CHECK(qp && &qp->qp_base == one);
    join_qps(one, other);
    join_qps(other, one);
    memset(memory + 4096, 0, 64);
    memcpy(memory, "fifteen letters", 16);
    CHECK(ibv_post_recv(other, &receive, &bad) == 0);

    /* Inline data may change as soon as they are set, and so may a list of pieces. */
    ibv_wr_start(qp);
    qp->wr_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
    qp->wr_id = 0;
    ibv_wr_send_imm(qp, 77);
    ibv_wr_set_inline_data_list(qp, 2, parts);
    memset(memory, '-', 16);
    qp->wr_id = 1;
    ibv_wr_rdma_write(qp, mr->rkey, remote + 64);
    pieces[2] = (struct ibv_sge){(uintptr_t)memory, 8, mr->lkey};
    ibv_wr_set_sge_list(qp, 2, pieces + 1);
    memset(pieces, 0, sizeof(pieces));
    qp->wr_id = 2;
    ibv_wr_atomic_fetch_add(qp, mr->rkey, remote, 5);
    ibv_wr_set_sge(qp, mr->lkey, (uintptr_t)memory + 16, 8);
    qp->wr_id = 3;
    qp->wr_flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE;
    ibv_wr_atomic_cmp_swp(qp, mr->rkey, remote, 5, 9);
    ibv_wr_set_sge(qp, mr->lkey, (uintptr_t)memory + 24, 8);
    qp->wr_id = 4;
    ibv_wr_rdma_read(qp, mr->rkey, remote);
    ibv_wr_set_sge(qp, mr->lkey, (uintptr_t)memory + 32, 8);
    CHECK(ibv_wr_complete(qp) == 0);
    expect_ids(cq, 5);
    CHECK(memcmp(memory + 512, "fiftletters", 12) == 0);
    CHECK(memcmp(memory + 4096 + 64 + 12, "--------", 8) == 0);
    CHECK(words[0] == 9 && *(uint64_t *)(void *)(memory + 16) == 0 &&
          *(uint64_t *)(void *)(memory + 24) == 5 && *(uint64_t *)(void *)(memory + 32) == 9);

    /* One that is wrong takes the others with it, and leaves the queue as it was. */
    for (int wrong = 0; wrong < 5; wrong++) {
        ibv_wr_start(qp);
        qp->wr_flags = IBV_SEND_SIGNALED;
        if (wrong == 0)
            ibv_wr_set_sge(qp, mr->lkey, (uintptr_t)memory, 8);
        ibv_wr_rdma_write(qp, mr->rkey, remote);
        ibv_wr_set_sge(qp, mr->lkey, (uintptr_t)memory, 8);
        if (wrong == 1) {
            ibv_wr_atomic_fetch_add(qp, mr->rkey, remote, 1);
            ibv_wr_set_sge(qp, mr->lkey, (uintptr_t)memory, 16);
        } else if (wrong == 2) {
            ibv_wr_set_inline_data(qp, memory, SIZE_MAX);
        } else if (wrong == 3) {
            ibv_wr_set_sge_list(qp, 3, pieces);
        } else if (wrong == 4) {
            for (int i = 0; i < 8; i++)
                ibv_wr_rdma_write(qp, mr->rkey, remote);
        }
        CHECK(ibv_wr_complete(qp) == (wrong == 4 ? ENOMEM : EINVAL));
    }
    ibv_wr_start(qp);
    ibv_wr_rdma_write(qp, mr->rkey, remote);
    ibv_wr_set_sge(qp, mr->lkey, (uintptr_t)memory, 8);
    ibv_wr_abort(qp);
    ibv_wr_start(qp);
    CHECK(ibv_wr_complete(qp) == 0);
    ibv_wr_start(qp);
    for (int i = 0; i < 8; i++) {
        qp->wr_id = (uint64_t)i;
        ibv_wr_rdma_write(qp, mr->rkey, remote + 128);
        ibv_wr_set_inline_data(qp, memory, 64);
    }
    CHECK(ibv_wr_complete(qp) == 0);
    expect_ids(cq, 8);
    CHECK(words[0] == 9);
    CHECK(ibv_destroy_qp(one) == 0 && ibv_destroy_qp(other) == 0 && ibv_destroy_cq(cq) == 0);
}

/* The same for datagrams: each has an address of its own. */
static void extended_datagrams(void)
{
    struct ibv_cq *cq = ibv_create_cq(context, 16, NULL, NULL, 0);
    struct ibv_qp *one = make_extended_qp(cq, IBV_QPT_UD, IBV_QP_EX_WITH_SEND);
    struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(one);
    struct ibv_ah_attr to = {.dlid = port.lid, .port_num = 1};
    struct ibv_ah *ah = ibv_create_ah(pd, &to);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 0x1111};
    struct ibv_sge piece = {(uintptr_t)memory + 4096, 256, mr->lkey};
    struct ibv_recv_wr receive = {.wr_id = 100, .sg_list = &piece, .num_sge = 1}, *bad;
    struct ibv_wc wc;
    CHECK(cq && one && qp && ah);
    CHECK(ibv_modify_qp(one, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY) ==
          0);
    attr.qp_state = IBV_QPS_RTR;
    CHECK(ibv_modify_qp(one, &attr, IBV_QP_STATE) == 0);
    attr.qp_state = IBV_QPS_RTS;
    CHECK(ibv_modify_qp(one, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN) == 0);
    CHECK(ibv_post_recv(one, &receive, &bad) == 0);
    memcpy(memory, "datagram", 8);
    ibv_wr_start(qp);
    qp->wr_flags = 0;
    ibv_wr_send(qp);
    ibv_wr_set_ud_addr(qp, ah, one->qp_num, 0x1111);
    ibv_wr_set_inline_data(qp, memory, 8);
    CHECK(ibv_wr_complete(qp) == 0);
    while (ibv_poll_cq(cq, 1, &wc) == 0)
        ;
    CHECK(wc.wr_id == 100 && wc.status == IBV_WC_SUCCESS && wc.byte_len == 48 &&
          memcmp(memory + 4096 + 40, "datagram", 8) == 0);
    CHECK(ibv_destroy_qp(one) == 0 && ibv_destroy_ah(ah) == 0 && ibv_destroy_cq(cq) == 0);
}

/* A wanted completion of a queue pair whose requests are all signaled. */
static struct ibv_wc next_completion(struct ibv_cq *cq, uint64_t id, enum ibv_wc_opcode opcode)
{
    struct ibv_wc wc;
    int n;
    while ((n = ibv_poll_cq(cq, 1, &wc)) == 0)
        ;
    CHECK(n == 1 && wc.wr_id == id && wc.status == IBV_WC_SUCCESS && wc.opcode == opcode);
    return wc;
}

/* Both types of windows, by each of the calls that bind and end them. */
static void windows(void)
{
    const uint64_t all = IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV |
                         IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_RDMA_WRITE;
    struct ibv_cq *cq = ibv_create_cq(context, 64, NULL, NULL, 0);
    struct ibv_cq *peer_cq = ibv_create_cq(context, 64, NULL, NULL, 0);
    struct ibv_qp *one = make_extended_qp(cq, IBV_QPT_RC, all), *peer = make_qp(peer_cq, NULL);
    struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(one);
    struct ibv_mr *region =
        ibv_reg_mr(pd, memory + 4096, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
    struct ibv_mw *first = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
    struct ibv_mw *second = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
    struct ibv_mw_bind bind = {.wr_id = 1, .send_flags = IBV_SEND_SIGNALED};
    struct ibv_sge piece = {(uintptr_t)memory, 16, mr->lkey};
    struct ibv_send_wr wr = {.wr_id = 2, .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED};
    struct ibv_recv_wr receive = {.wr_id = 9, .sg_list = &piece, .num_sge = 1}, *bad_receive;
    struct ibv_send_wr *bad;
    struct ibv_device_attr device;
    struct ibv_wc wc;
    uint32_t key;
    CHECK(cq && peer_cq && one && qp && region && first && second);
    CHECK(ibv_query_device(context, &device) == 0 && device.max_mw > 0 &&
          (device.device_cap_flags & IBV_DEVICE_MEM_WINDOW) &&
          (device.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B) &&
          (device.device_cap_flags & IBV_DEVICE_MEM_MGT_EXTENSIONS));
    CHECK(!ibv_alloc_mw(pd, (enum ibv_mw_type)7) && errno == EINVAL);
    join_qps(one, peer);
    join_qps(peer, one);
    memcpy(memory, "fifteen letters", 16);
    memset(memory + 4096, 0, 16);

    /* Type 1: a call of its own, and a new key each time. */
    bind.bind_info =
        (struct ibv_mw_bind_info){region, (uintptr_t)memory + 4096, 64, IBV_ACCESS_REMOTE_WRITE};
    key = first->rkey;
    CHECK(ibv_bind_mw(one, second, &bind) == EINVAL && ibv_bind_mw(one, first, &bind) == 0);
    CHECK(first->rkey != key);
    next_completion(cq, 1, IBV_WC_BIND_MW);
    post(peer, IBV_WR_RDMA_WRITE, first->rkey);
    next_completion(peer_cq, 5, IBV_WC_RDMA_WRITE);
    CHECK(memcmp(memory + 4096, memory, 16) == 0);
    CHECK(ibv_dereg_mr(region) == EBUSY && ibv_rereg_mr(region, IBV_REREG_MR_CHANGE_ACCESS, NULL,
                                                        NULL, 0, 0) == IBV_REREG_MR_ERR_CMD);
    CHECK(errno == EBUSY);
    bind.bind_info = (struct ibv_mw_bind_info){0};
    CHECK(ibv_bind_mw(one, first, &bind) == 0);
    next_completion(cq, 1, IBV_WC_BIND_MW);

    /* Type 2: a request, with a key that the program has chosen. */
    wr.bind_mw.mw = first;
    wr.bind_mw.rkey = ibv_inc_rkey(first->rkey);
    wr.bind_mw.bind_info =
        (struct ibv_mw_bind_info){region, (uintptr_t)memory + 4096, 64, IBV_ACCESS_REMOTE_WRITE};
    CHECK(ibv_post_send(one, &wr, &bad) == EINVAL && bad == &wr);
    wr.bind_mw.mw = second;
    wr.bind_mw.rkey = key = ibv_inc_rkey(second->rkey);
    CHECK(ibv_post_send(one, &wr, &bad) == 0 && second->rkey == key);
    next_completion(cq, 2, IBV_WC_BIND_MW);
    post(peer, IBV_WR_RDMA_WRITE, key);
    next_completion(peer_cq, 5, IBV_WC_RDMA_WRITE);
    wr.opcode = IBV_WR_LOCAL_INV;
    wr.invalidate_rkey = key;
    CHECK(ibv_post_send(one, &wr, &bad) == 0);
    next_completion(cq, 2, IBV_WC_LOCAL_INV);

    /* The same one by one, ended by the peer. */
    key = ibv_inc_rkey(key);
    ibv_wr_start(qp);
    qp->wr_flags = IBV_SEND_SIGNALED;
    qp->wr_id = 3;
    ibv_wr_bind_mw(qp, second, key, &wr.bind_mw.bind_info);
    qp->wr_id = 4;
    ibv_wr_local_inv(qp, key);
    qp->wr_id = 6;
    ibv_wr_bind_mw(qp, second, ibv_inc_rkey(key), &wr.bind_mw.bind_info);
    CHECK(ibv_wr_complete(qp) == 0 && second->rkey == ibv_inc_rkey(key));
    next_completion(cq, 3, IBV_WC_BIND_MW);
    next_completion(cq, 4, IBV_WC_LOCAL_INV);
    next_completion(cq, 6, IBV_WC_BIND_MW);
    ibv_wr_start(qp);
    ibv_wr_bind_mw(qp, first, ibv_inc_rkey(first->rkey), &wr.bind_mw.bind_info);
    CHECK(ibv_wr_complete(qp) == EINVAL);
    key = second->rkey;
    CHECK(ibv_post_recv(one, &receive, &bad_receive) == 0);
    wr = (struct ibv_send_wr){.wr_id = 7,
                              .opcode = IBV_WR_SEND_WITH_INV,
                              .send_flags = IBV_SEND_SIGNALED,
                              .invalidate_rkey = key};
    CHECK(ibv_post_send(peer, &wr, &bad) == 0);
    next_completion(peer_cq, 7, IBV_WC_SEND);
    wc = next_completion(cq, 9, IBV_WC_RECV);
    CHECK(wc.wc_flags == IBV_WC_WITH_INV && wc.invalidated_rkey == key);
    CHECK(ibv_post_recv(peer, &receive, &bad_receive) == 0);
    ibv_wr_start(qp);
    qp->wr_id = 8;
    ibv_wr_send_inv(qp, key);
    CHECK(ibv_wr_complete(qp) == 0);
    CHECK(next_status(cq) == IBV_WC_REM_ACCESS_ERR && next_status(peer_cq) == IBV_WC_MW_BIND_ERR);
    CHECK(ibv_destroy_qp(one) == 0 && ibv_destroy_qp(peer) == 0 && ibv_destroy_cq(cq) == 0 &&
          ibv_destroy_cq(peer_cq) == 0);
    CHECK(ibv_dealloc_mw(first) == 0 && ibv_dealloc_mw(second) == 0 && ibv_dereg_mr(region) == 0);
}

static void queries_and_refusals(void)
{
    struct ibv_cq *cq = ibv_create_cq(context, 16, NULL, NULL, 0);
    struct ibv_qp *one = make_qp(cq, NULL), *other = make_qp(cq, NULL);
    struct ibv_qp_init_attr_ex extended = {
        .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .pd = pd};
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    struct ibv_device_attr device;
    struct ibv_gid_entry entries[2];
    struct ibv_mr *named;
    union ibv_gid gid;
    uint16_t pkey;
    join_qps(one, other);
    CHECK(ibv_query_qp(one, &attr, IBV_QP_STATE, &init) == 0);
    CHECK(attr.qp_state == IBV_QPS_RTS && attr.dest_qp_num == other->qp_num &&
          attr.path_mtu == IBV_MTU_1024 && attr.timeout == 14 && attr.max_rd_atomic == 3 &&
          attr.max_dest_rd_atomic == 4 && attr.ah_attr.dlid == port.lid &&
          init.qp_context == &memory[1]);
    CHECK(ibv_query_device(context, &device) == 0 && device.max_sge == 16 &&
          device.phys_port_cnt == 1 && device.vendor_id == be64toh(device.node_guid) >> 40);
    CHECK(ibv_query_gid(context, 1, 0, &gid) == 0 && ibv_query_gid(context, 1, 1, &gid) != 0);
    CHECK(ibv_query_gid_table(context, entries, 2, 0) == 1 &&
          memcmp(&entries[0].gid, &gid, sizeof(gid)) == 0);
    CHECK(ibv_query_gid_table(context, entries, 0, 0) == -EINVAL);
    CHECK(ibv_query_gid_ex(context, 1, 0, &entries[1], 0) == 0 &&
          entries[1].gid_type == IBV_GID_TYPE_IB);
    CHECK(ibv_query_pkey(context, 1, 0, &pkey) == 0 && ibv_get_pkey_index(context, 1, pkey) == 0);
    CHECK(ibv_query_port(context, 2, &port) == EINVAL);
    CHECK(!ibv_reg_mr(pd, memory, 64, IBV_ACCESS_REMOTE_WRITE) && errno == EINVAL);
    CHECK(!ibv_reg_mr(pd, memory, 64, IBV_ACCESS_ON_DEMAND) && errno == EOPNOTSUPP);
    named =
        ibv_reg_mr_iova(pd, memory, 64, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING);
    CHECK(named && named->lkey == named->rkey && ibv_dealloc_pd(pd) == EBUSY &&
          ibv_dereg_mr(named) == 0);
    extended.cap.max_send_wr = extended.cap.max_send_sge = 1;
    extended.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_MAX_TSO_HEADER;
    CHECK(!ibv_create_qp_ex(context, &extended) && errno == EOPNOTSUPP);
    extended.comp_mask = IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    CHECK(!ibv_create_qp_ex(context, &extended) && errno == EINVAL);
    extended.comp_mask = IBV_QP_INIT_ATTR_PD;
    CHECK(ibv_destroy_qp(other) == 0);
    other = ibv_create_qp_ex(context, &extended);
    CHECK(other && other->pd == pd && !ibv_qp_to_qp_ex(other));
    CHECK(ibv_destroy_qp(one) == 0 && ibv_destroy_qp(other) == 0 && ibv_destroy_cq(cq) == 0);
}

static struct ibv_srq *make_srq(void)
{
    struct ibv_srq_init_attr init = {.attr = {.max_wr = 1, .max_sge = 1}};
    return ibv_create_srq(pd, &init);
}

static struct ibv_ah *make_ah(void)
{
    struct ibv_ah_attr attr = {.dlid = 1, .port_num = 1};
    return ibv_create_ah(pd, &attr);
}

/* As many as the device says, and one more once one of them is gone. */
#define FILL_UP(most, object, make, destroy)                                                       \
    do {                                                                                           \
        int n = 0, all = (most);                                                                   \
        struct object **made = calloc((size_t)all + 1, sizeof(*made));                             \
        CHECK(made);                                                                               \
        while (n <= all && (made[n] = (make)) != NULL)                                             \
            n++;                                                                                   \
        CHECK(n == all && errno == ENOMEM);                                                        \
        CHECK((destroy)(made[n - 1]) == 0 && (made[n - 1] = (make)) != NULL);                      \
        while (n != 0)                                                                             \
            CHECK((destroy)(made[--n]) == 0);                                                      \
        free(made);                                                                                \
    } while (0)

static void limits(void)
{
    struct ibv_device_attr device;
    CHECK(ibv_query_device(context, &device) == 0);
    FILL_UP(device.max_pd - 1, ibv_pd, ibv_alloc_pd(context), ibv_dealloc_pd);
    FILL_UP(device.max_cq, ibv_cq, ibv_create_cq(context, 1, NULL, NULL, 0), ibv_destroy_cq);
    FILL_UP(device.max_srq, ibv_srq, make_srq(), ibv_destroy_srq);
    FILL_UP(device.max_ah, ibv_ah, make_ah(), ibv_destroy_ah);
}

int main(void)
{
    int n = 0;
    struct ibv_device **list = ibv_get_device_list(&n);
    struct ibv_device *device = NULL;
    for (int i = 0; i < n; i++)
        if (strcmp(ibv_get_device_name(list[i]), "ntb0") == 0)
            device = list[i];
    CHECK(device && list[n] == NULL && ibv_get_device_guid(device) != 0 &&
          ibv_get_device_index(device) > 0);
    context = ibv_open_device(device);
    CHECK(context);
    ibv_free_device_list(list);
    CHECK(ibv_query_port(context, 1, &port) == 0 && port.state == IBV_PORT_ACTIVE && port.lid != 0);
    pd = ibv_alloc_pd(context);
    mr = ibv_reg_mr(pd, memory, sizeof(memory),
                    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                        IBV_ACCESS_REMOTE_ATOMIC);
    CHECK(pd && mr && mr->addr == memory && mr->length == sizeof(memory));
    memcpy(memory, "fifteen letters", 16);
    unread_events();
    CHECK(memcmp(memory + 4096, memory, 16) == 0);
    wrong_key();
    limit();
    changed_region();
    missing_memory();
    resized_queue();
    extended_queue();
    extended_posting();
    extended_datagrams();
    windows();
    queries_and_refusals();
    limits();
    CHECK(ibv_dereg_mr(mr) == 0 && ibv_dealloc_pd(pd) == 0 && ibv_close_device(context) == 0);
    return 0;
}

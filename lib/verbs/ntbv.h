/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The verbs engine behind a border in plain C: doc/verbs.md. For shims and tests; not installed.
 *
 * Numbers of opcodes, statuses, rights, states and attribute masks are those of the public verbs
 * interface, so that a shim passes them on. Functions return 0 or a negative errno. Any thread may
 * call any function, but for the one that ends an object.
 */
#ifndef NTBV_H
#define NTBV_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ntbv_engine;
struct ntbv_node;
struct ntbv_pd;
struct ntbv_cq;
struct ntbv_channel;
struct ntbv_srq;
struct ntbv_qp;
struct ntbv_mw;

enum ntbv_limit {
    NTBV_MAX_SGE = 16,
    NTBV_MAX_INLINE = 256,
    NTBV_MAX_WR = 16384,
    NTBV_MAX_CQE = 4194304,
    NTBV_MAX_QP = 16384,
    NTBV_MAX_PD = 65536,
    NTBV_MAX_CQ = 65536,
    NTBV_MAX_SRQ = 65536,
    NTBV_MAX_MR = 65535,  /**< regions and windows together */
    NTBV_MAX_READS = 128, /**< reads and atomics under way of one queue pair */
    NTBV_UD_MTU = 4096,
    NTBV_GRH_BYTES = 40,
    NTBV_MAX_LINKS = 64, /**< peers at a time */
};
/** Longest message in bytes. */
#define NTBV_MAX_MESSAGE 0x80000000u

enum ntbv_access {
    NTBV_LOCAL_WRITE = 1,
    NTBV_REMOTE_WRITE = 2,
    NTBV_REMOTE_READ = 4,
    NTBV_REMOTE_ATOMIC = 8,
    NTBV_MW_BIND = 16,    /**< of a region: windows may be bound to it */
    NTBV_ZERO_BASED = 32, /**< of a binding: the peer counts from the window's begin */
};

enum ntbv_mw_type { NTBV_MW_1 = 1, NTBV_MW_2 = 2 };

enum ntbv_qp_type { NTBV_RC = 2, NTBV_UC = 3, NTBV_UD = 4 };

enum ntbv_qp_state { NTBV_RESET, NTBV_INIT, NTBV_RTR, NTBV_RTS, NTBV_SQD, NTBV_SQE, NTBV_ERR };

enum ntbv_opcode {
    NTBV_WRITE,
    NTBV_WRITE_IMM,
    NTBV_SEND,
    NTBV_SEND_IMM,
    NTBV_READ,
    NTBV_CMP_SWP,
    NTBV_FETCH_ADD,
    NTBV_LOCAL_INV,
    NTBV_BIND_MW,
    NTBV_SEND_INV,
};

enum ntbv_send_flag {
    NTBV_FENCE = 1,
    NTBV_SIGNALED = 2,
    NTBV_SOLICITED = 4,
    NTBV_INLINE = 8,
};

enum ntbv_status {
    NTBV_SUCCESS = 0,
    NTBV_LOC_LEN_ERR = 1,
    NTBV_LOC_QP_OP_ERR = 2,
    NTBV_LOC_PROT_ERR = 4,
    NTBV_WR_FLUSH_ERR = 5,
    NTBV_MW_BIND_ERR = 6,
    NTBV_BAD_RESP_ERR = 7,
    NTBV_REM_INV_REQ_ERR = 9,
    NTBV_REM_ACCESS_ERR = 10,
    NTBV_REM_OP_ERR = 11,
    NTBV_RETRY_EXC_ERR = 12,
    NTBV_RNR_RETRY_EXC_ERR = 13,
};

enum ntbv_wc_opcode {
    NTBV_WC_SEND = 0,
    NTBV_WC_WRITE = 1,
    NTBV_WC_READ = 2,
    NTBV_WC_CMP_SWP = 3,
    NTBV_WC_FETCH_ADD = 4,
    NTBV_WC_BIND_MW = 5,
    NTBV_WC_LOCAL_INV = 6,
    NTBV_WC_RECV = 128,
    NTBV_WC_RECV_WRITE_IMM = 129,
};

enum ntbv_wc_flag { NTBV_WC_GRH = 1, NTBV_WC_WITH_IMM = 2, NTBV_WC_WITH_INV = 8 };

enum ntbv_event {
    NTBV_EVENT_CQ_ERR = 0,
    NTBV_EVENT_QP_FATAL = 1,
    NTBV_EVENT_QP_REQ_ERR = 2,
    NTBV_EVENT_QP_ACCESS_ERR = 3,
    NTBV_EVENT_SQ_DRAINED = 5,
    NTBV_EVENT_SRQ_LIMIT_REACHED = 15,
    NTBV_EVENT_LAST_WQE_REACHED = 16,
};

enum ntbv_qp_mask {
    NTBV_QP_STATE = 1 << 0,
    NTBV_QP_CUR_STATE = 1 << 1,
    NTBV_QP_SQD_NOTIFY = 1 << 2,
    NTBV_QP_ACCESS = 1 << 3,
    NTBV_QP_PKEY_INDEX = 1 << 4,
    NTBV_QP_PORT = 1 << 5,
    NTBV_QP_QKEY = 1 << 6,
    NTBV_QP_AV = 1 << 7,
    NTBV_QP_PATH_MTU = 1 << 8,
    NTBV_QP_TIMEOUT = 1 << 9,
    NTBV_QP_RETRY_CNT = 1 << 10,
    NTBV_QP_RNR_RETRY = 1 << 11,
    NTBV_QP_RQ_PSN = 1 << 12,
    NTBV_QP_MAX_RD_ATOMIC = 1 << 13,
    NTBV_QP_MIN_RNR_TIMER = 1 << 15,
    NTBV_QP_SQ_PSN = 1 << 16,
    NTBV_QP_MAX_DEST_RD_ATOMIC = 1 << 17,
    NTBV_QP_DEST_QPN = 1 << 20,
};

enum ntbv_srq_mask { NTBV_SRQ_MAX_WR = 1, NTBV_SRQ_LIMIT = 2 };

/** A piece of local memory. */
struct ntbv_sge {
    uint64_t address;
    uint32_t length;
    uint32_t key;
};

/** What NTBV_BIND_MW is to do. */
struct ntbv_bind {
    struct ntbv_mw *mw;
    uint32_t key; /**< type 2: its key with lowest 8 bits of the program's; 1: takes the new key */
    uint32_t region_key; /**< of the region that it is bound to */
    uint64_t address;    /**< as the region calls it */
    uint64_t length;     /**< 0: a window of type 1 leads nowhere from then on */
    unsigned access;     /**< of ntbv_access, what peers may do */
};

/**
 * A request. Copied by the post, with its list of pieces. It begins as one of the public interface
 * does: of a connected queue pair nothing behind imm is read of a SEND, and nothing behind
 * remote_key is used of a write or a read.
 */
struct ntbv_send_wr {
    uint64_t id;
    const struct ntbv_send_wr *next;
    const struct ntbv_sge *sge;
    int n_sge;
    uint32_t opcode; /**< ntbv_opcode */
    unsigned flags;  /**< ntbv_send_flag */
    uint32_t imm;    /**< NTBV_LOCAL_INV, NTBV_SEND_INV: the key that is to end */
    uint64_t remote_address;
    uint32_t remote_key;
    uint32_t remote_qpn;  /**< UD */
    uint32_t remote_qkey; /**< UD; with its highest bit, the queue pair's own is used */
    uint16_t remote_lid;  /**< UD */
    uint64_t compare_add;
    uint64_t swap;
    struct ntbv_bind *bind; /**< NTBV_BIND_MW */
};

struct ntbv_recv_wr {
    uint64_t id;
    const struct ntbv_recv_wr *next;
    const struct ntbv_sge *sge;
    int n_sge;
};

/** A completion, in the layout of the public verbs interface. What has no comment is 0. */
struct ntbv_wc {
    uint64_t id;     /**< of the request or the receive */
    uint32_t status; /**< ntbv_status; if not 0, only id, status and qpn are valid */
    uint32_t opcode; /**< ntbv_wc_opcode */
    uint32_t vendor_error;
    uint32_t bytes;      /**< received, or asked for */
    uint32_t imm;        /**< or the key that has ended, with NTBV_WC_WITH_INV */
    uint32_t qpn;        /**< of the own queue pair */
    uint32_t source_qpn; /**< UD */
    uint32_t flags;      /**< ntbv_wc_flag */
    uint16_t pkey_index;
    uint16_t source_lid; /**< UD */
    uint8_t service_level;
    uint8_t path_bits;
};

struct ntbv_qp_init {
    enum ntbv_qp_type type;
    struct ntbv_cq *send_cq;
    struct ntbv_cq *recv_cq;
    struct ntbv_srq *srq; /**< or NULL */
    uint32_t max_send_wr; /**< these five are raised to what was made */
    uint32_t max_recv_wr;
    uint32_t max_send_sge;
    uint32_t max_recv_sge;
    uint32_t max_inline; /**< bytes */
    int signal_all;      /**< each request has a completion */
    uint64_t cookie;     /**< of its asynchronous events */
};

struct ntbv_qp_attr {
    enum ntbv_qp_state state;
    enum ntbv_qp_state cur_state;
    unsigned access; /**< ntbv_access: what the peer may do */
    uint32_t qkey;
    uint32_t rq_psn; /**< 24 bits */
    uint32_t sq_psn;
    uint32_t dest_qpn;
    uint16_t dest_lid; /**< of NTBV_QP_AV */
    uint16_t pkey_index;
    uint8_t port;     /**< 1 */
    uint8_t path_mtu; /**< 1 to 5: 256 to 4096 bytes */
    uint8_t max_rd_atomic;
    uint8_t max_dest_rd_atomic;
    uint8_t min_rnr_timer; /**< code of the specification, 0 to 31 */
    uint8_t timeout;       /**< 4.096 us x 2^timeout, 0 to 31 */
    uint8_t retry_cnt;     /**< 0 to 7 */
    uint8_t rnr_retry;     /**< 0 to 7, 7: for ever */
    uint8_t sqd_notify;
};

/** How memory is direct: ntbv_node_be_direct(). */
enum ntbv_direct {
    NTBV_DIRECT,
    NTBV_DIRECT_SENDS, /**< and peers take the data of long SENDs from where they lie */
};

/** What an engine counts where memory is direct: regions, why they are not shared, requests. */
enum ntbv_count {
    NTBV_COUNT_SHARED,      /**< regions whose pages peers can map */
    NTBV_COUNT_NO_PAGES,    /**< regions that are no whole pages */
    NTBV_COUNT_NO_RIGHTS,   /**< that no peer may read or write */
    NTBV_COUNT_WINDOWS,     /**< that windows may be bound to */
    NTBV_COUNT_OVERLAPS,    /**< whose pages another one shares */
    NTBV_COUNT_NOT_PLAIN,   /**< not private anonymous memory that nothing was promised of */
    NTBV_COUNT_NO_SEGMENT,  /**< for which the daemon had no segment: quota, memory, carrier */
    NTBV_COUNT_NO_EXCHANGE, /**< whose pages the kernel did not exchange */
    NTBV_COUNT_GRANTED,     /**< grants to peers */
    NTBV_COUNT_NOT_GRANTED, /**< that the carrier to the peer refused */
    NTBV_COUNT_WRITES,      /**< requests that went directly */
    NTBV_COUNT_READS,
    NTBV_COUNT_LENT, /**< requests whose data the peer was to take from where they lie */
    NTBV_N_COUNTS,
};

/** Nanoseconds of a monotonic clock. */
typedef uint64_t (*ntbv_clock)(void *context);

/**
 * @param lid    of this host, 1 to 0xbfff
 * @param node   of this engine in it, 0 to 1023: the upper 10 bits of its queue pairs' numbers
 * @param clock  NULL: CLOCK_MONOTONIC
 * @return NULL and errno: EINVAL a bad LID or node, ENOMEM, EMFILE
 */
struct ntbv_engine *ntbv_engine_create(uint16_t lid, uint16_t node, ntbv_clock clock,
                                       void *context);
/** Frees the engine; its ports stay their owner's. @retval -EBUSY if objects of it exist */
int ntbv_engine_destroy(struct ntbv_engine *engine);
/**
 * Drives all links once: bounded work.
 * @return messages taken and sent; 0: nothing to do
 */
int ntbv_engine_drive(struct ntbv_engine *engine);
/**
 * Readable when there is an asynchronous event: 16 bytes, cookie, type (uint32_t), zero. Of a
 * program that reads none those are dropped for which there is no more room.
 */
int ntbv_engine_events(struct ntbv_engine *engine);
/** @param which  less than NTBV_N_COUNTS @return since the engine was made */
uint64_t ntbv_engine_count(struct ntbv_engine *engine, enum ntbv_count which);

/**
 * Makes an engine that finds its peers by the node daemon, with a thread that serves it. Its LID is
 * that of all nodes of this host; its node number is chosen at random, and unique among the
 * nodes of both hosts.
 * @param socket  of the daemon
 * @param clock   as of ntbv_engine_create()
 * @return 0, or a negative errno of ntbclient_attach() and ntbclient_listen()
 */
int ntbv_node_open(const char *socket, ntbv_clock clock, void *context, struct ntbv_node **node);
struct ntbv_engine *ntbv_node_engine(struct ntbv_node *node);
uint16_t ntbv_node_lid(const struct ntbv_node *node);
/**
 * From now on regions of whole pages are shared with peers that are direct as well, and requests of
 * reliable connections use theirs without a message: doc/verbs.md, section 6. A peer can then read
 * and write all of a region until it is deregistered. With NTBV_DIRECT_SENDS a peer can also read
 * all of a region without rights for peers, once something of it was sent there. Before there are
 * any objects.
 * @retval -EOPNOTSUPP the kernel cannot exchange pages for this user
 */
int ntbv_node_be_direct(struct ntbv_node *node, enum ntbv_direct how);
/** Peers still receive what was sent. @retval -EBUSY if objects of its engine exist */
int ntbv_node_close(struct ntbv_node *node);

/** @retval -ENOMEM no memory, or there are NTBV_MAX_PD */
int ntbv_pd_create(struct ntbv_engine *engine, struct ntbv_pd **pd);
/** @retval -EBUSY if regions, queue pairs or shared receive queues belong to it */
int ntbv_pd_destroy(struct ntbv_pd *pd);

/**
 * Registers memory, which has to be there until ntbv_mr_deregister() has returned.
 * @param iova    by which local requests and the peer call `memory`
 * @param access  of ntbv_access
 * @param key     takes the key
 * @retval -EINVAL unknown rights, remote write or atomic without local write, or a range that wraps
 * @retval -ENOMEM no more regions
 */
int ntbv_mr_register(struct ntbv_pd *pd, void *memory, uint64_t length, uint64_t iova,
                     unsigned access, uint32_t *key);
/**
 * Gives a region another domain of the same engine, other memory, or other rights; its key stays.
 * Requests that name it and are not complete may use either. What fails changes nothing.
 * @param pd      that it belongs to
 * @param new_pd  that it belongs to from then on; may be the same
 * @retval -EINVAL no such key, domains of two engines, or as ntbv_mr_register()
 * @retval -EBUSY windows are bound to it
 */
int ntbv_mr_reregister(struct ntbv_pd *pd, uint32_t key, struct ntbv_pd *new_pd, void *memory,
                       uint64_t length, uint64_t iova, unsigned access);
/**
 * When it has returned, no byte is read or changed by anyone.
 * @retval -EINVAL no such key
 * @retval -EBUSY windows are bound to it
 */
int ntbv_mr_deregister(struct ntbv_pd *pd, uint32_t key);

/**
 * Makes a memory window, which leads nowhere until a request NTBV_BIND_MW binds it.
 * @param key  takes its key
 * @retval -EINVAL no such type
 * @retval -ENOMEM no more regions and windows
 */
int ntbv_mw_create(struct ntbv_pd *pd, enum ntbv_mw_type type, struct ntbv_mw **mw, uint32_t *key);
/** Peers reach nothing by it any more. A request that would bind it fails. */
void ntbv_mw_destroy(struct ntbv_mw *mw);

/** @retval -EMFILE, -ENFILE no descriptor */
int ntbv_channel_create(struct ntbv_engine *engine, struct ntbv_channel **channel);
/** @retval -EBUSY if completion queues use it */
int ntbv_channel_destroy(struct ntbv_channel *channel);
/** Readable when there is an event: 8 bytes, the queue's cookie. */
int ntbv_channel_descriptor(struct ntbv_channel *channel);

/**
 * @param channel  or NULL
 * @param cookie  of its events
 * @retval -EINVAL entries not 1 to 4 Mi
 * @retval -ENOMEM no memory, or there are NTBV_MAX_CQ
 */
int ntbv_cq_create(struct ntbv_engine *engine, uint32_t entries, struct ntbv_channel *channel,
                   uint64_t cookie, struct ntbv_cq **cq);
/**
 * Makes room for more completions, or fewer; those that wait in it stay.
 * @retval -EINVAL entries not 1 to 4 Mi, or fewer than wait in it
 * @retval -ENOMEM no memory: it is as it was
 */
int ntbv_cq_resize(struct ntbv_cq *cq, uint32_t entries);
/** @retval -EBUSY if queue pairs use it */
int ntbv_cq_destroy(struct ntbv_cq *cq);
/** Drives the engine if nothing is there. @return completions, or -EIO: the queue has overrun */
int ntbv_cq_poll(struct ntbv_cq *cq, int n, struct ntbv_wc *wc);
/** One event for the next completion that arrives from now on. @retval -EINVAL no channel */
int ntbv_cq_arm(struct ntbv_cq *cq, int solicited_only);

/** @retval -ENOMEM no memory, or there are NTBV_MAX_SRQ */
int ntbv_srq_create(struct ntbv_pd *pd, uint32_t max_wr, uint32_t max_sge, uint32_t limit,
                    uint64_t cookie, struct ntbv_srq **srq);
/** @retval -EBUSY if queue pairs use it */
int ntbv_srq_destroy(struct ntbv_srq *srq);
/** @retval -EINVAL another bit than NTBV_SRQ_LIMIT, or a limit above its size */
int ntbv_srq_modify(struct ntbv_srq *srq, unsigned mask, uint32_t limit);
/** The limit that is armed; 0: none is. */
uint32_t ntbv_srq_limit(struct ntbv_srq *srq);
int ntbv_srq_post(struct ntbv_srq *srq, const struct ntbv_recv_wr *wr,
                  const struct ntbv_recv_wr **bad);

/**
 * @retval -EINVAL a limit is exceeded, or something of another engine
 * @retval -EOPNOTSUPP a type that is not there
 */
int ntbv_qp_create(struct ntbv_pd *pd, struct ntbv_qp_init *init, struct ntbv_qp **qp);
/** Its completions that were not polled go with it. */
int ntbv_qp_destroy(struct ntbv_qp *qp);
uint32_t ntbv_qp_number(const struct ntbv_qp *qp);
/** @retval -EINVAL a transition, mask or value that is not allowed: nothing has changed */
int ntbv_qp_modify(struct ntbv_qp *qp, const struct ntbv_qp_attr *attr, unsigned mask);
int ntbv_qp_query(struct ntbv_qp *qp, struct ntbv_qp_attr *attr);
/**
 * @param bad  takes the first request that was not taken
 * @retval -EINVAL the state, the opcode, flags, pieces, or a binding that cannot be
 * @retval -ENOMEM the queue is full
 * @retval -EOPNOTSUPP an opcode that is not there
 */
int ntbv_qp_post_send(struct ntbv_qp *qp, const struct ntbv_send_wr *wr,
                      const struct ntbv_send_wr **bad);
/** Posts all requests of the list, or none of them. @retval  those of ntbv_qp_post_send() */
int ntbv_qp_post_send_all(struct ntbv_qp *qp, const struct ntbv_send_wr *wr);
int ntbv_qp_post_recv(struct ntbv_qp *qp, const struct ntbv_recv_wr *wr,
                      const struct ntbv_recv_wr **bad);

#ifdef __cplusplus
}
#endif

#endif

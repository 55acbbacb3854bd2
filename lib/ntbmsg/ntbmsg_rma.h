/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NTBMSG_RMA_H
#define NTBMSG_RMA_H

/**
 * @file
 * ntbmsg one-sided operations (remote memory access), completion queues and regions. Experimental,
 * as a whole. The object model and the rules for threads, sizes and handles are in ntbmsg.h; what
 * is visible where, and what is ordered with what, is in doc/semantics.md.
 *
 * The *requester* posts operations on a channel; the *responder* is the host whose memory they
 * reach. The responder allocates or registers a region, and sends its token to the requester by any
 * way, e.g. in a message. The requester opens the region by that token, posts operations, and polls
 * its completion queue.
 */

#include <stddef.h>
#include <stdint.h>

#include <ntbmsg_channel.h>
#include <rte_compat.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ntbmsg_region;
struct ntbmsg_remote;

/* ------------------------------------------------------------------------------------------------
 * Completion queues
 */

/** Operations. */
enum ntbmsg_op {
    NTBMSG_OP_WRITE = 1,    /**< Write own memory to a region of the peer */
    NTBMSG_OP_WRITE_IMM,    /**< The same, and deliver immediate data to the peer's completion
                                 queue */
    NTBMSG_OP_READ,         /**< Read a region of the peer to own memory */
    NTBMSG_OP_FETCH_ADD,    /**< Add to 8 aligned bytes of a region; returns the value before */
    NTBMSG_OP_COMPARE_SWAP, /**< Replace 8 aligned bytes if equal; returns the value before */
    NTBMSG_OP_RECV_IMM,     /**< In completions only: a WRITE_IMM of the peer was done here */
};

/** The completion of an operation. */
struct ntbmsg_completion {
    uint64_t id;                    /**< ntbmsg_work::id; RECV_IMM: 0 */
    struct ntbmsg_channel *channel; /**< The channel it was posted on */
    void *user;                     /**< ntbmsg_channel_options::user */
    uint64_t value;                 /**< FETCH_ADD, COMPARE_SWAP: the value before */
    uint32_t bytes;      /**< Bytes moved, 0 if status is not 0. RECV_IMM: of the whole write, as
                              the requester counts them */
    uint32_t imm;        /**< RECV_IMM: the immediate data */
    int32_t status;      /**< 0: done.
                              -EKEYREJECTED: there is no such region (any more).
                              -EACCES: the region does not have that right.
                              -ERANGE: outside the region.
                              -ECONNRESET: the channel was reset or the peer lost; the operation may
                              have been done, wholly or in part.
                              -ECANCELED: the channel was closed; the operation may have been done */
    uint8_t op;          /**< enum ntbmsg_op */
    uint8_t reserved[3]; /**< Reserved, 0 */
};

/**
 * Called for each completion instead of queueing it, by the thread that drives the worker (for
 * dedicated workers their polling thread). It must not block, close a channel or release a region.
 * It may reset a channel and post operations. This counts as a use of that channel: where the
 * worker is dedicated, no other thread posts on it at that time.
 *
 * @param completion
 *   Valid until the function returns.
 * @param arg
 *   As given to ntbmsg_cq_create().
 */
typedef void (*ntbmsg_completion_fn)(const struct ntbmsg_completion *completion, void *arg);

/**
 * Creates a completion queue for any number of channels. No completion is lost: an operation is
 * accepted only while the queue has room for its completion, and a WRITE_IMM of the peer waits for
 * room, with all that follows it on its channel.
 *
 * @param entries
 *   1 to 65536, per lane: the first run-to-completion worker that uses the queue has a lane of its
 *   own, all other workers share a second one of the same size.
 * @param fn
 *   Called for each completion; NULL: completions are queued and polled.
 * @param arg
 *   Passed to fn.
 * @param out
 *   The completion queue, set on success only. Destroy it with ntbmsg_cq_destroy().
 * @retval 0
 *   Created.
 * @retval -EINVAL
 *   entries is out of range, or out is NULL.
 * @retval -ENOMEM
 *   No memory.
 */
__rte_experimental
int ntbmsg_cq_create(uint32_t entries, ntbmsg_completion_fn fn, void *arg, struct ntbmsg_cq **out);

/**
 * Destroys a completion queue.
 *
 * @param cq
 *   A completion queue; NULL is ignored.
 * @retval 0
 *   Destroyed.
 * @retval -EBUSY
 *   A channel uses it; for dedicated workers also until they have carried out a close. Call again.
 */
__rte_experimental
int ntbmsg_cq_destroy(struct ntbmsg_cq *cq);

/**
 * Takes completions, oldest first. Does not drive workers: where they run to completion, poll them
 * as well.
 *
 * @param cq
 *   A completion queue. One thread at a time.
 * @param completions
 *   Room for n.
 * @param n
 *   Most completions to take, 1 to 65535.
 * @return
 *   Completions taken, 0 to n.
 * @retval -EINVAL
 *   An argument is NULL, or the queue was destroyed.
 */
__rte_experimental
int ntbmsg_cq_poll(struct ntbmsg_cq *cq, struct ntbmsg_completion *completions, uint16_t n);

/**
 * Returns the event descriptor of a completion queue, for dedicated workers. It is readable after
 * ntbmsg_cq_arm() when a completion is queued. It belongs to the library: never read, write or
 * close it. Workers that run to completion have ntbmsg_worker_event_fd(); if this is used with
 * them, then by the thread that polls them.
 *
 * @param cq
 *   A completion queue.
 * @return
 *   A descriptor, valid until the queue is destroyed; other negative errno values of eventfd().
 * @retval -EINVAL
 *   The queue is NULL or was destroyed.
 */
__rte_experimental
int ntbmsg_cq_event_fd(struct ntbmsg_cq *cq);

/**
 * Arms the event descriptor for one event.
 *
 * @param cq
 *   A completion queue.
 * @retval 0
 *   Armed.
 * @retval 1
 *   Not armed: there are completions, poll first.
 * @retval -EINVAL
 *   The queue is NULL or was destroyed.
 */
__rte_experimental
int ntbmsg_cq_arm(struct ntbmsg_cq *cq);

/* ------------------------------------------------------------------------------------------------
 * Regions
 */

/** The peer may write to a region. */
#define NTBMSG_RIGHT_WRITE 1u
/** The peer may read from it. */
#define NTBMSG_RIGHT_READ 2u
/** The peer may do atomic operations in it. */
#define NTBMSG_RIGHT_ATOMIC 4u

/** Information about a region. */
struct ntbmsg_region_info {
    size_t size;      /**< sizeof(struct ntbmsg_region_info), set by the caller */
    void *address;    /**< Its begin */
    uint64_t bytes;   /**< Its length */
    uint32_t rights;  /**< NTBMSG_RIGHT_WRITE and others */
    uint32_t direct;  /**< 1: the peer can store into it directly, without this host's worker */
    uint64_t writes;  /**< Writes served by this host for the peer */
    uint64_t reads;   /**< Reads served by this host for the peer */
    uint64_t atomics; /**< Atomic operations served by this host for the peer */
    uint64_t refused; /**< Operations of the peer that were refused */
};

/** Names a region to the peer. Sent by any way, e.g. in a message. */
struct ntbmsg_region_token {
    uint8_t bytes[40]; /**< Opaque */
};

/**
 * Allocates a region of zeroed memory that stores of the peer can reach directly: it consists of
 * whole granules of the memory window. On the NUMA node of the device. Any thread.
 *
 * @param endpoint
 *   An open endpoint.
 * @param bytes
 *   Least length in bytes, rounded up to whole granules. The library keeps the last 64 bytes.
 * @param rights
 *   NTBMSG_RIGHT_WRITE and others. Only writes can be direct; reads and atomics are served by this
 *   host's worker. The peer's *hardware* may also read a direct region where the platform has no
 *   write-only mapping (the twin).
 * @param out
 *   The region, set on success only. Release it with ntbmsg_region_release().
 * @retval 0
 *   Allocated.
 * @retval -EINVAL
 *   An argument is NULL or out of range.
 * @retval -ENOTSUP
 *   The device cannot expose memory in pieces.
 * @retval -ENOMEM
 *   No memory.
 * @retval -ENOSPC
 *   More than the memory window shows, or more allocations than it has segments.
 */
__rte_experimental
int ntbmsg_region_alloc(struct ntbmsg_endpoint *endpoint, size_t bytes, uint32_t rights,
                        struct ntbmsg_region **out);

/**
 * Registers memory of the caller as a region. Every operation on it is checked and served by this
 * host's worker. The memory has to stay mapped until the region is released. Any thread.
 *
 * @param endpoint
 *   An open endpoint.
 * @param address
 *   Begin of the memory.
 * @param bytes
 *   Its length, 1 to 2^40 bytes.
 * @param rights
 *   NTBMSG_RIGHT_WRITE and others.
 * @param out
 *   The region, set on success only. Release it with ntbmsg_region_release().
 * @retval 0
 *   Registered.
 * @retval -EINVAL
 *   An argument is NULL or out of range.
 * @retval -EFAULT
 *   Some of the memory is not mapped, or not writable where the rights need it.
 * @retval -ENOMEM
 *   No memory, or there are 4096 regions.
 */
__rte_experimental
int ntbmsg_region_register(struct ntbmsg_endpoint *endpoint, void *address, size_t bytes,
                           uint32_t rights, struct ntbmsg_region **out);

/**
 * Releases a region: revokes the peer's access, and frees the memory if the library allocated it.
 * May wait some milliseconds. Any thread, but not from a completion callback.
 *
 * When 0 is returned, no operation of the peer reaches the memory any more. Later operations, and
 * the rest of those in flight, complete with -EKEYREJECTED at the peer. Direct writes without
 * NTBMSG_WORK_CONFIRM get no answer: they are lost, or reach what is exposed at the same place
 * later in this connection.
 *
 * @param region
 *   A region.
 * @retval 0
 *   Released.
 * @retval -EINVAL
 *   The region is NULL or was released.
 * @retval -EIO
 *   The chip does not answer. New operations are refused, but nothing was freed; call again.
 */
__rte_experimental
int ntbmsg_region_release(struct ntbmsg_region *region);

/**
 * Reads information about a region. Any thread.
 *
 * @param region
 *   A region.
 * @param info
 *   Filled in; the caller sets size.
 * @retval 0
 *   Filled in.
 * @retval -EINVAL
 *   An argument is NULL, the region was released, or info->size is invalid.
 */
__rte_experimental
int ntbmsg_region_info_get(const struct ntbmsg_region *region, struct ntbmsg_region_info *info);

/**
 * Makes the token of a region. It names the region until that is released. The token of a direct
 * region also holds its place in the memory window, which changes with each connection
 * (NTBMSG_EVENT_CONNECTED). By an older token, or where the window has no free granule, the region
 * is served by this host's worker instead. Any thread.
 *
 * @param region
 *   A region.
 * @param token
 *   The token, for the peer.
 * @retval 0
 *   Made.
 * @retval -EINVAL
 *   An argument is NULL, or the region was released.
 * @retval -ENOTCONN
 *   A direct region, and there is no peer.
 */
__rte_experimental
int ntbmsg_region_token_get(const struct ntbmsg_region *region, struct ntbmsg_region_token *token);

/**
 * Opens a region of the peer for operations on a channel. Called by the thread that posts on the
 * channel. Writes are direct once a first store was confirmed to arrive there; until then they are
 * served.
 *
 * @param channel
 *   An open channel with a completion queue.
 * @param token
 *   As the peer sent it; it is checked.
 * @param out
 *   The remote region, set on success only. Close it with ntbmsg_remote_close().
 * @retval 0
 *   Open.
 * @retval -EINVAL
 *   An argument is NULL, the token is invalid, or the channel has no completion queue.
 * @retval -ENOTCONN
 *   The channel is not open.
 * @retval -ENOMEM
 *   No memory.
 */
__rte_experimental
int ntbmsg_remote_open(struct ntbmsg_channel *channel, const struct ntbmsg_region_token *token,
                       struct ntbmsg_remote **out);

/**
 * Closes a region of the peer. No operation on it may be in flight.
 *
 * @param remote
 *   A remote region; NULL is ignored.
 */
__rte_experimental
void ntbmsg_remote_close(struct ntbmsg_remote *remote);

/* ------------------------------------------------------------------------------------------------
 * Operations
 */

/** A piece of own memory. */
struct ntbmsg_sge {
    void *address;     /**< Its begin */
    uint32_t bytes;    /**< Its length */
    uint32_t reserved; /**< Reserved, 0 */
};

/** Most pieces of own memory in an operation. */
#define NTBMSG_MAX_SGES 16
/** Most bytes of an operation (16 MiB). */
#define NTBMSG_MAX_OPERATION 16777216

/** Report the completion; without it, only a failure is reported. */
#define NTBMSG_WORK_SIGNAL 1u
/** Complete a direct write when the peer's worker has seen it, as all other operations do. Without
 * it, a direct write is complete when it was stored: own memory can be reused, and what is sent
 * later on the channel arrives after it. A WRITE_IMM is always confirmed by the peer's worker. */
#define NTBMSG_WORK_CONFIRM 2u

/** An operation. */
struct ntbmsg_work {
    uint64_t id;                   /**< User data, returned in the completion */
    struct ntbmsg_remote *remote;  /**< A region of the peer, opened for this channel */
    uint64_t offset;               /**< Offset in it in bytes; atomics: a multiple of 8 */
    const struct ntbmsg_sge *sges; /**< Own memory: the source of a write, the destination of a
                                        read. The array is read before the call returns; the memory
                                        is in use until the operation is complete. Atomics: NULL */
    uint16_t sge_count;            /**< Pieces, 0 to 16 (NTBMSG_MAX_SGES) */
    uint8_t op;                    /**< enum ntbmsg_op */
    uint8_t flags;                 /**< NTBMSG_WORK_SIGNAL, NTBMSG_WORK_CONFIRM */
    uint32_t imm;                  /**< WRITE_IMM: immediate data */
    uint64_t operand;              /**< FETCH_ADD: addend; COMPARE_SWAP: the new value */
    uint64_t compare;              /**< COMPARE_SWAP: the value to compare with */
    uint64_t reserved;             /**< Reserved for later flags, 0 */
};

/**
 * Posts operations on a channel. They complete in the order of posting: one with NTBMSG_WORK_SIGNAL
 * also reports those before it. One thread at a time per channel.
 *
 * @param channel
 *   An open channel with a completion queue.
 * @param works
 *   n operations, read before the call returns.
 * @param n
 *   Number of operations, 1 to 65535.
 * @return
 *   Operations accepted, 0 to n. Fewer than n is back-pressure (operations in flight, room in the
 *   completion queue or to the peer). If works[0] cannot be posted, a negative value; errors that
 *   only the peer can detect are reported by completions.
 * @retval -EINVAL
 *   The channel is NULL, closed, or has no completion queue, or works[0] is invalid: op, flags,
 *   pieces, or a remote region of another channel.
 * @retval -ERANGE
 *   works[0] is outside its region.
 * @retval -EACCES
 *   The region does not have that right.
 * @retval -ENOTCONN
 *   The channel is not open yet.
 * @retval -ESHUTDOWN
 *   Shut down at this end.
 * @retval -ECONNRESET
 *   Reset, rejected, timed out, or the peer has stopped or was lost.
 */
__rte_experimental
int ntbmsg_channel_post_burst(struct ntbmsg_channel *channel, const struct ntbmsg_work *works,
                              uint16_t n);

#ifdef __cplusplus
}
#endif

#endif

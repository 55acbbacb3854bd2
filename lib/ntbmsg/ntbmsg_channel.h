/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NTBMSG_CHANNEL_H
#define NTBMSG_CHANNEL_H

/**
 * @file
 * ntbmsg workers, channels, listeners and poll sets. The object model and the rules for threads,
 * sizes and handles are in ntbmsg.h.
 */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <ntbmsg_endpoint.h>
#include <rte_compat.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ntbmsg_worker;
struct ntbmsg_listener;
struct ntbmsg_channel;
struct ntbmsg_poll_set;
struct ntbmsg_cq;

/* ------------------------------------------------------------------------------------------------
 * Workers
 */

/**
 * Returns a worker of an endpoint. Any thread.
 *
 * @param endpoint
 *   An open endpoint.
 * @param index
 *   Below ntbmsg_endpoint_options::workers.
 * @return
 *   The worker, valid until the endpoint is closed; NULL if there is none.
 */
struct ntbmsg_worker *ntbmsg_endpoint_worker(struct ntbmsg_endpoint *endpoint, uint16_t index);

/**
 * Drives a worker: receives for its channels, returns credits, checks time-outs, notices the loss
 * of the peer. The work of one call is bounded. ntbmsg_poll_set_poll() and
 * ntbmsg_channel_recv_burst() do this themselves where workers run to completion.
 *
 * @param worker
 *   Of an open endpoint. One thread at a time.
 * @return
 *   Messages and requests handled; 0: nothing to do.
 * @retval -EINVAL
 *   The worker is NULL, or its endpoint was closed.
 */
int ntbmsg_worker_poll(struct ntbmsg_worker *worker);

/**
 * Returns the event descriptor of a worker, for poll() and epoll. It is readable after
 * ntbmsg_worker_arm() when ntbmsg_worker_poll() may have something to do: messages of the peer,
 * requests of other threads to a dedicated worker, a change of the connection. It belongs to the
 * library: never read, write or close it.
 *
 * @param worker
 *   Of an open endpoint. Any thread.
 * @return
 *   A descriptor, valid until the endpoint is closed; other negative errno values of the device.
 * @retval -EINVAL
 *   The worker is NULL, or its endpoint was closed.
 */
__rte_experimental
int ntbmsg_worker_event_fd(struct ntbmsg_worker *worker);

/**
 * Arms the event descriptor of a worker for one event. Called by the thread that polls the worker.
 *
 * Another thread that has a request for an armed worker wakes it by a system call; there is none
 * while the worker polls. Time-outs (of connects, requests and closed channels) are no events: each
 * call of this function checks them. A thread that depends on them limits its sleep and arms again.
 *
 * @param worker
 *   Of an open endpoint.
 * @retval 0
 *   Armed.
 * @retval 1
 *   Not armed: there is something to do, poll first.
 * @retval -EINVAL
 *   The worker is NULL, or its endpoint was closed.
 * @return
 *   Other negative errno values of the device.
 */
__rte_experimental
int ntbmsg_worker_arm(struct ntbmsg_worker *worker);

/**
 * Disarms the event descriptor of a worker and clears it. Called by the same thread after each
 * wait; also allowed when it is not armed.
 *
 * @param worker
 *   Of an open endpoint.
 * @retval 0
 *   Disarmed.
 * @retval -EINVAL
 *   The worker is NULL, or its endpoint was closed.
 */
__rte_experimental
int ntbmsg_worker_disarm(struct ntbmsg_worker *worker);

/* ------------------------------------------------------------------------------------------------
 * Channels
 */

/** Most bytes of private data that travel with a connect, an accept or a reject. */
#define NTBMSG_MAX_PRIVATE 64

/** State of a channel. */
enum ntbmsg_channel_state {
    NTBMSG_CHANNEL_CONNECTING = 1, /**< The peer has not answered yet */
    NTBMSG_CHANNEL_OPEN,           /**< Messages flow */
    NTBMSG_CHANNEL_PEER_CLOSED,    /**< The peer sends no more. What it sent can be received, and
                                        sending continues */
    NTBMSG_CHANNEL_SHUT,           /**< Shut down at this end; receiving continues */
    NTBMSG_CHANNEL_CLOSED,         /**< Shut down at both ends; what arrived can be received */
    NTBMSG_CHANNEL_REJECTED,       /**< Rejected, see ntbmsg_channel_info::reason */
    NTBMSG_CHANNEL_TIMED_OUT,      /**< No answer of the peer's listener in time */
    NTBMSG_CHANNEL_RESET,          /**< Ended by a reset of either end, see reason */
    NTBMSG_CHANNEL_LOST,           /**< Ended by the loss of the peer */
};

/** Why a channel was rejected or reset. As with errno values, those of the library are negative;
 * 0 to INT32_MAX are the application's. */
enum ntbmsg_reason {
    NTBMSG_REASON_NONE = 0,         /**< None was given */
    NTBMSG_REASON_NO_LISTENER = -1, /**< There is no listener on that port */
    NTBMSG_REASON_BACKLOG = -2,     /**< Too many requests wait at the listener */
    NTBMSG_REASON_NO_CHANNEL = -3,  /**< The worker has no free channel */
    NTBMSG_REASON_NO_CREDIT = -4,   /**< All receive memory is granted to other channels */
    NTBMSG_REASON_CLOSED = -5,      /**< The listener or the channel was closed */
    NTBMSG_REASON_PROTOCOL = -6,    /**< The peer violated the protocol */
};

/** Options of a channel. Initialise with ntbmsg_channel_options_init(), then set what differs from
 * the defaults. */
struct ntbmsg_channel_options {
    size_t size;                 /**< sizeof(struct ntbmsg_channel_options) */
    void *user;                  /**< User data, returned with events */
    struct ntbmsg_poll_set *set; /**< Reports events of the channel; NULL: none */
    struct ntbmsg_cq *cq;        /**< Takes its completions; NULL: no one-sided operations */
    uint32_t credit_messages;    /**< Messages that the peer may send before they are received, 4 to
                                      65535: a fixed grant, which other channels do not borrow. 0: a
                                      grant that changes: 64, less when many channels are open or
                                      some have grown (2 are reserved for each that may still be
                                      opened), up to 4096 while the peer uses all of it;
                                      other channels borrow what this one does not use. Either is
                                      less at first where the worker has fewer left
                                      (ntbmsg_endpoint_options::rx_mbufs) */
    uint32_t credit_bytes;       /**< Bytes of receive buffers that they may use: a message longer
                                      than the peer's inline limit uses whole buffers. 0: 65536,
                                      less when many channels are open, up to 8 times as much while
                                      the peer uses all. max_message follows from the first grant */
    uint32_t operations;         /**< One-sided operations in flight, 1 to 4096; 0: 64. Needs cq */
    uint32_t send_depth;         /**< Dedicated workers: messages accepted and not sent yet, 1 to
                                      65535; 0: 64 */
    uint32_t timeout_ms;         /**< Longest wait for the answer to a connect, in milliseconds; 0:
                                      5000 */
    const void *private_data;    /**< Private data for the peer; read before the call returns */
    uint32_t private_bytes;      /**< Bytes of it, 0 to 64 (NTBMSG_MAX_PRIVATE) */
};

/** Information about a channel. */
struct ntbmsg_channel_info {
    size_t size;                     /**< sizeof(struct ntbmsg_channel_info), set by the caller */
    enum ntbmsg_channel_state state; /**< State */
    int32_t reason;               /**< Of a rejection or reset: 0 or more, the peer application's;
                                       negative, enum ntbmsg_reason */
    struct ntbmsg_worker *worker; /**< The worker that carries it */
    void *user;                   /**< ntbmsg_channel_options::user */
    uint16_t port;                /**< The port that was connected to */
    uint16_t id;                  /**< At this end, unique among the open channels of the worker */
    uint32_t max_message;         /**< Longest message in bytes that the peer accepts on it */
    uint32_t credit_messages;     /**< Messages granted by the peer at present, in all */
    uint32_t credit_bytes;        /**< Bytes of receive buffers granted by the peer at present */
    uint32_t granted_messages;    /**< Messages granted to the peer at present, in all */
    uint32_t granted_bytes;       /**< Bytes of receive buffers granted to the peer at present */
    uint64_t tx_messages;         /**< Messages sent */
    uint64_t tx_bytes;            /**< Payload bytes in them */
    uint64_t rx_messages;         /**< Messages received by the caller */
    uint64_t rx_bytes;            /**< Payload bytes in them */
    uint64_t tx_full;             /**< Sends cut short by back-pressure */
    uint64_t unconfirmed;   /**< Sent, and not confirmed as received by the peer application */
    uint32_t private_bytes; /**< Bytes of the peer's private data, once it has answered */
    uint8_t private_data[NTBMSG_MAX_PRIVATE]; /**< The peer's private data */
};

/** A request of the peer to connect. */
struct ntbmsg_request {
    struct ntbmsg_worker *worker;             /**< The worker that will carry the channel */
    struct ntbmsg_listener *listener;         /**< The listener that it is for */
    uint32_t id;                              /**< Used by the library */
    uint32_t private_bytes;                   /**< Bytes of the peer's private data, 0 to 64 */
    uint8_t private_data[NTBMSG_MAX_PRIVATE]; /**< The peer's private data */
    uint64_t reserved[2];                     /**< Reserved, 0 */
};

/**
 * Sets every option to its default, and size.
 *
 * @param options
 *   The options; NULL is ignored.
 */
static inline void ntbmsg_channel_options_init(struct ntbmsg_channel_options *options)
{
    if (options == NULL)
        return;
    memset(options, 0, sizeof(*options));
    options->size = sizeof(*options);
}

/**
 * Opens a listener on a port of this host, for all workers of all endpoints, also those opened
 * later. Any thread.
 *
 * @param port
 *   1 to 65535.
 * @param backlog
 *   Requests per worker that may wait to be taken, 1 to 4096; 0: 64.
 * @param out
 *   The listener, set on success only. Close it with ntbmsg_listener_close().
 * @retval 0
 *   Listening.
 * @retval -EINVAL
 *   port or backlog is out of range, or out is NULL.
 * @retval -EADDRINUSE
 *   There is a listener on the port.
 * @retval -ENOMEM
 *   No memory.
 */
int ntbmsg_listener_open(uint16_t port, uint32_t backlog, struct ntbmsg_listener **out);

/**
 * Closes a listener. Requests that wait are rejected with NTBMSG_REASON_CLOSED by the next poll of
 * their workers, which are not woken for this. Channels that were accepted stay open. No other call
 * with this listener is under way.
 *
 * @param listener
 *   An open listener; NULL is ignored.
 */
void ntbmsg_listener_close(struct ntbmsg_listener *listener);

/**
 * Takes the oldest request that waits at a worker. The caller accepts or rejects it. After the
 * timeout_ms of the peer it expires, and ntbmsg_channel_accept() returns -ENOENT.
 *
 * @param listener
 *   An open listener.
 * @param worker
 *   Of an open endpoint. Run to completion: called by the thread of the worker.
 * @param request
 *   The request, set if 1 is returned.
 * @retval 1
 *   There was a request.
 * @retval 0
 *   There was none.
 * @retval -EINVAL
 *   An argument is NULL or was closed.
 */
int ntbmsg_listener_poll(struct ntbmsg_listener *listener, struct ntbmsg_worker *worker,
                         struct ntbmsg_request *request);

/**
 * Accepts a request. The channel is open when the call returns, and messages can be sent on it.
 *
 * @param request
 *   As ntbmsg_listener_poll() returned it.
 * @param options
 *   Options, with private data for the connecting end; NULL for the defaults.
 * @param out
 *   The channel, set on success only. Close it with ntbmsg_channel_close().
 * @retval 0
 *   The channel is open.
 * @retval -EINVAL
 *   An argument is NULL, or an option is out of range.
 * @retval -E2BIG
 *   Options beyond those that the library knows are set.
 * @retval -ENOENT
 *   The request has expired or was answered, or the peer was lost.
 * @retval -ENOBUFS
 *   There is no credit left to grant. The request was rejected with NTBMSG_REASON_NO_CREDIT.
 */
int ntbmsg_channel_accept(const struct ntbmsg_request *request,
                          const struct ntbmsg_channel_options *options,
                          struct ntbmsg_channel **out);

/**
 * Rejects a request.
 *
 * @param request
 *   As ntbmsg_listener_poll() returned it.
 * @param reason
 *   Passed to the peer, 0 to INT32_MAX.
 * @param data
 *   Private data for the peer; NULL if bytes is 0.
 * @param bytes
 *   Bytes of it, 0 to NTBMSG_MAX_PRIVATE.
 * @retval 0
 *   Rejected.
 * @retval -EINVAL
 *   A required argument is NULL, or reason or bytes is out of range.
 * @retval -ENOENT
 *   The request has expired or was answered, or the peer was lost.
 */
int ntbmsg_request_reject(const struct ntbmsg_request *request, int32_t reason, const void *data,
                          uint32_t bytes);

/**
 * Connects to a port of the peer host. Does not wait for the answer: the channel is in state
 * NTBMSG_CHANNEL_CONNECTING, and its poll set reports NTBMSG_ANSWERED.
 *
 * @param worker
 *   The worker that will carry the channel.
 * @param port
 *   1 to 65535.
 * @param options
 *   Options; NULL for the defaults.
 * @param out
 *   The channel, set on success only. Close it with ntbmsg_channel_close(), whatever the answer is.
 * @retval 0
 *   Connecting.
 * @retval -EINVAL
 *   An argument is NULL, port is 0, or an option is out of range.
 * @retval -E2BIG
 *   Options beyond those that the library knows are set.
 * @retval -ENOTCONN
 *   There is no peer.
 * @retval -ENOSPC
 *   The worker has no free channel.
 * @retval -ENOBUFS
 *   There is no credit left to grant.
 */
int ntbmsg_channel_connect(struct ntbmsg_worker *worker, uint16_t port,
                           const struct ntbmsg_channel_options *options,
                           struct ntbmsg_channel **out);

/**
 * Waits until a channel is no longer connecting. Polls its worker where that runs to completion.
 *
 * @param channel
 *   A channel.
 * @param timeout_ms
 *   Longest wait in milliseconds; 0: return at once.
 * @retval 0
 *   Open, or was open.
 * @retval -ETIMEDOUT
 *   No answer in that time, or within ntbmsg_channel_options::timeout_ms.
 * @retval -ECONNREFUSED
 *   Rejected.
 * @retval -ECONNRESET
 *   Reset, or the peer was lost.
 * @retval -EINVAL
 *   The channel is NULL or closed.
 */
int ntbmsg_channel_wait_open(struct ntbmsg_channel *channel, uint32_t timeout_ms);

/**
 * Returns the state of a channel. Any thread.
 *
 * @param channel
 *   A channel.
 * @return
 *   The state; NTBMSG_CHANNEL_CLOSED if the channel is NULL or closed.
 */
enum ntbmsg_channel_state ntbmsg_channel_state_get(const struct ntbmsg_channel *channel);

/**
 * Reads information about a channel. Any thread; figures that change meanwhile may not fit
 * together.
 *
 * @param channel
 *   A channel.
 * @param info
 *   Filled in; the caller sets size.
 * @retval 0
 *   Filled in.
 * @retval -EINVAL
 *   An argument is NULL, the channel is closed, or info->size is invalid.
 */
int ntbmsg_channel_info_get(const struct ntbmsg_channel *channel, struct ntbmsg_channel_info *info);

/**
 * Ends sending on a channel. The peer receives what was sent before, then the end of it.
 *
 * @param channel
 *   An open channel.
 * @retval 0
 *   Shut down, now or before.
 * @retval -EINVAL
 *   The channel is NULL or closed.
 * @retval -ENOTCONN
 *   The channel is not open.
 */
int ntbmsg_channel_shutdown(struct ntbmsg_channel *channel);

/**
 * Ends a channel at once, at both ends. What was sent and not received yet is dropped and counted.
 *
 * @param channel
 *   A channel in any state.
 * @param reason
 *   Passed to the peer, 0 to INT32_MAX.
 * @retval 0
 *   Reset, or the channel had ended.
 * @retval -EINVAL
 *   The channel is NULL or closed, or reason is negative.
 */
int ntbmsg_channel_reset(struct ntbmsg_channel *channel, int32_t reason);

/**
 * Waits until the peer's application has received all that was sent on a channel. Polls its worker
 * where that runs to completion; not from a completion callback. The peer's worker has to be
 * polled.
 *
 * @param channel
 *   A channel; also one that was shut down.
 * @param timeout_ms
 *   Longest wait in milliseconds; 0: return at once.
 * @retval 0
 *   All messages are confirmed (ntbmsg_channel_info::unconfirmed is 0).
 * @retval -ETIMEDOUT
 *   Not all in that time.
 * @retval -ECONNRESET
 *   The rest is not confirmed any more: the channel was reset, the peer has closed its end without
 *   receiving all, closes its endpoint, or was lost.
 * @retval -ENOTCONN
 *   The channel is not open yet, and messages were sent.
 * @retval -EINTR
 *   A signal handler interrupted the wait while it slept. One that runs between two sleeps does
 *   not end it: a program that must end soon waits for short times and looks at its own flag.
 * @retval -EINVAL
 *   The channel is NULL or closed.
 */
int ntbmsg_channel_flush(struct ntbmsg_channel *channel, uint32_t timeout_ms);

/**
 * Shuts a channel down, waits as ntbmsg_channel_flush() does, and closes it.
 *
 * @param channel
 *   A channel; NULL is ignored.
 * @param linger_ms
 *   Longest wait in milliseconds; 0: none, as ntbmsg_channel_close().
 * @param unconfirmed
 *   Set to the number of messages that the peer's application has not confirmed: they may or may
 *   not be received. NULL if not wanted.
 * @retval 0
 *   Closed.
 */
int ntbmsg_channel_close_linger(struct ntbmsg_channel *channel, uint32_t linger_ms,
                                uint64_t *unconfirmed);

/**
 * Closes a channel in any state. It is shut down if it was open: what was sent still arrives, also
 * if ntbmsg_endpoint_close() follows. Does not wait.
 * Messages that were not received are freed and counted (ntbmsg_endpoint_stats::rx_dropped). A peer
 * that sends more, or does not close its end within timeout_ms, gets a reset with
 * NTBMSG_REASON_CLOSED.
 *
 * @param channel
 *   A channel; NULL is ignored.
 * @retval 0
 *   Closed.
 */
int ntbmsg_channel_close(struct ntbmsg_channel *channel);

/* ------------------------------------------------------------------------------------------------
 * Messages
 */

/**
 * Sends a burst on a channel: one message per mbuf (chain), of 0 to
 * ntbmsg_channel_info::max_message bytes. One thread at a time per channel.
 *
 * @param channel
 *   An open channel.
 * @param mbufs
 *   n messages. Those that were accepted belong to the library, the others to the caller,
 *   unchanged. rte_pmd_plx_ntb_tx_burst() says which mbufs can be sent.
 * @param imm
 *   n values that travel with the messages; NULL for zeros.
 * @param n
 *   Number of messages, 0 to 65535.
 * @return
 *   Messages accepted, 0 to n. Fewer than n is back-pressure (no credit, or no room): the poll set
 *   reports NTBMSG_WRITABLE when sending can go on. If none was accepted for another reason, a
 *   negative value:
 * @retval -ENOTCONN
 *   The channel is not open yet.
 * @retval -ESHUTDOWN
 *   Shut down at this end.
 * @retval -ECONNRESET
 *   Reset, rejected, timed out, or the peer was lost.
 * @retval -EMSGSIZE
 *   mbufs[0] is too long.
 * @retval -EINVAL
 *   The channel is NULL or closed, or mbufs[0] is NULL or an invalid chain.
 */
int ntbmsg_channel_send_burst(struct ntbmsg_channel *channel, struct rte_mbuf **mbufs,
                              const uint32_t *imm, uint16_t n);

/**
 * Receives a burst from a channel, and returns the credit of these messages to the peer. One thread
 * at a time per channel.
 *
 * The data of a message that came in a receive buffer, as all do that are longer than the peer's
 * inline limit, stays writable by the peer until the mbuf is freed, unless the device has the
 * devarg rx=stable.
 *
 * @param channel
 *   A channel in any state.
 * @param mbufs
 *   Room for n. Each mbuf received belongs to the caller, who frees it.
 * @param imm
 *   Room for n; NULL if not wanted.
 * @param n
 *   Most messages to receive, 0 to 65535.
 * @return
 *   Messages received, 0 to n; 0: none yet. If no more can come:
 * @retval -ESHUTDOWN
 *   The peer has shut down, and all that it sent was received.
 * @retval -ECONNRESET
 *   Reset, rejected, timed out, or the peer was lost.
 * @retval -EINVAL
 *   The channel is NULL or closed.
 */
int ntbmsg_channel_recv_burst(struct ntbmsg_channel *channel, struct rte_mbuf **mbufs,
                              uint32_t *imm, uint16_t n);

/**
 * Reserves receive buffers of the peer (rooms), in which the caller builds messages of a channel,
 * as ntbmsg_queue_reserve() does for a bare queue. Run to completion only. All channels of a worker
 * share one queue pair: until the rooms are committed or aborted, no other of them can reserve
 * any, and long messages of all of them wait. Closing the channel gives them back.
 *
 * @param channel
 *   An open channel.
 * @param rooms
 *   Set to the rooms, in the order in which messages use them; room for n.
 * @param n
 *   Most rooms wanted, 0 to 65535.
 * @return
 *   Rooms reserved, 0 to n; fewer than n is back-pressure, as for ntbmsg_channel_send_burst(): no
 *   credit for as many messages and receive buffers, or the peer has no room. If there are none for
 *   another reason, a negative value:
 * @retval -ENOTCONN
 *   The channel is not open yet.
 * @retval -ESHUTDOWN
 *   Shut down at this end.
 * @retval -ECONNRESET
 *   Reset, rejected, timed out, or the peer was lost.
 * @retval -EBUSY
 *   Rooms of an earlier call on a channel of this worker were neither committed nor aborted.
 * @retval -ENOTSUP
 *   The worker is a dedicated one.
 * @retval -EINVAL
 *   The channel is NULL or closed, or rooms is NULL.
 */
__rte_experimental
int ntbmsg_channel_reserve(struct ntbmsg_channel *channel, struct ntbmsg_room *rooms, uint16_t n);

/**
 * Sends messages that lie in reserved rooms, beginning with the first that is left, as
 * ntbmsg_queue_commit() does. All are sent or none. Same thread.
 *
 * @param channel
 *   The channel that reserved them.
 * @param lengths
 *   n lengths in bytes, 1 to ntbmsg_channel_info::max_message each.
 * @param imm
 *   n values that travel with the messages; NULL for zeros.
 * @param n
 *   Number of messages, 0 to 65535.
 * @return
 *   n. Rooms that were not needed remain reserved.
 * @retval -ECONNRESET
 *   The channel was reset, or the peer was lost: nothing was sent, and none is reserved any more.
 * @retval -ESHUTDOWN
 *   Shut down at this end: likewise.
 * @retval -ENOTCONN
 *   The channel is not open yet.
 * @retval -EMSGSIZE
 *   A message is longer than the peer accepts. The rooms remain reserved.
 * @retval -ENOTSUP
 *   The worker is a dedicated one.
 * @retval -EINVAL
 *   The channel is NULL or closed, lengths is NULL, a length is 0, or the messages need more rooms
 *   than are reserved, which remain so.
 */
__rte_experimental
int ntbmsg_channel_commit(struct ntbmsg_channel *channel, const uint32_t *lengths,
                          const uint32_t *imm, uint16_t n);

/**
 * Gives all rooms of a channel back. What was stored in them is never seen. Same thread; also
 * allowed when none is reserved.
 *
 * @param channel
 *   A channel in any state.
 * @retval 0
 *   None is reserved any more.
 * @retval -EINVAL
 *   The channel is NULL or closed.
 */
__rte_experimental
int ntbmsg_channel_abort(struct ntbmsg_channel *channel);

/* ------------------------------------------------------------------------------------------------
 * Poll sets
 */

/** There are messages to receive, or the end of them. */
#define NTBMSG_READABLE 1u
/** Sending can go on after a short count. */
#define NTBMSG_WRITABLE 2u
/** The connect was answered (open or rejected) or has timed out. */
#define NTBMSG_ANSWERED 4u
/** The peer has shut down. */
#define NTBMSG_PEER_SHUT 8u
/** The channel has ended: shut down at both ends, reset or lost. */
#define NTBMSG_ENDED 16u

/** A channel with events. */
struct ntbmsg_ready {
    struct ntbmsg_channel *channel; /**< The channel */
    void *user;                     /**< ntbmsg_channel_options::user */
    uint32_t events;                /**< NTBMSG_READABLE and others */
    uint32_t reserved;              /**< Reserved, 0 */
};

/**
 * Creates a poll set.
 *
 * @param worker
 *   Run to completion: the worker of all its channels, which ntbmsg_poll_set_poll() drives.
 *   Dedicated workers: NULL, for channels of any of them.
 * @param out
 *   The poll set, set on success only. Destroy it with ntbmsg_poll_set_destroy().
 * @retval 0
 *   Created.
 * @retval -EINVAL
 *   out is NULL, or the worker is a dedicated one.
 * @retval -ENOMEM
 *   No memory.
 */
int ntbmsg_poll_set_create(struct ntbmsg_worker *worker, struct ntbmsg_poll_set **out);

/**
 * Destroys a poll set.
 *
 * @param set
 *   A poll set; NULL is ignored.
 * @retval 0
 *   Destroyed.
 * @retval -EBUSY
 *   A channel uses it; for dedicated workers also until they have carried out a close. Call again.
 */
int ntbmsg_poll_set_destroy(struct ntbmsg_poll_set *set);

/**
 * Reports channels with events. An event is reported once. READABLE is reported again when more
 * messages arrive, and after a receive that did not take all. Channels take turns.
 *
 * @param set
 *   A poll set. One thread at a time.
 * @param ready
 *   Room for n.
 * @param n
 *   Most channels to report, 0 to 65535; 0 drives the worker only.
 * @return
 *   Channels reported, 0 to n.
 * @retval -EINVAL
 *   The set is NULL or was destroyed.
 */
int ntbmsg_poll_set_poll(struct ntbmsg_poll_set *set, struct ntbmsg_ready *ready, uint16_t n);

#ifdef __cplusplus
}
#endif

#endif

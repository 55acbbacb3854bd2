/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NTBMSG_H
#define NTBMSG_H

/**
 * @file
 * ntbmsg: messages between two hosts joined by a PCIe non-transparent bridge.
 *
 * Object model
 *
 *     endpoint   one device (a card or a software twin, named as EAL knows it: "raw_plx_ntb0"); its
 *      |         other end is one peer host
 *      +- queue      a bare queue pair: what is sent on queue q here is received from queue q there
 *      +- worker     a queue pair that carries channels, and the engine that drives it
 *      |   +- channel    a connection to a port of the peer host: messages, one-sided operations
 *      |   |   +- remote     a region of the peer, as operations on the channel name it
 *      |   +- pool       receive memory for one channel, or a few
 *      +- region     memory of this host that the peer may write, read or count in
 *     listener   a port of this host, over all its endpoints
 *     poll set   tells which of many channels have something
 *     completion queue   tells what became of operations, of any channels
 *
 * Legal order: rte_eal_init -> ntbmsg_endpoint_open -> everything else -> ntbmsg_endpoint_close ->
 * rte_eal_cleanup. Neither host has to be first, and the peer may die and come back while the
 * endpoint stays open. Channels belong to a connection between the hosts: when the peer is lost
 * each of them ends in NTBMSG_CHANNEL_LOST, and new ones are connected after
 * NTBMSG_EVENT_BACK; listeners and poll sets stay. An application that stops the device below an
 * open endpoint (rte_rawdev_stop()) loses the peer in just that way: NTBMSG_EVENT_LOST is there
 * when the stop returns, the link is NTBMSG_LINK_WAITING, and after rte_rawdev_start() it is as
 * when a peer comes back. All else of the device (configure, queues, its event callback) is the
 * endpoint's until that is closed.
 *
 * Threads: one thread at a time sends on a bare queue and one at a time receives from it; different
 * queues, and the two directions of one, are independent. For workers there are two ways, chosen by
 * ntbmsg_endpoint_options::dedicated, with the same calls:
 *
 * - run to completion: one thread at a time uses a worker and all that belongs to it (channels,
 *   and poll sets of these), and polls for itself by ntbmsg_poll(),
 *   ntbmsg_worker_poll() or a receive;
 * - dedicated: one thread (an lcore, or a DPDK service) calls ntbmsg_worker_poll() without end and
 *   nothing else of the worker; any number of other threads use channels, each channel, poll set
 *   and completion queue by one thread at a time. Direct writes are stored by the thread that posts
 *   them; all else is done by the worker. A shutdown, a reset and a close are asked for, and done
 *   when the worker gets to them; what was sent before them goes first. The polling has stopped,
 *   and no other call is under way, before the endpoint is closed.
 *
 * Open, close and event calls of one endpoint come from one thread at a time. Statistics and link
 * state are safe from any thread. Nothing here blocks but ntbmsg_wait_connected(),
 * ntbmsg_channel_wait_open() and what opens and closes endpoints.
 *
 * Misuse: a handle that was given back (closed, destroyed, revoked) is refused like a NULL one, for
 * a channel until its slot, for a region until its place is used again; what else it could be is
 * not looked at. Where the library was built with checks (meson option `checks`; by itself with
 * buildtype=debug and with the address sanitizer), a handle that was given back is known until its
 * slot or place was used many times again or, where it has memory of its own, until 256 others were
 * given back after it, and one line is logged; what went with its endpoint when that was closed is
 * not known. And a second thread that comes into a channel, poll set, completion queue or worker in
 * which another one is ends the process (rte_panic), which names both calls. Other builds do not
 * look: there the outcome of that is undefined.
 *
 * Delivery: in order (on one queue, on one channel) and exactly once while the peer is there. When
 * it is lost, messages that were sent and not yet confirmed may or may not have arrived; they are
 * counted: ntbmsg_stats::tx_unconfirmed, ntbmsg_channel_info::unconfirmed.
 */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Version of this header: changes that break callers. */
#define NTBMSG_VERSION_MAJOR 0
/** Version of this header: additions. */
#define NTBMSG_VERSION_MINOR 2

struct rte_mbuf;
struct rte_mempool;
struct ntbmsg_endpoint;
struct ntbmsg_worker;
struct ntbmsg_listener;
struct ntbmsg_channel;
struct ntbmsg_poll_set;
struct ntbmsg_remote;
struct ntbmsg_region;
struct ntbmsg_cq;

/** Options of an endpoint. Fill in by ntbmsg_endpoint_options_init(), then change what matters. */
struct ntbmsg_endpoint_options {
    size_t size;          /**< set by the init function: lets this struct grow */
    uint32_t queues;      /**< bare queues, 0 to 64; default 1. Queues and workers: 1 to 64 */
    uint32_t ring_lines;  /**< ring of a queue in 64-byte lines, power of two; 0: device default */
    uint32_t buffers;     /**< buffers for large received messages; 0: device default */
    uint32_t buf_bytes;   /**< data bytes of such a buffer, multiple of 64; 0: device default */
    uint32_t posted;      /**< of them kept ready for the peer, per queue; 0: device default */
    uint32_t inline_max;  /**< longest message copied through the ring, bytes; 0: device default */
    uint32_t max_message; /**< longest message taken from the peer, bytes, with workers at
                             least 256; 0: what the posted buffers hold */
    uint32_t tx_mbufs;    /**< mbufs in the endpoint's own pool (ntbmsg_pool); 0: 4096 */
    uint32_t tx_room;     /**< data room of each in bytes behind the headroom, multiple of 64, 64 to
                             65280; 0: 2048 */
    uint32_t workers;     /**< queue pairs that carry channels; default 0. Both hosts have the same
                             numbers of queues and of workers */
    uint32_t dedicated; /**< 1: a polling lcore drives the workers for other threads; 0: each worker
                           is driven by the thread that uses it */
    uint32_t service;   /**< 1, with dedicated: each worker registers a service
                           "ntbmsg_<device>_<worker>" that polls it on a service lcore */
    uint32_t channels;  /**< most channels a worker, 16 to 65535; 0: 4096 */
    uint32_t rx_mbufs;  /**< short messages that all channels of a worker may hold together, 512 to
                           1048576; 0: 16384. What is left of it bounds the credits of the next
                           channel: by default 4096 channels open with at least 2 each; for 64
                           each, set 64 times the channels */
    uint32_t rendezvous_bytes; /**< memory of a worker for long messages of the peer, power of two,
                                  65536 to 2^30, lent to it as a whole; messages up to that less
                                  32768 bytes, at most NTBMSG_MAX_MESSAGE, need no credit in bytes.
                                  0: none, and messages are as long as credits allow */
    uint32_t pool_bytes;       /**< of rendezvous_bytes, what is kept for pools of channels
                                  (ntbmsg_rx_pool_create()): a multiple of 32768, at most rendezvous_bytes
                                  - 65536. Other channels' messages are that much shorter */
};

/** Travels with a message, opaque to the library. Same layout as rte_pmd_plx_ntb_meta. */
struct ntbmsg_meta {
    uint64_t data;     /**< the caller's */
    uint32_t flags;    /**< the low 6 bits travel */
    uint32_t reserved; /**< 0 */
};

/** Where an endpoint stands with its peer. */
enum ntbmsg_link_state {
    NTBMSG_LINK_WAITING = 1,   /**< the peer is not there (yet, or any more); also while the
                                    application has stopped the device */
    NTBMSG_LINK_CONNECTED = 2, /**< messages flow */
    NTBMSG_LINK_SILENT = 3,    /**< connected, but the peer gives no sign of life */
    NTBMSG_LINK_REFUSED = 5,   /**< the peer speaks another version, or impossible sizes */
};

/** What happens between an endpoint and its peer. */
enum ntbmsg_event_kind {
    NTBMSG_EVENT_BACK = 0,    /**< connected, for the first time or again */
    NTBMSG_EVENT_SILENT = 1,  /**< no sign of life; nothing is lost if it ends */
    NTBMSG_EVENT_AWAKE = 2,   /**< the silence has ended */
    NTBMSG_EVENT_LOST = 3,    /**< the peer is gone, or the device was stopped */
    NTBMSG_EVENT_REFUSED = 4, /**< see ntbmsg_link_why() */
};

/** Counters of an endpoint since it was opened. */
struct ntbmsg_stats {
    size_t size;             /**< in: sizeof(struct ntbmsg_stats) */
    uint64_t tx_messages;    /**< taken for sending */
    uint64_t tx_bytes;       /**< of payload in them */
    uint64_t rx_messages;    /**< handed up */
    uint64_t rx_bytes;       /**< of payload in them */
    uint64_t tx_full;        /**< send bursts that were cut short by back-pressure */
    uint64_t tx_errors;      /**< mbufs refused: NULL, broken, too long */
    uint64_t tx_unconfirmed; /**< sent, but not known to have arrived when the peer was lost */
    uint64_t rx_nombuf;      /**< receive bursts cut short by an empty pool */
    uint64_t links;          /**< how often a peer was connected */
    uint64_t rx_dropped;     /**< arrived, and freed unread: closed or reset channels */
    uint64_t bad_peer;       /**< what the peer's workers sent against the rules of channels */
    uint64_t tx_long;        /**< messages that went through the peer's rendezvous memory */
    uint64_t tx_long_bytes;  /**< stored there: what they hold, once */
    uint64_t tx_dma;         /**< of tx_long, those that were given to a DMA engine */
    uint64_t tx_dma_bytes;   /**< given to it */
    uint64_t tx_dma_errors;  /**< its copies that failed, and were done by the CPU in its place */
};

/** The library's version at run time: major << 16 | minor. */
uint32_t ntbmsg_version(void);

/** Sets every field to its default, and size. NULL is ignored. */
void ntbmsg_endpoint_options_init(struct ntbmsg_endpoint_options *options);

/**
 * Opens an endpoint: configures and starts the device and begins to look for the peer.
 *
 * @param device   name of a probed device, e.g. "raw_plx_ntb0"
 * @param options  NULL for the defaults
 * @param out      set on success only; to be closed by ntbmsg_endpoint_close()
 * @return 0; -EINVAL a NULL argument, an options.size of another library, a value out of range;
 *   -ENODEV no such device, or it is of another driver; -EBUSY it is open already; -ENOMEM no
 *   memory for rings, buffers or pools; other negative errno of the driver. The reason is logged
 * once.
 */
int ntbmsg_endpoint_open(const char *device, const struct ntbmsg_endpoint_options *options,
                         struct ntbmsg_endpoint **out);

/**
 * Tells the peer, stops the device, and releases everything. mbufs that the caller still holds must
 * have been freed before. NULL is ignored. @return 0, or -EBUSY: mbufs of the endpoint's pools are
 * still held, by the caller or by a DMA engine that does not come to an end within seconds; it is
 * stopped but not freed, call again.
 */
int ntbmsg_endpoint_close(struct ntbmsg_endpoint *endpoint);

/**
 * Waits until the peer is connected.
 * @param endpoint    open
 * @param timeout_ms  at most; 0 only looks
 * @return 0 connected; -ETIMEDOUT; -EPROTO the peer was refused (ntbmsg_link_why()); -EINVAL
 */
int ntbmsg_wait_connected(struct ntbmsg_endpoint *endpoint, uint32_t timeout_ms);

/** @return where @p endpoint stands with its peer now */
enum ntbmsg_link_state ntbmsg_link_state(const struct ntbmsg_endpoint *endpoint);

/**
 * Why the endpoint is not connected, in words; empty when it is.
 * @param endpoint     open
 * @param text, bytes  where to write, always terminated
 * @return 0; -EINVAL NULL or bytes 0
 */
int ntbmsg_link_why(const struct ntbmsg_endpoint *endpoint, char *text, size_t bytes);

/** Longest message in bytes that the peer takes now; 0 while not connected. */
uint32_t ntbmsg_max_message(const struct ntbmsg_endpoint *endpoint);

/** A private pool to take mbufs for sending from, headroom 128 and options.tx_room behind it. Lives
 * until close. */
struct rte_mempool *ntbmsg_pool(const struct ntbmsg_endpoint *endpoint);

/**
 * Sends a burst on a bare queue: one message per mbuf (chain). See rte_pmd_plx_ntb_tx_burst() for
 * what may be sent.
 *
 * @param endpoint  open
 * @param queue  below options.queues
 * @param mbufs  n messages; the first `return value` now belong to the library, the rest to the
 * caller
 * @param meta   n entries, or NULL for zeros
 * @param n      0 to 65535
 * @return messages taken, 0 to n: a short count is back-pressure. Nothing taken and -ENOTCONN: no
 * peer; -EMSGSIZE: mbufs[0] is longer than ntbmsg_max_message(); -EINVAL: a NULL or broken
 * mbufs[0], or no such queue.
 */
int ntbmsg_send_burst(struct ntbmsg_endpoint *endpoint, uint16_t queue, struct rte_mbuf **mbufs,
                      const struct ntbmsg_meta *meta, uint16_t n);

/**
 * Receives a burst from a bare queue.
 *
 * @param endpoint, queue  as above
 * @param mbufs  room for n; each that is handed up belongs to the caller, who frees it. Data of a
 * message longer than the sender's inline limit stays writable by the peer until then, unless the
 * device has rx=stable.
 * @param meta   room for n, or NULL
 * @param n      0 to 65535
 * @return messages received, 0 to n, also 0 while there is no peer; -EINVAL no such queue
 */
int ntbmsg_recv_burst(struct ntbmsg_endpoint *endpoint, uint16_t queue, struct rte_mbuf **mbufs,
                      struct ntbmsg_meta *meta, uint16_t n);

/**
 * Takes the oldest event that was not taken yet. Up to 64 wait; when more come the oldest go, and
 * ntbmsg_link_state() still tells the truth.
 * @return 1 and *event; 0 none; -EINVAL
 */
int ntbmsg_event_poll(struct ntbmsg_endpoint *endpoint, enum ntbmsg_event_kind *event);

/** @return 0; -EINVAL a NULL argument or stats->size of another library */
int ntbmsg_stats_get(const struct ntbmsg_endpoint *endpoint, struct ntbmsg_stats *stats);

/* ------------------------------------------------------------------------------------------------
 * Workers
 */

/** @return worker @p index of the endpoint, valid until it is closed; NULL: there is none */
struct ntbmsg_worker *ntbmsg_worker_get(struct ntbmsg_endpoint *endpoint, uint16_t index);

/**
 * Drives a worker: takes what has come for its channels, hands credits back, looks after time-outs,
 * notices the loss of the peer. Bounded work a call. ntbmsg_poll() and ntbmsg_channel_recv_burst()
 * do this by themselves.
 * @return what was handled, 0: nothing; -EINVAL NULL
 */
int ntbmsg_worker_poll(struct ntbmsg_worker *worker);

/**
 * The event descriptor of a worker, for poll() and epoll: readable after ntbmsg_worker_arm() when
 * ntbmsg_worker_poll() may have something to do: the peer's messages, what other threads call for
 * on channels of a dedicated worker, a change of the connection. Never read, write or close it.
 * @return a descriptor; -EINVAL NULL; other negative errno of the device
 */
int ntbmsg_worker_event_fd(struct ntbmsg_worker *worker);

/**
 * Arms it, for one event; by the thread that polls the worker. A call of another thread that finds
 * it armed wakes it, by a system call; while the worker polls there is none. Time-outs (of
 * connects, of requests, of closed channels) are no events: each arming looks after them, and so do
 * polls, not each of them. So a sleeper that counts on them bounds its sleep and arms again, and is
 * late by that bound at most.
 * @return 0 armed; 1 there is something to do: poll; -EINVAL NULL; other negative errno
 */
int ntbmsg_worker_arm(struct ntbmsg_worker *worker);

/** Takes it back; by the same thread, after each wait. @return 0; -EINVAL NULL */
int ntbmsg_worker_disarm(struct ntbmsg_worker *worker);

/**
 * Makes a pool of receive memory for one channel, or a few that may starve each other: who does not
 * receive, or does not free what it has received, uses up this pool and nothing of others. Its data
 * lie in the worker's rendezvous memory (ntbmsg_endpoint_options::pool_bytes). Any thread.
 * @param worker  of an open endpoint
 * @param bytes   rounded up to pieces of 32 KiB; a message takes whole pieces, and the longest one
 *   has all of them
 * @param out     to be given to channels (ntbmsg_channel_options::rx_pool), and destroyed by
 *   ntbmsg_rx_pool_destroy(), or with the endpoint
 * @return 0; -EINVAL; -ENOSPC so much of pool_bytes is not left in one piece, or the worker has 64
 *   pools; -ENOMEM
 */
int ntbmsg_rx_pool_create(struct ntbmsg_worker *worker, size_t bytes, struct rte_mempool **out);

/** @return 0; -EINVAL it is no pool of that worker; -EBUSY a channel has it, mbufs of it are still
 * held, or the peer may still store to them (poll, and call again). Any thread. */
int ntbmsg_rx_pool_destroy(struct ntbmsg_worker *worker, struct rte_mempool *pool);

/** A DMA engine for a worker. Fill in by ntbmsg_dma_options_init(), then set the dmadev. */
struct ntbmsg_dma_options {
    size_t size;        /**< set by the init function */
    int16_t dma_dev;    /**< id of a dmadev that the caller has configured and started: one of the
                             device's own (devarg dmadev=), or any other that reaches the window.
                             It is stopped after the endpoint was closed, or the engine taken away */
    uint16_t dma_vchan; /**< one of its virtual channels, memory to memory, which nobody else uses
                             meanwhile */
    uint32_t min_bytes; /**< long messages from so many bytes on go by it; 1: all; UINT32_MAX: none.
                             0: as the device has measured for its own engines when the hosts
                             connected (rawdev attribute dma_min), which may be never: on the twin,
                             whose engine is the CPU, it is */
    uint32_t depth;     /**< copies under way, 1 to 4096, rounded up to a power of two; 0: 256. The
                             virtual channel should have as many descriptors */
};

/** Sets every field to its default, and size. NULL is ignored. */
void ntbmsg_dma_options_init(struct ntbmsg_dma_options *options);

/**
 * Lets a DMA engine copy long messages (ntbmsg_channel_options::rendezvous_min) of a worker,
 * straight from the sender's mbufs into the peer's rendezvous memory: given by each poll, rung once
 * a poll, completions taken by each poll. An mbuf is held until the engine has read it. The peer is
 * told of a part of a message when the engine has completed it. A copy that fails is done again by
 * the CPU; an engine that halts, or takes no more, is not used any more, which is logged. Messages
 * in memory without an IOVA go by the CPU; memory that the application brought has to be mapped for
 * the engine. By the thread that drives the worker.
 *
 * @param worker   of an open endpoint
 * @param options  NULL: none any more
 * @return 0; -EINVAL NULL, an options.size of another library, a depth out of range; -ENODEV no
 * such dmadev or virtual channel, or it does not copy from memory to memory; -EBUSY the engine
 * before still has copies under way: poll, and call again; -ENOMEM
 */
int ntbmsg_worker_dma_set(struct ntbmsg_worker *worker, const struct ntbmsg_dma_options *options);

/* ------------------------------------------------------------------------------------------------
 * Listening and connecting
 */

/** Most bytes that travel with a connect, an accept or a reject. */
#define NTBMSG_MAX_PRIVATE 64
/** Longest message of a channel whose receiver has rendezvous memory for it (16 MiB). */
#define NTBMSG_MAX_MESSAGE 16777216

/** Where a channel stands. */
enum ntbmsg_channel_state {
    NTBMSG_CHANNEL_CONNECTING = 1,  /**< the peer has not answered yet */
    NTBMSG_CHANNEL_OPEN = 2,        /**< messages flow */
    NTBMSG_CHANNEL_PEER_CLOSED = 3, /**< the peer sends no more; what it sent can be received, and
                                       sending goes on */
    NTBMSG_CHANNEL_SHUT = 4,        /**< shut down here; receiving goes on */
    NTBMSG_CHANNEL_CLOSED = 5,      /**< shut down at both ends; what came can be received */
    NTBMSG_CHANNEL_REJECTED = 6,    /**< see ntbmsg_channel_info::reason */
    NTBMSG_CHANNEL_TIMED_OUT = 7,   /**< the peer's listener did not answer in time */
    NTBMSG_CHANNEL_RESET = 8,       /**< ended at once by either end, see reason */
    NTBMSG_CHANNEL_LOST = 9,        /**< ended by the loss of the peer */
};

/** Reasons of the library for a rejection or a reset: negative, on the wire 0x80000001 and so on.
 * An application's are 0 to 0x7fffffff. */
enum ntbmsg_reason {
    NTBMSG_REASON_NONE = 0,
    NTBMSG_REASON_NO_LISTENER = -0x7fffffff, /**< nobody listens on that port */
    NTBMSG_REASON_BACKLOG = -0x7ffffffe,     /**< too many requests wait there */
    NTBMSG_REASON_NO_CHANNEL = -0x7ffffffd,  /**< the worker has no channel left */
    NTBMSG_REASON_NO_CREDIT = -0x7ffffffc,   /**< its receive memory is promised to others */
    NTBMSG_REASON_CLOSED = -0x7ffffffb,      /**< the listener or the handle was closed */
    NTBMSG_REASON_PROTOCOL = -0x7ffffffa,    /**< the peer broke the rules of the protocol */
};

/** Options of a channel. Fill in by ntbmsg_channel_options_init(), then change what matters. */
struct ntbmsg_channel_options {
    size_t size;                 /**< set by the init function */
    void *user;                  /**< the caller's, told with events */
    struct ntbmsg_poll_set *set; /**< is told of its events; NULL: none */
    struct ntbmsg_cq *cq;        /**< takes its completions; NULL: no operation that completes */
    uint32_t credit_messages;    /**< messages the peer may send that were not received yet, 4 to
                                    65535; 0: 64, less when many channels are open: 2 are kept for
                                    each that may still be. Less is granted where the worker has
                                    less left (ntbmsg_endpoint_options::rx_mbufs) */
    uint32_t credit_bytes;       /**< and bytes in receive buffers: a message longer than the peer's
                                    inline limit counts as whole buffers; 0: 65536, less when many
                                    channels are open */
    uint32_t operations;         /**< one-sided operations under way, 1 to 4096; 0: 64. Needs cq */
    uint32_t send_depth;         /**< messages taken from the caller and not sent yet, dedicated
                                    workers, 1 to 65535; 0: 64 */
    uint32_t timeout_ms;         /**< for the answer to a connect; 0: 5000 */
    uint32_t rendezvous_min;     /**< messages from so many bytes on are stored straight into the
                                    peer's rendezvous memory, where it has some, and longer ones
                                    than credits allow in any case; 0: 65536. The peer grants the
                                    memory first; at most 4 are on their way */
    struct rte_mempool *rx_pool; /**< of ntbmsg_rx_pool_create() for its worker: messages that the
                                    peer does not send inside the ring (longer than its inline
                                    limit) are received into this pool alone, by rendezvous;
                                    credit_bytes means nothing then. NULL: none of its own */
    const void *private_data;    /**< given to the peer; copied */
    uint32_t private_bytes;      /**< 0 to NTBMSG_MAX_PRIVATE */
};

/** What is known of a channel. */
struct ntbmsg_channel_info {
    size_t size;                     /**< in: sizeof(struct ntbmsg_channel_info) */
    enum ntbmsg_channel_state state; /**< see there */
    uint32_t reason;              /**< of a rejection or reset: the peer's, or enum ntbmsg_reason */
    struct ntbmsg_worker *worker; /**< which carries it */
    void *user;                   /**< as in its options */
    uint16_t port;                /**< the port that was connected to */
    uint16_t id;                  /**< at this end, unique among the worker's open channels */
    uint32_t max_message;         /**< longest message the peer takes on it, bytes */
    uint32_t credit_messages;     /**< the peer granted in all */
    uint32_t credit_bytes;        /**< the peer granted in all */
    uint32_t window_messages;     /**< granted to the peer in all */
    uint32_t window_bytes;        /**< granted to the peer in all */
    uint64_t tx_messages;         /**< sent */
    uint64_t tx_bytes;            /**< of payload in them */
    uint64_t rx_messages;         /**< received by the caller */
    uint64_t rx_bytes;            /**< of payload in them */
    uint64_t tx_full;             /**< sends that were cut short by back-pressure */
    uint64_t unconfirmed;   /**< sent and not known to be received by the peer's application */
    uint32_t private_bytes; /**< the peer's private data, once it has answered: how many */
    uint8_t private_data[NTBMSG_MAX_PRIVATE]; /**< and which */
};

/** A peer that wants to connect. */
struct ntbmsg_request {
    struct ntbmsg_worker *worker;     /**< over which it came, and which will carry the channel */
    struct ntbmsg_listener *listener; /**< for which */
    uint32_t id;                      /**< the library's */
    uint32_t private_bytes;           /**< 0 to NTBMSG_MAX_PRIVATE */
    uint8_t private_data[NTBMSG_MAX_PRIVATE]; /**< the peer's */
};

/** Sets every field to its default, and size. NULL is ignored. */
void ntbmsg_channel_options_init(struct ntbmsg_channel_options *options);

/**
 * Listens on a port of this host, over all workers of all endpoints, also ones opened later. Any
 * thread.
 * @param port     1 to 65535
 * @param backlog  requests a worker that may wait to be taken, 1 to 4096; 0: 64
 * @param out      to be closed by ntbmsg_listener_close()
 * @return 0; -EINVAL; -EADDRINUSE somebody listens there; -ENOMEM
 */
int ntbmsg_listen(uint16_t port, uint32_t backlog, struct ntbmsg_listener **out);

/**
 * Ends it: requests that wait are rejected (NTBMSG_REASON_CLOSED) by the next poll of their
 * workers, which are not woken for that; channels stay. No other call with this listener may be
 * under way. NULL is ignored.
 */
void ntbmsg_listener_close(struct ntbmsg_listener *listener);

/**
 * Takes the oldest request that waits at a worker. It has to be accepted or rejected; after
 * timeout_ms of the peer it is forgotten, and an accept says -ENOENT.
 * @param listener  open
 * @param worker    run to completion: called by its thread
 * @param request   set when 1 is returned
 * @return 1 and *request; 0 none; -EINVAL
 */
int ntbmsg_listener_poll(struct ntbmsg_listener *listener, struct ntbmsg_worker *worker,
                         struct ntbmsg_request *request);

/**
 * Accepts. The channel is open at once, and may be sent on.
 * @param request  as ntbmsg_listener_poll() gave it
 * @param options  NULL for the defaults; private data goes to the connecting side
 * @param out      the channel, to be closed by ntbmsg_channel_close()
 * @return 0; -EINVAL; -ENOENT the peer has given up or was lost, or the request was answered;
 *   -ENOBUFS no credit is left to grant (the peer is told NTBMSG_REASON_NO_CREDIT)
 */
int ntbmsg_accept(const struct ntbmsg_request *request,
                  const struct ntbmsg_channel_options *options, struct ntbmsg_channel **out);

/**
 * Rejects.
 * @param request      as ntbmsg_listener_poll() gave it
 * @param reason       0 to 0x7fffffff
 * @param data, bytes  private data, at most NTBMSG_MAX_PRIVATE
 * @return 0; -EINVAL; -ENOENT as above
 */
int ntbmsg_reject(const struct ntbmsg_request *request, uint32_t reason, const void *data,
                  uint32_t bytes);

/**
 * Connects to a port of the peer host. Returns at once with a channel in state CONNECTING; the
 * answer is an event of its poll set and a change of ntbmsg_channel_state().
 * @param worker   that will carry it
 * @param port     1 to 65535
 * @param options  NULL for the defaults
 * @param out      to be closed by ntbmsg_channel_close(), whatever comes of it
 * @return 0; -EINVAL; -ENOTCONN the peer is not there; -ENOSPC the worker has no channel left;
 *   -ENOBUFS it has no credit left to grant
 */
int ntbmsg_connect(struct ntbmsg_worker *worker, uint16_t port,
                   const struct ntbmsg_channel_options *options, struct ntbmsg_channel **out);

/**
 * Waits until a connecting channel is open, polling its worker where that runs to completion.
 * @return 0; -EINVAL; -ETIMEDOUT (also its own time-out); -ECONNREFUSED rejected; -ECONNRESET reset
 *   or lost
 */
int ntbmsg_channel_wait_open(struct ntbmsg_channel *channel, uint32_t timeout_ms);

/** @return where it stands now; NTBMSG_CHANNEL_CLOSED for NULL and a handle that was given back.
 * Any thread. */
enum ntbmsg_channel_state ntbmsg_channel_state(const struct ntbmsg_channel *channel);

/** @return 0; -EINVAL a NULL argument or info->size of another library. Any thread; figures that
 * change meanwhile may not fit together. */
int ntbmsg_channel_info_get(const struct ntbmsg_channel *channel, struct ntbmsg_channel_info *info);

/**
 * Says that nothing more will be sent. The peer receives what was sent before, then the end.
 * @return 0, also when it was shut before; -EINVAL; -ENOTCONN not open
 */
int ntbmsg_channel_shutdown(struct ntbmsg_channel *channel);

/**
 * Ends a channel at once, at both ends: what was sent and not received yet is dropped and counted.
 * @param channel  in any state
 * @param reason  0 to 0x7fffffff, told to the peer
 * @return 0, also when it had ended; -EINVAL
 */
int ntbmsg_channel_reset(struct ntbmsg_channel *channel, uint32_t reason);

/**
 * Gives the handle back, in any state: the channel is shut down if it was not, messages that were
 * not received are freed and counted (ntbmsg_stats::rx_dropped). What was sent still arrives. A
 * peer that goes on sending is told NTBMSG_REASON_CLOSED, and so is one that does not close within
 * timeout_ms. NULL is ignored.
 * @return 0
 */
int ntbmsg_channel_close(struct ntbmsg_channel *channel);

/* ------------------------------------------------------------------------------------------------
 * Messages
 */

/**
 * Sends a burst on a channel: one message per mbuf (chain), 0 bytes to
 * ntbmsg_channel_info::max_message bytes.
 *
 * @param channel  open
 * @param mbufs  n messages; the first `return value` now belong to the library, the rest to the
 *   caller. See rte_pmd_plx_ntb_tx_burst() for what may be sent.
 * @param imm    n words that travel with the messages, or NULL for zeros
 * @param n      0 to 65535
 * @return messages taken, 0 to n. A short count is back-pressure (no credit, or no room): the poll
 *   set tells NTBMSG_WRITABLE when it is worth going on. Nothing taken and -ENOTCONN: not open
 *   yet; -ESHUTDOWN: shut down here; -ECONNRESET: reset, rejected, timed out or lost; -EMSGSIZE:
 *   mbufs[0] is too long; -EINVAL: a NULL or broken mbufs[0].
 */
int ntbmsg_channel_send_burst(struct ntbmsg_channel *channel, struct rte_mbuf **mbufs,
                              const uint32_t *imm, uint16_t n);

/**
 * Receives a burst from a channel. Each mbuf belongs to the caller, who frees it; receiving is what
 * gives the peer its credit back. Data of a message longer than the sender's inline limit stays
 * writable by the peer until it is freed.
 *
 * @param channel  in any state
 * @param mbufs  room for n
 * @param imm    room for n, or NULL
 * @param n      0 to 65535
 * @return messages received, 0 to n. None left and -ESHUTDOWN: the peer has shut down, and all that
 *   it sent was received; -ECONNRESET: reset, rejected, timed out or lost, and nothing is left.
 */
int ntbmsg_channel_recv_burst(struct ntbmsg_channel *channel, struct rte_mbuf **mbufs,
                              uint32_t *imm, uint16_t n);

/** There are messages to receive, or the end of them. */
#define NTBMSG_READABLE 1u
/** Sending goes on after a short count. */
#define NTBMSG_WRITABLE 2u
/** The connect was answered: open or rejected, or it has timed out. */
#define NTBMSG_ANSWERED 4u
/** The peer has shut down. */
#define NTBMSG_PEER_SHUT 8u
/** The channel has ended: closed at both ends, reset or lost. */
#define NTBMSG_ENDED 16u

/** A channel that has something. */
struct ntbmsg_ready {
    struct ntbmsg_channel *channel; /**< which */
    void *user;                     /**< as in its options */
    uint32_t events;                /**< NTBMSG_READABLE and others */
    uint32_t reserved;              /**< 0 */
};

/**
 * Creates a poll set.
 * @param worker  that carries all its channels, and is driven by ntbmsg_poll(): run to completion;
 *   NULL: for channels of any dedicated workers
 * @param out     to be destroyed by ntbmsg_poll_set_destroy(), when no channel has it any more
 * @return 0; -EINVAL; -ENOMEM
 */
int ntbmsg_poll_set_create(struct ntbmsg_worker *worker, struct ntbmsg_poll_set **out);

/** @return 0; -EBUSY some channel still has it; for dedicated workers also until they have got to a
 * close: call again. NULL is ignored. */
int ntbmsg_poll_set_destroy(struct ntbmsg_poll_set *set);

/**
 * Tells which channels have something. A channel is told once for what has come; it is told
 * READABLE again when more comes, or at once after a receive that left something. Channels take
 * turns.
 * @param set    one thread at a time
 * @param ready  room for n
 * @param n      0 to 65535; 0 drives the worker alone
 * @return channels told, 0 to n; -EINVAL
 */
int ntbmsg_poll(struct ntbmsg_poll_set *set, struct ntbmsg_ready *ready, uint16_t n);

/* ------------------------------------------------------------------------------------------------
 * Completion queues
 */

/** What an operation does. */
enum ntbmsg_op {
    NTBMSG_OP_WRITE = 1,        /**< own memory to a region of the peer */
    NTBMSG_OP_WRITE_IMM = 2,    /**< the same, and the peer's completion queue is told a word */
    NTBMSG_OP_READ = 3,         /**< a region of the peer to own memory */
    NTBMSG_OP_FETCH_ADD = 4,    /**< 8 aligned bytes of a region: add, and give what was there */
    NTBMSG_OP_COMPARE_SWAP = 5, /**< 8 aligned bytes: replace if equal, and give what was there */
    NTBMSG_OP_RECV_IMM = 6,     /**< completions only: a WRITE_IMM of the peer has been done here */
};

/** What became of an operation. */
struct ntbmsg_completion {
    uint64_t id;                    /**< ntbmsg_work::id; RECV_IMM: 0 */
    struct ntbmsg_channel *channel; /**< on which it was posted */
    void *user;                     /**< of the channel */
    uint64_t value;                 /**< FETCH_ADD, COMPARE_SWAP: what was there before */
    uint32_t bytes;                 /**< moved; 0 unless status is 0. RECV_IMM: of the whole write,
                                       as its poster counts them */
    uint32_t imm;                   /**< RECV_IMM: the word */
    int32_t status; /**< 0; -EKEYREJECTED no such region (any more), -EACCES not the right for it,
                       -ERANGE outside it, -ECONNRESET the channel was reset or the peer lost: it
                       may or may not have been done, wholly or in part; -ECANCELED the handle was
                       closed: the same */
    uint8_t op;     /**< enum ntbmsg_op */
    uint8_t reserved[3]; /**< 0 */
};

/** Called for each completion, by the thread that drives the worker, instead of queueing it: for
 * dedicated workers their polling thread, whose time it takes from all channels. It must not block,
 * close a channel or revoke a region. It may reset one, and post operations: that counts as a use
 * of the channel, so where the worker is dedicated no other thread posts on it at that time. */
typedef void (*ntbmsg_completion_fn)(const struct ntbmsg_completion *completion, void *arg);

/**
 * Creates a completion queue for any number of channels. No completion is ever lost: an operation
 * is only taken while the queue has room for its completion; a WRITE_IMM of the peer waits for room
 * and holds its channel up.
 * @param entries  1 to 65536; where channels of several workers use it, the first of these that
 * runs to completion has so many places to itself, and all others as many again
 * @param fn, arg  NULL: to be polled; else called
 * @param out      to be destroyed by ntbmsg_cq_destroy(), when no channel has it any more
 * @return 0; -EINVAL; -ENOMEM
 */
int ntbmsg_cq_create(uint32_t entries, ntbmsg_completion_fn fn, void *arg, struct ntbmsg_cq **out);

/** @return 0; -EBUSY some channel still has it; for dedicated workers also until they have got to a
 * close: call again. NULL is ignored. */
int ntbmsg_cq_destroy(struct ntbmsg_cq *cq);

/**
 * Takes completions, oldest first. Where the workers run to completion, poll them as well.
 * @param cq           one thread at a time
 * @param completions  room for n
 * @param n            1 to 65535
 * @return how many, 0 to n; -EINVAL
 */
int ntbmsg_cq_poll(struct ntbmsg_cq *cq, struct ntbmsg_completion *completions, uint16_t n);

/**
 * An event descriptor that is readable after ntbmsg_cq_arm() when a completion is queued; for
 * dedicated workers. Those that run to completion have ntbmsg_worker_event_fd(); if this is used
 * with them all the same, then by the thread that polls them. Never read, write or close it.
 * @return a descriptor; -EINVAL; negative errno
 */
int ntbmsg_cq_event_fd(struct ntbmsg_cq *cq);

/** Arms it for one event. @return 0 armed; 1 there are completions: poll; -EINVAL */
int ntbmsg_cq_arm(struct ntbmsg_cq *cq);

/* ------------------------------------------------------------------------------------------------
 * One-sided operations
 */

/* What is visible where, and what is ordered with what: doc/semantics.md. */

/** The peer may write to a region. */
#define NTBMSG_RIGHT_WRITE 1u
/** The peer may read from it. */
#define NTBMSG_RIGHT_READ 2u
/** The peer may do atomic operations in it. */
#define NTBMSG_RIGHT_ATOMIC 4u

/** What is known of a region. */
struct ntbmsg_region_info {
    size_t size;      /**< in: sizeof(struct ntbmsg_region_info) */
    void *address;    /**< where it begins */
    uint64_t bytes;   /**< its length */
    uint32_t rights;  /**< NTBMSG_RIGHT_WRITE and others */
    uint32_t direct;  /**< 1: the peer stores into it without the help of this host */
    uint64_t writes;  /**< served here for the peer */
    uint64_t reads;   /**< served here for the peer */
    uint64_t atomics; /**< served here for the peer */
    uint64_t refused; /**< operations of the peer that were refused */
};

/** Names a region to the peer: bytes to be sent by any way, e.g. in a message. */
struct ntbmsg_region_token {
    uint8_t bytes[40]; /**< opaque */
};

/**
 * Allocates memory that the peer's stores can reach directly: it owns whole granules of the window.
 * The pages are zeros, on the device's NUMA node.
 *
 * @param endpoint  open
 * @param bytes   at least; rounded up to whole granules, of which the library keeps the last 64
 * bytes
 * @param rights  NTBMSG_RIGHT_WRITE and others. Only WRITE can be direct; reads and atomics are
 *   served by this host's worker. With a direct region the peer's *hardware* may also read it where
 *   the platform knows no writing without reading (the twin).
 * @param out     to be given back by ntbmsg_region_revoke()
 * @return 0; -EINVAL; -ENOTSUP the device cannot lend memory; -ENOMEM; -ENOSPC more than the window
 *   shows, or than the device has pieces of memory
 */
int ntbmsg_region_alloc(struct ntbmsg_endpoint *endpoint, size_t bytes, uint32_t rights,
                        struct ntbmsg_region **out);

/**
 * Registers any memory of the caller: every operation on it is served, and checked, by this host's
 * worker. The memory must stay mapped until the region is revoked. Any thread, as for all calls of
 * regions.
 * @param endpoint        open
 * @param address, bytes  1 byte to 2^40 bytes
 * @param rights          NTBMSG_RIGHT_WRITE and others
 * @param out             to be given back by ntbmsg_region_revoke()
 * @return 0; -EINVAL; -EFAULT some of it is not mapped, or cannot be written as the rights say;
 *   -ENOMEM, also where there are 4096 regions
 */
int ntbmsg_region_register(struct ntbmsg_endpoint *endpoint, void *address, size_t bytes,
                           uint32_t rights, struct ntbmsg_region **out);

/**
 * Revokes a region and frees it, and its memory if the library allocated it. When it returns 0, no
 * operation of the peer reaches the memory any more: later ones, and the rest of those under way,
 * end in -EKEYREJECTED at the peer; direct writes that ask nobody (no NTBMSG_WORK_CONFIRM) are lost
 * without a word, or reach what is exposed at the same place later in this connection, until the
 * peer knows. May wait some milliseconds; not from a completion callback.
 * @return 0; -EINVAL; -EIO the chip does not answer: nobody is let in any more, but nothing was
 *   freed; call again
 */
int ntbmsg_region_revoke(struct ntbmsg_region *region);

/** @return 0; -EINVAL a NULL argument, info->size of another library, or it was revoked */
int ntbmsg_region_info_get(const struct ntbmsg_region *region, struct ntbmsg_region_info *info);

/**
 * What to send to the peer. It names the region for as long as that exists. A direct region's also
 * says where it is seen, which changes with each connection (NTBMSG_EVENT_BACK): by an older token,
 * or where the window has no granule left, the region is served.
 * @return 0; -EINVAL a NULL argument, or it was revoked; -ENOTCONN a direct region, and no peer
 */
int ntbmsg_region_token_get(const struct ntbmsg_region *region, struct ntbmsg_region_token *token);

/**
 * Opens a region of the peer by its token, which is checked: it is input. By the thread that posts
 * on the channel. Writes go directly once a first word has been seen to go that way; until then
 * they are served.
 * @param channel  over which it will be used; belongs to it until ntbmsg_remote_close()
 * @param token    as the peer sent it
 * @param out      to be closed by ntbmsg_remote_close()
 * @return 0; -EINVAL NULL, a token that cannot be, or a channel without a completion queue;
 *   -ENOTCONN the channel is not open; -ENOMEM
 */
int ntbmsg_remote_open(struct ntbmsg_channel *channel, const struct ntbmsg_region_token *token,
                       struct ntbmsg_remote **out);

/** Forgets it; no operation on it may be under way. NULL is ignored. */
void ntbmsg_remote_close(struct ntbmsg_remote *remote);

/** A piece of own memory. */
struct ntbmsg_sge {
    void *address;     /**< where it begins */
    uint32_t bytes;    /**< its length */
    uint32_t reserved; /**< 0 */
};

/** Most pieces of an operation. */
#define NTBMSG_MAX_SGES 16
/** Most bytes of an operation (16 MiB). */
#define NTBMSG_MAX_OPERATION 16777216

/** A completion is queued; without it, only if the operation fails. */
#define NTBMSG_WORK_SIGNAL 1u
/** A direct write completes when the peer's worker has seen it, as all others do; without it, when
 * it is stored: the own memory can be used again, and what is sent later on the channel arrives
 * after it. A WRITE_IMM always asks the peer's worker. */
#define NTBMSG_WORK_CONFIRM 2u

/** An operation. */
struct ntbmsg_work {
    uint64_t id;                   /**< the caller's */
    struct ntbmsg_remote *remote;  /**< a region of the peer, opened for this channel */
    uint64_t offset;               /**< in it; atomics: a multiple of 8 */
    const struct ntbmsg_sge *sges; /**< own memory: what to write, or where to read to. The array
                                      is read before the call returns, the memory used until the
                                      operation is complete; atomics: none */
    uint16_t sge_count;            /**< 0 to NTBMSG_MAX_SGES */
    uint8_t op;                    /**< enum ntbmsg_op */
    uint8_t flags;                 /**< NTBMSG_WORK_SIGNAL, NTBMSG_WORK_CONFIRM */
    uint32_t imm;                  /**< WRITE_IMM */
    uint64_t operand;              /**< FETCH_ADD: addend; COMPARE_SWAP: the new value */
    uint64_t compare;              /**< COMPARE_SWAP: the value to compare with */
};

/**
 * Posts operations on a channel. Their completions come in the order of posting, so one with
 * NTBMSG_WORK_SIGNAL also says that those before it without are complete.
 * @param channel  open, with a completion queue
 * @param works  n operations; read before the call returns
 * @param n      1 to 65535
 * @return operations taken, 0 to n; a short count is back-pressure (operations under way, room in
 *   the completion queue or towards the peer). Nothing taken and -EINVAL: works[0] is impossible
 *   (op, flags, pieces, no completion queue, a remote of another channel); -ERANGE it lies outside
 *   its region; -EACCES the region has not that right; -ENOTCONN, -ESHUTDOWN, -ECONNRESET as for
 *   sending. What only the peer can tell comes as a completion.
 */
int ntbmsg_post_burst(struct ntbmsg_channel *channel, const struct ntbmsg_work *works, uint16_t n);

/* ------------------------------------------------------------------------------------------------
 * Seeing into it
 */

/**
 * Writes down, for a person, what an endpoint has: queues, workers, channels, regions, counters.
 * @param endpoint  open
 * @param file      open for writing
 * @return 0; -EINVAL. Any thread; figures that change meanwhile may not fit together.
 */
int ntbmsg_endpoint_dump(const struct ntbmsg_endpoint *endpoint, FILE *file);

/* ------------------------------------------------------------------------------------------------
 * Time
 */

/** A clock in microseconds that never goes back. */
typedef uint64_t (*ntbmsg_clock_fn)(void);

/**
 * Sets the clock that the library's time-outs read, for simulations and tests; NULL: the TSC. Call
 * it before the first endpoint is opened.
 */
void ntbmsg_clock_set(ntbmsg_clock_fn clock);

#ifdef __cplusplus
}
#endif

#endif

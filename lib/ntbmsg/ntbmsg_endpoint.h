/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NTBMSG_ENDPOINT_H
#define NTBMSG_ENDPOINT_H

/**
 * @file
 * ntbmsg endpoints and bare queues. The object model and the rules for threads, sizes and handles
 * are in ntbmsg.h.
 */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <rte_compat.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Version of this header: changes that break callers. */
#define NTBMSG_VERSION_MAJOR 0
/** Version of this header: additions. */
#define NTBMSG_VERSION_MINOR 2

/** Longest message in bytes, on any queue or channel: its length has 24 bits. */
#define NTBMSG_MAX_MESSAGE 16777215

struct rte_mbuf;
struct rte_mempool;
struct rte_pmd_plx_ntb_meta;
struct ntbmsg_endpoint;

/** Options of an endpoint. Initialise with ntbmsg_endpoint_options_init(), then set what differs
 * from the defaults. */
struct ntbmsg_endpoint_options {
    size_t size;            /**< sizeof(struct ntbmsg_endpoint_options) */
    uint32_t queues;        /**< Bare queues, 0 to 64; default 1. Queues and workers together: 1 to
                                 64. If either host has workers, both must have the same number
                                 of queues, else they refuse each other. Without workers at either
                                 host the smaller number is connected */
    uint32_t ring_lines;    /**< Message ring of a queue in lines of 64 bytes, a power of two, 64 to
                                 65536; 0: default of the device */
    uint32_t buffers;       /**< Receive buffers of the device for long messages, 64 to 1048576; 0:
                                 default of the device */
    uint32_t buf_bytes;     /**< Data bytes of such a buffer, a multiple of 64, 64 to 65280; 0:
                                 default of the device */
    uint32_t queue_buffers; /**< How many of `buffers` each queue keeps available to the peer, 14
                                 to 8190; 0: default of the device */
    uint32_t inline_max;    /**< Longest inline message in bytes, 48 to 1024; 0: default of the
                                 device */
    uint32_t max_message; /**< Longest message accepted from the peer in bytes, 1 to 16777215, with
                               workers at least 256; 0: what the receive buffers hold */
    uint32_t tx_mbufs;    /**< Mbufs in the endpoint's pool (ntbmsg_endpoint_pool()), 1 to 1048576;
                               0: 4096 */
    uint32_t tx_room;     /**< Data room of each in bytes, without the headroom, a multiple of 64,
                               64 to 65280; 0: 2048 */
    uint32_t workers;     /**< Queue pairs that carry channels, 0 to 64; default 0. Of two hosts'
                               numbers the smaller one is connected */
    uint32_t dedicated;   /**< 1: a polling lcore drives the workers for other threads; 0: each
                               worker is driven by the thread that uses it */
    uint32_t service;     /**< 1, with dedicated: each worker registers a service
                               "ntbmsg_<device>_<worker>", which polls it on a service lcore */
    uint32_t channels;    /**< Most channels of a worker, 16 to 65535; 0: 4096 */
    uint32_t rx_mbufs;    /**< Inline messages that all channels of a worker may hold together, 512
                               to 1048576; 0: 16384. A new channel gets its credit from what
                               other channels were not granted; the default leaves at least 2 each
                               for 4096 channels. For 64 each, set 64 * channels */
};

/** Travels with a message on a bare queue, opaque to the library. Same layout as
 * struct rte_pmd_plx_ntb_meta. */
struct ntbmsg_meta {
    uint64_t data;     /**< User data */
    uint32_t flags;    /**< The low 6 bits travel, the others arrive as 0 */
    uint32_t reserved; /**< Reserved, 0 */
};

/** A receive buffer of the peer for a message that is built in place, seen in the memory window.
 * Written, never read: on a card a load takes microseconds. Same layout as
 * struct rte_pmd_plx_ntb_room. */
struct ntbmsg_room {
    void *address;     /**< Its begin, aligned to 64 bytes */
    uint32_t bytes;    /**< Its length */
    uint32_t reserved; /**< Reserved, 0 */
};

/** State of the connection between an endpoint and its peer. */
enum ntbmsg_link_state {
    NTBMSG_LINK_WAITING = 0, /**< No peer (yet, or any more), or the device was stopped */
    NTBMSG_LINK_CONNECTED,   /**< Connected: messages flow */
    NTBMSG_LINK_SILENT,      /**< Connected, but no heartbeat of the peer arrives */
    NTBMSG_LINK_REFUSED,     /**< The peer has another protocol version, invalid sizes, or queues
                                  and workers that do not fit */
    NTBMSG_LINK_CLOSING,     /**< The peer has stopped: what it sent is received, nothing can be
                                  sent */
};

/** Events of the connection between an endpoint and its peer. */
enum ntbmsg_event {
    NTBMSG_EVENT_CONNECTED = 0, /**< Connected, for the first time or again */
    NTBMSG_EVENT_SILENT,  /**< No heartbeat; nothing is lost if the peer becomes alive again */
    NTBMSG_EVENT_ALIVE,   /**< The heartbeat of a silent peer has returned */
    NTBMSG_EVENT_LOST,    /**< The peer was lost, or the device was stopped */
    NTBMSG_EVENT_REFUSED, /**< The peer was refused, see ntbmsg_endpoint_link_reason_get() */
    NTBMSG_EVENT_CLOSING, /**< The peer has stopped. What it sent is still received; when that has
                               been done NTBMSG_EVENT_LOST follows */
};

/** Counters of an endpoint since it was opened. */
struct ntbmsg_endpoint_stats {
    size_t size;             /**< sizeof(struct ntbmsg_endpoint_stats), set by the caller */
    uint64_t tx_messages;    /**< Messages accepted for sending */
    uint64_t tx_bytes;       /**< Payload bytes in them */
    uint64_t rx_messages;    /**< Messages received by the application and its channels */
    uint64_t rx_bytes;       /**< Payload bytes in them */
    uint64_t tx_full;        /**< Send bursts cut short by back-pressure */
    uint64_t tx_errors;      /**< Mbufs refused: NULL, invalid chain, too long */
    uint64_t tx_unconfirmed; /**< Sent, but not confirmed when the peer was lost */
    uint64_t rx_nombuf;      /**< Receive bursts cut short by an empty pool */
    uint64_t links;          /**< Connections made */
    uint64_t rx_dropped;     /**< Arrived and freed unread: channels closed or reset */
    uint64_t bad_peer;       /**< Violations of the channel protocol by the peer */
};

/**
 * Returns the version of the library at run time.
 *
 * @return
 *   NTBMSG_VERSION_MAJOR << 16 | NTBMSG_VERSION_MINOR of the library. Any thread.
 */
uint32_t ntbmsg_version(void);

/**
 * Sets every option to its default, and size.
 *
 * @param options
 *   The options; NULL is ignored.
 */
static inline void ntbmsg_endpoint_options_init(struct ntbmsg_endpoint_options *options)
{
    if (options == NULL)
        return;
    memset(options, 0, sizeof(*options));
    options->size = sizeof(*options);
    options->queues = 1;
}

/**
 * Opens an endpoint: configures and starts the device, which then looks for the peer. Does not wait
 * for the peer.
 *
 * @param device
 *   Name of a probed device, e.g. "raw_plx_ntb0".
 * @param options
 *   Options; NULL for the defaults. Read before the call returns.
 * @param out
 *   The endpoint, set on success only. Close it with ntbmsg_endpoint_close().
 * @retval 0
 *   The endpoint is open.
 * @retval -EINVAL
 *   An argument is NULL, or an option is out of range (logged).
 * @retval -E2BIG
 *   Options beyond those that the library knows are set.
 * @retval -ENODEV
 *   There is no such device, or it belongs to another driver.
 * @retval -EBUSY
 *   An endpoint is open on the device.
 * @retval -ENOMEM
 *   No memory for rings, buffers or pools.
 * @return
 *   Other negative errno values of the driver. The cause is logged once.
 */
int ntbmsg_endpoint_open(const char *device, const struct ntbmsg_endpoint_options *options,
                         struct ntbmsg_endpoint **out);

/**
 * Closes an endpoint: as ntbmsg_endpoint_close_linger(), with the linger_ms of the device (devarg,
 * default 2000).
 *
 * @param endpoint
 *   An open endpoint; NULL is ignored.
 * @retval 0
 *   Closed.
 * @retval -EBUSY
 *   Mbufs of the endpoint's pools are in use, by the caller or by a DMA engine. The device is
 *   stopped, nothing was freed; call again.
 * @retval -EIO
 *   The device could not be stopped: its chip does not answer, or a thread stays inside a call. The
 *   peer is lost, nothing was freed; call again, if necessary once the device was removed.
 */
int ntbmsg_endpoint_close(struct ntbmsg_endpoint *endpoint);

/**
 * Closes an endpoint: waits until the peer's application has confirmed what was sent, stops the
 * device and frees everything that belongs to the endpoint. The caller has freed all mbufs of its
 * pools before.
 *
 * The peer receives what has arrived in its memory before it learns of the end, after this call as
 * well. The call waits for messages of dedicated workers that are not sent yet, and for
 * confirmations. It drives the workers meanwhile. The wait ends early when all is confirmed, when
 * the peer closes, too, or is lost, and when a signal handler interrupts the calling thread.
 *
 * @param endpoint
 *   An open endpoint; NULL is ignored.
 * @param linger_ms
 *   Longest wait in milliseconds; 0: none.
 * @param unconfirmed
 *   Set to the number of messages, of bare queues and of channels that both ends have not closed
 *   yet, that the peer's application has not confirmed: they may or may not be received. NULL if
 *   not wanted.
 * @retval 0
 *   Closed.
 * @retval -EBUSY
 *   Mbufs of the endpoint's pools are in use, by the caller or by a DMA engine. The device is
 *   stopped, nothing was freed; call again.
 * @retval -EIO
 *   The device could not be stopped: its chip does not answer, or a thread stays inside a call. The
 *   peer is lost, nothing was freed; call again, if necessary once the device was removed.
 */
int ntbmsg_endpoint_close_linger(struct ntbmsg_endpoint *endpoint, uint32_t linger_ms,
                                 uint64_t *unconfirmed);

/**
 * Waits until the peer is connected.
 *
 * @param endpoint
 *   An open endpoint.
 * @param timeout_ms
 *   Longest wait in milliseconds; 0: return at once.
 * @retval 0
 *   Connected.
 * @retval -ETIMEDOUT
 *   Not connected in that time.
 * @retval -EPROTO
 *   The peer was refused, see ntbmsg_endpoint_link_reason_get().
 * @retval -EINVAL
 *   The endpoint is NULL or closed.
 */
int ntbmsg_endpoint_wait_connected(struct ntbmsg_endpoint *endpoint, uint32_t timeout_ms);

/**
 * Returns the state of the connection. Any thread.
 *
 * @param endpoint
 *   An open endpoint.
 * @return
 *   The state; NTBMSG_LINK_WAITING if the endpoint is NULL or closed.
 */
enum ntbmsg_link_state ntbmsg_endpoint_link_state_get(const struct ntbmsg_endpoint *endpoint);

/**
 * Describes in words why an endpoint is not connected. Any thread.
 *
 * @param endpoint
 *   An open endpoint.
 * @param text
 *   Where to write, always terminated; empty if the endpoint is connected.
 * @param bytes
 *   Room at text in bytes, at least 1. Longer texts are cut.
 * @retval 0
 *   Written.
 * @retval -EINVAL
 *   The endpoint is NULL or closed, text is NULL, or bytes is 0.
 */
int ntbmsg_endpoint_link_reason_get(const struct ntbmsg_endpoint *endpoint, char *text,
                                    size_t bytes);

/**
 * Returns the longest message that the peer accepts on a bare queue. Any thread.
 *
 * @param endpoint
 *   An open endpoint.
 * @return
 *   Bytes; 0 while not connected, and if the endpoint is NULL or closed.
 */
uint32_t ntbmsg_endpoint_max_message(const struct ntbmsg_endpoint *endpoint);

/**
 * Returns the private pool of an endpoint, for mbufs to send: headroom RTE_PKTMBUF_HEADROOM, and
 * ntbmsg_endpoint_options::tx_room bytes of data. The use of it is optional; mbufs of any pool can
 * be sent. Any thread.
 *
 * @param endpoint
 *   An open endpoint.
 * @return
 *   The pool, valid until the endpoint is closed; NULL if the endpoint is NULL or closed.
 */
struct rte_mempool *ntbmsg_endpoint_pool(const struct ntbmsg_endpoint *endpoint);

/**
 * Sends a burst on a bare queue: one message per mbuf (chain). One thread at a time per queue.
 *
 * @param endpoint
 *   An open endpoint.
 * @param queue
 *   Below ntbmsg_endpoint_options::queues.
 * @param mbufs
 *   n messages. Those that were accepted belong to the library, the others to the caller,
 *   unchanged. rte_pmd_plx_ntb_tx_burst() says which mbufs can be sent.
 * @param meta
 *   n entries that travel with the messages; NULL for zeros.
 * @param n
 *   Number of messages, 0 to 65535.
 * @return
 *   Messages accepted, 0 to n; fewer than n is back-pressure, or the next mbuf cannot be sent.
 *   If mbufs[0] cannot be sent, a negative value:
 * @retval -ENOTCONN
 *   There is no peer.
 * @retval -EMSGSIZE
 *   mbufs[0] is longer than ntbmsg_endpoint_max_message().
 * @retval -EINVAL
 *   The endpoint is NULL or closed, there is no such queue, or mbufs[0] is NULL or an invalid
 *   chain.
 */
int ntbmsg_queue_send_burst(struct ntbmsg_endpoint *endpoint, uint16_t queue,
                            struct rte_mbuf **mbufs, const struct ntbmsg_meta *meta, uint16_t n);

/**
 * Receives a burst from a bare queue. One thread at a time per queue.
 *
 * The data of a message that came in a receive buffer, as all do that are longer than the peer's
 * inline limit, stays writable by the peer until the mbuf is freed, unless the device has the
 * devarg rx=stable.
 *
 * @param endpoint
 *   An open endpoint.
 * @param queue
 *   Below ntbmsg_endpoint_options::queues.
 * @param mbufs
 *   Room for n. Each mbuf received belongs to the caller, who frees it.
 * @param meta
 *   Room for n; NULL if not wanted.
 * @param n
 *   Most messages to receive, 0 to 65535.
 * @return
 *   Messages received, 0 to n; 0 while there is no peer.
 * @retval -EINVAL
 *   The endpoint is NULL or closed, or there is no such queue.
 */
int ntbmsg_queue_recv_burst(struct ntbmsg_endpoint *endpoint, uint16_t queue,
                            struct rte_mbuf **mbufs, struct ntbmsg_meta *meta, uint16_t n);

/**
 * The burst calls of one bare queue, for threads that count the nanoseconds of a call. Filled by
 * ntbmsg_queue_burst_get(), used by ntbmsg_queue_burst_send() and ntbmsg_queue_burst_recv().
 */
struct ntbmsg_queue_burst {
    /** Sends on a queue of the device */
    int (*send)(void *queue, struct rte_mbuf **mbufs, const struct rte_pmd_plx_ntb_meta *meta,
                uint16_t n);
    /** Receives from a queue of the device */
    int (*recv)(void *queue, struct rte_mbuf **mbufs, struct rte_pmd_plx_ntb_meta *meta,
                uint16_t n);
    void *send_queue;     /**< First argument of send */
    void *recv_queue;     /**< First argument of recv */
    uint64_t reserved[4]; /**< Reserved, 0 */
};

/**
 * Gets the burst calls of a bare queue. They are valid until the endpoint is closed, also while
 * there is no peer and with the next one. Any thread.
 *
 * @param endpoint
 *   An open endpoint.
 * @param queue
 *   Below ntbmsg_endpoint_options::queues.
 * @param burst
 *   Filled in; the caller's. Copies are as good.
 * @retval 0
 *   Filled in.
 * @retval -EINVAL
 *   The endpoint is NULL or closed, there is no such queue, or burst is NULL.
 */
__rte_experimental
int ntbmsg_queue_burst_get(const struct ntbmsg_endpoint *endpoint, uint16_t queue,
                           struct ntbmsg_queue_burst *burst);

/**
 * Sends a burst, as ntbmsg_queue_send_burst() does, without its look at the arguments: the endpoint
 * is open, and mbufs has n entries. One thread at a time per queue.
 *
 * @param burst
 *   The burst calls of the queue.
 * @param mbufs
 *   As of ntbmsg_queue_send_burst(); not NULL.
 * @param meta
 *   n entries that travel with the messages; NULL for zeros.
 * @param n
 *   Number of messages, 0 to 65535.
 * @return
 *   As ntbmsg_queue_send_burst().
 */
__rte_experimental
static inline int ntbmsg_queue_burst_send(const struct ntbmsg_queue_burst *burst,
                                          struct rte_mbuf **mbufs, const struct ntbmsg_meta *meta,
                                          uint16_t n)
{
    return burst->send(burst->send_queue, mbufs,
                       (const struct rte_pmd_plx_ntb_meta *)(const void *)meta, n);
}

/**
 * Receives a burst, as ntbmsg_queue_recv_burst() does, without its look at the arguments: the
 * endpoint is open, and mbufs has room for n. One thread at a time per queue.
 *
 * @param burst
 *   The burst calls of the queue.
 * @param mbufs
 *   As of ntbmsg_queue_recv_burst(); not NULL.
 * @param meta
 *   Room for n; NULL if not wanted.
 * @param n
 *   Most messages to receive, 0 to 65535.
 * @return
 *   As ntbmsg_queue_recv_burst().
 */
__rte_experimental
static inline int ntbmsg_queue_burst_recv(const struct ntbmsg_queue_burst *burst,
                                          struct rte_mbuf **mbufs, struct ntbmsg_meta *meta,
                                          uint16_t n)
{
    return burst->recv(burst->recv_queue, mbufs, (struct rte_pmd_plx_ntb_meta *)(void *)meta, n);
}

/**
 * Reserves receive buffers of the peer (rooms), in which the caller builds messages instead of
 * building them in mbufs that are copied there. By the thread that sends on the queue. It stores
 * the messages into the rooms, in order, and never loads from them; then it commits them or gives
 * them back.
 *
 * rte_pmd_plx_ntb_tx_reserve() says what holds meanwhile: short messages of bursts go on, long ones
 * wait; non-temporal stores need a store fence before the commit; and when the connection ends,
 * late stores are lost on the twin, while a card is connected again only after commit or abort.
 *
 * @param endpoint
 *   An open endpoint.
 * @param queue
 *   Below ntbmsg_endpoint_options::queues.
 * @param rooms
 *   Set to the rooms, in the order in which messages use them; room for n.
 * @param n
 *   Most rooms wanted, 0 to 65535.
 * @return
 *   Rooms reserved, 0 to n; fewer than n is back-pressure: the peer has no more receive buffers
 *   available, or the ring has no room.
 * @retval -ENOTCONN
 *   There is no peer.
 * @retval -EBUSY
 *   Rooms of an earlier call were neither committed nor aborted.
 * @retval -EINVAL
 *   The endpoint is NULL or closed, there is no such queue, or rooms is NULL.
 */
__rte_experimental
int ntbmsg_queue_reserve(struct ntbmsg_endpoint *endpoint, uint16_t queue,
                         struct ntbmsg_room *rooms, uint16_t n);

/**
 * Sends messages that lie in reserved rooms, beginning with the first that is left. A message takes
 * as many rooms as it needs, all full but its last: a short one takes one. All are sent or none;
 * there is room in the ring. Same thread.
 *
 * @param endpoint
 *   An open endpoint.
 * @param queue
 *   Below ntbmsg_endpoint_options::queues.
 * @param lengths
 *   n lengths in bytes, 1 or more each.
 * @param meta
 *   n entries that travel with the messages; NULL for zeros.
 * @param n
 *   Number of messages, 0 to 65535.
 * @return
 *   n. Rooms that were not needed remain reserved.
 * @retval -ECONNRESET
 *   The connection of the rooms has ended: nothing was sent, and none is reserved any more.
 * @retval -EMSGSIZE
 *   A message is longer than the peer accepts. The rooms remain reserved.
 * @retval -EINVAL
 *   The endpoint is NULL or closed, there is no such queue, lengths is NULL, a length is 0, or the
 *   messages need more rooms than are reserved, which remain so.
 */
__rte_experimental
int ntbmsg_queue_commit(struct ntbmsg_endpoint *endpoint, uint16_t queue, const uint32_t *lengths,
                        const struct ntbmsg_meta *meta, uint16_t n);

/**
 * Gives all rooms of a bare queue back. What was stored in them is never seen. Same thread; also
 * allowed when none is reserved.
 *
 * @param endpoint
 *   An open endpoint.
 * @param queue
 *   Below ntbmsg_endpoint_options::queues.
 * @retval 0
 *   None is reserved any more.
 * @retval -EINVAL
 *   The endpoint is NULL or closed, or there is no such queue.
 */
__rte_experimental
int ntbmsg_queue_abort(struct ntbmsg_endpoint *endpoint, uint16_t queue);

/**
 * Returns how many messages of a bare queue the peer's application has not received, as far as this
 * host knows: a receive that finds nothing more confirms all before it. Any thread; while another
 * thread sends, its last burst may be missing.
 *
 * @param endpoint
 *   An open endpoint.
 * @param queue
 *   Below ntbmsg_endpoint_options::queues.
 * @param count
 *   Filled in.
 * @retval 0
 *   Filled in.
 * @retval -ENOTCONN
 *   There is no peer, or it has closed. Filled in with what the last one has not confirmed.
 * @retval -EINVAL
 *   The endpoint is NULL or closed, there is no such queue, or count is NULL.
 */
int ntbmsg_queue_unconfirmed(const struct ntbmsg_endpoint *endpoint, uint16_t queue,
                             uint32_t *count);

/**
 * Waits until the peer's application has received all messages of a bare queue. Called by the
 * thread that sends on it.
 *
 * @param endpoint
 *   An open endpoint.
 * @param queue
 *   Below ntbmsg_endpoint_options::queues.
 * @param timeout_ms
 *   Longest wait in milliseconds; 0: return at once.
 * @retval 0
 *   All messages are confirmed.
 * @retval -ETIMEDOUT
 *   Not all in that time.
 * @retval -ENOTCONN
 *   There is no peer, or it has closed, or it was lost meanwhile.
 * @retval -EINTR
 *   A signal handler interrupted the wait while it slept. One that runs between two sleeps does
 *   not end it: a program that must end soon waits for short times and looks at its own flag.
 * @retval -EINVAL
 *   The endpoint is NULL or closed, or there is no such queue.
 */
int ntbmsg_queue_flush(struct ntbmsg_endpoint *endpoint, uint16_t queue, uint32_t timeout_ms);

/**
 * Takes the oldest event that was not taken yet. Up to 64 events are kept; the oldest are dropped
 * when more come. ntbmsg_endpoint_link_state_get() is always current.
 *
 * @param endpoint
 *   An open endpoint.
 * @param event
 *   The event, set if 1 is returned.
 * @retval 1
 *   There was an event.
 * @retval 0
 *   There was none.
 * @retval -EINVAL
 *   An argument is NULL, or the endpoint is closed.
 */
int ntbmsg_endpoint_event_poll(struct ntbmsg_endpoint *endpoint, enum ntbmsg_event *event);

/**
 * Reads the counters. Any thread; counters that change meanwhile may not fit together.
 *
 * @param endpoint
 *   An open endpoint.
 * @param stats
 *   Filled in; the caller sets size.
 * @retval 0
 *   Filled in.
 * @retval -EINVAL
 *   An argument is NULL, the endpoint is closed, or stats->size is invalid.
 */
int ntbmsg_endpoint_stats_get(const struct ntbmsg_endpoint *endpoint,
                              struct ntbmsg_endpoint_stats *stats);

/**
 * Writes a readable description of an endpoint: queues, workers, channels, regions, counters. Any
 * thread; figures that change meanwhile may not fit together.
 *
 * @param endpoint
 *   An open endpoint.
 * @param file
 *   Open for writing.
 * @retval 0
 *   Written.
 * @retval -EINVAL
 *   An argument is NULL, or the endpoint is closed.
 */
int ntbmsg_endpoint_dump(const struct ntbmsg_endpoint *endpoint, FILE *file);

#ifdef __cplusplus
}
#endif

#endif

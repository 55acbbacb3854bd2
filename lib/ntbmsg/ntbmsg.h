/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NTBMSG_H
#define NTBMSG_H

/**
 * @file
 * ntbmsg: messages between two hosts joined by a PCIe non-transparent bridge.
 *
 * Object model: an *endpoint* stands on one device (a card or a software twin, named as EAL knows
 * it, e.g. "raw_plx_ntb0") and has one or more *queues*. What is sent on queue q of one host is
 * received, in order, from queue q of the other. A message is an mbuf (chain) of 0 to
 * ntbmsg_max_message() bytes.
 *
 * Legal order: rte_eal_init -> ntbmsg_endpoint_open -> ntbmsg_send_burst / ntbmsg_recv_burst /
 * ntbmsg_event_poll -> ntbmsg_endpoint_close -> rte_eal_cleanup. Neither host has to be first, and
 * the peer may die and come back while the endpoint stays open.
 *
 * Threads: one thread at a time sends on a queue and one at a time receives from it; different
 * queues, and the two directions of one, are independent. Open, close and event calls of one
 * endpoint come from one thread at a time. Statistics and link state are safe from any thread.
 * Between open and close nothing here blocks but ntbmsg_wait_connected().
 *
 * Delivery: in order and exactly once while the peer is there. When it is lost, messages that were
 * sent and not yet confirmed may or may not have arrived: ntbmsg_stats.tx_unconfirmed counts them.
 */

#include <stddef.h>
#include <stdint.h>

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

/** Options of an endpoint. Fill in by ntbmsg_endpoint_options_init(), then change what matters. */
struct ntbmsg_endpoint_options {
    size_t size;          /**< set by the init function: lets this struct grow */
    uint32_t queues;      /**< 1 to 64; default 1 */
    uint32_t ring_lines;  /**< ring of a queue in 64-byte lines, power of two; 0: device default */
    uint32_t buffers;     /**< buffers for large received messages; 0: device default */
    uint32_t buf_bytes;   /**< data bytes of such a buffer, multiple of 64; 0: device default */
    uint32_t posted;      /**< of them kept ready for the peer, per queue; 0: device default */
    uint32_t inline_max;  /**< longest message copied through the ring, bytes; 0: device default */
    uint32_t max_message; /**< longest message taken from the peer, bytes; 0: what the posted
                             buffers hold */
    uint32_t tx_mbufs;    /**< mbufs in the endpoint's own pool (ntbmsg_pool); 0: 4096 */
    uint32_t tx_room;     /**< data room of each in bytes behind the headroom, multiple of 64, 64 to
                             65280; 0: 2048 */
};

/** Travels with a message, opaque to the library. Same layout as rte_pmd_plx_ntb_meta. */
struct ntbmsg_meta {
    uint64_t data;     /**< the caller's */
    uint32_t flags;    /**< the low 6 bits travel */
    uint32_t reserved; /**< 0 */
};

/** Where an endpoint stands with its peer. */
enum ntbmsg_link_state {
    NTBMSG_LINK_WAITING = 1,   /**< the peer is not there (yet, or any more) */
    NTBMSG_LINK_CONNECTED = 2, /**< messages flow */
    NTBMSG_LINK_SILENT = 3,    /**< connected, but the peer gives no sign of life */
    NTBMSG_LINK_REFUSED = 5,   /**< the peer speaks another version, or impossible sizes */
};

/** What happens between an endpoint and its peer. */
enum ntbmsg_event_kind {
    NTBMSG_EVENT_BACK = 0,    /**< connected, for the first time or again */
    NTBMSG_EVENT_SILENT = 1,  /**< no sign of life; nothing is lost if it ends */
    NTBMSG_EVENT_AWAKE = 2,   /**< the silence has ended */
    NTBMSG_EVENT_LOST = 3,    /**< the peer is gone */
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
 * still held; it is stopped but not freed, call again.
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
 * Sends a burst: one message per mbuf (chain). See rte_pmd_plx_ntb_tx_burst() for what may be sent.
 *
 * @param endpoint  open
 * @param queue  below options.queues
 * @param mbufs  n messages; the first `return value` now belong to the library, the rest to the
 * caller
 * @param meta   n entries, or NULL for zeros
 * @param n      1 to 65535
 * @return messages taken, 0 to n: a short count is back-pressure. Nothing taken and -ENOTCONN: no
 * peer; -EMSGSIZE: mbufs[0] is longer than ntbmsg_max_message(); -EINVAL: a NULL or broken
 * mbufs[0], or no such queue.
 */
int ntbmsg_send_burst(struct ntbmsg_endpoint *endpoint, uint16_t queue, struct rte_mbuf **mbufs,
                      const struct ntbmsg_meta *meta, uint16_t n);

/**
 * Receives a burst.
 *
 * @param endpoint, queue  as above
 * @param mbufs  room for n; each that is handed up belongs to the caller, who frees it. Data of a
 * message longer than the sender's inline limit stays writable by the peer until then.
 * @param meta   room for n, or NULL
 * @param n      1 to 65535
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

#ifdef __cplusplus
}
#endif

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RTE_PMD_PLX_NTB_H
#define RTE_PMD_PLX_NTB_H

/**
 * @file
 * PLX PEX 87xx non-transparent bridge: what the rawdev `raw_plx_ntb` offers beyond rte_rawdev.h.
 *
 * Object model: a *device* is one end of a bridge (a card, or a software twin). It has 1 to 64
 * *queue pairs*. Each carries messages (mbufs) in both directions between this host and its one
 * peer. The *memory window* of a device is its view into memory that the peer exposes; *exposed
 * memory* is memory of this host that the peer sees in its memory window.
 *
 * This header has the device, its queue pairs, events and sleeping. It includes
 * rte_pmd_plx_ntb_memory.h, exposed memory and the memory window, and rte_pmd_plx_ntb_requester.h,
 * the requester-ID table of the bridge.
 *
 * Order of calls:
 *
 *     probe (EAL) -> rte_rawdev_configure -> rte_rawdev_queue_setup (each queue)
 *         -> rte_rawdev_start -> bursts, link and event calls -> rte_rawdev_stop
 *         -> configure or start again, or rte_rawdev_close
 *
 * rte_rawdev_start() does not wait for the peer. The two hosts may start in any order, stop, start
 * again and restart. Each change is reported as an event (rte_pmd_plx_ntb_event_register()).
 *
 * Threads: one thread at a time uses the sending half of a queue pair and one at a time its
 * receiving half; the two may differ. Control calls (rte_rawdev_*, event registration) of one
 * device come from one thread at a time. Start, stop and close may run while other threads are in
 * burst calls. Link, statistics and attributes may be read by any thread. Primary processes only: a
 * secondary process is refused with -ENOTSUP at probe.
 *
 * Service: with the devarg service=1 the device registers a service of its own name
 * (rte_service_get_by_name()). A service lcore that runs it wakes sleeping receivers of both hosts
 * at once instead of by interrupts and timers, for devices without an interrupt. Its use is
 * optional.
 *
 * Sizes: a struct whose first field is `size` may grow in later versions of this driver. Its user
 * sets the field to the sizeof of the struct that it was compiled with.
 *
 * - A struct that is passed in may be smaller than the driver's: what is missing counts as 0, which
 *   stands for the default. It may be larger if all that the driver does not know is 0; otherwise
 *   the call returns -E2BIG.
 * - Of a struct that is filled in, the driver writes `size` bytes; what it does not know is 0.
 * - A size below that of the first version or above 4096 bytes is refused with -EINVAL.
 *
 * Security: nothing that the peer writes makes this driver read or write outside its own buffers,
 * crash or loop. The data of a *received* long message lies in a receive buffer that the peer can
 * write until the mbuf is freed. Copy it first where that matters, or use the devarg rx=stable.
 *
 * Stability: functions marked `__rte_experimental` may change or go without notice, with the types
 * that only they use. A program that calls one is compiled with -DALLOW_EXPERIMENTAL_API.
 */

#include <stddef.h>
#include <stdint.h>

#include <rte_compat.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rte_mbuf;
struct rte_mempool;

/** Most queue pairs of a device. */
#define RTE_PMD_PLX_NTB_MAX_QUEUES 64

/**
 * Finds a device of this driver by its name ("raw_plx_ntb0", "0000:05:00.0"). Unlike
 * rte_rawdev_get_dev_id() of DPDK 22.11 it also finds devices that were probed before one with a
 * lower id was removed. Any thread.
 *
 * @param name
 *   Name of the device.
 * @return
 *   The rawdev id.
 * @retval -EINVAL
 *   name is NULL.
 * @retval -ENODEV
 *   There is no such device, or it belongs to another driver.
 */
int rte_pmd_plx_ntb_find(const char *name);

/** Travels with a message, opaque to the driver. */
struct rte_pmd_plx_ntb_meta {
    uint64_t data;     /**< User data */
    uint32_t flags;    /**< The low 6 bits travel, the others arrive as 0 */
    uint32_t reserved; /**< Reserved, 0 */
};

/**
 * Device configuration for rte_rawdev_configure(). A field that is 0 keeps the devarg of the same
 * meaning, or its default.
 */
struct rte_pmd_plx_ntb_config {
    size_t size;         /**< sizeof(struct rte_pmd_plx_ntb_config), also passed as
                              dev_private_size */
    uint32_t queues;     /**< Queue pairs, 1 to 64; default 1 */
    uint32_t ring_lines; /**< Message ring of a queue pair in lines of 64 bytes, a power of two, 64
                              to 65536; default: by the caches of the machine, 4096 or more */
    uint32_t buffers;    /**< Receive buffers of the device for long messages, shared by its queue
                              pairs, 64 to 1048576; default: by the caches of the machine and the
                              number of queue pairs, 4096 or more */
    uint32_t buf_bytes;  /**< Data bytes of such a buffer, a multiple of 64, 64 to 65280; default
                              2048 */
    uint32_t queue_buffers; /**< How many of `buffers` each queue pair keeps available to the peer,
                                 14 to 8190; default: half of the buffers over all queue pairs, at
                                 most 2044. Rounded down to a multiple of 14 */
    uint32_t inline_max;    /**< Longest inline message in bytes, 48 to 1024; default 256, and up to
                                 1024 in bursts where that is found to be faster */
    uint32_t max_message;   /**< Longest message accepted from the peer in bytes, 1 to 16777215;
                                 default and most: what queue_buffers - 13 buffers hold */
    uint32_t workers;       /**< Of the queue pairs, the last ones: they carry channels of a library
                                 above; default 0. If either host has workers, both must have the
                                 same number of other queue pairs */
};

/** Queue configuration for rte_rawdev_queue_setup(). */
struct rte_pmd_plx_ntb_queue_config {
    size_t size; /**< sizeof(struct rte_pmd_plx_ntb_queue_config), also passed as conf_size */
    /** Private pool for inline messages, data room at least 128 + 1024 bytes; NULL: the device
     * makes one. It has to exist until the next stop of the device. */
    struct rte_mempool *pool;
};

/** Information about a device, filled in by rte_rawdev_info_get(). */
struct rte_pmd_plx_ntb_info {
    size_t size;           /**< sizeof(struct rte_pmd_plx_ntb_info), set by the caller */
    uint32_t queues;       /**< Configured queue pairs */
    uint32_t ring_lines;   /**< Lines of a message ring */
    uint32_t buffers;      /**< Receive buffers */
    uint32_t buf_bytes;    /**< Data bytes of each */
    uint32_t inline_max;   /**< Longest message that may travel inline, in bytes */
    uint32_t max_message;  /**< Longest message accepted from the peer in bytes */
    int32_t socket_id;     /**< NUMA node of its memory; -1: unknown */
    uint64_t window_bytes; /**< Bytes of the memory window */
    uint64_t block_bytes;  /**< Bytes exposed to the peer for the queue pairs; 0 before
                                the first start */
    /** Pool of the receive buffers; NULL before the first start */
    struct rte_mempool *buffer_pool;
    char burst[32];    /**< Variant of the burst functions, e.g. "plain/avx512" */
    char platform[16]; /**< "twin" or "pci" */
};

/**
 * Values of the attribute "topo" (rte_rawdev_get_attr()), which extend those of raw/ntb (enum
 * ntb_topo in DPDK's drivers/raw/ntb/ntb.h). There 1 is the upstream and 2 the downstream end of
 * two bridges back to back. Such ends are alike here and both report 1, so that 2 keeps its meaning
 * there and is not used.
 */
enum rte_pmd_plx_ntb_topo {
    RTE_PMD_PLX_NTB_TOPO_B2B = 1,        /**< Two chips, joined by their NT ports */
    RTE_PMD_PLX_NTB_TOPO_RP_VIRTUAL = 3, /**< One chip, whose upstream port leads to this host */
    RTE_PMD_PLX_NTB_TOPO_RP_LINK = 4,    /**< One chip, this host behind its NT link */
};

/** State of the connection between a device and its peer. */
enum rte_pmd_plx_ntb_state {
    RTE_PMD_PLX_NTB_STOPPED = 0, /**< The device is not started */
    RTE_PMD_PLX_NTB_WAITING,     /**< No peer: link down, cable open, peer not started */
    RTE_PMD_PLX_NTB_CONNECTED,   /**< Connected: messages flow */
    RTE_PMD_PLX_NTB_SILENT,      /**< Connected, but no heartbeat for heartbeat_ms */
    RTE_PMD_PLX_NTB_FENCING,     /**< The peer was lost; its access is being revoked */
    RTE_PMD_PLX_NTB_REFUSED,     /**< The peer has another protocol version, invalid sizes, or
                                      queue pairs that do not fit */
    RTE_PMD_PLX_NTB_CLOSING,     /**< The peer has stopped: what it sent can still be received */
};

/** The connection between a device and its peer. */
struct rte_pmd_plx_ntb_link {
    enum rte_pmd_plx_ntb_state state; /**< State */
    uint32_t speed;                   /**< PCIe generation of the NT link; 0: down */
    uint32_t width;                   /**< Lanes; 0: down */
    uint32_t peer_epoch;              /**< Epoch of the peer; 0 while not connected */
    uint32_t peer_max_message;        /**< Longest message that the peer accepts, in bytes; 0 while
                                           not connected */
    uint32_t queues;                  /**< Queue pairs in use: the smaller of both hosts' numbers */
    char why[96];                     /**< Why it is not connected, in words; empty if it is */
    uint64_t reserved[4];             /**< Reserved, 0 */
};

/** Events of the connection between a device and its peer. */
enum rte_pmd_plx_ntb_event {
    RTE_PMD_PLX_NTB_EVENT_CONNECTED = 0, /**< Connected, for the first time or again */
    RTE_PMD_PLX_NTB_EVENT_SILENT,        /**< No heartbeat; nothing is lost if it returns */
    RTE_PMD_PLX_NTB_EVENT_ALIVE,         /**< The heartbeat of a silent peer has returned */
    RTE_PMD_PLX_NTB_EVENT_LOST,    /**< The connection has ended, also by rte_rawdev_stop() of this
                                        device. What was not confirmed is counted by the xstat
                                        tx_unconfirmed */
    RTE_PMD_PLX_NTB_EVENT_REFUSED, /**< The peer was refused, see rte_pmd_plx_ntb_link::why */
    RTE_PMD_PLX_NTB_EVENT_CLOSING, /**< The peer has stopped: nothing can be sent to it any more,
                                      and nothing may be stored into its memory. What it sent is
                                      still received; then RTE_PMD_PLX_NTB_EVENT_LOST follows */
};

/**
 * Event callback. Runs on a control thread of the device, in order, one at a time; those of several
 * devices may run at once. An event that rte_rawdev_stop() or a close causes is reported by the
 * calling thread before it returns.
 *
 * The device sends no heartbeat while it runs: it must not block. It must not call
 * rte_rawdev_stop(), rte_rawdev_close() or rte_pmd_plx_ntb_event_register() of this device.
 *
 * @param dev_id
 *   Rawdev id.
 * @param event
 *   The event.
 * @param arg
 *   As registered.
 */
typedef void (*rte_pmd_plx_ntb_event_fn)(uint16_t dev_id, enum rte_pmd_plx_ntb_event event,
                                         void *arg);

/**
 * Sends a burst of messages: one message per mbuf (chain). One thread at a time per queue pair.
 *
 * An mbuf that was accepted belongs to the driver, which frees it when it was copied: before the
 * call returns, or, where the chip's DMA engine copies it, in a later burst, or by the device
 * within some 20 ms, or when the connection ends. At most 256 per queue pair are held so. The
 * engine reads memory that EAL manages and receive buffers; all else is copied by the CPU.
 *
 * A long message is accepted only while the peer has receive buffers available. The peer makes them
 * available when it polls.
 *
 * @param dev_id
 *   Rawdev id of a started device.
 * @param queue
 *   Queue pair.
 * @param mbufs
 *   n messages: single or chained segments, of any pool, with attached or external data. Those that
 *   are not accepted stay the caller's, unchanged.
 * @param meta
 *   n entries that travel with the messages; NULL for zeros.
 * @param n
 *   Number of messages, 0 to 65535; 0 frees what the DMA engine has copied.
 * @return
 *   Messages accepted, 0 to n; fewer than n is back-pressure, or the next mbuf cannot be sent. If
 *   mbufs[0] cannot be sent, a negative value:
 * @retval -ENODEV
 *   There is no such device or queue pair.
 * @retval -ENOTCONN
 *   There is no peer.
 * @retval -EMSGSIZE
 *   mbufs[0] is longer than the peer accepts.
 * @retval -EINVAL
 *   mbufs[0] is NULL or an invalid chain.
 */
int rte_pmd_plx_ntb_tx_burst(uint16_t dev_id, uint16_t queue, struct rte_mbuf **mbufs,
                             const struct rte_pmd_plx_ntb_meta *meta, uint16_t n);

/**
 * Receives a burst of messages. One thread at a time per queue pair.
 *
 * State of a received mbuf: data_off RTE_PKTMBUF_HEADROOM, refcnt 1, packet_type 0, port the device
 * id, pkt_len the message, nb_segs 1 or a chain of receive buffers, ol_flags 0 or
 * RTE_MBUF_F_EXTERNAL (receive buffers), priv_size that of its pool. It belongs to the caller, who
 * frees it. The peer can write receive buffers until then; with the devarg rx=stable the message
 * was copied out of them.
 *
 * @param dev_id
 *   Rawdev id of a started device.
 * @param queue
 *   Queue pair.
 * @param mbufs
 *   Room for n.
 * @param meta
 *   Room for n; NULL if not wanted.
 * @param n
 *   Most messages to receive, 0 to 65535.
 * @return
 *   Messages received, 0 to n; 0 while there is no peer. With the devarg cache_hint=auto and dense
 *   traffic also 0 for some 3 us behind a burst, where messages come faster by that.
 * @retval -ENODEV
 *   There is no such device or queue pair.
 */
int rte_pmd_plx_ntb_rx_burst(uint16_t dev_id, uint16_t queue, struct rte_mbuf **mbufs,
                             struct rte_pmd_plx_ntb_meta *meta, uint16_t n);

/** The burst functions of one queue pair, without the look-up of device and queue. */
struct rte_pmd_plx_ntb_burst {
    /** As rte_pmd_plx_ntb_tx_burst(), with tx_queue as first argument */
    int (*tx)(void *tx_queue, struct rte_mbuf **mbufs, const struct rte_pmd_plx_ntb_meta *meta,
              uint16_t n);
    /** As rte_pmd_plx_ntb_rx_burst(), with rx_queue as first argument */
    int (*rx)(void *rx_queue, struct rte_mbuf **mbufs, struct rte_pmd_plx_ntb_meta *meta,
              uint16_t n);
    void *tx_queue;       /**< First argument of tx */
    void *rx_queue;       /**< First argument of rx */
    uint64_t reserved[4]; /**< Reserved, 0 */
};

/**
 * Gets the burst functions of a queue pair. They are valid from configure and queue set-up until
 * the queue is released or the device is configured again or closed. Any thread.
 *
 * @param dev_id
 *   Rawdev id.
 * @param queue
 *   Queue pair.
 * @param out
 *   Filled in.
 * @retval 0
 *   Filled in.
 * @retval -ENODEV
 *   There is no such device or queue pair.
 * @retval -EINVAL
 *   out is NULL.
 */
int rte_pmd_plx_ntb_burst_get(uint16_t dev_id, uint16_t queue, struct rte_pmd_plx_ntb_burst *out);

/* ------------------------------------------------------------------------------------------------
 * Messages of one flow
 */

/** Messages that are sent with the same metadata. */
struct rte_pmd_plx_ntb_tx_flow {
    struct rte_pmd_plx_ntb_meta meta; /**< Of each message */
    uint32_t longest;                 /**< Longest message in bytes */
    uint32_t reserved;                /**< Reserved, 0 */
    uint64_t bytes;                   /**< Filled in: of the messages that were accepted */
};

/** Messages to be received that have the low half of their metadata's data, and the flags, in
 * common. */
struct rte_pmd_plx_ntb_rx_flow {
    uint32_t low;     /**< Low 32 bits of rte_pmd_plx_ntb_meta::data, of each message */
    uint32_t flags;   /**< Flags of each message */
    uint32_t *high;   /**< Room for n: the high 32 bits of each message; NULL if not wanted */
    uint32_t longest; /**< Longest message in bytes */
    uint32_t other;   /**< Filled in: 1 where rte_pmd_plx_ntb_burst::rx has to say what is next; 0
                           where the burst is full, no mbuf is left, or nothing more has arrived */
    uint64_t bytes;   /**< Filled in: of the messages that were received */
};

/**
 * Bursts of messages of one flow, which cost less than those of rte_pmd_plx_ntb_burst, whose
 * tx_queue and rx_queue are their first arguments. They set no rte_errno.
 *
 * Threads: one at a time calls tx of a queue pair, or a burst function that sends on it; one at a
 * time rx, rx_next or a burst function that receives. The flow is the caller's, and is used during
 * the call alone.
 *
 * mbufs: those that tx accepted belong to the driver, all others stay the caller's, unchanged.
 * Those that rx and rx_next return belong to the caller, who frees them, and are as
 * rte_pmd_plx_ntb_rx_burst() says of messages that came in the ring.
 */
struct rte_pmd_plx_ntb_flow_calls {
    /** Sends up to the first message that is longer than the longest, or cannot be sent or not now:
     * rte_pmd_plx_ntb_burst::tx says which. Returns how many it accepted, 0 to n; -ENOTCONN: there
     * is no peer, or the queue has failed. */
    int (*tx)(void *tx_queue, struct rte_mbuf **mbufs, struct rte_pmd_plx_ntb_tx_flow *flow,
              uint16_t n);
    /** Receives up to the first message that is not of the flow, is longer than the longest, or did
     * not come in the ring. Returns how many it received, 0 to n; 0 while there is no peer, or the
     * queue has failed. other and bytes are filled in by each call. */
    int (*rx)(void *rx_queue, struct rte_mbuf **mbufs, struct rte_pmd_plx_ntb_rx_flow *flow,
              uint16_t n);
    /** As rx, but of the flow of the next message, whatever that is: low is filled in. Returns 0
     * where nothing has arrived, or no mbuf is left; -EAGAIN where rte_pmd_plx_ntb_burst::rx has to
     * say what is next. The flow is filled in only where messages were received. NULL in a driver
     * that was built before there was this call. */
    int (*rx_next)(void *rx_queue, struct rte_mbuf **mbufs, struct rte_pmd_plx_ntb_rx_flow *flow,
                   uint16_t n);
    uint64_t reserved; /**< Reserved, 0 */
};

/**
 * Gets these functions. Any thread.
 *
 * @param dev_id
 *   Rawdev id.
 * @param out
 *   Filled in. Valid as what rte_pmd_plx_ntb_burst_get() returns.
 * @retval 0
 *   Filled in.
 * @retval -ENODEV
 *   There is no such device.
 * @retval -EINVAL
 *   out is NULL.
 */
__rte_experimental
int rte_pmd_plx_ntb_flow_calls_get(uint16_t dev_id, struct rte_pmd_plx_ntb_flow_calls *out);

/* ------------------------------------------------------------------------------------------------
 * Messages that are built in place
 */

/** A receive buffer of the peer for a message that is built in place, seen in the memory window.
 * Written, never read: on a card a load takes microseconds, or for ever if the link is down. */
struct rte_pmd_plx_ntb_room {
    void *address;     /**< Its begin, aligned to 64 bytes */
    uint32_t bytes;    /**< Its length */
    uint32_t reserved; /**< Reserved, 0 */
};

/**
 * Reserves receive buffers of the peer, in which the caller builds messages, instead of building
 * them in mbufs that are copied there. By the thread of the sending half.
 *
 *     n = rte_pmd_plx_ntb_tx_reserve(...)
 *     store the messages into the rooms            stores alone, no loads
 *     rte_pmd_plx_ntb_tx_commit(...)               or rte_pmd_plx_ntb_tx_abort()
 *
 * The peer sees nothing before the commit. A message takes its place among those of bursts when it
 * is committed. Until all rooms are committed or aborted, bursts of this queue pair accept no
 * message that needs a receive buffer: they end before it. Short messages go on.
 *
 * All stores must be complete when the commit is called. Usual stores of the calling thread are.
 * Non-temporal ones need a store fence (_mm_sfence()) before it; those of other threads an
 * acquire of what these threads released after them. On a card the window is write-combining: whole
 * lines of 64 bytes, from the first byte to the last, leave the CPU as one packet each.
 *
 * Rooms belong to the connection. When it ends, the commit returns -ECONNRESET, and nothing was
 * sent. On the twin, stores that go on until then are lost: the driver moves its memory window
 * away from them, and connects anew. A window of a card cannot be moved: there the driver reports
 * RTE_PMD_PLX_NTB_EVENT_LOST, and connects again only after the commit or abort, so that no store
 * reaches the next peer. rte_rawdev_stop() is incomplete, and a close returns -EBUSY, until then.
 * After commit or abort, no thread may store to a room.
 *
 * @param dev_id
 *   Rawdev id of a started device.
 * @param queue
 *   Queue pair.
 * @param rooms
 *   Set to the rooms, in the order in which messages use them; room for n.
 * @param n
 *   Most rooms wanted, 0 to 65535.
 * @return
 *   Rooms reserved, 0 to n; fewer than n is back-pressure: the peer has no more receive buffers
 *   available, or the ring has no room.
 * @retval -ENODEV
 *   There is no such device or queue pair.
 * @retval -ENOTCONN
 *   There is no peer.
 * @retval -EBUSY
 *   Rooms of an earlier call were neither committed nor aborted.
 */
__rte_experimental
int rte_pmd_plx_ntb_tx_reserve(uint16_t dev_id, uint16_t queue, struct rte_pmd_plx_ntb_room *rooms,
                               uint16_t n);

/**
 * Sends messages that lie in reserved rooms, beginning with the first that is left. A message takes
 * as many rooms as it needs, all full but its last: a short one takes one. All are sent or none;
 * there is room in the ring. Same thread.
 *
 * @param dev_id
 *   Rawdev id.
 * @param queue
 *   Queue pair.
 * @param lengths
 *   n lengths in bytes, 1 or more each.
 * @param meta
 *   n entries that travel with the messages; NULL for zeros.
 * @param n
 *   Number of messages, 0 to 65535.
 * @return
 *   n. Rooms that were not needed remain reserved.
 * @retval -ENODEV
 *   There is no such device or queue pair.
 * @retval -ECONNRESET
 *   The connection of the rooms has ended. None is reserved any more.
 * @retval -EMSGSIZE
 *   A message is longer than the peer accepts. The rooms remain reserved.
 * @retval -EINVAL
 *   A length is 0, or the messages need more rooms than are reserved, which remain so.
 */
__rte_experimental
int rte_pmd_plx_ntb_tx_commit(uint16_t dev_id, uint16_t queue, const uint32_t *lengths,
                              const struct rte_pmd_plx_ntb_meta *meta, uint16_t n);

/**
 * Gives all rooms that are reserved back, of whatever connection. What was stored in them is never
 * seen. Same thread; also allowed when none is reserved.
 *
 * @param dev_id
 *   Rawdev id.
 * @param queue
 *   Queue pair.
 * @retval 0
 *   None is reserved any more.
 * @retval -ENODEV
 *   There is no such device or queue pair.
 */
__rte_experimental
int rte_pmd_plx_ntb_tx_abort(uint16_t dev_id, uint16_t queue);

/** The functions above without the look-up of device and queue. Their first argument is
 * rte_pmd_plx_ntb_burst::tx_queue. */
struct rte_pmd_plx_ntb_room_calls {
    /** As rte_pmd_plx_ntb_tx_reserve() */
    int (*reserve)(void *tx_queue, struct rte_pmd_plx_ntb_room *rooms, uint16_t n);
    /** As rte_pmd_plx_ntb_tx_commit() */
    int (*commit)(void *tx_queue, const uint32_t *lengths, const struct rte_pmd_plx_ntb_meta *meta,
                  uint16_t n);
    /** As rte_pmd_plx_ntb_tx_abort() */
    void (*abort)(void *tx_queue);
    uint64_t reserved[1]; /**< Reserved, 0 */
};

/**
 * Gets these functions. Any thread.
 *
 * @param dev_id
 *   Rawdev id.
 * @param out
 *   Filled in. Valid as what rte_pmd_plx_ntb_burst_get() returns.
 * @retval 0
 *   Filled in.
 * @retval -ENODEV
 *   There is no such device.
 * @retval -EINVAL
 *   out is NULL.
 */
__rte_experimental
int rte_pmd_plx_ntb_room_calls_get(uint16_t dev_id, struct rte_pmd_plx_ntb_room_calls *out);

/**
 * Reads the state of the connection. Any thread; may wait some milliseconds for the control thread.
 *
 * @param dev_id
 *   Rawdev id.
 * @param link
 *   Filled in.
 * @retval 0
 *   Filled in.
 * @retval -ENODEV
 *   There is no such device.
 * @retval -EINVAL
 *   link is NULL.
 */
int rte_pmd_plx_ntb_link_get(uint16_t dev_id, struct rte_pmd_plx_ntb_link *link);

/**
 * Sets the one event callback of a device. The previous one does not run any more when this
 * returns.
 *
 * @param dev_id
 *   Rawdev id.
 * @param fn
 *   The callback; NULL: none.
 * @param arg
 *   Passed to it.
 * @retval 0
 *   Set.
 * @retval -ENODEV
 *   There is no such device.
 */
int rte_pmd_plx_ntb_event_register(uint16_t dev_id, rte_pmd_plx_ntb_event_fn fn, void *arg);

/* ------------------------------------------------------------------------------------------------
 * An orderly end
 */

/**
 * Returns how many messages of a queue pair the peer has not confirmed. It confirms what its
 * application has received. It confirms in batches, at the latest when a quarter of the ring is
 * received, and all when a poll finds nothing. Any thread; takes a lock for a moment. While another
 * thread is inside a burst the count may lack its messages.
 *
 * @param dev_id
 *   Rawdev id.
 * @param queue
 *   Queue pair.
 * @param count
 *   Filled in.
 * @retval 0
 *   Filled in.
 * @retval -ENOTCONN
 *   There is no peer, or it has stopped. Filled in with what the last one has not confirmed.
 * @retval -ENODEV
 *   There is no such device or queue pair, or it is not set up.
 * @retval -EINVAL
 *   count is NULL.
 */
__rte_experimental
int rte_pmd_plx_ntb_tx_unconfirmed(uint16_t dev_id, uint16_t queue, uint32_t *count);

/**
 * Stops a device as rte_rawdev_stop() does, with a time of the caller's in place of the devarg
 * linger_ms. From now on bursts accept nothing. What was accepted before is sent. Then the driver
 * announces the stop to the peer and waits at most linger_ms until the peer has confirmed
 * everything. The wait ends early when all is confirmed, when the peer stops or is lost, or when a
 * signal handler interrupts the calling thread while it sleeps. Same thread as rte_rawdev_stop().
 *
 * A peer whose application still has to receive what it was sent does so after this call as well:
 * only then it reports RTE_PMD_PLX_NTB_EVENT_LOST.
 *
 * @param dev_id
 *   Rawdev id.
 * @param linger_ms
 *   Longest wait in milliseconds; 0: none.
 * @param unconfirmed
 *   Set to the number of messages that the peer has not confirmed, of all queue pairs: they may or
 *   may not be received. NULL if not wanted.
 * @retval 0
 *   Stopped, now or before.
 * @retval -EIO
 *   Stopped, but the peer's access could not be revoked, since the chip does not answer or a thread
 *   stays inside a burst. The memory that the peer may reach is kept, and the queues too: until a
 *   stop completes, a configuration, a queue's setup or release and a start, each of which tries it
 *   once more, give -EBUSY. Call again, or close the device.
 * @retval -ENODEV
 *   There is no such device.
 */
__rte_experimental
int rte_pmd_plx_ntb_stop(uint16_t dev_id, uint32_t linger_ms, uint64_t *unconfirmed);

/* ------------------------------------------------------------------------------------------------
 * Sleeping
 */

/** rte_pmd_plx_ntb_rx_wait() without a time limit. */
#define RTE_PMD_PLX_NTB_FOREVER UINT32_MAX

/**
 * Returns the event descriptor of the receiving half of a queue pair, for poll(), epoll and
 * rte_epoll_wait(). It is readable after rte_pmd_plx_ntb_rx_arm() when a message arrives, on each
 * event of the connection (enum rte_pmd_plx_ntb_event) and on rte_rawdev_stop(); it may also be
 * readable without a cause. It belongs to the driver: never read, write or close it. Any thread.
 *
 * A receiver that sleeps calls, in this order:
 *
 *     received = rte_pmd_plx_ntb_rx_burst(...)         until it returns 0
 *     if rte_pmd_plx_ntb_rx_arm(...) == 0              else: receive
 *         wait until the descriptor is readable
 *         rte_pmd_plx_ntb_rx_disarm(...)
 *     receive
 *
 * No message is missed. The control thread of the peer confirms that it will ring the doorbell for
 * later messages, and how many came before. Until it has, or where it cannot ring (devarg intr=0,
 * no interrupt from the kernel driver, registers closed to the peer), the driver polls for the
 * sleeper every `recheck_us` (devarg, default 1000) microseconds. A lost doorbell costs at most
 * some 10 ms.
 *
 * @param dev_id
 *   Rawdev id.
 * @param queue
 *   Queue pair.
 * @return
 *   A descriptor, valid until the queue is released, or the device is closed or configured with
 *   fewer queues.
 * @retval -ENODEV
 *   There is no such device or queue pair, or it is not set up.
 */
__rte_experimental
int rte_pmd_plx_ntb_rx_event_fd(uint16_t dev_id, uint16_t queue);

/**
 * Arms the event descriptor for one event. Called by the thread of the receiving half, outside a
 * burst. It takes some microseconds and a write across the bridge. Armed while there is no peer, it
 * reports when one connects.
 *
 * @param dev_id
 *   Rawdev id.
 * @param queue
 *   Queue pair.
 * @retval 0
 *   Armed.
 * @retval 1
 *   Not armed: there is something to receive. The descriptor is readable, for callers that wait all
 *   the same.
 * @retval -ENODEV
 *   There is no such device or queue pair.
 */
__rte_experimental
int rte_pmd_plx_ntb_rx_arm(uint16_t dev_id, uint16_t queue);

/**
 * Disarms the event descriptor and clears it. Same thread; also allowed when it is not armed.
 *
 * @param dev_id
 *   Rawdev id.
 * @param queue
 *   Queue pair.
 * @retval 0
 *   Disarmed.
 * @retval -ENODEV
 *   There is no such device or queue pair.
 */
__rte_experimental
int rte_pmd_plx_ntb_rx_disarm(uint16_t dev_id, uint16_t queue);

/**
 * Wakes a thread that has armed the event descriptor or waits, as an event of the connection does:
 * for work that other threads of this host have for it. A thread that arms later is not woken; one
 * that checks for such work after arming misses none. Takes a lock for a moment. Any thread.
 *
 * @param dev_id
 *   Rawdev id.
 * @param queue
 *   Queue pair.
 * @retval 0
 *   Woken, or there was none to wake.
 * @retval -ENODEV
 *   There is no such device or queue pair.
 */
__rte_experimental
int rte_pmd_plx_ntb_rx_wake(uint16_t dev_id, uint16_t queue);

/**
 * Waits until there is something to receive: polls for `spin_us` (devarg, default 20) microseconds,
 * then sleeps as above. Called by the thread of the receiving half. Start and stop of the device
 * may run meanwhile and wake it; queue release, configure and close may not.
 *
 * @param dev_id
 *   Rawdev id.
 * @param queue
 *   Queue pair.
 * @param timeout_us
 *   Longest wait in microseconds; 0: return at once; RTE_PMD_PLX_NTB_FOREVER.
 * @retval 1
 *   There is a message, or an event ended the wait.
 * @retval 0
 *   The time is over.
 * @retval -EINTR
 *   A signal arrived.
 * @retval -ENODEV
 *   There is no such device or queue pair.
 */
__rte_experimental
int rte_pmd_plx_ntb_rx_wait(uint16_t dev_id, uint16_t queue, uint32_t timeout_us);

#ifdef __cplusplus
}
#endif

#include <rte_pmd_plx_ntb_memory.h>
#include <rte_pmd_plx_ntb_requester.h>

#endif

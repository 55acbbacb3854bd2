/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RTE_PMD_PLX_NTB_H
#define RTE_PMD_PLX_NTB_H

/**
 * @file
 * PLX PEX 87xx non-transparent bridge: what the rawdev `raw_plx_ntb` offers beyond rte_rawdev.h.
 *
 * Object model: a *device* is one end of a bridge (one card, or one software twin). It has 1 to 64
 * *queue pairs*; each carries messages (mbufs) both ways between this host and its one peer.
 *
 * Legal order of calls:
 *
 *     probe (EAL) -> rte_rawdev_configure -> rte_rawdev_queue_setup (each queue)
 *         -> rte_rawdev_start -> bursts, link and event calls -> rte_rawdev_stop
 *         -> configure or start again, or rte_rawdev_close
 *
 * rte_rawdev_start() does not wait for the peer. The two hosts may start in any order, stop and
 * start again, die and come back; each change is told as an event
 * (rte_pmd_plx_ntb_event_register()).
 *
 * Threads: one thread at a time on the sending half of a queue pair and one at a time on its
 * receiving half; the two may differ. Control calls (rte_rawdev_*, event registration) of one
 * device come from one thread at a time; start, stop and close may run while other threads are
 * inside burst calls. Link, statistics and attribute reads are safe from any thread. Primary
 * processes only: a secondary process is refused with -ENOTSUP at probe.
 *
 * Service: with the devarg service=1 the device registers a service of its own name
 * (rte_service_get_by_name()). A service lcore that runs it looks after receivers that sleep, in
 * memory alone, and answers the peer's, both at once instead of by interrupts and timers: for
 * devices without an interrupt. Nothing depends on it.
 *
 * What a peer can do: nothing that it writes makes this driver read or write outside its own
 * buffers, crash or spin. The data of a *received* mbuf that came through a posted buffer (longer
 * than the sender's inline limit) lies in window memory: a hostile peer can change it until the
 * mbuf is freed. Copy it first where that matters.
 */

#include <stddef.h>
#include <stdint.h>

#include <rte_compat.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rte_mbuf;
struct rte_mempool;

/** Queue pairs a device can have. */
#define RTE_PMD_PLX_NTB_MAX_QUEUES 64

/**
 * The rawdev id of a device of this driver by its name ("raw_plx_ntb0", "0000:05:00.0"). Unlike
 * rte_rawdev_get_dev_id() of DPDK 22.11 it also finds devices that were probed before one with a
 * lower id was removed. @return id; -EINVAL name is NULL; -ENODEV no such device, or it is of
 * another driver. Any thread.
 */
int rte_pmd_plx_ntb_find(const char *name);

/** Travels with a message, opaque to the driver. */
struct rte_pmd_plx_ntb_meta {
    uint64_t data;     /**< the caller's */
    uint32_t flags;    /**< the low 6 bits travel, the others arrive as 0 */
    uint32_t reserved; /**< 0 */
};

/**
 * Device configuration, passed to rte_rawdev_configure() as dev_private with dev_private_size =
 * sizeof(this). A field that is 0 keeps the devarg of that name or its default.
 */
struct rte_pmd_plx_ntb_config {
    size_t size;         /**< sizeof(struct rte_pmd_plx_ntb_config): lets this struct grow */
    uint32_t queues;     /**< queue pairs, 1 to 64; default 1 */
    uint32_t ring_lines; /**< message ring per queue pair in 64-byte lines, power of two, 64 to
                              65536; default 4096 */
    uint32_t buffers; /**< window buffers of the device, shared by its queue pairs; default 4096 */
    uint32_t buf_bytes;   /**< data bytes of a window buffer, multiple of 64, 64 to 65280;
                               default 2048 */
    uint32_t posted;      /**< buffers kept posted per queue pair; default: half of the
                               buffers over all queue pairs, at most 2044 */
    uint32_t inline_max;  /**< longest message in bytes that travels inside the ring, 48 to 1024 */
    uint32_t max_message; /**< longest message in bytes this side takes; default and most: what
                               posted - 13 buffers hold, as they are posted again by the 14 */
};

/** Queue configuration, passed to rte_rawdev_queue_setup(). */
struct rte_pmd_plx_ntb_queue_config {
    size_t size; /**< sizeof(struct rte_pmd_plx_ntb_queue_config) */
    /** Private pool (data room at least 128 + 1024 bytes) for messages that came inside the ring;
     * NULL: the device makes one. Must outlive the device's next stop. */
    struct rte_mempool *pool;
};

/** rte_rawdev_info_get() fills this in when dev_private points to one. */
struct rte_pmd_plx_ntb_info {
    size_t size;                     /**< in: sizeof(struct rte_pmd_plx_ntb_info) */
    uint32_t queues;                 /**< configured queue pairs */
    uint32_t ring_lines;             /**< per queue pair */
    uint32_t buffers;                /**< window buffers */
    uint32_t buf_bytes;              /**< data bytes each */
    uint32_t inline_max;             /**< bytes */
    uint32_t max_message;            /**< bytes this side takes */
    int32_t socket_id;               /**< NUMA node of its memory, -1 unknown */
    uint64_t window_bytes;           /**< data window into the peer */
    uint64_t block_bytes;            /**< memory lent to the peer; 0 before the first start */
    struct rte_mempool *window_pool; /**< pool over that memory; NULL before the first start */
    char burst[32];                  /**< variant of the hot path, e.g. "plain/avx512" */
    char platform[16];               /**< "twin" or "pci" */
};

/**
 * Values of the attribute "topo" (rte_rawdev_get_attr()). Back to back, both ends are alike and
 * have raw/ntb's number of an upstream device; raw/ntb has none for one chip between two hosts.
 */
enum rte_pmd_plx_ntb_topo {
    RTE_PMD_PLX_NTB_TOPO_B2B = 1,        /**< two chips, cabled by their NT ports */
    RTE_PMD_PLX_NTB_TOPO_RP_VIRTUAL = 3, /**< one chip, whose upstream port leads to this host */
    RTE_PMD_PLX_NTB_TOPO_RP_LINK = 4,    /**< one chip, this host behind its NT link */
};

/** Where a device stands with its peer. */
enum rte_pmd_plx_ntb_state {
    RTE_PMD_PLX_NTB_STOPPED = 0, /**< not started */
    RTE_PMD_PLX_NTB_WAITING,     /**< no way to the peer: link down, cable open, peer not started */
    RTE_PMD_PLX_NTB_CONNECTED,   /**< messages flow */
    RTE_PMD_PLX_NTB_SILENT,      /**< connected, but no heartbeat for heartbeat_ms */
    RTE_PMD_PLX_NTB_FENCING,     /**< lost; its access to our memory is being taken away */
    RTE_PMD_PLX_NTB_REFUSED,     /**< the peer speaks another version, or impossible sizes */
};

/** Where a device stands with its peer, and what the peer is. */
struct rte_pmd_plx_ntb_link {
    enum rte_pmd_plx_ntb_state state; /**< see there */
    uint32_t speed;                   /**< PCIe generation of the NT link, 0 down */
    uint32_t width;                   /**< lanes, 0 down */
    uint32_t peer_epoch;              /**< 0 while not connected */
    uint32_t peer_max_message;        /**< bytes the peer takes; 0 while not connected */
    uint32_t queues;                  /**< queue pairs in use: the smaller of both counts */
    char why[96];                     /**< in words: why it is not connected; empty when it is */
};

/** What happens between a device and its peer. */
enum rte_pmd_plx_ntb_event {
    RTE_PMD_PLX_NTB_EVENT_BACK = 0, /**< connected (for the first time, or again) */
    RTE_PMD_PLX_NTB_EVENT_SILENT,   /**< no heartbeat; nothing is lost if it ends */
    RTE_PMD_PLX_NTB_EVENT_AWAKE,    /**< the heartbeat of a silent peer is back */
    RTE_PMD_PLX_NTB_EVENT_LOST,     /**< the connection is gone, by rte_rawdev_stop() of this device
                                         too; what was not confirmed is counted in xstat
                                         tx_unconfirmed; a new BACK will follow when the peer returns,
                                         or when this device was started again */
    RTE_PMD_PLX_NTB_EVENT_REFUSED,  /**< see rte_pmd_plx_ntb_link.why */
};

/**
 * Runs on a control thread of the device's own, in order, one at a time; those of several devices
 * may run at once. What rte_rawdev_stop() or a close brings about (LOST, if it was connected) is
 * told by the thread that calls it, before it returns. While it runs, the device sends no
 * heartbeat: it must not block. It must not call rte_rawdev_stop(), rte_rawdev_close() or
 * rte_pmd_plx_ntb_event_register() of this device.
 */
typedef void (*rte_pmd_plx_ntb_event_fn)(uint16_t dev_id, enum rte_pmd_plx_ntb_event event,
                                         void *arg);

/**
 * Sends a burst of messages: one message per mbuf (chain).
 *
 * @param dev_id  rawdev id, started
 * @param queue   queue pair
 * @param mbufs   n messages. Single or chained segments, any pool, attached or external data. Each
 * of the first `return value` belongs to the driver, which frees it once it is copied: on return,
 * or, where the chip's DMA engine copies it, after the engine has read it: in a later burst, or, if
 * none comes, by the device within some 20 ms, or when the connection ends. At most 256 a queue
 * pair are held so. The engine reads memory that EAL manages and window buffers; all else is copied
 * by the CPU. The others stay the caller's, unchanged.
 * @param meta    n entries that travel with the messages, or NULL for zeros
 * @param n       0 to 65535; 0 frees what the engine has read
 * A message longer than the inline limit goes only while the peer has buffers posted: its receiving
 * half posts them when it polls, so a peer that never receives takes none.
 *
 * @return messages taken, 0 to n; fewer than n is back-pressure, and an mbuf that could not be sent
 *   ends the burst before itself.
 *   -ENODEV no such device or queue; -ENOTCONN no peer (yet); -EMSGSIZE mbufs[0] is longer than the
 *   peer takes; -EINVAL mbufs[0] is NULL or a broken chain. Nothing was taken then.
 */
int rte_pmd_plx_ntb_tx_burst(uint16_t dev_id, uint16_t queue, struct rte_mbuf **mbufs,
                             const struct rte_pmd_plx_ntb_meta *meta, uint16_t n);

/**
 * Receives a burst of messages.
 *
 * State of an mbuf handed up: data_off RTE_PKTMBUF_HEADROOM, refcnt 1, packet_type 0, port the
 * device id, pkt_len the message, nb_segs 1 or a chain of posted buffers, ol_flags 0 but for
 * RTE_MBUF_F_EXTERNAL where the data lies in window memory; priv_size as its pool has it. It
 * belongs to the caller; freeing it returns the buffer. What lies in window memory stays writable
 * by the peer until then; with the devarg rx=stable nothing that is handed up does.
 *
 * @param dev_id, queue  as above
 * @param n      1 to 65535
 * @param mbufs  room for n
 * @param meta   room for n, or NULL
 * @return messages received, 0 to n; 0 also while there is no peer. -ENODEV no such device or
 * queue.
 */
int rte_pmd_plx_ntb_rx_burst(uint16_t dev_id, uint16_t queue, struct rte_mbuf **mbufs,
                             struct rte_pmd_plx_ntb_meta *meta, uint16_t n);

/** The burst functions of one queue pair, without the look-up of device and queue. */
struct rte_pmd_plx_ntb_burst {
    /** rte_pmd_plx_ntb_tx_burst() for tx_queue */
    int (*tx)(void *tx_queue, struct rte_mbuf **mbufs, const struct rte_pmd_plx_ntb_meta *meta,
              uint16_t n);
    /** rte_pmd_plx_ntb_rx_burst() for rx_queue */
    int (*rx)(void *rx_queue, struct rte_mbuf **mbufs, struct rte_pmd_plx_ntb_meta *meta,
              uint16_t n);
    void *tx_queue; /**< first argument of tx */
    void *rx_queue; /**< first argument of rx */
};

/**
 * Gets them. Valid from configure and queue_setup until the queue is released or the device is
 * configured again or closed.
 * @return 0; -ENODEV no such device or queue; -EINVAL out is NULL
 */
int rte_pmd_plx_ntb_burst_get(uint16_t dev_id, uint16_t queue, struct rte_pmd_plx_ntb_burst *out);

/** @return 0; -ENODEV; -EINVAL link is NULL. May wait for a control tick, some milliseconds. */
int rte_pmd_plx_ntb_link_get(uint16_t dev_id, struct rte_pmd_plx_ntb_link *link);

/**
 * Sets the one event callback of a device; NULL removes it, and it does not run any more once this
 * returns. @return 0; -ENODEV
 */
int rte_pmd_plx_ntb_event_register(uint16_t dev_id, rte_pmd_plx_ntb_event_fn fn, void *arg);

/** rte_pmd_plx_ntb_rx_wait() without a time limit. */
#define RTE_PMD_PLX_NTB_FOREVER UINT32_MAX

/**
 * The event descriptor of a queue pair's receiving half, for poll(), epoll and rte_epoll_wait().
 * It becomes readable after rte_pmd_plx_ntb_rx_arm() when a message shows or something happens to
 * the connection (each event of enum rte_pmd_plx_ntb_event, and rte_rawdev_stop()), and may do so
 * for nothing. It stays the driver's: never read, write or close it.
 *
 * Who sleeps does, in this order:
 *
 *     received = rte_pmd_plx_ntb_rx_burst(...)         until it returns 0
 *     if rte_pmd_plx_ntb_rx_arm(...) == 0              else: receive
 *         wait until the descriptor is readable
 *         rte_pmd_plx_ntb_rx_disarm(...)
 *     receive
 *
 * No message is slept through. The peer's control side confirms that it rings for what comes next
 * and how much came before; until it has, or where it cannot ring (devarg intr=0, no interrupt
 * from the kernel driver, its way to our registers closed), the driver looks every `recheck_us`
 * (devarg, default 1000) microseconds. A doorbell that is lost on its way costs at most some 10 ms.
 *
 * @return a descriptor, valid until the queue is released or the device is configured with fewer
 *   queues or closed; -ENODEV no such device or queue, or it is not set up. Any thread.
 */
int rte_pmd_plx_ntb_rx_event_fd(uint16_t dev_id, uint16_t queue);

/**
 * Arms the event descriptor for one event. By the thread of the receiving half, outside a burst;
 * it takes some microseconds and a write across the bridge. Armed while there is no peer, it tells
 * when one comes.
 * @return 0 armed; 1 not armed: there is something to receive; -ENODEV
 */
int rte_pmd_plx_ntb_rx_arm(uint16_t dev_id, uint16_t queue);

/**
 * Takes it back, and what the descriptor shows with it. Same thread; also when it is not armed.
 * @return 0; -ENODEV
 */
int rte_pmd_plx_ntb_rx_disarm(uint16_t dev_id, uint16_t queue);

/**
 * Wakes who has armed the event descriptor, or waits, as an event of the connection does: for what
 * other threads of this host have for it. Who arms later is not woken; who looks for such a thing
 * after arming misses none. Any thread; it takes a lock for a moment.
 * @return 0, also where nobody is armed; -ENODEV
 */
int rte_pmd_plx_ntb_rx_wake(uint16_t dev_id, uint16_t queue);

/**
 * Waits until there is something to receive: polls for `spin_us` (devarg, default 20)
 * microseconds, then sleeps as above. Same thread. Start and stop of the device may run
 * meanwhile and wake it; queue release, configure and close may not.
 *
 * @param dev_id, queue  as above
 * @param timeout_us     microseconds; 0: look once; RTE_PMD_PLX_NTB_FOREVER
 * @return 1 receive now: there is a message, or an event that ended the wait; 0 out of time;
 *   -EINTR a signal came; -ENODEV
 */
int rte_pmd_plx_ntb_rx_wait(uint16_t dev_id, uint16_t queue, uint32_t timeout_us);

/*
 * Lending memory to the peer through the data window (BAR2), beside the queue pairs' own block: the
 * rules are in doc/windows.md. All functions below: any thread; they take the device's control
 * lock, and may wait some milliseconds. Experimental.
 */

/** How a chip shows memory to the peer. */
enum rte_pmd_plx_ntb_window_kind {
    /** base and offset: one block, which the queue pairs have; nothing can be lent */
    RTE_PMD_PLX_NTB_WINDOW_BASE_OFFSET = 0,
    RTE_PMD_PLX_NTB_WINDOW_ALUT, /**< segments, each with rights of its own */
};

/** The peer may write to it. */
#define RTE_PMD_PLX_NTB_WINDOW_WRITE 1u
/** The peer may read from it. Reads across a bridge are slow. */
#define RTE_PMD_PLX_NTB_WINDOW_READ 2u

/** Wherever there is room. */
#define RTE_PMD_PLX_NTB_WINDOW_ANY UINT32_MAX

/** What can be lent, and how. */
struct rte_pmd_plx_ntb_window_info {
    size_t size;                           /**< in: sizeof(struct rte_pmd_plx_ntb_window_info) */
    enum rte_pmd_plx_ntb_window_kind kind; /**< see there */
    /** rights without which plain stores of the peer's CPU do not arrive: WRITE on a card; both on
     * the twin, whose pages know no writing without reading */
    uint32_t store_rights;
    uint64_t window_bytes;  /**< what the peer's window shows in all: a power of two */
    uint64_t segment_bytes; /**< addresses and sizes are multiples of it; 0: base and offset. Can
                                 grow when the device is configured with a larger block */
    uint32_t segments;      /**< 128 or 256; 0: base and offset */
    uint32_t free_segments; /**< not given out; 0 while the device is stopped */
    uint32_t longest_free;  /**< the most of them in a row, in one window */
    uint32_t windows;       /**< devarg split: equal parts of window_bytes; what is exposed lies in
                                 one of them. The queue pairs' block is in window 0 */
    uint64_t memory_bytes_max; /**< what one allocation can be; 0: base and offset */
};

/** What the window demands of memory that it shows, in bus addresses. */
struct rte_pmd_plx_ntb_window_align {
    size_t size;         /**< in: sizeof(struct rte_pmd_plx_ntb_window_align) */
    uint64_t addr_align; /**< addresses are multiples of it: of a segment; base and offset: of what
                              the window is set to, a power of two that holds the memory */
    uint64_t size_align; /**< and sizes of this; what is less is shown with what lies behind it */
    uint64_t size_max;   /**< most that the window shows in all */
};

/** Memory that can be lent. */
struct rte_pmd_plx_ntb_window_memory {
    void *address; /**< zeros when new */
    size_t bytes;  /**< what was asked for, rounded up to a power of two of whole segments */
};

/** What is lent. */
struct rte_pmd_plx_ntb_window_grant {
    void *address;   /**< its start here */
    size_t bytes;    /**< its length */
    uint64_t offset; /**< where it begins in the peer's window */
    uint32_t rights; /**< RTE_PMD_PLX_NTB_WINDOW_WRITE, _READ or both */
    uint32_t window; /**< which of the windows it lies in */
};

/** What the peer has lent, as it is seen from here. */
struct rte_pmd_plx_ntb_window_view {
    void *address; /**< for stores of this CPU */
    uint64_t bus;  /**< for DMA engines; 0: out of their reach */
};

/**
 * @param dev_id  rawdev id
 * @param info  size is set by the caller, the rest is filled in
 * @return 0; -ENODEV no such device, or a closed one; -EINVAL info is NULL or of another size
 */
int rte_pmd_plx_ntb_window_info_get(uint16_t dev_id, struct rte_pmd_plx_ntb_window_info *info);

/**
 * What alignment the window asks of memory, whichever way it shows it. The memory that
 * rte_pmd_plx_ntb_window_alloc() gives, and that of the queue pairs, is so.
 *
 * @param dev_id  rawdev id
 * @param bytes   that are to be shown, 1 to size_max
 * @param align   size is set by the caller, the rest is filled in
 * @return 0; -ENODEV no such device, or a closed one; -EINVAL align is NULL or of another size, or
 *   bytes is 0; -ERANGE more than the window shows, and size_max is filled in
 */
int rte_pmd_plx_ntb_window_align_get(uint16_t dev_id, uint64_t bytes,
                                     struct rte_pmd_plx_ntb_window_align *align);

/**
 * Allocates memory of its own segments: private until it is exposed. It belongs to the caller until
 * rte_pmd_plx_ntb_window_free() or the device is closed. What is to be revoked apart from other
 * memory under traffic is allocated apart from it (doc/windows.md).
 *
 * @param dev_id  rawdev id
 * @param bytes   1 to memory_bytes_max
 * @param memory  the result
 * @return 0; -ENODEV no such device, or a closed one; -EINVAL bytes, or memory is NULL; -ENOTSUP
 *   base and offset; -ENOMEM; -ENOSPC more pieces than segments
 */
int rte_pmd_plx_ntb_window_alloc(uint16_t dev_id, size_t bytes,
                                 struct rte_pmd_plx_ntb_window_memory *memory);

/**
 * Gives memory back that rte_pmd_plx_ntb_window_alloc() gave.
 * @param dev_id   rawdev id
 * @param address  its start
 * @return 0; -ENODEV; -ENOENT it is none, or was given back; -EBUSY some of it is exposed, or is
 * not known to be revoked: it is still the caller's
 */
int rte_pmd_plx_ntb_window_free(uint16_t dev_id, void *address);

/**
 * Lets the peer reach a range of allocated memory, with immediate effect. Belongs to the
 * connection: a loss of the peer (RTE_PMD_PLX_NTB_EVENT_LOST), or a stop of the device, revokes it;
 * it is exposed anew, elsewhere, after RTE_PMD_PLX_NTB_EVENT_BACK.
 *
 * @param dev_id   rawdev id
 * @param address  inside one allocation, a multiple of segment_bytes from its start
 * @param bytes    a multiple of segment_bytes
 * @param rights   RTE_PMD_PLX_NTB_WINDOW_WRITE, _READ, both; 0: WRITE
 * @param window   which of the windows; RTE_PMD_PLX_NTB_WINDOW_ANY
 * @param offset   where the peer finds it: what it passes to rte_pmd_plx_ntb_window_peer()
 * @return 0; -ENODEV no such device, or a closed one; -EINVAL a bad range, alignment, right or
 *   window, or offset is NULL; -EBUSY some of it is exposed already; -ENOTCONN no peer; -ENOSPC not
 *   so many free segments in a row; -ENOTSUP base and offset; -EIO the chip does not answer: revoke
 *   it, or wait until rte_pmd_plx_ntb_window_find() does not know it any more
 */
int rte_pmd_plx_ntb_window_expose(uint16_t dev_id, void *address, size_t bytes, uint32_t rights,
                                  uint32_t window, uint64_t *offset);

/**
 * Takes the peer's access away. When this returns 0 or -ENOENT, what the peer had written has
 * arrived, and nothing that it writes later does: the memory can be reused.
 *
 * @param dev_id          rawdev id
 * @param address, bytes  as they were exposed
 * @return 0; -ENODEV; -ENOENT not exposed (any more: the peer was lost, or the device stopped);
 * -EIO the chip does not answer: it is still exposed, call again
 */
int rte_pmd_plx_ntb_window_revoke(uint16_t dev_id, void *address, size_t bytes);

/**
 * Asks whether an address is exposed.
 * @return 0 and *grant; -ENODEV; -EINVAL grant is NULL; -ENOENT it is not: also once what was
 * exposed is known to be revoked after a loss, and only then
 */
int rte_pmd_plx_ntb_window_find(uint16_t dev_id, const void *address,
                                struct rte_pmd_plx_ntb_window_grant *grant);

/**
 * Where memory that the peer has exposed is seen from here. Whether it is still exposed only the
 * peer knows: stores that it does not allow are lost, loads give all-ones. The addresses stay
 * mapped until the device is closed.
 *
 * @param dev_id  rawdev id
 * @param offset  the peer's, by way of a message; behind the memory of its queue pairs
 * @param bytes   1 or more, inside the window
 * @param view    the result
 * @return 0; -ENODEV no such device, or a closed one; -ENOTCONN no peer; -EINVAL a range outside,
 * or view is NULL
 */
int rte_pmd_plx_ntb_window_peer(uint16_t dev_id, uint64_t offset, size_t bytes,
                                struct rte_pmd_plx_ntb_window_view *view);

/**
 * Stores bytes into memory that the peer lends, the fastest way that is right for how the window is
 * mapped: what was stored by earlier calls of a thread is visible before what it does later, a
 * burst included; the bytes of one call become visible in any order, but 8 aligned ones at once.
 *
 * @param to     in an rte_pmd_plx_ntb_window_view
 * @param from   private memory
 * @param bytes  0 or more
 */
typedef void (*rte_pmd_plx_ntb_store_fn)(void *to, const void *from, size_t bytes);

/**
 * Gets the function that stores into the window of a device. Valid until the device is removed.
 * @return 0; -ENODEV no such device, or a closed one; -EINVAL store is NULL
 */
int rte_pmd_plx_ntb_window_store_get(uint16_t dev_id, rte_pmd_plx_ntb_store_fn *store);

/*
 * Requesters: who of this host's bus reaches the peer. The bridge lets a request through only if
 * its sender's bus and device are in its requester-ID table, which has 32 places. The device enters
 * the CPU and the chip's own DMA functions; a foreign DMA engine, or a NIC that is to store into
 * the peer's memory (rte_pmd_plx_ntb_window_view.bus), is entered by these calls, from probe to
 * close, whatever the link does meanwhile. All functions below: any thread; they take the device's
 * control lock, and may wait some milliseconds. Experimental.
 */

/** Why a requester is in the table. */
enum rte_pmd_plx_ntb_requester_kind {
    RTE_PMD_PLX_NTB_REQUESTER_CPU = 0, /**< the root complex, and the id that reads carry */
    RTE_PMD_PLX_NTB_REQUESTER_ENGINE,  /**< the chip's DMA functions */
    RTE_PMD_PLX_NTB_REQUESTER_ADDED,   /**< by rte_pmd_plx_ntb_requester_add() */
    RTE_PMD_PLX_NTB_REQUESTER_LEAVING, /**< removed while the chip did not answer */
};

/** A place of the table. */
struct rte_pmd_plx_ntb_requester {
    uint16_t id;   /**< bus << 8 | device << 3; the function takes no part */
    uint16_t slot; /**< 0 to 31; the device number under which its requests arrive beyond */
    enum rte_pmd_plx_ntb_requester_kind kind; /**< see there */
};

/**
 * Lets a requester of this host's bus through, with immediate effect, until
 * rte_pmd_plx_ntb_requester_remove() or the device is closed. A lost and regained link, a restart
 * of the device or of the peer do not change that. What it then reaches is what the peer exposes.
 *
 * @param dev_id  rawdev id, probed
 * @param id      bus << 8 | device << 3 | function, below 65535. All functions of the device are
 *                let through: function bits are masked out (E17)
 * @return 0; -ENODEV no such device, or a closed one; -EINVAL id; -EEXIST bus and device are in the
 *   table; -ENOSPC the table is full; -EIO the chip does not answer (on the link side also: the
 *   link is down): not let through, call again
 */
int rte_pmd_plx_ntb_requester_add(uint16_t dev_id, uint32_t id);

/**
 * Takes it back. When this returns 0 or -ENOENT, the bridge lets no later request of it through.
 * Of one under way, a read's completion may not come: bring the requester to rest first.
 *
 * @param dev_id  rawdev id
 * @param id      as it was added; function bits do not matter
 * @return 0; -ENODEV no such device, or a closed one; -EINVAL id; -ENOENT it is not in the table;
 *   -EPERM it is the CPU's or the chip's own; -EIO the chip does not answer: call again; it is
 *   taken out as soon as the chip does
 */
int rte_pmd_plx_ntb_requester_remove(uint16_t dev_id, uint32_t id);

/**
 * Lists the table, in the order of its slots.
 *
 * @param dev_id  rawdev id
 * @param list    room for n; NULL with n = 0
 * @param n       0 to 32
 * @return how many there are, which may be more than n; -ENODEV no such device, or a closed one;
 *   -EINVAL list is NULL and n is not 0
 */
int rte_pmd_plx_ntb_requester_list(uint16_t dev_id, struct rte_pmd_plx_ntb_requester *list,
                                   uint32_t n);

/** Faults on demand, for tests of what is built on a device. Each strikes the device's own end. */
enum rte_pmd_plx_ntb_fault {
    /** 1: the link is held down; 0: it may train again */
    RTE_PMD_PLX_NTB_FAULT_LINK_DOWN = 0,
    /** 1: somebody disables the port in the chip (port control, CSR 208); 0: enables it */
    RTE_PMD_PLX_NTB_FAULT_PORT_DISABLED,
    /** 1: the cable is pulled out; 0: put back. Each end puts back what it pulled */
    RTE_PMD_PLX_NTB_FAULT_CABLE_PULLED,
    /** Surprise removal of the own card. 1: registers read as all-ones; 2: as zeros, which is what
     * EAL's hot-unplug handler maps in the place of BARs; 0: the card is back, as after power-on */
    RTE_PMD_PLX_NTB_FAULT_CARD_GONE,
    /** the next `argument` doorbell writes of the peer are lost; 0: none */
    RTE_PMD_PLX_NTB_FAULT_DROP_DOORBELLS,
    /** doorbell writes of the peer arrive `argument` microseconds late, at most 60000000 */
    RTE_PMD_PLX_NTB_FAULT_LATE_DOORBELLS,
    /** 1: this end does not follow changes of the peer's windows, as if it were stopped; 0: does */
    RTE_PMD_PLX_NTB_FAULT_FREEZE_REMAPS,
    /* Those of the DMA engines of the own chip, each counting for itself; the argument n is at most
     * 2^32 - 2, and 2^32 - 1 takes the fault back. */
    /** once, an engine misses a valid descriptor, the one after n more, and stops */
    RTE_PMD_PLX_NTB_FAULT_DMA_STALL,
    /** an engine hangs in the descriptor after n more, until the chip is reset */
    RTE_PMD_PLX_NTB_FAULT_DMA_HANG,
    /** once, the descriptor after n more fails at its source */
    RTE_PMD_PLX_NTB_FAULT_DMA_READ_ERROR,
    /** once, the descriptor after n more fails at its destination */
    RTE_PMD_PLX_NTB_FAULT_DMA_WRITE_ERROR,
    /** once, the link goes down after n bytes through windows; n at least 1 */
    RTE_PMD_PLX_NTB_FAULT_DMA_LINK_LOSS,
    /** write-backs arrive after n register reads of their channel; 0: at once */
    RTE_PMD_PLX_NTB_FAULT_DMA_LATE,
    /** transactions carry the requester id n, at most 65535, as those of a foreign engine would */
    RTE_PMD_PLX_NTB_FAULT_DMA_REQUESTER,
};

/**
 * Causes a fault, on a software twin alone. A fault lasts until it is taken back (as its comment
 * says, else with argument 0), or the device is closed. What the device makes of it is told as
 * events, as ever.
 *
 * @param dev_id    rawdev id, probed; it may be stopped or running
 * @param fault     see there
 * @param argument  see there
 * @return 0; -ENODEV no such device, or a closed one; -ENOTSUP a card, or no such fault; -EINVAL
 *   an argument that the fault does not have. Any thread.
 */
int rte_pmd_plx_ntb_inject(uint16_t dev_id, enum rte_pmd_plx_ntb_fault fault, uint32_t argument);

#ifdef __cplusplus
}
#endif

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RTE_PMD_PLX_NTB_MEMORY_H
#define RTE_PMD_PLX_NTB_MEMORY_H

/**
 * @file
 * Exposed memory and the memory window: memory beside that of the queue pairs, which the peer
 * reaches through its memory window (BAR2). doc/windows.md has the rules.
 *
 * A part of rte_pmd_plx_ntb.h, which has the object model and the rules for threads and sizes. All
 * functions of this header may be called by any thread. They take the control lock of the device
 * and may wait some milliseconds.
 */

#include <stddef.h>
#include <stdint.h>

#include <rte_compat.h>

#ifdef __cplusplus
extern "C" {
#endif

/** How a chip translates addresses of the memory window. */
enum rte_pmd_plx_ntb_memory_translation {
    /** Base and offset: one block, used by the queue pairs. No other memory can be exposed */
    RTE_PMD_PLX_NTB_MEMORY_BASE_OFFSET = 0,
    /** A-LUT: segments, each with an address and rights */
    RTE_PMD_PLX_NTB_MEMORY_ALUT,
};

/** The peer may write to exposed memory. */
#define RTE_PMD_PLX_NTB_MEMORY_WRITE 1u
/** The peer may read from exposed memory. Reads across a bridge are slow. */
#define RTE_PMD_PLX_NTB_MEMORY_READ 2u

/** Any part of the memory window with room. */
#define RTE_PMD_PLX_NTB_MEMORY_ANY UINT32_MAX

/** What memory can be exposed, and how. */
struct rte_pmd_plx_ntb_memory_info {
    size_t size; /**< sizeof(struct rte_pmd_plx_ntb_memory_info), set by the caller */
    enum rte_pmd_plx_ntb_memory_translation translation; /**< Translation */
    uint32_t store_rights;  /**< Rights without which plain stores of the peer's CPU do not
                                 arrive: WRITE on a card; both on the twin, which has no
                                 write-only mapping */
    uint64_t window_bytes;  /**< Bytes of the peer's memory window, a power of two */
    uint64_t segment_bytes; /**< Addresses and lengths are multiples of it; 0: base and offset.
                                 May grow when the device is configured with a larger block */
    uint32_t segments;      /**< 128 or 256; 0: base and offset */
    uint32_t free_segments; /**< Segments not in use; 0 while the device is stopped */
    uint32_t longest_free;  /**< Most free segments in a row, in one part of the window */
    uint32_t parts; /**< Devarg split: equal parts of the window. An exposed range lies in one
                         of them; the block of the queue pairs is in part 0 */
    uint64_t memory_bytes_max; /**< Largest allocation; 0: base and offset */
};

/** Alignment that the translation needs, in bus addresses. */
struct rte_pmd_plx_ntb_memory_align {
    size_t size;         /**< sizeof(struct rte_pmd_plx_ntb_memory_align), set by the caller */
    uint64_t addr_align; /**< Of addresses: the segment, or, with base and offset, the power of two
                              that holds the memory */
    uint64_t size_align; /**< Of lengths: a range of another length cannot be exposed */
    uint64_t size_max;   /**< Most bytes that the window shows */
};

/** Memory that can be exposed. */
struct rte_pmd_plx_ntb_memory {
    void *address; /**< Its begin; zeros when new */
    size_t bytes;  /**< Its length: as asked for, rounded up to a power of two of whole segments */
};

/** An exposed range. */
struct rte_pmd_plx_ntb_memory_exposed {
    void *address;        /**< Its begin in this host */
    size_t bytes;         /**< Its length */
    uint64_t offset;      /**< Its begin in the peer's memory window */
    uint32_t rights;      /**< RTE_PMD_PLX_NTB_MEMORY_WRITE, _READ or both */
    uint32_t part;        /**< The part of the window */
    uint64_t reserved[2]; /**< Reserved, 0 */
};

/** Memory of the peer, seen through the memory window. */
struct rte_pmd_plx_ntb_window_view {
    void *address;        /**< For stores of this CPU */
    uint64_t bus;         /**< For DMA engines; 0: not reachable */
    uint64_t reserved[2]; /**< Reserved, 0 */
};

/**
 * Reads what memory can be exposed, and how.
 *
 * @param dev_id
 *   Rawdev id.
 * @param info
 *   Filled in; the caller sets size.
 * @retval 0
 *   Filled in.
 * @retval -ENODEV
 *   There is no such device, or it was closed.
 * @retval -EINVAL
 *   info is NULL, or info->size is invalid.
 */
__rte_experimental
int rte_pmd_plx_ntb_memory_info_get(uint16_t dev_id, struct rte_pmd_plx_ntb_memory_info *info);

/**
 * Reads the alignment that exposed memory needs. Memory of rte_pmd_plx_ntb_memory_alloc() and of
 * the queue pairs has it.
 *
 * @param dev_id
 *   Rawdev id.
 * @param bytes
 *   Bytes to expose, 1 to size_max.
 * @param align
 *   Filled in; the caller sets size.
 * @retval 0
 *   Filled in.
 * @retval -ENODEV
 *   There is no such device, or it was closed.
 * @retval -EINVAL
 *   align is NULL, align->size is invalid, or bytes is 0.
 * @retval -ERANGE
 *   bytes is more than size_max, which is filled in.
 */
__rte_experimental
int rte_pmd_plx_ntb_memory_align_get(uint16_t dev_id, uint64_t bytes,
                                     struct rte_pmd_plx_ntb_memory_align *align);

/**
 * Allocates memory of whole segments. It is private until it is exposed. It belongs to the caller
 * until rte_pmd_plx_ntb_memory_free() or the device is closed. Ranges that are revoked separately
 * under traffic should be allocated separately (doc/windows.md).
 *
 * @param dev_id
 *   Rawdev id.
 * @param bytes
 *   1 to rte_pmd_plx_ntb_memory_info::memory_bytes_max.
 * @param memory
 *   The memory, set on success only.
 * @retval 0
 *   Allocated.
 * @retval -ENODEV
 *   There is no such device, or it was closed.
 * @retval -EINVAL
 *   bytes is out of range, or memory is NULL.
 * @retval -ENOTSUP
 *   Base and offset.
 * @retval -ENOMEM
 *   No memory.
 * @retval -ENOSPC
 *   There are as many allocations as segments.
 */
__rte_experimental
int rte_pmd_plx_ntb_memory_alloc(uint16_t dev_id, size_t bytes,
                                 struct rte_pmd_plx_ntb_memory *memory);

/**
 * Frees memory of rte_pmd_plx_ntb_memory_alloc().
 *
 * @param dev_id
 *   Rawdev id.
 * @param address
 *   Its begin.
 * @retval 0
 *   Freed.
 * @retval -ENODEV
 *   There is no such device, or it was closed.
 * @retval -ENOENT
 *   Not allocated, or freed before.
 * @retval -EBUSY
 *   Some of it is exposed, or not known to be revoked. It is still the caller's.
 */
__rte_experimental
int rte_pmd_plx_ntb_memory_free(uint16_t dev_id, void *address);

/**
 * Exposes a range of allocated memory to the peer, with immediate effect. It belongs to the
 * connection: the loss of the peer (RTE_PMD_PLX_NTB_EVENT_LOST) or a stop of the device revokes it.
 * It can be exposed again, at another offset, after RTE_PMD_PLX_NTB_EVENT_CONNECTED.
 *
 * @param dev_id
 *   Rawdev id.
 * @param address
 *   Begin of the range in one allocation, a multiple of segment_bytes from the begin of that.
 * @param bytes
 *   Its length, a multiple of segment_bytes.
 * @param rights
 *   RTE_PMD_PLX_NTB_MEMORY_WRITE, _READ or both; 0: WRITE.
 * @param part
 *   Part of the window; RTE_PMD_PLX_NTB_MEMORY_ANY.
 * @param offset
 *   Its begin in the peer's memory window, for rte_pmd_plx_ntb_window_view_get() there.
 * @retval 0
 *   Exposed.
 * @retval -ENODEV
 *   There is no such device, or it was closed.
 * @retval -EINVAL
 *   The range, its alignment, a right or the part is invalid, or offset is NULL.
 * @retval -EBUSY
 *   Some of it is exposed.
 * @retval -ENOTCONN
 *   There is no peer.
 * @retval -ENOSPC
 *   Not so many free segments in a row.
 * @retval -ENOTSUP
 *   Base and offset.
 * @retval -EIO
 *   The chip does not answer. Revoke the range, or wait until rte_pmd_plx_ntb_memory_find() returns
 *   -ENOENT.
 */
__rte_experimental
int rte_pmd_plx_ntb_memory_expose(uint16_t dev_id, void *address, size_t bytes, uint32_t rights,
                                  uint32_t part, uint64_t *offset);

/**
 * Revokes the peer's access to an exposed range. After 0 or -ENOENT the memory can be reused: what
 * the peer wrote before has arrived, and what it writes later does not arrive.
 *
 * @param dev_id
 *   Rawdev id.
 * @param address
 *   Begin of the range, as exposed.
 * @param bytes
 *   Its length, as exposed.
 * @retval 0
 *   Revoked.
 * @retval -ENODEV
 *   There is no such device, or it was closed.
 * @retval -ENOENT
 *   Not exposed (any more: the peer was lost, or the device stopped).
 * @retval -EIO
 *   The chip does not answer: the range is still exposed, call again.
 */
__rte_experimental
int rte_pmd_plx_ntb_memory_revoke(uint16_t dev_id, void *address, size_t bytes);

/**
 * Finds the exposed range of an address.
 *
 * @param dev_id
 *   Rawdev id.
 * @param address
 *   Any address in it.
 * @param range
 *   The range, set on success only.
 * @retval 0
 *   Found.
 * @retval -ENODEV
 *   There is no such device, or it was closed.
 * @retval -EINVAL
 *   range is NULL.
 * @retval -ENOENT
 *   Not exposed. After a loss of the peer this is returned when the range is known to be revoked,
 *   not before.
 */
__rte_experimental
int rte_pmd_plx_ntb_memory_find(uint16_t dev_id, const void *address,
                                struct rte_pmd_plx_ntb_memory_exposed *range);

/**
 * Returns where memory that the peer exposes is seen in the memory window. Whether it is still
 * exposed is known to the peer only: stores without a right are lost, loads return all-ones. The
 * addresses stay mapped until the device is closed. They belong to the connection: after
 * RTE_PMD_PLX_NTB_EVENT_LOST the window may lie elsewhere, and stores to them are lost.
 *
 * @param dev_id
 *   Rawdev id.
 * @param offset
 *   As the peer got it from rte_pmd_plx_ntb_memory_expose(); behind the block of its queue pairs.
 * @param bytes
 *   1 or more, inside the window.
 * @param view
 *   The addresses, set on success only.
 * @retval 0
 *   Set.
 * @retval -ENODEV
 *   There is no such device, or it was closed.
 * @retval -ENOTCONN
 *   There is no peer.
 * @retval -EINVAL
 *   The range is outside, or view is NULL.
 */
__rte_experimental
int rte_pmd_plx_ntb_window_view_get(uint16_t dev_id, uint64_t offset, size_t bytes,
                                    struct rte_pmd_plx_ntb_window_view *view);

/**
 * Stores bytes into memory of the peer, in the fastest way that is correct for the mapping of the
 * window. The peer sees what earlier calls of a thread stored before what the thread does later,
 * including bursts. The bytes of one call become visible in any order, but 8 aligned ones at once.
 *
 * @param to
 *   In a struct rte_pmd_plx_ntb_window_view.
 * @param from
 *   Private memory.
 * @param bytes
 *   0 or more.
 */
typedef void (*rte_pmd_plx_ntb_window_store_fn)(void *to, const void *from, size_t bytes);

/**
 * Gets the function that stores through the memory window of a device. Valid until the device is
 * removed.
 *
 * @param dev_id
 *   Rawdev id.
 * @param store
 *   The function, set on success only.
 * @retval 0
 *   Set.
 * @retval -ENODEV
 *   There is no such device, or it was closed.
 * @retval -EINVAL
 *   store is NULL.
 */
__rte_experimental
int rte_pmd_plx_ntb_window_store_get(uint16_t dev_id, rte_pmd_plx_ntb_window_store_fn *store);

/**
 * Stores of so many bytes and more are worth a struct rte_pmd_plx_ntb_window_writer.
 */
#define RTE_PMD_PLX_NTB_WINDOW_LONG 4096

/**
 * What one thread knows of its long stores through the memory window of a device: whether they are
 * cheaper through its CPU's caches or past them, which depends on where the peer's CPU is. It tries
 * both under the real traffic (doc/decisions/036-stores-of-writes.md), unless the devarg "stores"
 * or the mapping of the window leaves no choice.
 */
struct rte_pmd_plx_ntb_window_writer;

/**
 * Makes a writer. It begins with what others of the device have learned.
 *
 * @param dev_id
 *   Rawdev id.
 * @param writer
 *   Set on success only. The caller frees it, before the device is removed.
 * @retval 0
 *   Made.
 * @retval -ENODEV
 *   There is no such device, or it was closed.
 * @retval -EINVAL
 *   writer is NULL.
 * @retval -ENOMEM
 *   There is no memory.
 */
__rte_experimental
int rte_pmd_plx_ntb_window_writer_create(uint16_t dev_id,
                                         struct rte_pmd_plx_ntb_window_writer **writer);

/**
 * Frees a writer.
 *
 * @param writer
 *   Of rte_pmd_plx_ntb_window_writer_create(), or NULL.
 */
__rte_experimental
void rte_pmd_plx_ntb_window_writer_free(struct rte_pmd_plx_ntb_window_writer *writer);

/**
 * Stores as rte_pmd_plx_ntb_window_store_fn does, in the way that is cheaper here and now. Right
 * for any length, made for RTE_PMD_PLX_NTB_WINDOW_LONG bytes and more.
 *
 * @param writer
 *   One thread at a time.
 * @param to
 *   In a struct rte_pmd_plx_ntb_window_view.
 * @param from
 *   Private memory.
 * @param bytes
 *   0 or more.
 */
__rte_experimental
void rte_pmd_plx_ntb_window_writer_store(struct rte_pmd_plx_ntb_window_writer *writer, void *to,
                                         const void *from, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif

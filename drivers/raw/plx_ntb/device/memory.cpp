// SPDX-License-Identifier: BSD-3-Clause
// The memory of a device: the block that is exposed to the peer, the pool of its receive buffers,
// and private pools for inline messages.
#include "device/device.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>

#include <rte_errno.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

#include "sync/log.hpp"

namespace plx::pmd
{

namespace
{

constexpr unsigned pool_cache_max = 256;
constexpr uint16_t inline_room = RTE_PKTMBUF_HEADROOM + wire::inline_bytes_max;
/// Inline messages that an application may hold before bursts find the pool empty: a full ring, of
/// a large one a part, and these in addition. Others wait in the ring.
constexpr unsigned inline_spare = 3072;
constexpr unsigned inline_ring_most = 4096;

/// An lcore's cache must not hold nearly all of a small pool: rte_mempool refuses that, and other
/// lcores would find the pool empty.
unsigned pool_cache(unsigned mbufs)
{
    return std::min(pool_cache_max, mbufs / 4);
}

/// Makes the names of pools unique: pools of a removed card that the peer may still reach are kept
/// for ever, and the next device may get the same id.
unsigned next_pool()
{
    static std::atomic<unsigned> pools{0};
    return pools.fetch_add(1, std::memory_order_relaxed);
}

bool is_home(rte_mempool *pool)
{
    return pool == nullptr || rte_mempool_full(pool) == 1;
}

/// The bus address of @p bytes at @p offset of @p memory. @return RTE_BAD_IOVA: not contiguous
uint64_t bus_address(const WindowMemory &memory, uint64_t offset, uint64_t bytes)
{
    for (unsigned i = 0; i < memory.piece_count; ++i) {
        const hw::Piece &piece = memory.pieces[i];
        if (offset < piece.bytes)
            return bytes <= piece.bytes - offset ? piece.address + offset : RTE_BAD_IOVA;
        offset -= piece.bytes;
    }
    return RTE_BAD_IOVA;
}

/// Populates a pool from memory in several pieces: each buffer gets its own bus address, and one
/// that crosses two pieces gets none.
void place_mbuf(rte_mempool *, void *opaque, void *object, unsigned)
{
    const auto &memory = *static_cast<const WindowMemory *>(opaque);
    auto *mbuf = static_cast<rte_mbuf *>(object);
    const auto offset =
        static_cast<uint64_t>(static_cast<std::byte *>(mbuf->buf_addr) - memory.base);
    rte_mbuf_iova_set(mbuf, bus_address(memory, offset, mbuf->buf_len));
}

/// Whether a block that was laid out for @p a serves @p b.
bool same_layout(const Geometry &a, const Geometry &b)
{
    return a.queues == b.queues && a.ring_lines == b.ring_lines &&
           a.buffer_ring_lines == b.buffer_ring_lines && a.buffers == b.buffers &&
           a.buf_bytes == b.buf_bytes;
}

} // namespace

int Device::make_block()
{
    if (block_.base != nullptr && same_layout(block_geometry_, geometry_))
        return 0;
    if (!is_home(window_pool_)) {
        PLX_INIT_LOG(ERR, "%s: mbufs of the last start are still held: free them first\n", name_);
        return -EBUSY;
    }
    drop_block();
    plan_ = plan_block(geometry_);
    // A BAR of given size exposes at least one segment, or all of itself.
    const hw::WindowRules rules = chip_.window_rules(hw::Chip::data_window);
    plan_.block_bytes =
        std::max({plan_.block_bytes, exposed_.block_min(), rules.segment(plan_.block_bytes)});
    int rc = platform_.ops->memory_alloc(platform_.ctx, plan_.block_bytes, node_, rules, &block_);
    if (rc != 0) {
        PLX_INIT_LOG(ERR, "%s: no memory of %" PRIu64 " MiB for the block on node %d: %s\n", name_,
                     plan_.block_bytes >> 20, node_, rte_strerror(-rc));
        return rc;
    }
    if (block_.bytes < plan_.block_bytes)
        rc = fit_block();
    if (rc != 0) {
        drop_block();
        return rc;
    }
    block_geometry_ = geometry_;
    return make_window_pool();
}

/// Fits the geometry to a block that is smaller than planned: rings that leave half of it, unless
/// their size was given, and fewer buffers.
int Device::fit_block()
{
    Geometry smaller = geometry_;
    if (smaller.ring_by != SizedBy::given) {
        Machine found = machine();
        found.memory_bytes = block_.bytes;
        const Footprint chosen =
            choose_footprint(found, smaller.queues, plan_.element_bytes, smaller.buffers);
        smaller.ring_lines = chosen.ring_lines;
        smaller.ring_by = chosen.ring_by;
    }
    const uint64_t begin =
        wire::queue_area_end(smaller.queues, smaller.ring_lines, smaller.buffer_ring_lines);
    smaller.buffers = block_.bytes <= begin
                          ? 0
                          : static_cast<uint32_t>((block_.bytes - begin) / plan_.element_bytes);
    PLX_INIT_LOG(
        WARNING,
        "%s: the largest aligned block of memory that the peer's window can show is %zu MiB: %u "
        "buffers instead of %u; 1 GB hugepages or an IOMMU (vfio-pci) give more\n",
        name_, block_.bytes >> 20, smaller.buffers, geometry_.buffers);
    smaller.buffers_by = SizedBy::memory;
    // Half of them remain for the application to hold, as by default.
    const uint32_t in_ring =
        smaller.buffers / (2 * smaller.queues) / wire::buffers_per_line * wire::buffers_per_line;
    smaller.queue_buffers =
        std::min(smaller.queue_buffers, std::max(in_ring, wire::buffers_per_line));
    if (check_geometry(name_, smaller) != 0)
        return -ENOMEM;
    geometry_ = smaller;
    plan_ = plan_block(geometry_);
    return 0;
}

int Device::make_window_pool()
{
    rte_pktmbuf_extmem memory{};
    memory.buf_ptr = block_.base + size_t{plan_.buf_begin} * wire::line_bytes;
    memory.buf_iova =
        block_.bus + size_t{plan_.buf_begin} * wire::line_bytes; // for this host's engines
    memory.buf_len = size_t{plan_.element_bytes} * geometry_.buffers;
    memory.elt_size = static_cast<uint16_t>(plan_.element_bytes);
    char pool_name[RTE_MEMPOOL_NAMESIZE];
    std::snprintf(pool_name, sizeof(pool_name), "plx_window_%u_%u", id(), next_pool());
    window_pool_ =
        rte_pktmbuf_pool_create_extbuf(pool_name, geometry_.buffers, pool_cache(geometry_.buffers),
                                       0, memory.elt_size, node_, &memory, 1);
    if (window_pool_ != nullptr) {
        if (block_.piece_count > 1)
            rte_mempool_obj_iter(window_pool_, place_mbuf, &block_);
        return 0;
    }
    PLX_INIT_LOG(ERR, "%s: no memory for %u mbufs of receive buffers: %s\n", name_,
                 geometry_.buffers, rte_strerror(rte_errno));
    drop_block();
    return -ENOMEM;
}

int Device::make_inline_pools()
{
    for (unsigned q = 0; q < queues_ready_; ++q) {
        QueuePair &qp = queues_[q];
        if (qp.given_pool != nullptr && rte_pktmbuf_data_room_size(qp.given_pool) < inline_room) {
            PLX_INIT_LOG(ERR,
                         "%s: the pool of queue %u has a data room of %u: expected at least %u\n",
                         name_, q, rte_pktmbuf_data_room_size(qp.given_pool), inline_room);
            return -EINVAL;
        }
        const unsigned count = std::min(geometry_.ring_lines, inline_ring_most) + inline_spare;
        if (qp.own_pool != nullptr && qp.own_pool->size != count && is_home(qp.own_pool)) {
            rte_mempool_free(qp.own_pool);
            qp.own_pool = nullptr;
        }
        if (qp.inline_pool() != nullptr)
            continue;
        char pool_name[RTE_MEMPOOL_NAMESIZE];
        std::snprintf(pool_name, sizeof(pool_name), "plx_inline_%u_%u_%u", id(), q, next_pool());
        qp.own_pool =
            rte_pktmbuf_pool_create(pool_name, count, pool_cache(count), 0, inline_room, node_);
        if (qp.own_pool == nullptr) {
            PLX_INIT_LOG(ERR, "%s: no memory for %u mbufs of queue %u: %s\n", name_, count, q,
                         rte_strerror(rte_errno));
            return -ENOMEM;
        }
    }
    return 0;
}

/// For rx=stable: the queues' reserves, and as many mbufs as there are receive buffers for the
/// application to hold. Without lcore caches: mbufs in the cache of one lcore would be missing for
/// another.
int Device::make_stable_pool()
{
    if (options_.rx != RxMode::stable)
        return 0;
    for (unsigned q = 0; q < queues_ready_; ++q)
        if (const int rc = queues_[q].stable->make_room(geometry_.queue_buffers, node_); rc != 0) {
            PLX_INIT_LOG(ERR, "%s: rx=stable: no memory for queue %u\n", name_, q);
            return rc;
        }
    const auto room = static_cast<uint16_t>(RTE_PKTMBUF_HEADROOM + geometry_.buf_bytes);
    const unsigned count = geometry_.buffers + geometry_.queues * geometry_.queue_buffers;
    if (stable_pool_ != nullptr && stable_pool_->size == count &&
        rte_pktmbuf_data_room_size(stable_pool_) == room)
        return 0;
    if (!is_home(stable_pool_)) {
        PLX_INIT_LOG(ERR, "%s: mbufs of the last start are still held: free them first\n", name_);
        return -EBUSY;
    }
    rte_mempool_free(stable_pool_);
    char pool_name[RTE_MEMPOOL_NAMESIZE];
    std::snprintf(pool_name, sizeof(pool_name), "plx_stable_%u_%u", id(), next_pool());
    stable_pool_ = rte_pktmbuf_pool_create(pool_name, count, 0, 0, room, node_);
    if (stable_pool_ != nullptr)
        return 0;
    PLX_INIT_LOG(ERR, "%s: rx=stable: no memory for %u mbufs: %s\n", name_, count,
                 rte_strerror(rte_errno));
    return -ENOMEM;
}

bool Device::pools_home() const
{
    const auto all_but = [](const rte_mempool *pool, uint32_t out) {
        return pool == nullptr || rte_mempool_avail_count(pool) + out == pool->size;
    };
    uint32_t held = 0; // of queues that an incomplete stop has left open
    uint32_t reserved = 0;
    bool home = true;
    for (const QueuePair &qp : queues_) {
        if (qp.rx.state != nullptr) {
            held += queue::rx_buffers(qp.rx.state);
            home = home && all_but(qp.own_pool, queue::rx_spares(qp.rx.state));
        }
        reserved += qp.stable != nullptr ? qp.stable->reserved() : 0;
    }
    return home && all_but(window_pool_, held) && all_but(stable_pool_, reserved);
}

void Device::drop_window_pool()
{
    rte_mempool_free(window_pool_);
    window_pool_ = nullptr;
}

void Device::drop_block()
{
    drop_window_pool();
    if (block_.base != nullptr)
        platform_.ops->memory_free(platform_.ctx, block_);
    block_ = {};
}

void Device::drop_private_pools()
{
    rte_mempool_free(stable_pool_);
    stable_pool_ = nullptr;
    for (QueuePair &qp : queues_) {
        rte_mempool_free(qp.own_pool);
        qp.own_pool = nullptr;
    }
}

} // namespace plx::pmd

// SPDX-License-Identifier: BSD-3-Clause
#include "device/stable_rx.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <new>

#include <rte_branch_prediction.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

namespace plx::pmd
{

StableRx *StableRx::create(queue::RxBurst inner, int socket)
{
    void *memory = rte_zmalloc_socket("plx_rx", sizeof(StableRx) + queue::rx_bytes(),
                                      alignof(StableRx), socket);
    if (memory == nullptr)
        return nullptr;
    auto *made = new (memory) StableRx;
    made->inner_ = inner;
    return made;
}

void StableRx::destroy(StableRx *stable)
{
    if (stable != nullptr)
        rte_free(stable->reserve_);
    rte_free(stable);
}

int StableRx::make_room(uint32_t queue_buffers, int socket)
{
    if (queue_buffers == queue_buffers_)
        return 0;
    rte_free(reserve_);
    queue_buffers_ = 0;
    reserve_ = static_cast<rte_mbuf **>(rte_malloc_socket(
        "plx_rx_reserve", queue_buffers * sizeof(rte_mbuf *), RTE_CACHE_LINE_SIZE, socket));
    if (reserve_ == nullptr)
        return -ENOMEM;
    queue_buffers_ = queue_buffers;
    return 0;
}

void StableRx::open(rte_mempool *pool, const rte_mempool *window_pool, uint32_t buf_bytes,
                    uint32_t max_message)
{
    pool_ = pool;
    window_pool_ = window_pool;
    buffers_max_ = std::min((max_message + buf_bytes - 1) / buf_bytes, queue_buffers_);
}

void StableRx::close()
{
    if (reserved_ > 0)
        rte_mempool_put_bulk(pool_, reinterpret_cast<void **>(reserve_), reserved_);
    reserved_ = 0;
}

int StableRx::burst(queue::Rx *q, rte_mbuf **mbufs, queue::Meta *meta, unsigned n)
{
    StableRx *self = reinterpret_cast<StableRx *>(q) - 1;
    const unsigned affordable = self->afford(n);
    if (unlikely(affordable < n)) {
        self->nombuf_.fetch_add(1, std::memory_order_relaxed);
        if (affordable == 0)
            return 0;
    }
    const int got = self->inner_(q, mbufs, meta, affordable);
    for (int i = 0; i < got; ++i)
        if (mbufs[i]->pool == self->window_pool_)
            mbufs[i] = self->copy(mbufs[i]);
    return got;
}

/// How many of @p n messages can be copied, however many buffers each uses: together they use no
/// more than are available to the peer.
unsigned StableRx::afford(unsigned n)
{
    const uint32_t available = queue::rx_buffers(state());
    const uint32_t needed = std::min(n * buffers_max_, available);
    if (reserved_ < needed)
        fill_reserve(needed);
    if (likely(reserved_ >= needed))
        return n;
    return reserved_ >= std::min(buffers_max_, available) ? 1 : 0;
}

void StableRx::fill_reserve(uint32_t to)
{
    void **at = reinterpret_cast<void **>(reserve_ + reserved_);
    if (rte_mempool_get_bulk(pool_, at, to - reserved_) == 0) {
        reserved_ = to;
        return;
    }
    while (reserved_ < to &&
           rte_mempool_get(pool_, reinterpret_cast<void **>(reserve_ + reserved_)) == 0)
        ++reserved_;
}

rte_mbuf *StableRx::copy(rte_mbuf *from)
{
    rte_mbuf *first = nullptr;
    rte_mbuf **link = &first;
    for (const rte_mbuf *segment = from; segment != nullptr; segment = segment->next) {
        rte_mbuf *m = reserve_[--reserved_];
        rte_pktmbuf_reset(m);
        std::memcpy(rte_pktmbuf_mtod(m, std::byte *), rte_pktmbuf_mtod(segment, const std::byte *),
                    segment->data_len);
        m->data_len = segment->data_len;
        *link = m;
        link = &m->next;
    }
    first->pkt_len = from->pkt_len;
    first->nb_segs = from->nb_segs;
    first->port = from->port;
    rte_pktmbuf_free(from);
    return first;
}

} // namespace plx::pmd

// SPDX-License-Identifier: BSD-3-Clause
// rx=stable: long messages are copied into private memory before they are delivered, so that later
// stores of the peer do not change them. A burst function around the queue's own, chosen when a
// queue is set up.
#ifndef PLX_NTB_DEVICE_STABLE_RX_HPP
#define PLX_NTB_DEVICE_STABLE_RX_HPP

#include <atomic>
#include <cstdint>

#include "queue/queue.hpp"

struct rte_mbuf;
struct rte_mempool;

namespace plx::pmd
{

/// A receiving half that copies. Lies in front of the queue's own state, which bursts get. Opened
/// and closed by the control side while the lcore is known to be outside its burst.
class alignas(64) StableRx
{
public:
    /// @return NULL: no memory on @p socket
    static StableRx *create(queue::RxBurst inner, int socket);
    static void destroy(StableRx *stable); ///< also NULL

    queue::Rx *state() { return reinterpret_cast<queue::Rx *>(this + 1); }

    /// Before a start. @param queue_buffers most buffers available to the peer at a time
    /// @return 0 or -ENOMEM
    int make_room(uint32_t queue_buffers, int socket);
    /// @param pool private mbufs with room for a buffer of @p window_pool, @p buf_bytes
    /// @param max_message bytes
    void open(rte_mempool *pool, const rte_mempool *window_pool, uint32_t buf_bytes,
              uint32_t max_message);
    void close();
    uint32_t reserved() const { return reserved_; }
    /// Bursts cut short because the pool was empty. Any thread.
    uint64_t nombuf() const { return nombuf_.load(std::memory_order_relaxed); }
    void reset_nombuf() { nombuf_.store(0, std::memory_order_relaxed); }

    /// A queue::RxBurst. The queue delivers no more than there is memory to copy: what is left
    /// stays in the ring.
    static int burst(queue::Rx *q, rte_mbuf **mbufs, queue::Meta *meta, unsigned n);

private:
    unsigned afford(unsigned n);
    void fill_reserve(uint32_t to);
    rte_mbuf *copy(rte_mbuf *from);

    queue::RxBurst inner_ = nullptr;
    const rte_mempool *window_pool_ = nullptr;
    rte_mempool *pool_ = nullptr;
    /// Allocated in advance, so that a copy never finds the pool empty.
    rte_mbuf **reserve_ = nullptr;
    uint32_t reserved_ = 0;
    uint32_t queue_buffers_ = 0;
    uint32_t buffers_max_ = 0; ///< of one message
    std::atomic<uint64_t> nombuf_{0};
};
static_assert(sizeof(StableRx) % 64 == 0, "the queue's state behind it is aligned to a line");

} // namespace plx::pmd

#endif

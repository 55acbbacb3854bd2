// SPDX-License-Identifier: BSD-3-Clause
// One queue pair of the port and the queue of the interface behind it. Used by one thread.
#ifndef APP_NET_LANE_HPP
#define APP_NET_LANE_HPP

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include <rte_mbuf.h>
#include <sys/uio.h>

#include "frame.hpp"
#include "interface.hpp"
#include "state.hpp"

namespace net
{

/// Advanced by one thread, read by any.
class Count
{
public:
    void add(uint64_t n)
    {
        value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
    }
    uint64_t read() const { return value_.load(std::memory_order_relaxed); }

private:
    std::atomic<uint64_t> value_ = 0;
};

struct alignas(RTE_CACHE_LINE_SIZE) LaneCounts {
    Count to_peer, to_kernel;   ///< frames
    Count no_link, not_a_frame; ///< dropped
    Count refused;              ///< dropped: by the kernel
};

class Lane
{
public:
    /// @param pool  for what is read from the kernel
    Lane(State &state, const Interface &interface, uint16_t port, uint16_t queue,
         rte_mempool *pool);
    ~Lane();
    Lane(const Lane &) = delete;
    Lane &operator=(const Lane &) = delete;

    bool to_peer();   ///< @return whether there was anything to do
    bool to_kernel(); ///< as well

    uint16_t queue() const { return queue_; }
    /// Frames wait for room at the peer.
    bool blocked() const { return first_ != last_; }
    /// The interface's queue if the kernel uses it, else that of queue 0.
    int kernel() const;
    bool used_by_kernel() const { return queue_ < state_.active.load(std::memory_order_acquire); }
    const LaneCounts &counts() const { return counts_; }

private:
    static constexpr unsigned burst = 32;
    static constexpr uint32_t batch_bytes =
        128 * 1024; ///< read before they are sent: the caches' size counts
    static constexpr unsigned segments_max = 256;

    enum class Read { frame, nothing, dropped };
    Read read_frame(rte_mbuf **frame);
    bool fill_spares();
    void push();
    void say_hello();
    void hear(const rte_mbuf *frame);
    void write_frame(const rte_mbuf *frame);

    State &state_;
    const Interface &interface_;
    const uint16_t port_, queue_;
    rte_mempool *const pool_;
    const uint32_t room_;                     ///< bytes of an mbuf of the pool
    std::vector<rte_mbuf *> spares_;          ///< the next frame is read into these
    std::array<rte_mbuf *, burst> waiting_{}; ///< [first_, last_) are to be sent
    unsigned first_ = 0, last_ = 0;
    LaneCounts counts_;
};

} // namespace net

#endif

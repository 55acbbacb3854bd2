// SPDX-License-Identifier: BSD-3-Clause
// One direction of a queue pair in one process: the receiver's block with ring and buffers, the
// sender's block with credits and the receive-buffer ring, and a pool for each purpose.
#ifndef TEST_QUEUE_PAIR_HPP
#define TEST_QUEUE_PAIR_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <rte_mbuf.h>

#include "late_engine.hpp"
#include "queue/queue.hpp"
#include "queue/state.hpp"

namespace test_queue
{

struct PairOptions {
    uint32_t ring_lines = 256;
    uint32_t buffer_ring_lines = 8;
    uint32_t buffers = 128;
    uint32_t buf_bytes = 512;
    uint32_t buffers_target = 56;
    uint32_t inline_max = 1024;
    uint32_t max_message = 20000;
    uint32_t inline_mbufs = 511;
    uint32_t sent_mbufs = 511;
    uint64_t start = 0; ///< lines already gone by on both sides
    uint64_t seed = 7;
    plx::queue::CacheHint hint = plx::queue::CacheHint::none;
    uint64_t (*cycles)() = nullptr; ///< clock of cache-hint trials
    plx::queue::Learned *learned = nullptr;
    plx::queue::Stores stores = plx::queue::Stores::plain;
    uint64_t (*stores_cycles)() = nullptr;
    uint32_t inline_most = 0;
    uint64_t (*inline_cycles)() = nullptr;
    LateEngine *engine = nullptr; ///< outlives the pair; copies from engine_min bytes on
    uint32_t engine_min = 1;
};

/// The clock of a queue whose lines cost what the test says.
struct FakeClock {
    static inline uint64_t now = 0, looks = 0;
    static uint64_t read()
    {
        looks++;
        return now;
    }
};

/// Memory with guard bytes around it: the guards must be as they were at the end.
class Guarded
{
    static constexpr size_t guard = 4096;
    std::byte *memory_;
    size_t size_;

public:
    explicit Guarded(size_t size);
    ~Guarded();
    Guarded(const Guarded &) = delete;
    Guarded &operator=(const Guarded &) = delete;
    std::byte *data() { return memory_ + guard; }
    bool intact() const;
};

class Pair
{
public:
    explicit Pair(const plx::queue::Ops &ops, const PairOptions &options = {});
    ~Pair();
    Pair(const Pair &) = delete;
    Pair &operator=(const Pair &) = delete;

    int send(std::vector<rte_mbuf *> &mbufs, const plx::queue::Meta *meta = nullptr);
    std::vector<rte_mbuf *> receive(unsigned n, plx::queue::Meta *meta = nullptr);
    /// With an engine, it is not moved by this.
    int tx(rte_mbuf **mbufs, const plx::queue::Meta *meta, unsigned n);
    int rx(rte_mbuf **mbufs, plx::queue::Meta *meta, unsigned n);
    /// Receive buffers of the peer set aside; empty: none, or an error, which is in *rc.
    std::vector<plx::queue::Room> reserve(unsigned n, int *rc = nullptr);
    int commit(const std::vector<uint32_t> &lengths, const plx::queue::Meta *meta = nullptr);
    /// Stores message(n, id) into buffers set aside, @p first being the first.
    static void build(const plx::queue::Room *first, uint32_t n, uint32_t id);
    /// A message of @p n bytes that says which one it is, in @p segments pieces.
    rte_mbuf *message(uint32_t n, uint32_t id, unsigned segments = 1);
    /// True when @p m is what message(n, id) made.
    static bool matches(const rte_mbuf *m, uint32_t n, uint32_t id);
    /// Closes both halves and opens them with new bases, as after a re-link.
    void reopen(uint64_t seed);
    void close();
    /// Lets the engine do all that was started, and the sender free what it has read.
    void finish_copies();
    /// All mbufs are back in their pools.
    bool nothing_leaked() const;
    bool guards_intact() const { return receiver_.intact() && sender_.intact(); }

    PairOptions options;
    plx::queue::TxSetup tx_setup{};
    plx::queue::RxSetup rx_setup{};
    plx::queue::Tx *tx_half;
    plx::queue::Rx *rx_half;
    rte_mempool *sent_pool, *inline_pool, *window_pool;

private:
    void make_pools();
    void open();

    plx::queue::Ops ops_;
    std::unique_ptr<plx::queue::Tx> tx_state_;
    std::unique_ptr<plx::queue::Rx> rx_state_;
    Guarded receiver_;
    Guarded sender_;
    std::byte *buffers_;
    alignas(64) std::byte staging_[plx::queue::staging_bytes];
    std::string name_;
};

std::byte pattern(uint32_t id, uint32_t at);

} // namespace test_queue

#endif

// SPDX-License-Identifier: BSD-3-Clause
#include "pair.hpp"

#include <cstdlib>
#include <cstring>

#include <gtest/gtest.h>

namespace test_queue
{

using namespace plx;
using namespace plx::queue;

namespace
{
constexpr uint32_t element(const PairOptions &o)
{
    return RTE_PKTMBUF_HEADROOM + o.buf_bytes;
}
size_t receiver_bytes(const PairOptions &o)
{
    return wire::queue_area_end(1, o.ring_lines, o.buffer_ring_lines) +
           (size_t{o.buffers} + 1) * element(o);
}
size_t sender_bytes(const PairOptions &o)
{
    return wire::queue_area_end(1, o.ring_lines, o.buffer_ring_lines);
}
constexpr std::byte guard_byte{0xa5};
} // namespace

std::byte pattern(uint32_t id, uint32_t at)
{
    return static_cast<std::byte>((id * 2654435761u + at * 40503u) >> 13);
}

Guarded::Guarded(size_t size) : size_(size)
{
    memory_ =
        static_cast<std::byte *>(std::aligned_alloc(4096, (size + 2 * guard + 4095) / 4096 * 4096));
    std::memset(memory_, static_cast<int>(guard_byte), size + 2 * guard);
    std::memset(data(), 0, size);
}

Guarded::~Guarded()
{
    std::free(memory_);
}

bool Guarded::intact() const
{
    for (size_t i = 0; i < guard; i++)
        if (memory_[i] != guard_byte || memory_[guard + size_ + i] != guard_byte)
            return false;
    return true;
}

Pair::Pair(const Ops &ops, const PairOptions &o)
    : options(o), ops_(ops), tx_state_(std::make_unique<Tx>()), rx_state_(std::make_unique<Rx>()),
      receiver_(receiver_bytes(o)), sender_(sender_bytes(o))
{
    static unsigned number;
    name_ = std::to_string(number++);
    tx_half = tx_state_.get();
    rx_half = rx_state_.get();
    buffers_ = receiver_.data() + wire::queue_area_end(1, o.ring_lines, o.buffer_ring_lines);
    make_pools();
    open();
}

Pair::~Pair()
{
    close();
    rte_mempool_free(sent_pool);
    rte_mempool_free(inline_pool);
    rte_mempool_free(window_pool);
}

void Pair::make_pools()
{
    sent_pool = rte_pktmbuf_pool_create(("s" + name_).c_str(), options.sent_mbufs, 32, 0,
                                        RTE_PKTMBUF_HEADROOM + 2048, SOCKET_ID_ANY);
    inline_pool = rte_pktmbuf_pool_create(("i" + name_).c_str(), options.inline_mbufs, 0, 0,
                                          RTE_PKTMBUF_HEADROOM + 1024, SOCKET_ID_ANY);
    const rte_pktmbuf_extmem memory{buffers_, reinterpret_cast<rte_iova_t>(buffers_),
                                    size_t{options.buffers} * element(options),
                                    static_cast<uint16_t>(element(options))};
    window_pool = rte_pktmbuf_pool_create_extbuf(("w" + name_).c_str(), options.buffers, 0, 0,
                                                 static_cast<uint16_t>(element(options)),
                                                 SOCKET_ID_ANY, &memory, 1);
    if (sent_pool == nullptr || inline_pool == nullptr || window_pool == nullptr)
        std::abort();
}

void Pair::open()
{
    const PairOptions &o = options;
    const uint32_t ring_base = wire::ring_base(o.seed, 0), back_base = wire::back_base(o.seed, 0);
    const auto at = [&](std::byte *block, size_t offset) { return block + offset; };
    std::byte *ring = at(receiver_.data(), wire::ring_offset(0, o.ring_lines, o.buffer_ring_lines));
    std::byte *credit =
        at(sender_.data(), wire::credit_offset(0, o.ring_lines, o.buffer_ring_lines));
    std::byte *buffer_ring =
        at(sender_.data(), wire::buffer_ring_offset(0, o.ring_lines, o.buffer_ring_lines));
    // A ring that has run for `start` lines: each line carries the tag of its last lap.
    prepare_ring(ring, o.ring_lines, ring_base + static_cast<uint32_t>(o.start / o.ring_lines));
    prepare_back(credit, buffer_ring, o.buffer_ring_lines, back_base);
    const auto begin = static_cast<uint32_t>((buffers_ - receiver_.data()) / 64);
    tx_setup = {ring,        o.ring_lines,
                ring_base,   credit,
                buffer_ring, o.buffer_ring_lines,
                back_base,   receiver_.data(),
                begin,       begin + o.buffers * element(o) / 64,
                o.buf_bytes, o.max_message,
                o.inline_max};
    rx_setup = {ring,          o.ring_lines,
                ring_base,     credit,
                buffer_ring,   o.buffer_ring_lines,
                back_base,     receiver_.data(),
                inline_pool,   window_pool,
                o.buf_bytes,   o.buffers_target,
                o.max_message, 3,
                o.hint,        o.cycles,
                o.learned};
    if (o.engine != nullptr)
        tx_setup.by_engine = {o.engine->border(), reinterpret_cast<uintptr_t>(receiver_.data()),
                              staging_,           reinterpret_cast<uintptr_t>(staging_),
                              o.engine_min,       window_pool};
    tx_setup.stores = o.stores;
    tx_setup.cycles = o.stores_cycles;
    tx_setup.learned = o.learned;
    tx_setup.inline_most = o.inline_most;
    tx_setup.inline_cycles = o.inline_cycles;
    ASSERT_EQ(tx_open(tx_half, tx_setup), 0);
    ASSERT_EQ(rx_open(rx_half, rx_setup), 0);
    tx_half->head = rx_half->tail = o.start;
    tx_half->credited = rx_half->returned = static_cast<uint32_t>(o.start);
    const uint64_t word = uint64_t{back_base} | uint64_t{tx_half->credited} << 32;
    std::memcpy(credit, &word, sizeof(word));
}

void Pair::close()
{
    EXPECT_TRUE(tx_close(tx_half));
    rx_close(rx_half);
}

void Pair::reopen(uint64_t seed)
{
    close();
    options.seed = seed;
    options.start = 0;
    open();
}

int Pair::tx(rte_mbuf **mbufs, const Meta *meta, unsigned n)
{
    const TxBurst burst = options.engine != nullptr ? ops_.tx_burst_engine : ops_.tx_burst;
    return burst(tx_half, mbufs, meta, n);
}

void Pair::finish_copies()
{
    options.engine->finish();
    EXPECT_GE(tx(nullptr, nullptr, 0), 0);
}

int Pair::rx(rte_mbuf **mbufs, Meta *meta, unsigned n)
{
    // As the driver polls.
    return rx_half->open && rx_idle(*rx_watch(rx_half)) ? 0
                                                        : ops_.rx_burst(rx_half, mbufs, meta, n);
}

int Pair::send(std::vector<rte_mbuf *> &mbufs, const Meta *meta)
{
    return tx(mbufs.data(), meta, static_cast<unsigned>(mbufs.size()));
}

std::vector<rte_mbuf *> Pair::receive(unsigned n, Meta *meta)
{
    std::vector<rte_mbuf *> mbufs(n);
    const int got = rx(mbufs.data(), meta, n);
    mbufs.resize(got > 0 ? static_cast<size_t>(got) : 0);
    return mbufs;
}

std::vector<Room> Pair::reserve(unsigned n, int *rc)
{
    std::vector<Room> rooms(n);
    const int got = ops_.tx_reserve(tx_half, rooms.data(), n);
    rooms.resize(got > 0 ? static_cast<size_t>(got) : 0);
    if (rc != nullptr)
        *rc = got;
    return rooms;
}

int Pair::commit(const std::vector<uint32_t> &lengths, const Meta *meta)
{
    return ops_.tx_commit(tx_half, lengths.data(), meta, static_cast<unsigned>(lengths.size()));
}

void Pair::build(const Room *first, uint32_t n, uint32_t id)
{
    for (uint32_t i = 0; i < n; i++)
        static_cast<std::byte *>(first[i / first->bytes].address)[i % first->bytes] =
            pattern(id, i);
}

rte_mbuf *Pair::message(uint32_t n, uint32_t id, unsigned segments)
{
    rte_mbuf *head = nullptr;
    uint32_t done = 0;
    for (unsigned s = 0; s < segments; s++) {
        rte_mbuf *m = rte_pktmbuf_alloc(sent_pool);
        if (m == nullptr)
            std::abort();
        const uint32_t part = s + 1 == segments ? n - done : n / segments;
        auto *data =
            reinterpret_cast<std::byte *>(rte_pktmbuf_append(m, static_cast<uint16_t>(part)));
        for (uint32_t i = 0; i < part; i++)
            data[i] = pattern(id, done + i);
        done += part;
        if (head == nullptr)
            head = m;
        else
            rte_pktmbuf_chain(head, m);
    }
    return head;
}

bool Pair::matches(const rte_mbuf *m, uint32_t n, uint32_t id)
{
    if (m->pkt_len != n)
        return false;
    uint32_t done = 0;
    unsigned segments = 0;
    for (const rte_mbuf *s = m; s != nullptr; s = s->next, segments++) {
        const auto *data = rte_pktmbuf_mtod(s, const std::byte *);
        for (uint32_t i = 0; i < s->data_len; i++)
            if (data[i] != pattern(id, done + i))
                return false;
        done += s->data_len;
    }
    return done == n && segments == m->nb_segs;
}

bool Pair::nothing_leaked() const
{
    return rte_mempool_in_use_count(sent_pool) == 0 && rte_mempool_in_use_count(inline_pool) == 0 &&
           rte_mempool_in_use_count(window_pool) == 0;
}

} // namespace test_queue

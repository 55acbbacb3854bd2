// SPDX-License-Identifier: BSD-3-Clause
// HOT. A plain way to carry mbufs from one core to another, as a Way (mbuf_link.hpp): slots in
// turn, a number that says that one has been written, and nothing else. It is no queue: it trusts
// its peer, knows one length, and counts nothing. Nor is it a bound: it has next to no hints.
#ifndef BENCH_MBUFS_BARE_WAY_HPP
#define BENCH_MBUFS_BARE_WAY_HPP

#include "kernel/kernel.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <rte_mbuf.h>

namespace bench
{

struct alignas(2 * line_bytes) BareSlot {
    uint64_t number; ///< of the message, from 1 on
    std::byte payload[line_bytes];
};

struct BareRing {
    static constexpr uint64_t slot_count = 4096;
    BareSlot slots[slot_count];
    Word read; ///< messages, now and then

    BareSlot &of(uint64_t number) { return slots[number % slot_count]; }
};

/// Two rings, each written by one side.
struct BareRings {
    BareRing by[2];

    /// @param shared  memory of both sides, aligned as a page is
    template <size_t bytes>
    static BareRings &in(std::byte (&shared)[bytes])
    {
        static_assert(sizeof(BareRings) <= bytes);
        return *reinterpret_cast<BareRings *>(shared);
    }
    /// Before both begin, at each side.
    void prepare(unsigned side)
    {
        std::fill_n(by[side].slots, BareRing::slot_count, BareSlot{});
        by[1 - side].read = {};
    }
};

class BareWay
{
public:
    rte_mempool *pool; ///< what is sent comes from here, and what is received

    BareWay(rte_mempool *from, BareRings &rings, unsigned side)
        : pool(from), m_out(rings.by[side]), m_in(rings.by[1 - side])
    {
    }

    int send(rte_mbuf **mbufs, uint16_t n)
    {
        if (m_sent + n > m_read + BareRing::slot_count)
            m_read = __atomic_load_n(&m_out.read.value, __ATOMIC_ACQUIRE);
        const auto taken =
            static_cast<uint16_t>(std::min<uint64_t>(n, m_read + BareRing::slot_count - m_sent));
        for (unsigned i = 0; i < taken; i++) {
            BareSlot &slot = m_out.of(++m_sent);
            std::memcpy(slot.payload, rte_pktmbuf_mtod(mbufs[i], void *), line_bytes);
            __atomic_store_n(&slot.number, m_sent, __ATOMIC_RELEASE);
        }
        if (taken != 0)
            rte_mempool_put_bulk(pool, reinterpret_cast<void **>(mbufs), taken);
        return taken;
    }

    int receive(rte_mbuf **mbufs, uint16_t n)
    {
        __builtin_prefetch(m_in.of(m_received + 1).payload + line_bytes - 1);
        uint16_t come = 0;
        while (come < n && has_come(m_received + come + 1))
            come++;
        if (come == 0)
            return 0;
        if (rte_pktmbuf_alloc_bulk(pool, mbufs, come) != 0)
            return -ENOMEM;
        for (unsigned i = 0; i < come; i++) {
            std::memcpy(rte_pktmbuf_mtod(mbufs[i], void *), m_in.of(++m_received).payload,
                        line_bytes);
            mbufs[i]->data_len = line_bytes;
            mbufs[i]->pkt_len = line_bytes;
        }
        if (m_received - m_reported >= BareRing::slot_count / 4) {
            m_reported = m_received;
            __atomic_store_n(&m_in.read.value, m_reported, __ATOMIC_RELEASE);
        }
        return come;
    }

private:
    bool has_come(uint64_t number)
    {
        return __atomic_load_n(&m_in.of(number).number, __ATOMIC_ACQUIRE) == number;
    }

    BareRing &m_out, &m_in;
    uint64_t m_sent = 0, m_read = 0;         ///< of what goes out
    uint64_t m_received = 0, m_reported = 0; ///< of what comes in
};

} // namespace bench

#endif

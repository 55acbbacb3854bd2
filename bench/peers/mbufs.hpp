// SPDX-License-Identifier: BSD-3-Clause
// Messages in mbufs, the same for our queue pairs and for ethdev ports: taken from a pool in bulk,
// written in place, read in place, freed in bulk; a chain where one mbuf is too small.
#ifndef PEERS_MBUFS_HPP
#define PEERS_MBUFS_HPP

#include "peers/traffic.hpp"

#include <string>
#include <vector>

#include <rte_eal.h>
#include <rte_mbuf.h>

namespace peers
{

/// Longest chain that is made; a burst of chains is bounded by burst_of().
inline constexpr unsigned most_segments = 64;

/// EAL with the words behind "--", which are whatever the peer needs.
inline bool start_eal(const std::vector<std::string> &words, std::string &error)
{
    std::vector<std::string> copies{"peer"};
    copies.insert(copies.end(), words.begin(), words.end());
    std::vector<char *> arguments;
    for (std::string &word : copies)
        arguments.push_back(word.data());
    if (rte_eal_init(static_cast<int>(arguments.size()), arguments.data()) >= 0)
        return true;
    error = "EAL does not start";
    return false;
}

/// Takes and writes the messages of a burst.
class MessageMaker
{
public:
    /// @param room  data bytes of an mbuf of @p pool, a multiple of 64
    void use(rte_mempool *pool, size_t room)
    {
        m_pool = pool;
        m_room = room;
    }
    size_t room() const { return m_room; }

    /// @return n messages, or NULL: the pool is empty
    rte_mbuf **make(size_t bytes, uint64_t value, unsigned n)
    {
        const auto segments = static_cast<unsigned>((bytes + m_room - 1) / m_room);
        if (rte_pktmbuf_alloc_bulk(m_pool, m_mbufs, n * segments) != 0)
            return nullptr;
        for (unsigned i = 0; i < n; i++)
            m_mbufs[i] = chain(m_mbufs + i * segments, segments, bytes, value + i);
        return m_mbufs;
    }

private:
    /// Links and writes @p segments mbufs. @return the first one
    rte_mbuf *chain(rte_mbuf **mbufs, unsigned segments, size_t bytes, uint64_t value)
    {
        rte_mbuf *head = mbufs[0];
        head->pkt_len = static_cast<uint32_t>(bytes);
        head->nb_segs = static_cast<uint16_t>(segments);
        for (unsigned s = 0; s < segments; s++) {
            const size_t part = std::min(bytes - s * m_room, m_room);
            mbufs[s]->data_len = static_cast<uint16_t>(part);
            mbufs[s]->next = s + 1 < segments ? mbufs[s + 1] : nullptr;
            write_payload(rte_pktmbuf_mtod(mbufs[s], void *), part, value);
        }
        return head;
    }

    rte_mempool *m_pool = nullptr;
    size_t m_room = 0;
    rte_mbuf *m_mbufs[most_burst * most_segments];
};

/// @return the sum over the first word of every line; 0 for a message of another length, which the
/// sum then shows
inline uint64_t read_message(const rte_mbuf *message, size_t bytes)
{
    if (message->pkt_len != bytes)
        return 0;
    uint64_t sum = 0;
    for (const rte_mbuf *segment = message; segment; segment = segment->next)
        sum += read_payload(rte_pktmbuf_mtod(segment, const void *), segment->data_len);
    return sum;
}

/// Hands messages over with @p push(mbufs, n), which takes some of them or returns a negative
/// errno, until all are gone or time is up; what is left is freed then.
template <typename Push>
bool push_all(rte_mbuf **messages, unsigned n, uint64_t give_up, Push push)
{
    uint64_t spin = 0;
    for (unsigned sent = 0; sent < n;) {
        const int taken = push(messages + sent, static_cast<uint16_t>(n - sent));
        if (taken > 0)
            sent += static_cast<unsigned>(taken);
        else if (taken < 0 || (++spin % spins_per_look == 0 && monotonic_ns() > give_up)) {
            rte_pktmbuf_free_bulk(messages + sent, n - sent);
            return false;
        }
    }
    return true;
}

/// Reads and frees what has come.
inline uint64_t take_burst(rte_mbuf **messages, unsigned n, size_t bytes)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < n; i++)
        sum += read_message(messages[i], bytes);
    rte_pktmbuf_free_bulk(messages, n);
    return sum;
}

} // namespace peers

#endif

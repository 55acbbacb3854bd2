// SPDX-License-Identifier: BSD-3-Clause
// HOT. What every loop over mbufs does, whatever it measures. Only its users need DPDK.
#ifndef APP_MBUFS_HPP
#define APP_MBUFS_HPP

#include <algorithm>
#include <cstdint>

#include <rte_mbuf.h>

namespace measure
{

/// Polls once, visits each message that came, and frees them all.
/// @param receive  (rte_mbuf **, n): how many came, or a negative errno
/// @param visit    (message, its index)
/// @return what @p receive returned
template <unsigned most, typename Receive, typename Visit>
[[gnu::always_inline]] inline int take_burst(uint16_t n, Receive receive, Visit visit)
{
    rte_mbuf *messages[most];
    const int got = receive(messages, n);
    if (got <= 0)
        return got;
    for (int i = 0; i < got; i++)
        visit(messages[i], i);
    rte_pktmbuf_free_bulk(messages, static_cast<unsigned>(got));
    return got;
}

/// Makes one message of so many mbufs. @param room  bytes that each holds
/// @return the first of them
inline rte_mbuf *link_chain(rte_mbuf **mbufs, uint32_t segments, uint32_t room, uint32_t bytes)
{
    for (uint32_t i = 0; i < segments; i++) {
        mbufs[i]->data_len = static_cast<uint16_t>(std::min(bytes - i * room, room));
        mbufs[i]->next = i + 1 < segments ? mbufs[i + 1] : nullptr;
    }
    mbufs[0]->pkt_len = bytes;
    mbufs[0]->nb_segs = static_cast<uint16_t>(segments);
    return mbufs[0];
}

} // namespace measure

#endif

// SPDX-License-Identifier: BSD-3-Clause
// How two hosts exchange the tokens of the regions that they expose.
#ifndef BENCH_MBUFS_SWAP_TOKENS_HPP
#define BENCH_MBUFS_SWAP_TOKENS_HPP

#include <cstring>

#include <rte_mbuf.h>

#include <ntbmsg.h>

namespace bench
{

/// Sends the own token as a message, and takes the other host's.
/// @param token  the own one; the other's when true is returned
/// @param late   whether it has taken too long
template <typename Late>
bool swap_tokens(ntbmsg_channel *channel, rte_mempool *pool, ntbmsg_region_token &token, Late late)
{
    rte_mbuf *message = rte_pktmbuf_alloc(pool);
    if (message == nullptr)
        return false;
    std::memcpy(rte_pktmbuf_append(message, sizeof(token)), &token, sizeof(token));
    if (ntbmsg_channel_send_burst(channel, &message, nullptr, 1) != 1) {
        rte_pktmbuf_free(message);
        return false;
    }
    while (ntbmsg_channel_recv_burst(channel, &message, nullptr, 1) != 1)
        if (late())
            return false;
    const bool whole = message->pkt_len == sizeof(token);
    if (whole)
        std::memcpy(&token, rte_pktmbuf_mtod(message, void *), sizeof(token));
    rte_pktmbuf_free(message);
    return whole;
}

} // namespace bench

#endif

// SPDX-License-Identifier: BSD-3-Clause
#include "traffic/outbox.hpp"

#include <algorithm>

#include <rte_mbuf.h>

namespace echo
{

void Outbox::add(rte_mbuf *mbuf, const ntbmsg_meta &meta)
{
    if (empty())
        begin_ = end_ = 0;
    mbufs_[end_] = mbuf;
    meta_[end_] = meta;
    ++end_;
}

int Outbox::flush(const Way &way, Counters &counters, uint16_t most)
{
    const uint16_t n = std::min(waiting(), most);
    // Lengths are taken before the burst: what is sent is not ours any more.
    std::array<uint32_t, longest_burst> bytes;
    for (uint16_t i = 0; i < n; ++i)
        bytes[i] = mbufs_[begin_ + i]->pkt_len;
    const int sent = way.send(&mbufs_[begin_], &meta_[begin_], n);
    if (sent < 0)
        return sent;
    for (int i = 0; i < sent; ++i)
        counters.tx_bytes += bytes[static_cast<size_t>(i)];
    counters.tx_messages += static_cast<uint64_t>(sent);
    counters.tx_full += sent < n;
    begin_ = static_cast<uint16_t>(begin_ + sent);
    return sent;
}

uint64_t Outbox::free_front(uint16_t n)
{
    rte_pktmbuf_free_bulk(&mbufs_[begin_], n);
    begin_ = static_cast<uint16_t>(begin_ + n);
    return n;
}

} // namespace echo

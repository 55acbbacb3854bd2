// SPDX-License-Identifier: BSD-3-Clause
#include "traffic/forwarder.hpp"

#include <rte_mbuf.h>

namespace echo
{

void Forwarder::count_received(rte_mbuf *const *mbufs, uint16_t n)
{
    counters_.rx_messages += n;
    for (uint16_t i = 0; i < n; ++i)
        counters_.rx_bytes += mbufs[i]->pkt_len;
}

} // namespace echo

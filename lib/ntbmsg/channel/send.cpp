// SPDX-License-Identifier: BSD-3-Clause
#include "channel/send.hpp"

namespace ntbmsg
{

void cut(const Worker &w, rte_mbuf *const *rest, Batch &batch, unsigned taken)
{
    for (unsigned i = taken; i < batch.messages; ++i) {
        const uint32_t length = rest[i - taken]->pkt_len;
        batch.bytes -= length;
        if (length > w.inline_max)
            batch.buffers -= w.peer_buffers.of(length);
    }
    batch.messages = taken;
}

} // namespace ntbmsg

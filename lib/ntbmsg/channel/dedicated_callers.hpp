// SPDX-License-Identifier: BSD-3-Clause
// Channels of a dedicated worker: the side of the application's threads.
#ifndef NTBMSG_CHANNEL_DEDICATED_CALLERS_HPP
#define NTBMSG_CHANNEL_DEDICATED_CALLERS_HPP

#include "transport/worker.hpp"

namespace ntbmsg
{

int send_shared(Channel &c, rte_mbuf **mbufs, const uint32_t *imm, unsigned n);
int receive_shared(Channel &c, rte_mbuf **mbufs, uint32_t *imm, unsigned n);

} // namespace ntbmsg

#endif

// SPDX-License-Identifier: BSD-3-Clause
// Sending and accounting of messages, by the thread that drives the worker.
#ifndef NTBMSG_TRANSFER_HPP
#define NTBMSG_TRANSFER_HPP

#include "channel.hpp"

namespace ntbmsg
{

/// How a send ended.
struct SendResult {
    unsigned sent;
    bool ring_full; ///< the driver took less than credit allows
    int error;      ///< of the driver, for the first that was not sent; else 0 or more
};

/// Sends as much as credit and ring allow.
SendResult send_now(Channel &c, rte_mbuf **mbufs, const uint32_t *imm, unsigned n);

/// Why nothing can be sent in this state. @return 0: it can
int send_error(uint8_t state);
/// Why nothing more comes. @return 0: it may
int receive_end(const Channel &c);

} // namespace ntbmsg

#endif

// SPDX-License-Identifier: BSD-3-Clause
// From the engine to whoever receives: messages that wait for their reader.
#ifndef NTBMSG_PORT_DELIVERY_HPP
#define NTBMSG_PORT_DELIVERY_HPP

#include <rte_branch_prediction.h>

#include "port/poll_set.hpp"
#include "port/proxy.hpp"

namespace ntbmsg
{

/// Passes received messages of a dedicated worker's channel on to the application.
void publish(Channel &c);
/// Messages were parked: whoever receives them is told.
inline void arrived(Channel &c, unsigned n)
{
    if (likely(c.proxy == nullptr))
        return report(c, NTBMSG_READABLE);
    c.proxy->delivered.add(n);
    publish(c);
}
/// Frees messages that were not received, and counts them.
void drop_parked(Channel &c);
/// The handle is closed: frees what was passed on to the application and not received.
void drop_inbox(Channel &c);
/// Frees what is in the ring of a channel that has ended.
void discard(Channel &c);
/// Frees the proxy with all that it holds.
void free_proxy(Channel &c);

} // namespace ntbmsg

#endif

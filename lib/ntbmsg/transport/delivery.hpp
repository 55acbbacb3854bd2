// SPDX-License-Identifier: BSD-3-Clause
// Messages that wait until the application receives them.
#ifndef NTBMSG_TRANSPORT_DELIVERY_HPP
#define NTBMSG_TRANSPORT_DELIVERY_HPP

#include <rte_branch_prediction.h>

#include "transport/poll_set.hpp"
#include "transport/proxy.hpp"

namespace ntbmsg
{

/// Makes parked messages of a dedicated worker's channel visible to the application.
void publish(Channel &c);
/// @p n messages were parked: reports READABLE, and publishes them if the worker is dedicated.
inline void arrived(Channel &c, unsigned n)
{
    if (likely(c.proxy == nullptr))
        return report(c, NTBMSG_READABLE);
    c.proxy->delivered.add(n);
    publish(c);
}
/// Frees and counts parked messages.
void drop_parked(Channel &c);
/// After the handle was closed: frees what was published and not received.
void drop_inbox(Channel &c);
/// Frees what is in the send ring of a channel that has ended.
void discard(Channel &c);
/// Frees the proxy with all that it holds.
void free_proxy(Channel &c);

} // namespace ntbmsg

#endif

// SPDX-License-Identifier: BSD-3-Clause
// Channels that the application connects or accepts, shuts down and closes.
#ifndef NTBMSG_CHANNEL_SETUP_HPP
#define NTBMSG_CHANNEL_SETUP_HPP

#include "port/worker.hpp"

namespace ntbmsg
{

/// The options of a caller, or the defaults. @return 0 or -EINVAL
int choose_options(const ntbmsg_channel_options *options, Worker &w,
                   ntbmsg_channel_options &chosen);
/// Gives a slot to the application: credit, poll set, what goes to the peer. @return false: there
/// is no credit left to grant
bool prepare(Channel &c, const ntbmsg_channel_options &options);
/// Nothing more is sent on it.
void shut(Channel &c);
/// The handle was closed.
void close_handle(Channel &c);

} // namespace ntbmsg

#endif

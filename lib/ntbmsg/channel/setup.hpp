// SPDX-License-Identifier: BSD-3-Clause
// Setting channels up, shutting them down and closing their handles.
#ifndef NTBMSG_CHANNEL_SETUP_HPP
#define NTBMSG_CHANNEL_SETUP_HPP

#include "transport/worker.hpp"

namespace ntbmsg
{

/// The caller's options or the defaults, checked. @return 0, -EINVAL or -E2BIG
int choose_options(const ntbmsg_channel_options *options, Worker &w,
                   ntbmsg_channel_options &chosen);
/// Prepares a slot for the application: credit, poll set, private data. @return false: no credit is
/// left to grant, or no memory
bool prepare(Channel &c, const ntbmsg_channel_options &options);
/// Ends sending on it.
void shut(Channel &c);
/// Closes the handle.
void close_handle(Channel &c);

} // namespace ntbmsg

#endif

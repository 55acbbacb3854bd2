// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTB_SOCKET_PRELOAD_OPTIONS_HPP
#define NTB_SOCKET_PRELOAD_OPTIONS_HPP

namespace ntb::socket::preload
{

/// Whether a setsockopt() asks for what the kernel alone does, and rings do not.
bool is_for_the_kernel(int level, int name, int value);
/// Whether the socket has something of that kind: set before it was connected, or by who accepted
/// it at its listener. Some system calls.
bool has_what_is_for_the_kernel(int fd);

} // namespace ntb::socket::preload

#endif

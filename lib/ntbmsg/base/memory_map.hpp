// SPDX-License-Identifier: BSD-3-Clause
// What this process has mapped: memory is checked before it is registered for the peer.
#ifndef NTBMSG_BASE_MEMORY_MAP_HPP
#define NTBMSG_BASE_MEMORY_MAP_HPP

#include <cstddef>

namespace ntbmsg
{

/// @return 0; -EFAULT: part of the range is not mapped, not readable or, with @p writable, not
/// writable; another negative errno: the mappings could not be read
int check_mapped(const void *address, size_t bytes, bool writable);

} // namespace ntbmsg

#endif

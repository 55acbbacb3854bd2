// SPDX-License-Identifier: BSD-3-Clause
// What this process has mapped: memory is looked at before the peer is let near it.
#ifndef NTBMSG_BASE_MEMORY_MAP_HPP
#define NTBMSG_BASE_MEMORY_MAP_HPP

#include <cstddef>

namespace ntbmsg
{

/// @return 0; -EFAULT some of the range is not mapped, or not readable, or, where @p writable is
/// wanted, not writable; negative errno: the kernel does not tell
int check_mapped(const void *address, size_t bytes, bool writable);

} // namespace ntbmsg

#endif

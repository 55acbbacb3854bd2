// SPDX-License-Identifier: BSD-3-Clause
// What a host occupies in memory.
#ifndef BENCH_SESSION_FOOTPRINT_HPP
#define BENCH_SESSION_FOOTPRINT_HPP

#include <cstdint>

namespace bench
{

/// Resident memory of this process and its huge pages, in bytes.
/// @param apart   the mapping that contains it is not counted
/// @param window  some address in window memory of this host: memory files of the same name that
/// are
///   mapped elsewhere are the peer's, and are not counted
/// @return 0 if /proc/self/smaps cannot be read
uint64_t own_footprint(const void *apart, const void *window);

} // namespace bench

#endif

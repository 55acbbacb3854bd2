// SPDX-License-Identifier: BSD-3-Clause
// Pages of the program become pages that a peer can map, and back, while its threads use them.
#ifndef NTB_VERBS_MEMORY_EXCHANGE_HPP
#define NTB_VERBS_MEMORY_EXCHANGE_HPP

#include "port/segment.hpp"

namespace ntb::verbs
{

/// Whether the kernel has what an exchange needs: a userfaultfd for this user, with minor faults of
/// shared memory (Linux 5.14).
bool can_exchange();

/// Puts the beginning of a segment in place of whole pages of plain memory (is_plain_memory()),
/// with what is in them. No write of another thread is lost; who touches the pages meanwhile waits,
/// and a system call that does fails with EFAULT. Signals are blocked. The stack of the caller and
/// what else it uses must not lie in them.
/// @return 0, or a negative errno: nothing has changed
int exchange_to_segment(std::byte *memory, std::uint64_t bytes, const Segment &segment);

/// The way back: what is mapped of that segment in the range becomes private memory again, with
/// what is in it. What the program has unmapped or put in its place stays as it is.
/// @return 0, or a negative errno: the pages are the segment's still
int exchange_to_private(std::byte *memory, std::uint64_t bytes, const Segment &segment);

/// The same in the child of a fork(), which has no other thread.
int copy_to_private(std::byte *memory, std::uint64_t bytes, const Segment &segment);

} // namespace ntb::verbs

#endif

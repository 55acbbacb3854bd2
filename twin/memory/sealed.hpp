// SPDX-License-Identifier: BSD-3-Clause
// Sealed memory descriptors: what crosses the cable. A sealed one can be mapped without fear that
// its size changes below the mapping, and no holder can add a seal to it.
#ifndef PLX_TWIN_MEMORY_SEALED_HPP
#define PLX_TWIN_MEMORY_SEALED_HPP

#include <cstddef>
#include <cstdint>

namespace plx::twin
{

/// A new descriptor of @p bytes of memory, sealed against a change of size.
/// @param huge 2 MiB pages, reserved for the first mapping of it
/// @return the descriptor or a negative errno
int sealed_create(const char *name, size_t bytes, bool huge);
/// The page size behind @p fd, or 0 unless it is memory of exactly @p bytes that is sealed against
/// a change of size and further seals, not against writing, in pages of 4 KiB or 2 MiB. For
/// descriptors that another process sent.
size_t sealed_check(int fd, size_t bytes);
/// Whether both are descriptors of the same memory.
bool is_same_file(int one, int other);
/// Maps @p bytes of @p fd, shared, over whatever lies at @p address (NULL: anywhere), in one step:
/// threads that access the range see the old or the new memory, never a hole.
/// @return NULL on failure, errno set
void *map_shared(void *address, size_t bytes, int fd, uint64_t offset);
void *map_private(void *address, size_t bytes, int fd, uint64_t offset);
/// Maps fresh pages of this process, zeros, in the same way.
void *map_anonymous(void *address, size_t bytes);
/// Address space of @p bytes, aligned to @p alignment, that nothing can be read from or stored to.
/// @return NULL on failure
void *reserve(size_t bytes, size_t alignment);

inline constexpr size_t small_page = 4096;
inline constexpr size_t huge_page = size_t{2} << 20;

} // namespace plx::twin

#endif

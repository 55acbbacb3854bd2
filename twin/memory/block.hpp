// SPDX-License-Identifier: BSD-3-Clause
// Exposed memory of one host: sealed blocks, and how access to one is revoked without the help of
// the process that maps it.
#ifndef PLX_TWIN_MEMORY_BLOCK_HPP
#define PLX_TWIN_MEMORY_BLOCK_HPP

#include <cstddef>
#include <cstdint>

namespace plx::twin
{

struct Block {
    void *base = nullptr; ///< aligned to bytes; NULL: a free slot
    size_t bytes = 0;
    size_t page_bytes = 0;
    int numa_node = -1;
    int fd = -1;             ///< -1: cannot be exposed any more
    uint64_t generation = 0; ///< new with each fd
};

/// A number not used before in this process, from 1.
uint64_t new_generation();

/// @return 0 or -ENOMEM
int block_create(size_t bytes, int numa_node, bool want_huge, Block *out);
void block_destroy(Block *block);

/// Moves the block to new memory below its own addresses: a process that mapped the old memory
/// keeps an orphan. Threads of this process may load and store in the block meanwhile: none of
/// their stores is lost, except that a byte changed and changed back within the move of its 2 MiB
/// may show the value between. Falls back to 4 KiB pages. @return 0, or -ENOMEM and the memory is
/// the same
int block_rehome(Block *block);

} // namespace plx::twin

#endif

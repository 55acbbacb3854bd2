// SPDX-License-Identifier: BSD-3-Clause
// What the kernel says of the memory of this process.
#ifndef NTB_VERBS_MEMORY_PAGES_HPP
#define NTB_VERBS_MEMORY_PAGES_HPP

#include <cstddef>
#include <cstdint>

namespace ntb::verbs
{

constexpr std::uint64_t page = 4096;

/// Part of a mapping that lies in a range. All of it has one nature.
struct Mapping {
    std::byte *memory;
    std::uint64_t bytes;
    std::uint64_t offset; // in its file
    std::uint64_t device, inode;
    bool is_plain; // private, anonymous, readable, writable, not executable; and nothing was said
                   // of it to the kernel that an exchange of its pages would break
    bool is_shared;
};

/// The mappings in a range of whole pages, in order. What nothing is mapped at is left out. It
/// allocates nothing, and takes as long as the kernel needs to look through the whole process.
/// @return how many there are, at most `max`; more is an error, as is a kernel that does not say:
/// -1
int find_mappings(const std::byte *memory, std::uint64_t bytes, Mapping *mappings, int max);

/// Whether all of a range of whole pages is plain, and one mapping.
bool is_plain_memory(const std::byte *memory, std::uint64_t bytes);

/// Whether there is memory in all of a range, and whether that may be read, or read and written, as
/// far as its first and its last page show. Nothing becomes of the memory but that these two pages
/// are there.
/// @param bytes  0: of no memory, which is always there
bool is_accessible(const void *memory, std::uint64_t bytes, bool writes);

} // namespace ntb::verbs

#endif

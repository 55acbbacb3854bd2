// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTB_VERBS_MEMORY_KEYS_HPP
#define NTB_VERBS_MEMORY_KEYS_HPP

#include <cstddef>
#include <cstdint>

#include "memory/lazy.hpp"

namespace ntb::verbs
{

/// What a key says: doc/verbs.md, section 1.
struct Region {
    std::byte *memory;
    std::uint64_t length;
    std::uint64_t iova;
    std::uint32_t key; // 0: the slot is free
    std::uint32_t pd;
    std::uint32_t access;
    std::uint16_t last_tag;
};

/// The keys of one engine. Keys are drawn from the kernel's generator.
class Keys
{
public:
    /// @param slots  a power of two up to 65536; the first is never used
    bool create(std::uint32_t slots = 65536);
    /// @return a key, or 0: no slot is free, or the kernel has no random numbers
    std::uint32_t add(std::uint32_t pd, void *memory, std::uint64_t length, std::uint64_t iova,
                      std::uint32_t access);
    /// The key stays. @retval false no such key of that domain
    bool change(std::uint32_t pd, std::uint32_t key, std::uint32_t new_pd, void *memory,
                std::uint64_t length, std::uint64_t iova, std::uint32_t access);
    /// @retval false no such key of that domain
    bool remove(std::uint32_t pd, std::uint32_t key);
    /// Memory behind `address`. NULL: key, domain, range, or one of the rights is not there.
    std::byte *find(std::uint32_t key, std::uint32_t pd, std::uint64_t address,
                    std::uint64_t length, std::uint32_t rights) const
    {
        const Region &region = regions_[key & mask_];
        if (key == 0 || region.key != key || region.pd != pd || (region.access & rights) != rights)
            return nullptr;
        const std::uint64_t offset = address - region.iova;
        if (offset > region.length || length > region.length - offset)
            return nullptr;
        return region.memory + offset;
    }

private:
    bool draw(std::uint32_t &number);

    Lazy<Region> regions_;
    Lazy<std::uint16_t> free_;
    std::uint32_t mask_ = 0;
    std::uint32_t n_free_ = 0;
    std::uint32_t drawn_[64];
    std::uint32_t n_drawn_ = 0;
};

} // namespace ntb::verbs

#endif

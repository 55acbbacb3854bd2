// SPDX-License-Identifier: BSD-3-Clause
#include "memory/keys.hpp"

#include <sys/random.h>

namespace ntb::verbs
{

bool Keys::create(std::uint32_t slots)
{
    if (!regions_.create(slots) || !free_.create(slots))
        return false;
    mask_ = slots - 1;
    for (std::uint32_t slot = 1; slot < slots; ++slot)
        free_[n_free_++] = static_cast<std::uint16_t>(slot);
    return true;
}

bool Keys::draw(std::uint32_t &number)
{
    if (n_drawn_ == 0) {
        if (getrandom(drawn_, sizeof(drawn_), 0) != static_cast<ssize_t>(sizeof(drawn_)))
            return false;
        n_drawn_ = sizeof(drawn_) / sizeof(drawn_[0]);
    }
    number = drawn_[--n_drawn_];
    return true;
}

std::uint32_t Keys::add(std::uint32_t pd, void *memory, std::uint64_t length, std::uint64_t iova,
                        std::uint32_t access)
{
    std::uint32_t place, random;
    if (n_free_ == 0 || !draw(place) || !draw(random))
        return 0;
    place = static_cast<std::uint32_t>((std::uint64_t{place} * n_free_) >> 32);
    const std::uint16_t slot = free_[place];
    free_[place] = free_[--n_free_];
    Region &region = regions_[slot];
    auto tag = static_cast<std::uint16_t>(random);
    if (tag == region.last_tag)
        ++tag;
    region = {static_cast<std::byte *>(memory),
              length,
              iova,
              std::uint32_t{tag} << 16 | slot,
              pd,
              access,
              tag};
    return region.key;
}

bool Keys::change(std::uint32_t pd, std::uint32_t key, std::uint32_t new_pd, void *memory,
                  std::uint64_t length, std::uint64_t iova, std::uint32_t access)
{
    Region &region = regions_[key & mask_];
    if (key == 0 || region.key != key || region.pd != pd)
        return false;
    region = {static_cast<std::byte *>(memory), length, iova, key, new_pd, access, region.last_tag};
    return true;
}

bool Keys::remove(std::uint32_t pd, std::uint32_t key)
{
    Region &region = regions_[key & mask_];
    if (key == 0 || region.key != key || region.pd != pd)
        return false;
    region.key = 0;
    free_[n_free_++] = static_cast<std::uint16_t>(key & mask_);
    return true;
}

} // namespace ntb::verbs

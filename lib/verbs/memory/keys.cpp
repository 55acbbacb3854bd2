// SPDX-License-Identifier: BSD-3-Clause
#include "memory/keys.hpp"

#include <cerrno>

#include <sys/random.h>

namespace ntb::verbs
{

bool Keys::create(std::uint32_t slots)
{
    if (!regions_.create(slots) || !free_.create(slots))
        return false;
    mask_ = slots - 1;
    for (std::uint32_t slot = 1; slot < slots; ++slot)
        free_slot(slot);
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

// Its upper half is never that of the last one, so that no program's choice of the lower one
// brings back a key.
bool Keys::draw_tag(std::uint16_t last, std::uint16_t &tag)
{
    std::uint32_t random;
    if (!draw(random))
        return false;
    tag = static_cast<std::uint16_t>(random);
    if (((tag ^ last) & 0xff00) == 0)
        tag = static_cast<std::uint16_t>(tag + 0x100);
    return true;
}

Region *Keys::take_slot(std::uint32_t &slot, std::uint16_t &tag)
{
    std::uint32_t place;
    if (n_free_ == 0 || !draw(place))
        return nullptr;
    place = static_cast<std::uint32_t>((std::uint64_t{place} * n_free_) >> 32);
    slot = free_[place];
    Region &region = regions_[slot];
    if (!draw_tag(region.last_tag, tag))
        return nullptr;
    free_[place] = free_[--n_free_];
    region = {};
    region.last_tag = tag;
    return &region;
}

std::uint32_t Keys::add(std::uint32_t pd, void *memory, std::uint64_t length, std::uint64_t iova,
                        std::uint32_t access)
{
    std::uint32_t slot;
    std::uint16_t tag;
    Region *const region = take_slot(slot, tag);
    if (!region)
        return 0;
    region->memory = static_cast<std::byte *>(memory);
    region->length = length;
    region->iova = iova;
    region->key = slot << 16 | tag;
    region->pd = pd;
    region->access = access;
    return region->key;
}

int Keys::may_change(std::uint32_t pd, std::uint32_t key) const
{
    const Region &region = regions_[slot_of(key)];
    if (key == 0 || region.key != key || region.pd != pd || region.window != 0)
        return -EINVAL;
    return region.windows != 0 ? -EBUSY : 0;
}

int Keys::change(std::uint32_t pd, std::uint32_t key, std::uint32_t new_pd, void *memory,
                 std::uint64_t length, std::uint64_t iova, std::uint32_t access)
{
    const int error = may_change(pd, key);
    if (error != 0)
        return error;
    Region &region = regions_[slot_of(key)];
    region.memory = static_cast<std::byte *>(memory);
    region.length = length;
    region.iova = iova;
    region.pd = new_pd;
    region.access = access;
    return 0;
}

int Keys::remove(std::uint32_t pd, std::uint32_t key)
{
    const int error = may_change(pd, key);
    if (error != 0)
        return error;
    regions_[slot_of(key)].key = 0;
    free_slot(slot_of(key));
    return 0;
}

// ---- windows

std::uint32_t Keys::add_window(std::uint32_t pd, ntbv_mw_type type, Window &window)
{
    std::uint32_t slot;
    std::uint16_t tag;
    Region *const region = take_slot(slot, tag);
    if (!region)
        return 0;
    region->pd = pd;
    region->type = static_cast<std::uint8_t>(type);
    region->window = next_window_++;
    next_window_ += next_window_ == 0;
    window = {slot, region->window};
    return slot << 16 | tag;
}

void Keys::remove_window(const Window &window)
{
    Region &region = regions_[window.slot];
    unbind(region);
    region.window = 0;
    free_slot(window.slot);
}

std::uint32_t Keys::renew(const Window &window)
{
    Region &region = regions_[window.slot];
    std::uint16_t tag;
    if (!draw_tag(region.last_tag, tag))
        return 0;
    region.last_tag = tag;
    return window.slot << 16 | tag;
}

void Keys::unbind(Region &window)
{
    if (window.key != 0)
        --regions_[window.of].windows;
    window.key = 0;
    window.owner = 0;
}

bool Keys::bind(const Binding &binding, const Asker &asker)
{
    Region &window = regions_[binding.window.slot];
    const bool zero_based = (binding.access & NTBV_ZERO_BASED) != 0;
    if (window.window != binding.window.serial || window.pd != asker.pd)
        return false;
    if (window.type == NTBV_MW_1 ? zero_based : window.key != 0 || binding.length == 0)
        return false;
    if (binding.length == 0) {
        unbind(window);
        return true;
    }
    constexpr std::uint32_t changes = NTBV_REMOTE_WRITE | NTBV_REMOTE_ATOMIC;
    const std::uint32_t wanted =
        NTBV_MW_BIND | ((binding.access & changes) != 0 ? std::uint32_t{NTBV_LOCAL_WRITE} : 0);
    std::byte *const memory =
        find(binding.region, asker.pd, binding.address, binding.length, wanted);
    if (!memory)
        return false;
    unbind(window);
    window.memory = memory;
    window.length = binding.length;
    window.iova = zero_based ? 0 : binding.address;
    window.owner = window.type == NTBV_MW_2 ? asker.serial : 0;
    window.key = binding.key;
    window.access = binding.access;
    window.of = static_cast<std::uint16_t>(slot_of(binding.region));
    ++regions_[window.of].windows;
    return true;
}

bool Keys::invalidate(std::uint32_t key, const Asker &asker)
{
    Region &window = regions_[slot_of(key)];
    if (key == 0 || window.key != key || window.pd != asker.pd || window.owner != asker.serial)
        return false;
    unbind(window);
    return true;
}

} // namespace ntb::verbs

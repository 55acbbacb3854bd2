// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTB_VERBS_MEMORY_KEYS_HPP
#define NTB_VERBS_MEMORY_KEYS_HPP

#include <cstddef>
#include <cstdint>

#include "memory/lazy.hpp"
#include "ntbv.h"

namespace ntb::verbs
{

struct Shared;

/// Who asks: a queue pair's domain, and a number that no other queue pair ever has.
struct Asker {
    std::uint32_t pd;
    std::uint64_t serial;
};

/// A memory window, bound or not. A number that is not given again distinguishes it from later
/// ones.
struct Window {
    std::uint32_t slot;
    std::uint32_t serial;
};

/// What a request says that binds a window.
struct Binding {
    Window window;
    std::uint32_t key; // that it has from then on
    std::uint32_t region;
    std::uint64_t address, length;
    std::uint32_t access;
};

/// Slots of keys, at most.
constexpr std::uint32_t max_slots = 65536;

/// What a key says: doc/verbs.md, section 1. Each message looks at one or two: a line each.
struct alignas(64) Region {
    std::byte *memory;
    std::uint64_t length;
    std::uint64_t iova;
    std::uint64_t owner; // of a window: the queue pair that alone may use it; 0: all of the domain
    std::uint32_t key;   // 0: the slot is free, or its window is not bound
    std::uint32_t pd;
    std::uint32_t access;
    std::uint32_t window;  // its serial; 0: this is no window
    std::uint16_t windows; // that are bound to this region: fewer than slots
    std::uint16_t of;      // of a window that is bound: slot of its region
    std::uint16_t last_tag;
    std::uint8_t type; // of a window: ntbv_mw_type
    Shared *shared;    // its pages are a segment's; or NULL
};
static_assert(sizeof(Region) == 64 && max_slots - 1 <= UINT16_MAX);

/// The keys of one engine. Keys are drawn from the kernel's generator. The slot is above and the
/// tag below, as the lowest 8 bits of a window of type 2 are its program's.
class Keys
{
public:
    /// @param slots  a power of two up to max_slots; the first is never used
    bool create(std::uint32_t slots = max_slots);
    /// @return a key, or 0: no slot is free, or the kernel has no random numbers
    std::uint32_t add(std::uint32_t pd, void *memory, std::uint64_t length, std::uint64_t iova,
                      std::uint32_t access);
    /// The key stays. @return 0, -EINVAL no such key of that domain, -EBUSY it has windows
    int change(std::uint32_t pd, std::uint32_t key, std::uint32_t new_pd, void *memory,
               std::uint64_t length, std::uint64_t iova, std::uint32_t access);
    /// @return as of change()
    int remove(std::uint32_t pd, std::uint32_t key);
    /// Whether change() and remove() would do it. @return as they do
    int may_change(std::uint32_t pd, std::uint32_t key) const;
    /// What has that key, if anything does.
    Region &at(std::uint32_t key) { return regions_[slot_of(key)]; }

    /// A window that is not bound. @return its key, or 0: as of add()
    std::uint32_t add_window(std::uint32_t pd, ntbv_mw_type type, Window &window);
    /// One that is there.
    void remove_window(const Window &window);
    /// A new key for a window of type 1 that is to be bound. @return 0: no random numbers
    std::uint32_t renew(const Window &window);
    /// Whether a program may give its window of type 2 this key.
    bool may_have(const Window &window, std::uint32_t key) const
    {
        return ((regions_[window.slot].last_tag ^ key) & 0xff00) == 0 &&
               slot_of(key) == window.slot;
    }
    /// Checks what the program has asked for, and does it. @retval false nothing has changed
    bool bind(const Binding &binding, const Asker &asker);
    /// Ends the use of a window of type 2 by its own queue pair.
    /// @retval false it is none, or not bound, or another's
    bool invalidate(std::uint32_t key, const Asker &asker);

    /// Memory of a region behind `address`. NULL: key, domain, range, or one of the rights is not
    /// there. Windows are for peers only.
    std::byte *find(std::uint32_t key, std::uint32_t pd, std::uint64_t address,
                    std::uint64_t length, std::uint32_t rights) const
    {
        const Region &region = regions_[slot_of(key)];
        return region.window == 0 ? reach(region, key, pd, address, length, rights) : nullptr;
    }
    /// The same for the peer of a queue pair, of a region or a window.
    std::byte *find_for_peer(std::uint32_t key, const Asker &asker, std::uint64_t address,
                             std::uint64_t length, std::uint32_t rights) const
    {
        const Region &region = regions_[slot_of(key)];
        return region.owner == 0 || region.owner == asker.serial
                   ? reach(region, key, asker.pd, address, length, rights)
                   : nullptr;
    }

private:
    static std::byte *reach(const Region &region, std::uint32_t key, std::uint32_t pd,
                            std::uint64_t address, std::uint64_t length, std::uint32_t rights)
    {
        if (key == 0 || region.key != key || region.pd != pd || (region.access & rights) != rights)
            [[unlikely]]
            return nullptr;
        const std::uint64_t offset = address - region.iova;
        if (offset > region.length || length > region.length - offset) [[unlikely]]
            return nullptr;
        return region.memory + offset;
    }
    std::uint32_t slot_of(std::uint32_t key) const { return key >> 16 & mask_; }
    bool draw(std::uint32_t &number);
    bool draw_tag(std::uint16_t last, std::uint16_t &tag);
    Region *take_slot(std::uint32_t &slot, std::uint16_t &tag);
    void free_slot(std::uint32_t slot) { free_[n_free_++] = static_cast<std::uint16_t>(slot); }
    void unbind(Region &window);

    Lazy<Region> regions_;
    Lazy<std::uint16_t> free_;
    std::uint32_t mask_ = 0;
    std::uint32_t n_free_ = 0;
    std::uint32_t next_window_ = 1;
    std::uint32_t drawn_[64];
    std::uint32_t n_drawn_ = 0;
};

} // namespace ntb::verbs

#endif

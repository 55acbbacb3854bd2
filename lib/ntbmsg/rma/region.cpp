// SPDX-License-Identifier: BSD-3-Clause
#include "rma/region.hpp"

#include <cerrno>
#include <cstring>
#include <initializer_list>

#include <rte_malloc.h>
#include <rte_pause.h>
#include <rte_pmd_plx_ntb.h>
#include <rte_rawdev.h>

#include <sched.h>
#include <sys/random.h>

#include <locked.hpp>

#include "base/memory_map.hpp"

namespace ntbmsg
{

namespace
{

constexpr uint32_t rights_known = NTBMSG_RIGHT_WRITE | NTBMSG_RIGHT_READ | NTBMSG_RIGHT_ATOMIC;
constexpr uint64_t bytes_max = uint64_t{1} << 40;
constexpr unsigned spins_before_yield = 1000;

/// A random key that cannot be guessed; its low bits are the slot, so that it is found without a
/// search.
uint64_t make_key(uint32_t slot)
{
    uint64_t key = 0;
    while ((key & ~uint64_t{Regions::slots_max - 1}) == 0) {
        if (getrandom(&key, sizeof(key), 0) != sizeof(key))
            key = 0;
    }
    return (key & ~uint64_t{Regions::slots_max - 1}) | slot;
}

/// Waits until no worker accesses the region. An access is at most the copy of one message.
void await_no_users(const ntbmsg_region &region)
{
    for (unsigned spins = 0; region.users.load(std::memory_order_seq_cst) != 0; ++spins) {
        if (spins < spins_before_yield)
            rte_pause();
        else
            sched_yield();
    }
}

} // namespace

int Regions::init(uint16_t dev_id)
{
    dev_id_ = dev_id;
    const int rc = pthread_mutex_init(&lock_, nullptr);
    ready_ = rc == 0;
    return -rc;
}

void Regions::destroy()
{
    if (!ready_)
        return;
    ntbmsg_region *slots = slots_.load(std::memory_order_relaxed);
    for (uint32_t i = 0; slots != nullptr && i < slots_max; ++i) {
        if (slots[i].in_use)
            revoke(slots[i]);
    }
    rte_free(slots);
    pthread_mutex_destroy(&lock_);
    ready_ = false;
}

int Regions::make_slots()
{
    if (slots_.load(std::memory_order_relaxed) != nullptr)
        return 0;
    void *memory = rte_zmalloc_socket("ntbmsg_regions", sizeof(ntbmsg_region) * slots_max,
                                      RTE_CACHE_LINE_SIZE, rte_rawdev_socket_id(dev_id_));
    slots_.store(static_cast<ntbmsg_region *>(memory), std::memory_order_release);
    return memory != nullptr ? 0 : -ENOMEM;
}

/// @return a cleared slot; NULL: none is free, or no memory
ntbmsg_region *Regions::take_slot()
{
    if (make_slots() != 0)
        return nullptr;
    ntbmsg_region *slots = slots_.load(std::memory_order_relaxed);
    for (uint32_t i = 0; i < slots_max; ++i) {
        // Roughly the longest-free first, so that a key of a revoked region stays invalid for long.
        ntbmsg_region &r = slots[next_slot_];
        next_slot_ = (next_slot_ + 1) % slots_max;
        if (r.in_use)
            continue;
        for (std::atomic<uint64_t> *counter : {&r.writes, &r.reads, &r.atomics, &r.refused})
            counter->store(0, std::memory_order_relaxed);
        r.in_use = true;
        r.table = this;
        return &r;
    }
    return nullptr;
}

int Regions::publish(ntbmsg_region &region)
{
    const auto slot = static_cast<uint32_t>(&region - slots_.load(std::memory_order_relaxed));
    region.key.store(make_key(slot), std::memory_order_release); // pairs with enter()
    return 0;
}

int Regions::alloc(size_t bytes, uint32_t rights, ntbmsg_region **out)
{
    if (bytes == 0 || bytes > bytes_max || rights == 0 || (rights & ~rights_known) != 0)
        return -EINVAL;
    const ntb::Locked held(lock_);
    rte_pmd_plx_ntb_memory_info info{};
    info.size = sizeof(info);
    if (rte_pmd_plx_ntb_memory_info_get(dev_id_, &info) != 0 || info.segment_bytes == 0)
        return -ENOTSUP;
    store_rights_ = info.store_rights;
    const bool direct = (rights & NTBMSG_RIGHT_WRITE) != 0;
    const size_t whole = bytes + (direct ? protocol::probe_bytes : 0);
    if (whole > info.memory_bytes_max)
        return -ENOSPC;
    ntbmsg_region *region = take_slot();
    if (region == nullptr)
        return -ENOMEM;
    rte_pmd_plx_ntb_memory memory{};
    if (const int rc = rte_pmd_plx_ntb_memory_alloc(dev_id_, whole, &memory); rc != 0) {
        region->in_use = false;
        return rc == -ENOSPC || rc == -ENOTSUP ? rc : -ENOMEM;
    }
    region->address = static_cast<std::byte *>(memory.address);
    region->window_bytes = memory.bytes;
    region->bytes = memory.bytes - (direct ? protocol::probe_bytes : 0);
    region->rights = rights;
    region->direct = direct;
    *out = region;
    return publish(*region);
}

int Regions::add(void *address, size_t bytes, uint32_t rights, ntbmsg_region **out)
{
    if (address == nullptr || bytes == 0 || bytes > bytes_max || rights == 0 ||
        (rights & ~rights_known) != 0 || reinterpret_cast<uintptr_t>(address) + bytes < bytes)
        return -EINVAL;
    const bool changes = (rights & (NTBMSG_RIGHT_WRITE | NTBMSG_RIGHT_ATOMIC)) != 0;
    if (const int rc = check_mapped(address, bytes, changes); rc != 0)
        return rc;
    const ntb::Locked held(lock_);
    ntbmsg_region *region = take_slot();
    if (region == nullptr)
        return -ENOMEM;
    region->address = static_cast<std::byte *>(address);
    region->window_bytes = 0;
    region->bytes = bytes;
    region->rights = rights;
    region->direct = false;
    *out = region;
    return publish(*region);
}

/// @return 0; -EIO: the chip does not answer, and the peer may still reach the memory
int Regions::revoke_memory(ntbmsg_region &region)
{
    if (region.window_bytes == 0)
        return 0;
    const int rc = rte_pmd_plx_ntb_memory_revoke(dev_id_, region.address, region.window_bytes);
    if (rc != 0 && rc != -ENOENT) // -ENOENT: not exposed (any more)
        return -EIO;
    return rte_pmd_plx_ntb_memory_free(dev_id_, region.address) == 0 ? 0 : -EIO;
}

int Regions::revoke(ntbmsg_region &region)
{
    const ntb::Locked held(lock_);
    if (!region.in_use)
        return -EINVAL;
    // enter() counts itself, then reads the key; this clears the key, then reads the count. So one
    // of the two sees the other.
    region.key.store(0, std::memory_order_seq_cst);
    await_no_users(region);
    const int rc = revoke_memory(region);
    region.in_use = rc != 0;
    return rc;
}

ntbmsg_region *Regions::enter(uint64_t key)
{
    ntbmsg_region *slots = slots_.load(std::memory_order_acquire);
    if (slots == nullptr || key == 0)
        return nullptr;
    ntbmsg_region &region = slots[key % slots_max];
    region.users.fetch_add(1, std::memory_order_seq_cst);
    if (region.key.load(std::memory_order_seq_cst) == key)
        return &region;
    leave(region);
    return nullptr;
}

/// The offset of a direct region in the peer's memory window; exposes it if it is not exposed yet.
int Regions::expose(const ntbmsg_region &region, uint64_t &window)
{
    rte_pmd_plx_ntb_memory_exposed exposed{};
    if (rte_pmd_plx_ntb_memory_find(dev_id_, region.address, &exposed) == 0) {
        window = exposed.offset;
        return 0;
    }
    return rte_pmd_plx_ntb_memory_expose(dev_id_, region.address, region.window_bytes,
                                         RTE_PMD_PLX_NTB_MEMORY_WRITE | store_rights_,
                                         RTE_PMD_PLX_NTB_MEMORY_ANY, &window);
}

int Regions::token(const ntbmsg_region &region, protocol::Token &out)
{
    const ntb::Locked held(lock_);
    out = {};
    out.key = region.key.load(std::memory_order_relaxed);
    if (!region.in_use || out.key == 0)
        return -EINVAL;
    out.bytes = region.bytes;
    out.rights = region.rights;
    if (!region.direct)
        return 0;
    const int rc = expose(region, out.window);
    // No room in the window: the region is served.
    out.direct = rc == 0 ? 1 : 0;
    return rc == -ENOSPC ? 0 : rc;
}

void Regions::visit(void (*fn)(const ntbmsg_region &region, void *arg), void *arg) const
{
    const ntb::Locked held(lock_);
    const ntbmsg_region *slots = slots_.load(std::memory_order_relaxed);
    for (uint32_t i = 0; slots != nullptr && i < slots_max; ++i) {
        if (slots[i].in_use)
            fn(slots[i], arg);
    }
}

} // namespace ntbmsg

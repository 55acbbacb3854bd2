// SPDX-License-Identifier: BSD-3-Clause
#include "bus/pci_memory.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>

#include <rte_malloc.h>
#include <rte_memory.h>
#include <rte_memzone.h>

#include "bus/exposable.hpp"
#include "queue/wire.hpp"

namespace plx::pmd
{

namespace
{

struct Owned {
    const rte_memzone *zone;
    hw::Piece pieces[facts::alut_entries_one_nt];
};

/// Ways to allocate from EAL, in the order in which they are tried.
struct Ask {
    bool for_alut;
    unsigned factor; ///< size allocated, to find an aligned block in it
    unsigned flags;
    bool aligned; ///< to its size in virtual addresses; else to a page
};
// With an A-LUT single hugepages suffice. Without one a block must be aligned in bus addresses: in
// a 1 GB page and with IOVA=VA by virtual alignment; else in an allocation of twice the size if
// that is contiguous; at last the largest block that is found.
constexpr Ask asks[] = {
    {true, 1, 0, false},
    {false, 1, RTE_MEMZONE_IOVA_CONTIG | RTE_MEMZONE_1GB | RTE_MEMZONE_SIZE_HINT_ONLY, true},
    {false, 2, RTE_MEMZONE_IOVA_CONTIG | RTE_MEMZONE_SIZE_HINT_ONLY, true},
    {false, 1, 0, false},
};

constexpr size_t page_align = size_t{2} << 20;

uint64_t page_iova(void *ctx, size_t offset)
{
    return rte_mem_virt2iova(static_cast<std::byte *>(static_cast<Owned *>(ctx)->zone->addr) +
                             offset);
}

const rte_memzone *reserve(const char *device, const Ask &ask, size_t bytes, int node)
{
    static std::atomic<unsigned> zones{0};
    char name[RTE_MEMZONE_NAMESIZE];
    std::snprintf(name, sizeof(name), "plx_%s_%u", device, zones.fetch_add(1));
    const size_t align = ask.aligned ? bytes : std::min(bytes, page_align);
    return rte_memzone_reserve_aligned(name, ask.factor * bytes, node, ask.flags,
                                       static_cast<unsigned>(align));
}

Exposable find(Owned *owned, size_t bytes, const hw::WindowRules &rules)
{
    const rte_memzone &zone = *owned->zone;
    // Steps that lie within one page: the zone is aligned to them.
    const size_t step = std::min({zone.len, size_t{zone.hugepage_sz}, page_align});
    const IovaMap map{zone.len, step, page_iova, owned};
    return find_exposable(map, bytes, wire::block_bytes_min, rules, owned->pieces);
}

} // namespace

int pci_memory_alloc(const char *name, size_t bytes, int node, const hw::WindowRules &rules,
                     WindowMemory *out)
{
    auto *owned = static_cast<Owned *>(rte_zmalloc("plx_window", sizeof(Owned), 0));
    if (owned == nullptr)
        return -ENOMEM;
    const bool has_alut = rules.entries != 0;
    for (const Ask &ask : asks) {
        if (ask.for_alut != has_alut)
            continue;
        owned->zone = reserve(name, ask, bytes, node);
        if (owned->zone == nullptr)
            continue;
        const Exposable found = find(owned, bytes, rules);
        const bool last = &ask == &asks[std::size(asks) - 1] || has_alut;
        if (found.bytes == bytes || (last && found.bytes != 0)) {
            *out = {.base = static_cast<std::byte *>(owned->zone->addr) + found.offset,
                    .bus = owned->pieces[0].address,
                    .bytes = found.bytes,
                    .page_bytes = owned->zone->hugepage_sz,
                    .pieces = owned->pieces,
                    .piece_count = found.pieces,
                    .owner = owned};
            return 0;
        }
        rte_memzone_free(owned->zone);
    }
    rte_free(owned);
    return -ENOMEM;
}

void pci_memory_free(const WindowMemory &memory)
{
    auto *owned = static_cast<Owned *>(memory.owner);
    rte_memzone_free(owned->zone);
    rte_free(owned);
}

} // namespace plx::pmd

// SPDX-License-Identifier: BSD-3-Clause
#include "bus/eal_memory.hpp"

#include <cinttypes>

#include <rte_eal.h>
#include <rte_eal_memconfig.h>

#include "sync/log.hpp"

namespace plx::pmd
{

namespace
{
constexpr char callback_name[] = "plx_ntb_dma";
}

int EalMemory::report()
{
    const Run run = run_;
    run_ = {};
    if (run.bytes == 0)
        return 0;
    const int rc = listener_.come(listener_.ctx, run.address, run.iova, run.bytes);
    if (rc != 0)
        PLX_LOG(ERR, "EAL memory 0x%" PRIx64 " + 0x%zx cannot be mapped for DMA engines: %d\n",
                run.iova, run.bytes, rc);
    return rc;
}

/// Hugepages are mapped one by one, since EAL allocates and frees them so; small pages remain, and
/// are too many for that.
int EalMemory::add(std::byte *address, uint64_t iova, size_t bytes)
{
    const bool next =
        run_.bytes != 0 && run_.address + run_.bytes == address && run_.iova + run_.bytes == iova;
    if (next && rte_eal_has_hugepages() == 0) {
        run_.bytes += bytes;
        return 0;
    }
    const int rc = report();
    run_ = {address, iova, bytes};
    return rc;
}

int EalMemory::on_page(const rte_memseg_list *list, const rte_memseg *page, void *arg)
{
    if (list->external != 0 || page->iova == RTE_BAD_IOVA)
        return 0;
    return static_cast<EalMemory *>(arg)->add(static_cast<std::byte *>(page->addr), page->iova,
                                              page->len);
}

void EalMemory::on_change(rte_mem_event type, const void *address, size_t bytes, void *arg)
{
    auto *self = static_cast<EalMemory *>(arg);
    const rte_memseg_list *list = rte_mem_virt2memseg_list(address);
    if (list == nullptr || list->external != 0)
        return;
    const auto *at = static_cast<const std::byte *>(address);
    for (const std::byte *end = at + bytes; at < end; at += list->page_sz) {
        const rte_memseg *page = rte_mem_virt2memseg(at, list);
        if (page == nullptr || page->iova == RTE_BAD_IOVA)
            continue;
        if (type == RTE_MEM_EVENT_ALLOC)
            on_page(list, page, self);
        else
            self->listener_.go(self->listener_.ctx, page->iova, page->len);
    }
    self->report();
}

int EalMemory::walk()
{
    const int rc = rte_memseg_walk_thread_unsafe(on_page, this);
    const int last = report();
    return rc != 0 ? rc : last;
}

int EalMemory::follow(const Listener &listener)
{
    listener_ = listener;
    // Under the lock, so that nothing changes between the walk and the first callback.
    rte_mcfg_mem_read_lock();
    int rc = walk();
    // If memory cannot change there are no callbacks, which is no error.
    if (rc == 0)
        followed_ = rte_mem_event_callback_register(callback_name, on_change, this) == 0;
    rte_mcfg_mem_read_unlock();
    return rc;
}

void EalMemory::leave()
{
    if (followed_)
        rte_mem_event_callback_unregister(callback_name, this);
    followed_ = false;
}

} // namespace plx::pmd

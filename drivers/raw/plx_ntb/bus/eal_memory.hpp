// SPDX-License-Identifier: BSD-3-Clause
// EAL's own memory, as devices reach it: what there is, and what comes and goes.
#ifndef PLX_NTB_BUS_EAL_MEMORY_HPP
#define PLX_NTB_BUS_EAL_MEMORY_HPP

#include <cstddef>
#include <cstdint>

#include <rte_memory.h>

namespace plx::pmd
{

/// Reports all memory that EAL manages, by the addresses that devices use (IOVA). Memory that an
/// application registers itself (rte_extmem_register()) is mapped by rte_dev_dma_map() instead.
class EalMemory
{
public:
    /// Callbacks run under EAL's memory lock: they must not allocate or free memory of EAL.
    struct Listener {
        void *ctx = nullptr;
        /// @return 0 or negative errno, which is logged
        int (*come)(void *ctx, void *address, uint64_t iova, size_t bytes) = nullptr;
        /// Called with the ranges that were added.
        void (*go)(void *ctx, uint64_t iova, size_t bytes) = nullptr;
    };

    /// Reports all present memory, and from then on changes. The object must not move meanwhile.
    /// @return 0, or the first error of the listener: then nothing is followed
    int follow(const Listener &listener);
    void leave();

private:
    struct Run {
        std::byte *address = nullptr;
        uint64_t iova = 0;
        size_t bytes = 0;
    };
    static int on_page(const rte_memseg_list *list, const rte_memseg *page, void *arg);
    static void on_change(rte_mem_event type, const void *address, size_t bytes, void *arg);
    int walk();
    int add(std::byte *address, uint64_t iova, size_t bytes);
    int report();

    Listener listener_;
    Run run_; ///< found and not reported yet
    bool followed_ = false;
};

} // namespace plx::pmd

#endif

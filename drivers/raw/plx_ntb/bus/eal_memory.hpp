// SPDX-License-Identifier: BSD-3-Clause
// EAL's own memory, as devices reach it: what there is, and what comes and goes.
#ifndef PLX_NTB_BUS_EAL_MEMORY_HPP
#define PLX_NTB_BUS_EAL_MEMORY_HPP

#include <cstddef>
#include <cstdint>

#include <rte_memory.h>

namespace plx::pmd
{

/// Reports all memory that EAL manages, by the addresses that devices are given
/// (IOVA). Memory that an application registers itself (rte_extmem_register) is not EAL's: that is
/// told by rte_dev_dma_map().
class EalMemory
{
public:
    /// Called under EAL's memory lock: no memory of EAL may be allocated or freed in them.
    struct Listener {
        void *ctx = nullptr;
        /// @return 0 or negative errno, which is logged
        int (*come)(void *ctx, void *address, uint64_t iova, size_t bytes) = nullptr;
        /// Ranges go as they came.
        void (*go)(void *ctx, uint64_t iova, size_t bytes) = nullptr;
    };

    /// Tells of everything there is, and from then on of changes. Stays where it is meanwhile.
    /// @return 0 or the first error of the listener, with nothing followed
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
    Run run_; ///< found, and not reported yet
    bool followed_ = false;
};

} // namespace plx::pmd

#endif

// SPDX-License-Identifier: BSD-3-Clause
// The border between the driver's core and a chip: silicon behind PCI, or the twin.
#ifndef PLX_NTB_PLATFORM_PLATFORM_HPP
#define PLX_NTB_PLATFORM_PLATFORM_HPP

#include <cstddef>
#include <cstdint>

#include "hw/chip.hpp"
#include "hw/facts/plx_regs.hpp"
#include "hw/reg_io.hpp"
#include "rte_pmd_plx_ntb.h"
#include "rte_pmd_plx_ntb_test.h"

namespace plx::pmd
{

/// Memory that the peer's window can show: aligned to its size in bus addresses, or in pieces that
/// the A-LUT joins.
struct WindowMemory {
    std::byte *base = nullptr;
    uint64_t bus = 0; ///< of its start
    size_t bytes = 0; ///< power of two
    size_t page_bytes = 0;
    const hw::Piece *pieces = nullptr; ///< the platform's, until memory_free; NULL: one piece
    unsigned piece_count = 0;
    void *owner = nullptr; ///< the platform's own
};

struct PlatformOps {
    const char *name; ///< "twin" or "pci"
    /// @param bytes power of two; @param node NUMA node or -1
    /// @param rules of the peer's window, which will show it
    /// @return 0; out->bytes may be less than @p bytes if the machine has no larger block that the
    ///   window can show; -ENOMEM: no such memory
    int (*memory_alloc)(void *ctx, size_t bytes, int node, const hw::WindowRules &rules,
                        WindowMemory *out);
    void (*memory_free)(void *ctx, const WindowMemory &memory);
    /// Whether a process holds the other end; true if that cannot be known.
    bool (*peer_present)(void *ctx);
    /// @param wake called from any thread when peer_present may have changed; NULL: ends it
    void (*watch_peer)(void *ctx, void (*wake)(void *arg), void *arg);
    /// @param fn called from any thread, one at a time, when the chip interrupts: doorbells are
    /// pending; NULL: ends it, and no call is running once this returns
    /// @return 0; -ENOTSUP or another error: nothing interrupts this host
    int (*watch_interrupt)(void *ctx, void (*fn)(void *arg), void *arg);
    void (*detach)(void *ctx);
    /// A fault on demand; NULL where there are none.
    /// @return 0; -EINVAL the argument; -ENOTSUP the fault
    int (*inject)(void *ctx, rte_pmd_plx_ntb_fault fault, uint32_t argument);
    /// Gives the memory window another address. What is stored through its old one from now on
    /// reaches no memory of the peer. NULL: it cannot be moved.
    /// @param window set to the new address
    /// @return 0 or -ENOMEM, with nothing changed
    int (*window_move)(void *ctx, std::byte **window);
    /// No thread uses an old address any more.
    void (*window_forget)(void *ctx, std::byte *old);
};

struct Platform {
    const PlatformOps *ops = nullptr;
    void *ctx = nullptr;
    hw::RegIo own;               ///< the own chip
    hw::RegIo peer;              ///< the peer's chip, through the shared window
    std::byte *window = nullptr; ///< our memory window (BAR2)
    uint64_t window_bytes = 0;
    uint64_t window_bus = 0;      ///< it as DMA engines address it; 0: out of reach
    uint64_t shared_bytes = 0;    ///< shared window (BAR4)
    bool write_combining = false; ///< whether stores reach the window combined, in any order
    int node = -1;                ///< NUMA node of the card
    /// Rights without which stores of the peer's CPU do not arrive.
    uint32_t store_rights = hw::rights_write;
    /// The chip's DMA functions that this host may use: their registers as DmaChannel needs them,
    /// and their requester IDs.
    hw::RegIo dma[facts::dma_function_count] = {};
    uint16_t dma_requesters[facts::dma_function_count] = {};
    unsigned dma_channels = 0;
};

} // namespace plx::pmd

#endif

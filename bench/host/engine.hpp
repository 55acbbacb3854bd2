// SPDX-License-Identifier: BSD-3-Clause
// Copies by a DMA channel of a host's device, through the standard dmadev: as the limit of copies
// has them, from private memory into slots that the other host reads; and the mere turnover of
// descriptors.
#ifndef BENCH_HOST_ENGINE_HPP
#define BENCH_HOST_ENGINE_HPP

#include "host/dma_memory.hpp"
#include "session/shared.hpp"

#include <rte_common.h>

struct rte_device;

namespace bench
{

/// Name of the dmadev.
inline constexpr const char *engine_name = "raw_plx_ntb0_dma0";

/// The copying host's. Opened and closed by operations of their own, because they wait for threads
/// that a polling thread with real-time priority would keep from running.
class Engine
{
public:
    Engine() = default;
    ~Engine() { close(); }
    Engine(const Engine &) = delete;
    Engine &operator=(const Engine &) = delete;

    /// Starts the dmadev, with private memory of command.payload bytes to copy from and a page to
    /// copy to, and makes the slots of shared.data known to it.
    void open(const Command &, Shared &, Result &);
    void close();

    /// Copies payloads into the slots of shared.data for command.run_ns.
    void copy(const Command &, Shared &, Result &);
    /// Copies of command.payload bytes, a page at most, inside this host; result.count of them in
    /// result.ns.
    void turn_over(const Command &, Result &);

private:
    bool start(Result &);
    bool map(Shared &, Result &);
    uint16_t completed(Result &);

    DmaMemory m_memory;
    rte_iova_t m_source = 0;
    std::byte *m_slots = nullptr;
    rte_device *m_device = nullptr;
    int16_t m_dev = -1;
    bool m_started = false;
    bool m_registered = false;
    bool m_mapped = false;
};

/// Reads every line of each slot until the copying host has ended.
void read_engine_copies(const Command &, Shared &, Result &);

} // namespace bench

#endif

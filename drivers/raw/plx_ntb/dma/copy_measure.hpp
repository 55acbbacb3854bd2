// SPDX-License-Identifier: BSD-3-Clause
// Measures the costs of copying into the peer's block by CPU and by DMA, in a part of it without
// messages.
#ifndef PLX_NTB_DMA_COPY_MEASURE_HPP
#define PLX_NTB_DMA_COPY_MEASURE_HPP

#include <cstddef>
#include <cstdint>

#include "dma/copy_choice.hpp"
#include "queue/queue.hpp"

namespace plx::pmd
{

/// Parameters of a measurement. All pieces of a message are copied from and to the same place, so
/// that the path is measured and not the caches.
struct CopyBench {
    queue::Copy cpu;
    queue::Engine engine; ///< halted, and otherwise unused
    std::byte *to;        ///< `piece` bytes of the peer's block that are not read
    uint64_t to_bus;      ///< the same as the engine addresses it
    const std::byte *from;
    uint64_t from_iova;
    uint32_t piece;
    uint64_t (*now_ns)();
};

/// Takes some milliseconds on a card; bounded by the clock and by the number of polls if an engine
/// hangs. The engine is halted afterwards unless it failed.
/// @return an empty curve if the engine failed or is too slow
CopyCurve measure_copy(const CopyBench &bench);

} // namespace plx::pmd

#endif

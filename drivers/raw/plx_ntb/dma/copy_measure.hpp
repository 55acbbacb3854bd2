// SPDX-License-Identifier: BSD-3-Clause
// What the two ways of copying into the peer's block cost, measured in a part that holds no
// message.
#ifndef PLX_NTB_DMA_COPY_MEASURE_HPP
#define PLX_NTB_DMA_COPY_MEASURE_HPP

#include <cstddef>
#include <cstdint>

#include "dma/copy_choice.hpp"
#include "queue/queue.hpp"

namespace plx::pmd
{

/// Memory and means to measure with. Messages are copied piece by piece, all pieces from and to the
/// same place: it is the way that is measured, not the caches at its ends.
struct CopyBench {
    queue::Copy cpu;
    queue::Engine engine; ///< at rest, and used by no other
    std::byte *to;        ///< `piece` bytes of the peer's block that are not read
    uint64_t to_bus;      ///< the same as the engine addresses it
    const std::byte *from;
    uint64_t from_iova;
    uint32_t piece;
    uint64_t (*now_ns)();
};

/// Takes some milliseconds on a card; bounded by the clock and by the number of looks at it where
/// an engine does not move. The engine is at rest afterwards unless it failed.
/// @return an empty curve when the engine failed or was too slow to be waited for
CopyCurve measure_copy(const CopyBench &bench);

} // namespace plx::pmd

#endif

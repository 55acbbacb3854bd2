// SPDX-License-Identifier: BSD-3-Clause
// Copies whose order others may rely on.
#ifndef PLX_TWIN_DMA_COPY_HPP
#define PLX_TWIN_DMA_COPY_HPP

#include <cstddef>
#include <cstdint>

namespace plx::twin
{

/// Copies @p bytes; the ranges may overlap, as long as none is relied on then. What earlier calls
/// of this thread stored is visible to a thread that sees a byte of this one; eight aligned bytes
/// become visible at once.
void dma_copy(uint8_t *to, const uint8_t *from, size_t bytes);

} // namespace plx::twin

#endif

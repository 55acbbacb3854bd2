// SPDX-License-Identifier: BSD-3-Clause
#ifndef BENCH_HOST_DMA_CHANNEL_HPP
#define BENCH_HOST_DMA_CHANNEL_HPP

#include <cstdint>

#include <rte_dmadev.h>

namespace bench
{

/// Starts a dmadev with one channel from memory to memory.
/// @return 0 or a negative errno
inline int start_dma_channel(int16_t dev, uint16_t descriptors)
{
    const rte_dma_conf conf{.nb_vchans = 1};
    rte_dma_vchan_conf vchan{};
    vchan.direction = RTE_DMA_DIR_MEM_TO_MEM;
    vchan.nb_desc = descriptors;
    int rc = rte_dma_configure(dev, &conf);
    if (rc == 0)
        rc = rte_dma_vchan_setup(dev, 0, &vchan);
    return rc == 0 ? rte_dma_start(dev) : rc;
}

} // namespace bench

#endif

// SPDX-License-Identifier: BSD-3-Clause
// The registers of the DMA functions as a host's driver sees them, by the chip's channel number.
// Without the host's lock.
#ifndef PLX_TWIN_HOST_DMA_FUNCTIONS_HPP
#define PLX_TWIN_HOST_DMA_FUNCTIONS_HPP

#include <cstdint>

namespace plx::twin
{

class Host;

uint32_t function_read(Host &host, unsigned channel, uint32_t offset);
void function_write(Host &host, unsigned channel, uint32_t offset, uint32_t value);

} // namespace plx::twin

#endif

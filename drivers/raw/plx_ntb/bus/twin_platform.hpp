// SPDX-License-Identifier: BSD-3-Clause
// A host of the software twin as a platform. With its source the only part of the driver that
// includes twin/.
#ifndef PLX_NTB_BUS_TWIN_PLATFORM_HPP
#define PLX_NTB_BUS_TWIN_PLATFORM_HPP

#include <cstddef>
#include <cstdint>

#include "device/options.hpp"
#include "platform/platform.hpp"

namespace plx::pmd
{

/// Attaches a host to the cable of @p options. PlatformOps::detach ends it.
/// @return 0 or negative errno, logged where the cable is the cause
int open_twin(const char *name, const Options &options, Platform *out);
/// Lets the DMA engines of such a platform reach memory that EAL does not manage.
/// @return 0; -EINVAL the range; -ENOMEM
int twin_dma_map(const Platform &platform, void *address, uint64_t iova, size_t bytes);
int twin_dma_unmap(const Platform &platform, uint64_t iova, size_t bytes);

} // namespace plx::pmd

#endif

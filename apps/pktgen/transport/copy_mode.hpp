// SPDX-License-Identifier: BSD-3-Clause
// By what a device copies long messages: chosen by the device argument copy=, or here, between two
// measurements, for which its endpoint is opened anew.
#ifndef PKTGEN_TRANSPORT_COPY_MODE_HPP
#define PKTGEN_TRANSPORT_COPY_MODE_HPP

#include <cstdint>
#include <string>

namespace pktgen
{

/// In the order of the device's attribute "copy_mode".
enum class CopyMode : uint32_t { automatic, cpu, dma };
inline constexpr unsigned copy_mode_count = 3;
/// In a hello: the server cannot do what it was asked for.
inline constexpr uint32_t copy_refused = 255;

const char *name_of(CopyMode mode); ///< auto, cpu or dma

/// @return as the device has it; automatic where it does not say
CopyMode copy_mode_of(const std::string &device);

/// For the next start of the device, which has to be stopped. @return false: it does not take it
bool set_copy_mode(const std::string &device, CopyMode mode);

} // namespace pktgen

#endif

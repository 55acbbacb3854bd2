// SPDX-License-Identifier: BSD-3-Clause
// One device of this end: its endpoint, and what the driver knows of it.
#ifndef PKTGEN_DEVICE_HPP
#define PKTGEN_DEVICE_HPP

#include <cstdint>
#include <string>

#include "result.hpp"

#include <ntbmsg.h>

namespace pktgen
{

/// What the endpoint has to be like.
/// @param queues   for data; one more is added for the control messages
/// @param longest  message in bytes that this end sends or takes; 0: what the device takes anyway
/// @param limit    bytes; longer messages are refused; 0: no limit but the device's
ntbmsg_endpoint_options endpoint_options(uint64_t queues, uint64_t ring_lines, uint64_t longest,
                                         uint64_t limit);

/// What is to be said of it in a result.
app::ResultDevice describe_device(const std::string &name, const ntbmsg_endpoint *endpoint);

/// Frees what an earlier measurement has left on its queues.
/// @param queues  for data
void drain(ntbmsg_endpoint *endpoint, uint32_t queues);

} // namespace pktgen

#endif

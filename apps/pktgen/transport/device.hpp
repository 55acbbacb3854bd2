// SPDX-License-Identifier: BSD-3-Clause
// One device of this end: its endpoint, and what the driver knows of it.
#ifndef PKTGEN_TRANSPORT_DEVICE_HPP
#define PKTGEN_TRANSPORT_DEVICE_HPP

#include <cstdint>
#include <string>

#include "result.hpp"

#include <ntbmsg.h>

namespace pktgen
{

/// What the endpoint has to be good for.
struct Needs {
    uint64_t queues;     ///< for data; one more is added for the control messages
    uint64_t ring_lines; ///< of each; 0: as the device chooses
    uint64_t longest; ///< message in bytes that is sent or taken; 0: what the device takes anyway
    uint64_t limit;   ///< bytes; longer messages are refused; 0: no limit but the device's
    bool channels;    ///< one for each queue as well
};
ntbmsg_endpoint_options endpoint_options(const Needs &needs);

/// What is to be said of it in a result.
app::ResultDevice describe_device(const std::string &name, const ntbmsg_endpoint *endpoint);

/// Longest message in bytes that a peer can build in the receive buffers of a device at once: each
/// of them takes a line of the ring, until it is committed.
uint32_t longest_built(const std::string &name);

/// Frees what an earlier measurement has left on its queues.
/// @param queues  for data
void discard_received(ntbmsg_endpoint *endpoint, uint32_t queues);

} // namespace pktgen

#endif

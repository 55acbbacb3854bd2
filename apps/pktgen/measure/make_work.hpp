// SPDX-License-Identifier: BSD-3-Clause
// From a point to the works of either end, one a queue: where operations and modes meet their
// loops.
#ifndef PKTGEN_MEASURE_MAKE_WORK_HPP
#define PKTGEN_MEASURE_MAKE_WORK_HPP

#include <memory>
#include <vector>

#include "measure/poster.hpp"
#include "measure/trips.hpp"
#include "measure/work.hpp"
#include "traffic/capture.hpp"
#include "traffic/packets.hpp"
#include "transport/channels.hpp"
#include "transport/region.hpp"

namespace pktgen
{

/// What messages and operations travel by. All outlive the works.
struct Transports {
    ntbmsg_endpoint *endpoint;
    const Channels *channels; ///< as many as the point has queues, where it wants them
    const Region *region;     ///< open where this end exposes memory
};

/// What the client brings beside the point. All outlive the works.
struct ClientExtras {
    const Packets *content; ///< what is sent, or whose sizes are; NULL: as the point says
    bool replay;            ///< content is sent itself
    bool recorded_pace;
    bool in_place;    ///< messages are built in receive buffers of the peer
    Capture *capture; ///< or NULL
    bool realtime;    ///< where the point is short enough
    unsigned lcores;  ///< at most
};

/// What works of one end write down. Outlives them.
struct Notebook {
    std::vector<std::unique_ptr<Timings>> timings; ///< one a work
    std::unique_ptr<Uniques> uniques;              ///< where values are to be unique
};

/// Whether an end exposes memory for one-sided operations.
bool exposes(const Point &point, bool client);

using Works = std::vector<std::unique_ptr<Work>>;

/// @param point  that check() accepts, of all queues
/// @param works  gets one more for each queue
void make_client_works(const Transports &transports, const Point &point, const ClientExtras &extras,
                       Notebook &notebook, Works &works);
void make_server_works(const Transports &transports, const Point &point, Capture *capture,
                       Notebook &notebook, Works &works);

} // namespace pktgen

#endif

// SPDX-License-Identifier: BSD-3-Clause
// From a point to the work of either end: where operations and modes meet their loops.
#ifndef PKTGEN_MAKE_WORK_HPP
#define PKTGEN_MAKE_WORK_HPP

#include <memory>

#include "capture.hpp"
#include "channels.hpp"
#include "packets.hpp"
#include "round_trips.hpp"
#include "work.hpp"

namespace pktgen
{

/// What messages travel by. Both outlive the work.
struct Ways {
    ntbmsg_endpoint *endpoint;
    const Channels *channels; ///< NULL: there are none, and no point wants them
};

/// What the driving end brings beside the point. All outlive the work.
struct DriverExtras {
    Timings *timings;
    const Packets *content; ///< what is sent, or whose sizes are; NULL: as the point says
    bool replay;            ///< content is sent itself
    bool recorded_pace;
    Capture *capture; ///< or NULL
    bool realtime;    ///< where the point is short enough
};

/// @param point  that check() accepts
std::unique_ptr<Work> make_driver_work(const Ways &ways, const Point &point,
                                       const DriverExtras &extras, uint64_t now);
std::unique_ptr<Work> make_server_work(const Ways &ways, const Point &point, Capture *capture,
                                       uint64_t now);

} // namespace pktgen

#endif

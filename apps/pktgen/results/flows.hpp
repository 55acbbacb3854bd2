// SPDX-License-Identifier: BSD-3-Clause
// What both ends say of a measurement, queue by queue, becomes flows and checks of a result.
#ifndef PKTGEN_RESULTS_FLOWS_HPP
#define PKTGEN_RESULTS_FLOWS_HPP

#include <cstdint>
#include <span>
#include <string>

#include "measure/work.hpp"
#include "result.hpp"
#include "session/control.hpp"

namespace pktgen
{

/// Of one queue.
struct Account {
    std::string device; ///< which peer; empty: there is one
    uint32_t queue = 0;
    int cpu = -1; ///< that drove it at the client
    const Work *here = nullptr;
    const ControlMessage *there = nullptr; ///< the server's report; NULL: it did not come
};

/// @param replay  the payload is that of a file
void add_flows(const Point &point, bool replay, std::span<const Account> accounts,
               app::ResultPoint &result);

} // namespace pktgen

#endif

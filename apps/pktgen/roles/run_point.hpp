// SPDX-License-Identifier: BSD-3-Clause
// One measurement from the client, with one server or, for incast, several.
#ifndef PKTGEN_ROLES_RUN_POINT_HPP
#define PKTGEN_ROLES_RUN_POINT_HPP

#include <span>

#include "measure/make_work.hpp"
#include "result.hpp"
#include "session/server_link.hpp"

namespace pktgen
{

/// @param servers  connected; @param serial  of this point, another one each time
/// @param extras  but for the timings
/// @return flows, latencies, checks, and whether it is complete; ends early when a signal comes
app::ResultPoint run_point(std::span<ServerLink *const> servers, const Point &point,
                           uint32_t serial, ClientExtras extras);

} // namespace pktgen

#endif

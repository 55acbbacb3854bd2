// SPDX-License-Identifier: BSD-3-Clause
// How near the two cores are to each other right now. A hypervisor may move virtual CPUs every few
// seconds, which changes every figure two- to tenfold, so figures are only compared within a class.
#ifndef APP_PLACEMENT_HPP
#define APP_PLACEMENT_HPP

#include <string_view>

namespace app
{

enum class Placement : unsigned { smt, ccx, other, far };
inline constexpr unsigned placement_count = 4;

/// @param round_trip_ns of a two-line ping-pong, plain polling
Placement classify(double round_trip_ns);
std::string_view name_of(Placement);

/// Whether two probes around a measurement show the same place.
bool same_place(double before_ns, double after_ns);

} // namespace app

#endif

// SPDX-License-Identifier: BSD-3-Clause
// How near the two cores are to each other right now. A hypervisor may move virtual CPUs every few
// seconds, which changes every figure two- to tenfold, so figures are only compared within a class.
#ifndef BENCH_PLACEMENT_HPP
#define BENCH_PLACEMENT_HPP

#include <string_view>

namespace bench
{

enum class Class : unsigned { smt, ccx, other, far };
inline constexpr unsigned class_count = 4;
/// The class that figures are judged in, where it occurs.
inline constexpr Class judged_class = Class::ccx;

/// @param round_trip_ns of a two-line ping-pong, plain polling
Class classify(double round_trip_ns);
std::string_view name_of(Class);

/// Whether two probes around a measurement show the same place.
bool same_place(double before_ns, double after_ns);

} // namespace bench

#endif

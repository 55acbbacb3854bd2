// SPDX-License-Identifier: BSD-3-Clause
#include "placement.hpp"

#include <algorithm>

namespace app
{

namespace
{

// Bounds between the clusters that probes fall into: two threads of one core about 50 ns, two cores
// under one last-level cache 90 to 130 ns, two core complexes about 500 ns. A mesh of many cores
// lies between the last two.
constexpr double ccx_from_ns = 90;
constexpr double ccx_to_ns = 130;
constexpr double far_from_ns = 400;
constexpr double largest_drift = 1.25;

} // namespace

Placement classify(double round_trip_ns)
{
    if (round_trip_ns < ccx_from_ns)
        return Placement::smt;
    if (round_trip_ns <= ccx_to_ns)
        return Placement::ccx;
    return round_trip_ns < far_from_ns ? Placement::other : Placement::far;
}

std::string_view name_of(Placement place)
{
    constexpr std::string_view names[placement_count] = {"smt", "ccx", "other", "far"};
    return names[static_cast<unsigned>(place)];
}

bool same_place(double before_ns, double after_ns)
{
    return classify(before_ns) == classify(after_ns) &&
           std::max(before_ns, after_ns) <= largest_drift * std::min(before_ns, after_ns);
}

} // namespace app

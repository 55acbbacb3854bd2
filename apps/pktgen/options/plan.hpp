// SPDX-License-Identifier: BSD-3-Clause
// From the options to the list of measurements.
#ifndef PKTGEN_OPTIONS_PLAN_HPP
#define PKTGEN_OPTIONS_PLAN_HPP

#include <cstddef>
#include <optional>
#include <vector>

#include "options/command_line.hpp"
#include "point/point.hpp"
#include "traffic/packets.hpp"

namespace pktgen
{

struct Planned {
    Point point;
    size_t device;                ///< index of it in the options; incast takes all
    uint32_t repeat;              ///< from 0
    std::optional<CopyMode> copy; ///< nothing: as the device is
};

/// Every combination, once after the other and then again for each repetition, so that a change of
/// the machine in the meantime shows in the repetitions and not between sizes.
/// @param packets  of --pcap or --mix pcap:FILE; else empty
std::vector<Planned> plan_for(const Options &options, const Packets &packets);

/// The longest message that any of them needs, bytes.
uint32_t longest_message(const std::vector<Planned> &plan);

} // namespace pktgen

#endif

// SPDX-License-Identifier: BSD-3-Clause
#ifndef ECHO_ROUND_TRIP_SEND_HPP
#define ECHO_ROUND_TRIP_SEND_HPP

#include "options/command_line.hpp"

namespace echo
{

/// Sends the file, compares what comes back with it, and prints the report.
/// @return exit status: 0 or 1
int send(const Options &options);

} // namespace echo

#endif

// SPDX-License-Identifier: BSD-3-Clause
#ifndef ECHO_ROUND_TRIP_SERVE_HPP
#define ECHO_ROUND_TRIP_SERVE_HPP

#include "options/command_line.hpp"

namespace echo
{

/// Sends back what comes until a signal ends it, or with --once until the first peer is lost.
/// @return exit status: 0 or 1
int serve(const Options &options);

} // namespace echo

#endif

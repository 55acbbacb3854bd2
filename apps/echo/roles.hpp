// SPDX-License-Identifier: BSD-3-Clause
// What ntbmsg-echo can be: either side of a file's way there and back, or the harness.
#ifndef ECHO_ROLES_HPP
#define ECHO_ROLES_HPP

#include "options/command_line.hpp"

namespace echo
{

/// Each runs until its job is done or a signal ends it, and prints its report.
/// @return exit status: 0 or 1
int serve(const Options &options);
int send(const Options &options);
int interact(const Options &options);

} // namespace echo

#endif

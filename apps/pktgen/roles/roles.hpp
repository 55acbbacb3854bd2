// SPDX-License-Identifier: BSD-3-Clause
// The two ends of ntbmsg-pktgen.
#ifndef PKTGEN_ROLES_ROLES_HPP
#define PKTGEN_ROLES_ROLES_HPP

#include "options/command_line.hpp"

namespace pktgen
{

/// Each runs until its job is done or a signal ends it. @return exit status
int serve(const Options &options);
/// @param command  the command line, for the result file
int drive(const Options &options, const std::string &command);

} // namespace pktgen

#endif

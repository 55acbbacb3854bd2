// SPDX-License-Identifier: BSD-3-Clause
#ifndef ECHO_PROMPT_INTERACT_HPP
#define ECHO_PROMPT_INTERACT_HPP

#include "options/command_line.hpp"

namespace echo
{

/// Runs the harness by commands, or in one mode until a signal ends it.
/// @return exit status: 0 or 1
int interact(const Options &options);

} // namespace echo

#endif

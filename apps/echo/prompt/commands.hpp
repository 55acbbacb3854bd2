// SPDX-License-Identifier: BSD-3-Clause
// The commands of the harness.
#ifndef ECHO_PROMPT_COMMANDS_HPP
#define ECHO_PROMPT_COMMANDS_HPP

#include <vector>

#include "prompt/grammar.hpp"

namespace echo
{

class Harness;

/// @param quit  set true by the command that ends the program
std::vector<Command> commands(Harness &harness, bool &quit);

} // namespace echo

#endif

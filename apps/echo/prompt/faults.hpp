// SPDX-License-Identifier: BSD-3-Clause
// Faults of the twin by name.
#ifndef ECHO_PROMPT_FAULTS_HPP
#define ECHO_PROMPT_FAULTS_HPP

#include <cstdint>
#include <string>

namespace echo
{

/// Causes a fault on device @p device, or takes it back.
/// @return empty, or one line that says why not
std::string inject(uint16_t device, const std::string &fault, uint64_t argument);

/// "a|b|c"
std::string fault_names(char separator);

} // namespace echo

#endif

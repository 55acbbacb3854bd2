// SPDX-License-Identifier: BSD-3-Clause
// Amounts as a person reads them.
#ifndef APP_UNITS_HPP
#define APP_UNITS_HPP

#include <string>

namespace app
{

/// "1.50 GB", "812 kB": three digits and a decimal prefix. Prefixes below 1 for seconds only.
std::string with_unit(double value, const char *unit);

} // namespace app

#endif

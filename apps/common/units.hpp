// SPDX-License-Identifier: BSD-3-Clause
// Amounts as a person reads them.
#ifndef APP_UNITS_HPP
#define APP_UNITS_HPP

#include <string>

#include "histogram.hpp"

namespace app
{

/// "1.50 GB", "812 kB": three digits and a decimal prefix. Prefixes below 1 for seconds only.
std::string with_unit(double value, const char *unit);

/// "p50 1.02 us  p90 ...  p99 ...  p99.9 ...  max 9.00 us" of times in ticks.
std::string quantiles_text(const Histogram &times, double ticks_per_second);

} // namespace app

#endif

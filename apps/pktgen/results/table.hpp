// SPDX-License-Identifier: BSD-3-Clause
// Results as a person reads them, a line each.
#ifndef PKTGEN_RESULTS_TABLE_HPP
#define PKTGEN_RESULTS_TABLE_HPP

#include <string>

#include "result.hpp"

namespace pktgen
{

std::string table_head();
/// With a further line for what is wrong with it.
std::string table_line(const app::ResultPoint &point);

} // namespace pktgen

#endif

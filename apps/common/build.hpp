// SPDX-License-Identifier: BSD-3-Clause
// Where a program puts together what it sends: the option --build.
#ifndef APP_BUILD_HPP
#define APP_BUILD_HPP

#include <string>

namespace app
{

/// "mbuf" or "in-place", as options and results have it.
const char *build_name(bool in_place);

/// What --build says. Empty: not given, in an mbuf.
/// @return empty, or what is wrong
std::string parse_build(const std::string &text, bool &in_place);

} // namespace app

#endif

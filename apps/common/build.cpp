// SPDX-License-Identifier: BSD-3-Clause
#include "build.hpp"

namespace app
{

const char *build_name(bool in_place)
{
    return in_place ? "in-place" : "mbuf";
}

std::string parse_build(const std::string &text, bool &in_place)
{
    if (!text.empty() && text != build_name(false) && text != build_name(true))
        return "--build " + text + ": must be mbuf or in-place";
    in_place = text == build_name(true);
    return {};
}

} // namespace app

// SPDX-License-Identifier: BSD-3-Clause
#include "version.hpp"

#include <cerrno>
#include <cstdio>
#include <string_view>

namespace app
{

bool show_version(int argc, char **argv)
{
    if (argc != 2 || std::string_view(argv[1]) != "--version")
        return false;
    std::printf("%s %s\n", program_invocation_short_name, MEASURE_VERSION);
    return true;
}

} // namespace app

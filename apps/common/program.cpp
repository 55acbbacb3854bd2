// SPDX-License-Identifier: BSD-3-Clause
#include "program.hpp"

#include <cstdio>
#include <string_view>

#include <rte_version.h>

#include "build_info.hpp"
#include "eal.hpp"
#include "output.hpp"
#include "signals.hpp"

namespace app
{

namespace
{

constexpr int wrong_usage = 2;

/// Help and version alone are not EAL's, which has options of the same names.
bool asks_alone(int argc, char **argv)
{
    return argc == 2 &&
           (std::string_view(argv[1]) == "--help" || std::string_view(argv[1]) == "--version");
}

} // namespace

std::string version_text(const char *name)
{
    return std::string(name) + " " + APP_VERSION + " (" + APP_BUILD_COMMIT + "), " + rte_version();
}

int run_program(int argc, char **argv, const Program &program)
{
    survive_file_limit(); // EAL and devices make files, too
    const OwnArguments own =
        asks_alone(argc, argv) ? OwnArguments{argc, argv, true} : own_arguments(argc, argv);
    const std::string error = own.given
                                  ? program.parse(own.argc, own.argv)
                                  : std::string("\"--\" and the program's options are missing");
    if (!error.empty()) {
        std::fprintf(stderr, "%s: %s (see %s --help)\n", program.name, error.c_str(), program.name);
        return wrong_usage;
    }
    if (program.help || program.version) {
        const std::string text =
            program.help ? program.help_text() : version_text(program.name) + "\n";
        std::fputs(text.c_str(), stdout);
        return finish_output(program.name, 0);
    }
    const Eal eal(argc, argv);
    if (!eal.running()) {
        std::fprintf(stderr, "%s: EAL did not start\n", program.name);
        return 1;
    }
    catch_signals();
    return finish_output(program.name, program.run());
}

} // namespace app

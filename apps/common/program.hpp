// SPDX-License-Identifier: BSD-3-Clause
// What the main() of every application does: own options, EAL, signals, exit status.
#ifndef APP_PROGRAM_HPP
#define APP_PROGRAM_HPP

#include <functional>
#include <string>

namespace app
{

struct Program {
    const char *name;
    /// Parses the own options. @return empty, or one line that says what is wrong
    std::function<std::string(int argc, char **argv)> parse;
    const bool &help;    ///< set by parse(): print the help text
    const bool &version; ///< set by parse(): print the version
    std::string (*help_text)();
    /// Runs with EAL up. @return exit status
    std::function<int()> run;
};

/// "NAME 0.2.0 (commit), DPDK 22.11.1"
std::string version_text(const char *name);

/// Runs the program. "NAME --help" and "NAME --version" need no "--" in front.
/// @return exit status: that of run(), 1 if EAL did not start or standard output could not be
/// written, 2 if the command line is wrong
int run_program(int argc, char **argv, const Program &program);

} // namespace app

#endif

// SPDX-License-Identifier: BSD-3-Clause
// Where commands come from: a terminal, a pipe, a file. While none comes, the harness is looked
// after.
#ifndef ECHO_PROMPT_PROMPT_HPP
#define ECHO_PROMPT_PROMPT_HPP

#include <functional>
#include <string>

#include "prompt/grammar.hpp"

namespace echo
{

/// What a source of commands needs to know.
struct Console {
    Grammar &grammar;
    const bool &quit;                  ///< a command asked for the end
    const std::function<void()> &tick; ///< called some fifty times a second
};

/// A prompt with completion and history on the terminal of standard input, until "quit", Ctrl-D
/// or a signal.
void run_terminal(const Console &console);

/// Runs lines of @p fd until its end, "quit", a signal, or the first line that fails.
/// @param name  for the error
/// @return empty, or one line that names file, line and error
std::string run_lines(const Console &console, int fd, const std::string &name);

/// The same with a file of that name.
std::string run_file(const Console &console, const std::string &path);

} // namespace echo

#endif

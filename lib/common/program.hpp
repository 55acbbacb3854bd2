// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTB_COMMON_PROGRAM_HPP
#define NTB_COMMON_PROGRAM_HPP

#include <string>

namespace ntb
{

/// What would be executed.
struct Program {
    int error = 0;       ///< errno: there is no such program, or it may not be executed
    std::string path;    ///< of the file; empty if there is none
    bool elf = false;    ///< else a script, perhaps without a first line
    std::string refuses; ///< why the dynamic linker loads no library into it; empty: it does
};

/// Finds a program as execvp() does, and looks into it; through scripts, at their interpreters.
Program find_program(const char *name);

} // namespace ntb

#endif

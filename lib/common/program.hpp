// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTB_COMMON_PROGRAM_HPP
#define NTB_COMMON_PROGRAM_HPP

#include <cerrno>
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

/// @param place absolute, or as seen from the folder of this program, so that both may be moved
/// @return its absolute path; @p place itself where this program's own is not known
std::string beside_this_program(const std::string &place);

/// Whether the dynamic linker takes it from its list, which it splits at blanks and colons.
bool can_be_preloaded(const std::string &library);
/// Adds a library to those that the next program loads first.
void preload(const std::string &library);
/// Hands a path to the next program, which may be in another folder by then.
void set_path_variable(const char *variable, const std::string &path);

/// Becomes the program that was found for words[0]. Returns only where that fails.
/// @return errno
int execute(const Program &program, char *const *words);
/// What a shell's status is for a program that cannot be started. @param error errno
constexpr int status_of(int error)
{
    constexpr int not_executable = 126, not_found = 127;
    return error == ENOENT ? not_found : not_executable;
}

} // namespace ntb

#endif

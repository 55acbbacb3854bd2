// SPDX-License-Identifier: BSD-3-Clause
// A test's own program, begun anew in another process.
#ifndef TEST_SUPPORT_OWN_PROGRAM_HPP
#define TEST_SUPPORT_OWN_PROGRAM_HPP

#include <fcntl.h>
#include <spawn.h>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

namespace plx::test
{

inline constexpr int child_control = 3;

/// @param name      that it has in place of the program's
/// @param variable  by which it knows itself, as "NAME=1"
/// @param control   its end of a socket; it finds it at child_control
/// @return its process, or -1
inline pid_t begin_own_program(const char *name, const char *variable, int control)
{
    std::vector<char *> environment;
    for (char **one = environ; *one != nullptr; one++)
        environment.push_back(*one);
    environment.push_back(const_cast<char *>(variable));
    environment.push_back(nullptr);
    char *const words[] = {const_cast<char *>(name), nullptr};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    // Its own control alone: what another process holds open has no end.
    posix_spawn_file_actions_adddup2(&actions, control, child_control);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addclosefrom_np(&actions, child_control + 1);
    pid_t pid = -1;
    EXPECT_EQ(posix_spawn(&pid, "/proc/self/exe", &actions, nullptr, words, environment.data()), 0);
    posix_spawn_file_actions_destroy(&actions);
    return pid;
}

} // namespace plx::test

#endif

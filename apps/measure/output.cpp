// SPDX-License-Identifier: BSD-3-Clause
#include "output.hpp"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <poll.h>
#include <unistd.h>

namespace app
{

namespace
{

bool reader_has_left()
{
    pollfd out = {STDOUT_FILENO, 0, 0};
    return poll(&out, 1, 0) == 1 && (out.revents & (POLLERR | POLLHUP)) != 0;
}

} // namespace

void survive_file_limit()
{
    std::signal(SIGXFSZ, SIG_IGN);
}

int finish_output(const char *program, int status)
{
    const bool lost_before = std::ferror(stdout) != 0;
    const int error = std::fflush(stdout) != 0 ? errno : 0;
    // A program may be started without standard output: nothing is lost then.
    if ((!lost_before && error == 0) || error == EBADF || reader_has_left())
        return status;
    std::fprintf(stderr, "%s: standard output: %s\n", program,
                 error != 0 ? std::strerror(error) : "some of it could not be written");
    return status != 0 ? status : 1;
}

} // namespace app

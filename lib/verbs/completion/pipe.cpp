// SPDX-License-Identifier: BSD-3-Clause
#include "completion/pipe.hpp"

#include <cerrno>

#include <fcntl.h>
#include <unistd.h>

namespace ntb::verbs
{

int Pipe::create()
{
    if (pipe2(ends_, O_CLOEXEC) != 0)
        return -errno;
    // Of the two ends' open files only the writer's never waits: reads block as programs expect.
    return fcntl(ends_[1], F_SETFL, O_NONBLOCK) == 0 ? 0 : -errno;
}

Pipe::~Pipe()
{
    for (const int fd : ends_)
        if (fd >= 0)
            close(fd);
}

bool Pipe::write(const void *record, std::uint32_t bytes)
{
    // Records are far below PIPE_BUF: written as a whole or not at all.
    return ::write(ends_[1], record, bytes) == static_cast<ssize_t>(bytes);
}

} // namespace ntb::verbs

// SPDX-License-Identifier: BSD-3-Clause
#include "whole_file.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace app
{

namespace
{

std::string write_to(int fd, std::string_view text)
{
    while (!text.empty()) {
        const ssize_t written = ::write(fd, text.data(), text.size());
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return std::strerror(written < 0 ? errno : ENOSPC);
        text.remove_prefix(static_cast<size_t>(written));
    }
    return {};
}

std::string write_as(const std::string &path, int flags, std::string_view text)
{
    const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | flags, 0666);
    if (fd < 0)
        return std::strerror(errno);
    std::string error = write_to(fd, text);
    // An error of the disk that is reported after the rename would lose the file behind the new
    // name.
    struct stat status = {};
    if (error.empty() && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && fsync(fd) != 0)
        error = std::strerror(errno);
    if (::close(fd) != 0 && error.empty())
        error = std::strerror(errno);
    return error;
}

std::string replace(const std::string &path, std::string_view text)
{
    const std::string beside = path + ".part";
    std::string error = write_as(beside, O_CREAT | O_TRUNC, text);
    if (error.empty() && ::rename(beside.c_str(), path.c_str()) != 0)
        error = std::strerror(errno);
    if (!error.empty())
        ::unlink(beside.c_str());
    return error;
}

} // namespace

std::string write_whole(const std::string &path, std::string_view text)
{
    if (path == "-") {
        const std::string error = write_to(STDOUT_FILENO, text);
        return error.empty() ? error : "standard output: " + error;
    }
    struct stat status = {};
    const bool special = ::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode);
    const std::string error = special ? write_as(path, 0, text) : replace(path, text);
    return error.empty() ? error : path + ": " + error;
}

} // namespace app

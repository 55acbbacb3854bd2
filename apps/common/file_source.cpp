// SPDX-License-Identifier: BSD-3-Clause
#include "file_source.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

namespace app
{

namespace
{

constexpr size_t keep_bytes = size_t{64} << 20;
constexpr size_t block_bytes = size_t{1} << 20;

} // namespace

FileSource::~FileSource()
{
    if (fd_ > STDIN_FILENO)
        ::close(fd_);
}

std::string FileSource::open(const std::string &path)
{
    const bool standard_input = path == "-";
    name_ = standard_input ? "standard input" : path;
    fd_ = standard_input ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat status = {};
    if (fd_ < 0 || fstat(fd_, &status) != 0)
        return name_ + ": " + std::strerror(errno);
    if (S_ISDIR(status.st_mode))
        return name_ + " is a folder";
    regular_ = S_ISREG(status.st_mode);
    if (!regular_) {
        buffer_.resize(block_bytes);
        return {};
    }
    size_ = static_cast<uint64_t>(status.st_size);
    if (size_ == 0)
        return name_ + " is empty: there is nothing to send";
    whole_ = size_ <= keep_bytes;
    buffer_.resize(whole_ ? static_cast<size_t>(size_) : block_bytes);
    while (whole_ && end_ < buffer_.size() && !at_end_) {
        if (!refill())
            return error_;
    }
    return {};
}

bool FileSource::refill()
{
    const ssize_t got = ::read(fd_, buffer_.data() + end_, buffer_.size() - end_);
    if (got < 0) {
        // A signal is looked at by the caller, who asks again if it goes on.
        if (errno == EINTR || errno == EAGAIN)
            return true;
        error_ = name_ + ": " + std::strerror(errno);
        return false;
    }
    at_end_ = got == 0;
    end_ += static_cast<size_t>(got);
    return true;
}

FileSource::Got FileSource::next(std::span<std::byte> into, size_t &bytes)
{
    while (end_ - begin_ < into.size() && !at_end_ && !whole_) {
        pollfd ready = {fd_, POLLIN, 0};
        if (!regular_ && poll(&ready, 1, 0) <= 0)
            return Got::not_yet;
        // Room for one message at least, at the end of a buffer that starts with what is left.
        std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
        end_ -= begin_;
        begin_ = 0;
        buffer_.resize(std::max(buffer_.size(), into.size()));
        if (!refill())
            return Got::failed;
        if (!regular_ && end_ < into.size() && !at_end_)
            return Got::not_yet;
    }
    bytes = std::min(end_ - begin_, into.size());
    if (bytes == 0)
        return Got::end;
    std::memcpy(into.data(), buffer_.data() + begin_, bytes);
    begin_ += bytes;
    return Got::piece;
}

bool FileSource::rewind()
{
    if (!regular_)
        return false;
    begin_ = 0;
    if (whole_)
        return true;
    end_ = 0;
    at_end_ = false;
    return lseek(fd_, 0, SEEK_SET) == 0;
}

} // namespace app

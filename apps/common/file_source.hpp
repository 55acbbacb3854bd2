// SPDX-License-Identifier: BSD-3-Clause
// A file or standard input as a stream of pieces, for a loop that must not wait.
#ifndef APP_FILE_SOURCE_HPP
#define APP_FILE_SOURCE_HPP

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace app
{

/// A regular file of up to 64 MiB is read once, at open, so that no system call disturbs what is
/// measured; larger files and pipes are read in blocks.
class FileSource
{
public:
    FileSource() = default;
    ~FileSource();
    FileSource(const FileSource &) = delete;
    FileSource &operator=(const FileSource &) = delete;

    /// @param path  "-" for standard input
    /// @return empty, or one line that says what is wrong
    std::string open(const std::string &path);

    enum class Got {
        piece,   ///< all of `into`, or less at the end of the file
        not_yet, ///< a pipe has nothing now
        end,     ///< nothing is left
        failed,  ///< error() says why
    };

    /// Copies the next piece out. @param bytes  set to its length
    Got next(std::span<std::byte> into, size_t &bytes);

    /// Back to the start. @return false: this is no file that can be read twice
    bool rewind();

    uint64_t size() const { return size_; } ///< 0 where it is not known
    const std::string &error() const { return error_; }

private:
    bool refill(); ///< one read; false: it failed

    std::string name_;
    std::string error_;
    std::vector<std::byte> buffer_;
    size_t begin_ = 0, end_ = 0; ///< what of the buffer is not taken yet
    uint64_t size_ = 0;
    int fd_ = -1;
    bool regular_ = false;
    bool at_end_ = false; ///< the file has nothing more, the buffer may have
    bool whole_ = false;  ///< the buffer holds the whole file
};

} // namespace app

#endif

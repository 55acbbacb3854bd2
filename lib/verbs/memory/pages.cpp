// SPDX-License-Identifier: BSD-3-Clause
#include "memory/pages.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <unistd.h>

namespace ntb::verbs
{
namespace
{

/// Lines of a file, cut to what a reader of them wants.
class Lines
{
public:
    explicit Lines(const char *path) : file_(open(path, O_RDONLY | O_CLOEXEC)) {}
    ~Lines()
    {
        if (file_ >= 0)
            close(file_);
    }
    Lines(const Lines &) = delete;
    Lines &operator=(const Lines &) = delete;

    bool good() const { return file_ >= 0 && !failed_; }
    /// The next line without its end. NULL: there is none, or it cannot be read.
    const char *next()
    {
        std::size_t length = 0;
        for (;;) {
            if (begin_ == end_ && !fill())
                return nullptr;
            const char c = buffer_[begin_++];
            if (c == '\n')
                break;
            if (length < sizeof(line_) - 1)
                line_[length++] = c;
        }
        line_[length] = '\0';
        return line_;
    }

private:
    bool fill()
    {
        if (file_ < 0)
            return false;
        ssize_t got;
        do
            got = read(file_, buffer_, sizeof(buffer_));
        while (got < 0 && errno == EINTR);
        failed_ = got < 0;
        begin_ = 0;
        end_ = got > 0 ? static_cast<std::size_t>(got) : 0;
        return got > 0;
    }

    int file_;
    bool failed_ = false;
    std::size_t begin_ = 0, end_ = 0;
    char buffer_[8192];
    char line_[256];
};

// Digits at the beginning, and moves behind them. @retval false there are none
bool read_number(const char *&text, unsigned base, std::uint64_t &number)
{
    const char *const first = text;
    number = 0;
    for (;; ++text) {
        const char c = *text;
        const unsigned digit = c >= '0' && c <= '9'   ? static_cast<unsigned>(c - '0')
                               : c >= 'a' && c <= 'f' ? static_cast<unsigned>(c - 'a') + 10
                                                      : 99;
        if (digit >= base)
            return text != first;
        number = number * base + digit;
    }
}

struct Line {
    std::uint64_t begin, end, offset, device, inode;
    bool is_plain, is_shared;
};

// "begin-end rwxp offset major:minor inode  name"
bool read_mapping(const char *text, Line &line)
{
    std::uint64_t major_number, minor_number;
    if (!read_number(text, 16, line.begin) || *text++ != '-' || !read_number(text, 16, line.end) ||
        *text++ != ' ' || strlen(text) < 5)
        return false;
    const bool is_private_data = strncmp(text, "rw-p ", 5) == 0;
    line.is_shared = text[3] == 's';
    text += 5;
    if (!read_number(text, 16, line.offset) || *text++ != ' ' ||
        !read_number(text, 16, major_number) || *text++ != ':' ||
        !read_number(text, 16, minor_number) || *text++ != ' ' ||
        !read_number(text, 10, line.inode))
        return false;
    text += strspn(text, " ");
    line.device = makedev(static_cast<unsigned>(major_number), static_cast<unsigned>(minor_number));
    // Stacks are named, huge pages of a file system have its inode.
    line.is_plain = is_private_data && line.inode == 0 &&
                    (*text == '\0' || strcmp(text, "[heap]") == 0 ||
                     strncmp(text, "[anon:", strlen("[anon:")) == 0);
    return true;
}

// Locked, huge, a stack, not to be inherited or wiped, of a device, watched by a userfaultfd: what
// the program was promised by the kernel.
bool has_promises(const char *flags)
{
    static constexpr char promises[][3] = {"lo", "ht", "gd", "gu", "dc", "wf", "io", "pf",
                                           "um", "uw", "ui", "sh", "ss", "dd", "sl"};
    for (; *flags != '\0'; flags += strspn(flags, " "), flags += strcspn(flags, " "))
        for (const char(&promise)[3] : promises) {
            const char *const word = flags + strspn(flags, " ");
            if (strncmp(word, promise, 2) == 0 && (word[2] == ' ' || word[2] == '\0'))
                return true;
        }
    return false;
}

/// @param from, to  the first page, and the last one
bool is_mapped(std::uintptr_t from, std::uintptr_t to)
{
    constexpr std::uint64_t most = 4096; // pages a call
    unsigned char there[most];
    for (;;) {
        const std::uint64_t pages = std::min(most, (to - from) / page + 1);
        if (mincore(reinterpret_cast<void *>(from), pages * page, there) != 0 && errno == ENOMEM)
            return false;
        if (to - from < pages * page)
            return true;
        from += pages * page;
    }
}

/// Where the kernel cannot say (before Linux 5.14), it may. EFAULT is said of what would be a
/// SIGBUS, such as memory behind the end of its file, and of a page that is just being moved
/// (memory/exchange.hpp): of that no longer, once it has been.
bool may_access(std::uintptr_t at, bool writes)
{
    static const bool can_say = madvise(nullptr, 0, MADV_POPULATE_READ) == 0;
    const int advice = writes ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;
    constexpr unsigned most = 1000, pause_us = 1000;
    for (unsigned i = 0; can_say && madvise(reinterpret_cast<void *>(at), page, advice) != 0; ++i) {
        if (errno != EFAULT)
            return errno != ENOMEM && errno != EINVAL;
        if (i == most)
            return false;
        usleep(pause_us);
    }
    return true;
}

} // namespace

int find_mappings(const std::byte *memory, std::uint64_t bytes, Mapping *mappings, int max)
{
    const auto begin = reinterpret_cast<std::uintptr_t>(memory);
    const std::uintptr_t end = begin + bytes;
    int n = 0;
    bool inside = false;
    Lines lines("/proc/self/smaps");
    while (const char *text = lines.next()) {
        constexpr char flags[] = "VmFlags:";
        if (inside && strncmp(text, flags, strlen(flags)) == 0) {
            Mapping &last = mappings[n - 1];
            last.is_plain = last.is_plain && !has_promises(text + strlen(flags));
            continue;
        }
        Line line;
        if (!read_mapping(text, line))
            continue; // of the mapping before
        if (line.begin >= end)
            break;
        inside = line.end > begin;
        if (!inside)
            continue;
        if (n == max)
            return -1;
        const std::uint64_t from = std::max<std::uint64_t>(line.begin, begin);
        const std::uint64_t to = std::min<std::uint64_t>(line.end, end);
        mappings[n++] = {reinterpret_cast<std::byte *>(from),
                         to - from,
                         line.offset + (from - line.begin),
                         line.device,
                         line.inode,
                         line.is_plain,
                         line.is_shared};
    }
    return lines.good() ? n : -1;
}

bool is_plain_memory(const std::byte *memory, std::uint64_t bytes)
{
    Mapping mapping;
    return find_mappings(memory, bytes, &mapping, 1) == 1 && mapping.bytes == bytes &&
           mapping.is_plain;
}

bool is_accessible(const void *memory, std::uint64_t bytes, bool writes)
{
    if (bytes == 0)
        return true;
    const auto at = reinterpret_cast<std::uintptr_t>(memory);
    if (at + (bytes - 1) < at)
        return false;
    const std::uintptr_t first = at & ~(page - 1), last = (at + (bytes - 1)) & ~(page - 1);
    return may_access(first, writes) && (last == first || may_access(last, writes)) &&
           is_mapped(first, last);
}

} // namespace ntb::verbs

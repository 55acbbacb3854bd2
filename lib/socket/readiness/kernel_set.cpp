// SPDX-License-Identifier: BSD-3-Clause
#include "readiness/kernel_set.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "kernel/descriptors.hpp"
#include "kernel/system.hpp"
#include "readiness/event_masks.hpp"

namespace ntb::socket
{

namespace
{

std::atomic<int> always_readable = -1;

// The kernel has no epoll_pwait2(), or a sandbox that does not know it refuses it: it is not asked
// for again.
std::atomic<bool> lacks_wait2 = false;

bool is_lacking(long result)
{
    if (result != -ENOSYS && result != -EPERM)
        return false;
    lacks_wait2.store(true, std::memory_order_relaxed);
    return true;
}

// One number of a line of fdinfo behind a word. @return false: the word is not there
bool number_behind(const char *line, const char *word, int base, std::uint64_t &number)
{
    const char *at = std::strstr(line, word);
    if (at == nullptr)
        return false;
    for (at += std::strlen(word); *at == ' ';)
        at++;
    number = 0;
    for (; *at != 0 && *at != ' ' && *at != '\n'; at++) {
        const int digit = *at <= '9' ? *at - '0' : (*at | 32) - 'a' + 10;
        if (digit < 0 || digit >= base)
            return false;
        number = number * static_cast<unsigned>(base) + static_cast<unsigned>(digit);
    }
    return true;
}

} // namespace

long kernel_wait(int epoll, epoll_event *events, int most, const Deadline &deadline,
                 const sigset_t *mask)
{
    timespec room;
    if (deadline.never() || deadline.at_once())
        return kernel::call(SYS_epoll_pwait, epoll, events, most, deadline.never() ? -1 : 0, mask,
                            8);
    const timespec *left = deadline.left(room);
    if (!lacks_wait2.load(std::memory_order_relaxed)) {
        const long n = kernel::call(SYS_epoll_pwait2, epoll, events, most, left, mask, 8);
        if (!is_lacking(n))
            return n;
    }
    const long ms =
        std::min(left->tv_sec, time_t{1000000}) * 1000 + (left->tv_nsec + 999999) / 1000000;
    return kernel::call(SYS_epoll_pwait, epoll, events, most, ms, mask, 8);
}

namespace
{
// For where calls take their time-out by value alone: no handler runs from the look on, until
// the kernel's wait lets it in.
long sleep_masked(int epoll, epoll_event *events, int most, const Deadline &deadline,
                  const sigset_t *mask, const Handled &before)
{
    std::uint64_t every = ~std::uint64_t{0}, own = 0;
    kernel::call(SYS_rt_sigprocmask, SIG_SETMASK, &every, &own, 8);
    long n = -EINTR;
    if (handled().all == before.all)
        n = kernel_wait(epoll, events, most, deadline,
                        mask != nullptr ? mask : reinterpret_cast<const sigset_t *>(&own));
    kernel::call(SYS_rt_sigprocmask, SIG_SETMASK, &own, nullptr, 8);
    return n;
}
} // namespace

long kernel_sleep(int epoll, epoll_event *events, int most, const Deadline &deadline,
                  const sigset_t *mask, const Handled &before)
{
    if (lacks_wait2.load(std::memory_order_relaxed))
        return sleep_masked(epoll, events, most, deadline, mask, before);
    timespec &time = sleep_time();
    deadline.set(time);
    // A handler that runs before this is counted; one that runs behind it leaves no time to sleep.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    long n = -EINTR;
    if (handled().all == before.all)
        n = kernel::call(SYS_epoll_pwait2, epoll, events, most, &time, mask, 8);
    time = {};
    if (is_lacking(n))
        return sleep_masked(epoll, events, most, deadline, mask, before);
    return n == 0 && handled().all != before.all ? -EINTR : n;
}

bool KernelEntry::is_off() const
{
    return (events & always) == 0;
}

namespace
{
int open_list(int epoll)
{
    char path[48];
    std::snprintf(path, sizeof path, "/proc/self/fdinfo/%d", epoll);
    return static_cast<int>(kernel::call(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0));
}

enum class Match { None, Number, File };

/// The file of a number: one that had the number before may still be a member.
class Wanted
{
public:
    Wanted(int fd, const struct stat &status)
        : number_(static_cast<unsigned>(fd)), inode_(status.st_ino),
          // As the kernel has it, and not as fstat() says it.
          device_((std::uint64_t{major(status.st_dev)} << 20) | minor(status.st_dev))
    {
    }
    /// @retval Match::Number the kernel is one that does not say which file it is
    Match match(const char *line) const
    {
        std::uint64_t number = 0, inode = 0, device = 0;
        if (!number_behind(line, "tfd:", 10, number) || number != number_)
            return Match::None;
        if (!number_behind(line, "ino:", 16, inode) || !number_behind(line, "sdev:", 16, device))
            return Match::Number;
        return inode == inode_ && device == device_ ? Match::File : Match::None;
    }

private:
    std::uint64_t number_, inode_, device_;
};

bool read_entry(const char *line, KernelEntry *entry)
{
    std::uint64_t events = 0;
    const bool is_whole =
        number_behind(line, "events:", 16, events) && number_behind(line, "data:", 16, entry->data);
    entry->events = static_cast<std::uint32_t>(events);
    return is_whole;
}

/// @param visit  of a line. @retval false of it: no more
/// @retval false the list cannot be read
template <typename Visit>
bool read_list(int epoll, Visit visit)
{
    const int file = open_list(epoll);
    if (file < 0)
        return false;
    char line[160], bytes[4096];
    std::size_t length = 0;
    bool goes_on = true;
    long n = 1;
    while (goes_on && (n = kernel::call(SYS_read, file, bytes, sizeof bytes)) > 0) {
        for (long i = 0; i < n && goes_on; i++) {
            if (length < sizeof line - 1)
                line[length++] = bytes[i];
            if (bytes[i] != '\n')
                continue;
            line[length] = 0;
            length = 0;
            goes_on = visit(line);
        }
    }
    kernel::call(SYS_close, file);
    return n >= 0;
}
} // namespace

Found find_entry(int epoll, int fd, KernelEntry *entry)
{
    struct stat status;
    if (kernel::call(SYS_fstat, fd, &status) < 0)
        return Found::Unsure;
    const Wanted wanted(fd, status);
    Found found = Found::Nothing;
    const bool is_read = read_list(epoll, [&](const char *line) {
        const Match match = wanted.match(line);
        if (match == Match::None)
            return true;
        const bool is_certain = match == Match::File;
        const bool is_second = found != Found::Nothing && !is_certain;
        found = read_entry(line, entry) && !is_second ? Found::Member : Found::Unsure;
        return !is_certain;
    });
    return is_read ? found : Found::Unsure;
}

bool list_entries(int epoll, Entries &entries)
{
    return read_list(epoll, [&entries](const char *line) {
        std::uint64_t number = 0;
        if (!number_behind(line, "tfd:", 10, number) || !entries.wants(static_cast<int>(number)))
            return true;
        struct stat status;
        const int fd = static_cast<int>(number);
        KernelEntry entry;
        if (kernel::call(SYS_fstat, fd, &status) < 0)
            entries.take(fd, nullptr);
        else if (Wanted(fd, status).match(line) != Match::None)
            entries.take(fd, read_entry(line, &entry) ? &entry : nullptr);
        return true;
    });
}

bool can_find_entries(int epoll)
{
    const int file = open_list(epoll);
    if (file >= 0)
        kernel::call(SYS_close, file);
    return file >= 0;
}

bool was_reported(int epoll, int fd)
{
    KernelEntry entry;
    return find_entry(epoll, fd, &entry) == Found::Member && entry.is_off();
}

int ready_descriptor()
{
    return always_readable.load(std::memory_order_acquire);
}

// One for the process, which lasts as long as it does.
int make_ready_descriptor(int broken)
{
    int at = always_readable.load(std::memory_order_acquire);
    if (at >= 0 && at != broken)
        return at;
    const int made = kernel::out_of_the_way(
        static_cast<int>(kernel::call(SYS_eventfd2, 1, EFD_CLOEXEC | EFD_NONBLOCK)));
    if (made >= 0 && always_readable.compare_exchange_strong(at, made))
        return made;
    if (made >= 0)
        kernel::call(SYS_close, made);
    return made < 0 ? -EMFILE : at;
}

} // namespace ntb::socket

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

#include "kernel/system.hpp"
#include "readiness/event_masks.hpp"

namespace ntb::socket
{

namespace
{

constexpr int highest_descriptors = 900;

std::atomic<int> always_readable = -1;

// Its number is high, where it disturbs no program's.
int high_eventfd()
{
    const auto low = static_cast<int>(kernel::call(SYS_eventfd2, 1, EFD_CLOEXEC | EFD_NONBLOCK));
    if (low < 0)
        return low;
    const auto high =
        static_cast<int>(kernel::call(SYS_fcntl, low, F_DUPFD_CLOEXEC, highest_descriptors));
    if (high < 0)
        return low;
    kernel::call(SYS_close, low);
    return high;
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
    const long n = kernel::call(SYS_epoll_pwait2, epoll, events, most, left, mask, 8);
    if (n != -ENOSYS)
        return n;
    const long ms =
        std::min(left->tv_sec, time_t{1000000}) * 1000 + (left->tv_nsec + 999999) / 1000000;
    return kernel::call(SYS_epoll_pwait, epoll, events, most, ms, mask, 8);
}

bool was_reported(int epoll, int fd)
{
    char path[48];
    std::snprintf(path, sizeof path, "/proc/self/fdinfo/%d", epoll);
    const auto file =
        static_cast<int>(kernel::call(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0));
    if (file < 0)
        return false;
    char line[160];
    std::size_t length = 0;
    bool reported = false;
    for (bool found = false; !found;) {
        char bytes[1024];
        const long n = kernel::call(SYS_read, file, bytes, sizeof bytes);
        if (n <= 0)
            break;
        for (long i = 0; i < n && !found; i++) {
            if (length < sizeof line - 1)
                line[length++] = bytes[i];
            if (bytes[i] != '\n')
                continue;
            line[length] = 0;
            length = 0;
            std::uint64_t number = 0, events = 0;
            found = number_behind(line, "tfd:", 10, number) &&
                    number == static_cast<std::uint64_t>(fd) &&
                    number_behind(line, "events:", 16, events);
            // Of one that is on it has these whatever the program asked for.
            reported = found && (events & always) == 0;
        }
    }
    kernel::call(SYS_close, file);
    return reported;
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
    const int made = high_eventfd();
    if (made >= 0 && always_readable.compare_exchange_strong(at, made))
        return made;
    if (made >= 0)
        kernel::call(SYS_close, made);
    return made < 0 ? made : at;
}

} // namespace ntb::socket

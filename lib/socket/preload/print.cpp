// SPDX-License-Identifier: BSD-3-Clause
// The calls that print to a descriptor.
#include "preload/upgrade.hpp"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <unistd.h>

namespace ntb::socket::preload
{

namespace
{
// What stdio would write by a system call of its own. @return as vdprintf()
int print(int fd, const char *format, va_list words)
{
    char *text = nullptr;
    const int size = vasprintf(&text, format, words);
    if (size < 0)
        return -1;
    const char *at = text;
    int left = size;
    while (left > 0) {
        // The program's: this library's, or that of a preload before it.
        const ssize_t written = ::write(fd, at, static_cast<std::size_t>(left));
        if (written <= 0)
            break;
        at += written;
        left -= static_cast<int>(written);
    }
    KeepErrno keep;
    free(text);
    return left == 0 ? size : -1;
}

bool is_connection(int fd)
{
    return Held(fd, Object::Kind::Connection).body() != nullptr;
}
} // namespace

NTB_EXPORT(int, vdprintf, int fd, const char *format, va_list words)
{
    return is_connection(fd) ? print(fd, format, words) : real().vdprintf(fd, format, words);
}

NTB_EXPORT(int, dprintf, int fd, const char *format, ...)
{
    va_list words;
    va_start(words, format);
    const int size = ntb_vdprintf(fd, format, words);
    va_end(words);
    return size;
}

NTB_EXPORT(int, __vdprintf_chk, int fd, int flag, const char *format, va_list words)
{
    return is_connection(fd) ? print(fd, format, words)
                             : real().__vdprintf_chk(fd, flag, format, words);
}

NTB_EXPORT(int, __dprintf_chk, int fd, int flag, const char *format, ...)
{
    va_list words;
    va_start(words, format);
    const int size = ntb___vdprintf_chk(fd, flag, format, words);
    va_end(words);
    return size;
}

} // namespace ntb::socket::preload

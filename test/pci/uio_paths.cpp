// SPDX-License-Identifier: BSD-3-Clause
// EAL's PCI bus names two folders outright. This program's open64() leads them into the made-up
// tree, for the libraries too that are linked to it, and leaves every other path alone.
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace
{

struct Lead {
    const char *prefix;
    const char *folder;
};
constexpr Lead leads[] = {{"/dev/uio", "/dev/uio"}, {"/sys/class/uio/", "/class/"}};

} // namespace

extern "C" int uio_open64(const char *path, int flags, ...) __asm__("open64");

extern "C" __attribute__((visibility("default"))) int uio_open64(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    const int mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(args, int) : 0;
    va_end(args);
    char led[512];
    const char *root = std::getenv("TEST_UIO_ROOT");
    for (const Lead &lead : leads) {
        const size_t length = std::strlen(lead.prefix);
        if (root == nullptr || std::strncmp(path, lead.prefix, length) != 0)
            continue;
        std::snprintf(led, sizeof(led), "%s%s%s", root, lead.folder, path + length);
        path = led;
        break;
    }
    return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

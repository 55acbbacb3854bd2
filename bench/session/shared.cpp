// SPDX-License-Identifier: BSD-3-Clause
#include "session/shared.hpp"

#include <climits>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/memfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace bench
{

namespace
{

constexpr size_t huge_page = size_t{2} << 20;

int create_with(unsigned flags)
{
    const int fd = memfd_create("ntbmsg_bench", flags);
    if (fd < 0)
        return -1;
    // A huge memory file can be created where no huge page is left: touching it would be fatal, so
    // the pages are taken here.
    if (fallocate(fd, 0, 0, static_cast<off_t>(shared_map_bytes())) == 0)
        return fd;
    close(fd);
    return -1;
}

} // namespace

void fail(Result &result, int error, const char *text)
{
    if (result.error)
        return;
    result.error = error;
    snprintf(result.text, sizeof(result.text), "%s: %s", text, strerror(error));
}

size_t shared_map_bytes()
{
    return (sizeof(Shared) + huge_page - 1) / huge_page * huge_page;
}

int shared_create()
{
    const int fd = create_with(MFD_HUGETLB | MFD_HUGE_2MB);
    return fd >= 0 ? fd : create_with(0);
}

Shared *shared_map(int fd)
{
    void *at = mmap(nullptr, shared_map_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return at == MAP_FAILED ? nullptr : static_cast<Shared *>(at);
}

void futex_wait(const std::atomic<uint32_t> &word, uint32_t seen, uint64_t timeout_ns)
{
    const timespec timeout{static_cast<time_t>(timeout_ns / 1000000000u),
                           static_cast<long>(timeout_ns % 1000000000u)};
    syscall(SYS_futex, &word, FUTEX_WAIT, seen, &timeout, nullptr, 0);
}

void futex_wake(const std::atomic<uint32_t> &word)
{
    syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

} // namespace bench

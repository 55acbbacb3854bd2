// SPDX-License-Identifier: BSD-3-Clause
#include "memory/sealed.hpp"

#include <cerrno>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

namespace plx::twin
{

namespace
{
// The size stays, and so do the seals: a process that holds a descriptor could otherwise forbid all
// later writable mappings, and with them the next peer and the revoking of memory.
constexpr int seals_needed = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
constexpr int seals_refused = F_SEAL_WRITE | F_SEAL_FUTURE_WRITE;
constexpr unsigned of_2mib = 21u << MAP_HUGE_SHIFT; // memfd_create() encodes it as mmap() does

// Not through mmap(): ThreadSanitizer takes a remap for a write to the whole range, while other
// threads are meant to go on using it.
void *map_at(void *address, size_t bytes, int flags, int fd, uint64_t offset)
{
    if (address != nullptr)
        flags |= MAP_FIXED;
    const long at = syscall(SYS_mmap, address, bytes, PROT_READ | PROT_WRITE, flags, fd, offset);
    return at == -1 ? nullptr : reinterpret_cast<void *>(at);
}
} // namespace

int sealed_create(const char *name, size_t bytes, bool huge)
{
    const unsigned kind = huge ? MFD_HUGETLB | of_2mib : 0u;
    const int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | kind);
    if (fd < 0)
        return -errno;
    if (fchmod(fd, 0600) == 0 && ftruncate(fd, static_cast<off_t>(bytes)) == 0 &&
        fcntl(fd, F_ADD_SEALS, seals_needed) == 0)
        return fd;
    const int error = -errno;
    close(fd);
    return error;
}

size_t sealed_check(int fd, size_t bytes)
{
    struct stat st;
    struct statfs fs;
    const int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || (seals & (seals_needed | seals_refused)) != seals_needed ||
        fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || static_cast<uint64_t>(st.st_size) != bytes ||
        fstatfs(fd, &fs) != 0)
        return 0;
    if (fs.f_type != HUGETLBFS_MAGIC)
        return small_page;
    return static_cast<size_t>(fs.f_bsize) == huge_page ? huge_page : 0;
}

bool is_same_file(int one, int other)
{
    struct stat a;
    struct stat b;
    return fstat(one, &a) == 0 && fstat(other, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

void *map_shared(void *address, size_t bytes, int fd, uint64_t offset)
{
    return map_at(address, bytes, MAP_SHARED, fd, offset);
}

void *map_private(void *address, size_t bytes, int fd, uint64_t offset)
{
    return map_at(address, bytes, MAP_PRIVATE | MAP_NORESERVE, fd, offset);
}

void *map_anonymous(void *address, size_t bytes)
{
    return map_at(address, bytes, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

void *reserve(size_t bytes, size_t alignment)
{
    void *all = mmap(nullptr, bytes + alignment, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED)
        return nullptr;
    auto *const start = static_cast<char *>(all);
    const uintptr_t raw = reinterpret_cast<uintptr_t>(all);
    const size_t head = (alignment - raw % alignment) % alignment;
    if (head != 0)
        munmap(start, head);
    munmap(start + head + bytes, alignment - head);
    return start + head;
}

} // namespace plx::twin

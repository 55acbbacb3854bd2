// SPDX-License-Identifier: BSD-3-Clause
#include "port/memory_files.hpp"

#include <cerrno>
#include <new>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace ntb::verbs
{

MemoryFile::~MemoryFile()
{
    munmap(data(), bytes());
    if (descriptor() >= 0)
        close(descriptor());
}

std::unique_ptr<Segment> MemoryFile::map(int descriptor, std::uint64_t bytes, bool writable,
                                         bool keeps)
{
    void *const data =
        mmap(nullptr, bytes, PROT_READ | (writable ? PROT_WRITE : 0), MAP_SHARED, descriptor, 0);
    if (data == MAP_FAILED)
        return nullptr;
    std::unique_ptr<Segment> segment(new (std::nothrow) MemoryFile(static_cast<std::byte *>(data),
                                                                   bytes, keeps ? descriptor : -1));
    if (!segment) {
        munmap(data, bytes);
        errno = ENOMEM;
    }
    return segment;
}

// All pages at once, and sealed: nobody can take them away.
std::unique_ptr<Segment> MemoryFiles::create(std::uint64_t bytes)
{
    if (left_.fetch_sub(1) <= 0) {
        left_ = 0;
        errno = EDQUOT;
        return nullptr;
    }
    const int file = memfd_create("ntb-verbs", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (file < 0)
        return nullptr;
    if (posix_fallocate(file, 0, static_cast<off_t>(bytes)) == 0 &&
        fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0) {
        if (std::unique_ptr<Segment> segment = MemoryFile::map(file, bytes, true, true))
            return segment;
    } else {
        errno = ENOMEM;
    }
    const int error = errno;
    close(file);
    errno = error;
    return nullptr;
}

} // namespace ntb::verbs

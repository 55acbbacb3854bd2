// SPDX-License-Identifier: BSD-3-Clause
#include "port/memory_files.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ntb::verbs
{
namespace
{

// What the kernel thinks that a program could take. 0: it does not say.
std::uint64_t find_available()
{
    const int file = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return 0;
    char text[2048];
    const ssize_t got = read(file, text, sizeof(text) - 1);
    close(file);
    text[got > 0 ? got : 0] = '\0';
    constexpr char name[] = "MemAvailable:";
    const char *const line = strstr(text, name);
    return line ? strtoull(line + strlen(name), nullptr, 10) * 1024 : 0;
}

} // namespace

MemoryFile::~MemoryFile()
{
    munmap(data(), bytes());
    if (descriptor() >= 0)
        close(descriptor());
    if (more_)
        ++*more_;
}

std::unique_ptr<Segment> MemoryFile::map(int descriptor, std::uint64_t bytes, bool writable,
                                         bool keeps, std::atomic<int> *more)
{
    void *const data =
        mmap(nullptr, bytes, PROT_READ | (writable ? PROT_WRITE : 0), MAP_SHARED, descriptor, 0);
    if (data == MAP_FAILED)
        return nullptr;
    std::unique_ptr<Segment> segment(new (std::nothrow) MemoryFile(
        static_cast<std::byte *>(data), bytes, keeps ? descriptor : -1, more));
    if (!segment) {
        munmap(data, bytes);
        errno = ENOMEM;
    }
    return segment;
}

// All pages at once, and sealed: nobody can take them away.
std::unique_ptr<Segment> MemoryFiles::create(std::uint64_t bytes)
{
    int error = EDQUOT;
    int file = -1;
    if (more_.fetch_sub(1) > 0 && bytes <= find_available() / 2) {
        file = memfd_create("ntb-verbs", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        if (file >= 0 && fchmod(file, S_IRUSR | S_IWUSR) == 0 &&
            posix_fallocate(file, 0, static_cast<off_t>(bytes)) == 0 &&
            fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
            if (std::unique_ptr<Segment> segment = MemoryFile::map(file, bytes, true, true, &more_))
                return segment;
        error = file < 0 ? errno : ENOMEM;
    }
    ++more_;
    if (file >= 0)
        close(file);
    errno = error;
    return nullptr;
}

} // namespace ntb::verbs

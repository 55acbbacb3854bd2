// SPDX-License-Identifier: BSD-3-Clause
#include "memory/exchange.hpp"

#include <cerrno>
#include <csignal>
#include <cstring>

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "memory/pages.hpp"

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

namespace ntb::verbs
{
namespace
{

// A handler in this thread could wait for what only this thread can end.
class SignalsBlocked
{
public:
    SignalsBlocked()
    {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    SignalsBlocked(const SignalsBlocked &) = delete;
    SignalsBlocked &operator=(const SignalsBlocked &) = delete;

private:
    sigset_t before_;
};

/// While it lives, who finds a page of its range missing waits.
class Watch
{
public:
    Watch() = default;
    ~Watch()
    {
        if (descriptor_ >= 0)
            close(descriptor_);
    }
    Watch(const Watch &) = delete;
    Watch &operator=(const Watch &) = delete;

    /// @param of_file  the pages are of a memory file; else anonymous
    /// @return 0 or a negative errno
    int begin(std::byte *memory, std::uint64_t bytes, bool of_file)
    {
        const int error = open(of_file);
        if (error != 0)
            return error;
        uffdio_register range = {};
        range.range = {reinterpret_cast<std::uintptr_t>(memory), bytes};
        range.mode =
            of_file ? UFFDIO_REGISTER_MODE_MINOR : std::uint64_t{UFFDIO_REGISTER_MODE_MISSING};
        return ioctl(descriptor_, UFFDIO_REGISTER, &range) == 0 ? 0 : -errno;
    }
    int open(bool for_file)
    {
        descriptor_ = static_cast<int>(
            syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY));
        if (descriptor_ < 0)
            return -errno;
        uffdio_api api = {};
        api.api = UFFD_API;
        api.features = for_file ? std::uint64_t{UFFD_FEATURE_MINOR_SHMEM} : 0;
        return ioctl(descriptor_, UFFDIO_API, &api) == 0 ? 0 : -errno;
    }

private:
    int descriptor_ = -1;
};

/// Memory that is put elsewhere, or goes again.
class Spare
{
public:
    Spare(std::uint64_t bytes, int flags, int descriptor)
        : bytes_(bytes),
          memory_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags | MAP_POPULATE, descriptor, 0))
    {
    }
    ~Spare()
    {
        if (memory_ != MAP_FAILED)
            munmap(memory_, bytes_);
    }
    Spare(const Spare &) = delete;
    Spare &operator=(const Spare &) = delete;

    bool good() const { return memory_ != MAP_FAILED; }
    void *memory() const { return memory_; }
    /// @return 0 or a negative errno
    int put_at(std::byte *place)
    {
        if (mremap(memory_, bytes_, bytes_, MREMAP_MAYMOVE | MREMAP_FIXED, place) == MAP_FAILED)
            return -errno;
        memory_ = MAP_FAILED;
        return 0;
    }

private:
    std::uint64_t bytes_;
    void *memory_;
};

// Whether the caller's stack, or its errno, lies there.
bool is_needed_here(const std::byte *memory, std::uint64_t bytes)
{
    const auto *const stack = static_cast<const std::byte *>(__builtin_frame_address(0));
    const auto *const local = reinterpret_cast<const std::byte *>(&errno);
    return (stack >= memory && stack < memory + bytes) ||
           (local >= memory && local < memory + bytes);
}

int exchange_back(std::byte *memory, std::uint64_t bytes, const std::byte *from)
{
    Spare spare(bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    if (!spare.good())
        return -errno;
    const SignalsBlocked blocked;
    Watch watch;
    const int error = watch.begin(memory, bytes, true);
    if (error != 0)
        return error;
    // Whoever has an entry of its own in the processor has finished with it.
    if (madvise(memory, bytes, MADV_DONTNEED) != 0)
        return -errno;
    std::memcpy(spare.memory(), from, bytes);
    return spare.put_at(memory);
}

int copy_back(std::byte *memory, std::uint64_t bytes, const std::byte *from)
{
    Spare spare(bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    if (!spare.good())
        return -errno;
    std::memcpy(spare.memory(), from, bytes);
    return spare.put_at(memory);
}

template <typename Back>
int each_part(std::byte *memory, std::uint64_t bytes, const Segment &segment, Back back)
{
    // A program that has taken its own region apart further than that keeps the pages shared.
    Mapping mappings[64];
    struct stat file;
    const int n = find_mappings(memory, bytes, mappings, 64);
    if (n < 0 || fstat(segment.descriptor(), &file) != 0)
        return n < 0 ? -EIO : -errno;
    int error = 0;
    for (int i = 0; i < n; ++i) {
        const Mapping &part = mappings[i];
        if (!part.is_shared || part.inode != file.st_ino || part.device != file.st_dev ||
            part.offset != static_cast<std::uint64_t>(part.memory - memory))
            continue;
        const int failed = back(part.memory, part.bytes, segment.data() + part.offset);
        error = error != 0 ? error : failed;
    }
    return error;
}

} // namespace

bool can_exchange()
{
    Watch watch;
    return watch.open(true) == 0;
}

int exchange_to_segment(std::byte *memory, std::uint64_t bytes, const Segment &segment)
{
    if (is_needed_here(memory, bytes) || bytes > segment.bytes())
        return -EINVAL;
    Spare shared(bytes, MAP_SHARED, segment.descriptor());
    if (!shared.good())
        return -errno;
    const SignalsBlocked blocked;
    Watch watch;
    const int error = watch.begin(memory, bytes, false);
    if (error != 0)
        return error;
    void *const old = mremap(memory, bytes, bytes, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, nullptr);
    if (old == MAP_FAILED)
        return -errno;
    std::memcpy(segment.data(), old, bytes);
    const int failed = shared.put_at(memory);
    if (failed != 0) {
        // The pages go back to where they were, which the kernel has no reason to refuse.
        mremap(old, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, memory);
        return failed;
    }
    munmap(old, bytes);
    return 0;
}

int exchange_to_private(std::byte *memory, std::uint64_t bytes, const Segment &segment)
{
    return each_part(memory, bytes, segment, exchange_back);
}

int copy_to_private(std::byte *memory, std::uint64_t bytes, const Segment &segment)
{
    return each_part(memory, bytes, segment, copy_back);
}

} // namespace ntb::verbs

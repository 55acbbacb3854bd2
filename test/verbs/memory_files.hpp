// SPDX-License-Identifier: BSD-3-Clause
// Segments without a daemon, for engines of one process.
#ifndef TEST_VERBS_MEMORY_FILES_HPP
#define TEST_VERBS_MEMORY_FILES_HPP

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "port/segment.hpp"

namespace ntb::verbs
{

/// They outlive none of the segments.
class MemoryFiles final : public Segments
{
public:
    std::shared_ptr<Segment> create(std::uint64_t bytes) override
    {
        const int file = more_ > 0 ? memfd_create("ntb-verbs-test", MFD_CLOEXEC) : -1;
        void *memory = MAP_FAILED;
        if (file >= 0 && ftruncate(file, static_cast<off_t>(bytes)) == 0)
            memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (memory != MAP_FAILED) {
            auto made =
                std::make_shared<File>(static_cast<std::byte *>(memory), bytes, file, more_);
            newest_ = made;
            return made;
        }
        if (file >= 0)
            close(file);
        errno = EDQUOT;
        return nullptr;
    }
    /// So many more may be there at a time.
    void limit(int more) { more_ = more; }
    /// The one that was made last, if it is still there.
    std::shared_ptr<Segment> newest() const { return newest_.lock(); }

private:
    class File final : public Segment
    {
    public:
        File(std::byte *data, std::uint64_t bytes, int descriptor, int &more)
            : Segment(data, bytes, descriptor), more_(more)
        {
            --more_;
        }
        ~File() override
        {
            munmap(data(), bytes());
            close(descriptor());
            ++more_;
        }

    private:
        int &more_;
    };

    int more_ = 64;
    std::weak_ptr<Segment> newest_;
};

} // namespace ntb::verbs

#endif

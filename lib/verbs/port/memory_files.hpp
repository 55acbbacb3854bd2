// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTB_VERBS_PORT_MEMORY_FILES_HPP
#define NTB_VERBS_PORT_MEMORY_FILES_HPP

#include <atomic>

#include "port/segment.hpp"

namespace ntb::verbs
{

/// A mapping of a memory file, with or without its descriptor.
class MemoryFile final : public Segment
{
public:
    MemoryFile(std::byte *data, std::uint64_t bytes, int descriptor, std::atomic<int> *more)
        : Segment(data, bytes, descriptor), more_(more)
    {
    }
    ~MemoryFile() override;

    /// Maps `bytes` of a file that has so many, whole pages.
    /// @param keeps  the descriptor is the segment's from now on, if one is returned
    /// @return NULL and errno of mmap()
    static std::unique_ptr<Segment> map(int descriptor, std::uint64_t bytes, bool writable,
                                        bool keeps, std::atomic<int> *more = nullptr);

private:
    std::atomic<int> *more_; // is one more when this one goes; or NULL
};

/// Memory files of this process. No other user can open one for writing that it got for reading.
/// A segment takes at most half of the memory that the machine has left, as the one that it takes
/// the place of is there meanwhile. They outlive none of the segments.
class MemoryFiles final : public Segments
{
public:
    std::unique_ptr<Segment> create(std::uint64_t bytes) override;
    /// So many more may be there at a time.
    void limit(int more) { more_ = more; }

private:
    // Each has a descriptor of those that the program may have.
    std::atomic<int> more_{64};
};

} // namespace ntb::verbs

#endif

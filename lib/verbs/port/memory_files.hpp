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
    using Segment::Segment;
    ~MemoryFile() override;

    /// Maps `bytes` of a file that has so many, whole pages.
    /// @param keeps  the descriptor is the segment's from now on, if one is returned
    /// @return NULL and errno of mmap()
    static std::unique_ptr<Segment> map(int descriptor, std::uint64_t bytes, bool writable,
                                        bool keeps);
};

/// Segments of this process alone: memory files without a daemon, for peers by a loopback.
class MemoryFiles final : public Segments
{
public:
    std::unique_ptr<Segment> create(std::uint64_t bytes) override;
    /// From now on only so many more are made.
    void limit(int more) { left_ = more; }

private:
    std::atomic<int> left_{1 << 30};
};

} // namespace ntb::verbs

#endif

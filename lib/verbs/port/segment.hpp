// SPDX-License-Identifier: BSD-3-Clause
// Memory that two processes map: doc/decisions/042-direct-memory-of-verbs.md.
#ifndef NTB_VERBS_PORT_SEGMENT_HPP
#define NTB_VERBS_PORT_SEGMENT_HPP

#include <cstddef>
#include <cstdint>
#include <memory>

namespace ntb::verbs
{

/// Whole pages that peers of this process can map, or those of a peer. All of them are there: no
/// access raises SIGBUS. Who destroys it unmaps it, in a while; of its owner's nothing is ever
/// given to others. It may be destroyed by any thread, under any lock: it waits for no other.
class Segment
{
public:
    Segment(std::byte *data, std::uint64_t bytes, int descriptor)
        : data_(data), bytes_(bytes), descriptor_(descriptor)
    {
    }
    virtual ~Segment() = default;
    Segment(const Segment &) = delete;
    Segment &operator=(const Segment &) = delete;

    /// Where it is mapped: its owner's readable and writable, a peer's as it was granted.
    std::byte *data() const { return data_; }
    /// As who keeps it says, not the peer.
    std::uint64_t bytes() const { return bytes_; }
    /// Of its owner: to map parts of it at other addresses.
    int descriptor() const { return descriptor_; }

private:
    std::byte *data_;
    std::uint64_t bytes_;
    int descriptor_;
};

/// Who makes segments of this process: its client of the node daemon, or a test.
class Segments
{
public:
    virtual ~Segments() = default;
    /// May wait for who makes it: not under an engine's lock. Any thread.
    /// @param bytes  whole pages
    /// @return NULL and errno: EOPNOTSUPP there are none, EDQUOT the quota is used up, ENOMEM, or
    ///         what became of the daemon
    virtual std::shared_ptr<Segment> create(std::uint64_t bytes) = 0;
};

} // namespace ntb::verbs

#endif

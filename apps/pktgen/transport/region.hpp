// SPDX-License-Identifier: BSD-3-Clause
// Memory that this end exposes to the other one for one-sided operations of one measurement: all
// queues share it, each has its part.
#ifndef PKTGEN_TRANSPORT_REGION_HPP
#define PKTGEN_TRANSPORT_REGION_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <ntbmsg.h>

#include "point/point.hpp"

namespace pktgen
{

/// Memory that begins on a line.
struct FreeLines {
    void operator()(std::byte *lines) const;
};
using Lines = std::unique_ptr<std::byte[], FreeLines>;
/// @return zeros; NULL: there is no memory
Lines make_lines(size_t bytes);

class Region
{
public:
    Region() = default;
    ~Region();
    Region(const Region &) = delete;
    Region &operator=(const Region &) = delete;

    /// Exposes what @p point needs, filled with what is read. @return empty, or why it cannot
    std::string open(ntbmsg_endpoint *endpoint, const Point &point);

    /// Where a queue's part begins, as both ends reckon.
    static uint64_t offset_of(const Point &point, uint32_t lane);

    std::byte *at(uint64_t offset) const { return memory_ + offset; }
    /// @return false: it cannot be named now
    bool name(ntbmsg_region_token &token) const;
    /// Whether the peer stores into it without the help of this host.
    bool direct() const { return info().direct != 0; }
    /// Operations that were served here.
    uint64_t served() const;
    bool is_open() const { return region_ != nullptr; }

private:
    ntbmsg_region_info info() const;
    void fill(const Point &point) const;

    ntbmsg_region *region_ = nullptr;
    Lines own_; ///< where the library did not allocate it
    std::byte *memory_ = nullptr;
};

} // namespace pktgen

#endif

// SPDX-License-Identifier: BSD-3-Clause
#include "transport/region.hpp"

#include <cstdlib>
#include <cstring>

#include "traffic/content.hpp"

namespace pktgen
{

namespace
{

constexpr size_t line = 64;

uint32_t rights_for(Operation operation)
{
    if (is_write(operation))
        return NTBMSG_RIGHT_WRITE;
    return is_atomic(operation) ? NTBMSG_RIGHT_ATOMIC : NTBMSG_RIGHT_READ;
}

uint64_t bytes_for(const Point &p)
{
    return uint64_t{stride_of(p)} * p.in_flight * p.queues;
}

} // namespace

void FreeLines::operator()(std::byte *lines) const
{
    std::free(lines);
}

Lines make_lines(size_t bytes)
{
    const size_t whole = (bytes + line - 1) / line * line;
    Lines lines(static_cast<std::byte *>(std::aligned_alloc(line, whole)));
    if (lines != nullptr)
        std::memset(lines.get(), 0, whole);
    return lines;
}

uint64_t Region::offset_of(const Point &p, uint32_t lane)
{
    // All queues add to one word; each replaces its own.
    return p.operation == Operation::fetch_add ? 0 : uint64_t{stride_of(p)} * p.in_flight * lane;
}

std::string Region::open(ntbmsg_endpoint *endpoint, const Point &p)
{
    const uint64_t bytes = bytes_for(p);
    const uint32_t rights = rights_for(p.operation);
    int rc = 0;
    // Only writes can be direct.
    if (p.served || !is_write(p.operation)) {
        own_ = make_lines(bytes);
        memory_ = own_.get();
        rc = own_ == nullptr ? -ENOMEM
                             : ntbmsg_region_register(endpoint, memory_, bytes, rights, &region_);
    } else {
        rc = ntbmsg_region_alloc(endpoint, bytes, rights, &region_);
    }
    if (rc != 0) {
        region_ = nullptr;
        return "cannot expose " + std::to_string(bytes) + " bytes: " + std::strerror(-rc) +
               (rc == -ENOTSUP || rc == -ENOSPC ? ": --region served, or a smaller --in-flight"
                                                : "");
    }
    if (own_ == nullptr)
        memory_ = static_cast<std::byte *>(info().address);
    if (p.operation == Operation::read)
        fill(p);
    return {};
}

/// Each place has its own content, which the reader knows.
void Region::fill(const Point &p) const
{
    const Content content(p.pattern);
    for (uint32_t lane = 0; lane < p.queues; ++lane) {
        for (uint32_t slot = 0; slot < p.in_flight; ++slot) {
            std::byte *place = at(offset_of(p, lane) + uint64_t{stride_of(p)} * slot);
            content.fill(place, p.size_to, 0, slot);
            if (p.verify)
                put_seal(place, p.size_to, slot);
        }
    }
}

Region::~Region()
{
    if (region_ == nullptr)
        return;
    // What a chip that does not answer may still write to is not freed.
    if (ntbmsg_region_release(region_) != 0)
        own_.release();
}

bool Region::name(ntbmsg_region_token &token) const
{
    return ntbmsg_region_token_get(region_, &token) == 0;
}

ntbmsg_region_info Region::info() const
{
    ntbmsg_region_info info{};
    info.size = sizeof(info);
    ntbmsg_region_info_get(region_, &info);
    return info;
}

uint64_t Region::served() const
{
    const ntbmsg_region_info now = info();
    return now.writes + now.reads + now.atomics;
}

} // namespace pktgen

// SPDX-License-Identifier: BSD-3-Clause
#include "measure/in_place.hpp"

#include <algorithm>
#include <cerrno>

#include "traffic/payload.hpp"
#include "transport/transport.hpp"

namespace pktgen
{

namespace
{

/// More than a message of largest_size needs in buffers of 512 bytes.
constexpr size_t most_rooms = 32768;

} // namespace

template <typename Transport>
InPlace<Transport>::InPlace(Transport transport, const Point &point, Sizes sizes)
    : Work(point), transport_(transport), sizes_(std::move(sizes)), content_(point.pattern),
      plain_(point.pattern == Pattern::counter), burst_(static_cast<uint16_t>(point.burst)),
      count_(point.count != 0 ? point.count : UINT64_MAX), wanted_(burst_), rooms_(most_rooms)
{
}

template <typename Transport>
InPlace<Transport>::~InPlace()
{
    transport_.abort();
}

template <typename Transport>
void InPlace<Transport>::slice(unsigned steps)
{
    for (unsigned step = 0; step < steps && sending_ && error() == 0; ++step)
        push();
}

/// Builds a message that fits into the rooms, and counts it. @param used  rooms that it takes
template <typename Transport>
bool InPlace<Transport>::build_one(const ntbmsg_room *rooms, size_t room_count, uint32_t size,
                                   uint32_t *used)
{
    const uint32_t bytes = rooms[0].bytes;
    *used = (size + bytes - 1) / bytes;
    if (*used > room_count)
        return false;
    const uint64_t number = sent_.messages;
    for (uint32_t i = 0, done = 0; i < *used; ++i, done += bytes) {
        auto *at = static_cast<std::byte *>(rooms[i].address);
        const uint32_t n = std::min(size - done, bytes);
        if (plain_)
            fill_words(at, n, number);
        else
            content_.fill(at, n, done, number);
    }
    ++sent_.messages;
    sent_.bytes += size;
    sent_.sum += expected_sum(size, number);
    return true;
}

/// Messages of one burst into rooms that were reserved. @return how many
template <typename Transport>
uint16_t InPlace<Transport>::build(uint16_t rooms)
{
    uint16_t made = 0;
    for (uint32_t at = 0; made < burst_ && at < rooms && sent_.messages < count_; ++made) {
        uint32_t used = 0;
        if (!build_one(&rooms_[at], rooms - at, sizes_.size(), &used)) {
            // A burst of such messages, if the peer has as many buffers.
            wanted_ =
                static_cast<uint16_t>(std::min<uint64_t>(uint64_t{used} * burst_, most_rooms));
            break;
        }
        lengths_[made] = sizes_.size();
        sizes_.advance();
        at += used;
    }
    return made;
}

template <typename Transport>
void InPlace<Transport>::push()
{
    const int got = transport_.reserve(rooms_.data(), wanted_);
    if (got <= 0) {
        ++tx_full_;
        if (got < 0)
            fail(got);
        return;
    }
    const uint16_t made = build(static_cast<uint16_t>(got));
    const int sent = made > 0 ? transport_.commit(lengths_, made) : 0;
    transport_.abort(); // rooms that were not needed
    tx_full_ += made < burst_ ? 1 : 0;
    if (sent < 0)
        fail(sent);
    else if (sent_.messages >= count_)
        sending_ = false;
}

template class InPlace<QueueTransport>;
template class InPlace<ChannelTransport>;

} // namespace pktgen

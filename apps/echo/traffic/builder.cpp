// SPDX-License-Identifier: BSD-3-Clause
#include "traffic/builder.hpp"

#include <array>
#include <cerrno>

#include <rte_mbuf.h>

#include "traffic/message.hpp"
#include "traffic/stamp.hpp"

namespace echo
{

namespace
{

/// Rooms of a way, and the metadata that go with what is built there.
struct RoomsOf {
    const Way &way;
    const ntbmsg_meta *meta;

    int reserve(ntbmsg_room *rooms, uint16_t n) const { return way.reserve(rooms, n); }
    int commit(const uint32_t *lengths, uint16_t n) const { return way.commit(lengths, meta, n); }
    void abort() const { way.abort(); }
};

/// @return messages at the front whose being empty is @p empty
uint16_t run_of(const Outbox &box, bool empty)
{
    uint16_t n = 0;
    while (n < box.waiting() && (box.front()[n]->pkt_len == 0) == empty)
        ++n;
    return n;
}

} // namespace

int Builder::copy(Outbox &box, const Way &way, Counters &counters, uint16_t n)
{
    for (uint16_t i = 0; i < n; ++i)
        box.front_meta()[i].flags &= ~built_flag;
    return box.flush(way, counters, n);
}

int Builder::flush(Outbox &box, const Way &way, Counters &counters)
{
    const uint16_t n = run_of(box, false);
    if (n == 0)
        return copy(box, way, counters, run_of(box, true));
    std::array<uint32_t, longest_burst> lengths;
    for (uint16_t i = 0; i < n; ++i) {
        lengths[i] = box.front()[i]->pkt_len;
        box.front_meta()[i].flags |= built_flag;
    }
    RoomsOf rooms{way, box.front_meta()};
    Content from;
    const app::Built built =
        bursts_.send(rooms, {lengths.data(), n},
                     [&](uint16_t i, std::byte *to, uint32_t bytes, uint32_t offset) {
                         if (offset == 0)
                             from = Content(box.front()[i]);
                         from.copy(to, bytes);
                     });
    // A burst of one says which message the peer does not take.
    if (built.beyond || built.sent == -EMSGSIZE)
        return copy(box, way, counters, 1);
    if (built.sent < 0)
        return built.sent;
    const auto sent = static_cast<uint16_t>(built.sent);
    for (uint16_t i = 0; i < sent; ++i)
        counters.tx_bytes += lengths[i];
    counters.tx_messages += sent;
    counters.built += sent;
    counters.tx_full += sent < n;
    box.free_front(sent);
    return sent;
}

} // namespace echo

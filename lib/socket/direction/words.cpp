// SPDX-License-Identifier: BSD-3-Clause
#include "direction/words.hpp"

#include <algorithm>

namespace ntb::socket
{

namespace
{
// Whether what it says of the ring's bytes in use leaves each byte that was seen where it is.
bool is_place(const SenderWords &now, const SenderWords &before, std::uint64_t ring_bytes)
{
    if (before.started &&
        (now.narrow != before.narrow || (before.wide != 0 && now.wide != before.wide)))
        return false;
    if (now.narrow > ring_bytes || (now.narrow & (now.narrow - 1)) != 0)
        return false;
    return now.wide == 0 || now.wide == before.wide ||
           (now.narrow != 0 && now.wide > now.start && now.wide >= before.head);
}
} // namespace

bool follows(const SenderWords &now, const SenderWords &before, std::uint64_t taken,
             std::uint64_t ring_bytes)
{
    if (!now.started)
        return !before.started && (now.mark == Mark::None || now.mark == Mark::Return);
    // Below the switch TCP's bytes are still to be taken; they take no room in the ring.
    const std::uint64_t from = std::max(taken, now.start);
    const bool same_start = !before.started || now.start == before.start;
    const bool forward = now.is_head(from, before.head, ring_bytes) &&
                         is_place(now, before, ring_bytes) &&
                         (now.wide == 0 || now.wide <= from + now.narrow);
    const bool same_mark = before.mark == Mark::None ||
                           (now.mark == before.mark && now.mark_offset == before.mark_offset);
    const bool at_head = now.mark == Mark::None || now.mark_offset == now.head;
    const bool is_mark = now.mark <= Mark::Reset && now.mark != Mark::Return;
    return same_start && forward && same_mark && at_head && is_mark;
}

} // namespace ntb::socket

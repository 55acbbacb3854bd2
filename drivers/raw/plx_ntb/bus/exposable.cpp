// SPDX-License-Identifier: BSD-3-Clause
#include "bus/exposable.hpp"

#include <algorithm>
#include <bit>

namespace plx::pmd
{

namespace
{

/// The first @p bytes of @p map as pieces of the A-LUT. @return their number; 0: not possible
unsigned gather(const IovaMap &map, size_t bytes, const hw::WindowRules &rules, hw::Piece *pieces)
{
    const uint64_t segment = rules.segment(bytes);
    unsigned count = 0;
    for (size_t at = 0; at < bytes; at += map.page_bytes) {
        const uint64_t iova = map.iova(map.ctx, at);
        const uint64_t length = std::min(map.page_bytes, bytes - at);
        if (count != 0 && pieces[count - 1].address + pieces[count - 1].bytes == iova) {
            pieces[count - 1].bytes += length;
            continue;
        }
        if (count == rules.entries || iova % segment != 0)
            return 0;
        if (count != 0 && pieces[count - 1].bytes % segment != 0)
            return 0;
        pieces[count++] = {iova, length};
    }
    return pieces[count - 1].bytes % segment == 0 ? count : 0;
}

/// The largest block aligned to its own size in [from, to) of bus addresses, at most @p max.
hw::Piece aligned_block(uint64_t from, uint64_t to, uint64_t max)
{
    for (uint64_t size = std::bit_floor(std::min(to - from, max)); size != 0; size >>= 1) {
        const uint64_t at = (from + size - 1) & ~(size - 1);
        if (at >= from && at <= to && to - at >= size)
            return {at, size};
    }
    return {0, 0};
}

Exposable largest_run(const IovaMap &map, size_t bytes_max, hw::Piece *piece)
{
    Exposable best;
    for (size_t begin = 0; begin < map.bytes;) {
        const uint64_t from = map.iova(map.ctx, begin);
        size_t end = begin + map.page_bytes;
        while (end < map.bytes && map.iova(map.ctx, end) == from + (end - begin))
            end += map.page_bytes;
        const hw::Piece block = aligned_block(from, from + (end - begin), bytes_max);
        if (block.bytes > best.bytes) {
            best = {begin + static_cast<size_t>(block.address - from),
                    static_cast<size_t>(block.bytes), 1};
            *piece = block;
        }
        begin = end;
    }
    return best;
}

} // namespace

Exposable find_exposable(const IovaMap &map, size_t bytes_max, size_t bytes_min,
                         const hw::WindowRules &rules, hw::Piece *pieces)
{
    const size_t whole = std::min(bytes_max, std::bit_floor(map.bytes));
    hw::Piece run_piece{};
    const Exposable run = largest_run(map, whole, &run_piece);
    if (rules.entries != 0)
        for (size_t bytes = whole; bytes >= std::max(bytes_min, run.bytes); bytes >>= 1)
            if (const unsigned count = gather(map, bytes, rules, pieces); count != 0)
                return {0, bytes, count};
    if (run.bytes < bytes_min)
        return {};
    pieces[0] = run_piece;
    return run;
}

} // namespace plx::pmd

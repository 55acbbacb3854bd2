// SPDX-License-Identifier: BSD-3-Clause
// Room at the peer: lines of its message ring, by returned credits, and its receive buffers, by the
// receive-buffer ring. Both are input from the peer: copied once, checked in the copy.
#ifndef PLX_QUEUE_ROOM_HPP
#define PLX_QUEUE_ROOM_HPP

#include "queue/mem_policy.hpp"
#include "queue/state.hpp"

namespace plx::queue::PLX_VARIANT
{

/// Result for one message. ring_end: it goes into the next chunk, at the beginning of the ring. The
/// values after it end the burst.
enum class Put { taken, ring_end, full, too_long, invalid, bad_peer };

/// Reads the credits that the peer has returned. @return false: more than was sent
template <MemPolicy Mem>
[[gnu::noinline]] bool take_credits(Tx &q)
{
    const uint64_t w = Mem::load(q.s.credit);
    if (wire::word_tag(w) != q.s.back_base)
        return true; // a word of another epoch
    const uint32_t lines = static_cast<uint32_t>(w >> 32), last = q.credited + q.aside;
    if (lines - last > static_cast<uint32_t>(q.head) - last)
        return false;
    q.credited = lines - q.aside;
    return true;
}

/// Lines that the peer's ring has room for.
[[gnu::always_inline]] inline uint32_t room_of(const Tx &q)
{
    return q.ring.mask + 1 - (static_cast<uint32_t>(q.head) - q.credited);
}

/// Looks for returned credits when there is no room for @p need lines.
template <MemPolicy Mem>
[[gnu::always_inline]] inline Put reserve_lines(Tx &q, uint32_t need)
{
    if (need <= room_of(q)) [[likely]]
        return Put::taken;
    if (!take_credits<Mem>(q))
        return Put::bad_peer;
    return need <= room_of(q) ? Put::taken : Put::full;
}

/// Whether all buffers of a line lie in the range that the peer's hello gave.
[[gnu::always_inline]] inline bool buffers_inside(const Tx &q, const uint32_t *at, uint32_t n)
{
    const auto size = static_cast<uint32_t>(q.s.peer_buf_bytes / wire::line_bytes);
    for (uint32_t i = 0; i < n; i++)
        if (at[i] < q.s.peer_buf_begin || at[i] > q.s.peer_buf_end ||
            q.s.peer_buf_end - at[i] < size)
            return false;
    return true;
}

/// Reads lines of the receive-buffer ring until @p need buffers are known, at most buffers_max.
/// Each line is copied once, checked in the copy, and never read again. While buffers are set aside
/// there are none for others.
template <MemPolicy Mem>
[[gnu::noinline]] Put read_buffer_lines(Tx &q, uint32_t need)
{
    if (q.aside != 0)
        return Put::full;
    while (q.buffers_end - q.buffers_next < need) {
        const std::byte *line = q.buffer_ring.line(q.buffer_ring_read);
        const uint64_t w = Mem::load(line);
        if (wire::word_tag(w) != q.buffer_ring.tag(q.buffer_ring_read))
            return Put::full;
        const uint32_t n = static_cast<uint32_t>(w >> 32);
        uint32_t at[wire::buffers_per_line];
        __builtin_memcpy(at, line + sizeof(w), sizeof(at));
        if (n == 0 || n > wire::buffers_per_line || !buffers_inside(q, at, n))
            return Put::bad_peer;
        for (uint32_t i = 0; i < n; i++)
            q.buffers[q.buffers_end++ & (Tx::buffers_size - 1)] = at[i];
        q.buffer_ring_read++;
        __builtin_prefetch(q.buffer_ring.line(q.buffer_ring_read));
    }
    return Put::taken;
}

/// All buffers of a message are reserved before the first is used, so that it can be completed.
template <MemPolicy Mem>
[[gnu::always_inline]] inline Put reserve_buffers(Tx &q, uint32_t need)
{
    return q.buffers_end - q.buffers_next >= need ? Put::taken : read_buffer_lines<Mem>(q, need);
}

/// A known buffer. @param cursor  from buffers_next on
[[gnu::always_inline]] inline std::byte *buffer_at(const Tx &q, uint32_t cursor)
{
    return q.s.peer_block + q.buffers[cursor & (Tx::buffers_size - 1)] * wire::line_bytes;
}

[[gnu::always_inline]] inline std::byte *next_buffer(const Tx &q)
{
    return buffer_at(q, q.buffers_next);
}

/// The next of the reserved buffers.
[[gnu::always_inline]] inline std::byte *take_buffer(Tx &q)
{
    std::byte *buffer = next_buffer(q);
    q.buffers_next++;
    return buffer;
}

} // namespace plx::queue::PLX_VARIANT

#endif

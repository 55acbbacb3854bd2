// SPDX-License-Identifier: BSD-3-Clause
// Messages that the caller builds where they go: receive buffers of the peer are set aside for it,
// and published as messages once they are filled.
//
// The reader takes receive buffers in the order of messages. So while some are set aside, no other
// message may take one: the known buffers are hidden from the burst functions, which then find
// none, without a check of their own. One line of the ring is set aside with each, so that a commit
// always has room.
#ifndef PLX_QUEUE_IN_PLACE_HPP
#define PLX_QUEUE_IN_PLACE_HPP

#include <algorithm>
#include <cerrno>

#include "queue/producer.hpp"

namespace plx::queue::PLX_VARIANT
{

/// Prefetches for writing the lines that the caller will probably store to first.
template <MemPolicy Mem>
[[gnu::always_inline]] inline void own_room(const std::byte *at, uint32_t bytes)
{
    const uint32_t most = std::min(bytes, own_next_bytes);
    for (uint32_t i = 0; i < most; i += wire::line_bytes)
        Mem::own(at + i);
}

/// Buffers of the peer and lines of its ring for at most @p n. @return full: there are none
template <MemPolicy Mem>
Put find_room(Tx &q, uint32_t *n)
{
    const uint32_t wanted = std::min({*n, q.ring.mask + 1, Tx::buffers_max});
    Put put = reserve_lines<Mem>(q, wanted);
    if (put == Put::bad_peer)
        return put;
    put = reserve_buffers<Mem>(q, std::min(wanted, room_of(q)));
    if (put == Put::bad_peer)
        return put;
    *n = std::min({wanted, room_of(q), q.buffers_end - q.buffers_next});
    return *n > 0 ? Put::taken : Put::full;
}

template <MemPolicy Mem>
int tx_reserve(Tx *q, Room *rooms, unsigned n)
{
    if (!q->open || q->broken) [[unlikely]]
        return q->broken ? -EPROTO : 0;
    if (q->aside != 0)
        return -EBUSY;
    if (n == 0)
        return 0;
    uint32_t count = n;
    if (const Put put = find_room<Mem>(*q, &count); put != Put::taken)
        return burst_ended(*q, put);
    const uint32_t bytes = std::min(q->s.peer_buf_bytes, q->max_message);
    for (uint32_t i = 0; i < count; i++)
        rooms[i] = {buffer_at(*q, q->buffers_next + i), bytes, 0};
    own_room<Mem>(static_cast<const std::byte *>(rooms[0].address), bytes);
    set_aside(*q, count);
    return static_cast<int>(count);
}

/// Buffers that messages take of those set aside. @return a negative errno: they do not fit
[[gnu::always_inline]] inline int buffers_of(const Tx &q, const uint32_t *lengths, unsigned n)
{
    uint32_t sum = 0;
    for (unsigned i = 0; i < n; i++) {
        if (lengths[i] == 0)
            return -EINVAL;
        if (lengths[i] > q.max_message)
            return -EMSGSIZE;
        sum += q.per_buffer.ceil(lengths[i]);
        if (sum > q.aside)
            return -EINVAL;
    }
    return static_cast<int>(sum);
}

/// What the caller stored into the buffers is ordered before the header lines as the copies of
/// put_long() are: by the words' release, or by the fence between bodies and words.
template <MemPolicy Mem>
int tx_commit(Tx *q, const uint32_t *lengths, const Meta *meta, unsigned n)
{
    if (!q->open || q->broken) [[unlikely]]
        return q->broken ? -EPROTO : -ECONNRESET;
    const int buffers = buffers_of(*q, lengths, n);
    if (buffers < 0)
        return buffers;
    use_aside(*q, static_cast<uint32_t>(buffers));
    for (unsigned done = 0; done < n;) {
        Chunk<Mem> out(q->ring, q->head);
        const uint32_t most = std::min({out.left(0), chunk_lines, n - done});
        Progress p{};
        for (; p.lines < most; p.lines++, p.messages++) {
            const uint32_t length = lengths[done + p.messages];
            put_long_head<Mem>(out, p.lines, length,
                               meta != nullptr ? meta[done + p.messages] : no_meta);
            p.bytes += length;
        }
        out.publish(p.lines);
        count_sent(*q, p);
        count(q->stats.cpu_messages, p.messages);
        count(q->stats.cpu_bytes, p.bytes);
        done += p.messages;
    }
    return static_cast<int>(n);
}

} // namespace plx::queue::PLX_VARIANT

#endif

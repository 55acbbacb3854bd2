// SPDX-License-Identifier: BSD-3-Clause
// The sending half of a queue pair: stores mbufs into lines of the peer's message ring and into its
// receive buffers.
#ifndef PLX_QUEUE_PRODUCER_HPP
#define PLX_QUEUE_PRODUCER_HPP

#include <algorithm>
#include <cerrno>

#include <rte_mbuf.h>

#include "queue/alike.hpp"
#include "queue/chunk.hpp"
#include "queue/room.hpp"

namespace plx::queue::PLX_VARIANT
{

/// Bytes of the next receive buffer whose lines are prefetched for writing.
inline constexpr uint32_t own_next_bytes = 2048;

/// Metadata of messages sent without any.
inline constexpr Meta no_meta{};
/// What travels with the messages of a burst, and which of them it takes: `[]` is of message i,
/// `from(i)` what a burst has that begins with it.
struct WithoutMeta {
    static constexpr bool each = false;    ///< messages have metadata of their own
    static constexpr bool is_flow = false; ///< TxBurst goes on where the burst ends
    const Meta &operator[](unsigned) const { return no_meta; }
    WithoutMeta from(unsigned) const { return *this; }
    static bool takes(const rte_mbuf *) { return true; }
};
struct MetaOfEach {
    static constexpr bool each = true, is_flow = false;
    const Meta *first;
    const Meta &operator[](unsigned i) const { return first[i]; }
    MetaOfEach from(unsigned i) const { return {first + i}; }
    static bool takes(const rte_mbuf *) { return true; }
};
struct MetaOfFlow {
    static constexpr bool each = false, is_flow = true;
    const TxFlow *flow;
    const Meta &operator[](unsigned) const { return flow->meta; }
    MetaOfFlow from(unsigned) const { return *this; }
    bool takes(const rte_mbuf *m) const { return m->pkt_len <= flow->longest; }
};

template <MemPolicy Mem>
void copy_out(void *to, const void *from, size_t n)
{
    auto *begin = static_cast<std::byte *>(to);
    const auto *source = static_cast<const std::byte *>(from);
    if (n == wire::line_bytes)
        Mem::copy(begin, source, wire::line_bytes);
    else
        Mem::stream(begin, source, n, begin);
    Mem::flush();
}

/// copy_out() past this CPU's caches.
template <MemPolicy Mem>
void copy_past(void *to, const void *from, size_t n)
{
    auto *begin = static_cast<std::byte *>(to);
    const auto *source = static_cast<const std::byte *>(from);
    const size_t head = std::min(n, -reinterpret_cast<uintptr_t>(begin) % size_t{wire::line_bytes});
    Mem::copy(begin, source, head);
    Mem::non_temporal(begin + head, source + head, n - head);
    Mem::non_temporal_fence();
    Mem::flush();
}

/// Whether a chain has nb_segs segments that add up to its pkt_len.
[[gnu::noinline]] inline bool chain_is_whole(const rte_mbuf *m)
{
    uint64_t sum = 0;
    unsigned segments = 0;
    for (const rte_mbuf *s = m; s != nullptr && segments <= m->nb_segs; s = s->next) {
        sum += s->data_len;
        segments++;
    }
    return segments == m->nb_segs && sum == m->pkt_len;
}

/// The probable target of the next message, as a hint; @p or_else if it is not known yet.
[[gnu::always_inline]] inline const std::byte *next_target(const Tx &q, const std::byte *or_else)
{
    return q.buffers_next != q.buffers_end ? next_buffer(q) : or_else;
}

[[gnu::noinline]] inline void step_stores(Tx &q)
{
    // All of it is long messages: for the trial one kind of traffic.
    const uint64_t lines = (q.stats.cpu_bytes - q.stores_begin) / wire::line_bytes;
    q.stores = static_cast<Stores>(q.stores_trial.step(lines, static_cast<uint32_t>(lines / 64),
                                                       q.s.cycles() - q.stores_away));
    q.stores_due = next_look_at_stores(q);
}

/// Leaves the stores to inline_bound, or takes them back: the trial of stores is not to see what
/// the other one has decided.
inline void leave_stores(Tx &q, bool left)
{
    if (left == q.stores_left || q.s.cycles == nullptr)
        return;
    q.stores_left = left;
    if (left) {
        q.stores_end = q.stats.cpu_bytes;
        q.stores_left_at = q.s.cycles();
        q.stores_kept = q.stores;
        q.stores_due = never_due;
        return;
    }
    q.stores_begin += q.stats.cpu_bytes - q.stores_end;
    q.stores_away += q.s.cycles() - q.stores_left_at;
    q.stores = q.stores_kept; // of the segment that goes on
    q.stores_due = next_look_at_stores(q);
}

[[gnu::noinline]] inline void step_inline(Tx &q)
{
    const InlineBound::Way way =
        q.inline_bound.step(q.stats.bytes, messages_of(q), tx_unconfirmed(&q), q.s.inline_cycles());
    q.inline_due = q.inline_bound.due();
    q.inline_max = way.at_most;
    leave_stores(q, way.decides);
    if (q.stores_left)
        q.stores = way.stores;
}

/// Counts bytes that the CPU has stored into a receive buffer.
[[gnu::always_inline]] inline void count_stored(Tx &q, uint32_t n)
{
    count(q.stats.cpu_bytes, n);
    if (q.stats.cpu_bytes >= q.stores_due) [[unlikely]]
        step_stores(q);
}

/// Stores a piece of a long message of a chunk past this CPU's caches.
template <MemPolicy Mem>
[[gnu::noinline]] void store_past(Chunk<Mem> &out, std::byte *to, const std::byte *from, uint32_t n)
{
    if (reinterpret_cast<uintptr_t>(to) % wire::line_bytes == 0) {
        Mem::non_temporal(to, from, n);
        out.add_past();
    } else {
        Mem::stream(to, from, n, to);
    }
}

/// Stores a piece of a long message of a chunk. @param next  where the next one will probably go
template <MemPolicy Mem>
[[gnu::always_inline]] inline void store_piece(Tx &q, Chunk<Mem> &out, std::byte *to,
                                               const std::byte *from, uint32_t n,
                                               const std::byte *next)
{
    if (q.stores == Stores::non_temporal) [[unlikely]]
        store_past<Mem>(out, to, from, n);
    else
        Mem::stream(to, from, n, next);
    count_stored(q, n);
}

/// Cuts the data of a message into pieces that lie in one segment and in one receive buffer; the
/// buffers are reserved.
/// @param copy  called with (to in the window, segment, offset in it, bytes, where the next piece
/// will probably go) for each
template <class Copy>
[[gnu::always_inline]] inline void spread(Tx &q, const rte_mbuf *m, Copy copy)
{
    std::byte *to = nullptr;
    uint32_t room = 0;
    for (const rte_mbuf *s = m; s != nullptr; s = s->next) {
        for (uint32_t at = 0; at < s->data_len;) {
            if (room == 0) {
                to = take_buffer(q);
                room = q.s.peer_buf_bytes;
            }
            const uint32_t left = s->data_len - at, now = left < room ? left : room;
            copy(to, s, at, now, now < room ? to + now : next_target(q, to));
            to += now;
            at += now;
            room -= now;
        }
    }
}

/// Prefetches for writing the lines that a message of @p bytes, like the one just sent, will be
/// stored to. The requests delay nothing while that one is on its way.
template <MemPolicy Mem>
[[gnu::noinline]] void own_next_buffer(Tx &q, uint64_t bytes)
{
    // An invalid line is not consumed; the message that needs it refuses it again.
    if (q.stores_alone == Stores::non_temporal || reserve_buffers<Mem>(q, 1) != Put::taken)
        return;
    const std::byte *next = next_buffer(q);
    const std::byte *const end =
        next + std::min<uint64_t>({bytes, own_next_bytes, q.s.peer_buf_bytes});
    for (; next < end; next += wire::line_bytes)
        Mem::own(next);
}

/// The header line of a long message, whose data are stored already.
template <MemPolicy Mem>
[[gnu::always_inline]] inline void put_long_head(Chunk<Mem> &out, uint32_t at, uint32_t n,
                                                 const Meta &meta)
{
    Cursor<Mem> line = out.at(at);
    const uint64_t word = wire::head_word(line.tag(), n, wire::Kind::long_message, meta.flags);
    out.add_head(at, line, word, Body(meta.data));
    out.add_buffers();
}

template <MemPolicy Mem>
[[gnu::noinline]] Put put_long(Tx &q, Chunk<Mem> &out, uint32_t at, const rte_mbuf *m,
                               const Meta &meta)
{
    const Put put = reserve_buffers<Mem>(q, q.per_buffer.ceil(m->pkt_len));
    if (put != Put::taken)
        return put;
    const auto copy = [&q, &out](std::byte *to, const rte_mbuf *s, uint32_t from, uint32_t n,
                                 const std::byte *next) {
        store_piece<Mem>(q, out, to, rte_pktmbuf_mtod_offset(s, const std::byte *, from), n, next);
    };
    spread(q, m, copy);
    put_long_head(out, at, m->pkt_len, meta);
    return Put::taken;
}

/// An inline message in contiguous memory. @param i  its first line in the chunk
template <MemPolicy Mem>
[[gnu::always_inline]] inline void put_lines(Chunk<Mem> &out, uint32_t i, Cursor<Mem> &at,
                                             const std::byte *from, uint32_t n, const Meta &meta)
{
    constexpr auto head = static_cast<uint32_t>(wire::head_payload_bytes);
    constexpr auto full = static_cast<uint32_t>(wire::cont_payload_bytes);
    const uint64_t word = wire::head_word(at.tag(), n, wire::Kind::inline_message, meta.flags);
    if (n <= head) {
        out.add_head(i, at, word, Body(meta.data, from, n));
        return;
    }
    out.add_head(i, at, word, Body(meta.data, from, head));
    from += head;
    n -= head;
    for (; n > full; n -= full, from += full)
        out.add_rest(++i, at, from, full);
    out.add_rest(++i, at, from, n);
}

/// Whether Body may read a message in place: it reads Body::readable bytes, even of a shorter one.
[[gnu::always_inline]] inline bool readable(const rte_mbuf *m, uint16_t data_off, uint32_t n)
{
    return Body::readable == 0 || n >= Body::readable ||
           static_cast<int>(m->buf_len) - data_off >= Body::readable;
}

/// An inline message, possibly of several segments.
template <MemPolicy Mem>
[[gnu::noinline]] void put_chain(Chunk<Mem> &out, uint32_t i, const rte_mbuf *m, const Meta &meta)
{
    Cursor<Mem> at = out.at(i);
    if (m->nb_segs == 1 && readable(m, m->data_off, m->pkt_len)) {
        put_lines<Mem>(out, i, at, rte_pktmbuf_mtod(m, const std::byte *), m->pkt_len, meta);
        return;
    }
    // Room in front: Body addresses the start of the line, even where it reads nothing there.
    std::byte room[wire::head_payload_offset + wire::inline_bytes_max];
    std::byte *gathered = room + wire::head_payload_offset;
    uint32_t n = 0;
    for (const rte_mbuf *s = m; s != nullptr; s = s->next) {
        __builtin_memcpy(gathered + n, rte_pktmbuf_mtod(s, const std::byte *), s->data_len);
        n += s->data_len;
    }
    put_lines<Mem>(out, i, at, gathered, n, meta);
}

/// Whether a message of one segment fits into one receive buffer that is known already.
/// @param at  lines of the chunk before it
template <MemPolicy Mem>
[[gnu::always_inline]] inline bool fits_known_buffer(const Tx &q, const Chunk<Mem> &out,
                                                     uint32_t at, uint32_t n)
{
    return n > q.inline_max && n <= q.max_message && n <= q.s.peer_buf_bytes &&
           q.buffers_next != q.buffers_end && room_of(q) > at && out.left(at) > 0;
}

/// The usual long message: one segment into one receive buffer, without the loops of spread().
template <MemPolicy Mem>
[[gnu::always_inline]] inline void put_one_buffer(Tx &q, Chunk<Mem> &out, uint32_t at,
                                                  const rte_mbuf *m, const Meta &meta)
{
    const uint32_t n = m->pkt_len;
    std::byte *to = take_buffer(q);
    const std::byte *next = next_target(q, to);
    if (q.stores == Stores::plain && q.ask_ahead.asks())
        Mem::own_later(next, n);
    store_piece<Mem>(q, out, to, rte_pktmbuf_mtod(m, const std::byte *), n, next);
    put_long_head(out, at, n, meta);
}

/// Fills the end of the ring with pad lines. @return how many
template <MemPolicy Mem>
[[gnu::noinline]] uint32_t put_pads(Chunk<Mem> &out, uint32_t at)
{
    const uint32_t pads = out.left(at);
    Cursor<Mem> cursor = out.at(at);
    const uint64_t word = wire::head_word(cursor.tag(), 0, wire::Kind::pad, 0);
    for (uint32_t i = 0; i < pads; i++)
        out.add_head(at + i, cursor, word, Body(0));
    return pads;
}

/// Result for a message, and the lines it took.
struct Taken {
    Put put;
    uint32_t lines;
};

/// Any message that put_run() does not handle. @param at its first line in the chunk
template <MemPolicy Mem>
[[gnu::noinline]] Taken put_other(Tx &q, Chunk<Mem> &out, uint32_t at, const rte_mbuf *m,
                                  const Meta &meta)
{
    if (m->nb_segs == 1 && m->data_len == m->pkt_len && fits_known_buffer(q, out, at, m->pkt_len)) {
        put_one_buffer<Mem>(q, out, at, m, meta);
        return {Put::taken, 1};
    }
    if (!chain_is_whole(m))
        return {Put::invalid, 0};
    if (m->pkt_len > q.max_message)
        return {Put::too_long, 0};
    // Where the peer has no buffer left, the ring does as well.
    const bool is_long = m->pkt_len > q.inline_max &&
                         (m->pkt_len > q.s.inline_most ||
                          reserve_buffers<Mem>(q, q.per_buffer.ceil(m->pkt_len)) != Put::full);
    const uint32_t lines = is_long ? 1 : wire::inline_lines(m->pkt_len);
    const bool fits = lines <= out.left(at);
    // Pad lines only if their message can follow.
    Put put = reserve_lines<Mem>(q, at + lines + (fits ? 0 : out.left(at)));
    if (put == Put::taken && !fits)
        return {Put::ring_end, put_pads<Mem>(out, at)};
    if (put == Put::taken && is_long)
        put = put_long<Mem>(q, out, at, m, meta);
    else if (put == Put::taken)
        put_chain<Mem>(out, at, m, meta);
    return {put, put == Put::taken ? lines : 0};
}

/// data_off, refcnt and nb_segs of an mbuf, from one load.
class Rearmed
{
    uint64_t word_;

public:
    [[gnu::always_inline]] explicit Rearmed(const rte_mbuf *m)
    {
        static_assert(offsetof(rte_mbuf, refcnt) == offsetof(rte_mbuf, data_off) + 2 &&
                      offsetof(rte_mbuf, nb_segs) == offsetof(rte_mbuf, data_off) + 4);
        __builtin_memcpy(&word_, &m->rearm_data, sizeof(word_));
    }
    [[gnu::always_inline]] uint16_t data_off() const { return static_cast<uint16_t>(word_); }
    /// One segment, one reference.
    [[gnu::always_inline]] bool alone() const
    {
        return static_cast<uint32_t>(word_ >> 16) == (1u | 1u << 16);
    }
};

/// Frees mbufs: one put if all are direct, of one pool and without other references.
[[gnu::always_inline]] inline void free_sent(rte_mbuf **mbufs, unsigned n, bool simple)
{
    if (simple) [[likely]]
        rte_mempool_put_bulk(mbufs[0]->pool, reinterpret_cast<void **>(mbufs), n);
    else
        rte_pktmbuf_free_bulk(mbufs, n);
}

[[gnu::always_inline]] inline bool frees_simply(const rte_mbuf *m, Rearmed r,
                                                const rte_mempool *pool)
{
    return m->pool == pool && r.alone() &&
           (m->ol_flags & (RTE_MBUF_F_INDIRECT | RTE_MBUF_F_EXTERNAL)) == 0;
}

/// Prefetches for writing the lines of an inline message that is sent alone, after the two that
/// each chunk prefetches. own_ahead did so some messages ago, but a reader of single messages makes
/// its CPU prefetch lines too, these among them.
template <MemPolicy Mem>
[[gnu::always_inline]] inline void own_lines_of(const Tx &q, const rte_mbuf *m)
{
    if (m == nullptr || m->pkt_len > q.inline_max)
        return;
    const uint32_t lines = wire::inline_lines(m->pkt_len);
    if (lines > room_of(q))
        return; // some are not read yet
    for (uint32_t i = 2; i < lines; i++)
        Mem::own(q.ring.line(q.head + i));
}

/// Contents of a chunk so far.
struct Progress {
    unsigned messages;
    uint32_t lines;
    uint64_t bytes;
};

/// Puts messages into a chunk, up to the first that is not like the one before @p mbufs, the last
/// in the chunk, whose lines are Lines. What they have in common is computed in front of the loop:
/// the compiler leaves it behind the loop's first way out. In a function of its own, which has
/// registers enough for that.
/// @param lines  of the chunk so far
/// @param n  for which the chunk has room
/// @return how many
template <MemPolicy Mem, bool Each, uint32_t Lines>
[[gnu::noinline]] unsigned put_alike(Chunk<Mem> &out, uint32_t lines, rte_mbuf *const *mbufs,
                                     const Meta *meta, unsigned n)
{
    constexpr auto full = static_cast<uint32_t>(wire::cont_payload_bytes);
    Cursor<Mem> at = out.at(lines);
    const Alike alike(mbufs[-1]);
    const uint32_t length = mbufs[-1]->pkt_len;
    const size_t in_last = length - (Lines > 1 ? longest_of(Lines - 1) : 0);
    if (Lines == 1 ? length > longest_of(1) : in_last == 0 || in_last > full)
        __builtin_unreachable(); // the copies have no loops
    const size_t data_off = mbufs[-1]->data_off;
    const LineBegin begin(
        wire::head_word(at.tag(), length, wire::Kind::inline_message, Each ? 0 : meta->flags),
        Each ? 0 : meta->data); // Each: added for each below
    const auto put = [&]<size_t Least, size_t Most>() {
        if (in_last < Least || in_last > Most)
            __builtin_unreachable();
        const Rest last = Rest(in_last).kept();
        rte_mbuf *const *next = mbufs, *const *const stop = mbufs + n;
        for (; next != stop; next++) {
            const rte_mbuf *m = *next;
            if (m == nullptr || !alike(m) || !readable(m, static_cast<uint16_t>(data_off), length))
                [[unlikely]]
                break;
            const uint32_t line = lines + static_cast<uint32_t>(next - mbufs) * Lines;
            if (line == 0)
                __builtin_unreachable(); // it is not the chunk's first line
            const std::byte *from = static_cast<const std::byte *>(m->buf_addr) + data_off;
            const auto put_head = [&](const LineBegin &with) {
                if constexpr (Lines == 1)
                    out.add_head(line, at, with.word(), Body(with.meta(), from, length));
                else
                    out.add_full_head(line, at, with, from);
            };
            if constexpr (Each)
                put_head({begin.word() | wire::flags_of_word(meta->flags), meta->data});
            else
                put_head(begin);
            for (uint32_t j = 1; j < Lines; j++)
                out.add_rest(line + j, at, from + longest_of(j), j + 1 < Lines ? Rest(full) : last);
            meta += Each ? 1 : 0;
        }
        return static_cast<unsigned>(next - mbufs);
    };
    if constexpr (Lines == 1)
        return put.template operator()<0, longest_of(1)>();
    else
        return with_rest(in_last, put);
}

/// Puts the next messages into a chunk, up to the first unusual one. Usual is: inline, one segment,
/// one reference, of the same pool as the others, and within the ring, the known room and the
/// chunk. It may end earlier, behind messages that were alike.
template <MemPolicy Mem, class Metas>
[[gnu::always_inline]] inline Progress put_run(const Tx &q, Chunk<Mem> &out, Progress p,
                                               rte_mbuf *const *mbufs, Metas metas, unsigned n,
                                               const rte_mempool *pool)
{
    Cursor<Mem> at = out.at(p.lines);
    uint32_t inline_max = q.inline_max;
    if constexpr (Metas::is_flow)
        inline_max = std::min(inline_max, metas.flow->longest);
    const uint32_t end = std::min({out.left(0), room_of(q), chunk_lines});
    while (p.messages < n) {
        const rte_mbuf *m = mbufs[p.messages];
        if (m == nullptr) [[unlikely]]
            break;
        const Rearmed r(m);
        const uint32_t length = m->pkt_len;
        if (length > inline_max || m->data_len != length || !frees_simply(m, r, pool) ||
            !readable(m, r.data_off(), length))
            break;
        const uint32_t lines = wire::inline_lines(length);
        if (end - p.lines < lines)
            break;
        put_lines<Mem>(out, p.lines, at, static_cast<const std::byte *>(m->buf_addr) + r.data_off(),
                       length, metas[p.messages]);
        p.messages++;
        p.lines += lines;
        p.bytes += length;
        // Another of that length: more will be.
        if (lines <= alike_lines_max && p.messages < n && mbufs[p.messages] != nullptr &&
            mbufs[p.messages]->pkt_len == length)
            return with_lines<1, alike_lines_max>(lines, [&]<uint32_t Lines>() {
                const unsigned most = std::min(n - p.messages, (end - p.lines) / Lines);
                const unsigned more = put_alike<Mem, Metas::each, Lines>(
                    out, p.lines, mbufs + p.messages, &metas[p.messages], most);
                return Progress{p.messages + more, p.lines + more * Lines,
                                p.bytes + uint64_t{length} * more};
            });
    }
    return p;
}

struct Sent {
    unsigned messages;
    Put why; ///< what ended it; taken: end of the chunk or of the burst; ring_end: end of the ring
};

/// With more lines a chunk may lack room for the longest inline message.
inline constexpr uint32_t chunk_stop = chunk_lines - wire::inline_lines(wire::inline_bytes_max);

/// State of sending a chunk.
struct Sending {
    Progress done{};
    Put why = Put::taken;       ///< what ended it; taken: nothing yet
    uint64_t long_messages = 0; ///< stored into receive buffers
    bool simple = true;         ///< all can be freed with one put
};

/// Whether a burst may go on with a run of long messages that AskAhead is for. Where the way to
/// store was given, there is no clock.
[[gnu::always_inline]] inline bool may_ask_ahead(const Tx &q, rte_mbuf *const *mbufs, unsigned n)
{
    constexpr unsigned last = AskAhead::messages_least - 1;
    static_assert(AskAhead::longest == Plain::own_above);
    return n > last && q.s.cycles != nullptr && mbufs[0] != nullptr && mbufs[last] != nullptr &&
           std::min(mbufs[0]->pkt_len, mbufs[last]->pkt_len) > q.inline_max &&
           std::max(mbufs[0]->pkt_len, mbufs[last]->pkt_len) <= AskAhead::longest;
}

/// The cycles of what may be a run of long messages. They are looked at however the messages are
/// stored, so that no way of the trial of stores is dearer by it.
class TimedRun
{
    const bool timed_;
    const Stores stores_;
    const unsigned messages_;
    const uint64_t long_messages_, bytes_, begin_;

public:
    /// @param sending  the chunk so far  @param mbufs, n  the burst that it is of
    [[gnu::always_inline]] TimedRun(const Tx &q, const Sending &sending, rte_mbuf *const *mbufs,
                                    unsigned n)
        : timed_(may_ask_ahead(q, mbufs + sending.done.messages, n - sending.done.messages)),
          stores_(q.stores), messages_(sending.done.messages),
          long_messages_(sending.long_messages), bytes_(q.stats.cpu_bytes),
          begin_(timed_ ? q.s.cycles() : 0)
    {
    }
    /// What ended for want of room, or had other messages in it, says nothing: what it took is not
    /// the stores alone.
    [[gnu::always_inline]] void end(Tx &q, const Sending &sending) const
    {
        if (!timed_)
            return;
        const uint64_t cycles = q.s.cycles() - begin_;
        const unsigned messages = sending.done.messages - messages_;
        if (sending.why == Put::taken && messages >= AskAhead::messages_least &&
            sending.long_messages - long_messages_ == messages && stores_ == Stores::plain &&
            q.stores == Stores::plain)
            q.ask_ahead.took(q.stats.cpu_bytes - bytes_, cycles);
    }
};

/// Puts messages that put_run() does not handle into a chunk: consecutive long ones, or one that is
/// unusual otherwise.
template <MemPolicy Mem, class Metas>
[[gnu::always_inline]] inline void put_others(Tx &q, Chunk<Mem> &out, Sending &sending,
                                              rte_mbuf *const *mbufs, Metas metas, unsigned n,
                                              const rte_mempool *pool)
{
    Progress &p = sending.done;
    while (p.messages < n && p.lines <= chunk_stop) {
        const rte_mbuf *m = mbufs[p.messages];
        if (m == nullptr) [[unlikely]] {
            sending.why = Put::invalid;
            return;
        }
        if (!metas.takes(m)) {
            sending.why = Put::too_long;
            return;
        }
        const Taken taken = put_other<Mem>(q, out, p.lines, m, metas[p.messages]);
        p.lines += taken.lines;
        sending.why = taken.put;
        if (taken.put != Put::taken)
            return;
        p.messages++;
        p.bytes += m->pkt_len;
        sending.simple &= frees_simply(m, Rearmed(m), pool);
        // One that went into the ring for want of a buffer has taken more lines.
        if (m->pkt_len <= q.inline_max || taken.lines > 1)
            return;
        sending.long_messages++;
    }
}

/// A chunk without a message: only pad lines, if the first message did not fit before the end.
template <MemPolicy Mem>
[[gnu::noinline]] Put publish_pads(Tx &q, Chunk<Mem> &out, uint32_t pads, Put why)
{
    if (pads > 0) {
        out.publish(pads);
        count(q.head, pads);
    }
    return why;
}

/// Counts messages that the peer can see.
[[gnu::always_inline]] inline void count_sent(Tx &q, const Progress &p)
{
    count(q.head, p.lines);
    count(q.stats.messages, p.messages);
    count(q.stats.bytes, p.bytes);
}

/// Sends messages until the end of the burst, a full chunk, or a message that cannot be sent.
template <MemPolicy Mem, class Metas>
[[gnu::always_inline]] inline Sent send_chunk(Tx &q, rte_mbuf **mbufs, Metas metas, unsigned n)
{
    Chunk<Mem> out(q.ring, q.head);
    if (n == 1)
        own_lines_of<Mem>(q, mbufs[0]);
    const rte_mempool *pool = mbufs[0] != nullptr ? mbufs[0]->pool : nullptr;
    Sending sending;
    Progress &p = sending.done;
    do {
        // A run ends where its messages are no longer alike, too.
        unsigned before;
        do {
            before = p.messages;
            p = put_run<Mem>(q, out, p, mbufs, metas, n, pool);
        } while (p.messages < n && p.messages != before);
        if (p.messages < n && p.lines <= chunk_stop) {
            const TimedRun run(q, sending, mbufs, n);
            put_others<Mem>(q, out, sending, mbufs, metas, n, pool);
            run.end(q, sending);
        }
    } while (p.messages < n && p.lines <= chunk_stop && sending.why == Put::taken);
    if (p.messages == 0) [[unlikely]]
        return {0, publish_pads<Mem>(q, out, p.lines, sending.why)};
    out.publish(p.lines);
    if (sending.long_messages == 1 && n == 1)
        own_next_buffer<Mem>(q, p.bytes);
    count_sent(q, p);
    count(q.stats.cpu_messages, sending.long_messages);
    free_sent(mbufs, p.messages, sending.simple);
    return {p.messages, sending.why};
}

/// Counts what ended a burst. @return what to say when nothing was taken.
[[gnu::noinline]] inline int burst_ended(Tx &q, Put why)
{
    switch (why) {
    case Put::full:
        count(q.stats.full, 1);
        return 0;
    case Put::too_long:
        count(q.stats.errors, 1);
        return -EMSGSIZE;
    case Put::invalid:
        count(q.stats.errors, 1);
        return -EINVAL;
    case Put::bad_peer:
        count(q.stats.bad_peer, 1);
        break_off(q);
        return -EPROTO;
    case Put::ring_end:
    case Put::taken:
        break;
    }
    return 0;
}

template <MemPolicy Mem, class Metas>
[[gnu::always_inline]] inline int send_burst(Tx &q, rte_mbuf **mbufs, Metas metas, unsigned n)
{
    if (q.stats.bytes >= q.inline_due) [[unlikely]]
        step_inline(q);
    unsigned done = 0;
    while (done < n) {
        const Sent sent = send_chunk<Mem>(q, mbufs + done, metas.from(done), n - done);
        done += sent.messages;
        if (sent.why > Put::ring_end) {
            if (Metas::is_flow && sent.why != Put::bad_peer)
                return static_cast<int>(done);
            const int error = burst_ended(q, sent.why);
            return done > 0 ? static_cast<int>(done) : error;
        }
    }
    return static_cast<int>(done);
}

template <MemPolicy Mem>
[[gnu::noinline]] int send_any(Tx *q, rte_mbuf **mbufs, const Meta *meta, unsigned n)
{
    return meta != nullptr ? send_burst<Mem>(*q, mbufs, MetaOfEach{meta}, n)
                           : send_burst<Mem>(*q, mbufs, WithoutMeta{}, n);
}

/// Only what the peer did wrong is counted here: of all else that ends it TxBurst says what it is.
template <MemPolicy Mem>
int tx_flow(Tx *q, rte_mbuf **mbufs, TxFlow &flow, unsigned n)
{
    if (!q->open || q->broken) [[unlikely]]
        return q->broken ? -EPROTO : 0;
    const uint64_t before = q->stats.bytes;
    const int sent = send_burst<Mem>(*q, mbufs, MetaOfFlow{&flow}, n);
    flow.bytes = q->stats.bytes - before;
    return sent;
}

} // namespace plx::queue::PLX_VARIANT

#endif

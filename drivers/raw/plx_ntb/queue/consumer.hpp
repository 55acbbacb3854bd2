// SPDX-License-Identifier: BSD-3-Clause
// The receiving half of a queue pair: lines of the own ring into mbufs of a private pool, posted
// buffers handed up as they are, credits and fresh buffers back to the peer.
#ifndef PLX_QUEUE_CONSUMER_HPP
#define PLX_QUEUE_CONSUMER_HPP

#include <cerrno>

#include <rte_mbuf.h>

#include "queue/cache_hint.hpp"
#include "queue/mem_policy.hpp"
#include "queue/state.hpp"

namespace plx::queue::PLX_VARIANT
{

/// Messages looked at before their mbufs are fetched in one go.
inline constexpr unsigned run_max = 64;
/// Behind a burst of so many, when it is full, it is worth a look whether there is more.
inline constexpr unsigned backlog_min = 16;
/// What is asked for of a message in posted buffers that comes alone.
inline constexpr uint32_t ask_for_bytes = 2048;

/// What a run consists of: inline messages of one or two lines, inline messages of any length,
/// messages in posted buffers.
enum class RunKind { few_lines, many_lines, posted };

/// Valid messages, one after the other, from the tail on. The header words are copies: checked once
/// here, used from here, never looked at again where the peer could change them.
struct Run {
    unsigned messages;
    RunKind kind;
    bool more;      ///< inline ones: as many as asked for, and more have come behind them
    uint32_t lines; ///< inline ones: what they take together
    uint64_t words[run_max];
};

enum class Look { valid, not_yet, bad };

template <MemPolicy Mem>
[[gnu::always_inline]] inline bool is_here(const RingPlace &ring, uint64_t position)
{
    return wire::word_tag(Mem::load(ring.line(position))) == ring.tag(position);
}

/// Length of a header word that says "inlined"; more than any length where it says anything else.
[[gnu::always_inline]] inline uint32_t inline_length(uint64_t word)
{
    constexpr uint32_t kind = static_cast<uint32_t>(wire::Kind::inlined) << 24;
    return (static_cast<uint32_t>(word >> 32) & 0x3ffffff) - kind;
}

/// Inline messages are handled in two classes: those of one or two lines, which are spared a loop,
/// and all. None goes beyond the end of the ring.
enum class Lines { few, many };

/// Looks at the lines behind a header. How many there are is found by branches: were the next
/// header's address computed from this one's word, the two misses would not overlap.
template <MemPolicy Mem, Lines L>
class Behind
{
    uint32_t last_length_ = 0, last_lines_ = 1;

public:
    /// @return what comes behind the message; NULL where a line is not what it should be
    [[gnu::always_inline]] const std::byte *operator()(const std::byte *line, const std::byte *end,
                                                       uint32_t length, uint32_t tag)
    {
        const std::byte *next = line + wire::line_bytes;
        if constexpr (L == Lines::few) {
            if (length <= wire::head_payload_bytes)
                return next;
            return next != end && Mem::load(next) == tag ? next + wire::line_bytes : nullptr;
        } else {
            if (length != last_length_) [[unlikely]] {
                last_length_ = length;
                last_lines_ = wire::inline_lines(length);
            }
            if (static_cast<size_t>(end - line) < last_lines_ * wire::line_bytes)
                return nullptr;
            uint64_t odd = 0;
            for (uint32_t i = 1; i < last_lines_; i++, next += wire::line_bytes)
                odd |= Mem::load(next) ^ tag;
            return odd == 0 ? next : nullptr;
        }
    }
};

/// The inline messages at the tail, up to the end of the ring. Reading ahead of the copies lets the
/// misses of the lines overlap. Everything else, and what is wrong, is left to find_other().
template <MemPolicy Mem, Lines L>
[[gnu::always_inline]] inline Look find_inline(const Rx &q, unsigned n, Run &run)
{
    const RingPlace ring = q.ring;
    const uint32_t tag = ring.tag(q.tail), left = ring.left(q.tail);
    const uint32_t most = L == Lines::few ? q.few_lines_max : q.many_lines_max;
    const std::byte *const first = ring.line(q.tail), *line = first;
    const std::byte *const end = line + left * wire::line_bytes;
    Behind<Mem, L> behind;
    unsigned found = 0;
    Look look = Look::valid;
    while (found < n && line != end) {
        const uint64_t word = Mem::load(line);
        if (wire::word_tag(word) != tag) {
            look = Look::not_yet;
            break;
        }
        const uint32_t length = inline_length(word);
        const std::byte *next = length <= most ? behind(line, end, length, tag) : nullptr;
        if (next == nullptr)
            break;
        run.words[found++] = word;
        line = next;
    }
    run.kind = L == Lines::few ? RunKind::few_lines : RunKind::many_lines;
    run.messages = found;
    run.lines = static_cast<uint32_t>(static_cast<size_t>(line - first) / wire::line_bytes);
    run.more = L == Lines::many && found == n && n >= backlog_min && 2 * run.lines <= left &&
               wire::word_tag(Mem::load(line)) == tag;
    return look;
}

/// Why find_inline() took no inline message whose header says @p length.
template <MemPolicy Mem>
[[gnu::always_inline]] inline Look look_behind(const Rx &q, uint32_t length)
{
    if (length > q.many_lines_max)
        return Look::bad;
    const uint32_t lines = wire::inline_lines(length), tag = q.ring.tag(q.tail);
    if (lines > q.ring.left(q.tail))
        return Look::bad;
    for (uint32_t i = 1; i < lines; i++) {
        const uint64_t w = Mem::load(q.ring.line(q.tail + i));
        if (wire::word_tag(w) != tag)
            return Look::not_yet;
        if (w >> 32 != 0)
            return Look::bad;
    }
    return Look::not_yet; // it has come since
}

/// Pad lines are the last ones of the ring, and say nothing but that.
[[gnu::always_inline]] inline Look skip_pad(Rx &q, uint64_t word)
{
    if (q.ring.left(q.tail) > wire::pad_lines_max ||
        word != wire::head_word(wire::word_tag(word), 0, wire::Kind::pad, 0))
        return Look::bad;
    q.tail++;
    return Look::valid;
}

/// The messages in posted buffers at the tail, or why there is nothing to take. valid without a
/// message: a pad line was skipped, look again. (Laps have few of them, so that ends.)
template <MemPolicy Mem>
[[gnu::noinline]] Look find_other(Rx &q, unsigned n, Run &run)
{
    uint32_t buffers = q.posted_now();
    run.kind = RunKind::posted;
    for (unsigned found = 0; found < n; run.messages = ++found) {
        const uint64_t position = q.tail + found, word = Mem::load(q.ring.line(position));
        if (wire::word_tag(word) != q.ring.tag(position))
            return Look::not_yet;
        const auto kind = static_cast<wire::Kind>(wire::word_kind(word));
        const uint32_t length = wire::word_length(word);
        if (kind != wire::Kind::posted) {
            if (found > 0)
                return Look::valid;
            if (kind == wire::Kind::inlined)
                return look_behind<Mem>(q, length);
            return kind == wire::Kind::pad ? skip_pad(q, word) : Look::bad;
        }
        const uint32_t need = q.per_buffer.ceil(length);
        if (length == 0 || length > q.s.max_message || need > buffers) [[unlikely]]
            return Look::bad;
        buffers -= need;
        run.words[found] = word;
    }
    return Look::valid;
}

template <MemPolicy Mem>
[[gnu::always_inline]] inline Look find_run(Rx &q, unsigned n, Run &run)
{
    Look look = find_inline<Mem, Lines::few>(q, n, run);
    if (run.messages > 0 || look == Look::not_yet)
        return look;
    look = find_inline<Mem, Lines::many>(q, n, run);
    if (run.messages > 0)
        return look;
    return find_other<Mem>(q, n, run);
}

[[gnu::always_inline]] inline void set_meta(Meta *meta, uint64_t word, const std::byte *line)
{
    if (meta != nullptr) {
        __builtin_memcpy(&meta->data, line + 8, sizeof(meta->data));
        meta->flags = wire::word_flags(word);
        meta->reserved = 0;
    }
}

/// What a message out of the ring sets in its mbuf: 32 bytes of the first cache line, as two
/// vectors. (Put together in memory they would wait for their own small stores.)
class Rearm
{
    __m128i fixed_;

public:
    explicit Rearm(uint16_t port)
        : fixed_(_mm_set_epi64x(0, RTE_PKTMBUF_HEADROOM | 1ll << 16 | 1ll << 32 |
                                       static_cast<long long>(uint64_t{port} << 48)))
    {
        static_assert(offsetof(rte_mbuf, refcnt) == offsetof(rte_mbuf, data_off) + 2 &&
                      offsetof(rte_mbuf, nb_segs) == offsetof(rte_mbuf, data_off) + 4 &&
                      offsetof(rte_mbuf, port) == offsetof(rte_mbuf, data_off) + 6 &&
                      offsetof(rte_mbuf, ol_flags) == offsetof(rte_mbuf, data_off) + 8 &&
                      offsetof(rte_mbuf, packet_type) == offsetof(rte_mbuf, data_off) + 16 &&
                      offsetof(rte_mbuf, pkt_len) == offsetof(rte_mbuf, data_off) + 20 &&
                      offsetof(rte_mbuf, data_len) == offsetof(rte_mbuf, data_off) + 24);
    }
    [[gnu::always_inline]] void operator()(rte_mbuf *m, uint32_t length) const
    {
        auto *to = reinterpret_cast<__m128i *>(&m->rearm_data);
        const long long n = length;
        _mm_storeu_si128(to, fixed_);
        _mm_storeu_si128(to + 1, _mm_set_epi64x(n, n << 32));
    }
};

/// mbufs for inline messages. @return how many there are.
[[gnu::always_inline]] inline unsigned fetch_mbufs(Rx &q, rte_mbuf **mbufs, unsigned n)
{
    if (rte_mempool_get_bulk(q.inline_pool, reinterpret_cast<void **>(mbufs), n) == 0) [[likely]]
        return n;
    unsigned got = 0;
    while (got < n && rte_mempool_get(q.inline_pool, reinterpret_cast<void **>(mbufs + got)) == 0)
        got++;
    return got;
}

/// Takes the header line of an inline message. @return where its bytes begin
[[gnu::always_inline]] inline std::byte *take_head(rte_mbuf *m, const Rearm &rearm, uint64_t word,
                                                   const std::byte *line, Meta *meta)
{
    std::byte *data = static_cast<std::byte *>(m->buf_addr) + RTE_PKTMBUF_HEADROOM;
    copy_fixed<wire::head_payload_bytes>(data, line + wire::head_payload_offset);
    rearm(m, wire::word_length(word));
    set_meta(meta, word, line);
    return data;
}

/// Copies a run of inline messages out of the ring. Where more has come than the burst takes, the
/// lines of the next one, taken to be as many, are asked for; nowhere else: lines that are not
/// written yet would be taken away from the sender. (A line that is there was published with its
/// whole chunk.)
/// @return lines copied
template <Lines L>
[[gnu::always_inline]] inline uint64_t take_lines(const Rx &q, const Run &run, rte_mbuf **mbufs,
                                                  unsigned n, Meta *meta, uint64_t &bytes)
{
    const Rearm rearm(q.port);
    const std::byte *const first = q.ring.line(q.tail), *line = first;
    const size_t ahead = run.lines * wire::line_bytes;
    const uint32_t whole_line_until =
        q.inline_room - static_cast<uint32_t>(wire::cont_payload_bytes);
    uint64_t sum = 0;
    for (unsigned i = 0; i < n; i++) {
        const uint64_t word = run.words[i];
        const uint32_t length = wire::word_length(word);
        if (L == Lines::many && run.more)
            __builtin_prefetch(line + ahead, 0, 3);
        std::byte *data =
            take_head(mbufs[i], rearm, word, line, meta != nullptr ? meta + i : nullptr);
        line += wire::line_bytes;
        for (uint32_t done = wire::head_payload_bytes; done < length;
             done += static_cast<uint32_t>(wire::cont_payload_bytes)) {
            if (L == Lines::many && run.more)
                __builtin_prefetch(line + ahead, 0, 3);
            const std::byte *from = line + wire::cont_payload_offset;
            line += wire::line_bytes;
            if (L == Lines::few || done <= whole_line_until) [[likely]]
                copy_fixed<wire::cont_payload_bytes>(data + done, from);
            else
                copy_bytes(data + done, from, length - done);
            if constexpr (L == Lines::few)
                break;
        }
        sum += length;
    }
    bytes += sum;
    return static_cast<uint64_t>(line - first) / wire::line_bytes;
}

/// Takes a run of inline messages. @return messages taken; fewer when the pool is empty.
[[gnu::always_inline]] inline unsigned take_in_ring(Rx &q, const Run &run, rte_mbuf **mbufs,
                                                    Meta *meta, uint64_t &bytes)
{
    const unsigned n = fetch_mbufs(q, mbufs, run.messages);
    const uint64_t lines = run.kind == RunKind::few_lines
                               ? take_lines<Lines::few>(q, run, mbufs, n, meta, bytes)
                               : take_lines<Lines::many>(q, run, mbufs, n, meta, bytes);
    drain_lines(q.drain, q.ring, q.tail, q.tail + lines);
    q.tail += lines;
    return n;
}

/// The oldest posted buffer: the one the peer has filled.
[[gnu::always_inline]] inline rte_mbuf *pop_posted(Rx &q)
{
    rte_mbuf *m = q.fifo[q.fifo_tail++ & (Rx::fifo_size - 1)];
    if (--q.line_left == 0) {
        q.posted_tail++;
        q.line_left = q.line_count[q.posted_tail & (wire::posted_lines_max - 1)];
    }
    return m;
}

/// Chains the buffers of one message. Their number was checked by find_run().
[[gnu::always_inline]] inline rte_mbuf *take_chain(Rx &q, uint32_t length)
{
    rte_mbuf *first = pop_posted(q);
    rte_mbuf *last = first;
    uint32_t left = length;
    uint16_t segments = 1;
    while (left > q.s.buf_bytes) {
        last->data_len = static_cast<uint16_t>(q.s.buf_bytes);
        left -= q.s.buf_bytes;
        last->next = pop_posted(q);
        last = last->next;
        segments++;
    }
    last->data_len = static_cast<uint16_t>(left);
    first->pkt_len = length;
    first->nb_segs = segments;
    first->port = q.port;
    return first;
}

/// Asks for the lines of a message that comes alone, all at once: its reader gets to them only
/// after what is left to do here.
[[gnu::always_inline]] inline void ask_for(const rte_mbuf *m)
{
    const auto *data = rte_pktmbuf_mtod(m, const std::byte *);
    for (uint32_t at = 0; at < m->data_len && at < ask_for_bytes; at += wire::line_bytes)
        __builtin_prefetch(data + at, 0, 3);
}

[[gnu::noinline]] inline unsigned take_posted_run(Rx &q, const Run &run, rte_mbuf **mbufs,
                                                  Meta *meta, uint64_t &bytes)
{
    for (unsigned i = 0; i < run.messages; i++) {
        const uint32_t length = wire::word_length(run.words[i]);
        mbufs[i] = take_chain(q, length);
        set_meta(meta != nullptr ? meta + i : nullptr, run.words[i], q.ring.line(q.tail + i));
        bytes += length;
    }
    if (run.messages == 1)
        ask_for(mbufs[0]);
    drain_lines(q.drain, q.ring, q.tail, q.tail + run.messages);
    q.tail += run.messages;
    return run.messages;
}

/// Stores one posted line of @p n buffers that are in the FIFO already.
template <MemPolicy Mem>
void put_posted_line(Rx &q, rte_mbuf *const *mbufs, uint32_t n)
{
    alignas(64) uint32_t line[wire::line_bytes / 4] = {};
    const uint64_t word = uint64_t{q.posted.tag(q.posted_head)} | uint64_t{n} << 32;
    __builtin_memcpy(line, &word, sizeof(word));
    for (uint32_t i = 0; i < n; i++) {
        rte_pktmbuf_reset(mbufs[i]);
        line[2 + i] = static_cast<uint32_t>(
            static_cast<size_t>(rte_pktmbuf_mtod(mbufs[i], const std::byte *) - q.s.block) /
            wire::line_bytes);
        q.fifo[q.fifo_head++ & (Rx::fifo_size - 1)] = mbufs[i];
    }
    std::byte *to = q.posted.line(q.posted_head);
    const std::byte *from = reinterpret_cast<const std::byte *>(line);
    if constexpr (Mem::whole_lines) {
        Mem::line(to, from);
    } else {
        Mem::copy(to + 8, from + 8, wire::line_bytes - 8);
        Mem::body_fence();
        Mem::word(to, word);
    }
    q.line_count[q.posted_head & (wire::posted_lines_max - 1)] = static_cast<uint8_t>(n);
    if (q.posted_head == q.posted_tail)
        q.line_left = n;
    q.posted_head++;
}

/// Buffers for one posted line: a full one, or the last few of the pool when the peer is about to
/// run dry. A line that is not full is spent only while the lines left after it still have room for
/// the longest message: else buffers that come home one by one could fill the ring for good.
[[gnu::noinline]] inline uint32_t fetch_buffers(Rx &q, rte_mbuf **mbufs)
{
    if (rte_mempool_get_bulk(q.s.window_pool, reinterpret_cast<void **>(mbufs),
                             wire::posted_per_line) == 0)
        return wire::posted_per_line;
    const auto lines_after =
        static_cast<uint32_t>(q.posted.mask - 1 - (q.posted_head - q.posted_tail));
    uint32_t n = 0;
    if (q.posted_now() < q.low_water && q.posted_now() + lines_after * wire::posted_per_line >=
                                            q.low_water + wire::posted_per_line - 1)
        while (n < wire::posted_per_line &&
               rte_mempool_get(q.s.window_pool, reinterpret_cast<void **>(mbufs + n)) == 0)
            n++;
    return n;
}

/// Keeps posted_target buffers with the peer. A line is never overwritten before it was used up.
template <MemPolicy Mem>
[[gnu::noinline]] void refill(Rx &q)
{
    while (q.posted_now() + wire::posted_per_line <= q.s.posted_target &&
           q.posted_head - q.posted_tail < q.posted.mask) {
        rte_mbuf *mbufs[wire::posted_per_line];
        const uint32_t n = fetch_buffers(q, mbufs);
        if (n == 0) {
            count(q.stats.nombuf, q.posted_now() < q.low_water);
            break;
        }
        put_posted_line<Mem>(q, mbufs, n);
    }
    Mem::flush();
}

/// Here and not in each burst: a lap of the ring returns credits a few times.
[[gnu::always_inline]] inline void consider_drain(Rx &q)
{
    if (q.tail >= q.drain_trial.due()) [[unlikely]]
        q.drain = q.drain_trial.step(q.tail, q.s.cycles());
}

template <MemPolicy Mem>
[[gnu::noinline]] void return_credits(Rx &q)
{
    q.returned = static_cast<uint32_t>(q.tail);
    Mem::word(q.s.peer_credit, uint64_t{q.s.peer_back_base} | uint64_t{q.returned} << 32);
    Mem::word(q.s.peer_credit + 8, uint64_t{q.s.peer_back_base} | uint64_t{q.messages} << 32);
    Mem::flush();
    consider_drain(q);
}

/// Credits and buffers back to the peer: in batches, and all that is due when nothing came.
template <MemPolicy Mem>
[[gnu::always_inline]] inline void give_back(Rx &q, bool idle)
{
    const uint32_t due = static_cast<uint32_t>(q.tail) - q.returned;
    if (due >= q.batch || (idle && due > 0))
        return_credits<Mem>(q);
    if (q.posted_now() + wire::posted_per_line <= q.s.posted_target) [[unlikely]]
        refill<Mem>(q);
}

[[gnu::noinline]] inline void stop_at_bad_line(Rx &q)
{
    q.broken = true;
    count(q.stats.bad_peer, 1);
}

/// Asks for the first lines of an answer as soon as there is something to answer: to the sending
/// burst it is some hundred instructions, about what the lines take to come. The peer polls them,
/// so asked for any sooner they would be gone again; and only where the last messages were followed
/// by a send, so that nobody's lines are taken for a stream that goes one way.
template <MemPolicy Mem>
[[gnu::always_inline]] inline void expect_answer(Rx &q)
{
    const Tx *tx = std::atomic_ref<const Tx *>(q.answers).load(std::memory_order_relaxed);
    if (Mem::fenced || tx == nullptr)
        return;
    const uint64_t head =
        std::atomic_ref<uint64_t>(const_cast<uint64_t &>(tx->head)).load(std::memory_order_relaxed);
    if (head == q.answers_at)
        return;
    q.answers_at = head;
    Mem::own(tx->ring.line(head));
    Mem::own(tx->ring.line(head + 1));
}

template <MemPolicy Mem>
int rx_burst(Rx *q, rte_mbuf **mbufs, Meta *meta, unsigned n)
{
    if (!q->open || q->broken) [[unlikely]]
        return q->broken ? -EPROTO : 0;
    // Behind the line that is polled: a message of two lines would pay for two misses in turn.
    __builtin_prefetch(q->ring.line(q->tail + 1), 0, 3);
    unsigned got = 0;
    uint64_t bytes = 0, posted = 0;
    // Most looks find nothing, and shall be quick to say so.
    Look look = is_here<Mem>(q->ring, q->tail) ? Look::valid : Look::not_yet;
    while (got < n && look == Look::valid) {
        Run run;
        look = find_run<Mem>(*q, n - got < run_max ? n - got : run_max, run);
        if (run.messages == 0)
            continue;
        expect_answer<Mem>(*q);
        Meta *run_meta = meta != nullptr ? meta + got : nullptr;
        unsigned taken;
        if (run.kind != RunKind::posted) [[likely]] {
            taken = take_in_ring(*q, run, mbufs + got, run_meta, bytes);
        } else {
            taken = take_posted_run(*q, run, mbufs + got, run_meta, bytes);
            posted += taken;
        }
        got += taken;
        if (taken < run.messages) [[unlikely]] {
            count(q->stats.nombuf, 1);
            look = Look::not_yet;
        }
    }
    if (look == Look::bad) [[unlikely]] {
        stop_at_bad_line(*q);
        if (got == 0)
            return -EPROTO;
    }
    if (got > 0) {
        q->messages += got;
        count(q->stats.messages, got);
        count(q->stats.bytes, bytes);
        count(q->stats.posted_messages, posted);
    }
    give_back<Mem>(*q, got == 0);
    return static_cast<int>(got);
}

} // namespace plx::queue::PLX_VARIANT

#endif

// SPDX-License-Identifier: BSD-3-Clause
// The receiving half of a queue pair: copies inline messages into mbufs of a private pool, delivers
// receive buffers as they are, and returns credits and new buffers to the peer.
#ifndef PLX_QUEUE_CONSUMER_HPP
#define PLX_QUEUE_CONSUMER_HPP

#include <algorithm>
#include <cerrno>

#include <rte_mbuf.h>

#include "queue/cache_hint.hpp"
#include "queue/returns.hpp"
#include "queue/run.hpp"

namespace plx::queue::PLX_VARIANT
{

/// Bytes that are prefetched of a long message that arrives alone.
inline constexpr uint32_t ask_for_bytes = 2048;

/// Where the metadata of a burst go, and which messages it is for. `from(i)` is where those of
/// message i and of the ones behind it go, `set` stores those of the first.
struct MetaOut {
    static constexpr bool is_flow = false;
    Meta *meta; ///< or NULL
    static AnyMessage wanted() { return {}; }
    [[gnu::always_inline]] MetaOut from(unsigned i) const
    {
        return {meta != nullptr ? meta + i : nullptr};
    }
    [[gnu::always_inline]] void set(uint64_t word, const std::byte *line) const
    {
        if (meta != nullptr) {
            __builtin_memcpy(&meta->data, line + wire::meta_offset, sizeof(meta->data));
            meta->flags = wire::word_flags(word);
            meta->reserved = 0;
        }
    }
    static void count(uint64_t) {}
    static int stop() { return 0; }
};
/// High halves of the metadata's data: low ones and flags are the flow's.
struct HighOut {
    uint32_t *high; ///< or NULL
    [[gnu::always_inline]] HighOut from(unsigned i) const
    {
        return {high != nullptr ? high + i : nullptr};
    }
    [[gnu::always_inline]] void set(uint64_t, const std::byte *line) const
    {
        if (high != nullptr)
            __builtin_memcpy(high, line + wire::meta_offset + sizeof(*high), sizeof(*high));
    }
};
struct FlowOut {
    static constexpr bool is_flow = true;
    RxFlow *flow;
    OfFlow wanted() const { return OfFlow(*flow); }
    [[gnu::always_inline]] HighOut from(unsigned i) const { return HighOut{flow->high}.from(i); }
    void count(uint64_t bytes) const { flow->bytes = bytes; }
    /// Something else is next. @return 0
    int stop() const
    {
        flow->other = 1;
        return 0;
    }
};

/// Sets the mbuf fields of an inline message: 32 bytes of the first cache line, as two vectors.
/// (Assembled in memory, loads would wait for the small stores.)
class Rearm
{
    __m128i fixed_;

    [[gnu::always_inline]] static __m128i sizes(uint32_t length)
    {
        const long long n = length;
        return _mm_set_epi64x(n, n << 32);
    }

public:
    /// The same for messages of one length, in one store where there are such.
    struct OfLength {
        Piece<32> fields;
        [[gnu::always_inline]] void operator()(rte_mbuf *m, uint32_t) const
        {
            fields.store(reinterpret_cast<std::byte *>(&m->rearm_data));
        }
    };
    [[gnu::always_inline]] explicit Rearm(const Rx &q)
        : fixed_(_mm_load_si128(reinterpret_cast<const __m128i *>(q.rearm)))
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
        _mm_storeu_si128(to, fixed_);
        _mm_storeu_si128(to + 1, sizes(length));
    }
    [[gnu::always_inline]] OfLength of(uint32_t length) const
    {
#ifdef __AVX2__
        return {{_mm256_set_m128i(sizes(length), fixed_)}};
#else
        return {{{fixed_}, {sizes(length)}}};
#endif
    }
};

/// mbufs for inline messages; the spares only if the pool has no more. @return how many there are.
[[gnu::always_inline]] inline unsigned fetch_mbufs(Rx &q, rte_mbuf **mbufs, unsigned n)
{
    if (rte_mempool_get_bulk(q.inline_pool, reinterpret_cast<void **>(mbufs), n) == 0) [[likely]]
        return n;
    unsigned got = 0;
    while (got < n && rte_mempool_get(q.inline_pool, reinterpret_cast<void **>(mbufs + got)) == 0)
        got++;
    while (got < n && q.spares > 0)
        mbufs[got++] = q.spare[--q.spares];
    return got;
}

/// Takes the header line of an inline message. @param rearm  a Rearm, or of its length
/// @return where its bytes begin
template <class Rearming, class Out>
[[gnu::always_inline]] inline std::byte *take_head(rte_mbuf *m, const Rearming &rearm,
                                                   uint64_t word, uint32_t length,
                                                   const std::byte *line, Out out)
{
    std::byte *data = static_cast<std::byte *>(m->buf_addr) + RTE_PKTMBUF_HEADROOM;
    copy_fixed<wire::head_payload_bytes>(data, line + wire::head_payload_offset);
    rearm(m, length);
    out.set(word, line);
    return data;
}

/// Takes an inline message of Lines lines, and of the last one as many bytes as Last: what is
/// behind the message, the mbuf has room for.
template <uint32_t Lines, size_t Last, class Rearming, class Out>
[[gnu::always_inline]] inline void take_message(rte_mbuf *m, const Rearming &rearm, uint64_t word,
                                                uint32_t length, const std::byte *line, Out out)
{
    static_assert(longest_of(Lines) <= wire::inline_bytes_max); // each mbuf has that room
    std::byte *data = take_head(m, rearm, word, length, line, out);
    for (uint32_t i = 1; i + 1 < Lines; i++)
        copy_fixed<wire::cont_payload_bytes>(data + longest_of(i), line + i * wire::line_bytes +
                                                                       wire::cont_payload_offset);
    if constexpr (Lines > 1)
        copy_fixed<Last>(data + longest_of(Lines - 1),
                         line + (Lines - 1) * wire::line_bytes + wire::cont_payload_offset);
}

/// Takes messages of one length, and of Lines lines. @param ahead  bytes to the lines that are
/// prefetched; 0: none are. @return the line behind them
template <uint32_t Lines, class Out>
[[gnu::always_inline]] inline const std::byte *take_alike(const Rearm &rearm, uint64_t word,
                                                          const std::byte *line, size_t ahead,
                                                          rte_mbuf **mbufs, unsigned n, Out out)
{
    const uint32_t length = wire::word_length(word);
    const Rearm::OfLength same = rearm.of(length);
    const auto take = [=]<size_t Last>() {
        const std::byte *from = line;
        for (unsigned i = 0; i < n; i++, from += Lines * wire::line_bytes) {
            if (ahead != 0)
                for (uint32_t j = 0; j < Lines; j++)
                    __builtin_prefetch(from + ahead + j * wire::line_bytes, 0, 3);
            take_message<Lines, Last>(mbufs[i], same, word, length, from, out.from(i));
        }
        return from;
    };
    // How much of the last line is copied is chosen once, too: stores, above all one across two
    // lines of an mbuf, as of 56 bytes behind 48, are what a burst of short messages waits for.
    if constexpr (Lines > 1) {
        const uint32_t in_last = length - longest_of(Lines - 1);
        if (in_last <= 16)
            return take.template operator()<16>();
        if (in_last <= 32)
            return take.template operator()<32>();
    }
    return take.template operator()<wire::cont_payload_bytes>();
}

/// The messages at the begin of a run that are alike. @return the line behind them
template <Lines L, class Out>
[[gnu::always_inline]] inline const std::byte *take_first(const Rearm &rearm, uint64_t word,
                                                          const std::byte *line, size_t ahead,
                                                          rte_mbuf **mbufs, unsigned n, Out out)
{
    return with_lines<alike_least<L>, alike_most<L>>(
        wire::inline_lines(wire::word_length(word)),
        [&]<uint32_t Each>() { return take_alike<Each>(rearm, word, line, ahead, mbufs, n, out); });
}

/// Copies a run of inline messages out of the ring. If more has arrived than the burst takes, the
/// lines of the next run are prefetched, as many as of this one; otherwise none: a prefetch would
/// take lines that are not written yet away from the sender. (A line that has arrived was published
/// with its whole chunk.)
/// @return lines copied
template <Lines L, class Out>
[[gnu::always_inline]] inline uint64_t take_lines(const Rx &q, const Run &run, rte_mbuf **mbufs,
                                                  unsigned n, Out out, uint64_t &bytes)
{
    const Rearm rearm(q);
    const std::byte *const first = q.ring.line(q.tail), *line = first;
    const size_t ahead = run.lines * wire::line_bytes;
    const uint32_t whole_line_until =
        q.inline_room - static_cast<uint32_t>(wire::cont_payload_bytes);
    uint64_t sum = 0;
    unsigned i = 0;
    if (run.alike > 0) {
        const uint64_t word = run.words[0];
        i = std::min(n, run.alike);
        line = take_first<L>(rearm, word, line, L == Lines::many && run.more ? ahead : 0, mbufs, i,
                             out);
        sum = uint64_t{wire::word_length(word)} * i;
    }
    for (; i < n; i++) {
        const uint64_t word = run.words[i];
        const uint32_t length = wire::word_length(word);
        if (L == Lines::many && run.more)
            __builtin_prefetch(line + ahead, 0, 3);
        std::byte *data = take_head(mbufs[i], rearm, word, length, line, out.from(i));
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

/// Lines that nothing reads any more.
[[gnu::always_inline]] inline void consume_lines(Rx &q, uint64_t lines)
{
    hint_lines(q.hint, q.ring, q.tail, q.tail + lines);
    q.tail += lines;
}

/// Takes a run of inline messages. @return messages taken; fewer when the pool is empty.
template <class Out>
[[gnu::always_inline]] inline unsigned take_in_ring(Rx &q, const Run &run, rte_mbuf **mbufs,
                                                    Out out, uint64_t &bytes)
{
    const unsigned n = fetch_mbufs(q, mbufs, run.messages);
    const uint64_t lines = run.kind == RunKind::few_lines
                               ? take_lines<Lines::few>(q, run, mbufs, n, out, bytes)
                               : take_lines<Lines::many>(q, run, mbufs, n, out, bytes);
    consume_lines(q, lines);
    return n;
}

/// The oldest receive buffer, which the peer has filled.
[[gnu::always_inline]] inline rte_mbuf *pop_buffer(Rx &q)
{
    rte_mbuf *m = q.fifo[q.fifo_tail++ & (Rx::fifo_size - 1)];
    if (--q.line_left == 0) {
        q.buffer_ring_tail++;
        q.line_left = q.line_count[q.buffer_ring_tail & (wire::buffer_ring_lines_max - 1)];
    }
    return m;
}

/// Chains the buffers of one message. Their number was checked by find_run().
[[gnu::always_inline]] inline rte_mbuf *take_chain(Rx &q, uint32_t length)
{
    rte_mbuf *first = pop_buffer(q);
    rte_mbuf *last = first;
    uint32_t left = length;
    uint16_t segments = 1;
    while (left > q.s.buf_bytes) {
        last->data_len = static_cast<uint16_t>(q.s.buf_bytes);
        left -= q.s.buf_bytes;
        last->next = pop_buffer(q);
        last = last->next;
        segments++;
    }
    last->data_len = static_cast<uint16_t>(left);
    first->pkt_len = length;
    first->nb_segs = segments;
    first->port = q.s.port;
    return first;
}

/// Prefetches the lines of a message that arrives alone: the application reads them only after the
/// rest of this burst call.
[[gnu::noinline]] inline void ask_for(const rte_mbuf *m)
{
    const auto *data = rte_pktmbuf_mtod(m, const std::byte *);
    const std::byte *const end = data + std::min<uint32_t>(m->data_len, ask_for_bytes);
    asm volatile(""); // else the compiler leaves the call out: to it a prefetch is no effect
    for (; data < end; data += wire::line_bytes)
        __builtin_prefetch(data, 0, 3);
}

[[gnu::noinline]] inline unsigned take_long_run(Rx &q, const Run &run, rte_mbuf **mbufs,
                                                MetaOut out, uint64_t &bytes)
{
    for (unsigned i = 0; i < run.messages; i++) {
        const uint32_t length = wire::word_length(run.words[i]);
        mbufs[i] = take_chain(q, length);
        out.from(i).set(run.words[i], q.ring.line(q.tail + i));
        bytes += length;
    }
    if (run.messages == 1)
        ask_for(mbufs[0]);
    consume_lines(q, run.messages);
    return run.messages;
}

[[gnu::noinline]] inline void stop_at_bad_line(Rx &q)
{
    q.broken = true;
    make_unready(q);
    watch_always(q); // each later burst reports it
    count(q.stats.bad_peer, 1);
}

/// Prefetches for writing the first lines of an answer as soon as a message has arrived: until the
/// sending burst it is some hundred instructions, about as long as the lines take to arrive. Any
/// earlier, the polling peer would have taken them away again. Only if the last messages were
/// followed by a send, so that one-way traffic takes no lines away.
/// @tparam Lines  of the answer, probably; two are asked for in any case
template <MemPolicy Mem, uint32_t Lines = 2>
[[gnu::always_inline]] inline void expect_answer(Rx &q)
{
    const Tx *tx = std::atomic_ref<const Tx *>(q.answers).load(std::memory_order_relaxed);
    if (Mem::order != Order::release || tx == nullptr)
        return;
    const uint64_t head =
        std::atomic_ref<uint64_t>(const_cast<uint64_t &>(tx->head)).load(std::memory_order_relaxed);
    if (head == q.answers_at)
        return;
    q.answers_at = head;
    const std::byte *line = tx->ring.line(head);
    Mem::own(line);
    Mem::own(line + wire::line_bytes);
    if (Lines > 2 && tx->ring.left(head) >= Lines)
        for (uint32_t i = 2; i < Lines; i++)
            Mem::own(line + i * wire::line_bytes);
}

/// Counts received messages and returns their credits in batches.
template <MemPolicy Mem>
[[gnu::always_inline]] inline int received(Rx &q, unsigned messages, uint64_t bytes)
{
    const bool due = static_cast<uint32_t>(q.tail) - q.returned >= q.batch;
    count(q.stats.messages, messages);
    count(q.stats.bytes, bytes);
    watch_always(q);
    return due ? return_credits<Mem>(q, messages) : static_cast<int>(messages);
}

/// Of so many lines of a message, those for which the next poll asks besides the first two.
constexpr uint32_t behind_two(uint32_t lines)
{
    return lines > 2 ? lines - 2 : 0;
}

/// The end of a burst. @param bytes  of the messages. @return messages
template <MemPolicy Mem, class Out>
[[gnu::always_inline]] inline int received_some(Rx &q, Out out, unsigned got,
                                                uint64_t long_messages, uint64_t bytes)
{
    if (got == 0)
        return return_all<Mem>(q);
    out.count(bytes);
    q.lone_more = got == 1 && long_messages == 0
                      ? behind_two(wire::inline_lines(static_cast<uint32_t>(bytes)))
                      : 0;
    if (q.lacks_buffers()) [[unlikely]]
        refill<Mem>(q);
    return received<Mem>(q, got, bytes);
}

/// Whether a message of that word, at the tail, has filled receive buffers, and says what it may.
[[gnu::always_inline]] inline bool is_good_long(const Rx &q, uint64_t word)
{
    return wire::word_tag(word) == q.ring.tag(q.tail) &&
           wire::word_kind(word) == static_cast<unsigned>(wire::Kind::long_message) &&
           buffers_of_long(q, wire::word_length(word), q.buffers_available()) != 0;
}

/// Takes the message at the tail, which is_good_long(): alone, without a run.
template <MemPolicy Mem>
[[gnu::noinline]] int take_long_alone(Rx &q, rte_mbuf **mbufs, MetaOut out, uint64_t word)
{
    const uint32_t length = wire::word_length(word);
    mbufs[0] = take_chain(q, length);
    ask_for(mbufs[0]);
    out.set(word, q.ring.line(q.tail));
    expect_answer<Mem>(q);
    consume_lines(q, 1);
    count(q.stats.long_messages, 1);
    return received_some<Mem>(q, out, 1, 1, length);
}

/// Receives runs of messages until there are no more, or as many as asked for.
/// @param got  of them are there already, of @p bytes
template <MemPolicy Mem, class Out>
[[gnu::noinline]] int receive_runs(Rx *q, rte_mbuf **mbufs, Out out, unsigned n, unsigned got,
                                   uint64_t bytes)
{
    if constexpr (!Out::is_flow)
        if (n == 1) {
            const uint64_t word = Mem::load(q->ring.line(q->tail));
            if (is_good_long(*q, word))
                return take_long_alone<Mem>(*q, mbufs, out, word);
        }
    uint64_t long_messages = 0;
    PollResult result = PollResult::valid;
    while (got < n && result == PollResult::valid) {
        Run run;
        result = find_run<Mem>(*q, n - got < run_max ? n - got : run_max, run, out.wanted());
        if (run.messages == 0)
            continue;
        expect_answer<Mem>(*q);
        unsigned taken = 0;
        if (run.kind != RunKind::long_messages) [[likely]] {
            taken = take_in_ring(*q, run, mbufs + got, out.from(got), bytes);
        } else if constexpr (!Out::is_flow) {
            taken = take_long_run(*q, run, mbufs + got, out.from(got), bytes);
            long_messages += taken;
        }
        got += taken;
        if (taken < run.messages) [[unlikely]] {
            count(q->stats.nombuf, 1);
            result = PollResult::not_yet;
        }
    }
    if (result == PollResult::bad) [[unlikely]] {
        stop_at_bad_line(*q);
        if (got == 0)
            return -EPROTO;
    }
    if (result == PollResult::other) {
        out.stop();
        if (got == 0)
            return 0;
    }
    if (long_messages > 0)
        count(q->stats.long_messages, long_messages);
    return received_some<Mem>(*q, out, got, long_messages, bytes);
}

/// Receives messages of Lines lines that are alike, from one on that was found in front of
/// lone_until, with its lines: the usual burst, for which it costs half of what receive_runs()
/// does. All else is left to that, and what lies behind them.
template <MemPolicy Mem, uint32_t Lines, class Out>
[[gnu::noinline]] int receive_alike(Rx *q, rte_mbuf **mbufs, Out out, unsigned n, uint64_t word)
{
    const std::byte *const line = q->ring.line(q->tail);
    const uint32_t length = wire::word_length(word);
    const unsigned most = std::min({n, q->ring.left(q->tail) / Lines, run_max});
    const auto wanted = out.wanted();
    if (most == 0 || !wanted.takes(line, word, length)) [[unlikely]]
        return receive_runs<Mem>(q, mbufs, out, n, 0, 0);
    const unsigned found = count_alike<Mem, Lines>(line, most, word, wanted);
    if (found == 1)
        return receive_runs<Mem>(q, mbufs, out, n, 0, 0);
    expect_answer<Mem>(*q);
    const unsigned got = fetch_mbufs(*q, mbufs, found);
    take_alike<Lines>(Rearm(*q), word, line, 0, mbufs, got, out.from(0));
    consume_lines(*q, uint64_t{got} * Lines);
    const uint64_t bytes = uint64_t{length} * got;
    if (got < found) [[unlikely]]
        count(q->stats.nombuf, 1);
    else if (got < n) {
        const std::byte *const next = q->ring.line(q->tail);
        const uint64_t behind = Mem::load(next);
        if (wire::word_tag(behind) == q->ring.tag(q->tail)) {
            if (wanted.takes_next(next) ||
                wire::word_kind(behind) == static_cast<unsigned>(wire::Kind::pad))
                return receive_runs<Mem>(q, mbufs, out, n, got, bytes);
            out.stop(); // a message of another flow, perhaps not whole yet
        }
    }
    return received_some<Mem>(*q, out, got, 0, bytes);
}

/// Looks up to where a message of two lines, and the line behind it, lie before the end of the
/// ring.
/// @return false: not even here
[[gnu::always_inline]] inline bool renew_lone(Rx &q)
{
    const uint32_t left = q.ring.left(q.tail);
    q.lone_until = left > 2 ? q.tail + left - 2 : 0;
    q.lone_tag = q.ring.tag(q.tail);
    return left > 2;
}

template <MemPolicy Mem, class Out>
int receive(Rx *q, rte_mbuf **mbufs, Out out, unsigned n);

/// The burst, once there are spares.
template <MemPolicy Mem, class Out>
[[gnu::noinline]] int receive_with_spares(Rx *q, rte_mbuf **mbufs, Out out, unsigned n)
{
    q->spares = fetch_mbufs(*q, q->spare, Rx::spares_max);
    return q->spares > 0 ? receive<Mem>(q, mbufs, out, n)
                         : receive_runs<Mem>(q, mbufs, out, n, 0, 0);
}

/// The burst, where a lone message is not to be looked for at the tail, or not yet.
template <MemPolicy Mem, class Out>
[[gnu::noinline]] int receive_otherwise(Rx *q, rte_mbuf **mbufs, Out out, unsigned n)
{
    if (!q->ready) {
        if (!q->open || q->broken)
            return q->broken ? -EPROTO : 0;
        if (static_cast<int64_t>(q->s.cycles() - q->pause_end) < 0)
            return 0;
        q->ready = true;
    }
    return renew_lone(*q) ? receive<Mem>(q, mbufs, out, n)
                          : receive_runs<Mem>(q, mbufs, out, n, 0, 0);
}

/// Takes a message that has come alone.
template <MemPolicy Mem, uint32_t Lines, class Out>
[[gnu::always_inline]] inline int take_alone(Rx &q, const std::byte *line, uint64_t word,
                                             uint32_t length, rte_mbuf **mbufs, Out out)
{
    if (!out.wanted().takes(line, word, length)) [[unlikely]]
        return out.stop();
    rte_mbuf *const m = mbufs[0] = q.spare[--q.spares];
    q.lone_more = behind_two(Lines);
    expect_answer<Mem, Lines>(q);
    take_message<Lines, wire::cont_payload_bytes>(m, Rearm(q), word, length, line, out.from(0));
    consume_lines(q, Lines);
    out.count(length);
    return received<Mem>(q, 1, length);
}

/// Whether a line in front of lone_until, or right behind it, has been written.
template <MemPolicy Mem>
[[gnu::always_inline]] inline bool has_come(const Rx &q, const std::byte *line)
{
    return wire::word_tag(Mem::load(line)) == q.lone_tag;
}

/// One of two lines, the first of which was found. Outside of receive(), which then needs no stack
/// frame.
template <MemPolicy Mem, class Out>
[[gnu::noinline]] int receive_two_lines(Rx *q, rte_mbuf **mbufs, Out out, unsigned n, uint64_t word)
{
    const std::byte *const line = q->ring.line(q->tail), *behind = line + wire::line_bytes;
    if (Mem::load(behind) != q->lone_tag)
        return receive_runs<Mem>(q, mbufs, out, n, 0, 0);
    if (n != 1 && (n == 0 || has_come<Mem>(*q, behind + wire::line_bytes)))
        return receive_alike<Mem, 2>(q, mbufs, out, n, word);
    if (q->spares == 0) [[unlikely]]
        return receive_with_spares<Mem>(q, mbufs, out, n);
    return take_alone<Mem, 2>(*q, line, word, wire::word_length(word), mbufs, out);
}

/// One of more lines, of at most lone_lines_max bytes, the first of which was found. What is not
/// whole, and what others have come behind if these are asked for, is left to receive_runs(), and
/// so is one behind which receive buffers are to be replaced: who gets no other poll has them.
template <MemPolicy Mem, class Out>
[[gnu::noinline]] int receive_lines(Rx *q, rte_mbuf **mbufs, Out out, unsigned n, uint64_t word)
{
    const std::byte *const line = q->ring.line(q->tail);
    const uint32_t length = wire::word_length(word), lines = wire::inline_lines(length);
    if (q->tail + (lines - 2) >= q->lone_until || q->lacks_buffers() ||
        (n != 1 && (n == 0 || has_come<Mem>(*q, line + lines * wire::line_bytes))))
        return receive_runs<Mem>(q, mbufs, out, n, 0, 0);
    return with_lines<3, alike_lines_max>(lines, [=]<uint32_t Lines>() {
        if (!rest_is<Mem, Lines>(line, q->lone_tag)) [[unlikely]]
            return receive_runs<Mem>(q, mbufs, out, n, 0, 0);
        if (q->spares == 0) [[unlikely]]
            return receive_with_spares<Mem>(q, mbufs, out, n);
        return take_alone<Mem, Lines>(*q, line, word, length, mbufs, out);
    });
}

/// A message that comes alone costs the time of the instructions here, so one of a few lines goes
/// straight through: no loop, no mbuf from the pool. All others are left to receive_runs().
template <MemPolicy Mem, class Out>
int receive(Rx *q, rte_mbuf **mbufs, Out out, unsigned n)
{
    if (q->tail >= q->lone_until) [[unlikely]]
        return receive_otherwise<Mem>(q, mbufs, out, n);
    const std::byte *const line = q->ring.line(q->tail), *behind = line + wire::line_bytes;
    // Else a message of two lines waits for two misses in sequence.
    __builtin_prefetch(behind, 0, 3);
    const uint64_t word = Mem::load(line);
    if (wire::word_tag(word) != q->lone_tag)
        return return_all<Mem>(*q);
    const uint32_t length = inline_length(word);
    if (length > q->few_lines_max) {
        if (length <= q->lone_lines_max)
            return receive_lines<Mem>(q, mbufs, out, n, word);
        if (Out::is_flow &&
            wire::word_kind(word) == static_cast<unsigned>(wire::Kind::long_message))
            return out.stop();
        return receive_runs<Mem>(q, mbufs, out, n, 0, 0);
    }
    if (length > wire::head_payload_bytes)
        return receive_two_lines<Mem>(q, mbufs, out, n, word);
    if (n != 1 && (n == 0 || has_come<Mem>(*q, behind)))
        return receive_alike<Mem, 1>(q, mbufs, out, n, word);
    if (q->spares == 0) [[unlikely]]
        return receive_with_spares<Mem>(q, mbufs, out, n);
    return take_alone<Mem, 1>(*q, line, word, length, mbufs, out);
}

template <MemPolicy Mem>
int rx_burst(Rx *q, rte_mbuf **mbufs, Meta *meta, unsigned n)
{
    return receive<Mem>(q, mbufs, MetaOut{meta}, n);
}

template <MemPolicy Mem>
int rx_flow(Rx *q, rte_mbuf **mbufs, RxFlow &flow, unsigned n)
{
    flow.other = 0;
    flow.bytes = 0;
    return receive<Mem>(q, mbufs, FlowOut{&flow}, n);
}

/// The low half is read here, and compared again in each message: what the peer changes meanwhile
/// ends the flow, nothing else. Where a lone message is not looked for at the tail, it is
/// rx_burst() that renews up to where it is.
template <MemPolicy Mem>
int rx_next_flow(Rx *q, rte_mbuf **mbufs, RxFlow &flow, unsigned n)
{
    if (q->tail >= q->lone_until) [[unlikely]]
        return FlowOut{&flow}.stop();
    __builtin_memcpy(&flow.low, q->ring.line(q->tail) + wire::meta_offset, sizeof(flow.low));
    return rx_flow<Mem>(q, mbufs, flow, n);
}

} // namespace plx::queue::PLX_VARIANT

#endif

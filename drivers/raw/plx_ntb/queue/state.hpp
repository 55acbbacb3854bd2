// SPDX-License-Identifier: BSD-3-Clause
// State of the two halves of a queue pair, in private memory that the peer cannot reach. Tests set
// the positions to come near a wrap-around.
#ifndef PLX_QUEUE_STATE_HPP
#define PLX_QUEUE_STATE_HPP

#include <atomic>

#include "queue/ask_ahead.hpp"
#include "queue/inline_bound.hpp"
#include "queue/lead.hpp"
#include "queue/queue.hpp"
#include "queue/trial.hpp"
#include "queue/wire.hpp"

namespace plx::queue
{

/// x / d without a division: exact for x < 2^24 and 1 <= d <= 2^16, because the rounding error of
/// the reciprocal, below d / 2^40, times x stays below 1 / d.
struct Divider {
    uint64_t inverse;
    explicit constexpr Divider(uint32_t d = 1) : inverse(((uint64_t{1} << 40) + d - 1) / d) {}
    [[gnu::always_inline]] constexpr uint32_t ceil(uint32_t x) const
    {
        return x == 0 ? 0 : static_cast<uint32_t>(((x - 1) * inverse) >> 40) + 1;
    }
};

/// A counter with one writer that any thread may read. By hand one instruction, of which the
/// compiler makes three if it is an atomic load and store (doc/decisions/016-lone-messages.md); the
/// aligned word is stored whole either way. The thread sanitizer has to see the atomic.
[[gnu::always_inline]] inline void count(uint64_t &counter, uint64_t more)
{
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
    asm("addq %1, %0" : "+m"(counter) : "er"(more) : "cc");
#else
    std::atomic_ref<uint64_t> ref(counter);
    ref.store(ref.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
#endif
}

/// Where a ring lies and which tag a position of it carries.
struct RingPlace {
    std::byte *lines;
    uint32_t mask;
    uint32_t shift;
    uint32_t base;
    [[gnu::always_inline]] std::byte *line(uint64_t position) const
    {
        return lines + (position & mask) * wire::line_bytes;
    }
    /// Lines from a position to the end of the ring: they follow one another and carry one tag.
    [[gnu::always_inline]] uint32_t left(uint64_t position) const
    {
        return mask + 1 - (static_cast<uint32_t>(position) & mask);
    }
    [[gnu::always_inline]] uint32_t tag(uint64_t position) const
    {
        return base + 1 + static_cast<uint32_t>(position >> shift);
    }
};

/// A message that the engine may still read.
struct Held {
    rte_mbuf *mbuf;
    uint64_t copies; ///< read when so many copies are completed
};

/// A sending half's state of its copy engine.
struct ByEngine {
    const rte_mempool *known_pool; ///< the last pool that was checked to be reachable by the engine
    uint32_t room;                 ///< copies that can be queued without asking the engine
    uint64_t given;                ///< copies since the half was opened
    uint64_t head; ///< messages held since then; this and tail are counters that others may read
    uint64_t tail; ///< those of them that were freed
    Held held[held_max];
    static_assert((held_max & (held_max - 1)) == 0);
};

struct alignas(64) Tx {
    RingPlace ring;    ///< the peer's message ring
    uint64_t head;     ///< lines sent in this epoch; a counter that others may read
    uint32_t credited; ///< lines that the peer has returned, less those set aside, modulo 2^32
    bool open;
    bool broken;         ///< the peer violated the protocol
    uint32_t inline_max; ///< longest message of a burst that travels in the ring; may change
    /// Messages of at most lone_max bytes that are sent alone begin in front of lone_until: up to
    /// there two lines fit, before the end of the ring and into the room that is known, and carry
    /// lone_tag; of more lines the last but one lies in front of it. 0: to be looked for, and so
    /// while the half is not open or is broken.
    uint32_t lone_max;
    uint32_t lone_tag;
    uint64_t lone_until;

    alignas(64) RingPlace buffer_ring; ///< own block: the receive-buffer ring, which the peer fills
    Divider per_buffer;
    uint64_t buffer_ring_read; ///< lines of it read so far, each once
    uint32_t buffers_next;     ///< cursors of `buffers`, modulo 2^32: the next buffer to use,
    uint32_t buffers_end;      ///< and the end of the known ones
    uint32_t aside;            ///< buffers set aside, from buffers_next on, and as many lines;
    uint32_t hidden_end;       ///< meanwhile the end of the known ones: buffers_end hides them
    Stores stores;             ///< in force now, or being tried
    Stores stores_alone;       ///< of a message that is sent alone; not tried
    uint32_t max_message;
    uint32_t inline_alone;   ///< longest message that is sent alone in the ring
    uint64_t inline_due;     ///< TxStats::bytes where the trial of inline_max is due
    uint64_t stores_begin;   ///< TxStats::cpu_bytes where the trial began
    uint64_t stores_due;     ///< ... where it is due
    uint64_t stores_end;     ///< ... where it was left to inline_bound, if stores_left
    uint64_t stores_left_at; ///< ... and in cycles
    uint64_t stores_away;    ///< cycles that the trial of stores has not seen
    bool stores_left;
    Stores stores_kept; ///< of the trial's segment, if stores_left

    alignas(64) TxSetup s;
    Trial stores_trial;
    AskAhead ask_ahead;
    InlineBound inline_bound;
    alignas(64) ByEngine by_engine;
    alignas(64) TxStats stats;
    TxStats cleared;           ///< control side only: stats at the last reset
    uint64_t sent_before;      ///< messages before this epoch
    uint32_t left_unconfirmed; ///< control side only: when it was closed last

    static constexpr uint32_t buffers_size = 8192;
    /// Most buffers a message may need: one line more than needed then still fits.
    static constexpr uint32_t buffers_max = buffers_size - wire::buffers_per_line + 1;
    uint32_t buffers[buffers_size]; ///< known receive buffers: checked offsets, in lines
};

/// Messages sent in this epoch, modulo 2^32.
inline uint32_t messages_of(const Tx &q)
{
    return static_cast<uint32_t>(q.stats.messages - q.sent_before);
}

/// Longest inline message of so many lines.
constexpr uint32_t longest_of(uint32_t lines)
{
    return static_cast<uint32_t>(wire::head_payload_bytes + (lines - 1) * wire::cont_payload_bytes);
}
inline constexpr uint32_t two_lines_max = longest_of(2);
/// Messages of at most so many lines that are alike have loops of their own, for each number of
/// lines: up to 256 bytes, what travels in the ring in any case. Those that go and come alone have
/// ways of their own up to the same number.
inline constexpr uint32_t alike_lines_max = wire::inline_lines(256);

/// Calls @p call<Lines>() where @p lines is Lines, First to Last.
template <uint32_t First, uint32_t Last, class Call>
[[gnu::always_inline]] inline auto with_lines(uint32_t lines, const Call &call)
{
    if constexpr (First < Last) {
        if (lines != First)
            return with_lines<First + 1, Last>(lines, call);
    }
    return call.template operator()<First>();
}

/// Nothing more is sent until it is opened again.
inline void break_off(Tx &q)
{
    q.broken = true;
    q.lone_until = 0;
}

/// So far away that it can be moved by all bytes that are not part of the trial.
inline constexpr uint64_t never_due = UINT64_MAX / 2;

/// When the trial of stores looks next, in TxStats::cpu_bytes: never if there is none.
inline uint64_t next_look_at_stores(const Tx &q)
{
    const uint64_t due = q.stores_trial.due();
    return due == UINT64_MAX ? never_due : q.stores_begin + due * wire::line_bytes;
}

struct alignas(64) Rx {
    RxWatch watch;
    RingPlace ring; ///< own message ring
    uint64_t tail;  ///< lines consumed in this epoch
    /// A message that comes alone is looked for in front of lone_until: up to there two lines and
    /// the one behind them lie before the end of the ring, and carry lone_tag; of more lines the
    /// last but one lies in front of it. 0: to be looked for, and so while the half is not ready.
    uint64_t lone_until;
    uint32_t lone_tag;
    uint32_t returned;       ///< lines credited to the peer, modulo 2^32
    uint32_t few_lines_max;  ///< longest inline message of two lines, minding max_message
    uint32_t lone_lines_max; ///< longest one (bytes) that is looked for alone, minding it too
    uint32_t many_lines_max; ///< longest inline message, minding it too
    uint32_t batch;          ///< credits return when this many are due
    uint32_t lone_more;      ///< lines behind the first two of a message in the ring that was the
                             ///< last to come, and came alone
    bool ready; ///< to look into the ring: open, not broken, and not leaving the writer a lead
    bool open;
    bool broken;
    CacheHint hint;                ///< in force now, or being tried
    alignas(16) uint64_t rearm[2]; ///< what mbufs of inline messages begin with, from rearm_data on
    rte_mempool *inline_pool;
    uint32_t inline_room; ///< bytes behind the headroom in each of its mbufs
    uint32_t spares;      ///< number of `spare`
    const Tx *answers;    ///< the sending half of the same thread, or NULL; atomic
    uint64_t answers_at;  ///< where it was when a message showed last

    static constexpr uint32_t spares_max = 16;
    rte_mbuf *spare[spares_max]; ///< of inline_pool, for messages that come alone

    alignas(64) RingPlace
        buffer_ring; ///< the peer's block: the receive-buffer ring that this half fills
    Divider per_buffer;
    uint64_t buffer_ring_head; ///< lines stored in this epoch
    uint64_t buffer_ring_tail; ///< line of the oldest unused buffer
    uint32_t line_left;        ///< its unused buffers
    uint32_t fifo_head;
    uint32_t fifo_tail;
    uint32_t low_water; ///< below it, lines that are not full are stored if the pool has no more

    alignas(64) RxSetup s;
    Trial hint_trial;
    Lead lead;
    uint64_t pause_end; ///< cycles; the ring is left alone until then
    alignas(64) RxStats stats;
    RxStats cleared;
    uint64_t received_before; ///< messages before this epoch

    static constexpr uint32_t fifo_size = 8192;
    static_assert(buffers_target_max <= fifo_size);
    rte_mbuf *fifo[fifo_size]; ///< buffers available to the peer, oldest first
    uint8_t line_count[wire::buffer_ring_lines_max]; ///< buffers in each line of the receive-buffer
                                                     ///< ring
    [[gnu::always_inline]] uint32_t buffers_available() const { return fifo_head - fifo_tail; }
    /// A line of the receive-buffer ring can be filled with new buffers.
    [[gnu::always_inline]] bool lacks_buffers() const
    {
        return buffers_available() + wire::buffers_per_line <= s.buffers_target;
    }
};

/// Messages received in this epoch, modulo 2^32.
[[gnu::always_inline]] inline uint32_t messages_of(const Rx &q)
{
    return static_cast<uint32_t>(q.stats.messages - q.received_before);
}

/// Sets the next @p n buffers aside, and as many lines: the caller has found both.
[[gnu::always_inline]] inline void set_aside(Tx &q, uint32_t n)
{
    q.aside = n;
    q.credited -= n;
    q.lone_until = 0;
    q.hidden_end = q.buffers_end;
    q.buffers_end = q.buffers_next;
}

/// Takes the first @p n of those set aside for messages that are published now.
[[gnu::always_inline]] inline void use_aside(Tx &q, uint32_t n)
{
    q.aside -= n;
    q.credited += n;
    q.buffers_next += n;
    q.buffers_end = q.aside > 0 ? q.buffers_next : q.hidden_end;
}

/// Bursts are not to look into the ring.
inline void make_unready(Rx &q)
{
    q.ready = false;
    q.lone_until = 0;
}

/// The next burst has something to do, whether a message arrives or not.
[[gnu::always_inline]] inline void watch_always(Rx &q)
{
    q.watch.line = reinterpret_cast<const std::byte *>(&q.watch.tag);
    q.watch.more = 0;
}

/// The next burst has nothing to do before a message arrives.
[[gnu::always_inline]] inline void watch_ring(Rx &q)
{
    const bool fits = q.ring.left(q.tail) >= q.lone_more + 2;
    q.watch = {q.ring.line(q.tail), q.ring.tag(q.tail), fits ? q.lone_more : 0};
}

} // namespace plx::queue

#endif

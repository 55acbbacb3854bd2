// SPDX-License-Identifier: BSD-3-Clause
// Control side of a queue pair: prepares memory, checks parameters, opens and closes the halves.
#include "queue/queue.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <memory>

#include <rte_mbuf.h>

#include "queue/state.hpp"

namespace plx::queue
{

namespace
{

using namespace plx::wire;

/// Most lines of which the credits return together, by the ring: a small part of it, so that a loss
/// leaves few messages unconfirmed and segments of the ring can be timed.
constexpr uint32_t batch_low = 128, batch_most = 512;
constexpr uint32_t credit_batch(uint32_t ring_lines)
{
    return std::min(ring_lines / 4, std::clamp(ring_lines / 32, batch_low, batch_most));
}

bool is_ring(const std::byte *at, uint32_t lines, uint32_t min, uint32_t max)
{
    return at != nullptr && reinterpret_cast<uintptr_t>(at) % line_bytes == 0 &&
           std::has_single_bit(lines) && lines >= min && lines <= max;
}

bool is_buffer_size(uint32_t bytes)
{
    return bytes >= buf_bytes_min && bytes <= buf_bytes_max && bytes % line_bytes == 0;
}

RingPlace place(std::byte *at, uint32_t lines, uint32_t base)
{
    return {at, lines - 1, static_cast<uint32_t>(std::countr_zero(lines)), base};
}

void store_word(std::byte *at, uint64_t word)
{
    std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t *>(at))
        .store(word, std::memory_order_release);
}

bool engine_fits(const EngineSetup &s)
{
    const Engine &e = s.engine;
    if (e.copy == nullptr)
        return true; // none
    return e.room != nullptr && e.start != nullptr && e.completed != nullptr &&
           e.failed != nullptr && e.halt != nullptr && s.staging != nullptr &&
           reinterpret_cast<uintptr_t>(s.staging) % staged_bytes == 0;
}

bool tx_fits(const TxSetup &s)
{
    return is_ring(s.peer_ring, s.peer_ring_lines, ring_lines_min, ring_lines_max) &&
           is_ring(s.credit, 1, 1, 1) &&
           is_ring(s.buffer_ring, s.buffer_ring_lines, buffer_ring_lines_min,
                   buffer_ring_lines_max) &&
           s.peer_block != nullptr && s.peer_buf_begin <= s.peer_buf_end &&
           is_buffer_size(s.peer_buf_bytes) && s.peer_max_message <= message_max &&
           s.inline_max <= inline_bytes_max && s.inline_most <= inline_bytes_max &&
           engine_fits(s.by_engine);
}

/// Receive buffers begin on a line of the block and hold buf_bytes. One is checked for all.
bool window_pool_fits(const RxSetup &s)
{
    rte_mbuf *m = rte_pktmbuf_alloc(s.window_pool);
    if (m == nullptr)
        return true; // all in use: checked when the half was opened first
    const bool fits =
        (rte_pktmbuf_mtod(m, uintptr_t) - reinterpret_cast<uintptr_t>(s.block)) % line_bytes == 0 &&
        rte_pktmbuf_tailroom(m) >= s.buf_bytes;
    rte_pktmbuf_free(m);
    return fits;
}

bool rx_fits(const RxSetup &s)
{
    if (!is_ring(s.ring, s.ring_lines, ring_lines_min, ring_lines_max) ||
        !is_ring(s.peer_credit, 1, 1, 1) ||
        !is_ring(s.peer_buffer_ring, s.peer_buffer_ring_lines, buffer_ring_lines_min,
                 buffer_ring_lines_max))
        return false;
    if (s.block == nullptr || s.inline_pool == nullptr || s.window_pool == nullptr ||
        !is_buffer_size(s.buf_bytes) || s.max_message > message_max ||
        !cache_hint_supported(s.hint))
        return false;
    if (s.buffers_target % buffers_per_line != 0 || s.buffers_target > buffers_target_max ||
        s.buffers_target > buffers_per_line * (s.peer_buffer_ring_lines - 1))
        return false;
    return rte_pktmbuf_data_room_size(s.inline_pool) >= RTE_PKTMBUF_HEADROOM + inline_bytes_max &&
           window_pool_fits(s);
}

uint64_t confirmation_of(const Tx &q)
{
    return std::atomic_ref<uint64_t>(
               *reinterpret_cast<uint64_t *>(const_cast<std::byte *>(q.s.credit + 8)))
        .load(std::memory_order_acquire);
}

/// The messages of @p sent that the peer's last valid credit word does not cover. Counts wrap. Each
/// message takes a line, so the result is bounded by the ring, whatever the peer wrote.
/// @param beyond result if the peer confirms more than was sent
uint32_t unconfirmed_of(const Tx &q, uint32_t sent, uint32_t most, uint32_t beyond)
{
    const uint64_t w = confirmation_of(q);
    const uint32_t open = sent - static_cast<uint32_t>(w >> 32);
    if (word_tag(w) != q.s.back_base)
        return most;
    return open <= most ? open : beyond;
}

uint32_t unconfirmed_at_close(const Tx &q)
{
    const uint32_t sent = q.head > UINT32_MAX ? UINT32_MAX : messages_of(q);
    const uint32_t most = std::min(sent, q.ring.mask + 1);
    return unconfirmed_of(q, messages_of(q), most, most);
}

/// Halts the engine, so that its count of copies begins at 0.
bool engine_open(const EngineSetup &s, ByEngine &e)
{
    e = {};
    return s.engine.copy == nullptr || s.engine.halt(s.engine.ctx);
}

/// @return false: the engine is not halted yet
bool engine_close(Tx &q)
{
    const Engine &engine = q.s.by_engine.engine;
    if (engine.copy == nullptr)
        return true;
    if (engine.failed(engine.ctx) && !q.broken) {
        break_off(q); // no burst has noticed it
        count(q.stats.dma_errors, 1);
    }
    if (!engine.halt(engine.ctx))
        return false;
    ByEngine &e = q.by_engine;
    for (; e.tail != e.head; e.tail++)
        rte_pktmbuf_free(e.held[e.tail & (held_max - 1)].mbuf);
    return true;
}

/// The cache hints of a trial: those that this CPU supports.
unsigned hints_to_try()
{
    unsigned set = 0;
    for (unsigned i = 0; i < trial_choices; i++)
        if (cache_hint_supported(static_cast<CacheHint>(i)))
            set |= 1u << i;
    return set;
}

constexpr unsigned stores_to_try =
    1u << static_cast<unsigned>(Stores::plain) | 1u << static_cast<unsigned>(Stores::non_temporal);
/// Lines of receive buffers that a trial of stores goes through for one segment's preparation: 32
/// MiB, as most caches have.
constexpr uint64_t stores_lap_most = (uint64_t{32} << 20) / line_bytes;

/// Lines of messages, as long as any that the ring may have, that go into all receive buffers once.
uint64_t inline_lap(const Tx &q)
{
    const uint64_t buffers =
        (q.s.peer_buf_end - q.s.peer_buf_begin) / (q.s.peer_buf_bytes / line_bytes);
    return buffers * (q.inline_max + line_bytes - 1) / line_bytes;
}

/// now - then of every counter, read in order. The structs consist of uint64_t only.
template <class Stats>
Stats since(const Stats &now, const Stats &then)
{
    constexpr size_t n = sizeof(Stats) / sizeof(uint64_t);
    uint64_t words[n], old[n];
    auto *from = reinterpret_cast<uint64_t *>(const_cast<Stats *>(&now));
    __builtin_memcpy(old, &then, sizeof(old));
    for (size_t i = 0; i < n; i++)
        words[i] = std::atomic_ref<uint64_t>(from[i]).load(std::memory_order_acquire) - old[i];
    Stats out;
    __builtin_memcpy(&out, words, sizeof(out));
    return out;
}

/// The difference of two counters that were read one after the other while they grow, at least 0.
uint64_t rest_of(uint64_t all, uint64_t some)
{
    return all > some ? all - some : 0;
}

} // namespace

size_t tx_bytes()
{
    return sizeof(Tx);
}
size_t rx_bytes()
{
    return sizeof(Rx);
}

void prepare_ring(std::byte *ring, uint32_t lines, uint32_t base)
{
    for (size_t i = 0; i < lines; i++)
        store_word(ring + i * line_bytes, base);
}

void prepare_back(std::byte *credit, std::byte *buffer_ring, uint32_t buffer_ring_lines,
                  uint32_t base)
{
    store_word(credit, base);
    store_word(credit + 8, base);
    prepare_ring(buffer_ring, buffer_ring_lines, base);
}

int tx_open(Tx *q, const TxSetup &s)
{
    if (q->open || !tx_fits(s))
        return -EINVAL;
    if (!engine_open(s.by_engine, q->by_engine))
        return -EIO;
    const uint64_t buffers_most =
        std::min(buffers_per_line * (s.buffer_ring_lines - 1), Tx::buffers_max);
    q->s = s;
    // A message that can be inline never goes by the engine.
    const uint32_t inline_most = std::max(s.inline_max, s.inline_most);
    q->s.by_engine.min_bytes = std::max(s.by_engine.min_bytes, inline_most + 1);
    q->ring = place(s.peer_ring, s.peer_ring_lines, s.peer_ring_base);
    q->buffer_ring =
        place(const_cast<std::byte *>(s.buffer_ring), s.buffer_ring_lines, s.back_base);
    q->per_buffer = Divider(s.peer_buf_bytes);
    q->head = q->buffer_ring_read = 0;
    q->credited = 0;
    q->sent_before = q->stats.messages;
    q->buffers_next = q->buffers_end = 0;
    q->aside = q->hidden_end = 0;
    q->max_message = static_cast<uint32_t>(
        std::min<uint64_t>(s.peer_max_message, buffers_most * s.peer_buf_bytes));
    q->stores = s.stores;
    q->stores_alone = s.cycles != nullptr ? Stores::plain : s.stores;
    // All that may be stored to, not what is on its way: a usual store finds its line where the one
    // before it has left it, which a store past the caches does not do.
    const uint64_t buffer_lines = s.peer_buf_end - s.peer_buf_begin;
    q->stores_trial.open({.start = everywhere(static_cast<uint64_t>(s.stores)),
                          .tried = s.cycles != nullptr ? stores_to_try : 0,
                          .lap = std::min(buffer_lines, stores_lap_most),
                          .batch = static_cast<uint32_t>(s.peer_buf_bytes / line_bytes),
                          .shows_on_reuse = false,
                          .learned = s.learned});
    std::construct_at(&q->ask_ahead);
    q->stores_begin = q->stats.cpu_bytes;
    q->stores_due = next_look_at_stores(*q);
    q->inline_alone = std::min(s.inline_max, q->max_message);
    q->inline_max = std::min(inline_most, q->max_message);
    q->lone_max = std::min(q->inline_alone, longest_of(alike_lines_max));
    q->lone_until = 0;
    q->inline_bound.open({.always = q->inline_alone,
                          .at_most = s.inline_cycles != nullptr ? q->inline_max : q->inline_alone,
                          .stores = s.stores,
                          .any_stores = s.cycles != nullptr,
                          .lap = std::min(inline_lap(*q), stores_lap_most),
                          .returned = credit_batch(s.peer_ring_lines),
                          .learned = s.learned_inline,
                          .bytes = q->stats.bytes});
    q->stores_left = false;
    q->stores_away = 0;
    q->inline_due = q->inline_bound.due();
    q->broken = false;
    q->open = true;
    return 0;
}

int rx_open(Rx *q, const RxSetup &s)
{
    if (q->open || !rx_fits(s))
        return -EINVAL;
    q->s = s;
    q->ring = place(s.ring, s.ring_lines, s.ring_base);
    q->buffer_ring = place(s.peer_buffer_ring, s.peer_buffer_ring_lines, s.peer_back_base);
    q->per_buffer = Divider(s.buf_bytes);
    q->tail = q->buffer_ring_head = q->buffer_ring_tail = 0;
    q->returned = 0;
    q->received_before = q->stats.messages;
    q->line_left = q->fifo_head = q->fifo_tail = 0;
    q->batch = credit_batch(s.ring_lines);
    // data_off, refcnt 1, nb_segs 1, port; ol_flags 0.
    q->rearm[0] =
        RTE_PKTMBUF_HEADROOM | uint64_t{1} << 16 | uint64_t{1} << 32 | uint64_t{s.port} << 48;
    q->rearm[1] = 0;
    q->spares = 0;
    q->hint = s.hint;
    q->hint_trial.open({.start = everywhere(static_cast<uint64_t>(s.hint)),
                        .tried = s.cycles != nullptr ? hints_to_try() : 0,
                        .lap = s.ring_lines,
                        .batch = q->batch,
                        .learned = s.learned});
    std::construct_at(&q->lead);
    q->inline_pool = s.inline_pool;
    q->inline_room = rte_pktmbuf_data_room_size(s.inline_pool) - uint32_t{RTE_PKTMBUF_HEADROOM};
    q->few_lines_max = std::min(s.max_message, two_lines_max);
    q->lone_lines_max = std::min(s.max_message, longest_of(alike_lines_max));
    q->many_lines_max = std::min(s.max_message, inline_bytes_max);
    // At least one line, at most what is always available to the peer.
    q->low_water = std::min(std::max(q->per_buffer.ceil(s.max_message), buffers_per_line),
                            s.buffers_target - (buffers_per_line - 1));
    q->answers = nullptr;
    q->answers_at = 0;
    q->lone_more = 0;
    q->lone_until = 0;
    watch_always(*q);
    q->broken = false;
    q->open = q->ready = true;
    return 0;
}

void rx_answered_by(Rx *rx, const Tx *tx)
{
    std::atomic_ref<const Tx *>(rx->answers).store(tx, std::memory_order_relaxed);
}

uint32_t rx_buffers(const Rx *q)
{
    return q->open ? q->buffers_available() : 0;
}

uint32_t rx_spares(const Rx *q)
{
    return q->open ? q->spares : 0;
}

uint32_t tx_aside(const Tx *q)
{
    return q->aside;
}

void tx_abort(Tx *q)
{
    if (q->aside == 0)
        return;
    q->credited += q->aside;
    q->buffers_end = q->hidden_end;
    q->aside = 0;
}

bool tx_close(Tx *q)
{
    if (!q->open)
        return true;
    if (!engine_close(*q))
        return false;
    q->left_unconfirmed = unconfirmed_at_close(*q);
    count(q->stats.unconfirmed, q->left_unconfirmed);
    q->aside = 0; // they belong to the connection
    q->lone_until = 0;
    q->open = false;
    return true;
}

void rx_close(Rx *q)
{
    if (!q->open)
        return;
    for (; q->fifo_tail != q->fifo_head; q->fifo_tail++)
        rte_pktmbuf_free(q->fifo[q->fifo_tail & (Rx::fifo_size - 1)]);
    if (q->spares > 0)
        rte_mempool_put_bulk(q->inline_pool, reinterpret_cast<void **>(q->spare), q->spares);
    q->spares = 0;
    q->open = false;
    make_unready(*q);
}

uint32_t tx_unconfirmed(const Tx *q)
{
    if (!q->open)
        return q->left_unconfirmed;
    // A burst publishes before it counts: until it ends, more may be confirmed than counted.
    return unconfirmed_of(*q, tx_published(q), q->ring.mask + 1, 0);
}

uint64_t tx_confirmation(const Tx *q)
{
    return confirmation_of(*q);
}

uint32_t tx_published(const Tx *q)
{
    auto &messages = const_cast<uint64_t &>(q->stats.messages);
    return static_cast<uint32_t>(
        std::atomic_ref<uint64_t>(messages).load(std::memory_order_relaxed) - q->sent_before);
}

RxNext rx_next(const Rx *q)
{
    return {q->ring.line(q->tail), q->ring.tag(q->tail), messages_of(*q)};
}

void rx_ask_for_more(const RxWatch &watch)
{
    const std::byte *line = watch.line + 2 * wire::line_bytes;
    for (uint32_t i = 0; i < watch.more; i++, line += wire::line_bytes)
        __builtin_prefetch(line, 0, 3);
}

const RxWatch *rx_watch(const Rx *q)
{
    return &q->watch;
}

bool rx_arrived(const RxNext &next)
{
    auto *word = reinterpret_cast<uint64_t *>(const_cast<std::byte *>(next.line));
    return word_tag(std::atomic_ref<uint64_t>(*word).load(std::memory_order_acquire)) == next.tag;
}

TxStats tx_stats(const Tx *q)
{
    TxStats stats = since(q->stats, q->cleared);
    stats.inline_messages = rest_of(stats.messages, stats.cpu_messages + stats.dma_messages);
    return stats;
}
TxHeld tx_held(const Tx *q)
{
    const auto load = [](const uint64_t &counter) {
        return std::atomic_ref<uint64_t>(const_cast<uint64_t &>(counter))
            .load(std::memory_order_relaxed);
    };
    return {load(q->by_engine.head), load(q->by_engine.tail)};
}
RxStats rx_stats(const Rx *q)
{
    RxStats stats = since(q->stats, q->cleared);
    stats.inline_messages = rest_of(stats.messages, stats.long_messages);
    return stats;
}
TrialReport rx_cache_hint(const Rx *q)
{
    return since(q->hint_trial.report(), TrialReport{});
}
TrialReport tx_stores(const Tx *q)
{
    return since(q->stores_trial.report(), TrialReport{});
}
bool tx_asks_ahead(const Tx *q)
{
    return q->ask_ahead.in_force();
}
TrialReport tx_inline(const Tx *q)
{
    return since(q->inline_bound.report(), TrialReport{});
}
LeadReport rx_lead(const Rx *q)
{
    return {q->lead.in_force(), q->lead.pauses()};
}
void tx_stats_reset(Tx *q)
{
    q->cleared = since(q->stats, TxStats{});
}
void rx_stats_reset(Rx *q)
{
    q->cleared = since(q->stats, RxStats{});
}

} // namespace plx::queue

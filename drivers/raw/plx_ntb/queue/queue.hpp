// SPDX-License-Identifier: BSD-3-Clause
// The hot path of a queue pair as the driver sees it: set-up from geometry and pointers, burst
// functions chosen once. The format is wire.hpp; producer and consumer are producer.hpp
// and consumer.hpp.
#ifndef PLX_QUEUE_QUEUE_HPP
#define PLX_QUEUE_QUEUE_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "queue/engine.hpp"

struct rte_mbuf;
struct rte_mempool;

namespace plx::queue
{

/// Eight bytes and a few flag bits that travel with a message; opaque here.
/// Same layout as struct rte_pmd_plx_ntb_meta.
struct Meta {
    uint64_t data;
    uint32_t flags; ///< low 6 bits travel
    uint32_t reserved;
};

/// Messages that are sent with the same metadata. Same layout as struct rte_pmd_plx_ntb_tx_flow.
struct TxFlow {
    Meta meta;        ///< of each
    uint32_t longest; ///< bytes
    uint32_t reserved;
    uint64_t bytes; ///< filled in: of the messages that were taken
};

/// Messages to be received that have metadata in common. Same layout as struct
/// rte_pmd_plx_ntb_rx_flow.
struct RxFlow {
    uint32_t low;     ///< half of the metadata's data, of each
    uint32_t flags;   ///< of each
    uint32_t *high;   ///< halves, filled in: room for as many as messages; NULL: not wanted
    uint32_t longest; ///< bytes
    uint32_t other;   ///< filled in: 1: what comes next is not of the flow, or not short
    uint64_t bytes;   ///< filled in: of the messages that were delivered
};

/// A receive buffer of the peer, for the caller to fill. Same layout as struct
/// rte_pmd_plx_ntb_room.
struct Room {
    void *address; ///< in the window: for stores alone
    uint32_t bytes;
    uint32_t reserved;
};

/// How stores reach the peer and what the reader may assume (doc/wire-protocol.md, section 7).
enum class Policy { plain, write_combining };

/// What the reader does with a consumed line of the ring so that the writer gets it cheaply.
enum class CacheHint { none, clwb, clflushopt, cldemote };
/// How the CPU stores long messages into the peer's receive buffers, where they are coherent
/// memory: through its own caches, or past them. Which is cheaper depends on where the reader's CPU
/// is.
enum class Stores { plain, non_temporal };

/// Most choices of a trial.
inline constexpr unsigned trial_choices = 4;

/// Kinds of traffic that a trial separates: one line a message, two, more.
inline constexpr unsigned traffic_kinds = 3;
/// What the queue pairs of a device have learned of one thing, for later connections.
struct Learned {
    std::atomic<uint8_t> of_kind[traffic_kinds] = {}; ///< choice + 1; 0: nothing yet
};

/// Messages of which the engine may still read the mbufs, a queue pair.
inline constexpr uint32_t held_max = 256;
/// Staging of their header lines: bytes 0 to 15 of each, all that is not reserved.
inline constexpr size_t staged_bytes = 16;
inline constexpr size_t staging_bytes = held_max * staged_bytes;

/// How a sending half uses a copy engine; without one, engine.copy is NULL.
struct EngineSetup {
    Engine engine = {};
    uint64_t peer_block = 0;      ///< TxSetup.peer_block as the engine addresses it
    std::byte *staging = nullptr; ///< local, staging_bytes, IOVA-contiguous, aligned to 16
    uint64_t staging_iova = 0;
    uint32_t min_bytes = 0; ///< messages of at least so many bytes go by the engine
    /// Pool over window memory that the engine reads too, by the IOVAs of its mbufs; or NULL.
    const rte_mempool *window_pool = nullptr;
};

/// Sender half: where the peer's ring lies in our window, where the peer's credits lie in our
/// block.
struct TxSetup {
    std::byte *peer_ring;         ///< window: peer's message ring, peer_ring_lines lines
    uint32_t peer_ring_lines;     ///< power of two
    uint32_t peer_ring_base;      ///< tags of that ring
    const std::byte *credit;      ///< own block: one line
    const std::byte *buffer_ring; ///< own block: buffer_ring_lines lines
    uint32_t buffer_ring_lines;   ///< power of two
    uint32_t back_base;           ///< tags of the own back channel
    std::byte *peer_block;        ///< window: start of the peer's block
    uint32_t peer_buf_begin;      ///< lines; receive buffers outside [begin, end) are refused
    uint32_t peer_buf_end;        ///< lines
    uint32_t peer_buf_bytes;      ///< data bytes of each receive buffer
    uint32_t peer_max_message;    ///< bytes
    uint32_t inline_max;          ///< bytes; up to it messages travel in the ring
    EngineSetup by_engine = {};
    Stores stores = Stores::plain; ///< in force, or to begin with
    /// A clock in CPU cycles, by which `stores` is chosen under traffic, and whether plain ones ask
    /// for the next buffer's lines; NULL: `stores` stays, and they do.
    uint64_t (*cycles)() = nullptr;
    Learned *learned = nullptr; ///< kept longer than this connection; or NULL
    /// Bytes: longer messages go into receive buffers, those between inline_max and it where lines
    /// are cheaper in bursts, and into receive buffers if they are sent alone. Below inline_max: as
    /// inline_max.
    uint32_t inline_most = 0;
    /// A clock in CPU cycles for that choice; NULL: bursts have them in the ring.
    uint64_t (*inline_cycles)() = nullptr;
    Learned *learned_inline = nullptr; ///< kept longer than this connection; or NULL
};

/// Receiver half: our ring and pools; in our window, the peer's credits and receive-buffer ring.
struct RxSetup {
    std::byte *ring;                 ///< own block: ring_lines lines
    uint32_t ring_lines;             ///< power of two
    uint32_t ring_base;              ///< tags of that ring
    std::byte *peer_credit;          ///< window: one line
    std::byte *peer_buffer_ring;     ///< window: peer_buffer_ring_lines lines
    uint32_t peer_buffer_ring_lines; ///< power of two
    uint32_t peer_back_base;         ///< tags of the peer's back channel
    const std::byte *block;          ///< own block: start, for the offsets of receive buffers
    rte_mempool *inline_pool;        ///< private: inline messages are copied into its mbufs
    rte_mempool *window_pool;        ///< data in the own block: receive buffers for the peer
    uint32_t buf_bytes;              ///< data bytes of a receive buffer behind data_off
    uint32_t buffers_target;         ///< buffers to keep available to the peer, multiple of 14
    uint32_t max_message;            ///< bytes
    uint16_t port;                   ///< for rte_mbuf.port
    CacheHint hint;                  ///< in force, or to begin with
    /// A clock in CPU cycles, by which the hint is chosen under traffic; NULL: it stays.
    uint64_t (*cycles)() = nullptr;
    Learned *learned = nullptr; ///< kept longer than this connection; or NULL
};

struct TxStats {
    uint64_t messages, bytes;
    uint64_t inline_messages; ///< all others, computed from one reading of these
    uint64_t cpu_messages;    ///< stored into receive buffers by the CPU
    uint64_t dma_messages;    ///< copied into receive buffers by the engine
    uint64_t cpu_bytes, dma_bytes;
    uint64_t full;        ///< bursts cut short for lack of credits or receive buffers
    uint64_t errors;      ///< mbufs refused: NULL, broken chains, too long
    uint64_t unconfirmed; ///< messages sent and not covered by a credit when the queue was closed
    uint64_t bad_peer;    ///< invalid credits or receive buffers written by the peer
    uint64_t dma_errors;  ///< times the engine failed
};

struct RxStats {
    uint64_t messages, bytes;
    uint64_t inline_messages; ///< as in TxStats
    uint64_t long_messages;
    uint64_t nombuf;   ///< bursts cut short because a pool was empty
    uint64_t bad_peer; ///< lines that violate the protocol; the queue stops at the first
};

struct Tx; ///< one writer at a time: the lcore that sends
struct Rx; ///< one writer at a time: the lcore that receives

/// Chains are gathered; length 0 is legal; the longest is peer_max_message or, when that is less,
/// what a full receive-buffer ring of the peer holds. An mbuf that cannot be sent ends the burst
/// before itself and counts as an error in each such burst. A queue that is not open takes nothing
/// (0).
/// @return number of messages taken, 0 to n: the mbufs [0, taken) are the queue's (freed once
///   copied), the rest stays the caller's; fewer than n is back-pressure.
///   -EMSGSIZE, -EINVAL: mbuf 0 is longer than the peer takes / NULL or broken: nothing was taken;
///   -EPROTO: the peer violated the protocol, or the engine failed: nothing more is sent until the
///   queue is opened again.
/// @param meta NULL or n entries
using TxBurst = int (*)(Tx *, rte_mbuf **mbufs, const Meta *meta, unsigned n);
/// Sends messages of one flow, up to the first that cannot be sent, or is longer than the flow's
/// longest: TxBurst says of that one what it is.
/// @return number of messages taken, 0 to n; -EPROTO: as TxBurst.
using TxFlowBurst = int (*)(Tx *, rte_mbuf **mbufs, TxFlow &flow, unsigned n);
/// Sets receive buffers of the peer aside for the caller, who stores messages into them. Until they
/// are committed or aborted, bursts take no long message; others go on and keep room in the ring.
/// @param rooms filled in; @param n most of them
/// @return number set aside, 0 to n; 0: the peer has none available, or the queue is not open.
///   -EBUSY: some are set aside already; -EPROTO: as TxBurst.
using TxReserve = int (*)(Tx *, Room *rooms, unsigned n);
/// Publishes messages that lie in buffers set aside, the oldest first: message i takes the next
/// ceil(lengths[i] / peer_buf_bytes) of them, each full but its last. All or none: there is room.
/// @param lengths n lengths; @param meta NULL or n entries
/// @return n. -EINVAL: a length is 0, or they need more buffers than are set aside; -EMSGSIZE: one
///   is longer than the peer takes; -ECONNRESET: the queue is not open; -EPROTO: as TxBurst.
using TxCommit = int (*)(Tx *, const uint32_t *lengths, const Meta *meta, unsigned n);
/// State of a delivered mbuf: refcnt 1, packet_type 0, vlan_tci and hash 0, port as set up, pkt_len
/// the message. Inline message: data_off RTE_PKTMBUF_HEADROOM, one segment, ol_flags 0, pool
/// inline_pool. Long message: a chain of ceil(length / buf_bytes) receive buffers, all
/// full but the last, data_off as rte_pktmbuf_reset() sets it, ol_flags RTE_MBUF_F_EXTERNAL where
/// the pool's are. An empty pool leaves messages in the ring (RxStats.nombuf).
/// @return messages delivered, 0 to n (the mbufs are the caller's); -EPROTO as above.
/// @param meta NULL or room for n entries
using RxBurst = int (*)(Rx *, rte_mbuf **mbufs, Meta *meta, unsigned n);
/// Receives messages of one flow that lie in the ring, up to the first of another. While there is
/// no connection, or something else is next, RxBurst says what it is.
/// @return messages delivered, 0 to n.
using RxFlowBurst = int (*)(Rx *, rte_mbuf **mbufs, RxFlow &flow, unsigned n);

/// All that a poll reads which finds nothing: where the next message of a receiving half will
/// appear, and the tag that it will carry. While the half owes its peer something, or has failed,
/// `line` refers to `tag` itself and always matches.
struct RxWatch {
    const std::byte *line;
    uint32_t tag;
    uint32_t more; ///< lines behind the first two, if the next message is like the last one
};
/// Prefetches those lines. Not part of rx_idle(), so that most polls make no call.
void rx_ask_for_more(const RxWatch &watch);
/// Whether RxBurst would find nothing to do: it may be left out then. By the receiving lcore, while
/// the half is open.
[[gnu::always_inline]] inline bool rx_idle(const RxWatch &watch)
{
    // The line after the polled one: else a message of two lines waits for two misses in sequence.
    __builtin_prefetch(watch.line + 64, 0, 3);
    auto *word = reinterpret_cast<uint32_t *>(const_cast<std::byte *>(watch.line));
    return std::atomic_ref<uint32_t>(*word).load(std::memory_order_acquire) != watch.tag;
}

/// Copies into the memory window as a sending half copies into receive buffers; all stores have
/// left the CPU when it returns.
using Copy = void (*)(void *to, const void *from, size_t n);

/// One compiled variant of the hot path.
struct Ops {
    const char *name; ///< e.g. "plain/avx512"
    TxBurst tx_burst;
    RxBurst rx_burst;
    /// For a half that was opened with an engine. An mbuf that goes by the engine is held until the
    /// engine has read it and freed in a later burst, also one of 0 messages, or by tx_close().
    TxBurst tx_burst_engine = nullptr;
    Copy copy = nullptr;      ///< into the window, flushed
    Copy copy_past = nullptr; ///< the same, past this CPU's caches where that differs
    TxReserve tx_reserve = nullptr;
    TxCommit tx_commit = nullptr;
    TxFlowBurst tx_flow = nullptr;
    TxFlowBurst tx_flow_engine = nullptr; ///< as tx_burst_engine
    RxFlowBurst rx_flow = nullptr;
    RxFlowBurst rx_next_flow = nullptr; ///< `low` is filled in: that of the next message
};

/// The fastest variant this CPU has for @p policy.
const Ops *select_ops(Policy policy);

/// True when this CPU has the instruction.
bool cache_hint_supported(CacheHint hint);

/// Scale of TrialReport::relative: this value stands for 1.
inline constexpr uint64_t trial_scale = 1024;
/// Results of a trial since its half was opened.
struct TrialReport {
    uint64_t in_force; ///< the last choice, not the one being tried
    uint64_t rounds;   ///< completed rounds, in which all choices were tried
    uint64_t thin;     ///< rounds aborted because lines came too slowly
    uint64_t by;       ///< a choice that was timed: choice 0 if that was
    uint64_t by_cost;  ///< of the last round: cycles a line took with it
    /// As of the last choice: what a line took with each, `by` taking 1; 0: not known.
    uint64_t relative[trial_choices];
};

/// Pauses of a receiving half that leaves its writer a lead, since it was opened.
struct LeadReport {
    bool in_force; ///< a reader that has caught up with dense traffic pauses
    uint64_t pauses;
};

/// Most receive buffers that a receiver can keep available to the peer.
inline constexpr uint32_t buffers_target_max = 8190;

/// Size of the state; the driver allocates it on the device's NUMA node, aligned to 64 and zeroed.
size_t tx_bytes();
size_t rx_bytes();

/// Control side, with the queue's lcore known to be outside its burst function.
/// Tags every line of the own message ring, credit line and receive-buffer ring as "never written".
void prepare_ring(std::byte *ring, uint32_t lines, uint32_t base);
void prepare_back(std::byte *credit, std::byte *buffer_ring, uint32_t buffer_ring_lines,
                  uint32_t base);
/// Opens a half for a new epoch; statistics survive. @return 0 or -EINVAL with nothing changed;
/// -EIO: the engine cannot be halted
int tx_open(Tx *, const TxSetup &);
int rx_open(Rx *, const RxSetup &);
/// Declares that the thread of @p rx also drives the sending half @p tx; NULL: none. What it sends
/// is then taken for answers, whose lines are prefetched as soon as a message arrives. By the
/// thread of either half, while both are open. rx_open() resets it.
void rx_answered_by(Rx *rx, const Tx *tx);
/// Receive buffers available to the peer now; 0 while it is closed.
uint32_t rx_buffers(const Rx *);
/// Mbufs of the inline pool that the half holds for messages to come, at most 16; 0 while it is
/// closed.
uint32_t rx_spares(const Rx *);
/// Receive buffers of the peer that are set aside; by the sending lcore. A half that is opened anew
/// has none.
uint32_t tx_aside(const Tx *);
/// Gives them back. By the sending lcore.
void tx_abort(Tx *);
/// Closes it: halts the engine, frees what it held, counts unconfirmed messages.
/// @return false: the engine is not halted yet; nothing was closed, call again
[[nodiscard]] bool tx_close(Tx *);
/// Closes it: returns the receive buffers to their pool. Only once the peer can no longer write to
/// them (fenced).
void rx_close(Rx *);
/// Messages sent and not covered by a returned credit: of this epoch, or as they were counted when
/// the half was closed. Control side; its thread may be inside a burst.
uint32_t tx_unconfirmed(const Tx *);
/// What the peer has stored last to confirm messages, as it is; any value if it lies. Control side,
/// while the queue is open.
uint64_t tx_confirmation(const Tx *);
/// Messages sent in this epoch, modulo 2^32. Control side, while the queue is open.
uint32_t tx_published(const Tx *);
/// Where the next message will appear. The caller keeps the lcore out of its burst function.
struct RxNext {
    const std::byte *line;
    uint32_t tag;
    uint32_t consumed; ///< messages taken in this epoch, modulo 2^32
};
RxNext rx_next(const Rx *);
/// The half's watch, as long as its state exists.
const RxWatch *rx_watch(const Rx *);
/// Whether it has arrived. Any thread, while the queue's memory exists.
bool rx_arrived(const RxNext &);
/// Any thread, at any time. Reset is for one control thread at a time and does not disturb the
/// lcore.
TxStats tx_stats(const Tx *);
RxStats rx_stats(const Rx *);
/// Any thread, at any time; each number by itself.
TrialReport rx_cache_hint(const Rx *);
TrialReport tx_stores(const Tx *);
/// Whether bursts of long messages that are stored plainly ask for the next buffer's lines.
bool tx_asks_ahead(const Tx *);
/// Choice 0: the ring; 1: receive buffers, stored to plainly; 2: past the caches.
TrialReport tx_inline(const Tx *);
LeadReport rx_lead(const Rx *);
/// mbufs passed to the engine, and those of them freed, since the half was opened.
struct TxHeld {
    uint64_t taken = 0, freed = 0;
    bool operator==(const TxHeld &) const = default;
};
TxHeld tx_held(const Tx *);
void tx_stats_reset(Tx *);
void rx_stats_reset(Rx *);

} // namespace plx::queue

#endif

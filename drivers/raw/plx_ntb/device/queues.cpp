// SPDX-License-Identifier: BSD-3-Clause
// The queue pairs of a device: set up and released by the application, opened and closed with the
// connection.
#include "device/device.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>

#include <rte_cycles.h>
#include <rte_lcore.h>
#include <rte_malloc.h>

#include "sync/log.hpp"

namespace plx::pmd
{

namespace
{

uint64_t read_cycles()
{
    return rte_rdtsc();
}

/// The report of a queue pair that is not open: what was chosen, and no trial.
template <typename Choice>
queue::TrialReport untried(Choice choice)
{
    return {.in_force = static_cast<uint64_t>(choice),
            .rounds = 0,
            .thin = 0,
            .by = 0,
            .by_cost = 0,
            .relative = {}};
}

} // namespace

int Device::queue_setup(uint16_t index, rte_mempool *pool)
{
    QueuePair *qp = queue(index);
    if (qp == nullptr)
        return -EINVAL;
    if (const int rc = require_stopped(); rc != 0)
        return rc;
    if (qp->tx.state == nullptr && make_queue_state(*qp) != 0) {
        free_queue(*qp);
        PLX_INIT_LOG(ERR, "%s: no memory for queue %u on node %d\n", name_, index, node_);
        return -ENOMEM;
    }
    if (const int rc = sleepers_.setup(index); rc != 0) {
        free_queue(*qp);
        PLX_INIT_LOG(ERR, "%s: no event descriptor for queue %u: %s\n", name_, index,
                     strerror(-rc));
        return rc;
    }
    qp->given_pool = pool;
    qp->set_up = true;
    return 0;
}

int Device::make_queue_state(QueuePair &qp)
{
    const int socket = node_ >= 0 ? node_ : static_cast<int>(rte_socket_id());
    qp.tx.burst = ops_->tx_burst;
    qp.tx.flow = ops_->tx_flow;
    qp.tx.reserve = ops_->tx_reserve;
    qp.tx.commit = ops_->tx_commit;
    qp.tx.state = static_cast<queue::Tx *>(
        rte_zmalloc_socket("plx_tx", queue::tx_bytes(), RTE_CACHE_LINE_SIZE, socket));
    qp.rx.next_flow = ops_->rx_next_flow;
    qp.rx.flow = ops_->rx_flow; // takes no receive buffer, so there is nothing to be made stable
    if (options_.rx == RxMode::stable) {
        qp.stable = StableRx::create(ops_->rx_burst, socket);
        qp.rx.burst = StableRx::burst;
        qp.rx.state = qp.stable != nullptr ? qp.stable->state() : nullptr;
    } else {
        qp.rx.burst = ops_->rx_burst;
        qp.rx.state = static_cast<queue::Rx *>(
            rte_zmalloc_socket("plx_rx", queue::rx_bytes(), RTE_CACHE_LINE_SIZE, socket));
    }
    if (qp.tx.state == nullptr || qp.rx.state == nullptr)
        return -ENOMEM;
    qp.rx.watch = queue::rx_watch(qp.rx.state);
    return 0;
}

int Device::queue_release(uint16_t index)
{
    QueuePair *qp = queue(index);
    if (qp == nullptr)
        return -EINVAL;
    if (const int rc = require_stopped(); rc != 0)
        return rc;
    free_queue(*qp);
    return 0;
}

/// The queue is not open, so that neither a burst nor the control thread uses its state.
void Device::free_queue(QueuePair &qp)
{
    const ControlLock locked(*this);
    sleepers_.release(static_cast<unsigned>(&qp - queues_));
    rte_free(qp.tx.state);
    if (qp.stable == nullptr)
        rte_free(qp.rx.state);
    StableRx::destroy(qp.stable);
    qp.stable = nullptr;
    qp.tx.state = nullptr;
    qp.rx.state = nullptr;
    qp.tx.held_rooms.store(0, std::memory_order_relaxed);
    qp.tx.old_window = nullptr;
    qp.tx.inline_messages.reset();
    qp.rx.inline_messages.reset();
    qp.given_pool = nullptr;
    qp.set_up = false;
}

queue::TxSetup Device::tx_setup(unsigned q, const wire::Hello &peer, uint64_t own_seed,
                                uint64_t peer_seed)
{
    const Geometry &g = geometry_;
    std::byte *peer_block = platform_.window;
    return {.peer_ring = peer_block + wire::ring_offset(q, peer.ring_lines, peer.buffer_ring_lines),
            .peer_ring_lines = peer.ring_lines,
            .peer_ring_base = wire::ring_base(peer_seed, q),
            .credit = block_.base + wire::credit_offset(q, g.ring_lines, g.buffer_ring_lines),
            .buffer_ring =
                block_.base + wire::buffer_ring_offset(q, g.ring_lines, g.buffer_ring_lines),
            .buffer_ring_lines = g.buffer_ring_lines,
            .back_base = wire::back_base(own_seed, q),
            .peer_block = peer_block,
            .peer_buf_begin = peer.buf_begin,
            .peer_buf_end = peer.buf_end,
            .peer_buf_bytes = peer.buf_bytes,
            .peer_max_message = peer.max_message,
            .inline_max = g.inline_max,
            .by_engine = copy_.setup(q, window_pool_),
            .stores = stores_,
            .cycles = stores_by_trial_ ? read_cycles : nullptr,
            .learned = &learned_stores_,
            .inline_most = g.inline_most,
            .inline_cycles = inline_by_trial_ ? read_cycles : nullptr,
            .learned_inline = &learned_inline_};
}

queue::RxSetup Device::rx_setup(unsigned q, const wire::Hello &peer, uint64_t own_seed,
                                uint64_t peer_seed)
{
    const Geometry &g = geometry_;
    std::byte *peer_block = platform_.window;
    const uint32_t room = (peer.buffer_ring_lines - 1) * wire::buffers_per_line;
    return {.ring = block_.base + wire::ring_offset(q, g.ring_lines, g.buffer_ring_lines),
            .ring_lines = g.ring_lines,
            .ring_base = wire::ring_base(own_seed, q),
            .peer_credit =
                peer_block + wire::credit_offset(q, peer.ring_lines, peer.buffer_ring_lines),
            .peer_buffer_ring =
                peer_block + wire::buffer_ring_offset(q, peer.ring_lines, peer.buffer_ring_lines),
            .peer_buffer_ring_lines = peer.buffer_ring_lines,
            .peer_back_base = wire::back_base(peer_seed, q),
            .block = block_.base,
            .inline_pool = queues_[q].inline_pool(),
            .window_pool = window_pool_,
            .buf_bytes = g.buf_bytes,
            .buffers_target = std::min(g.queue_buffers, room),
            .max_message = max_message(),
            .port = id(),
            .hint = cache_hint_,
            .cycles = options_.cache_hint == CacheHintChoice::automatic ? read_cycles : nullptr,
            .learned = &learned_hints_};
}

/// Chooses which messages go by DMA from now on, and logs it.
void Device::choose_copy(unsigned queues)
{
    copy_.choose(options_.copy, *ops_, platform_.window, platform_.window_bus,
                 geometry_.inline_most, queues);
    char text[copy_text_bytes];
    describe(copy_.choice(), text, sizeof(text));
    if (copy_.engines() > 0)
        PLX_LOG(NOTICE, "%s: %s\n", name_, text);
    else
        PLX_LOG(INFO, "%s: %s\n", name_, text);
}

queue::TrialReport Device::cache_hint_report(uint16_t index)
{
    const ControlLock locked(*this);
    if (index < queues_open_)
        return queue::rx_cache_hint(queues_[index].rx.state);
    return untried(cache_hint_);
}

queue::LeadReport Device::lead_report(uint16_t index)
{
    const ControlLock locked(*this);
    return index < queues_open_ ? queue::rx_lead(queues_[index].rx.state) : queue::LeadReport{};
}

queue::TrialReport Device::stores_report(uint16_t index)
{
    const ControlLock locked(*this);
    if (index < queues_open_)
        return queue::tx_stores(queues_[index].tx.state);
    return untried(stores_);
}

bool Device::asks_ahead(uint16_t index)
{
    const ControlLock locked(*this);
    return index >= queues_open_ || queue::tx_asks_ahead(queues_[index].tx.state);
}

queue::TrialReport Device::inline_report(uint16_t index)
{
    const ControlLock locked(*this);
    if (index < queues_open_)
        return queue::tx_inline(queues_[index].tx.state);
    return untried(0);
}

WriterSetup Device::writer_setup()
{
    return {.ops = ops_,
            .learned = &learned_writes_,
            .fixed = !stores_by_trial_,
            .cycles = read_cycles};
}

CopyChoice Device::copy_choice()
{
    const ControlLock locked(*this);
    return copy_.choice();
}

void Device::prepare_rings(uint64_t seed)
{
    const Geometry &g = geometry_;
    std::memset(block_.base + wire::sleep_request_offset, 0,
                wire::sleep_words_end - wire::sleep_request_offset);
    for (uint32_t q = 0; q < g.queues; ++q) {
        queue::prepare_ring(block_.base + wire::ring_offset(q, g.ring_lines, g.buffer_ring_lines),
                            g.ring_lines, wire::ring_base(seed, q));
        queue::prepare_back(block_.base + wire::credit_offset(q, g.ring_lines, g.buffer_ring_lines),
                            block_.base +
                                wire::buffer_ring_offset(q, g.ring_lines, g.buffer_ring_lines),
                            g.buffer_ring_lines, wire::back_base(seed, q));
    }
}

int Device::open_queues(const wire::Hello &peer, uint64_t own_seed, uint64_t peer_seed)
{
    const unsigned count = std::min(geometry_.queues, peer.qp_count);
    forget_windows(false);
    choose_copy(count);
    for (unsigned q = 0; q < count; ++q) {
        QueuePair &qp = queues_[q];
        const queue::TxSetup tx = tx_setup(q, peer, own_seed, peer_seed);
        const bool by_engine = tx.by_engine.engine.copy != nullptr;
        qp.tx.burst = by_engine ? ops_->tx_burst_engine : ops_->tx_burst;
        qp.tx.flow = by_engine ? ops_->tx_flow_engine : ops_->tx_flow;
        int rc = queue::tx_open(qp.tx.state, tx);
        if (rc == 0) {
            queues_open_ = q + 1; // from here on closed by close_queues()
            rc = queue::rx_open(qp.rx.state, rx_setup(q, peer, own_seed, peer_seed));
            if (qp.stable != nullptr)
                qp.stable->open(stable_pool_, window_pool_, geometry_.buf_bytes, max_message());
        }
        if (rc != 0) {
            close_queues();
            return rc;
        }
    }
    for (unsigned q = 0; q < count; ++q) {
        queues_[q].tx.broken.store(false, std::memory_order_relaxed);
        queues_[q].rx.broken.store(false, std::memory_order_relaxed);
        queues_[q].tx.thread.store({}, std::memory_order_relaxed);
        queues_[q].rx.thread.store({}, std::memory_order_relaxed);
        queues_[q].tx.gate.open();
        queues_[q].rx.gate.open();
    }
    sleepers_.open(count, {.own_block = block_.base,
                           .peer_block = platform_.window,
                           .own_seed = own_seed,
                           .peer_seed = peer_seed,
                           .peer_features = peer.features});
    return 0;
}

int Device::tx_unconfirmed(uint16_t index, uint32_t *count)
{
    const ControlLock locked(*this);
    const QueuePair *qp = queue(index);
    if (qp == nullptr || !qp->set_up)
        return -ENODEV;
    *count = queue::tx_unconfirmed(qp->tx.state);
    return index < queues_open_ && is_connected(link_.state()) ? 0 : -ENOTCONN;
}

uint64_t Device::left_unconfirmed() const
{
    uint64_t all = 0;
    for (const QueuePair &qp : std::span(queues_, queues_ready_))
        all += qp.set_up ? queue::tx_unconfirmed(qp.tx.state) : 0;
    return all;
}

uint64_t Device::unconfirmed()
{
    uint64_t all = 0;
    for (unsigned q = 0; q < queues_open_; ++q)
        all += queue::tx_unconfirmed(queues_[q].tx.state);
    return all;
}

bool Device::end_sending()
{
    bool left = true;
    {
        const Sleepers::NoAlerts held(sleepers_); // an alert would open a gate again
        for (unsigned q = 0; q < queues_open_; ++q)
            queues_[q].tx.gate.close();
    }
    gate_barrier(); // pairs with Gate::enter
    for (unsigned q = 0; q < queues_open_; ++q) {
        left = has_left(queues_[q].tx) && left;
        (void)confirm(queues_[q].rx); // the peer learns what was received
    }
    return left;
}

/// Whether nothing of a closed half is still to be stored: by its lcore, or by its engine.
bool Device::has_left(TxHalf &half)
{
    if (!half.gate.quiet())
        return false;
    const bool broken = half.burst(half.state, nullptr, nullptr, 0) < 0; // frees what was copied
    const queue::TxHeld held = queue::tx_held(half.state);
    return broken || held.taken == held.freed;
}

bool Device::all_received(uint64_t *received)
{
    bool empty = true;
    for (unsigned q = 0; q < queues_open_; ++q) {
        empty = confirm(queues_[q].rx) && empty;
        *received += queue::rx_stats(queues_[q].rx.state).messages;
    }
    return empty;
}

/// Confirms what a half has received. @return whether there is nothing more to receive
bool Device::confirm(RxHalf &half)
{
    const uint32_t word = half.gate.pause();
    gate_barrier(); // pairs with Gate::enter
    bool empty = false;
    if (half.gate.quiet()) {
        // A burst of none returns all credits, also those of messages that were the last.
        if (half.burst(half.state, nullptr, nullptr, 0) == -EPROTO)
            half.broken.store(true, std::memory_order_relaxed);
        empty = !queue::rx_arrived(queue::rx_next(half.state));
    }
    half.gate.resume(word);
    return empty;
}

bool Device::quiesce()
{
    sleepers_.close();
    for (unsigned q = 0; q < queues_open_; ++q) {
        queues_[q].tx.gate.close();
        queues_[q].rx.gate.close();
    }
    if (queues_open_ > 0)
        gate_barrier(); // pairs with Gate::enter
    if (inside_burst() || !leave_window())
        return false;
    // All of them, even if one is not quiet yet: each continues where it was at the last call.
    bool quiet = true;
    for (unsigned q = 0; q < queues_open_; ++q)
        quiet = queue::tx_close(queues_[q].tx.state) && quiet;
    return quiet;
}

/// Receive buffers of the peer that the application is filling when their connection ends remain in
/// its hands: it may store to them at any time, and nothing here waits for it. So the window moves,
/// and the next peer is connected at its new address.
/// @return false: it cannot be moved, so the application is waited for
bool Device::leave_window()
{
    if (!keeps_window())
        return true;
    std::byte *const old = platform_.window;
    if (platform_.ops->window_move == nullptr ||
        platform_.ops->window_move(platform_.ctx, &platform_.window) != 0)
        return false;
    *std::find(std::begin(old_windows_), std::end(old_windows_), nullptr) = old;
    for (QueuePair &qp : std::span(queues_, queues_open_))
        if (queue::tx_aside(qp.tx.state) != 0) {
            queue::tx_abort(qp.tx.state); // the queue has nothing to do with them any more
            qp.tx.old_window = old;
        }
    return true;
}

/// Whether an application still fills buffers of the peer that is being lost. Its queues are quiet.
bool Device::keeps_window() const
{
    return std::any_of(queues_, queues_ + queues_open_, [](const QueuePair &qp) {
        return queue::tx_aside(qp.tx.state) != 0 &&
               qp.tx.held_rooms.load(std::memory_order_relaxed) != 0;
    });
}

/// Forgets the addresses at which no thread stores any more.
void Device::forget_windows(bool all)
{
    const auto in_use = [this](const std::byte *old) {
        return std::any_of(queues_, queues_ + queues_ready_, [old](const QueuePair &qp) {
            return qp.tx.old_window == old && qp.tx.held_rooms.load(std::memory_order_relaxed) != 0;
        });
    };
    for (std::byte *&old : old_windows_)
        if (old != nullptr && (all || !in_use(old))) {
            platform_.ops->window_forget(platform_.ctx, old);
            old = nullptr;
        }
}

void Device::close_queues()
{
    for (unsigned q = 0; q < queues_open_; ++q) {
        // Sending halves are closed by quiesce(), or were opened just now and hold nothing.
        (void)queue::tx_close(queues_[q].tx.state);
        queue::rx_close(queues_[q].rx.state);
        if (queues_[q].stable != nullptr)
            queues_[q].stable->close();
    }
    queues_open_ = 0;
}

/// Whether a burst still uses queues that an incomplete stop left open.
bool Device::inside_burst() const
{
    return std::any_of(queues_, queues_ + queues_open_, [](const QueuePair &qp) {
        return !qp.tx.gate.quiet() || !qp.rx.gate.quiet();
    });
}

} // namespace plx::pmd

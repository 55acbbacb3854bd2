// SPDX-License-Identifier: BSD-3-Clause
// The control thread of a device, and what link life (link/link.hpp) asks of it.
#include "device/device.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include <rte_cycles.h>

#include <sys/random.h>

#include "device/cache_hints.hpp"
#include "sync/clock.hpp"
#include "sync/log.hpp"

namespace plx::pmd
{

namespace
{

constexpr unsigned greet_us = 4'000; // while a peer is being looked for

/// Words of shared memory, one atomic access each: the peer may write at the same time.
void copy_words(uint64_t *to, const volatile uint64_t *from, size_t words)
{
    for (size_t i = 0; i < words; ++i)
        to[i] = __atomic_load_n(from + i, __ATOMIC_RELAXED);
}

uint64_t read_cycles()
{
    return rte_rdtsc();
}

rte_pmd_plx_ntb_state public_state(LinkState state)
{
    switch (state) {
    case LinkState::stopped:
        return RTE_PMD_PLX_NTB_STOPPED;
    case LinkState::waiting:
        return RTE_PMD_PLX_NTB_WAITING;
    case LinkState::refused:
        return RTE_PMD_PLX_NTB_REFUSED;
    case LinkState::connected:
        return RTE_PMD_PLX_NTB_CONNECTED;
    case LinkState::silent:
        return RTE_PMD_PLX_NTB_SILENT;
    case LinkState::losing:
    case LinkState::fencing:
    case LinkState::stopping:
        break;
    }
    return RTE_PMD_PLX_NTB_FENCING;
}

} // namespace

// ---- the control thread

unsigned Device::on_tick(void *arg)
{
    return static_cast<Device *>(arg)->tick();
}

void Device::on_peer_change(void *arg)
{
    static_cast<Device *>(arg)->control_.call(tick_job); // on the platform's thread
}

unsigned Device::next_tick_us() const
{
    if (is_waiting(link_.state()))
        return greet_us;
    return is_fencing(link_.state()) ? retry_us : beat_us;
}

unsigned Device::tick()
{
    lock();
    if (started_) {
        watch_queues();
        dma_.watch();
        link_.tick();
        sleepers_.look();
    }
    const unsigned wait_us = started_ ? next_tick_us() : 0; // a callback may have stopped it
    unlock();
    return wait_us;
}

/// What the lcores left for the control side to say.
void Device::watch_queues()
{
    for (unsigned q = 0; q < queues_open_; ++q) {
        watch_half(queues_[q].tx, "sending", q);
        if (copy_.failed(q))
            link_.distrust(); // also where the application does not send any more
        free_held(queues_[q].tx);
        watch_half(queues_[q].rx, "receiving", q);
        watch_cache_hint(q);
    }
}

/// A receiver cannot say in the log which hint it has chosen.
void Device::watch_cache_hint(unsigned index)
{
    QueuePair &qp = queues_[index];
    const queue::CacheHintReport now = queue::rx_cache_hint(qp.rx.state);
    const bool news = cache_hint_chosen(now) && (!cache_hint_chosen(qp.cache_hint_logged) ||
                                                 now.in_force != qp.cache_hint_logged.in_force);
    qp.cache_hint_logged = now;
    if (!news)
        return;
    char text[cache_hint_text_bytes];
    describe(now, text, sizeof(text));
    PLX_LOG(INFO, "%s: queue %u: cache hint %s\n", name_, index, text);
}

/// mbufs that an engine has read come back in later bursts. An application that has nothing more to
/// send makes none, and may wait for these very buffers: from one tick to the next without a move,
/// they are freed in its place.
void Device::free_held(TxHalf &half)
{
    const queue::TxHeld now = queue::tx_held(half.state);
    const bool waits = now.taken != now.freed && now == half.held;
    half.held = now;
    if (!waits || !half.gate.is_open())
        return;
    const Sleepers::NoAlerts held(sleepers_); // the word at the gate comes back as it was
    const uint32_t word = half.gate.pause();
    gate_barrier(); // pairs with Gate::enter
    if (half.gate.quiet() && half.burst(half.state, nullptr, nullptr, 0) == -EPROTO)
        half.broken.store(true, std::memory_order_relaxed);
    half.gate.resume(word);
}

template <class H>
void Device::watch_half(H &half, const char *direction, unsigned index)
{
    if (half.broken.load(std::memory_order_relaxed))
        link_.distrust();
    const int node = half.lcore_node.load(std::memory_order_relaxed);
    if (node >= 0 && node != node_ && !half.warned) {
        half.warned = true;
        PLX_LOG(WARNING, "%s: the lcore %s on queue %u is on NUMA node %d, the device on %d\n",
                name_, direction, index, node, node_);
    }
}

// ---- what link life asks for

uint64_t Device::now_us()
{
    return timer_us();
}

uint64_t Device::random()
{
    uint64_t value = 0;
    // Seeds keep a late line of an old epoch from ever looking valid; a clock would do, barely.
    if (getrandom(&value, sizeof(value), GRND_NONBLOCK) != sizeof(value))
        value = wire::mix(rte_get_timer_cycles() + id());
    return value;
}

bool Device::way_open(const char **why)
{
    // Asked first: a register of the twin may have to wait until memory was taken back from a peer
    // that is gone, and the news of its end shall not.
    if (!platform_.ops->peer_present(platform_.ctx)) {
        *why = "no process is at the other end of the cable";
        return false;
    }
    uint32_t errors = 0;
    hw::LinkStatus status;
    *why = chip_.identity().side == facts::Side::virt
               ? "the chip does not answer"
               : "the chip does not answer: the link is down, or the card gone";
    // The status first: a change that comes after it was read is left to the next tick.
    if (chip_.link_status(&status) != 0 || chip_.link_errors_take(&errors) != 0 ||
        (chip_silent_ && take_over() != 0)) {
        chip_silent_ = true;
        return false;
    }
    chip_silent_ = false;
    const bool changed = (errors & facts::field::err_link_change.mask()) != 0;
    // E3: a change of the link may have wiped the link side, whichever way it went.
    if (changed && chip_.program_all() != 0)
        return false;
    // What was under way in a break, however short, is gone: a ring with a hole in it stands still
    // for ever, without a report.
    *why = status.up ? "the link has changed" : "the link is down";
    return status.up && !changed;
}

/// A chip that did not answer for a while may have lost its power: as at probe. What it was to show
/// the peer is in its record.
int Device::take_over()
{
    const int rc = chip_.start();
    return rc != 0 ? rc : chip_.link_enable();
}

int Device::open_window()
{
    const hw::Piece whole{block_.bus, block_.bytes};
    const bool in_pieces = block_.pieces != nullptr;
    hw::Refusal why;
    const int rc = chip_.window_set(hw::Chip::data_window, in_pieces ? block_.pieces : &whole,
                                    in_pieces ? block_.piece_count : 1, hw::rights_all, &why);
    chip_silent_ = chip_silent_ || rc == -ENODEV;
    if (rc != 0)
        PLX_LOG(ERR, "%s: the window cannot show 0x%" PRIx64 " + 0x%zx: %s\n", name_, block_.bus,
                block_.bytes, rc == -EINVAL ? why.what : "the chip does not answer");
    else
        exposed_.opened(block_.bytes);
    return rc;
}

/// The peer needs our registers for nothing that the protocol asks of it.
void Device::shut_registers()
{
    if (options_.peer_csr == PeerCsr::closed && chip_.set_peer_csr(false) != 0)
        PLX_LOG(ERR, "%s: the chip does not answer: the peer may still reach its registers\n",
                name_);
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
    if (inside_burst())
        return false;
    // All of them, also while one is not done: each takes up to where it got to the last time.
    bool quiet = true;
    for (unsigned q = 0; q < queues_open_; ++q)
        quiet = queue::tx_close(queues_[q].tx.state) && quiet;
    return quiet;
}

bool Device::fence()
{
    // A chip that does not answer may still let the peer through: nothing is reused until it says
    // that the window is closed.
    if (chip_.window_clear(hw::Chip::data_window) != 0) {
        chip_silent_ = true;
        return false;
    }
    exposed_.closed();
    if (options_.peer_csr == PeerCsr::closed && chip_.set_peer_csr(true) != 0) {
        chip_silent_ = true;
        return false;
    }
    ++counts_.fences;
    close_queues();
    // What the last peer said is not taken for the next one's word.
    std::memset(block_.base, 0, wire::page_bytes);
    return true;
}

void Device::close_queues()
{
    for (unsigned q = 0; q < queues_open_; ++q) {
        // Sending halves are closed by quiesce(), or were opened just now and gave nothing away.
        (void)queue::tx_close(queues_[q].tx.state);
        queue::rx_close(queues_[q].rx.state);
        if (queues_[q].stable != nullptr)
            queues_[q].stable->close();
    }
    queues_open_ = 0;
}

void Device::prepare_rings(uint64_t seed)
{
    const Geometry &g = geometry_;
    std::memset(block_.base + wire::sleep_request_offset, 0,
                wire::sleep_words_end - wire::sleep_request_offset);
    for (uint32_t q = 0; q < g.queues; ++q) {
        queue::prepare_ring(block_.base + wire::ring_offset(q, g.ring_lines, g.posted_lines),
                            g.ring_lines, wire::ring_base(seed, q));
        queue::prepare_back(block_.base + wire::credit_offset(q, g.ring_lines, g.posted_lines),
                            block_.base + wire::posted_offset(q, g.ring_lines, g.posted_lines),
                            g.posted_lines, wire::back_base(seed, q));
    }
}

queue::TxSetup Device::tx_setup(unsigned q, const wire::Hello &peer, uint64_t own_seed,
                                uint64_t peer_seed) const
{
    const Geometry &g = geometry_;
    std::byte *peer_block = platform_.window;
    return {.peer_ring = peer_block + wire::ring_offset(q, peer.ring_lines, peer.posted_lines),
            .peer_ring_lines = peer.ring_lines,
            .peer_ring_base = wire::ring_base(peer_seed, q),
            .credit = block_.base + wire::credit_offset(q, g.ring_lines, g.posted_lines),
            .posted = block_.base + wire::posted_offset(q, g.ring_lines, g.posted_lines),
            .posted_lines = g.posted_lines,
            .back_base = wire::back_base(own_seed, q),
            .peer_block = peer_block,
            .peer_buf_begin = peer.buf_begin,
            .peer_buf_end = peer.buf_end,
            .peer_buf_bytes = peer.buf_bytes,
            .peer_max_message = peer.max_message,
            .inline_max = g.inline_max,
            .by_engine = copy_.setup(q, window_pool_)};
}

queue::RxSetup Device::rx_setup(unsigned q, const wire::Hello &peer, uint64_t own_seed,
                                uint64_t peer_seed) const
{
    const Geometry &g = geometry_;
    std::byte *peer_block = platform_.window;
    const uint32_t room = (peer.posted_lines - 1) * wire::posted_per_line;
    return {.ring = block_.base + wire::ring_offset(q, g.ring_lines, g.posted_lines),
            .ring_lines = g.ring_lines,
            .ring_base = wire::ring_base(own_seed, q),
            .peer_credit = peer_block + wire::credit_offset(q, peer.ring_lines, peer.posted_lines),
            .peer_posted = peer_block + wire::posted_offset(q, peer.ring_lines, peer.posted_lines),
            .peer_posted_lines = peer.posted_lines,
            .peer_back_base = wire::back_base(peer_seed, q),
            .block = block_.base,
            .inline_pool = queues_[q].inline_pool(),
            .window_pool = window_pool_,
            .buf_bytes = g.buf_bytes,
            .posted_target = std::min(g.posted, room),
            .max_message = max_message(),
            .port = id(),
            .hint = cache_hint_,
            .cycles = options_.cache_hint == CacheHintChoice::automatic ? read_cycles : nullptr};
}

/// Which messages go by DMA from now on, and says so.
void Device::choose_copy(unsigned queues)
{
    copy_.choose(options_.copy, *ops_, platform_.window, platform_.window_bus, geometry_.inline_max,
                 queues);
    char text[copy_text_bytes];
    describe(copy_.choice(), text, sizeof(text));
    if (copy_.engines() > 0)
        PLX_LOG(NOTICE, "%s: %s\n", name_, text);
    else
        PLX_LOG(INFO, "%s: %s\n", name_, text);
}

queue::CacheHintReport Device::cache_hint_report(uint16_t index)
{
    const ControlLock locked(*this);
    if (index < queues_open_)
        return queue::rx_cache_hint(queues_[index].rx.state);
    return {.in_force = static_cast<uint64_t>(cache_hint_),
            .rounds = 0,
            .thin = 0,
            .none_cost = 0,
            .relative = {}};
}

CopyChoice Device::copy_choice()
{
    const ControlLock locked(*this);
    return copy_.choice();
}

int Device::open_queues(const wire::Hello &peer, uint64_t own_seed, uint64_t peer_seed)
{
    const unsigned count = std::min(geometry_.queues, peer.qp_count);
    choose_copy(count);
    for (unsigned q = 0; q < count; ++q) {
        QueuePair &qp = queues_[q];
        const queue::TxSetup tx = tx_setup(q, peer, own_seed, peer_seed);
        qp.tx.burst = tx.by_engine.engine.copy != nullptr ? ops_->tx_burst_engine : ops_->tx_burst;
        int rc = queue::tx_open(qp.tx.state, tx);
        if (rc == 0) {
            queues_open_ = q + 1; // what is open from here on is closed by close_queues
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

wire::Hello Device::read_hello()
{
    uint64_t words[sizeof(wire::Hello) / 8];
    copy_words(words, reinterpret_cast<const uint64_t *>(block_.base + wire::hello_offset),
               std::size(words));
    return std::bit_cast<wire::Hello>(words);
}

uint64_t Device::read_heartbeat()
{
    uint64_t word = 0;
    copy_words(&word, reinterpret_cast<const uint64_t *>(block_.base + wire::heartbeat_offset), 1);
    return word;
}

void Device::write_hello(const wire::Hello &hello)
{
    const auto words = std::bit_cast<std::array<uint64_t, sizeof(hello) / 8>>(hello);
    auto *to = reinterpret_cast<uint64_t *>(platform_.window + wire::hello_offset);
    // In any order: the reader finds a torn hello by its CRC.
    for (size_t i = 0; i < words.size(); ++i)
        __atomic_store_n(to + i, words[i], __ATOMIC_RELEASE);
}

void Device::write_heartbeat(uint64_t word)
{
    auto *to = reinterpret_cast<uint64_t *>(platform_.window + wire::heartbeat_offset);
    __atomic_store_n(to, word, __ATOMIC_RELEASE);
}

void Device::report(LinkEvent event)
{
    rte_pmd_plx_ntb_event reported = RTE_PMD_PLX_NTB_EVENT_BACK;
    switch (event) {
    case LinkEvent::connected:
        ++counts_.connects;
        shut_registers();
        PLX_LOG(NOTICE, "%s: connected, %u queue pairs\n", name_, queues_open_);
        break;
    case LinkEvent::silent:
        ++counts_.silences;
        reported = RTE_PMD_PLX_NTB_EVENT_SILENT;
        break;
    case LinkEvent::awake:
        reported = RTE_PMD_PLX_NTB_EVENT_AWAKE;
        break;
    case LinkEvent::lost:
        ++counts_.losses;
        PLX_LOG(NOTICE, "%s: lost: %s\n", name_, link_.why());
        reported = RTE_PMD_PLX_NTB_EVENT_LOST;
        break;
    case LinkEvent::refused:
        ++counts_.refusals;
        PLX_LOG(ERR, "%s: refused: %s\n", name_, link_.why());
        reported = RTE_PMD_PLX_NTB_EVENT_REFUSED;
        break;
    }
    if (event_fn_ != nullptr)
        event_fn_(id(), reported, event_arg_);
    sleepers_.wake_all();
}

void Device::explain(const char *why)
{
    PLX_LOG(INFO, "%s: %s\n", name_, why);
}

void Device::set_callback(rte_pmd_plx_ntb_event_fn fn, void *arg)
{
    lock();
    event_fn_ = fn;
    event_arg_ = arg;
    unlock();
}

void Device::link_info(rte_pmd_plx_ntb_link *out)
{
    *out = {};
    hw::LinkStatus status;
    if (!closed_ && chip_.link_status(&status) == 0) {
        out->speed = status.speed;
        out->width = status.width;
    }
    lock();
    out->state = public_state(link_.state());
    if (is_connected(link_.state())) {
        out->peer_epoch = link_.peer().epoch;
        out->peer_max_message = link_.peer().max_message;
        out->queues = queues_open_;
    }
    std::snprintf(out->why, sizeof(out->why), "%s", link_.why());
    unlock();
}

} // namespace plx::pmd

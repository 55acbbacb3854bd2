// SPDX-License-Identifier: BSD-3-Clause
// The ticks of a device's control thread.
#include "device/device.hpp"

#include <cerrno>

#include "device/trials.hpp"
#include "sync/log.hpp"

namespace plx::pmd
{

namespace
{

constexpr unsigned greet_us = 4'000; // between two hellos while there is no connection

} // namespace

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
    if (is_closing(link_.state()))
        return closing_us;
    return is_fencing(link_.state()) ? retry_us : beat_us;
}

unsigned Device::tick()
{
    lock();
    if (started_) {
        watch_queues();
        dma_.watch();
        link_.tick();
        sleepers_.check_all();
    }
    const unsigned wait_us = started_ ? next_tick_us() : 0; // a callback may have stopped it
    unlock();
    return wait_us;
}

/// Acts on what the lcores noted for the control thread.
void Device::watch_queues()
{
    for (unsigned q = 0; q < queues_open_; ++q) {
        watch_half(queues_[q].tx, "sending", q);
        if (copy_.failed(q))
            link_.protocol_error(); // also if the application does not send any more
        free_held(queues_[q].tx);
        watch_half(queues_[q].rx, "receiving", q);
        watch_trials(q);
    }
}

/// Logs what trials have chosen; the data path does not log.
void Device::watch_trials(unsigned index)
{
    QueuePair &qp = queues_[index];
    const auto watch = [&](const queue::TrialReport &now, queue::TrialReport &logged,
                           const char *what, ChoiceNames names) {
        const bool news = was_tried(now) && (!was_tried(logged) || now.in_force != logged.in_force);
        logged = now;
        if (!news)
            return;
        char text[trial_text_bytes];
        describe(now, names, text, sizeof(text));
        PLX_LOG(INFO, "%s: queue %u: %s %s\n", name_, index, what, text);
    };
    watch(queue::rx_cache_hint(qp.rx.state), qp.cache_hint_logged, "cache hint", cache_hint_names);
    watch(queue::tx_stores(qp.tx.state), qp.stores_logged, "stores of long messages", stores_names);
    watch(queue::tx_inline(qp.tx.state), qp.inline_logged, "bursts between the inline bounds by",
          inline_names);
}

/// mbufs that an engine has read are freed in later bursts. An application that has nothing more to
/// send calls none, and may wait for these mbufs: after a tick without progress, they are freed
/// here.
void Device::free_held(TxHalf &half)
{
    const queue::TxHeld now = queue::tx_held(half.state);
    const bool waits = now.taken != now.freed && now == half.held;
    half.held = now;
    if (!waits || !half.gate.is_open())
        return;
    const Sleepers::NoAlerts held(sleepers_); // resume() restores the word at the gate
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
        link_.protocol_error();
    const int node = half.lcore_node.load(std::memory_order_relaxed);
    if (node >= 0 && node != node_ && !half.warned) {
        half.warned = true;
        PLX_LOG(WARNING, "%s: the lcore %s on queue %u is on NUMA node %d, the device on %d\n",
                name_, direction, index, node, node_);
    }
}

} // namespace plx::pmd

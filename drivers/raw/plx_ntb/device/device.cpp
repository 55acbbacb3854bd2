// SPDX-License-Identifier: BSD-3-Clause
// The life of a device from probe to close.
#include "device/device.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>

#include <rte_cycles.h>
#include <rte_lcore.h>
#include <rte_rawdev_pmd.h>

#include "device/sleep_service.hpp"
#include "sync/clock.hpp"
#include "sync/log.hpp"

namespace plx::pmd
{

namespace
{

/// How often stop() retries while a queue is inside a burst: bounded, and longer than any burst.
constexpr unsigned stop_attempts = 10'000;
/// How often it retries with a chip that does not answer: the twin may answer late.
constexpr unsigned chip_attempts = 200;

/// The cache hint with which a receiver begins.
queue::CacheHint first_cache_hint(CacheHintChoice choice)
{
    switch (choice) {
    case CacheHintChoice::automatic: // until the trial has chosen
    case CacheHintChoice::none:
        return queue::CacheHint::none;
    case CacheHintChoice::clwb:
        return queue::CacheHint::clwb;
    case CacheHintChoice::clflushopt:
        return queue::CacheHint::clflushopt;
    case CacheHintChoice::cldemote:
        return queue::CacheHint::cldemote;
    }
    return queue::CacheHint::none;
}

queue::Policy pick_policy(MemoryPolicy choice, bool write_combining)
{
    if (choice == MemoryPolicy::automatic)
        return write_combining ? queue::Policy::write_combining : queue::Policy::plain;
    return choice == MemoryPolicy::plain ? queue::Policy::plain : queue::Policy::write_combining;
}

} // namespace

const char *topology_name(const hw::Chip &chip)
{
    if (!chip.shared())
        return "back to back";
    return chip.identity().side == facts::Side::virt ? "root port beyond the link"
                                                     : "on the link side";
}

Device::Device(rte_rawdev *raw, const char *name, const Platform &platform, const Options &options)
    : raw_(raw), platform_(platform), options_(options), geometry_(options.geometry), link_(*this),
      exposed_(name_, chip_, platform_, link_),
      sleepers_(chip_, platform_, queues_, {options.recheck_us, options.spin_us}, control_,
                recheck_job)
{
    control_.set_job(tick_job, on_tick, this);
    control_.set_job(recheck_job, Sleepers::check_again, &sleepers_);
    std::snprintf(name_, sizeof(name_), "%s", name);
}

uint16_t Device::id() const
{
    return raw_->dev_id;
}

int Device::probe()
{
    node_ = options_.node >= 0 ? options_.node : platform_.node;
    cache_bytes_ = read_private_cache();
    const queue::Policy policy = pick_policy(options_.memory, platform_.write_combining);
    ops_ = queue::select_ops(policy);
    stores_ = options_.stores == StoresChoice::non_temporal ? queue::Stores::non_temporal
                                                            : queue::Stores::plain;
    // Through write-combining memory both ways are one.
    learned_writes_.store(stores_, std::memory_order_relaxed);
    inline_by_trial_ = policy == queue::Policy::plain;
    stores_by_trial_ = options_.stores == StoresChoice::automatic && policy == queue::Policy::plain;
    cache_hint_ = first_cache_hint(options_.cache_hint);
    if (!queue::cache_hint_supported(cache_hint_)) {
        PLX_INIT_LOG(ERR,
                     "%s: this CPU has no instruction for the cache hint that was asked for: "
                     "expected cache_hint=auto or none\n",
                     name_);
        return -ENOTSUP;
    }

    // The table ignores the function number: one entry matches all engines of a device.
    uint16_t requesters[facts::dma_function_count];
    unsigned requester_count = 0;
    for (unsigned i = 0; i < platform_.dma_channels; ++i) {
        const auto id = static_cast<uint16_t>(platform_.dma_requesters[i] & 0xFFF8);
        if (std::find(requesters, requesters + requester_count, id) == requesters + requester_count)
            requesters[requester_count++] = id;
    }
    hw::Refusal why;
    const hw::ChipConfig config{.topology = options_.topology,
                                .bar2_bytes = platform_.window_bytes,
                                .bar4_bytes = platform_.shared_bytes,
                                .requesters = requesters,
                                .requester_count = requester_count};
    int rc = chip_.open(platform_.own, config, &why);
    if (rc != 0) {
        PLX_INIT_LOG(ERR, "%s: this chip cannot be driven: %s (found 0x%" PRIx64 ")\n", name_,
                     why.what, why.found);
        return rc;
    }
    if (chip_.shared() && options_.peer_csr == PeerCsr::closed) {
        PLX_INIT_LOG(ERR,
                     "%s: peer_csr=closed: expected open, for both hosts have the registers of the "
                     "one chip behind BAR0\n",
                     name_);
        return -ENOTSUP;
    }
    rc = take_over();
    if (rc != 0) {
        PLX_INIT_LOG(ERR, "%s: the chip stopped answering during initialization\n", name_);
        return rc;
    }
    const hw::Identity &id = chip_.identity();
    PLX_INIT_LOG(INFO,
                 "%s: PEX %04x rev %02x, NT%u, %s, %s, window %" PRIu64 " MiB, A-LUT %u, %s\n",
                 name_, id.part, id.revision, id.nt, topology_name(chip_), platform_.ops->name,
                 platform_.window_bytes >> 20, id.alut_entries, ops_->name);
    rc = exposed_.open(options_.window);
    if (rc != 0)
        return rc;
    if (options_.service != 0) {
        rc = sleep_service_register(name_, node_, sleepers_, &service_id_);
        if (rc != 0)
            return rc;
        has_service_ = true;
    }
    return dma_.open(name_, raw_->device, platform_,
                     hw::dma_shares(platform_.own, chip_.identity()), options_.dma,
                     options_.dmadevs);
}

/// What default sizes are chosen by. Half of the window is left for memory regions, as much as the
/// block has.
Machine Device::machine() const
{
    return {.cache_bytes = cache_bytes_,
            .window_bytes = platform_.window_bytes >> std::max(options_.window.split, 1u)};
}

int Device::configure(const rte_pmd_plx_ntb_config &config)
{
    if (closed_)
        return -ENODEV;
    if (const int rc = require_stopped(); rc != 0)
        return rc;
    Geometry geometry;
    int rc = apply_config(name_, options_.geometry, config, machine(), &geometry);
    if (rc == 0)
        rc = exposed_.fit(plan_block(geometry).block_bytes);
    if (rc != 0)
        return rc;
    for (uint16_t q = static_cast<uint16_t>(geometry.queues); q < queues_ready_; ++q)
        free_queue(queues_[q]);
    geometry_ = geometry;
    const PrivateCache cache = private_cache(cache_bytes_);
    PLX_INIT_LOG(INFO,
                 "%s: ring %u lines (by %s), %u buffers (by %s), private cache %" PRIu64 " KiB%s\n",
                 name_, geometry.ring_lines, sized_by_name(geometry.ring_by), geometry.buffers,
                 sized_by_name(geometry.buffers_by), cache.bytes >> 10, cache.mark);
    queues_ready_ = static_cast<uint16_t>(geometry.queues);
    configured_ = true;
    return 0;
}

int Device::set_default(const rte_pmd_plx_ntb_config &config)
{
    if (started_)
        return -EBUSY;
    Geometry checked;
    const int rc = apply_config(name_, options_.geometry, config, machine(), &checked);
    if (rc == 0 && config.ring_lines != 0)
        options_.geometry.ring_lines = config.ring_lines;
    if (rc == 0 && config.queues != 0)
        options_.geometry.queues = config.queues;
    return rc;
}

int Device::set_copy_mode(CopyMode mode)
{
    if (started_)
        return -EBUSY;
    options_.copy.mode = mode;
    return 0;
}

int Device::start()
{
    if (!configured_) {
        PLX_INIT_LOG(ERR, "%s: not configured\n", name_);
        return -EINVAL;
    }
    for (unsigned q = 0; q < queues_ready_; ++q) {
        if (!queues_[q].set_up) {
            PLX_INIT_LOG(ERR, "%s: queue %u is not set up\n", name_, q);
            return -EINVAL;
        }
    }
    if (started_)
        return 0;
    if (const int rc = require_stopped(); rc != 0)
        return rc;
    if (node_ < 0)
        node_ = static_cast<int>(rte_socket_id());
    int rc = find_engines();
    if (rc == 0)
        rc = make_block();
    if (rc == 0)
        rc = make_inline_pools();
    if (rc == 0)
        rc = make_stable_pool();
    if (rc == 0)
        rc = copy_.make_staging(name_, node_);
    if (rc != 0)
        return rc;

    wire::Hello own{};
    own.block_bytes = block_.bytes;
    own.qp_count = geometry_.queues;
    own.channel_qps = geometry_.workers;
    own.ring_lines = geometry_.ring_lines;
    own.buffer_ring_lines = geometry_.buffer_ring_lines;
    own.buf_bytes = geometry_.buf_bytes;
    own.buf_begin = plan_.buf_begin;
    own.buf_end = plan_.buf_end;
    own.max_message = max_message();
    own.heartbeat_us = beat_us;
    own.features =
        sleepers_.start(name_, options_.interrupts != 0 && options_.peer_csr == PeerCsr::open);
    const LinkTimes times{.silent_us = options_.heartbeat_ms * 1000,
                          .lost_us = options_.lost_ms * 1000,
                          .beat_us = beat_us,
                          .receive_us = options_.linger_ms * 1000};
    lock();
    std::memset(block_.base, 0, wire::page_bytes); // no hello yet: the peer's window is closed
    rc = link_.start(own, platform_.window_bytes, times);
    started_ = rc == 0;
    unlock();
    if (rc != 0) {
        sleepers_.stop();
        PLX_INIT_LOG(ERR, "%s: the peer's window could not be opened: %s\n", name_, strerror(-rc));
        return rc;
    }
    platform_.ops->watch_peer(platform_.ctx, on_peer_change, this);
    char thread_name[16];
    std::snprintf(thread_name, sizeof(thread_name), "plx-ctrl-%u", id());
    control_.call(tick_job);
    rc = control_.start(thread_name);
    if (rc == 0)
        return 0;
    PLX_INIT_LOG(ERR, "%s: EAL starts no control thread: %s\n", name_, strerror(-rc));
    stop();
    return rc;
}

/// Gives DMA channels to queue pairs, beginning with the first, for the life of the device.
int Device::find_engines()
{
    if (options_.copy.mode == CopyMode::cpu)
        return 0;
    const unsigned wanted = std::min<unsigned>(dma_.engines(), queues_ready_);
    for (; engines_seen_ < wanted; ++engines_seen_)
        if (const queue::Engine *engine = dma_.engine(engines_seen_); engine != nullptr)
            copy_.add_engine(*engine);
    if (options_.copy.mode == CopyMode::automatic || copy_.engines() != 0)
        return 0;
    PLX_INIT_LOG(ERR, "%s: copy=dma: there is no DMA channel for queue pairs: %s\n", name_,
                 options_.dma == 0 ? "dma=0" : dma_.why_few());
    return -ENOTSUP;
}

uint32_t Device::max_message() const
{
    if (geometry_.max_message != 0)
        return geometry_.max_message;
    const uint64_t held =
        uint64_t{wire::guaranteed_buffers(geometry_.queue_buffers)} * geometry_.buf_bytes;
    return static_cast<uint32_t>(std::min<uint64_t>(held, wire::message_max));
}

/// Waits until the peer has confirmed all that was sent, or confirms no more. The caller's thread
/// is the control thread meanwhile. A signal ends the wait.
void Device::linger(uint32_t ms)
{
    const uint64_t end = timer_us() + uint64_t{ms} * 1000;
    const timespec nap{0, closing_us * 1000};
    while (keep_lingering() && timer_us() < end && nanosleep(&nap, nullptr) == 0)
        ;
}

bool Device::keep_lingering()
{
    const ControlLock locked(*this);
    return link_.linger();
}

/// A stop that could not complete leaves queues open: their state and their memory are in use until
/// it does. @return 0; -EBUSY: started, or that stop still does not complete, which is logged
int Device::require_stopped()
{
    if (started_)
        return -EBUSY;
    return link_.state() == LinkState::stopped || stop() == 0 ? 0 : -EBUSY;
}

int Device::stop(uint32_t linger_ms)
{
    if (closed_)
        return 0; // its chip is not accessed any more
    if (started_) {
        platform_.ops->watch_peer(platform_.ctx, nullptr, nullptr);
        started_ = false; // a later tick does nothing
        control_.stop();
        linger(linger_ms);
        sleepers_.stop();
    }
    unsigned unanswered = 0;
    for (unsigned i = 0; i < stop_attempts && unanswered < chip_attempts; ++i) {
        if (try_stop())
            return 0;
        unanswered += chip_silent_ ? 1 : 0;
        rte_delay_us_sleep(retry_us);
    }
    PLX_LOG(ERR, "%s: the peer's access could not be revoked, its memory is kept: %s\n", name_,
            chip_silent_ ? "the chip does not answer"
                         : "a queue is inside a burst, or buffers of the peer are being filled");
    return -EIO;
}

bool Device::try_stop()
{
    const ControlLock locked(*this);
    return link_.stop();
}

/// Gates of queues that an incomplete stop left open are closed, but who polls goes on to pass
/// them: that is no burst, and shows as one at times. One look at which there is none is enough.
bool Device::await_bursts() const
{
    for (unsigned i = 0; i < chip_attempts; ++i) {
        if (!inside_burst())
            return true;
        rte_delay_us_sleep(retry_us);
    }
    return false;
}

int Device::close()
{
    if (closed_)
        return 0;
    if (dma_.busy_dmadevs() != 0) {
        PLX_LOG(ERR, "%s: one of its dmadevs is started: stop it, then close again\n", name_);
        return -EBUSY;
    }
    stop();
    const bool fenced = link_.state() == LinkState::stopped;
    if (!fenced && (!await_bursts() || keeps_window()))
        return -EBUSY;
    if (!pools_home()) {
        PLX_LOG(ERR, "%s: mbufs of its pools are still held: free them, then close again\n", name_);
        return -EBUSY;
    }
    close_queues(); // after an incomplete stop: frees the receive buffers before their pool
    // Memory that the peer may still reach is never freed.
    if (fenced) {
        exposed_.drop();
        drop_block();
        copy_.drop();
    }
    drop_window_pool();
    drop_private_pools();
    if (has_service_)
        sleep_service_unregister(service_id_);
    has_service_ = false;
    for (uint16_t q = 0; q < queues_ready_; ++q)
        free_queue(queues_[q]);
    queues_ready_ = 0;
    configured_ = false;
    dma_.close();
    chip_.shut_down(true);
    forget_windows(true);
    platform_.ops->detach(platform_.ctx);
    closed_ = true;
    return 0;
}

} // namespace plx::pmd

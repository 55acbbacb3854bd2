// SPDX-License-Identifier: BSD-3-Clause
// A device: one end of a bridge. The burst path touches its queue halves only; everything else is
// control.
#ifndef PLX_NTB_DEVICE_DEVICE_HPP
#define PLX_NTB_DEVICE_DEVICE_HPP

#include <array>
#include <atomic>
#include <cinttypes>
#include <cstdint>
#include <mutex>

#include <pthread.h>

#include "device/options.hpp"
#include "device/queue_pair.hpp"
#include "device/sleepers.hpp"
#include "dma/channels.hpp"
#include "dma/copy_paths.hpp"
#include "hw/chip.hpp"
#include "link/link.hpp"
#include "platform/platform.hpp"
#include "queue/queue.hpp"
#include "rte_pmd_plx_ntb.h"
#include "sync/control_thread.hpp"
#include "sync/gate.hpp"
#include "window/exposed_memory.hpp"
#include "window/writer.hpp"

struct rte_mempool;
struct rte_rawdev;

namespace plx::pmd
{

/// Time between two control ticks of a connected device, and between two heartbeats.
inline constexpr unsigned beat_us = 10'000;
/// Time between two checks of a queue that is inside a burst.
inline constexpr unsigned retry_us = 200;
/// Time between two checks of receivers that take what a stopped peer has sent, and of what a peer
/// has confirmed while a stop waits for it.
inline constexpr unsigned closing_us = 500;

/// Counts of connection events.
struct LinkCounts {
    std::atomic<uint64_t> connects{0}, losses{0}, silences{0}, refusals{0}, fences{0};
};

class Device final : private LinkDevice
{
public:
    Device(rte_rawdev *raw, const char *name, const Platform &platform, const Options &options);
    ~Device() = default;
    Device(const Device &) = delete;
    Device &operator=(const Device &) = delete;

    /// Identifies and initializes the chip. @return 0 or negative errno, logged
    int probe();
    int configure(const rte_pmd_plx_ntb_config &config);
    /// Changes the defaults of later configure calls. @return 0, -EBUSY while started, -EINVAL
    int set_default(const rte_pmd_plx_ntb_config &config);
    /// Sets how messages are copied, from the next start on. @return 0; -EBUSY: it is started
    int set_copy_mode(CopyMode mode);
    int queue_setup(uint16_t queue, rte_mempool *pool);
    int queue_release(uint16_t queue);
    int start();
    /// @param linger_ms how long to wait for the peer to confirm what was sent
    /// @return 0; -EIO: the peer's access could not be revoked
    int stop(uint32_t linger_ms);
    int stop() { return stop(options_.linger_ms); }
    /// Messages of the last connection that were not confirmed. While it is stopped.
    uint64_t left_unconfirmed() const;
    /// Of a queue: as rte_pmd_plx_ntb_tx_unconfirmed().
    int tx_unconfirmed(uint16_t queue, uint32_t *count);
    int close();

    uint16_t id() const;
    const char *name() const { return name_; }
    const Geometry &geometry() const { return geometry_; }
    /// Private cache of a core, in bytes; 0: the system does not report it.
    uint64_t cache_bytes() const { return cache_bytes_; }
    uint32_t max_message() const; ///< longest message accepted, in bytes
    const Options &options() const { return options_; }
    const Platform &platform() const { return platform_; }
    hw::Chip &chip() { return chip_; }
    DmaChannels &dma() { return dma_; }
    QueuePair *queue(uint16_t index) { return index < queues_ready_ ? &queues_[index] : nullptr; }
    uint16_t queue_count() const { return queues_ready_; }
    bool started() const { return started_; }
    /// Whether it is closed: the chip must not be accessed any more, the object remains valid.
    bool closed() const { return closed_; }
    int node() const { return node_; }
    const WindowMemory &block() const { return block_; }
    ExposedMemory &exposed() { return exposed_; }
    rte_mempool *window_pool() const { return window_pool_; }
    const queue::Ops *ops() const { return ops_; }
    /// The cache hint of a queue's receiver, or the one it will begin with.
    queue::TrialReport cache_hint_report(uint16_t queue);
    /// Whether a queue's receiver leaves its writer a lead.
    queue::LeadReport lead_report(uint16_t queue);
    /// How a queue's sender stores long messages, or will begin to.
    queue::TrialReport stores_report(uint16_t queue);
    /// Whether its bursts of long messages ask for the lines of the next receive buffer.
    bool asks_ahead(uint16_t queue);
    /// How its bursts between the inline bounds travel.
    queue::TrialReport inline_report(uint16_t queue);
    /// How long stores through the window go, by the last one that chose.
    queue::Stores window_stores() const { return learned_writes_.load(std::memory_order_relaxed); }
    WriterSetup writer_setup();
    LinkCounts &counts() { return counts_; }
    Sleepers &sleepers() { return sleepers_; }
    /// How messages are copied since the last connection.
    CopyChoice copy_choice();

    void link_info(rte_pmd_plx_ntb_link *out);
    void set_callback(rte_pmd_plx_ntb_event_fn fn, void *arg);
    /// Locks the control side against the control thread, and statistics against the end of a
    /// queue.
    void lock() { pthread_mutex_lock(&mutex_); }
    void unlock() { pthread_mutex_unlock(&mutex_); }

private:
    // LinkDevice
    uint64_t now_us() override;
    uint64_t random() override;
    bool reachable(const char **why) override;
    int open_window() override;
    bool end_sending() override;
    uint64_t unconfirmed() override;
    bool all_received(uint64_t *received) override;
    bool quiesce() override;
    bool fence() override;
    void prepare_rings(uint64_t seed) override;
    int open_queues(const wire::Hello &peer, uint64_t own_seed, uint64_t peer_seed) override;
    wire::Hello read_hello() override;
    uint64_t read_heartbeat() override;
    uint64_t heard() override;
    void write_hello(const wire::Hello &hello) override;
    void write_heartbeat(uint64_t word) override;
    void report(LinkEvent event) override;
    void explain(const char *why) override;

    enum Job : unsigned { tick_job, recheck_job };
    static unsigned on_tick(void *arg);
    static void on_peer_change(void *arg);
    unsigned tick(); ///< @return microseconds to the next one; 0: stopped, none
    void watch_queues();
    void watch_trials(unsigned index);
    int take_over();
    void linger(uint32_t ms);
    bool keep_lingering();
    bool try_stop();
    int require_stopped();
    bool has_left(TxHalf &half);
    bool confirm(RxHalf &half);
    template <class H>
    void watch_half(H &half, const char *direction, unsigned index);
    void free_held(TxHalf &half);
    unsigned next_tick_us() const;

    int make_block();
    int fit_block();
    Machine machine() const;
    int make_window_pool();
    int make_inline_pools();
    int make_stable_pool();
    int make_queue_state(QueuePair &qp);
    void free_queue(QueuePair &qp);
    bool pools_home() const;
    bool inside_burst() const;
    bool await_bursts() const;
    bool leave_window();
    bool keeps_window() const;
    void forget_windows(bool all);
    void drop_window_pool();
    void drop_block();
    void drop_private_pools();
    void close_queues();
    int find_engines();
    void shut_registers();
    void choose_copy(unsigned queues);
    queue::TxSetup tx_setup(unsigned index, const wire::Hello &peer, uint64_t own_seed,
                            uint64_t peer_seed);
    queue::RxSetup rx_setup(unsigned index, const wire::Hello &peer, uint64_t own_seed,
                            uint64_t peer_seed);

    rte_rawdev *raw_;
    char name_[64];
    Platform platform_;
    Options options_;
    Geometry geometry_;
    hw::Chip chip_;
    DmaChannels dma_;
    Link link_;
    ExposedMemory exposed_;
    const queue::Ops *ops_ = nullptr;
    queue::CacheHint cache_hint_ = queue::CacheHint::none;
    queue::Stores stores_ = queue::Stores::plain;
    bool stores_by_trial_ = false;
    bool inline_by_trial_ = false;
    LearnedStores learned_writes_{queue::Stores::plain}; ///< of window writers
    /// Outlive connections and configurations.
    queue::Learned learned_hints_, learned_stores_, learned_inline_;
    uint64_t cache_bytes_ = 0; ///< private cache of a core, as the system reports it
    QueuePair queues_[RTE_PMD_PLX_NTB_MAX_QUEUES];
    uint16_t queues_ready_ = 0; ///< as configured
    unsigned queues_open_ = 0;  ///< with the present peer
    /// Addresses at which the memory window was. Each but the last is an old_window of a queue
    /// pair.
    std::byte *old_windows_[RTE_PMD_PLX_NTB_MAX_QUEUES + 1] = {};
    Sleepers sleepers_;
    uint32_t service_id_ = 0;
    bool has_service_ = false;
    WindowMemory block_;
    Geometry block_geometry_; ///< for which block_ and the pools were allocated
    BlockPlan plan_{};
    rte_mempool *window_pool_ = nullptr;
    rte_mempool *stable_pool_ = nullptr; ///< of rx=stable
    CopyPaths copy_;
    unsigned engines_seen_ = 0; ///< channels of dma_ passed to copy_, or unusable
    int node_ = -1;
    bool configured_ = false;
    bool closed_ = false;
    bool chip_silent_ = false; ///< it did not answer in the last tick
    std::atomic<bool> started_{false};
    pthread_mutex_t mutex_ =
        PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP; ///< recursive: callbacks may query the link
    rte_pmd_plx_ntb_event_fn event_fn_ = nullptr;
    void *event_arg_ = nullptr;
    LinkCounts counts_;
    ControlThread control_; ///< the last member: destroyed before what it uses
};

/// The position of the chip, for log lines.
const char *topology_name(const hw::Chip &chip);

/// The device's lock for the length of a scope.
using ControlLock = std::lock_guard<Device>;

} // namespace plx::pmd

#endif

// SPDX-License-Identifier: BSD-3-Clause
// The sleep of one queue pair: its event descriptor, and the words of section 9 of
// doc/wire-protocol.md in the own block and in the peer's. The protocol is sync/sleep.hpp.
#ifndef PLX_NTB_DEVICE_QUEUE_SLEEP_HPP
#define PLX_NTB_DEVICE_QUEUE_SLEEP_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>

#include <pthread.h>

#include "hw/chip.hpp"
#include "queue/queue.hpp"
#include "sync/control_thread.hpp"
#include "sync/gate.hpp"
#include "sync/sleep.hpp"

namespace plx::pmd
{

/// Counts of sleeping receivers.
struct SleepCounts {
    std::atomic<uint64_t> arms{0}, rings{0}, doorbell_wakes{0}, check_wakes{0};
};

/// Rings the peer for a queue pair. Any thread.
class Doorbell
{
public:
    Doorbell() = default;
    Doorbell(const hw::Chip &chip, const hw::RegIo &peer, uint16_t bit)
        : chip_(&chip), peer_(peer), bit_(bit)
    {
    }
    void ring() const { chip_->ring(peer_, bit_); }
    uint16_t bit() const { return bit_; }

private:
    const hw::Chip *chip_ = nullptr;
    hw::RegIo peer_;
    uint16_t bit_ = 0;
};

/// What the queue pairs of a device have in common.
struct SleepShared {
    struct Times {
        uint32_t recheck_us;
        uint32_t spin_us;
    };
    /// @param control whose job @p recheck_job re-checks all sleeping receivers
    SleepShared(const Times &given, ControlThread &thread, unsigned job)
        : times(given), control(thread), recheck_job(job)
    {
    }

    const Times times;
    ControlThread &control;
    const unsigned recheck_job;
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; ///< guards the fields below, and QueueSleep
    bool running = false;
    bool listening = false;
    bool peer_answers = false;
    bool peer_listens = false;
    SleepCounts counts;
};

/// The sleep of one queue pair: what its Sleeper needs of it.
class QueueSleep
{
public:
    static constexpr uint32_t checks_after_ring = 16;

    /// @return 0 or negative errno
    int make_event(SleepShared &all);
    void drop_event();

    void lock();
    void unlock();
    bool open() const { return request_ != nullptr; }
    uint32_t watch();
    bool arrived() const { return queue::rx_arrived(next_); }
    void ask(uint32_t number);
    uint64_t answer() const;
    /// The sender's side: answers a new request of the peer if it can be answered now. With the
    /// lock held, while it is open. @return false: not yet, a burst was inside
    bool answer_request(Gate &gate, const queue::Tx *tx);
    void recheck();
    void clear();
    void signal();

private:
    friend class Sleepers;

    SleepShared *shared_ = nullptr;
    int event_fd_ = -1;
    const queue::Rx *rx_ = nullptr;
    queue::RxNext next_{};
    // The words of section 9 in the own block and in the peer's; NULL while there is no connection.
    const std::byte *request_ = nullptr;
    const std::byte *answer_ = nullptr;
    std::byte *peer_request_ = nullptr;
    std::byte *peer_answer_ = nullptr;
    uint32_t own_base_ = 0;
    uint32_t peer_base_ = 0;
    bool asked_ = false; ///< a request was stored, whose doorbell is still to be rung
    SleepAnswers<CpuMemory> answers_;
    Sleeper<CpuMemory, QueueSleep> sleeper_{*this};
};

} // namespace plx::pmd

#endif

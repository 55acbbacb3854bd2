// SPDX-License-Identifier: BSD-3-Clause
// Doorbells of a device and those who sleep on them: event descriptors, requests to be woken and
// their answers, re-checks. The protocol itself is plx_sleep.hpp.
#ifndef PLX_NTB_DEVICE_SLEEPERS_HPP
#define PLX_NTB_DEVICE_SLEEPERS_HPP

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include <pthread.h>

#include "hw/chip.hpp"
#include "platform/platform.hpp"
#include "queue/queue.hpp"
#include "rte_pmd_plx_ntb.h"
#include "sync/control_thread.hpp"
#include "sync/gate.hpp"
#include "sync/sleep.hpp"

namespace plx::pmd
{

struct QueuePair;

/// What happened to those who sleep.
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

class Sleepers;

/// The sleep of one queue pair: the Port of its Sleeper.
class QueueSleep
{
public:
    static constexpr uint32_t checks_after_ring = 16;

    int make_event(Sleepers &all);
    void drop_event();

    void lock();
    void unlock();
    bool open() const { return request_ != nullptr; }
    uint32_t watch();
    bool arrived() const { return queue::rx_arrived(next_); }
    void ask(uint32_t number);
    uint64_t answer() const;
    void recheck();
    void drain();
    void signal();

private:
    friend class Sleepers;

    Sleepers *all_ = nullptr;
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
    bool asked_ = false; ///< and the peer is to be rung for it
    SleepAnswers<CpuMemory> answers_;
    Sleeper<CpuMemory, QueueSleep> sleeper_{*this};
};

/// All of a device.
class Sleepers
{
public:
    struct Times {
        uint32_t recheck_us;
        uint32_t spin_us;
    };
    /// Keeps alerts from the gates for the length of a scope.
    class NoAlerts
    {
    public:
        explicit NoAlerts(Sleepers &all) : all_(all) { pthread_mutex_lock(&all_.mutex_); }
        ~NoAlerts() { pthread_mutex_unlock(&all_.mutex_); }
        NoAlerts(const NoAlerts &) = delete;
        NoAlerts &operator=(const NoAlerts &) = delete;

    private:
        Sleepers &all_;
    };
    /// Where the words of a connection lie.
    struct Words {
        const std::byte *own_block;
        std::byte *peer_block;
        uint64_t own_seed;
        uint64_t peer_seed;
        uint64_t peer_features;
    };

    /// @param control whose job @p recheck_job is check_again(), with this for its argument
    Sleepers(const hw::Chip &chip, const Platform &platform, QueuePair *queues, const Times &times,
             ControlThread &control, unsigned recheck_job)
        : chip_(chip), platform_(platform), queues_(queues), times_(times), control_(control),
          recheck_job_(recheck_job)
    {
    }

    int setup(unsigned queue);
    void release(unsigned queue);
    /// @param interrupts whether doorbells may interrupt. @return features of the hello
    uint64_t start(const char *name, bool interrupts);
    /// After the control thread's end. Nothing runs any more when it returns; who sleeps is woken.
    void stop();

    /// The control thread, with the gates open.
    void open(unsigned queues, const Words &words);
    /// Before the gates are closed.
    void close();
    void wake_all();
    /// What doorbells do not tell: re-checks, and requests of the peer.
    void look();
    /// look() as a job of the control thread.
    static unsigned check_again(void *arg);

    // The receiver of a queue that is set up.
    int event_fd(unsigned queue) const;
    bool arm(unsigned queue);
    void disarm(unsigned queue);
    void wake(unsigned queue); ///< any thread
    int wait(unsigned queue, uint32_t timeout_us);

    SleepCounts &counts() { return counts_; }

private:
    friend class QueueSleep;

    static void on_interrupt(void *arg);
    void rung(uint16_t bits);
    void answer(unsigned queue);
    bool spin(unsigned queue, uint32_t us);
    bool shows(unsigned queue);

    const hw::Chip &chip_;
    const Platform &platform_;
    QueuePair *queues_;
    Times times_;
    ControlThread &control_;
    unsigned recheck_job_;
    pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_t look_mutex_ = PTHREAD_MUTEX_INITIALIZER; ///< held by whoever looks; first
    unsigned open_ = 0;
    bool running_ = false;
    bool listening_ = false;
    bool peer_answers_ = false;
    bool peer_listens_ = false;
    SleepCounts counts_;
};

} // namespace plx::pmd

#endif

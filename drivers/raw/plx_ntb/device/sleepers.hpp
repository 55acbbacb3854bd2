// SPDX-License-Identifier: BSD-3-Clause
// Doorbells of a device and its sleeping receivers: event descriptors, wake-up requests and their
// answers, re-checks. The protocol is sync/sleep.hpp.
#ifndef PLX_NTB_DEVICE_SLEEPERS_HPP
#define PLX_NTB_DEVICE_SLEEPERS_HPP

#include <cstddef>
#include <cstdint>

#include <pthread.h>

#include <locked.hpp>

#include "device/queue_pair.hpp"
#include "hw/chip.hpp"
#include "platform/platform.hpp"
#include "sync/control_thread.hpp"

namespace plx::pmd
{

/// The sleeping receivers of a device.
class Sleepers
{
public:
    /// Keeps alerts from the gates for the length of a scope.
    class NoAlerts : ntb::Locked
    {
    public:
        explicit NoAlerts(Sleepers &all) : Locked(all.shared_.mutex) {}
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
    Sleepers(const hw::Chip &chip, const Platform &platform, QueuePair *queues,
             const SleepShared::Times &times, ControlThread &control, unsigned recheck_job)
        : chip_(chip), platform_(platform), queues_(queues), shared_(times, control, recheck_job)
    {
    }

    int setup(unsigned queue);
    void release(unsigned queue);
    /// @param interrupts whether doorbells may interrupt. @return features of the hello
    uint64_t start(const char *name, bool interrupts);
    /// After the control thread's end. Nothing runs any more when it returns; sleepers are woken.
    void stop();

    /// The control thread, with the gates open.
    void open(unsigned queues, const Words &words);
    /// Before the gates are closed.
    void close();
    void wake_all();
    /// Does what no doorbell announces: re-checks, and requests of the peer.
    void check_all();
    /// check_all() as a job of the control thread.
    static unsigned check_again(void *arg);

    // The receiver of a queue that is set up.
    int event_fd(unsigned queue) const;
    bool arm(unsigned queue);
    /// Makes the event descriptor readable, for a receiver that was not armed. The next arm clears
    /// it.
    void signal(unsigned queue);
    void disarm(unsigned queue);
    void wake(unsigned queue); ///< any thread
    int wait(unsigned queue, uint32_t timeout_us);

    SleepCounts &counts() { return shared_.counts; }

private:
    static void on_interrupt(void *arg);
    void rung(uint16_t bits);
    void answer(unsigned queue);
    bool spin(unsigned queue, uint32_t us);
    bool shows(unsigned queue);

    const hw::Chip &chip_;
    const Platform &platform_;
    QueuePair *queues_;
    SleepShared shared_;
    pthread_mutex_t check_mutex_ =
        PTHREAD_MUTEX_INITIALIZER; ///< held during check_all(); taken first
    unsigned open_ = 0;
};

} // namespace plx::pmd

#endif

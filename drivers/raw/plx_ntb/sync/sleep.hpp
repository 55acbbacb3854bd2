// SPDX-License-Identifier: BSD-3-Clause
// How a receiver sleeps without missing a message (doc/wire-protocol.md, section 9): it requests to
// be woken. Once every later burst is known to ring the doorbell, the sender's control side answers
// with the number of messages published so far. A receiver that has taken that many relies on the
// doorbell. Pure logic over a memory and a queue that tests replace.
#ifndef PLX_NTB_SYNC_SLEEP_HPP
#define PLX_NTB_SYNC_SLEEP_HPP

#include <cstdint>
#include <mutex>

#include "queue/wire.hpp"
#include "sync/gate.hpp"

namespace plx::pmd
{

/// A burst that finds a new word at its gate. After an alert, the first burst that publishes rings
/// the doorbell, and none after it until the next alert. The lines are stored before the doorbell,
/// on the same path, so a receiver that sees the doorbell sees them.
template <class Memory, class Burst, class Ring>
int first_burst_at(uint32_t word, uint32_t *seen, const Burst &burst, const Ring &ring)
{
    const int rc = burst();
    if (BasicGate<Memory>::alerted(word)) {
        if (rc <= 0)
            return rc; // nothing published: the next burst finds the same word
        ring();
    }
    *seen = word;
    return rc;
}

/// The sender's control side of a queue pair. Called with its lock held.
template <class Memory>
class SleepAnswers
{
public:
    /// At the beginning of a connection.
    void reset()
    {
        alerted_ = 0;
        answered_ = 0;
    }
    /// @param request of the peer: a number, 0: none yet
    /// @param published returns the messages sent
    /// @return whether @p answer is to be sent
    template <class Published>
    bool check(uint32_t request, BasicGate<Memory> &gate, const Published &published,
               uint64_t *answer)
    {
        if (request == answered_)
            return false;
        if (request != alerted_) {
            gate.alert();
            alerted_ = request;
        }
        // Pairs with Gate::enter: a burst that has not seen the alert is seen inside, or it has
        // left and its messages are counted. All later bursts ring.
        Memory::barrier();
        if (!gate.quiet())
            return false;
        answered_ = request;
        *answer = wire::sleep_answer(request, published());
        return true;
    }
    /// Whether a request is not answered yet because a burst was inside.
    bool due() const { return alerted_ != answered_; }

private:
    typename Memory::template Guarded<uint32_t> alerted_{0};
    typename Memory::template Guarded<uint32_t> answered_{0};
};

/// The receiving side of a queue pair. Queue:
///   lock, unlock   guard all of it
///   open           whether the queue is
///   watch          remembers where the next message will appear; @return messages taken so far
///   arrived        whether it has arrived
///   ask            stores a request where the peer finds it
///   answer         the peer's last answer
///   recheck        requests a call of recheck() soon
///   clear, signal  the event descriptor
///   checks_after_ring  re-checks after a doorbell without a message
template <class Memory, class Queue>
class Sleeper
{
    using Locked = std::lock_guard<Queue>;

public:
    explicit Sleeper(Queue &its) : queue_(its) {}

    /// By the receiver, after it found nothing to receive. @return false: a message has arrived; it
    /// is not armed
    bool arm()
    {
        const Locked locked(queue_);
        queue_.clear();
        armed_ = false;
        if (queue_.open()) {
            consumed_ = queue_.watch();
            if (queue_.arrived())
                return false;
            request_ = next(request_);
            checks_ = 0;
            queue_.ask(request_);
            queue_.recheck();
        }
        armed_ = true;
        return true;
    }
    void disarm()
    {
        const Locked locked(queue_);
        armed_ = false;
        queue_.clear();
    }
    /// After a doorbell. Its message has arrived, unless a copy engine brings it, another queue
    /// shares the doorbell, or it was a request of the peer: so some re-checks follow.
    /// @return whether it woke the receiver
    bool rung()
    {
        const Locked locked(queue_);
        if (!armed_ || !queue_.open())
            return false;
        if (wake_if_arrived())
            return true;
        checks_ = Queue::checks_after_ring;
        queue_.recheck();
        return false;
    }
    /// Polls for what no doorbell announced. @return whether it woke the receiver
    bool recheck()
    {
        const Locked locked(queue_);
        if (!armed_ || !queue_.open())
            return false;
        if (wake_if_arrived())
            return true;
        if (checks_ > 0)
            checks_ = checks_ - 1;
        else if (confirmed())
            return false;
        queue_.recheck();
        return false;
    }
    /// Wakes the receiver for another reason.
    void wake()
    {
        const Locked locked(queue_);
        wake_armed();
    }
    /// With the lock held.
    void wake_armed()
    {
        if (armed_) {
            armed_ = false;
            queue_.signal();
        }
    }

private:
    static uint32_t next(uint32_t number) { return number + 1 == 0 ? 1 : number + 1; }
    bool wake_if_arrived()
    {
        if (!queue_.arrived())
            return false;
        wake_armed();
        return true;
    }
    /// Whether later messages ring the doorbell, and all earlier ones were taken.
    bool confirmed() const { return queue_.answer() == wire::sleep_answer(request_, consumed_); }

    Queue &queue_;
    typename Memory::template Guarded<bool> armed_{false};
    typename Memory::template Guarded<uint32_t> request_{0};
    typename Memory::template Guarded<uint32_t> consumed_{0};
    typename Memory::template Guarded<uint32_t> checks_{0};
};

} // namespace plx::pmd

#endif

// SPDX-License-Identifier: BSD-3-Clause
// A gate between one half of a queue pair and the control thread: the control thread closes it and
// then knows when no burst is inside, without help of the application and without a fence on the
// hot path. It can also change the word at the gate, which the next burst to enter notices.
#ifndef PLX_NTB_SYNC_GATE_HPP
#define PLX_NTB_SYNC_GATE_HPP

#include <atomic>
#include <cstdint>

#if defined(__SANITIZE_THREAD__)
#define PLX_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define PLX_THREAD_SANITIZER 1
#endif
#endif

namespace plx::pmd
{

/// Process-wide set-up of the barrier below. @return 0, or -ENOTSUP on a kernel without it
int gate_init();
/// Makes every running thread of the process pass a full barrier (membarrier(2), private
/// expedited).
void gate_barrier();

/// Memory accesses of the gate and of its users; tests replace it.
struct CpuMemory {
    template <class T>
    using Atomic = std::atomic<T>;
    /// For values that a lock guards.
    template <class T>
    using Guarded = T;
    static void barrier() { gate_barrier(); }
};

template <class Memory>
class BasicGate
{
public:
    /// Hot path. @return the word at the gate, a new one each time it is opened or alerted; 0: it
    /// is closed. leave() must follow in both cases. Store to busy_, then load of open_: a
    /// store-load order that x86 does not keep by itself. close() makes up for it with
    /// gate_barrier(): either this thread sees the gate closed, or the control thread sees it busy.
    uint32_t enter()
    {
#if defined(PLX_THREAD_SANITIZER)
        busy_.store(1, std::memory_order_seq_cst); // ThreadSanitizer does not know membarrier
        return open_.load(std::memory_order_seq_cst);
#else
        busy_.store(1, std::memory_order_relaxed);
        std::atomic_signal_fence(std::memory_order_seq_cst);
        return open_.load(std::memory_order_acquire); // pairs with open(): sees the opened queue
#endif
    }
    /// Pairs with the acquire in quiet(): what the burst did is visible to the thread that closes
    /// the queue.
    void leave()
    {
        busy_.store(0, std::memory_order_release);
    }

    /// Control side, one thread at a time. Everything set up before is visible to the burst that
    /// enters.
    void open()
    {
        open_.store(next_word(0), std::memory_order_seq_cst);
    }
    /// Changes the word at an open gate: after this and a barrier, every burst that enters finds
    /// the new one.
    void alert()
    {
        if (is_open())
            open_.store(next_word(alert_bit), std::memory_order_seq_cst);
    }
    /// A word that no gate ever has.
    static constexpr uint32_t no_word = 1;
    static constexpr bool alerted(uint32_t word)
    {
        return (word & alert_bit) != 0;
    }
    void close()
    {
        open_.store(0, std::memory_order_seq_cst);
    }
    /// Closes an open gate for a moment, in which bursts return 0 at once.
    /// @return for resume()
    uint32_t pause()
    {
        const uint32_t word = open_.load(std::memory_order_relaxed);
        paused_.store(1, std::memory_order_seq_cst);
        open_.store(0, std::memory_order_seq_cst);
        return word;
    }
    /// What was done since pause() is visible to the next burst. Restores the word.
    void resume(uint32_t word)
    {
        open_.store(word, std::memory_order_seq_cst);
        paused_.store(0, std::memory_order_release); // pairs with only_paused()
    }
    /// After enter() found it closed: whether it was only paused.
    bool only_paused() const
    {
        return paused_.load(std::memory_order_acquire) != 0 || is_open();
    }
    /// Where the word lies: for those who watch it, any thread.
    const typename Memory::template Atomic<uint32_t> *word() const
    {
        return &open_;
    }
    bool is_open() const
    {
        return open_.load(std::memory_order_relaxed) != 0;
    }
    /// After close() and gate_barrier(): whether no burst is inside; none will enter.
    bool quiet() const
    {
        return busy_.load(std::memory_order_seq_cst) == 0;
    }

private:
    static constexpr uint32_t alert_bit = 1;
    uint32_t next_word(uint32_t bit)
    {
        do
            turn_ = turn_ + 2;
        while (turn_ == 0);
        return turn_ | bit;
    }

    // Written by the control thread, rarely.
    alignas(64) typename Memory::template Atomic<uint32_t> open_{0};
    typename Memory::template Atomic<uint32_t> paused_{0};
    typename Memory::template Guarded<uint32_t> turn_{0};
    // Written by the queue's lcore, twice per burst.
    alignas(64) typename Memory::template Atomic<uint32_t> busy_{0};
};
using Gate = BasicGate<CpuMemory>;

/// One burst through a gate: burst(), or first(word) if the word at the gate is not *@p seen, which
/// is no_word at first.
/// @return their result; @p closed if the gate is closed; 0 if it is paused
template <class Memory, class Burst, class First>
[[gnu::always_inline]] inline int pass(BasicGate<Memory> &gate, const uint32_t *seen, int closed,
                                       const Burst &burst, const First &first)
{
    const uint32_t word = gate.enter();
    int rc;
    if (word == *seen) [[likely]] {
        rc = burst();
    } else if (word != 0) {
        rc = first(word);
    } else {
        gate.leave();
        return gate.only_paused() ? 0 : closed;
    }
    gate.leave();
    return rc;
}

} // namespace plx::pmd

#endif

// SPDX-License-Identifier: BSD-3-Clause
// A gate between one half of a queue pair and the control thread: the control thread closes it and
// then knows, without the application's help and without a fence on the hot path, when no burst is
// inside.
#ifndef PLX_GATE_HPP
#define PLX_GATE_HPP

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

class Gate
{
public:
    /// Hot path. @return the open generation, 0 when closed. leave() must follow in both cases.
    /// Store to busy_, then load of open_: a store-load order that x86 does not keep by itself.
    /// close() makes up for it with gate_barrier(): either this thread sees the gate closed, or the
    /// control thread sees it busy.
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
    /// Pairs with the acquire in quiet(): what the burst did is visible to whoever closes the
    /// queue.
    void leave()
    {
        busy_.store(0, std::memory_order_release);
    }

    /// Control side. Everything set up before is visible to the burst that enters.
    void open(uint32_t generation)
    {
        open_.store(generation, std::memory_order_seq_cst);
    }
    void close()
    {
        open_.store(0, std::memory_order_seq_cst);
    }
    bool is_open() const
    {
        return open_.load(std::memory_order_relaxed) != 0;
    }
    /// After close() and gate_barrier(): no burst is inside, none will get in.
    bool quiet() const
    {
        return busy_.load(std::memory_order_seq_cst) == 0;
    }

private:
    alignas(64) std::atomic<uint32_t> open_{0}; // written by the control thread, rarely
    alignas(64) std::atomic<uint32_t> busy_{0}; // written by the queue's lcore, twice a burst
};

} // namespace plx::pmd

#endif

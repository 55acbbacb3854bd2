// SPDX-License-Identifier: BSD-3-Clause
#ifndef PLX_QUEUE_LEAD_HPP
#define PLX_QUEUE_LEAD_HPP

#include <atomic>
#include <cstdint>

#include <timed_choice.hpp>

namespace plx::queue
{

/// Chooses whether a receiving half that has caught up with dense traffic leaves the ring alone for
/// a while, so that the writer gets a lead. At the writer's heels the reader polls the next line
/// and its CPU prefetches those behind, so each is taken away before it is written; on some CPUs a
/// line then costs two to five times as much (doc/decisions/035-a-lead-for-the-writer.md).
///
/// A pause delays what follows a burst. So it is tried, by the cycles per line of thousands of
/// lines, and in force only where lines come faster by it. No DPDK and no clock of its own; nothing
/// is to be called in a burst that finds messages.
///
/// One thread; others may read in_force() and pauses().
class Lead
{
public:
    /// Cycles of a pause: some 5 us. Half as long is as good within a complex, but not between two.
    static constexpr uint64_t pause_cycles = 16384;
    /// Messages since the reader had caught up before, and times in a row that there were so many,
    /// from which on traffic is dense; unless a line took longer than so many cycles.
    static constexpr uint32_t dense_messages = 8;
    static constexpr unsigned dense_times = 4;
    static constexpr uint64_t dense_cycles = 1024;
    /// Lines that are judged together, at least.
    static constexpr uint64_t piece_lines = 8192;

    /// So many when the reader had caught up last: who finds as many again need not call.
    uint32_t messages() const { return messages_; }

    /// The reader has found nothing behind messages.
    /// @param position lines so far
    /// @param messages so far, modulo 2^32
    /// @param now      cycles
    /// @param trying   hints are being tried: a hint shows only where the writer has a lead, and
    ///                 what lines cost now says nothing of pauses
    /// @return whether to leave the ring alone for pause_cycles
    bool caught_up(uint64_t position, uint32_t messages, uint64_t now, bool trying);

    bool in_force() const { return choice_.in_force() != 0; }
    /// How often caught_up() has asked for one.
    uint64_t pauses() const { return pauses_.load(std::memory_order_relaxed); }

private:
    uint64_t position_ = 0, now_ = 0; ///< when the reader had caught up last
    uint64_t begin_ = 0, begun_ = 0;  ///< of a piece: position and cycles; 0 cycles: none
    uint32_t messages_ = 0;
    uint32_t times_ = 0; ///< that traffic was dense, in a row
    std::atomic<uint64_t> pauses_{0};
    ntb::TimedChoice choice_;
};

} // namespace plx::queue

#endif

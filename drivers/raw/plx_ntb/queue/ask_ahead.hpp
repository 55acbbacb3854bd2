// SPDX-License-Identifier: BSD-3-Clause
#ifndef PLX_QUEUE_ASK_AHEAD_HPP
#define PLX_QUEUE_ASK_AHEAD_HPP

#include <cstdint>

#include <timed_choice.hpp>

namespace plx::queue
{

/// Chooses whether a burst of long messages asks for the lines of the next receive buffer while it
/// stores to one. Lines that are asked for, as if to be read, are owned by the CPU already where no
/// other one holds them; on some CPUs they come shared all the same, and each is asked for twice:
/// stores then take up to half as long again (doc/decisions/078-asking-ahead-by-trial.md).
///
/// The sender pays by itself, in the stores, so the cycles of these alone decide. One thread;
/// others may read in_force().
class AskAhead
{
public:
    /// Of stores that are judged together, at least.
    static constexpr uint64_t piece_bytes = uint64_t{128} << 10;

    /// For what is stored next.
    bool asks() const { return choice_.way() == 0; }
    bool in_force() const { return choice_.in_force() == 0; }
    /// @param bytes   stored through this CPU's caches, in a burst
    /// @param cycles  that took
    void took(uint64_t bytes, uint64_t cycles)
    {
        bytes_ += bytes;
        cycles_ += cycles;
        if (bytes_ < piece_bytes)
            return;
        choice_.took(bytes_ / line_bytes, cycles_);
        bytes_ = cycles_ = 0;
    }

private:
    static constexpr uint64_t line_bytes = 64;
    static_assert(piece_bytes / line_bytes >= ntb::TimedChoice::block_units);
    uint64_t bytes_ = 0, cycles_ = 0;
    ntb::TimedChoice choice_;
};

} // namespace plx::queue

#endif

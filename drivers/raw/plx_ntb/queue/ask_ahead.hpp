// SPDX-License-Identifier: BSD-3-Clause
#ifndef PLX_QUEUE_ASK_AHEAD_HPP
#define PLX_QUEUE_ASK_AHEAD_HPP

#include <cstdint>

#include <timed_choice.hpp>

#include "queue/wire.hpp"

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
    /// Messages in a row from which on their cycles count: those of fewer are not the stores alone.
    static constexpr unsigned messages_least = 8;
    /// Bytes. Longer messages ask for lines of their own, whatever is chosen here.
    static constexpr uint32_t longest = 2048;

    /// For what is stored next.
    bool asks() const { return choice_.way() == 0; }
    bool in_force() const { return choice_.in_force() == 0; }
    /// @param bytes   stored through this CPU's caches, of a run of messages that all went
    /// @param cycles  that took
    void took(uint64_t bytes, uint64_t cycles) { choice_.took(bytes / wire::line_bytes, cycles); }

private:
    ntb::TimedChoice choice_;
};

} // namespace plx::queue

#endif

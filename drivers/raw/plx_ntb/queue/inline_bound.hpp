// SPDX-License-Identifier: BSD-3-Clause
// Which messages of a burst travel in the message ring, where both the ring and a receive buffer
// would do: found by trial (doc/decisions/040-inline-bound-by-trial.md).
#ifndef PLX_QUEUE_INLINE_BOUND_HPP
#define PLX_QUEUE_INLINE_BOUND_HPP

#include <cstdint>

#include "queue/trial.hpp"

namespace plx::queue
{

/// Up to a first bound messages always travel in the ring, beyond a second one always in receive
/// buffers. For those between, in bursts, the cheapest way is chosen by the cycles of a line, for
/// each of three classes of mean length. Each way of storing to receive buffers is a way of its
/// own, since it decides what they cost. The trial sees only traffic whose mean length lies between
/// the bounds: all other is taken out of its position and of its clock. It counts what the peer has
/// taken: the ring holds more than a part of a trial sends, so at the sender alone a way looks
/// cheap whose reader falls behind. One writer, the lcore of the half; others may read report().
class InlineBound
{
public:
    struct Setup {
        uint32_t always;   ///< bytes, the first bound
        uint32_t at_most;  ///< bytes, the second; as the first: no trial
        Stores stores;     ///< how receive buffers are stored to,
        bool any_stores;   ///< or either way, as is cheaper
        uint64_t lap;      ///< lines after which a receive buffer is used again
        uint32_t returned; ///< messages that the peer confirms together, at most
        Learned *learned;  ///< of the device; NULL: nothing is kept
        uint64_t bytes;    ///< sent so far
    };
    /// How messages between the bounds go from here on.
    struct Way {
        bool decides;     ///< into buffers, and they are what is sent: `stores` is for them
        uint32_t at_most; ///< bytes: longer ones go into receive buffers
        Stores stores;
    };

    void open(const Setup &setup);
    /// Bytes sent at which step() is due; never, if there is no trial.
    uint64_t due() const { return due_; }
    /// @param bytes    sent so far
    /// @param messages sent so far, modulo 2^32
    /// @param waiting  of them, those that the peer has not confirmed yet
    /// @param now      cycles
    Way step(uint64_t bytes, uint32_t messages, uint32_t waiting, uint64_t now);
    const TrialReport &report() const { return trial_.report(); }

private:
    Setup s_;
    uint64_t due_;
    uint64_t bytes_, now_; ///< at the last step; now_ 0: there was none
    uint32_t messages_, waiting_;
    uint32_t kind_messages_;    ///< what the trial has seen: messages, scaled,
    uint64_t position_, clock_; ///< lines taken, cycles
    unsigned choice_;           ///< in force, or being tried
    Trial trial_;
};

} // namespace plx::queue

#endif

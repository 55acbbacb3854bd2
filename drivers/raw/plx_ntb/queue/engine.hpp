// SPDX-License-Identifier: BSD-3-Clause
// What the sending half of a queue pair needs of a copy engine: one descriptor ring that is worked
// off in order. The chip's DMA channel is one, a test has another.
#ifndef PLX_QUEUE_ENGINE_HPP
#define PLX_QUEUE_ENGINE_HPP

#include <cstdint>

namespace plx::queue
{

/// An engine belongs to one sending half. All calls but failed() and halt() come from the lcore of
/// that half, inside its burst function: no lock, no log, no system call, no remote read; a
/// register is written by start() alone. halt() comes from the control side while that lcore is
/// known to be outside, before a half is opened and after it was closed.
///
/// Order: copies become visible at the destination in the order in which they were queued (one
/// channel, relaxed ordering of data writes off). Within one copy, only eight aligned bytes are
/// guaranteed to arrive as one. There is no order with stores of the CPU through the window.
struct Engine {
    void *ctx = nullptr;
    /// Copies that can be queued now, up to `capacity`. May poll for completions.
    uint32_t (*room)(void *ctx) = nullptr;
    /// Queues one copy; there is room for it. The engine sees earlier stores of the caller to the
    /// source. It may begin at once, or only after start().
    /// @param src_iova  IOVA of local memory that is mapped for the engine; any alignment
    /// @param dst_bus   address in the window as the engine sees it; any alignment
    /// @param bytes     1 to 2^27 - 1
    void (*copy)(void *ctx, uint64_t src_iova, uint64_t dst_bus, uint32_t bytes) = nullptr;
    /// Starts the queued copies. Once per burst; no effect if none is queued.
    void (*start)(void *ctx) = nullptr;
    /// Copies, in order and since the last halt(), whose source was read and whose data have left.
    /// Reads local memory only. A failed engine counts neither the copy at which it failed nor any
    /// after it.
    uint64_t (*completed)(void *ctx) = nullptr;
    /// Whether a copy failed or the engine hangs. Remains true until a halt() that repairs it. Any
    /// thread. Nothing is queued to a failed engine.
    bool (*failed)(void *ctx) = nullptr;
    /// Stops all queued copies, so that none reads or writes memory any more; completed() counts
    /// from 0 again. An engine that cannot be stopped loses access to the bus, and failed() remains
    /// true: it is not used again.
    /// @return false: not stopped yet, call again; the implementation bounds how often
    bool (*halt)(void *ctx) = nullptr;
    uint32_t capacity = 0; ///< most copies queued at a time
};

} // namespace plx::queue

#endif

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
/// Order: what two copies write becomes visible at the destination in the order in which they were
/// given (one channel, relaxed ordering of data writes off). Within one copy nothing is promised
/// but that eight aligned bytes that lie in one copy arrive as one. Nothing is promised about
/// stores of the CPU through the window, before or after.
struct Engine {
    void *ctx = nullptr;
    /// Copies that can be given now, up to `capacity`. May look for completions.
    uint32_t (*room)(void *ctx) = nullptr;
    /// Gives one copy; there is room for it. The caller's stores before it (to the source) are seen
    /// by the engine. The engine may begin at once, or only after start().
    /// @param src_iova  IOVA of local memory that the engine was told of; any alignment
    /// @param dst_bus   address in the window as the engine sees it; any alignment
    /// @param bytes     1 to 2^27 - 1
    void (*copy)(void *ctx, uint64_t src_iova, uint64_t dst_bus, uint32_t bytes) = nullptr;
    /// Makes the engine work off what was given. Once a burst; without anything given, nothing.
    void (*start)(void *ctx) = nullptr;
    /// Copies of which the source has been read and the data are on their way, from the first on
    /// and in order, since the last halt(). Reads local memory only. An engine that has failed
    /// does not count the copy at which it failed, nor any after it.
    uint64_t (*completed)(void *ctx) = nullptr;
    /// A copy failed, or the engine hangs and was given up. Stays so until a halt() that mends it.
    /// Any thread may ask.
    /// Nothing is given to a failed engine.
    bool (*failed)(void *ctx) = nullptr;
    /// Makes sure that nothing which was given reads or writes memory any more, and forgets it;
    /// completed() counts from 0 again. An engine that cannot be stopped is cut off from the bus,
    /// and failed() stays true: it is then not used again.
    /// @return false: not quiet yet, ask again; the owner of the engine bounds how often
    bool (*halt)(void *ctx) = nullptr;
    uint32_t capacity = 0; ///< copies that can be under way at the same time
};

} // namespace plx::queue

#endif

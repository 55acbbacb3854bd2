// SPDX-License-Identifier: BSD-3-Clause
// A virtual channel of a dmadev that copies a worker's long messages into the peer's memory, in the
// order in which it is given them. What it fails to copy is copied by the CPU, in the same order.
#ifndef NTBMSG_RENDEZVOUS_COPY_ENGINE_HPP
#define NTBMSG_RENDEZVOUS_COPY_ENGINE_HPP

#include <cstddef>
#include <cstdint>

#include "base/counter.hpp"
#include "ntbmsg.h"

struct rte_mbuf;

namespace ntbmsg
{

/// A copy under way.
struct EngineCopy {
    ntbmsg_channel *channel; ///< whose message it is of; NULL: the channel has ended
    rte_mbuf *last_of;       ///< then: the message, where this is the last copy of it
    const std::byte *from;
    std::byte *to;
    uint64_t from_iova;
    uint64_t to_bus;
    uint32_t bytes;
    uint32_t message; ///< its number among the channel's
    bool ends_piece;
};

/// By the thread that drives the worker. Indices run freely.
struct CopyEngine {
    EngineCopy *copies; ///< ring; NULL: there is no engine
    uint32_t mask;
    uint32_t given;
    uint32_t done;
    uint32_t wanted_min; ///< as the caller gave it
    uint32_t min_bytes;  ///< messages from here on go this way; UINT32_MAX: none does
    int16_t dev;
    uint16_t vchan;
    bool to_submit;
    bool failed; ///< it is not used any more, or was taken away

    Counter messages, bytes, errors; ///< taken; copied by it; copied by the CPU in its place
};

/// The connection is there: chooses from which size on the engine is used.
void engine_choose(ntbmsg_worker &worker);
/// Whether a message of the caller goes this way: it is long enough and the engine can reach it.
bool engine_wants(const ntbmsg_worker &worker, const rte_mbuf *m);
/// Gives it a copy. @return false: not now, or not any more
bool engine_copy(ntbmsg_worker &worker, const EngineCopy &copy);
/// What was given goes off, once a burst.
void engine_submit(CopyEngine &engine);
/// Takes note of what is done.
void engine_collect(ntbmsg_worker &worker);
/// The channel has ended: nobody is told of its copies, and its messages are freed behind them.
void engine_leave(ntbmsg_worker &worker, ntbmsg_channel &channel);
/// Whether copies that were given before @p mark are done.
inline bool engine_passed(const CopyEngine &engine, uint32_t mark)
{
    return static_cast<int32_t>(engine.done - mark) >= 0;
}
inline bool engine_idle(const CopyEngine &engine)
{
    return engine.given == engine.done;
}
/// The endpoint closes: waits for what is under way. Can be called again where it is not done.
void engine_drain(ntbmsg_worker &worker);
void engine_free(CopyEngine &engine);

} // namespace ntbmsg

#endif

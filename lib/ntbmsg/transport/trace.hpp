// SPDX-License-Identifier: BSD-3-Clause
// Tracepoints by the library's own objects.
#ifndef NTBMSG_TRANSPORT_TRACE_HPP
#define NTBMSG_TRANSPORT_TRACE_HPP

#include "base/trace_points.h"
#include "transport/worker.hpp"

namespace ntbmsg
{

inline void trace_connect(const Channel &c)
{
    const Worker &w = *c.worker;
    ntbmsg_trace_channel_connect(w.dev_id, w.index, w.slots.slot_of(c), c.port);
}

inline void trace_request(const Channel &c)
{
    const Worker &w = *c.worker;
    ntbmsg_trace_channel_request(w.dev_id, w.index, w.slots.slot_of(c), c.port);
}

inline void trace_open(const Channel &c)
{
    const Worker &w = *c.worker;
    ntbmsg_trace_channel_open(w.dev_id, w.index, w.slots.slot_of(c), c.port);
}

inline void trace_end(const Channel &c, uint8_t state, uint32_t reason)
{
    const Worker &w = *c.worker;
    ntbmsg_trace_channel_end(w.dev_id, w.index, w.slots.slot_of(c), state,
                             static_cast<int32_t>(reason));
}

} // namespace ntbmsg

#endif

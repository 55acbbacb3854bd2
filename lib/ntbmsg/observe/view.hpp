// SPDX-License-Identifier: BSD-3-Clause
// Snapshots for telemetry and dumps, taken while workers run: each figure is valid for some moment,
// and two figures may be of different moments.
#ifndef NTBMSG_OBSERVE_VIEW_HPP
#define NTBMSG_OBSERVE_VIEW_HPP

#include <cstdint>

#include "endpoint/endpoint.hpp"

namespace ntbmsg
{

/// Reads a value that another thread may be writing.
template <typename T>
T peek(const T &value)
{
    return __atomic_load_n(&value, __ATOMIC_RELAXED);
}

template <typename T>
T peek(const std::atomic<T> &value)
{
    return value.load(std::memory_order_relaxed);
}

const char *name_of_link(enum ntbmsg_link_state state);
const char *name_of_channel(uint8_t state);

/// A channel, or a slot with a waiting request.
struct ChannelView {
    uint32_t slot;
    uint32_t generation;
    const char *state;
    uint32_t port;
    int32_t reason;
    Credit send_left, send_granted;       ///< granted by the peer
    Credit receive_left, receive_granted; ///< granted to the peer
    uint64_t tx_messages, tx_bytes, rx_messages, rx_bytes, tx_full;
    bool handle; ///< the application holds it
};

/// @return false: slot @p slot is free or out of range
bool view_channel(const Worker &w, uint32_t slot, ChannelView &view);

/// Counters of a queue pair, by the names of the device's xstats.
struct QueueView {
    bool worker; ///< it carries channels
    uint64_t tx_messages, tx_bytes, tx_full, rx_messages, rx_bytes, rx_nombuf;
};

QueueView view_queue(const Endpoint &e, uint16_t queue);
/// Number of queue pairs: bare ones, then those of workers.
uint32_t queue_pairs(const Endpoint &e);

} // namespace ntbmsg

#endif

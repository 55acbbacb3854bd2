// SPDX-License-Identifier: BSD-3-Clause
// Events from the device's control thread to the thread that polls the endpoint.
#ifndef NTBMSG_ENDPOINT_EVENT_QUEUE_HPP
#define NTBMSG_ENDPOINT_EVENT_QUEUE_HPP

#include <cstdint>
#include <pthread.h>

#include "ntbmsg_endpoint.h"

namespace ntbmsg
{

/// Up to 64 events; the oldest are dropped for new ones. Control path, so it takes a lock. In
/// zeroed memory; init() instead of a constructor, since it can fail.
class EventQueue
{
public:
    int init(); ///< @return 0 or negative errno
    void destroy();

    void push(ntbmsg_event kind);
    bool pop(ntbmsg_event &kind);

    /// Sleeps until more than @p seen events were pushed, at most @p timeout_ms.
    void await(uint64_t seen, uint32_t timeout_ms);
    uint64_t pushed(); ///< events so far, to be passed to await()

private:
    static constexpr uint32_t capacity = 64; // power of two: indices run freely

    pthread_mutex_t lock_;
    pthread_cond_t arrived_;
    uint64_t head_; ///< events pushed
    uint64_t tail_; ///< events taken or dropped
    ntbmsg_event ring_[capacity];
};

} // namespace ntbmsg

#endif

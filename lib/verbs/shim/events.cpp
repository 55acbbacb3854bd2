// SPDX-License-Identifier: BSD-3-Clause
// Completion channels, and events of objects that go.
#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "shim/objects.hpp"

namespace ntb::verbs::shim
{
namespace
{

// The library calls both with each event that it hands to the program.
void cq_event(ibv_cq *cq)
{
    pthread_mutex_lock(&cq->mutex);
    ++own<OwnCq>(cq)->reported;
    pthread_mutex_unlock(&cq->mutex);
}

void async_event(ibv_context *, ibv_async_event *event)
{
    switch (event->event_type) {
    case IBV_EVENT_CQ_ERR:
        pthread_mutex_lock(&event->element.cq->mutex);
        ++own<OwnCq>(event->element.cq)->reported_async;
        pthread_mutex_unlock(&event->element.cq->mutex);
        break;
    case IBV_EVENT_SRQ_LIMIT_REACHED:
        pthread_mutex_lock(&event->element.srq->mutex);
        ++own<OwnSrq>(event->element.srq)->reported_async;
        pthread_mutex_unlock(&event->element.srq->mutex);
        break;
    default:
        pthread_mutex_lock(&event->element.qp->mutex);
        ++own<OwnQp>(event->element.qp)->reported_async;
        pthread_mutex_unlock(&event->element.qp->mutex);
    }
}

// Another open file of the same pipe, so that what the program has set for its own does not matter.
int reopen(int descriptor, int flags)
{
    char path[40];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", descriptor);
    return open(path, flags | O_NONBLOCK | O_CLOEXEC);
}

} // namespace

// Each record is read once, and the others are written again behind those that come meanwhile.
void forget_events(int descriptor, std::uint32_t record_bytes, const void *object)
{
    const int from = reopen(descriptor, O_RDONLY), to = reopen(descriptor, O_WRONLY);
    int bytes = 0;
    if (from >= 0 && to >= 0 && ioctl(from, FIONREAD, &bytes) == 0) {
        for (int left = bytes / static_cast<int>(record_bytes); left > 0; --left) {
            std::uint64_t record[2];
            if (read(from, record, record_bytes) != static_cast<ssize_t>(record_bytes))
                break; // the program has read them
            if (record[0] != reinterpret_cast<std::uintptr_t>(object)) [[maybe_unused]]
                const ssize_t written = write(to, record, record_bytes);
        }
    }
    if (from >= 0)
        close(from);
    if (to >= 0)
        close(to);
}

void set_event_calls(Ops &ops)
{
    ops.set(Op::CqEvent, cq_event);
    ops.set(Op::AsyncEvent, async_event);
}

} // namespace ntb::verbs::shim

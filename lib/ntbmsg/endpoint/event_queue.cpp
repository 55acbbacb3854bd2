// SPDX-License-Identifier: BSD-3-Clause
#include "endpoint/event_queue.hpp"

#include <ctime>

#include <locked.hpp>

namespace ntbmsg
{

namespace
{

timespec deadline_in(uint32_t ms)
{
    timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += static_cast<time_t>(ms / 1000);
    at.tv_nsec += static_cast<long>(ms % 1000) * 1'000'000;
    if (at.tv_nsec >= 1'000'000'000) {
        at.tv_nsec -= 1'000'000'000;
        ++at.tv_sec;
    }
    return at;
}

} // namespace

int EventQueue::init()
{
    head_ = tail_ = 0;
    pthread_condattr_t attributes;
    int rc = pthread_condattr_init(&attributes);
    if (rc != 0)
        return -rc;
    // The monotonic clock: changes of the system time must not affect waits.
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    rc = pthread_cond_init(&arrived_, &attributes);
    pthread_condattr_destroy(&attributes);
    if (rc != 0)
        return -rc;
    rc = pthread_mutex_init(&lock_, nullptr);
    if (rc != 0)
        pthread_cond_destroy(&arrived_);
    return -rc;
}

void EventQueue::destroy()
{
    pthread_mutex_destroy(&lock_);
    pthread_cond_destroy(&arrived_);
}

void EventQueue::push(ntbmsg_event kind)
{
    const ntb::Locked held(lock_);
    ring_[head_ % capacity] = kind;
    ++head_;
    if (head_ - tail_ > capacity)
        tail_ = head_ - capacity;
    pthread_cond_broadcast(&arrived_);
}

bool EventQueue::pop(ntbmsg_event &kind)
{
    const ntb::Locked held(lock_);
    if (tail_ == head_)
        return false;
    kind = ring_[tail_ % capacity];
    ++tail_;
    return true;
}

uint64_t EventQueue::pushed()
{
    const ntb::Locked held(lock_);
    return head_;
}

void EventQueue::await(uint64_t seen, uint32_t timeout_ms)
{
    const timespec deadline = deadline_in(timeout_ms);
    const ntb::Locked held(lock_);
    while (head_ == seen) {
        if (pthread_cond_timedwait(&arrived_, &lock_, &deadline) != 0)
            return;
    }
}

} // namespace ntbmsg

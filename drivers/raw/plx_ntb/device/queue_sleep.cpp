// SPDX-License-Identifier: BSD-3-Clause
#include "device/queue_sleep.hpp"

#include <cerrno>

#include <rte_atomic.h>

#include <sys/eventfd.h>
#include <unistd.h>

namespace plx::pmd
{

namespace
{

uint64_t load_word(const std::byte *at)
{
    return std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t *>(const_cast<std::byte *>(at)))
        .load(std::memory_order_acquire);
}

/// Stores a word into the peer's block and flushes it: the thread may not store again for long.
void store_word(std::byte *at, uint64_t word)
{
    std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t *>(at))
        .store(word, std::memory_order_release);
    rte_wmb();
}

} // namespace

int QueueSleep::make_event(SleepShared &all)
{
    shared_ = &all;
    if (event_fd_ < 0)
        event_fd_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    return event_fd_ < 0 ? -errno : 0;
}

void QueueSleep::drop_event()
{
    if (event_fd_ >= 0)
        ::close(event_fd_);
    event_fd_ = -1;
}

void QueueSleep::lock()
{
    pthread_mutex_lock(&shared_->mutex);
}

void QueueSleep::unlock()
{
    pthread_mutex_unlock(&shared_->mutex);
}

uint32_t QueueSleep::watch()
{
    next_ = queue::rx_next(rx_);
    return next_.consumed;
}

/// Requests a wake-up only if a doorbell can follow; other receivers rely on re-checks.
void QueueSleep::ask(uint32_t number)
{
    shared_->counts.arms.fetch_add(1, std::memory_order_relaxed);
    if (!shared_->listening || !shared_->peer_answers)
        return;
    store_word(peer_request_, wire::sleep_request(peer_base_, number));
    asked_ = shared_->peer_listens;
}

uint64_t QueueSleep::answer() const
{
    return load_word(answer_);
}

void QueueSleep::recheck()
{
    if (shared_->running)
        shared_->control.call(shared_->recheck_job, shared_->times.recheck_us);
}

void QueueSleep::clear()
{
    uint64_t count;
    [[maybe_unused]] const ssize_t n = read(event_fd_, &count, sizeof(count));
}

void QueueSleep::signal()
{
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t n = write(event_fd_, &one, sizeof(one));
}

bool QueueSleep::answer_request(Gate &gate, const queue::Tx *tx)
{
    const uint64_t request = load_word(request_);
    uint64_t word = 0;
    if (static_cast<uint32_t>(request) == own_base_ &&
        answers_.check(
            static_cast<uint32_t>(request >> 32), gate, [tx] { return queue::tx_published(tx); },
            &word))
        store_word(peer_answer_, word);
    return !answers_.due();
}

} // namespace plx::pmd

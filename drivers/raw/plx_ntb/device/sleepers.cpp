// SPDX-License-Identifier: BSD-3-Clause
#include "device/sleepers.hpp"

#include <algorithm>
#include <cerrno>
#include <ctime>

#include <rte_atomic.h>
#include <rte_cycles.h>
#include <rte_pause.h>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "device/device.hpp"
#include "sync/log.hpp"

namespace plx::pmd
{

namespace
{

constexpr uint16_t all_doorbells = 0xffff;
/// Looks at the doorbell register in one interrupt: with MSI it has to be seen at zero (E1), and a
/// peer that rings without end shall not keep the thread.
constexpr unsigned doorbell_looks = 8;

uint64_t load_word(const std::byte *at)
{
    return std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t *>(const_cast<std::byte *>(at)))
        .load(std::memory_order_acquire);
}

/// Into the peer's block, and on its way: the thread may not store anything for long.
void store_word(std::byte *at, uint64_t word)
{
    std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t *>(at))
        .store(word, std::memory_order_release);
    rte_wmb();
}

uint64_t cycles_of(uint64_t us)
{
    return us * rte_get_timer_hz() / 1'000'000;
}

} // namespace

// ---- a queue pair

int QueueSleep::make_event(Sleepers &all)
{
    all_ = &all;
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
    pthread_mutex_lock(&all_->mutex_);
}

void QueueSleep::unlock()
{
    pthread_mutex_unlock(&all_->mutex_);
}

uint32_t QueueSleep::watch()
{
    next_ = queue::rx_next(rx_);
    return next_.consumed;
}

/// Only where it leads to a doorbell: a receiver that cannot be rung lives on re-checks.
void QueueSleep::ask(uint32_t number)
{
    all_->counts_.arms.fetch_add(1, std::memory_order_relaxed);
    if (!all_->listening_ || !all_->peer_answers_)
        return;
    store_word(peer_request_, wire::sleep_request(peer_base_, number));
    asked_ = all_->peer_listens_;
}

uint64_t QueueSleep::answer() const
{
    return load_word(answer_);
}

void QueueSleep::recheck()
{
    if (all_->running_)
        all_->control_.call(all_->recheck_job_, all_->times_.recheck_us);
}

void QueueSleep::drain()
{
    uint64_t count;
    [[maybe_unused]] const ssize_t n = read(event_fd_, &count, sizeof(count));
}

void QueueSleep::signal()
{
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t n = write(event_fd_, &one, sizeof(one));
}

// ---- control

int Sleepers::setup(unsigned queue)
{
    QueuePair &qp = queues_[queue];
    const uint16_t bit = wire::doorbell_bit(queue);
    qp.tx.doorbell = Doorbell(chip_, platform_.peer, bit);
    qp.tx.rings = &counts_.rings;
    qp.sleep.rx_ = qp.rx.state;
    return qp.sleep.make_event(*this);
}

void Sleepers::release(unsigned queue)
{
    queues_[queue].sleep.drop_event();
}

uint64_t Sleepers::start(const char *name, bool interrupts)
{
    pthread_mutex_lock(&mutex_);
    running_ = true;
    pthread_mutex_unlock(&mutex_);
    int rc = -ENOTSUP;
    if (interrupts && platform_.ops->watch_interrupt != nullptr)
        rc = platform_.ops->watch_interrupt(platform_.ctx, on_interrupt, this);
    if (interrupts && rc != 0)
        PLX_INIT_LOG(NOTICE,
                     "%s: no interrupt: who sleeps wakes by looking every %u us, or is to poll\n",
                     name, times_.recheck_us);
    pthread_mutex_lock(&mutex_);
    listening_ = rc == 0;
    pthread_mutex_unlock(&mutex_);
    if (rc != 0)
        return wire::feature_sleep_answers;
    chip_.doorbells_clear(all_doorbells); // what an earlier life left
    chip_.doorbells_unmask(all_doorbells);
    return wire::feature_sleep_answers | wire::feature_doorbells;
}

void Sleepers::stop()
{
    pthread_mutex_lock(&mutex_);
    running_ = false;
    const bool listened = listening_;
    listening_ = false;
    pthread_mutex_unlock(&mutex_);
    if (listened) {
        chip_.doorbells_mask(all_doorbells);
        platform_.ops->watch_interrupt(platform_.ctx, nullptr, nullptr);
    }
    wake_all();
}

void Sleepers::open(unsigned queues, const Words &words)
{
    pthread_mutex_lock(&mutex_);
    peer_answers_ = (words.peer_features & wire::feature_sleep_answers) != 0;
    peer_listens_ = (words.peer_features & wire::feature_doorbells) != 0;
    for (unsigned q = 0; q < queues; ++q) {
        QueueSleep &sleep = queues_[q].sleep;
        sleep.request_ = words.own_block + wire::request_offset(q);
        sleep.answer_ = words.own_block + wire::answer_offset(q);
        sleep.peer_request_ = words.peer_block + wire::request_offset(q);
        sleep.peer_answer_ = words.peer_block + wire::answer_offset(q);
        sleep.own_base_ = wire::back_base(words.own_seed, q);
        sleep.peer_base_ = wire::back_base(words.peer_seed, q);
        sleep.answers_.reset();
        sleep.sleeper_.wake_armed(); // was armed without a peer, and asked nobody
    }
    open_ = queues;
    pthread_mutex_unlock(&mutex_);
}

void Sleepers::close()
{
    pthread_mutex_lock(&mutex_);
    for (unsigned q = 0; q < open_; ++q)
        queues_[q].sleep.request_ = nullptr;
    open_ = 0;
    pthread_mutex_unlock(&mutex_);
}

void Sleepers::wake_all()
{
    for (unsigned q = 0; q < RTE_PMD_PLX_NTB_MAX_QUEUES; ++q)
        if (queues_[q].sleep.all_ != nullptr)
            queues_[q].sleep.sleeper_.wake();
}

void Sleepers::look()
{
    pthread_mutex_lock(&look_mutex_);
    for (unsigned q = 0; q < RTE_PMD_PLX_NTB_MAX_QUEUES; ++q) {
        QueueSleep &sleep = queues_[q].sleep;
        if (sleep.all_ == nullptr)
            continue;
        if (sleep.sleeper_.recheck())
            counts_.check_wakes.fetch_add(1, std::memory_order_relaxed);
        answer(q);
    }
    pthread_mutex_unlock(&look_mutex_);
}

unsigned Sleepers::check_again(void *arg)
{
    static_cast<Sleepers *>(arg)->look();
    return 0; // where it is still called for, look() has asked for more
}

void Sleepers::on_interrupt(void *arg)
{
    auto *self = static_cast<Sleepers *>(arg);
    // Cleared before it is acted upon: what rings after that rings again.
    for (unsigned i = 0; i < doorbell_looks; ++i) {
        const uint16_t bits = self->chip_.doorbells();
        if (bits == 0)
            return;
        self->chip_.doorbells_clear(bits);
        self->rung(bits);
    }
}

void Sleepers::rung(uint16_t bits)
{
    for (unsigned q = 0; q < RTE_PMD_PLX_NTB_MAX_QUEUES; ++q) {
        QueueSleep &sleep = queues_[q].sleep;
        if (sleep.all_ == nullptr || (wire::doorbell_bit(q) & bits) == 0)
            continue;
        if (sleep.sleeper_.rung())
            counts_.doorbell_wakes.fetch_add(1, std::memory_order_relaxed);
        answer(q);
    }
}

/// Answers the peer's request, if there is a new one that can be answered now.
void Sleepers::answer(unsigned queue)
{
    QueueSleep &sleep = queues_[queue].sleep;
    pthread_mutex_lock(&mutex_);
    if (sleep.open() && peer_listens_) {
        const uint64_t request = load_word(sleep.request_);
        uint64_t word = 0;
        const queue::Tx *tx = queues_[queue].tx.state;
        if (static_cast<uint32_t>(request) == sleep.own_base_ &&
            sleep.answers_.look(
                static_cast<uint32_t>(request >> 32), queues_[queue].tx.gate,
                [tx] { return queue::tx_published(tx); }, &word))
            store_word(sleep.peer_answer_, word);
        if (sleep.answers_.due())
            sleep.recheck();
    }
    pthread_mutex_unlock(&mutex_);
}

// ---- the receiver

int Sleepers::event_fd(unsigned queue) const
{
    return queues_[queue].sleep.event_fd_;
}

bool Sleepers::arm(unsigned queue)
{
    QueueSleep &sleep = queues_[queue].sleep;
    if (!sleep.sleeper_.arm())
        return false;
    pthread_mutex_lock(&mutex_);
    const bool ring = sleep.asked_;
    sleep.asked_ = false;
    pthread_mutex_unlock(&mutex_);
    if (ring)
        queues_[queue].tx.doorbell.ring();
    return true;
}

void Sleepers::disarm(unsigned queue)
{
    queues_[queue].sleep.sleeper_.disarm();
}

void Sleepers::wake(unsigned queue)
{
    queues_[queue].sleep.sleeper_.wake();
}

/// Whether a message shows, looked at from inside the gate: the control side may be about to close.
bool Sleepers::shows(unsigned queue)
{
    RxHalf &rx = queues_[queue].rx;
    const bool open = rx.gate.enter() != 0;
    const bool shown = open && queue::rx_arrived(queue::rx_next(rx.state));
    rx.gate.leave();
    return shown;
}

bool Sleepers::spin(unsigned queue, uint32_t us)
{
    const uint64_t end = rte_get_timer_cycles() + cycles_of(us);
    do {
        if (shows(queue))
            return true;
        rte_pause();
    } while (rte_get_timer_cycles() < end);
    return false;
}

int Sleepers::wait(unsigned queue, uint32_t timeout_us)
{
    const uint64_t begin = rte_get_timer_cycles();
    if (spin(queue, std::min(times_.spin_us, timeout_us)))
        return 1;
    const uint64_t spent = (rte_get_timer_cycles() - begin) * 1'000'000 / rte_get_timer_hz();
    if (spent >= timeout_us)
        return 0;
    if (!arm(queue))
        return 1;
    const uint64_t left = timeout_us - spent;
    const timespec limit{static_cast<time_t>(left / 1'000'000),
                         static_cast<long>(left % 1'000'000 * 1000)};
    pollfd waiting{event_fd(queue), POLLIN, 0};
    const int ready =
        ppoll(&waiting, 1, timeout_us == RTE_PMD_PLX_NTB_FOREVER ? nullptr : &limit, nullptr);
    const int error = ready < 0 ? -errno : 0;
    disarm(queue);
    if (ready > 0 || shows(queue))
        return 1;
    return error;
}

} // namespace plx::pmd

// SPDX-License-Identifier: BSD-3-Clause
#include "device/sleepers.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <ctime>

#include <rte_cycles.h>
#include <rte_pause.h>

#include <poll.h>

#include "sync/log.hpp"

namespace plx::pmd
{

namespace
{

constexpr uint16_t all_doorbells = 0xffff;
/// Most reads of the doorbell register in one interrupt: with MSI it must be read as zero once
/// (E1), and a peer that rings without end must not hold the thread.
constexpr unsigned doorbell_reads_max = 8;

uint64_t cycles_of(uint64_t us)
{
    return us * rte_get_timer_hz() / 1'000'000;
}

} // namespace

// ---- control

int Sleepers::setup(unsigned queue)
{
    QueuePair &qp = queues_[queue];
    const uint16_t bit = wire::doorbell_bit(queue);
    qp.tx.doorbell = Doorbell(chip_, platform_.peer, bit);
    qp.tx.rings = &shared_.counts.rings;
    qp.sleep.rx_ = qp.rx.state;
    return qp.sleep.make_event(shared_);
}

void Sleepers::release(unsigned queue)
{
    queues_[queue].sleep.drop_event();
}

uint64_t Sleepers::start(const char *name, bool interrupts)
{
    {
        const ntb::Locked locked(shared_.mutex);
        shared_.running = true;
    }
    int rc = -ENOTSUP;
    if (interrupts && platform_.ops->watch_interrupt != nullptr)
        rc = platform_.ops->watch_interrupt(platform_.ctx, on_interrupt, this);
    if (interrupts && rc != 0)
        PLX_INIT_LOG(NOTICE, "%s: no interrupt: sleeping receivers are re-checked every %u us\n",
                     name, shared_.times.recheck_us);
    {
        const ntb::Locked locked(shared_.mutex);
        shared_.listening = rc == 0;
    }
    if (rc != 0)
        return wire::feature_sleep_answers;
    chip_.doorbells_clear(all_doorbells); // left over from before
    chip_.doorbells_unmask(all_doorbells);
    return wire::feature_sleep_answers | wire::feature_doorbells;
}

void Sleepers::stop()
{
    bool listened;
    {
        const ntb::Locked locked(shared_.mutex);
        shared_.running = false;
        listened = shared_.listening;
        shared_.listening = false;
    }
    if (listened) {
        chip_.doorbells_mask(all_doorbells);
        platform_.ops->watch_interrupt(platform_.ctx, nullptr, nullptr);
    }
    wake_all();
}

void Sleepers::open(unsigned queues, const Words &words)
{
    const ntb::Locked locked(shared_.mutex);
    shared_.peer_answers = (words.peer_features & wire::feature_sleep_answers) != 0;
    shared_.peer_listens = (words.peer_features & wire::feature_doorbells) != 0;
    for (unsigned q = 0; q < queues; ++q) {
        QueueSleep &sleep = queues_[q].sleep;
        sleep.request_ = words.own_block + wire::request_offset(q);
        sleep.answer_ = words.own_block + wire::answer_offset(q);
        sleep.peer_request_ = words.peer_block + wire::request_offset(q);
        sleep.peer_answer_ = words.peer_block + wire::answer_offset(q);
        sleep.own_base_ = wire::back_base(words.own_seed, q);
        sleep.peer_base_ = wire::back_base(words.peer_seed, q);
        sleep.answers_.reset();
        sleep.sleeper_.wake_armed(); // it was armed without a connection
    }
    open_ = queues;
}

void Sleepers::close()
{
    const ntb::Locked locked(shared_.mutex);
    for (unsigned q = 0; q < open_; ++q)
        queues_[q].sleep.request_ = nullptr;
    open_ = 0;
}

void Sleepers::wake_all()
{
    for (unsigned q = 0; q < RTE_PMD_PLX_NTB_MAX_QUEUES; ++q)
        if (queues_[q].sleep.shared_ != nullptr)
            queues_[q].sleep.sleeper_.wake();
}

void Sleepers::check_all()
{
    const ntb::Locked locked(check_mutex_);
    for (unsigned q = 0; q < RTE_PMD_PLX_NTB_MAX_QUEUES; ++q) {
        QueueSleep &sleep = queues_[q].sleep;
        if (sleep.shared_ == nullptr)
            continue;
        if (sleep.sleeper_.recheck())
            shared_.counts.check_wakes.fetch_add(1, std::memory_order_relaxed);
        answer(q);
    }
}

unsigned Sleepers::check_again(void *arg)
{
    static_cast<Sleepers *>(arg)->check_all();
    return 0; // check_all() has requested the next call if one is needed
}

void Sleepers::on_interrupt(void *arg)
{
    auto *self = static_cast<Sleepers *>(arg);
    // Cleared before it is handled: a later doorbell interrupts again.
    for (unsigned i = 0; i < doorbell_reads_max; ++i) {
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
        if (sleep.shared_ == nullptr || (wire::doorbell_bit(q) & bits) == 0)
            continue;
        if (sleep.sleeper_.rung())
            shared_.counts.doorbell_wakes.fetch_add(1, std::memory_order_relaxed);
        answer(q);
    }
}

/// Answers a new request of the peer if it can be answered now.
void Sleepers::answer(unsigned queue)
{
    QueueSleep &sleep = queues_[queue].sleep;
    const ntb::Locked locked(shared_.mutex);
    TxHalf &tx = queues_[queue].tx;
    if (sleep.open() && shared_.peer_listens && !sleep.answer_request(tx.gate, tx.state))
        sleep.recheck();
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
    pthread_mutex_lock(&shared_.mutex);
    const bool ring = sleep.asked_;
    sleep.asked_ = false;
    pthread_mutex_unlock(&shared_.mutex);
    if (ring)
        queues_[queue].tx.doorbell.ring();
    return true;
}

void Sleepers::signal(unsigned queue)
{
    queues_[queue].sleep.signal();
}

void Sleepers::disarm(unsigned queue)
{
    queues_[queue].sleep.sleeper_.disarm();
}

void Sleepers::wake(unsigned queue)
{
    queues_[queue].sleep.sleeper_.wake();
}

/// Whether a message has arrived. Inside the gate, since the control thread may be closing the
/// queue.
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
    if (spin(queue, std::min(shared_.times.spin_us, timeout_us)))
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

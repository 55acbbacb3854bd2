// SPDX-License-Identifier: BSD-3-Clause
#include "local_device.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>

#include <rte_bus_vdev.h>
#include <rte_dev.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_rawdev.h>

#include <sched.h>
#include <unistd.h>

namespace test
{

namespace
{

using Clock = std::chrono::steady_clock;

constexpr unsigned send_mbufs = 2047;
constexpr uint16_t send_room = RTE_PKTMBUF_HEADROOM + 2048;
constexpr uint16_t inline_room = RTE_PKTMBUF_HEADROOM + 1024;

std::atomic<unsigned> next_number{0};

/// Tests ask for kept mbufs to be overwritten: each has its own key, so that one in the place of
/// another shows too.
uint64_t pattern_key(uint32_t seed, size_t index)
{
    return message_key(seed, static_cast<uint32_t>(index));
}

} // namespace

/// When traffic ends, beside its completion.
struct LocalDevice::Watch {
    const LocalDevice &device;
    Clock::time_point end;
    Until until;
    unsigned losses_before;

    bool over() const
    {
        return Clock::now() >= end || (until == Until::lost && device.losses() != losses_before);
    }
    bool half_over(const Half &half) const
    {
        return half.done() || !half.error().empty() || (until == Until::full && half.met_limit());
    }
};

LocalDevice::LocalDevice()
{
    const unsigned number = next_number++;
    std::snprintf(name_, sizeof(name_), "raw_plx_ntb%u", number);
    const std::string pool = "send_" + std::to_string(number);
    send_pool_ = rte_pktmbuf_pool_create(pool.c_str(), send_mbufs, 0, 0, send_room, SOCKET_ID_ANY);
}

LocalDevice::~LocalDevice()
{
    release();
    if (attached_) {
        rte_rawdev_stop(id_);
        unplug();
    }
    for (rte_mempool *pool : queue_pools_)
        rte_mempool_free(pool);
    rte_mempool_free(send_pool_);
}

Answer LocalDevice::observe() const
{
    Answer answer;
    if (attached_)
        answer.rc = rte_pmd_plx_ntb_link_get(id_, &answer.link);
    const std::lock_guard lock(mutex_);
    std::snprintf(answer.events, sizeof(answer.events), "%s", events_.c_str());
    return answer;
}

Answer LocalDevice::execute(const Command &command)
{
    if (command.op == Op::traffic)
        return traffic(command);
    if (command.op == Op::echo)
        return echo(command);
    int64_t rc = 0;
    uint64_t value = 0;
    switch (command.op) {
    case Op::attach:
        rc = attach(command.text);
        break;
    case Op::detach:
        rc = detach();
        break;
    case Op::configure:
        rc = configure(command.config);
        break;
    case Op::queue_setup:
        rc = queue_setup(static_cast<uint32_t>(command.value));
        break;
    case Op::start:
        rc = rte_rawdev_start(id_);
        break;
    case Op::stop:
        rte_rawdev_stop(id_);
        break;
    case Op::close:
        rc = rte_rawdev_close(id_);
        break;
    case Op::release:
        release();
        break;
    case Op::discard:
        rc = discard();
        break;
    case Op::pattern:
        rc = pattern(static_cast<uint32_t>(command.value));
        break;
    case Op::unharmed:
        value = harmed(static_cast<uint32_t>(command.value));
        break;
    case Op::xstat:
        value = rte_rawdev_xstats_by_name_get(id_, command.text, nullptr);
        break;
    case Op::inject:
        rc = rte_pmd_plx_ntb_inject(id_, static_cast<rte_pmd_plx_ntb_fault>(command.value >> 32),
                                    static_cast<uint32_t>(command.value));
        break;
    case Op::outstanding:
        value = outstanding();
        break;
    case Op::expose:
        rc = expose(command.value, static_cast<uint32_t>(command.extra), &value);
        break;
    case Op::word:
        value = *exposed_word(command.value);
        break;
    case Op::revoke:
        rc = revoke(command.extra != 0);
        break;
    case Op::store:
    case Op::load: {
        volatile uint64_t *word = nullptr;
        rc = peer_word(command.value, &word);
        if (rc == 0 && command.op == Op::store)
            *word = command.extra;
        else if (rc == 0)
            value = *word;
        break;
    }
    case Op::observe:
    case Op::traffic:
    case Op::echo:
    case Op::forward: // between two of them: the host's
        break;
    }
    Answer answer = observe();
    answer.rc = rc;
    answer.value = value;
    return answer;
}

int64_t LocalDevice::attach(const char *devargs)
{
    if (send_pool_ == nullptr)
        return -ENOMEM;
    // "pci:<address>,<devargs>" is a card that EAL's PCI bus can see, anything else a twin.
    constexpr char pci[] = "pci:";
    const char *comma = std::strchr(devargs, ',');
    on_pci_ = comma != nullptr && std::strncmp(devargs, pci, sizeof(pci) - 1) == 0;
    if (on_pci_)
        std::snprintf(name_, sizeof(name_), "%.*s",
                      static_cast<int>(comma - (devargs + sizeof(pci) - 1)),
                      devargs + sizeof(pci) - 1);
    const int rc =
        on_pci_ ? rte_eal_hotplug_add("pci", name_, comma + 1) : rte_vdev_init(name_, devargs);
    if (rc != 0)
        return rc;
    attached_ = true;
    id_ = static_cast<uint16_t>(rte_pmd_plx_ntb_find(name_));
    {
        const std::lock_guard lock(mutex_);
        events_.clear();
    }
    return rte_pmd_plx_ntb_event_register(id_, on_event, this);
}

int64_t LocalDevice::detach()
{
    release();
    if (!attached_)
        return 0;
    const int rc = unplug();
    attached_ = rc != 0;
    return rc;
}

int LocalDevice::unplug()
{
    return on_pci_ ? rte_eal_hotplug_remove("pci", name_) : rte_vdev_uninit(name_);
}

int64_t LocalDevice::configure(const rte_pmd_plx_ntb_config &config)
{
    rte_pmd_plx_ntb_config copy = config;
    copy.size = sizeof(copy);
    rte_rawdev_info info{};
    info.dev_private = &copy;
    const int rc = rte_rawdev_configure(id_, &info, sizeof(copy));
    if (rc == 0)
        queues_ = rte_rawdev_queue_count(id_);
    return rc;
}

rte_mempool *LocalDevice::queue_pool(uint32_t queue, uint32_t mbufs)
{
    const std::string name = std::string(name_) + "_" + std::to_string(queue_pools_.size()) + "_" +
                             std::to_string(queue);
    rte_mempool *pool =
        rte_pktmbuf_pool_create(name.c_str(), mbufs, 0, 0, inline_room, SOCKET_ID_ANY);
    if (pool != nullptr)
        queue_pools_.push_back(pool);
    return pool;
}

int64_t LocalDevice::queue_setup(uint32_t pool_mbufs)
{
    for (uint32_t q = 0; q < queues_; ++q) {
        rte_pmd_plx_ntb_queue_config config{.size = sizeof(config), .pool = nullptr};
        if (pool_mbufs != 0 && (config.pool = queue_pool(q, pool_mbufs)) == nullptr)
            return -ENOMEM;
        const int rc =
            rte_rawdev_queue_setup(id_, static_cast<uint16_t>(q), &config, sizeof(config));
        if (rc != 0)
            return rc;
    }
    return 0;
}

LocalDevice::Halves LocalDevice::make_halves(const Command &command)
{
    Halves halves;
    for (uint32_t i = 0; i < std::min(command.outs, streams_max); ++i)
        halves.push_back(std::make_unique<Sender>(id_, command.out[i], send_pool_));
    for (uint32_t i = 0; i < std::min(command.ins, streams_max); ++i)
        halves.push_back(
            std::make_unique<Receiver>(id_, command.in[i], command.keep ? &kept_ : nullptr));
    return halves;
}

void LocalDevice::run(Half &half, const Watch &watch)
{
    while (!watch.half_over(half) && !watch.over())
        if (half.step() == 0)
            sched_yield();
}

void LocalDevice::run_all(const Halves &halves, const Watch &watch)
{
    for (bool busy = true; busy && !watch.over();) {
        unsigned moved = 0;
        busy = false;
        for (const auto &half : halves) {
            if (watch.half_over(*half))
                continue;
            busy = true;
            moved += half->step();
        }
        if (moved == 0)
            sched_yield();
    }
}

Answer LocalDevice::traffic(const Command &command)
{
    const Halves halves = make_halves(command);
    const Watch watch{*this, Clock::now() + std::chrono::milliseconds(command.limit_ms),
                      command.until, losses()};
    if (command.threads) {
        std::vector<std::thread> threads;
        for (const auto &half : halves)
            threads.emplace_back([&half, &watch] { run(*half, watch); });
        for (std::thread &thread : threads)
            thread.join();
    } else
        run_all(halves, watch);

    Answer answer = observe();
    std::string wrong;
    for (size_t i = 0; i < halves.size(); ++i) {
        const Half &half = *halves[i];
        (i < command.outs ? answer.sent : answer.received) += half.moved();
        if (half.stream().unchecked)
            continue;
        if (wrong.empty() && !half.error().empty())
            wrong = half.error();
        else if (wrong.empty() && command.until == Until::complete && !half.done())
            wrong = "out of time: queue " + std::to_string(half.stream().queue) +
                    (i < command.outs ? " sent " : " received ") + std::to_string(half.moved()) +
                    " of " + std::to_string(half.stream().count) + ", events " + answer.events +
                    ", link: " + answer.link.why;
    }
    if (wrong.empty() && command.until == Until::lost && losses() == watch.losses_before)
        wrong = "out of time: the connection was not lost";
    answer.rc = wrong.empty() ? 0 : -EIO;
    std::snprintf(answer.text, sizeof(answer.text), "%s", wrong.c_str());
    return answer;
}

Answer LocalDevice::echo(const Command &command)
{
    const auto end = Clock::now() + std::chrono::milliseconds(command.limit_ms);
    uint64_t echoed = 0;
    while (echoed < command.value && Clock::now() < end) {
        rte_mbuf *mbuf = nullptr;
        if (rte_pmd_plx_ntb_rx_burst(id_, 0, &mbuf, nullptr, 1) != 1) {
            rte_pmd_plx_ntb_rx_wait(id_, 0, 1'000'000);
            continue;
        }
        while (rte_pmd_plx_ntb_tx_burst(id_, 0, &mbuf, nullptr, 1) == 0 && Clock::now() < end)
            sched_yield();
        ++echoed;
    }
    Answer answer = observe();
    answer.received = echoed;
    answer.rc = echoed == command.value ? 0 : -ETIMEDOUT;
    return answer;
}

Answer LocalDevice::forward(LocalDevice &to, const Command &command)
{
    constexpr uint16_t burst = 32;
    const auto end = Clock::now() + std::chrono::milliseconds(command.limit_ms);
    uint64_t forwarded = 0;
    int rc = 0;
    while (rc >= 0 && forwarded < command.value && Clock::now() < end) {
        rte_mbuf *mbufs[burst];
        rte_pmd_plx_ntb_meta metas[burst];
        const int got = rte_pmd_plx_ntb_rx_burst(id_, 0, mbufs, metas, burst);
        int sent = 0;
        for (rc = got; rc >= 0 && sent < got && Clock::now() < end; sent += std::max(rc, 0)) {
            rc = rte_pmd_plx_ntb_tx_burst(to.id_, 0, mbufs + sent, metas + sent,
                                          static_cast<uint16_t>(got - sent));
            if (rc == 0)
                sched_yield();
        }
        for (int i = sent; i < got; ++i)
            rte_pktmbuf_free(mbufs[i]);
        if (got == 0)
            sched_yield();
        forwarded += static_cast<uint64_t>(sent);
    }
    Answer answer = observe();
    answer.received = forwarded;
    answer.rc = rc < 0 ? rc : forwarded == command.value ? 0 : -ETIMEDOUT;
    return answer;
}

int64_t LocalDevice::pattern(uint32_t seed)
{
    for (size_t i = 0; i < kept_.size(); ++i)
        for (rte_mbuf *m = kept_[i]; m != nullptr; m = m->next) {
            m->data_off = 0;
            m->data_len = m->buf_len;
            fill(rte_pktmbuf_mtod(m, uint8_t *), pattern_key(seed, i), 0, m->buf_len);
        }
    return static_cast<int64_t>(kept_.size());
}

uint64_t LocalDevice::harmed(uint32_t seed) const
{
    uint64_t wrong = 0;
    for (size_t i = 0; i < kept_.size(); ++i)
        for (const rte_mbuf *m = kept_[i]; m != nullptr; m = m->next)
            wrong += differing(rte_pktmbuf_mtod(m, const uint8_t *), pattern_key(seed, i), 0,
                               m->buf_len);
    return wrong;
}

void LocalDevice::release()
{
    for (rte_mbuf *m : kept_)
        rte_pktmbuf_free(m);
    kept_.clear();
}

int LocalDevice::discard()
{
    for (uint16_t q = 0; q < queues_; ++q) {
        rte_mbuf *mbufs[32];
        int got;
        while ((got = rte_pmd_plx_ntb_rx_burst(id_, q, mbufs, nullptr, 32)) > 0)
            rte_pktmbuf_free_bulk(mbufs, static_cast<unsigned>(got));
        if (got < 0)
            return got;
    }
    return 0;
}

uint64_t LocalDevice::outstanding() const
{
    uint64_t out = rte_mempool_in_use_count(send_pool_);
    for (const rte_mempool *pool : queue_pools_)
        out += rte_mempool_in_use_count(pool);
    rte_pmd_plx_ntb_info mine{};
    mine.size = sizeof(mine);
    rte_rawdev_info info{};
    info.dev_private = &mine;
    if (attached_ && rte_rawdev_info_get(id_, &info, sizeof(mine)) == 0 &&
        mine.buffer_pool != nullptr)
        out += rte_mempool_in_use_count(mine.buffer_pool);
    return out;
}

int64_t LocalDevice::expose(uint64_t bytes, uint32_t rights, uint64_t *offset)
{
    const int rc = rte_pmd_plx_ntb_memory_alloc(id_, bytes, &exposed_);
    if (rc != 0)
        return rc;
    return rte_pmd_plx_ntb_memory_expose(id_, exposed_.address, exposed_.bytes, rights,
                                         RTE_PMD_PLX_NTB_MEMORY_ANY, offset);
}

int64_t LocalDevice::revoke(bool and_free)
{
    const int rc = rte_pmd_plx_ntb_memory_revoke(id_, exposed_.address, exposed_.bytes);
    return rc == 0 && and_free ? rte_pmd_plx_ntb_memory_free(id_, exposed_.address) : rc;
}

volatile uint64_t *LocalDevice::exposed_word(uint64_t at) const
{
    return reinterpret_cast<volatile uint64_t *>(static_cast<char *>(exposed_.address) + at);
}

int64_t LocalDevice::peer_word(uint64_t offset, volatile uint64_t **word) const
{
    rte_pmd_plx_ntb_window_view view{};
    const int rc = rte_pmd_plx_ntb_window_view_get(id_, offset, sizeof(uint64_t), &view);
    *word = static_cast<volatile uint64_t *>(view.address);
    return rc;
}

unsigned LocalDevice::losses() const
{
    const std::lock_guard lock(mutex_);
    return static_cast<unsigned>(std::count(events_.begin(), events_.end(), 'L'));
}

void LocalDevice::on_event(uint16_t, rte_pmd_plx_ntb_event event, void *arg)
{
    auto *self = static_cast<LocalDevice *>(arg);
    const std::lock_guard lock(self->mutex_);
    self->events_ += letter(event);
}

} // namespace test

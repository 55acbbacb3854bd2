// SPDX-License-Identifier: BSD-3-Clause
#include "api/statistics.hpp"

#include <cerrno>
#include <cstring>

#include <rte_rawdev.h>

#include "api/devices.hpp"

namespace plx::pmd
{

namespace
{

using queue::RxStats;
using queue::TxStats;

/// A counter of a queue pair, or a sum of two; the device's own of that name is the sum of all.
struct QueueStat {
    const char *direction;
    const char *detail;
    uint64_t TxStats::*tx;
    uint64_t RxStats::*rx;
    uint64_t TxStats::*tx_too = nullptr;
};

constexpr QueueStat queue_stats[] = {
    {"rx", "messages", nullptr, &RxStats::messages},
    {"rx", "bytes", nullptr, &RxStats::bytes},
    {"rx", "inline_messages", nullptr, &RxStats::inline_messages},
    {"rx", "long_messages", nullptr, &RxStats::long_messages},
    {"rx", "nombuf", nullptr, &RxStats::nombuf},
    {"rx", "bad_peer", nullptr, &RxStats::bad_peer},
    {"tx", "messages", &TxStats::messages, nullptr},
    {"tx", "bytes", &TxStats::bytes, nullptr},
    {"tx", "inline_messages", &TxStats::inline_messages, nullptr},
    {"tx", "long_messages", &TxStats::cpu_messages, nullptr, &TxStats::dma_messages},
    {"tx", "cpu_messages", &TxStats::cpu_messages, nullptr},
    {"tx", "cpu_bytes", &TxStats::cpu_bytes, nullptr},
    {"tx", "dma_messages", &TxStats::dma_messages, nullptr},
    {"tx", "dma_bytes", &TxStats::dma_bytes, nullptr},
    {"tx", "dma_errors", &TxStats::dma_errors, nullptr},
    {"tx", "full", &TxStats::full, nullptr},
    {"tx", "errors", &TxStats::errors, nullptr},
    {"tx", "unconfirmed", &TxStats::unconfirmed, nullptr},
    {"tx", "bad_peer", &TxStats::bad_peer, nullptr},
};

/// A counter of the device alone.
struct DeviceStat {
    const char *name;
    std::atomic<uint64_t> &(*of)(Device &device);
};

template <auto count>
std::atomic<uint64_t> &link(Device &device)
{
    return device.counts().*count;
}
template <auto count>
std::atomic<uint64_t> &sleep(Device &device)
{
    return device.sleepers().counts().*count;
}
template <auto count>
std::atomic<uint64_t> &dma(Device &device)
{
    return device.dma().counts().*count;
}

constexpr DeviceStat device_stats[] = {
    {"link_connects", link<&LinkCounts::connects>},
    {"link_losses", link<&LinkCounts::losses>},
    {"link_silences", link<&LinkCounts::silences>},
    {"link_refusals", link<&LinkCounts::refusals>},
    {"link_fences", link<&LinkCounts::fences>},
    {"sleep_arms", sleep<&SleepCounts::arms>},
    {"sleep_rings", sleep<&SleepCounts::rings>},
    {"sleep_doorbell_wakes", sleep<&SleepCounts::doorbell_wakes>},
    {"sleep_check_wakes", sleep<&SleepCounts::check_wakes>},
    {"dma_stalls", dma<&DmaCounts::stalls>},
    {"dma_given_up", dma<&DmaCounts::given_up>},
};

constexpr unsigned per_queue = std::size(queue_stats);
constexpr unsigned per_device = std::size(device_stats);

unsigned stat_count(const Device &device)
{
    return per_device + per_queue * (1u + device.queue_count());
}

uint64_t queue_value(QueuePair &qp, const QueueStat &stat)
{
    if (!qp.set_up)
        return 0;
    if (stat.tx == &TxStats::inline_messages)
        return inline_messages(qp.tx);
    if (stat.rx == &RxStats::inline_messages)
        return inline_messages(qp.rx);
    if (stat.tx == nullptr)
        return queue::rx_stats(qp.rx.state).*stat.rx +
               (stat.rx == &RxStats::nombuf && qp.stable != nullptr ? qp.stable->nombuf() : 0);
    const TxStats tx = queue::tx_stats(qp.tx.state);
    return tx.*stat.tx + (stat.tx_too != nullptr ? tx.*stat.tx_too : 0);
}

uint64_t value_of(Device &device, unsigned id)
{
    if (id < per_device)
        return device_stats[id].of(device);
    const QueueStat &stat = queue_stats[(id - per_device) % per_queue];
    const unsigned group = (id - per_device) / per_queue;
    if (group > 0)
        return queue_value(*device.queue(static_cast<uint16_t>(group - 1)), stat);
    uint64_t sum = 0;
    for (uint16_t q = 0; q < device.queue_count(); ++q)
        sum += queue_value(*device.queue(q), stat);
    return sum;
}

void name_of(unsigned id, rte_rawdev_xstats_name *out)
{
    if (id < per_device) {
        std::snprintf(out->name, sizeof(out->name), "%s", device_stats[id].name);
        return;
    }
    const QueueStat &stat = queue_stats[(id - per_device) % per_queue];
    const unsigned group = (id - per_device) / per_queue;
    if (group == 0)
        std::snprintf(out->name, sizeof(out->name), "%s_%s", stat.direction, stat.detail);
    else
        std::snprintf(out->name, sizeof(out->name), "%s_q%u_%s", stat.direction, group - 1,
                      stat.detail);
}

void reset_all(Device &device)
{
    for (const DeviceStat &stat : device_stats)
        stat.of(device) = 0;
    for (uint16_t q = 0; q < device.queue_count(); ++q) {
        QueuePair &qp = *device.queue(q);
        if (!qp.set_up)
            continue;
        queue::tx_stats_reset(qp.tx.state);
        queue::rx_stats_reset(qp.rx.state);
        qp.tx.inline_messages.reset();
        qp.rx.inline_messages.reset();
        if (qp.stable != nullptr)
            qp.stable->reset_nombuf();
    }
}

} // namespace

uint64_t inline_messages(TxHalf &half)
{
    return half.inline_messages.update(
        [&half]() -> RestCount::Counts {
            const TxStats now = queue::tx_stats(half.state);
            return {now.messages, now.cpu_messages + now.dma_messages};
        },
        [&half] { return half.gate.quiet(); });
}

uint64_t inline_messages(RxHalf &half)
{
    return half.inline_messages.update(
        [&half]() -> RestCount::Counts {
            const RxStats now = queue::rx_stats(half.state);
            return {now.messages, now.long_messages};
        },
        [&half] { return half.gate.quiet(); });
}

int xstats_get(const rte_rawdev *raw, const unsigned ids[], uint64_t values[], unsigned n)
{
    Device &device = *device_of(raw);
    const ControlLock locked(device);
    for (unsigned i = 0; i < n; ++i) {
        if (ids[i] >= stat_count(device))
            return static_cast<int>(i);
        values[i] = value_of(device, ids[i]);
    }
    return static_cast<int>(n);
}

int xstats_get_names(const rte_rawdev *raw, rte_rawdev_xstats_name *names, unsigned size)
{
    const unsigned count = stat_count(*device_of(raw));
    if (names != nullptr && size >= count)
        for (unsigned id = 0; id < count; ++id)
            name_of(id, &names[id]);
    return static_cast<int>(count);
}

uint64_t xstats_get_by_name(const rte_rawdev *raw, const char *name, unsigned *id)
{
    Device &device = *device_of(raw);
    const ControlLock locked(device);
    for (unsigned i = 0; i < stat_count(device); ++i) {
        rte_rawdev_xstats_name candidate;
        name_of(i, &candidate);
        if (std::strcmp(candidate.name, name) != 0)
            continue;
        if (id != nullptr)
            *id = i;
        return value_of(device, i);
    }
    if (id != nullptr)
        *id = ~0u;
    return UINT64_MAX;
}

int xstats_reset(rte_rawdev *raw, const uint32_t ids[], uint32_t)
{
    // A queue's counters have one writer, its lcore; those of one half are reset together.
    if (ids != nullptr)
        return -ENOTSUP;
    Device &device = *device_of(raw);
    const ControlLock locked(device);
    reset_all(device);
    return 0;
}

} // namespace plx::pmd

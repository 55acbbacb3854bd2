// SPDX-License-Identifier: BSD-3-Clause
#include "statistics.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>

#include <rte_rawdev.h>

namespace plx::net
{

namespace
{

/// The port's own, after those of the rawdev.
struct OwnStat {
    const char *name;
    uint64_t (*value)(const Port &);
};

template <class Queue>
uint64_t sum(unsigned queues, Queue *(*at)(const Port &, unsigned), const Port &port,
             Counter Queue::*counter)
{
    uint64_t total = 0;
    for (unsigned q = 0; q < queues; ++q)
        if (const Queue *queue = at(port, q); queue != nullptr)
            total += (queue->*counter).read();
    return total;
}

uint64_t rx_dropped(const Port &port)
{
    return sum(port.data->nb_rx_queues, rx_queue, port, &RxQueue::nombuf);
}
uint64_t tx_dropped(const Port &port)
{
    return sum(port.data->nb_tx_queues, tx_queue, port, &TxQueue::dropped);
}
uint64_t tx_no_link(const Port &port)
{
    return sum(port.data->nb_tx_queues, tx_queue, port, &TxQueue::no_link);
}

constexpr OwnStat own_stats[] = {
    {"rx_copy_nombuf", rx_dropped}, {"tx_dropped", tx_dropped}, {"tx_no_link", tx_no_link}};
constexpr unsigned own_count = std::size(own_stats);

/// All counters of the rawdev at one time.
class RawStats
{
public:
    explicit RawStats(const Port &port) : raw_id_(port.raw_id)
    {
        if (is_gone(port))
            return;
        const int count = rte_rawdev_xstats_names_get(raw_id_, nullptr, 0);
        if (count <= 0)
            return;
        names_.reset(new (std::nothrow) rte_rawdev_xstats_name[static_cast<unsigned>(count)]);
        if (names_ != nullptr && rte_rawdev_xstats_names_get(raw_id_, names_.get(),
                                                             static_cast<unsigned>(count)) == count)
            count_ = static_cast<unsigned>(count);
    }
    unsigned count() const { return count_; }
    const char *name(unsigned id) const { return names_[id].name; }
    bool read()
    {
        ids_.reset(new (std::nothrow) unsigned[count_]);
        values_.reset(new (std::nothrow) uint64_t[count_]);
        if (ids_ == nullptr || values_ == nullptr)
            return false;
        for (unsigned i = 0; i < count_; ++i)
            ids_[i] = i;
        return rte_rawdev_xstats_get(raw_id_, ids_.get(), values_.get(), count_) ==
               static_cast<int>(count_);
    }
    uint64_t operator[](unsigned id) const { return values_[id]; }

private:
    uint16_t raw_id_;
    unsigned count_ = 0;
    std::unique_ptr<rte_rawdev_xstats_name[]> names_;
    std::unique_ptr<unsigned[]> ids_;
    std::unique_ptr<uint64_t[]> values_;
};

void add_queue(rte_eth_stats *stats, const char *detail, bool receives, unsigned queue,
               uint64_t value)
{
    if (queue >= RTE_ETHDEV_QUEUE_STAT_CNTRS)
        return;
    if (std::strcmp(detail, "messages") == 0)
        (receives ? stats->q_ipackets : stats->q_opackets)[queue] = value;
    else if (std::strcmp(detail, "bytes") == 0)
        (receives ? stats->q_ibytes : stats->q_obytes)[queue] = value;
}

/// What rte_eth_stats has of a counter of the device.
struct Total {
    const char *name;
    uint64_t rte_eth_stats::*total;
};
constexpr Total totals[] = {
    {"rx_messages", &rte_eth_stats::ipackets}, {"rx_bytes", &rte_eth_stats::ibytes},
    {"rx_bad_peer", &rte_eth_stats::ierrors},  {"rx_nombuf", &rte_eth_stats::rx_nombuf},
    {"tx_messages", &rte_eth_stats::opackets}, {"tx_bytes", &rte_eth_stats::obytes},
    {"tx_errors", &rte_eth_stats::oerrors},
};

} // namespace

int stats_get(rte_eth_dev *dev, rte_eth_stats *stats)
{
    const Port &port = port_of(dev);
    RawStats raw(port);
    if (!is_gone(port) && (raw.count() == 0 || !raw.read()))
        return -EIO;
    for (unsigned id = 0; id < raw.count(); ++id) {
        const char *name = raw.name(id);
        unsigned queue = 0;
        char direction[3];
        char detail[RTE_RAW_DEV_XSTATS_NAME_SIZE];
        if (std::sscanf(name, "%2[rtx]_q%u_%63s", direction, &queue, detail) == 3) {
            add_queue(stats, detail, direction[0] == 'r', queue, raw[id]);
            continue;
        }
        for (const Total &t : totals)
            if (std::strcmp(t.name, name) == 0)
                stats->*t.total += raw[id];
    }
    const uint64_t dropped = rx_dropped(port);
    stats->rx_nombuf += dropped;
    stats->ipackets -= std::min(dropped, stats->ipackets);
    stats->oerrors += tx_dropped(port);
    return 0;
}

int stats_reset(rte_eth_dev *dev)
{
    const Port &port = port_of(dev);
    for (unsigned q = 0; q < port.data->nb_rx_queues; ++q)
        if (RxQueue *rx = rx_queue(port, q); rx != nullptr)
            rx->nombuf.reset();
    for (unsigned q = 0; q < port.data->nb_tx_queues; ++q)
        if (TxQueue *tx = tx_queue(port, q); tx != nullptr) {
            tx->dropped.reset();
            tx->no_link.reset();
        }
    return is_gone(port) ? 0 : rte_rawdev_xstats_reset(port.raw_id, nullptr, 0);
}

int xstats_get(rte_eth_dev *dev, rte_eth_xstat *xstats, unsigned n)
{
    const Port &port = port_of(dev);
    RawStats raw(port);
    const unsigned count = raw.count() + own_count;
    if (xstats == nullptr || n < count)
        return static_cast<int>(count);
    if (raw.count() != 0 && !raw.read())
        return -EIO;
    for (unsigned id = 0; id < count; ++id)
        xstats[id] = {.id = id,
                      .value =
                          id < raw.count() ? raw[id] : own_stats[id - raw.count()].value(port)};
    return static_cast<int>(count);
}

int xstats_get_names(rte_eth_dev *dev, rte_eth_xstat_name *names, unsigned n)
{
    const RawStats raw(port_of(dev));
    const unsigned count = raw.count() + own_count;
    if (names == nullptr || n < count)
        return static_cast<int>(count);
    for (unsigned id = 0; id < count; ++id)
        std::snprintf(names[id].name, sizeof(names[id].name), "%s",
                      id < raw.count() ? raw.name(id) : own_stats[id - raw.count()].name);
    return static_cast<int>(count);
}

} // namespace plx::net

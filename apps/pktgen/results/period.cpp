// SPDX-License-Identifier: BSD-3-Clause
#include "results/period.hpp"

#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <pthread.h>

#include <rte_lcore.h>

#include "units.hpp"

namespace pktgen
{

namespace
{

ntbmsg_endpoint_stats stats_of(const ntbmsg_endpoint *endpoint)
{
    ntbmsg_endpoint_stats stats{};
    stats.size = sizeof(stats);
    ntbmsg_endpoint_stats_get(endpoint, &stats);
    return stats;
}

/// Off the polling core where the machine has another one.
void leave_the_lcore()
{
    cpu_set_t set;
    CPU_ZERO(&set);
    for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (static_cast<int>(cpu) != rte_lcore_to_cpu_id(static_cast<int>(rte_get_main_lcore())))
            CPU_SET(cpu, &set);
    }
    pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
}

std::string per_second(uint64_t amount, double seconds, const char *unit)
{
    return app::with_unit(static_cast<double>(amount) / seconds, unit);
}

} // namespace

Period::Period(double seconds, std::vector<std::string> devices,
               std::vector<const ntbmsg_endpoint *> endpoints)
    : devices_(std::move(devices)), endpoints_(std::move(endpoints))
{
    if (seconds <= 0)
        return;
    for (const ntbmsg_endpoint *endpoint : endpoints_)
        last_.push_back(stats_of(endpoint));
    thread_ = std::thread([this, seconds] { run(seconds); });
}

Period::~Period()
{
    {
        const std::lock_guard lock(mutex_);
        end_ = true;
    }
    ended_.notify_one();
    if (thread_.joinable())
        thread_.join();
}

void Period::run(double seconds)
{
    leave_the_lcore();
    const std::chrono::duration<double> period(seconds);
    std::unique_lock lock(mutex_);
    while (!ended_.wait_for(lock, period, [this] { return end_; }))
        print(seconds);
}

void Period::print(double seconds)
{
    for (size_t i = 0; i < endpoints_.size(); ++i) {
        const ntbmsg_endpoint_stats now = stats_of(endpoints_[i]);
        const ntbmsg_endpoint_stats &last = last_[i];
        std::fprintf(stderr, "%s: tx %s %s full %" PRIu64 ", rx %s %s nombuf %" PRIu64 "\n",
                     devices_[i].c_str(),
                     per_second(now.tx_messages - last.tx_messages, seconds, "msg/s").c_str(),
                     per_second(now.tx_bytes - last.tx_bytes, seconds, "B/s").c_str(),
                     now.tx_full - last.tx_full,
                     per_second(now.rx_messages - last.rx_messages, seconds, "msg/s").c_str(),
                     per_second(now.rx_bytes - last.rx_bytes, seconds, "B/s").c_str(),
                     now.rx_nombuf - last.rx_nombuf);
        last_[i] = now;
    }
}

} // namespace pktgen

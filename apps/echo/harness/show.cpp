// SPDX-License-Identifier: BSD-3-Clause
#include "harness/show.hpp"

#include <cinttypes>
#include <cstdio>
#include <string>
#include <vector>

#include <rte_pmd_plx_ntb.h>
#include <rte_rawdev.h>

#include "build.hpp"
#include "harness/harness.hpp"
#include "units.hpp"

namespace echo
{

namespace
{

const char *state_name(rte_pmd_plx_ntb_state state)
{
    switch (state) {
    case RTE_PMD_PLX_NTB_STOPPED:
        return "stopped";
    case RTE_PMD_PLX_NTB_WAITING:
        return "waiting for a peer";
    case RTE_PMD_PLX_NTB_CONNECTED:
        return "connected";
    case RTE_PMD_PLX_NTB_SILENT:
        return "silent";
    case RTE_PMD_PLX_NTB_FENCING:
        return "fencing a lost peer";
    case RTE_PMD_PLX_NTB_REFUSED:
        return "refused";
    case RTE_PMD_PLX_NTB_CLOSING:
        return "receiving the rest of a peer that has stopped";
    }
    return "unknown";
}

rte_pmd_plx_ntb_info device_info(const Harness &harness)
{
    rte_pmd_plx_ntb_info info{};
    info.size = sizeof(info);
    rte_rawdev_info raw{};
    raw.dev_private = &info;
    rte_rawdev_info_get(harness.device(), &raw, sizeof(info));
    return info;
}

uint64_t attribute(const Harness &harness, const char *name)
{
    uint64_t value = 0;
    rte_rawdev_get_attr(harness.device(), name, &value);
    return value;
}

std::string rate(uint64_t amount, double seconds, const char *unit)
{
    return app::with_unit(seconds > 0 ? static_cast<double>(amount) / seconds : 0, unit);
}

void print_rates(const Harness::Since &since)
{
    const Counters &c = since.counters;
    std::printf("  in %-8s in %s, %s; out %s, %s\n", app::with_unit(since.seconds, "s").c_str(),
                rate(c.rx_messages, since.seconds, "msg/s").c_str(),
                rate(c.rx_bytes, since.seconds, "B/s").c_str(),
                rate(c.tx_messages, since.seconds, "msg/s").c_str(),
                rate(c.tx_bytes, since.seconds, "B/s").c_str());
}

void print_counters(const Counters &c)
{
    std::printf("  received    %" PRIu64 " messages, %" PRIu64 " bytes\n", c.rx_messages,
                c.rx_bytes);
    std::printf("  sent        %" PRIu64 " messages, %" PRIu64 " bytes; %" PRIu64
                " bursts cut short\n",
                c.tx_messages, c.tx_bytes, c.tx_full);
    const struct {
        const char *text;
        uint64_t count;
    } rare[] = {
        {"  built       %" PRIu64 " messages in receive buffers of the peer\n", c.built},
        {"  dropped     %" PRIu64 " messages\n", c.dropped},
        {"  no mbuf     %" PRIu64 " times\n", c.tx_nombuf},
        {"  unexpected  %" PRIu64 " messages\n", c.unexpected},
    };
    for (const auto &row : rare) {
        if (row.count != 0)
            std::printf(row.text, row.count);
    }
}

void show_queue(Harness &harness, uint16_t q)
{
    std::printf("%s: %s", harness.name(q).c_str(), harness.mode(q).name);
    if (harness.lcore(q) < 0) {
        std::printf(", not started yet\n");
        return;
    }
    Counters counters;
    std::string report;
    harness.inspect(q, [&](Forwarder &forwarder) {
        counters = forwarder.counters();
        report = forwarder.report();
    });
    std::printf(" on lcore %d, %s\n", harness.lcore(q), harness.running() ? "running" : "stopped");
    print_counters(counters);
    if (harness.running())
        print_rates(harness.since_last(q, counters));
    std::fputs(report.c_str(), stdout);
}

} // namespace

void show_stats(Harness &harness)
{
    for (uint16_t q = 0; q < harness.queues(); ++q)
        show_queue(harness, q);
}

void show_config(Harness &harness)
{
    const rte_pmd_plx_ntb_info info = device_info(harness);
    const Settings &s = harness.settings();
    std::printf("device      %s, %s, bursts %s\n", harness.options().device.c_str(), info.platform,
                info.burst);
    std::printf("queues      %u, rings of %u lines; %u buffers of %u bytes; up to %u bytes inside "
                "the ring, up to %u in all\n",
                info.queues, info.ring_lines, info.buffers, info.buf_bytes, info.inline_max,
                info.max_message);
    for (uint16_t q = 0; q < harness.queues(); ++q)
        std::printf("  %-11s %s\n", harness.name(q).c_str(), harness.mode(q).name);
    std::printf("burst       %" PRIu64 "\n", s.burst);
    if (s.size != 0)
        std::printf("size        %" PRIu64 " bytes\n", s.size);
    else
        std::printf("size        the mode's default\n");
    std::printf("in-flight   %" PRIu64 "\nflows       %" PRIu64 "\n", s.in_flight, s.flows);
    if (s.count != 0)
        std::printf("count       %" PRIu64 " messages per queue\n", s.count);
    else
        std::printf("count       no end\n");
    std::printf("build       %s\n", app::build_name(s.in_place));
    std::printf("files to    %s\n", harness.files().folder_fd() >= 0
                                        ? harness.files().folder().c_str()
                                        : "nowhere: no folder is chosen");
    std::printf("forwarding  %s\n", harness.running() ? "running" : "stopped");
}

void show_xstats(Harness &harness)
{
    const int count = rte_rawdev_xstats_names_get(harness.device(), nullptr, 0);
    if (count <= 0)
        return;
    std::vector<rte_rawdev_xstats_name> names(static_cast<size_t>(count));
    std::vector<unsigned> ids(names.size());
    std::vector<uint64_t> values(names.size());
    for (unsigned i = 0; i < ids.size(); ++i)
        ids[i] = i;
    rte_rawdev_xstats_names_get(harness.device(), names.data(), static_cast<unsigned>(count));
    rte_rawdev_xstats_get(harness.device(), ids.data(), values.data(),
                          static_cast<unsigned>(count));
    for (size_t i = 0; i < names.size(); ++i)
        std::printf("%-32s %" PRIu64 "\n", names[i].name, values[i]);
}

void show_link(Harness &harness)
{
    rte_pmd_plx_ntb_link link{};
    rte_pmd_plx_ntb_link_get(harness.device(), &link);
    std::printf("state       %s%s%s\n", state_name(link.state), link.why[0] != '\0' ? ": " : "",
                link.why);
    if (link.width != 0)
        std::printf("link        gen %u x%u\n", link.speed, link.width);
    else
        std::printf("link        down\n");
    if (link.peer_epoch != 0)
        std::printf("peer        epoch %08" PRIx32 ", takes messages of up to %" PRIu32
                    " bytes, %" PRIu32 " queues in use\n",
                    link.peer_epoch, link.peer_max_message, link.queues);
}

void show_channels(Harness &harness)
{
    rte_pmd_plx_ntb_link link{};
    rte_pmd_plx_ntb_link_get(harness.device(), &link);
    std::printf("%-13s mode     lcore  peer\n", "queue");
    for (uint16_t q = 0; q < harness.queues(); ++q) {
        const int lcore = harness.lcore(q);
        std::string peer = harness.channel_state(q);
        if (peer.empty())
            peer = q < link.queues ? "connected" : "none";
        std::printf("%-13s %-8s %5s  %s\n", harness.name(q).c_str(), harness.mode(q).name,
                    lcore < 0 ? "-" : std::to_string(lcore).c_str(), peer.c_str());
    }
}

void show_copy(Harness &harness)
{
    const bool dma = attribute(harness, "copy_engine") != 0;
    std::printf("inside the ring  up to %" PRIu64 " bytes\n", attribute(harness, "inline_max"));
    if (dma)
        std::printf("by DMA           from %" PRIu64 " bytes on, shorter ones by CPU stores\n",
                    attribute(harness, "dma_min"));
    else
        std::printf("by DMA           never: longer ones go by CPU stores\n");
    for (const char *name : {"tx_inline_messages", "tx_cpu_messages", "tx_cpu_bytes",
                             "tx_dma_messages", "tx_dma_bytes", "tx_dma_errors"})
        std::printf("%-16s %" PRIu64 "\n", name,
                    rte_rawdev_xstats_by_name_get(harness.device(), name, nullptr));
}

void show_regs(Harness &harness)
{
    rte_rawdev_dump(harness.device(), stdout);
}

} // namespace echo

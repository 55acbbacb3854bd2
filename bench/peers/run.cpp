// SPDX-License-Identifier: BSD-3-Clause
#include "peers/run.hpp"

#include "pin.hpp"
#include "placement.hpp"

#include <cerrno>
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <sys/prctl.h>

namespace peers
{

namespace
{

double ns_per_tick()
{
    static const double value = [] {
        const uint64_t begin_ns = monotonic_ns();
        const uint64_t begin = __rdtsc();
        while (monotonic_ns() - begin_ns < 10000000u) {
        }
        return static_cast<double>(monotonic_ns() - begin_ns) /
               static_cast<double>(__rdtsc() - begin);
    }();
    return value;
}

double part_running(const Report &report)
{
    return report.wall_ns != 0
               ? static_cast<double>(report.cpu_ns) / static_cast<double>(report.wall_ns)
               : 0;
}

void print_count(const char *name, const Count &count)
{
    printf(",\"%s\":{\"count\":%" PRIu64 ",\"seconds\":%.9f}", name, count.n,
           static_cast<double>(count.ns) / 1e9);
}

/// As a result file has it: nanoseconds; null where nothing was timed.
void print_histogram(const app::Histogram &ticks)
{
    const double tick = ns_per_tick();
    const auto ns = [&](uint64_t value) { return static_cast<double>(value) * tick; };
    printf(",\"latency\":");
    if (ticks.count() == 0) {
        printf("null");
        return;
    }
    printf("{\"count\":%" PRIu64 ",\"min\":%.1f,\"mean\":%.1f,\"max\":%.1f", ticks.count(),
           ns(ticks.min()), ticks.mean() * tick, ns(ticks.max()));
    const std::pair<const char *, double> quantiles[] = {
        {"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99_9", 0.999}, {"p99_99", 0.9999}};
    for (const auto &[name, part] : quantiles)
        printf(",\"%s\":%.1f", name, ns(ticks.quantile(part)));
    const char *comma = "";
    printf(",\"histogram\":[");
    ticks.for_each_bucket([&](uint64_t from, uint64_t to, uint64_t count) {
        printf("%s[%.1f,%.1f,%" PRIu64 "]", comma, ns(from), ns(to), count);
        comma = ",";
    });
    printf("]}");
}

} // namespace

bool settle(const Options &options, Meeting &meeting)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!app::pin(options.cpu))
        give_up("CPU " + std::to_string(options.cpu) + ": " + strerror(errno));
    else if (!meeting.open(options.shared.c_str(), options.side))
        give_up(options.shared + ": " + strerror(errno));
    else {
        Priority::wanted = options.realtime;
        return true;
    }
    return false;
}

bool went_well(const measure::Outcome &outcome)
{
    if (outcome.error != 0)
        give_up(std::string(outcome.what) + ": " + strerror(outcome.error));
    return outcome.error == 0;
}

int give_up(const std::string &why)
{
    fprintf(stderr, "%s: %s\n", program_invocation_short_name, why.c_str());
    return 1;
}

void print(const Figures &figures, const Report &asker, const Report &answerer)
{
    const app::Placement place = app::classify(figures.probe_before_ns);
    const bool stayed = app::same_place(figures.probe_before_ns, figures.probe_after_ns);
    printf("{\"bytes\":%zu,\"class\":\"%s\",\"stayed\":%s,\"probe_ns\":[%.1f,%.1f],\"ran\":%.4f",
           figures.bytes, std::string(app::name_of(place)).c_str(), stayed ? "true" : "false",
           figures.probe_before_ns, figures.probe_after_ns,
           std::min(part_running(asker), part_running(answerer)));
    print_count("round_trips", figures.round_trips);
    print_count("messages", figures.messages);
    print_histogram(figures.ticks);
    printf("}\n");
    fflush(stdout);
}

} // namespace peers

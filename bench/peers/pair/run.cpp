// SPDX-License-Identifier: BSD-3-Clause
#include "peers/pair/run.hpp"

#include "latency.hpp"
#include "pin.hpp"
#include "placement.hpp"

#include <cerrno>
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

void put_count(app::JsonText &json, const char *name, const Count &count)
{
    json.key(name);
    json.begin_object();
    json.member("count", count.n);
    json.member("seconds", static_cast<double>(count.ns) / 1e9);
    json.end_object();
}

bool settle(const Options &options, Meeting &meeting)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!app::pin(static_cast<unsigned>(options.cpu)))
        give_up("CPU " + std::to_string(options.cpu) + ": " + strerror(errno));
    else if (!meeting.open(options.shared.c_str(), static_cast<unsigned>(options.side),
                           options.realtime))
        give_up(options.shared + ": " + strerror(errno));
    else
        return true;
    return false;
}
} // namespace

std::optional<Options> begin(int argc, char **argv, Meeting &meeting)
{
    app::survive_file_limit();
    std::string error;
    auto options = parse_options(argc, argv, error);
    if (!options)
        give_up(error);
    else if (!settle(*options, meeting))
        options.reset();
    return options;
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

void print(const Figures &figures, const Report &near, const Report &far)
{
    std::optional<app::Latency> latency;
    if (figures.ticks.count() != 0)
        latency = app::latency_of(figures.ticks, ns_per_tick());
    app::JsonText json(app::JsonText::Layout::one_line);
    json.begin_object();
    json.member("bytes", figures.bytes);
    json.member("class", app::name_of(app::classify(figures.probe_before_ns)));
    json.member("stayed", app::same_place(figures.probe_before_ns, figures.probe_after_ns));
    json.key("probe_ns");
    json.row({figures.probe_before_ns, figures.probe_after_ns});
    json.member("ran", std::min(part_running(near), part_running(far)));
    put_count(json, "round_trips", figures.round_trips);
    put_count(json, "messages", figures.messages);
    app::put_latency(json, "latency", latency);
    json.end_object();
    fputs(json.text().c_str(), stdout);
    fflush(stdout);
}

} // namespace peers

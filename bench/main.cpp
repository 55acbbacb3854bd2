// SPDX-License-Identifier: BSD-3-Clause
// ntbmsg_bench: what the library reaches next to what the machine could do. doc/performance.md says
// how the figures are taken and how to read them.
#include "command_line.hpp"
#include "host/worker.hpp"
#include "machine.hpp"
#include "output.hpp"
#include "results/report.hpp"

#include <rte_version.h>

#include <cstdlib>
#include <cstring>
#include <ctime>

namespace bench
{

namespace
{

constexpr uint64_t second = 1000000000;

unsigned number(const char *text)
{
    return static_cast<unsigned>(strtoul(text, nullptr, 10));
}

/// The words that Session::spawn() gave.
int run_worker(char **argv)
{
    return worker_main({{number(argv[2]), number(argv[3]), argv[5], strcmp(argv[6], "huge") == 0},
                        static_cast<int>(number(argv[4])),
                        static_cast<int>(number(argv[8])),
                        strcmp(argv[7], "realtime") == 0});
}

Plan make_plan(const Options &options)
{
    Plan plan{};
    plan.pairs = options.quick ? 5 : 15;
    plan.pairs_ns = (options.quick ? 75 : 300) * second;
    plan.kills = static_cast<unsigned>(options.kills);
    plan_for(options.selection, plan);
    return plan;
}

std::string utc_now()
{
    const time_t now = time(nullptr);
    tm parts = {};
    char text[32];
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &parts));
    return text;
}

int complain(const std::string &what)
{
    fprintf(stderr, "ntbmsg_bench: %s\n", what.c_str());
    return 1;
}

int show_limits(Session &session)
{
    for (const Measure &measure : measures) {
        if (measure.against != Measure::machine || measure.bare)
            continue; // has no limit of its own
        const auto ns = probe(session);
        const auto limit = ns ? take_limit(session, measure) : std::nullopt;
        if (!limit)
            return complain(session.error());
        printf("%-12s %15.1f %-5s %s\n", std::string(measure.name).c_str(), limit->value,
               std::string(name_of(classify(*ns))).c_str(), limit->how.c_str());
    }
    return 0;
}

int measure(Session &session, const Options &options, Circumstances &circumstances)
{
    const uint64_t begin = monotonic_ns();
    if (!session.open_hosts())
        return complain(session.error());
    Findings findings;
    run_campaign(session, make_plan(options), findings);
    session.end();
    circumstances.huge_pages = session.huge_pages();
    circumstances.seconds = static_cast<double>(monotonic_ns() - begin) / second;
    print_table(stdout, options.selection, findings, circumstances);
    if (!options.json.empty() &&
        !write_json(options.json.c_str(), options.selection, findings, circumstances))
        return complain("cannot write " + options.json);
    if (interrupted())
        return 130;
    for (size_t i = 0; i < figure_count; i++)
        if (options.selection[i] && row_of(figures[i], findings).verdict == "failed")
            return 1;
    return 0;
}

int run(const Options &options)
{
    const auto cpus = options.cpus ? options.cpus : app::choose_cpus();
    if (!cpus)
        return complain("two CPUs are needed, one for each host");
    Circumstances circumstances{app::read_machine(),         options.commit, utc_now(),
                                {cpus->first, cpus->second}, false,          0};
    catch_signals();
    const Plan plan = make_plan(options);
    Session session;
    if (!session.start({{cpus->first, cpus->second},
                        options.realtime,
                        options.no_huge,
                        static_cast<unsigned>(options.credit),
                        plan.restart || plan.kills > 1}))
        return complain(session.error());
    return options.limits_only ? show_limits(session) : measure(session, options, circumstances);
}

} // namespace

} // namespace bench

int main(int argc, char **argv)
{
    app::survive_file_limit();
    if (argc == 9 && strcmp(argv[1], "--worker") == 0)
        return bench::run_worker(argv);
    std::string error;
    const auto options = bench::parse_options(argc, argv, error);
    if (!options) {
        fprintf(stderr, "ntbmsg_bench: %s\n%s", error.c_str(), bench::usage().c_str());
        return 2;
    }
    if (options->help || options->version) {
        if (options->help)
            fputs(bench::usage().c_str(), stdout);
        else
            printf("ntbmsg_bench %s, %s\n", BENCH_VERSION, rte_version());
        return app::finish_output("ntbmsg_bench", 0);
    }
    return app::finish_output("ntbmsg_bench", bench::run(*options));
}

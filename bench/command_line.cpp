// SPDX-License-Identifier: BSD-3-Clause
#include "command_line.hpp"

#include "options.hpp"

#include <sched.h>

namespace bench
{

namespace
{

constexpr uint64_t most_credit = 1024;
constexpr uint64_t most_kills = 1000;

/// Options that are texts on the command line and something else afterwards.
struct Raw {
    std::string cpus;
    std::vector<std::string> only;
};

std::vector<app::Option> option_table(Options &o, Raw &raw)
{
    return {
        {"quick", nullptr, &o.quick, "fewer pairs, at most 2 minutes"},
        {"only", "NAME...", app::Words{&raw.only},
         "these figures, or all that begin with NAME and a dot"},
        {"json", "FILE", &o.json, "everything, with each pair, for machines"},
        {"limits", nullptr, &o.limits_only, "only what the machine could do, without hosts"},
        {"cpus", "A,B", &raw.cpus, "the two CPUs; the first two of different cores otherwise"},
        {"realtime", nullptr, &o.realtime,
         "measure with real-time priority, on a machine that has other work"},
        {"credit", "N", app::Number{&o.credit, 1, most_credit},
         "messages that may be ahead on the channel of chan.* and msg.*,\n1 to 1024"},
        {"kills", "N", app::Number{&o.kills, 1, most_kills},
         "kills of a host for link.kill_to_event, 1 to 1000"},
        {"no-huge", nullptr, &o.no_huge, "the hosts run without huge pages"},
        {"commit", "ID", &o.commit, "noted in the output"},
        {"version", nullptr, &o.version, "version of this program and of DPDK"},
        {"help", nullptr, &o.help, "this text", 'h'},
    };
}

bool read_cpus(const std::string &text, Options &options)
{
    unsigned first = 0;
    unsigned second = 0;
    char rest = 0;
    if (sscanf(text.c_str(), "%u,%u%c", &first, &second, &rest) != 2 || first == second ||
        first >= CPU_SETSIZE || second >= CPU_SETSIZE)
        return false;
    options.cpus = {first, second};
    return true;
}

std::string check(const Raw &raw, Options &options)
{
    for (const std::string &name : raw.only)
        if (!select(name, options.selection))
            return "no figure is called " + name;
    if (raw.only.empty())
        options.selection.fill(true);
    if (!raw.cpus.empty() && !read_cpus(raw.cpus, options))
        return "--cpus needs two different CPUs, as in 0,1";
    return {};
}

} // namespace

std::optional<Options> parse_options(int argc, char **argv, std::string &error)
{
    Options options;
    Raw raw;
    error = app::parse_options(argc, argv, option_table(options, raw));
    if (error.empty() && !options.help && !options.version)
        error = check(raw, options);
    return error.empty() ? std::optional(options) : std::nullopt;
}

std::string usage()
{
    Options unused;
    Raw raw;
    std::string text = "usage: ntbmsg_bench [options]\n" +
                       app::describe_options(option_table(unused, raw)) + "figures:";
    for (const Figure &figure : figures)
        text.append(" ").append(figure.name);
    return text.append("\n");
}

} // namespace bench

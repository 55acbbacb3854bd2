// SPDX-License-Identifier: BSD-3-Clause
#include "command_line.hpp"

#include "options.hpp"

#include <initializer_list>

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

bool selects_any(const Selection &selection, std::initializer_list<std::string_view> names)
{
    Selection of_names{};
    for (const std::string_view name : names)
        select(name, of_names);
    for (size_t i = 0; i < figure_count; i++)
        if (selection[i] && of_names[i])
            return true;
    return false;
}

/// What would be taken and have no effect.
std::string check_effects(const Raw &raw, const Options &options)
{
    const Options usual;
    const bool has_credit = options.credit != usual.credit,
               has_kills = options.kills != usual.kills;
    if (options.limits_only && (!raw.only.empty() || has_credit || has_kills || options.no_huge))
        return "--limits has no hosts: it does not go with --only, --credit, --kills or --no-huge";
    if (has_credit && !selects_any(options.selection, {"chan", "msg"}))
        return "--credit is for chan.* and msg.*, and --only names none of them";
    if (has_kills && !selects_any(options.selection, {"link.kill_to_event"}))
        return "--kills is for link.kill_to_event, and --only does not name it";
    return {};
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
    return check_effects(raw, options);
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

// SPDX-License-Identifier: BSD-3-Clause
#include "options.hpp"

#include <sched.h>
#include <span>

namespace bench
{

namespace
{

constexpr unsigned credit_min = 1, credit_max = 1024;

using Words = std::span<char *const>;

bool take_value(Words words, size_t &at, std::string &value, std::string &error)
{
    if (at + 1 >= words.size()) {
        error = std::string(words[at]) + " needs a value";
        return false;
    }
    value = words[++at];
    return true;
}

/// All words up to the next option.
bool take_names(Words words, size_t &at, Selection &selection, std::string &error)
{
    const size_t first = at + 1;
    while (at + 1 < words.size() && words[at + 1][0] != '-') {
        if (!select(words[++at], selection)) {
            error = std::string("no figure is called ") + words[at];
            return false;
        }
    }
    if (at + 1 == first)
        error = "--only needs the name of a figure";
    return at + 1 != first;
}

bool take_cpus(const std::string &text, Options &options, std::string &error)
{
    unsigned first = 0;
    unsigned second = 0;
    char rest = 0;
    if (sscanf(text.c_str(), "%u,%u%c", &first, &second, &rest) != 2 || first == second ||
        first >= CPU_SETSIZE || second >= CPU_SETSIZE) {
        error = "--cpus needs two different CPUs, as in 0,1";
        return false;
    }
    options.cpus = {first, second};
    return true;
}

bool take_credit(const std::string &text, Options &options, std::string &error)
{
    char rest = 0;
    if (sscanf(text.c_str(), "%u%c", &options.credit, &rest) != 1 || options.credit < credit_min ||
        options.credit > credit_max)
        error = "--credit needs a number of messages, 1 to 1024";
    return error.empty();
}

bool take_word(Words words, size_t &at, Options &options, std::string &error)
{
    const std::string_view word = words[at];
    std::string text;
    if (word == "--help" || word == "-h")
        options.help = true;
    else if (word == "--quick")
        options.quick = true;
    else if (word == "--limits")
        options.limits_only = true;
    else if (word == "--realtime")
        options.realtime = true;
    else if (word == "--no-huge")
        options.no_huge = true;
    else if (word == "--only")
        return take_names(words, at, options.selection, error);
    else if (word == "--json")
        return take_value(words, at, options.json, error);
    else if (word == "--commit")
        return take_value(words, at, options.commit, error);
    else if (word == "--credit")
        return take_value(words, at, text, error) && take_credit(text, options, error);
    else if (word == "--cpus")
        return take_value(words, at, text, error) && take_cpus(text, options, error);
    else
        error = "unknown option " + std::string(word);
    return error.empty();
}

} // namespace

std::optional<Options> parse_options(int argc, char **argv, std::string &error)
{
    Options options;
    const Words words(argv, static_cast<size_t>(argc));
    for (size_t at = 1; at < words.size(); at++)
        if (!take_word(words, at, options, error))
            return std::nullopt;
    if (options.selection == Selection{})
        options.selection.fill(true);
    return options;
}

std::string usage()
{
    std::string text =
        "usage: ntbmsg_bench [--quick] [--only NAME...] [--json FILE] [--limits] [--cpus A,B]\n"
        "  --quick      fewer pairs, at most 2 minutes\n"
        "  --only NAME  these figures, or all that begin with NAME and a dot\n"
        "  --json FILE  everything, with each pair, for machines\n"
        "  --limits     only what the machine could do, without hosts\n"
        "  --cpus A,B   the two CPUs; the first two of different cores otherwise\n"
        "  --realtime   measure with real-time priority, on a machine that has other work\n"
        "  --credit N   messages that may be ahead on the channel of chan.* and msg.*, 1 to 1024\n"
        "  --no-huge    the hosts run without huge pages\n"
        "  --commit ID  noted in the output\n"
        "figures:";
    for (const Figure &figure : figures)
        text.append(" ").append(figure.name);
    return text.append("\n");
}

} // namespace bench

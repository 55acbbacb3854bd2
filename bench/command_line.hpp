// SPDX-License-Identifier: BSD-3-Clause
// The command line of ntbmsg_bench.
#ifndef BENCH_COMMAND_LINE_HPP
#define BENCH_COMMAND_LINE_HPP

#include "results/figures.hpp"

#include <utility>

namespace bench
{

struct Options {
    bool help = false;
    bool version = false;
    bool quick = false;
    bool limits_only = false; ///< what the machine could do, without hosts
    Selection selection{};    ///< all where no --only was given
    bool realtime = false;    ///< for a machine with other work
    bool no_huge = false;     ///< even where there are huge pages
    uint64_t credit = 0;      ///< messages ahead on the first channel; 0: the usual number
    uint64_t kills = 1;       ///< of a host, for link.kill_to_event
    std::string json;         ///< file, or empty
    std::string commit = "unknown";
    std::optional<std::pair<unsigned, unsigned>> cpus;
};

/// @return nothing: @p error says what is wrong with the command line
std::optional<Options> parse_options(int argc, char **argv, std::string &error);
std::string usage();

} // namespace bench

#endif

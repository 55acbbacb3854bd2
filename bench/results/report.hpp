// SPDX-License-Identifier: BSD-3-Clause
// Findings for people (a table, one line a figure) and for machines (JSON).
#ifndef BENCH_RESULTS_REPORT_HPP
#define BENCH_RESULTS_REPORT_HPP

#include "machine.hpp"
#include "results/figures.hpp"

#include <cstdio>

namespace bench
{

struct Circumstances {
    app::Machine machine;
    std::string commit;  ///< of the sources, from the command line
    std::string started; ///< UTC
    unsigned cpus[2];
    bool huge_pages; ///< the hosts run on them
    double seconds;  ///< of the run so far
};

/// Columns name, value, unit, limit, ratio, class, reach, verdict; lines that begin with '#'
/// explain.
void print_table(FILE *, const Selection &, const Findings &, const Circumstances &);

/// @return whether all of it was written
bool write_json(const char *path, const Selection &, const Findings &, const Circumstances &);

} // namespace bench

#endif

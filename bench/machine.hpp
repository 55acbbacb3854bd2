// SPDX-License-Identifier: BSD-3-Clause
// What a figure's reader needs to know about the machine it was taken on.
#ifndef BENCH_MACHINE_HPP
#define BENCH_MACHINE_HPP

#include <optional>
#include <string>
#include <utility>

namespace bench
{

struct Machine {
    std::string cpu;
    std::string kernel;
    unsigned cpus;             ///< this process may use
    unsigned huge_pages_total; ///< of 2 MiB
    unsigned huge_pages_free;
};

Machine read_machine();

/// Two CPUs that this process may use, of two cores where there are two. @return nothing with fewer
/// than two CPUs
std::optional<std::pair<unsigned, unsigned>> choose_cpus();

} // namespace bench

#endif

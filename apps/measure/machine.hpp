// SPDX-License-Identifier: BSD-3-Clause
// What a figure's reader needs to know about the machine it was taken on.
#ifndef APP_MACHINE_HPP
#define APP_MACHINE_HPP

#include <optional>
#include <string>
#include <utility>

namespace app
{

struct Machine {
    std::string cpu;
    std::string kernel;
    std::string boot; ///< id of this start of the kernel: two hosts with the same are one machine
    unsigned cpus;    ///< that are online, whichever of them this process may use
    unsigned huge_pages_total; ///< of 2 MiB
    unsigned huge_pages_free;
    double load_1min; ///< runnable processes, mean of the last minute
};

Machine read_machine();

/// Two CPUs that this process may use, of two cores where there are two. @return nothing with fewer
/// than two CPUs
std::optional<std::pair<unsigned, unsigned>> choose_cpus();

} // namespace app

#endif

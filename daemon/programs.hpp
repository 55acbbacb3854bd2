// SPDX-License-Identifier: BSD-3-Clause
// The programs of this machine that libntbsocket.so is in, by what they keep open of it.
#ifndef NTBD_PROGRAMS_HPP
#define NTBD_PROGRAMS_HPP

#include <cstdint>
#include <string>
#include <vector>

namespace ntbd
{

/// A program and the children that it has by fork(), which count together. All is their own word.
struct Program {
    int pid;          ///< of the program while it lives, else of the child with the lowest
    std::string name; ///< printable
    uint64_t matched; ///< connections that a daemon joined by rings
    struct Why {
        uint64_t connections;
        const char *text;
    };
    std::vector<Why> reasons; ///< those that occurred
};

/// Programs that the caller may look into: those of its user, or all for root. In order of pid.
/// @param proc  where procfs is mounted
std::vector<Program> find_programs(const std::string &proc = "/proc");

} // namespace ntbd

#endif

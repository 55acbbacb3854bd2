// SPDX-License-Identifier: BSD-3-Clause
// How the two processes of a peer exchange their addresses.
#ifndef BENCH_PEERS_PAIR_EXCHANGE_HPP
#define BENCH_PEERS_PAIR_EXCHANGE_HPP

#include "peers/pair/command_line.hpp"
#include "peers/pair/meeting.hpp"

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include <unistd.h>

namespace peers
{

/// What two processes need of each other before they can talk, through files that the starter of
/// both removes. A file is complete as soon as it exists.
/// @param what  a name for it, of a file
inline bool exchange(const Options &options, const std::string &what, const std::string &mine,
                     std::string &theirs)
{
    constexpr uint64_t patience_ns = 15000000000u;
    const auto name = [&](uint64_t side) {
        return options.folder + "/" + what + std::to_string(side);
    };
    const std::string own = name(options.side);
    std::ofstream(own + ".new", std::ios::binary) << mine;
    if (rename((own + ".new").c_str(), own.c_str()) != 0)
        return false;
    for (const uint64_t give_up = monotonic_ns() + patience_ns; monotonic_ns() < give_up;) {
        std::ifstream file(name(1 - options.side), std::ios::binary);
        if (file) {
            theirs.assign(std::istreambuf_iterator<char>(file), {});
            return !theirs.empty();
        }
        usleep(1000);
    }
    return false;
}

} // namespace peers

#endif

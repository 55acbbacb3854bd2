// SPDX-License-Identifier: BSD-3-Clause
// The command line that all peer programs have in common, which tools/compare writes.
#ifndef BENCH_PEERS_PAIR_COMMAND_LINE_HPP
#define BENCH_PEERS_PAIR_COMMAND_LINE_HPP

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace peers
{

/// Largest message that is measured: 16 MiB.
inline constexpr size_t largest_message = size_t{16} << 20;
inline constexpr size_t most_sizes = 32;

struct Options {
    uint64_t side = 0; ///< 0 starts, sends, asks; 1 answers
    uint64_t cpu = 0;
    std::string shared;        ///< path of the memory that both sides map
    std::string folder;        ///< for sockets and the like; tools/compare removes it
    std::vector<size_t> sizes; ///< bytes of payload
    uint64_t run_ns = 20000000;
    bool realtime = false; ///< poll with real-time priority, on a machine that has other work
    std::string form;      ///< of a program that knows several
    std::vector<std::string> words; ///< behind "--": for what is measured
};

/// @return nothing: @p error says what is wrong with the command line
std::optional<Options> parse_options(int argc, char **argv, std::string &error);

} // namespace peers

#endif

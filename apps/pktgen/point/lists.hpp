// SPDX-License-Identifier: BSD-3-Clause
// What sweeps go over: "8,64,1K", "8-16M" (powers of two), "1-8:1" (steps), and mixtures.
#ifndef PKTGEN_POINT_LISTS_HPP
#define PKTGEN_POINT_LISTS_HPP

#include <cstdint>
#include <string>
#include <vector>

namespace pktgen
{

/// A whole number; K, M and G multiply by @p kilo to the power of 1, 2, 3. @return false: it is
/// none
bool parse_amount(const std::string &text, uint64_t kilo, uint64_t &value);

/// "A-B" as two numbers, K meaning 1024. @return false: it is none
bool parse_span(const std::string &text, uint64_t &from, uint64_t &to);

/// Elements between commas: a number; A-B, which is A, 2A, 4A and so on up to B, and B; A-B:S,
/// which is A, A+S, A+2S and so on. K means 1024.
/// @return empty, or what the list has to look like
std::string parse_list(const std::string &text, uint64_t low, uint64_t high,
                       std::vector<uint64_t> &values);

/// Words between commas, each not empty.
std::vector<std::string> split(const std::string &text, char at);

} // namespace pktgen

#endif

// SPDX-License-Identifier: BSD-3-Clause
// Long options from a table: one row gives the parser and the help text.
#ifndef APP_OPTIONS_HPP
#define APP_OPTIONS_HPP

#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace app
{

/// Set true when the option is given.
using Flag = bool *;
/// A text, as it is.
using Text = std::string *;
/// Texts, one more each time the option is given.
using Texts = std::vector<std::string> *;
/// One or more words, up to the next option.
struct Words {
    std::vector<std::string> *words;
};
/// A whole number in a range; K, M and G multiply by 1024 to the power of 1, 2, 3.
struct Number {
    uint64_t *value;
    uint64_t low, high;
};
/// A time in seconds, fractions allowed, more than 0.
using Seconds = double *;

struct Option {
    const char *name;     ///< without the dashes
    const char *argument; ///< what the help calls it; nullptr for a flag
    std::variant<Flag, Text, Texts, Words, Number, Seconds> target;
    const char *help; ///< further lines after '\n'
    char letter = 0;  ///< short form of a flag, 0: none
};

/// A whole number, K, M or G behind it. @return false: it is none, and value is untouched
bool parse_number(const char *text, uint64_t &value);
/// A time in seconds above 0. @return false: it is none, and value is untouched
bool parse_seconds(const char *text, double &seconds);

/// Parses argv[1...]. Nothing but options is accepted.
/// @return empty, or one line that says what is wrong
std::string parse_options(int argc, char **argv, std::span<const Option> options);

/// The table as help text, one option a line.
std::string describe_options(std::span<const Option> options);

} // namespace app

#endif

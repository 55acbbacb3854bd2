// SPDX-License-Identifier: BSD-3-Clause
#include "options.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <getopt.h>
#include <vector>

namespace app
{

namespace
{

constexpr double longest_seconds = 1e6;
constexpr size_t help_column = 22;

/// @return how many bits the unit behind a number shifts it, or -1
int unit_shift(const char *unit)
{
    if (unit[0] == '\0')
        return 0;
    if (unit[1] != '\0')
        return -1;
    switch (unit[0]) {
    case 'k':
    case 'K':
        return 10;
    case 'm':
    case 'M':
        return 20;
    case 'g':
    case 'G':
        return 30;
    default:
        return -1;
    }
}

std::string refuse(const Option &option, const char *text, const std::string &wanted)
{
    return std::string("--") + option.name + " " + text + ": must be " + wanted;
}

std::string store(const Option &option, const char *text, const Number &number)
{
    uint64_t value = 0;
    if (!parse_number(text, value) || value < number.low || value > number.high)
        return refuse(option, text,
                      "a number from " + std::to_string(number.low) + " to " +
                          std::to_string(number.high));
    *number.value = value;
    return {};
}

std::string store(const Option &option, const char *text, Seconds seconds)
{
    if (!parse_seconds(text, *seconds))
        return refuse(option, text, "a time in seconds above 0");
    return {};
}

std::string store(const Option &, const char *text, Text target)
{
    *target = text;
    return {};
}

/// The parser stands behind the first of them.
std::string store(const Option &option, const char *text, Words target)
{
    if (text[0] == '-')
        return std::string("--") + option.name + " needs a value";
    target.words->emplace_back(text);
    return {};
}

std::string store(const Option &, const char *text, Texts target)
{
    target->emplace_back(text);
    return {};
}

std::string store(const Option &, const char *, Flag target)
{
    *target = true;
    return {};
}

/// What getopt_long() returns for row i.
constexpr int first_row = 256;

struct Table {
    std::vector<option> rows;
    // ':' first: a missing argument differs from an unknown option. '+': no reordering.
    std::string letters = "+:";
};

Table getopt_table(std::span<const Option> options)
{
    Table table;
    for (const Option &o : options) {
        table.rows.push_back({o.name, o.argument != nullptr ? required_argument : no_argument,
                              nullptr, first_row + static_cast<int>(table.rows.size())});
        if (o.letter != 0)
            table.letters += o.letter;
    }
    table.rows.push_back({});
    return table;
}

/// @param found  what getopt_long() returned. @return NULL: no row
const Option *row_of(std::span<const Option> options, int found)
{
    for (size_t i = 0; i < options.size(); ++i)
        if (found == first_row + static_cast<int>(i) || found == options[i].letter)
            return &options[i];
    return nullptr;
}

} // namespace

bool parse_number(const char *text, uint64_t &value)
{
    // strtoull takes signs and white space, which are no part of a count.
    if (text[0] < '0' || text[0] > '9')
        return false;
    char *end = nullptr;
    errno = 0;
    const unsigned long long number = std::strtoull(text, &end, 10);
    const int shift = unit_shift(end);
    if (errno != 0 || shift < 0 || number > (UINT64_MAX >> shift))
        return false;
    value = uint64_t{number} << shift;
    return true;
}

bool parse_seconds(const char *text, double &seconds)
{
    char *end = nullptr;
    const double value = std::strtod(text, &end);
    if (end == text || *end != '\0' || !std::isfinite(value) || value <= 0 ||
        value > longest_seconds)
        return false;
    seconds = value;
    return true;
}

std::string parse_options(int argc, char **argv, std::span<const Option> options)
{
    const Table table = getopt_table(options);
    opterr = 0; // one error message, ours
    optind = 0; // EAL parses with the same state: start anew
    for (;;) {
        const int found =
            getopt_long(argc, argv, table.letters.c_str(), table.rows.data(), nullptr);
        if (found == -1)
            break;
        const Option *chosen = row_of(options, found);
        if (chosen == nullptr) {
            const std::string name = argv[optind - 1];
            return found == ':' ? name + " needs a value" : "unknown option " + name;
        }
        std::string error = std::visit(
            [&](const auto &target) { return store(*chosen, optarg, target); }, chosen->target);
        const bool takes_more = std::holds_alternative<Words>(chosen->target);
        while (takes_more && error.empty() && optind < argc && argv[optind][0] != '-')
            std::get<Words>(chosen->target).words->emplace_back(argv[optind++]);
        if (!error.empty())
            return error;
    }
    if (optind < argc)
        return std::string("what is \"") + argv[optind] + "\"?";
    return {};
}

std::string describe_options(std::span<const Option> options)
{
    std::string text;
    for (const Option &o : options) {
        std::string left = std::string("  --") + o.name;
        if (o.letter != 0)
            left.insert(2, std::string("-") + o.letter + ", ");
        if (o.argument != nullptr)
            left += std::string(" ") + o.argument;
        left.resize(std::max(left.size() + 1, help_column), ' ');
        text += left;
        for (const char *c = o.help; *c != '\0'; ++c) {
            text += *c;
            if (*c == '\n')
                text.append(help_column, ' ');
        }
        text += '\n';
    }
    return text;
}

} // namespace app

// SPDX-License-Identifier: BSD-3-Clause
#include "point/lists.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>

namespace pktgen
{

namespace
{

constexpr size_t most_values = 1000;
constexpr uint64_t binary_kilo = 1024;

unsigned power_of_unit(char unit)
{
    switch (unit) {
    case 'k':
    case 'K':
        return 1;
    case 'm':
    case 'M':
        return 2;
    case 'g':
    case 'G':
        return 3;
    default:
        return 0;
    }
}

void add_powers(uint64_t from, uint64_t to, std::vector<uint64_t> &values)
{
    for (uint64_t value = from; value < to && values.size() < most_values; value *= 2)
        values.push_back(value);
    values.push_back(to);
}

void add_steps(uint64_t from, uint64_t to, uint64_t step, std::vector<uint64_t> &values)
{
    for (uint64_t value = from; value <= to && values.size() <= most_values; value += step)
        values.push_back(value);
}

bool parse_element(const std::string &text, std::vector<uint64_t> &values)
{
    uint64_t from = 0, to = 0, step = 0;
    if (parse_amount(text, binary_kilo, from)) {
        values.push_back(from);
        return true;
    }
    const size_t colon = text.find(':');
    if (!parse_span(text.substr(0, colon), from, to) || from == 0 || from > to)
        return false;
    if (colon == std::string::npos) {
        add_powers(from, to, values);
        return true;
    }
    if (!parse_amount(text.substr(colon + 1), binary_kilo, step) || step == 0)
        return false;
    add_steps(from, to, step, values);
    return true;
}

} // namespace

bool parse_amount(const std::string &text, uint64_t kilo, uint64_t &value)
{
    if (text.empty() || text[0] < '0' || text[0] > '9')
        return false;
    char *end = nullptr;
    errno = 0;
    uint64_t number = std::strtoull(text.c_str(), &end, 10);
    if (errno != 0)
        return false;
    unsigned power = power_of_unit(*end);
    if (*end != '\0' && (power == 0 || end[1] != '\0'))
        return false;
    for (; power != 0; --power) {
        if (number > UINT64_MAX / kilo)
            return false;
        number *= kilo;
    }
    value = number;
    return true;
}

bool parse_span(const std::string &text, uint64_t &from, uint64_t &to)
{
    const size_t dash = text.find('-');
    return dash != std::string::npos && parse_amount(text.substr(0, dash), binary_kilo, from) &&
           parse_amount(text.substr(dash + 1), binary_kilo, to);
}

std::string parse_list(const std::string &text, uint64_t low, uint64_t high,
                       std::vector<uint64_t> &values)
{
    values.clear();
    bool good = true;
    for (const std::string &element : split(text, ','))
        good = good && parse_element(element, values) && values.size() <= most_values;
    const auto in_range = [&](uint64_t value) { return value >= low && value <= high; };
    if (good && !values.empty() && std::all_of(values.begin(), values.end(), in_range))
        return {};
    return "must be a list (8,64 or 8-1K or 1-4:1) of at most 1000 numbers from " +
           std::to_string(low) + " to " + std::to_string(high);
}

std::vector<std::string> split(const std::string &text, char at)
{
    std::vector<std::string> words;
    size_t begin = 0;
    for (size_t end = 0; end != std::string::npos; begin = end + 1) {
        end = text.find(at, begin);
        words.push_back(text.substr(begin, end == std::string::npos ? end : end - begin));
    }
    return words;
}

} // namespace pktgen

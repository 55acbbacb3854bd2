// SPDX-License-Identifier: BSD-3-Clause
#include "peers/options.hpp"

#include <charconv>
#include <sched.h>
#include <string_view>

namespace peers
{

namespace
{

bool read_number(std::string_view text, uint64_t low, uint64_t high, uint64_t &value)
{
    const char *end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    return error == std::errc() && stop == end && value >= low && value <= high;
}

bool read_sizes(std::string_view text, std::vector<size_t> &sizes)
{
    while (!text.empty()) {
        const size_t comma = text.find(',');
        uint64_t size = 0;
        if (!read_number(text.substr(0, comma), 8, largest_message, size) ||
            sizes.size() == most_sizes)
            return false;
        sizes.push_back(size);
        text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
    }
    return !sizes.empty();
}

bool take(std::string_view name, const std::string &value, Options &options)
{
    uint64_t number = 0;
    if (name == "--side" && read_number(value, 0, 1, number))
        options.side = static_cast<unsigned>(number);
    else if (name == "--cpu" && read_number(value, 0, CPU_SETSIZE - 1, number))
        options.cpu = static_cast<unsigned>(number);
    else if (name == "--run-ms" && read_number(value, 1, 1000, number))
        options.run_ns = number * 1000000;
    else if (name == "--realtime" && read_number(value, 0, 1, number))
        options.realtime = number == 1;
    else if (name == "--shared")
        options.shared = value;
    else if (name == "--folder")
        options.folder = value;
    else if (name == "--form")
        options.form = value;
    else
        return name == "--sizes" && read_sizes(value, options.sizes);
    return true;
}

} // namespace

std::optional<Options> parse_options(int argc, char **argv, std::string &error)
{
    Options options;
    for (int at = 1; at < argc; at += 2) {
        if (std::string_view(argv[at]) == "--") {
            options.words.assign(argv + at + 1, argv + argc);
            break;
        }
        const std::string value = at + 1 < argc ? argv[at + 1] : "";
        if (!take(argv[at], value, options)) {
            error = std::string(argv[at]) + " " + value + ": not understood";
            return std::nullopt;
        }
    }
    if (options.shared.empty() || options.sizes.empty()) {
        error = "needs --side 0|1 --cpu N --shared FILE --sizes A,B,... [--run-ms N] [--realtime "
                "0|1] [--folder DIR] "
                "[--form NAME] [-- WORDS]";
        return std::nullopt;
    }
    return options;
}

} // namespace peers

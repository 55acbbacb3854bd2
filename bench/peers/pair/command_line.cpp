// SPDX-License-Identifier: BSD-3-Clause
#include "peers/pair/command_line.hpp"

#include "options.hpp"

#include <algorithm>
#include <sched.h>
#include <string_view>

namespace peers
{

namespace
{

bool read_sizes(std::string_view text, std::vector<size_t> &sizes)
{
    while (!text.empty()) {
        const size_t comma = text.find(',');
        uint64_t size = 0;
        if (!app::parse_number(std::string(text.substr(0, comma)).c_str(), size) || size < 8 ||
            size > largest_message || sizes.size() == most_sizes)
            return false;
        sizes.push_back(size);
        text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
    }
    return !sizes.empty();
}

} // namespace

std::optional<Options> parse_options(int argc, char **argv, std::string &error)
{
    Options o;
    std::string sizes;
    uint64_t run_ms = o.run_ns / 1000000;
    const std::vector<app::Option> table = {
        {"side", "0|1", app::Number{&o.side, 0, 1}, "0 starts, sends, asks; 1 answers"},
        {"cpu", "N", app::Number{&o.cpu, 0, CPU_SETSIZE - 1}, "where it runs"},
        {"shared", "FILE", &o.shared, "memory that both sides map"},
        {"sizes", "A,B,...", &sizes, "bytes of payload"},
        {"run-ms", "N", app::Number{&run_ms, 1, 1000}, "time for each figure"},
        {"realtime", nullptr, &o.realtime, "poll with real-time priority"},
        {"folder", "DIR", &o.folder, "for sockets and the like"},
        {"form", "NAME", &o.form, "of a program that knows several"},
    };
    char **words = std::find_if(argv, argv + argc,
                                [](const char *word) { return std::string_view(word) == "--"; });
    if (words != argv + argc)
        o.words.assign(words + 1, argv + argc);
    error = app::parse_options(static_cast<int>(words - argv), argv, table);
    o.run_ns = run_ms * 1000000;
    if (error.empty() && (o.shared.empty() || !read_sizes(sizes, o.sizes)))
        error = "needs --shared FILE and --sizes A,B,...; all options, and behind -- words for "
                "what is measured:\n" +
                app::describe_options(table);
    return error.empty() ? std::optional(o) : std::nullopt;
}

} // namespace peers

// SPDX-License-Identifier: BSD-3-Clause
#include "echo_options.hpp"

#include <algorithm>
#include <bit>
#include <vector>

#include "options.hpp"

namespace echo
{

namespace
{

constexpr uint64_t default_size = 1024;
constexpr uint64_t default_window = 32;
constexpr double default_timeout = 10;
constexpr uint64_t largest_message = (1U << 24) - 1; // 24 bits of length on the wire
constexpr uint64_t largest_window_bytes = uint64_t{1} << 30;

// What the device keeps ready for large messages unless told otherwise.
constexpr uint64_t default_buffer_bytes = 2048;
// Above this, larger buffers: only so many can be posted.
constexpr uint64_t large_message = uint64_t{4} << 20;
constexpr uint64_t large_buffer_bytes = 16384;
constexpr uint64_t default_buffers = 4096;
constexpr uint64_t most_posted = 2044;
constexpr uint64_t posted_step = 14; // they are posted, and counted, in lines of so many
constexpr uint64_t default_tx_mbufs = 4096;

std::vector<app::Option> option_table(Options &o)
{
    return {
        {"serve", nullptr, &o.serve, "send back whatever comes, until SIGINT"},
        {"send", "FILE", &o.send,
         "send FILE (- is standard input) to the serving side and\n"
         "compare what comes back with it, byte for byte"},
        {"size", "BYTES", app::Number{&o.size, 1, largest_message},
         "message size, 1 to 16777215; default 1024"},
        {"window", "N", app::Number{&o.window, 1, 65536},
         "messages under way per queue; default 32"},
        {"queues", "N", app::Number{&o.queues, 1, 64},
         "queue pairs, 1 to 64; default 1. The serving side needs\n"
         "at least as many as the sending side"},
        {"count", "N", app::Number{&o.count, 1, UINT64_MAX},
         "end after N messages; FILE is repeated as needed"},
        {"seconds", "S", &o.seconds, "send for S seconds; FILE is repeated as needed"},
        {"out", "FILE", &o.out, "write what comes back to FILE"},
        {"json", "FILE", &o.json, "write the report to FILE as JSON (- is standard output)"},
        {"timeout", "S", &o.timeout,
         "give up when no peer, or no message, comes for S seconds;\n"
         "default 10; when serving: wait for the first peer for ever"},
        {"once", nullptr, &o.once, "when serving: end when the first peer has left"},
        {"device", "NAME", &o.device, "device; default raw_plx_ntb0"},
        {"ring", "LINES", app::Number{&o.ring, 64, 65536},
         "ring of a queue in 64-byte lines, a power of two;\n"
         "default 4096"},
        {"max-message", "BYTES", app::Number{&o.max_message, 1, largest_message},
         "longest message this side takes; default what the\n"
         "device's buffers hold, or --size where that is more"},
        {"quiet", nullptr, &o.quiet, "no progress, only the report"},
        {"help", nullptr, &o.help, "this text"},
    };
}

/// @return empty, or the option that is of no use to the serving side
std::string misplaced_when_serving(const Options &o)
{
    const struct {
        const char *name;
        bool given;
    } table[] = {
        {"--size", o.size != 0},       {"--window", o.window != 0}, {"--count", o.count != 0},
        {"--seconds", o.seconds != 0}, {"--out", !o.out.empty()},   {"--json", !o.json.empty()},
    };
    for (const auto &row : table) {
        if (row.given)
            return std::string(row.name) + " goes with --send";
    }
    return {};
}

std::string check_send(Options &o)
{
    if (o.once)
        return "--once goes with --serve";
    o.size = o.size != 0 ? o.size : default_size;
    o.window = o.window != 0 ? o.window : default_window;
    o.timeout = o.timeout > 0 ? o.timeout : default_timeout;
    if (o.window > o.ring)
        return "--window " + std::to_string(o.window) + " is larger than the ring of " +
               std::to_string(o.ring) + " lines: lower it or raise --ring";
    if (o.size * o.window * o.queues > largest_window_bytes)
        return "--size x --window x --queues is more than 1 GiB under way";
    if (o.max_message != 0 && o.max_message < o.size)
        return "--size is larger than --max-message: the echo could not come back";
    return {};
}

} // namespace

std::string parse(int argc, char **argv, Options &options)
{
    std::string error = app::parse_options(argc, argv, option_table(options));
    if (!error.empty() || options.help)
        return error;
    if (options.serve == !options.send.empty())
        return "give one of --serve and --send FILE";
    if (!std::has_single_bit(options.ring))
        return "--ring " + std::to_string(options.ring) + ": must be a power of two";
    return options.serve ? misplaced_when_serving(options) : check_send(options);
}

std::string help_text()
{
    Options unused;
    return "Sends a file from one host through another one and back over ntbmsg, compares every\n"
           "byte, and reports round trips, rate and throughput.\n"
           "\n"
           "  ntbmsg-echo [EAL options] -- --serve [options]\n"
           "  ntbmsg-echo [EAL options] -- --send FILE [options]\n"
           "\n" +
           app::describe_options(option_table(unused)) +
           "\n"
           "K, M and G after a number multiply by 1024, 1024^2 and 1024^3. One lcore of each side\n"
           "polls (EAL's main lcore), so give the two sides different cores. On one machine,\n"
           "without a card:\n"
           "\n"
           "  ntbmsg-echo -l 0 --in-memory --no-pci --vdev=raw_plx_ntb0,cable=/tmp/cable -- "
           "--serve\n"
           "  ntbmsg-echo -l 1 --in-memory --no-pci --vdev=raw_plx_ntb0,cable=/tmp/cable -- "
           "--send FILE\n"
           "\n"
           "Without hugepages: --no-huge -m 256 --no-shconf instead of --in-memory.\n"
           "Exit status: 0 everything sent came back unchanged (or a signal ended it cleanly),\n"
           "1 it did not, 2 the command line is wrong.\n";
}

ntbmsg_endpoint_options endpoint_options(const Options &o)
{
    ntbmsg_endpoint_options options;
    ntbmsg_endpoint_options_init(&options);
    options.queues = static_cast<uint32_t>(o.queues);
    options.ring_lines = static_cast<uint32_t>(o.ring);
    const uint64_t longest = std::max(o.max_message, o.size);
    if (o.max_message != 0)
        options.max_message = static_cast<uint32_t>(o.max_message);
    // A whole message has to fit what is posted while up to two lines are being refilled.
    const bool large = longest > large_message;
    const uint64_t buffer_bytes = large ? large_buffer_bytes : default_buffer_bytes;
    const uint64_t pieces = (longest + buffer_bytes - 1) / buffer_bytes;
    const uint64_t needed = (pieces / posted_step + 3) * posted_step;
    if (large || needed > std::min(most_posted, default_buffers / 2 / o.queues)) {
        options.max_message = static_cast<uint32_t>(longest);
        options.buf_bytes = static_cast<uint32_t>(buffer_bytes);
        options.posted = static_cast<uint32_t>(needed);
        options.buffers = static_cast<uint32_t>(std::max(default_buffers, needed * 2 * o.queues));
    }
    options.tx_mbufs =
        static_cast<uint32_t>(std::max(default_tx_mbufs, 2 * (longest / default_buffer_bytes + 1)));
    return options;
}

} // namespace echo

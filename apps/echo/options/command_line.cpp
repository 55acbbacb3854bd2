// SPDX-License-Identifier: BSD-3-Clause
#include "options/command_line.hpp"

#include <algorithm>
#include <bit>
#include <vector>

#include "build.hpp"
#include "modes/modes.hpp"
#include "options.hpp"
#include "traffic/carrier.hpp"

namespace echo
{

namespace
{

constexpr uint64_t default_size = 1024;
constexpr uint64_t default_in_flight = 32;
constexpr double default_timeout = 10;
constexpr uint64_t most_bytes_in_flight = uint64_t{1} << 30;

// What the device keeps ready for large messages by default.
constexpr uint64_t default_buffer_bytes = 2048;
// Above this, larger buffers: their ring holds only so many.
constexpr uint64_t large_message = uint64_t{4} << 20;
constexpr uint64_t large_buffer_bytes = 16384;
constexpr uint64_t default_buffers = 4096;
constexpr uint64_t most_receive_buffers = 2044;
constexpr uint64_t least_ring = 4096;     // that a device chooses
constexpr uint64_t buffers_per_line = 14; // of the receive-buffer ring
constexpr uint64_t default_tx_mbufs = 4096;
constexpr uint64_t most_credit_bytes = uint64_t{1} << 20; // of a channel: keeps the ring busy

std::vector<app::Option> option_table(Options &o)
{
    return {
        {"serve", nullptr, &o.serve, "send back whatever comes, until SIGINT"},
        {"send", "FILE", &o.send,
         "send FILE (- is standard input) to the serving side and\n"
         "compare what comes back with it, byte for byte"},
        {"interactive", nullptr, &o.interactive,
         "take commands: from a prompt, or, where standard input is\n"
         "no terminal, a line each from there",
         'i'},
        {"cmdline-file", "FILE", &o.cmdline_file, "run the commands in FILE, a line each"},
        {"forward-mode", "MODE", &o.forward_mode,
         "what queues do: one of the modes below; default echo.\n"
         "Without commands: start at once, until SIGINT"},
        {"auto-start", nullptr, &o.auto_start, "with commands: start before the first one"},
        {"tx-first", nullptr, &o.tx_first,
         "start at once; queues that only send back send a burst"},
        {"dir", "FOLDER", &o.dir,
         "where mode file puts what the peer sends; without it\n"
         "nothing is received"},
        {"stats-period", "S", &o.stats_period, "show statistics every S seconds"},
        {"burst", "N", app::Number{&o.burst, 1, longest_burst},
         "messages a round, 1 to 512; default 32"},
        {"flows", "N", app::Number{&o.flows, 1, most_flows}, "flows of mode flowgen; default 256"},
        {"size", "BYTES", app::Number{&o.size, 1, longest_message},
         "message size, 1 to 16777215; default 1024 with --send,\n"
         "else the mode's"},
        {"in-flight", "N", app::Number{&o.in_flight, 1, most_in_flight},
         "messages in flight per queue; default 32 with --send,\n"
         "1 in mode ping"},
        {"queues", "N", app::Number{&o.queues, 1, 64},
         "queue pairs, 1 to 64; default 1. The serving side needs\n"
         "at least as many as the sending side"},
        {"channels", "N", app::Number{&o.channels, 1, most_channels},
         "with modes: N channels of the library, instead of queues\n"
         "or beside them; both sides have as many"},
        {"connect", nullptr, &o.connect, "connect the channels; one side does, the other listens"},
        {"build", "WHERE", &o.build,
         "where answers are built: mbuf (the one that came, and\n"
         "copied from there), or in-place, in receive buffers of\n"
         "the peer (--serve and mode echo); default mbuf"},
        {"count", "N", app::Number{&o.count, 1, UINT64_MAX},
         "end after N messages (in a mode: per queue); FILE is\n"
         "repeated as needed"},
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
         "default: the device's"},
        {"max-message", "BYTES", app::Number{&o.max_message, 1, longest_message},
         "longest message this side takes; default what the\n"
         "device's buffers hold, or --size where that is more"},
        {"quiet", nullptr, &o.quiet, "no progress, only the report"},
        {"version", nullptr, &o.version, "version of this program and of DPDK"},
        {"help", nullptr, &o.help, "this text"},
    };
}

std::string describe_modes()
{
    std::string text = "\nModes:\n";
    for (const Mode &mode : modes()) {
        std::string left = std::string("  ") + mode.name;
        left.resize(22, ' ');
        text += left + mode.help + "\n";
    }
    return text;
}

/// What an option goes with. The harness takes commands, or runs one mode alone.
enum Role : unsigned { serving = 1, sending = 2, commanded = 4, alone = 8 };

Role role_of(const Options &o)
{
    if (o.harness())
        return o.alone() ? alone : commanded;
    return o.serve ? serving : sending;
}

/// @return empty, or the option that has no effect in that role
std::string misplaced(const Options &o)
{
    const Role role = role_of(o);
    constexpr unsigned forwarding = commanded | alone;
    const struct {
        const char *name;
        bool given;
        unsigned roles;
        const char *with;
    } table[] = {
        {"--size", o.size != 0, sending | forwarding, "--send"},
        {"--in-flight", o.in_flight != 0, sending | forwarding, "--send"},
        {"--count", o.count != 0, sending | forwarding, "--send"},
        {"--seconds", o.seconds != 0, sending, "--send"},
        {"--out", !o.out.empty(), sending, "--send"},
        {"--json", !o.json.empty(), sending, "--send"},
        {"--quiet", o.quiet, sending, "--send"},
        {"--timeout", o.timeout != 0, serving | sending, "--send and --serve"},
        {"--once", o.once, serving, "--serve"},
        {"--auto-start", o.auto_start, commanded, "--interactive"},
        {"--tx-first", o.tx_first, forwarding, "--interactive"},
        {"--stats-period", o.stats_period != 0, forwarding, "--interactive"},
        {"--dir", !o.dir.empty(), forwarding, "--interactive"},
        {"--channels", o.channels != 0, forwarding, "--interactive"},
        {"--connect", o.connect, forwarding, "--interactive"},
        {"--build", !o.build.empty(), serving | forwarding, "--serve and mode echo"},
        {"--burst", o.burst != 0, forwarding, "--interactive"},
        {"--flows", o.flows != 0, forwarding, "--interactive"},
    };
    for (const auto &row : table) {
        if (row.given && (row.roles & role) == 0)
            return std::string(row.name) + " goes with " + row.with;
    }
    return {};
}

/// Where no command can choose another mode: options that the one mode does not use.
/// @return empty, or the first one
std::string unused_alone(const Options &o)
{
    const Mode &mode = *find_mode(o.forward_mode);
    const std::string name = mode.name;
    const bool makes_messages = mode.default_size != 0;
    const struct {
        const char *option;
        bool given, used;
    } table[] = {
        {"--size", o.size != 0, makes_messages},
        {"--count", o.count != 0, makes_messages && name != "file"},
        {"--in-flight", o.in_flight != 0, name == "ping"},
        {"--flows", o.flows != 0, name == "flowgen"},
        {"--dir", !o.dir.empty(), name == "file"},
        {"--tx-first", o.tx_first, !makes_messages},
        {"--build", !o.build.empty(), name == "echo"},
    };
    for (const auto &row : table) {
        if (row.given && !row.used)
            return std::string(row.option) + " has no effect in mode " + name;
    }
    return {};
}

std::string check_forward(const Options &o)
{
    if (!o.forward_mode.empty() && find_mode(o.forward_mode) == nullptr)
        return "--forward-mode " + o.forward_mode + ": must be one of " + mode_names(' ');
    if (o.connect && o.channels == 0)
        return "--connect goes with --channels";
    if (o.channels != 0 && o.queues == 64)
        return "--queues 64 leaves no queue pair to carry channels";
    return o.alone() ? unused_alone(o) : std::string();
}

std::string check_send(Options &o)
{
    o.size = o.size != 0 ? o.size : default_size;
    o.in_flight = o.in_flight != 0 ? o.in_flight : default_in_flight;
    o.timeout = o.timeout > 0 ? o.timeout : default_timeout;
    const uint64_t ring = o.ring != 0 ? o.ring : least_ring;
    if (o.in_flight > ring)
        return "--in-flight " + std::to_string(o.in_flight) + " is larger than the ring of " +
               std::to_string(ring) + " lines: lower it or give a larger --ring";
    if (o.size * o.in_flight * o.queues > most_bytes_in_flight)
        return "--size x --in-flight x --queues is more than 1 GiB";
    if (o.max_message != 0 && o.max_message < o.size)
        return "--size is larger than --max-message: the echo could not come back";
    return {};
}

} // namespace

std::string parse(int argc, char **argv, Options &options)
{
    std::string error = app::parse_options(argc, argv, option_table(options));
    if (!error.empty() || options.help || options.version)
        return error;
    if (options.serve + !options.send.empty() + options.harness() != 1)
        return "give one of --serve and --send FILE, or --interactive";
    if (options.ring != 0 && !std::has_single_bit(options.ring))
        return "--ring " + std::to_string(options.ring) + ": must be a power of two";
    if (options.queues == 0 && options.channels == 0)
        options.queues = 1;
    error = app::parse_build(options.build, options.in_place);
    if (error.empty())
        error = misplaced(options);
    if (!error.empty() || options.serve)
        return error;
    return options.harness() ? check_forward(options) : check_send(options);
}

std::string help_text()
{
    Options unused;
    return "Sends a file from one host through another one and back over ntbmsg, compares every\n"
           "byte, and reports round trips, rate and throughput; or forwards messages in one of\n"
           "many modes, as commands say.\n"
           "\n"
           "  ntbmsg-echo [EAL options] -- --serve [options]\n"
           "  ntbmsg-echo [EAL options] -- --send FILE [options]\n"
           "  ntbmsg-echo [EAL options] -- --interactive [options]\n"
           "\n" +
           app::describe_options(option_table(unused)) + describe_modes() +
           "\n"
           "K, M and G after a number multiply by 1024, 1024^2 and 1024^3. One lcore of each side\n"
           "polls, EAL's main lcore, or the others where commands are taken: give the two sides\n"
           "different cores. On one machine, without a card:\n"
           "\n"
           "  ntbmsg-echo -l 0 --in-memory --no-pci "
           "--vdev=raw_plx_ntb0,cable=$XDG_RUNTIME_DIR/cable -- "
           "--serve\n"
           "  ntbmsg-echo -l 1 --in-memory --no-pci "
           "--vdev=raw_plx_ntb0,cable=$XDG_RUNTIME_DIR/cable -- "
           "--send FILE\n"
           "\n"
           "A prompt on a main lcore that shares the CPU of the lcore that forwards (help and ? "
           "say\n"
           "what can be typed there):\n"
           "\n"
           "  ntbmsg-echo --lcores 0@1,1@1 --in-memory --no-pci "
           "--vdev=raw_plx_ntb0,cable=$XDG_RUNTIME_DIR/cable -- -i\n"
           "\n"
           "Without hugepages: --no-huge -m 256 --no-shconf instead of --in-memory.\n"
           "Exit status: 0 everything sent came back unchanged (or a signal ended it cleanly), "
           "all\n"
           "commands of a file were done; 1 it did not, or they were not; 2 the command line is\n"
           "wrong.\n";
}

namespace
{

/// Receive buffers that lie in the rings of all queue pairs, and those that remain for channels.
struct Buffers {
    uint64_t in_rings, for_channels;
};
Buffers buffers_of(const ntbmsg_endpoint_options &options)
{
    const uint64_t all = options.buffers != 0 ? options.buffers : default_buffers;
    const uint64_t pairs = options.queues + options.workers;
    const uint64_t in_rings = options.queue_buffers != 0 ? options.queue_buffers * pairs : all / 2;
    return {in_rings, all - in_rings};
}

} // namespace

ntbmsg_endpoint_options endpoint_options(const Options &o)
{
    ntbmsg_endpoint_options options;
    ntbmsg_endpoint_options_init(&options);
    options.queues = static_cast<uint32_t>(o.queues);
    options.workers = o.channels != 0;
    const uint64_t pairs = o.queues + options.workers;
    options.ring_lines = static_cast<uint32_t>(o.ring);
    const uint64_t longest = std::max(o.max_message, o.size);
    if (o.max_message != 0)
        options.max_message = static_cast<uint32_t>(o.max_message);
    // A whole message has to fit the receive buffers while up to two lines are being refilled.
    const bool large = longest > large_message;
    const uint64_t buffer_bytes = large ? large_buffer_bytes : default_buffer_bytes;
    const uint64_t pieces = (longest + buffer_bytes - 1) / buffer_bytes;
    const uint64_t needed = (pieces / buffers_per_line + 3) * buffers_per_line;
    if (large || needed > std::min(most_receive_buffers, default_buffers / 2 / pairs)) {
        options.max_message = static_cast<uint32_t>(longest);
        options.buf_bytes = static_cast<uint32_t>(buffer_bytes);
        options.queue_buffers = static_cast<uint32_t>(needed);
        options.buffers = static_cast<uint32_t>(std::max(default_buffers, needed * 2 * pairs));
    }
    // Each channel holds a whole message of its own.
    const Buffers buffers = buffers_of(options);
    if (o.channels * pieces > buffers.for_channels) {
        options.queue_buffers = static_cast<uint32_t>(buffers.in_rings / pairs);
        options.buffers = static_cast<uint32_t>(buffers.in_rings + o.channels * pieces);
    }
    options.tx_mbufs =
        static_cast<uint32_t>(std::max(default_tx_mbufs, 2 * (longest / default_buffer_bytes + 1)));
    return options;
}

uint32_t channel_credit_bytes(const Options &o)
{
    if (o.channels == 0)
        return 0;
    const ntbmsg_endpoint_options options = endpoint_options(o);
    const uint64_t bytes = options.buf_bytes != 0 ? options.buf_bytes : default_buffer_bytes;
    const uint64_t share = buffers_of(options).for_channels / o.channels * bytes;
    const uint64_t longest = std::max(o.max_message, o.size);
    return static_cast<uint32_t>(std::max({std::min(share, most_credit_bytes), longest, bytes}));
}

} // namespace echo

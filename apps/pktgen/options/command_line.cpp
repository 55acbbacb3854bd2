// SPDX-License-Identifier: BSD-3-Clause
#include "options/command_line.hpp"

#include <algorithm>
#include <bit>

#include "build.hpp"
#include "options.hpp"
#include "point/lists.hpp"

namespace pktgen
{

namespace
{

constexpr const char *default_device = "raw_plx_ntb0";
constexpr const char *default_sizes = "8,64,256,1K,1518,4K,64K";
constexpr const char *default_rates = "50K,200K,500K,1M";
// More than a message can have: a sweep up to 16M is wished for, and its last step left out.
constexpr uint64_t largest_asked_size = uint64_t{1} << 30;
constexpr double default_timeout = 10;
constexpr uint64_t largest_rate = 1000000000;

/// Options that are texts on the command line and something else afterwards.
struct Raw {
    std::string build, mode, size, burst, in_flight, queues, rate, mix, pattern, clock, pace,
        operation;
    std::string region, completion, copy;
    // 0: not given
    double seconds = 0;
    uint64_t repeat = 0, capture_bytes = 0;
};

std::vector<app::Option> option_table(Options &o, Raw &raw)
{
    return {
        {"serve", nullptr, &o.serve, "do what a client at the other end asks for, until SIGINT"},
        {"mode", "LIST", &raw.mode,
         "latency (ping-pong), load (round trips at given rates), rate and\n"
         "throughput (one way), bidirectional, incast (from the peers of\n"
         "several devices), replay (--pcap); default latency,rate"},
        {"size", "LIST", &raw.size,
         "message sizes: 64, or 8,64,1518, or 8-16M (powers of two), or\n"
         "1K-4K:512 (steps); default 8,64,256,1K,1518,4K,64K; sizes that\n"
         "the peer does not accept are left out"},
        {"mix", "MIX", &raw.mix,
         "sizes that change from message to message: imix (64, 594 and\n"
         "1518 bytes, 7:4:1), uniform:A-B, or pcap:FILE; default fixed"},
        {"burst", "LIST", &raw.burst,
         "messages per call, 1 to 256; default 1 for latency, else up to 32\nand 64 KiB"},
        {"in-flight", "LIST", &raw.in_flight,
         "latency, and one-sided operations in any mode: in flight per\n"
         "queue, 1 to 4096 and at most 16 MiB; default 1; for rates 64, at\n"
         "most 8 MiB"},
        {"queues", "LIST", &raw.queues,
         "queue pairs, 1 to 63 (31 with channels); default 1. Each has an\n"
         "lcore of its own where EAL has as many (-l), else they share.\n"
         "Serving: one number, how many clients may use"},
        {"rate", "LIST", &raw.rate,
         "load: messages per second, K and M being 10^3 and 10^6;\n"
         "default 50K,200K,500K,1M"},
        {"operation", "LIST", &raw.operation,
         "queue (messages of queue pairs), send (of channels, one for each\n"
         "queue), write, write-imm, read, fetch-add, compare-swap (atomic is\n"
         "these two); default queue. For all but queue give the server one\n"
         "of them, too, and both ends the same --queues"},
        {"region", "KIND", &raw.region,
         "what writes go to: direct (memory that stores reach) or served (by\n"
         "the other end's worker, as reads and atomics always are);\n"
         "default direct"},
        {"completion", "WHEN", &raw.completion,
         "a write is complete when stored, or when done at the other end;\n"
         "default: round trips done, rates stored"},
        {"copy", "LIST", &raw.copy,
         "copy engine of both ends for long messages: cpu, dma or auto;\n"
         "reconnects for each value; default: as the devices were set up (copy=)"},
        {"seconds", "S", &raw.seconds, "of each measurement; default 0.5"},
        {"count", "N", app::Number{&o.count, 1, UINT64_MAX},
         "end each measurement after N messages"},
        {"repeat", "N", app::Number{&raw.repeat, 1, 1000},
         "go through everything N times; default 3"},
        {"pattern", "NAME", &raw.pattern,
         "payload: counter, zeros, ones, random; default counter, whose sum\n"
         "is checked at the other end"},
        {"build", "WHERE", &raw.build,
         "where messages are built: mbuf (and copied from there), or in-place,\n"
         "in receive buffers of the peer (rate and throughput of queue and\n"
         "send); default mbuf"},
        {"verify", nullptr, &o.verify,
         "check CRC-32C and sequence of every message at the far end"},
        {"pcap", "FILE", &o.pcap, "replay: the packets to send"},
        {"pace", "PACE", &raw.pace, "replay: recorded, or max; default max"},
        {"capture", "FILE", &o.capture,
         "write what arrives at this end to FILE as pcap (not round trips)"},
        {"capture-bytes", "N", app::Number{&raw.capture_bytes, 1, uint64_t{16} << 30},
         "of one measurement at most; default 64M"},
        {"json", "FILE", &o.json, "results to FILE (- is standard output); doc/results.md"},
        {"csv", "FILE", &o.csv, "the same without histograms"},
        {"clock", "on|off", &raw.clock,
         "off: do not time single round trips, to see what timing costs"},
        {"no-probe", nullptr, &o.no_probe, "do not probe where the two cores are"},
        {"realtime", nullptr, &o.realtime,
         "measurements of up to 0.3 s run with real-time priority at this\n"
         "end, on a machine that has other work (root)"},
        {"stats-period", "S", &o.stats_period, "print counters every S seconds, at either end"},
        {"device", "NAME", &o.devices,
         "device; given again for incast, for serving several, or to go\n"
         "through several; default raw_plx_ntb0"},
        {"max-message", "BYTES", app::Number{&o.max_message, 1, largest_size},
         "longest message this end takes; default: what the device's buffers\n"
         "hold, and at the client, as much as --size needs"},
        {"ring", "LINES", app::Number{&o.ring, 64, 65536},
         "ring of a queue in 64-byte lines, a power of two; default: the device's"},
        {"timeout", "S", &o.timeout,
         "give up when no peer, or no answer, comes for S seconds; default\n"
         "10; when serving: wait for ever"},
        {"once", nullptr, &o.once, "serving: end when the first client has left"},
        {"quiet", nullptr, &o.quiet, "no progress, only the results"},
        {"version", nullptr, &o.version, "version of this program and of DPDK"},
        {"help", nullptr, &o.help, "this text"},
    };
}

template <typename Enum>
bool find_name(const std::string &word, unsigned count, Enum &value)
{
    for (unsigned i = 0; i < count; ++i) {
        if (word != name_of(static_cast<Enum>(i)))
            continue;
        value = static_cast<Enum>(i);
        return true;
    }
    return false;
}

std::string parse_modes(const std::string &text, std::vector<Mode> &modes)
{
    for (const std::string &word : split(text, ',')) {
        Mode mode;
        if (!find_name(word, mode_count, mode))
            return "--mode: there is no \"" + word +
                   "\"; there are latency, load, rate, throughput, bidirectional, incast, replay";
        if (std::find(modes.begin(), modes.end(), mode) == modes.end())
            modes.push_back(mode);
    }
    return {};
}

std::string parse_operations(const std::string &text, std::vector<Operation> &operations)
{
    const auto add = [&](Operation operation) {
        if (std::find(operations.begin(), operations.end(), operation) == operations.end())
            operations.push_back(operation);
    };
    for (const std::string &word : split(text.empty() ? "queue" : text, ',')) {
        Operation operation;
        if (word == "atomic") {
            add(Operation::fetch_add);
            add(Operation::compare_swap);
        } else if (find_name(word, operation_count, operation)) {
            add(operation);
        } else {
            return "--operation: there is no \"" + word +
                   "\"; there are queue, send, write, write-imm, read, fetch-add, compare-swap";
        }
    }
    return {};
}

std::string parse_copy(const std::string &text, std::vector<CopyMode> &modes)
{
    if (text.empty())
        return {};
    for (const std::string &word : split(text, ',')) {
        CopyMode mode;
        if (!find_name(word, copy_mode_count, mode))
            return "--copy " + text + ": must be a list of cpu, dma and auto";
        if (std::find(modes.begin(), modes.end(), mode) == modes.end())
            modes.push_back(mode);
    }
    return {};
}

std::string parse_rates(const std::string &text, std::vector<double> &rates)
{
    constexpr uint64_t decimal_kilo = 1000;
    for (const std::string &word : split(text, ',')) {
        uint64_t rate = 0;
        if (!parse_amount(word, decimal_kilo, rate) || rate == 0 || rate > largest_rate)
            return "--rate " + text + ": must be a list of rates from 1 to 1G messages per second";
        rates.push_back(static_cast<double>(rate));
    }
    return {};
}

std::string list_of(const char *name, const std::string &text, uint64_t low, uint64_t high,
                    std::vector<uint64_t> &values)
{
    const std::string wrong = parse_list(text, low, high, values);
    return wrong.empty() ? wrong : std::string("--") + name + " " + text + ": " + wrong;
}

bool has(const Options &o, Mode mode)
{
    return std::find(o.modes.begin(), o.modes.end(), mode) != o.modes.end();
}

bool has(const Options &o, Operation operation)
{
    return std::find(o.operations.begin(), o.operations.end(), operation) != o.operations.end();
}

bool any_one_sided(const Options &o)
{
    return std::any_of(o.operations.begin(), o.operations.end(), is_one_sided);
}

/// @return empty, or the option that is of no use to the server
std::string misplaced_when_serving(const Options &o, const Raw &raw)
{
    const struct {
        const char *name;
        bool given;
    } table[] = {
        {"--mode", !raw.mode.empty()},
        {"--size", !raw.size.empty()},
        {"--mix", !raw.mix.empty()},
        {"--burst", !raw.burst.empty()},
        {"--in-flight", !raw.in_flight.empty()},
        {"--rate", !raw.rate.empty()},
        {"--pattern", !raw.pattern.empty()},
        {"--build", !raw.build.empty()},
        {"--verify", o.verify},
        {"--pcap", !o.pcap.empty()},
        {"--pace", !raw.pace.empty()},
        {"--json", !o.json.empty()},
        {"--csv", !o.csv.empty()},
        {"--clock", !raw.clock.empty()},
        {"--count", o.count != 0},
        {"--region", !raw.region.empty()},
        {"--completion", !raw.completion.empty()},
        {"--copy", !raw.copy.empty()},
        {"--seconds", raw.seconds > 0},
        {"--repeat", raw.repeat != 0},
        {"--no-probe", o.no_probe},
    };
    for (const auto &row : table) {
        if (row.given)
            return std::string(row.name) + " is an option of the client, not of --serve";
    }
    return {};
}

std::string check_queues(const Options &o, uint64_t queues)
{
    if (want_channels(o) && queues > largest_channels)
        return "--queues " + std::to_string(queues) + ": at most " +
               std::to_string(largest_channels) + " with channels";
    return {};
}

std::string check_serve(Options &o, const Raw &raw)
{
    std::string error = misplaced_when_serving(o, raw);
    if (error.empty())
        error = parse_operations(raw.operation, o.operations);
    std::vector<uint64_t> queues;
    if (error.empty() && !raw.queues.empty())
        error = list_of("queues", raw.queues, 1, largest_queues, queues);
    if (error.empty() && queues.size() > 1)
        error = "--queues " + raw.queues + ": one number with --serve";
    if (!queues.empty())
        o.serve_queues = queues[0];
    return error.empty() ? check_queues(o, o.serve_queues) : error;
}

std::string parse_words(Options &o, const Raw &raw)
{
    if (!raw.mix.empty()) {
        const std::string error = parse_mix(raw.mix, o.mix);
        if (!error.empty())
            return error;
    }
    if (!raw.pattern.empty() && !find_name(raw.pattern, pattern_count, o.pattern))
        return "--pattern " + raw.pattern + ": must be counter, zeros, ones or random";
    if (!raw.clock.empty() && raw.clock != "on" && raw.clock != "off")
        return "--clock " + raw.clock + ": must be on or off";
    o.clock = raw.clock != "off";
    if (!raw.pace.empty() && raw.pace != "recorded" && raw.pace != "max")
        return "--pace " + raw.pace + ": must be recorded or max";
    o.recorded = raw.pace == "recorded";
    if (const std::string error = app::parse_build(raw.build, o.in_place); !error.empty())
        return error;
    if (!raw.region.empty() && raw.region != "direct" && raw.region != "served")
        return "--region " + raw.region + ": must be direct or served";
    o.served = raw.region == "served";
    if (!raw.completion.empty() && raw.completion != "stored" && raw.completion != "done")
        return "--completion " + raw.completion + ": must be stored or done";
    if (!raw.completion.empty())
        o.confirm = raw.completion == "done";
    return parse_copy(raw.copy, o.copy_modes);
}

std::string parse_lists(Options &o, const Raw &raw)
{
    const auto or_else = [](const std::string &text, const char *otherwise) {
        return text.empty() ? std::string(otherwise) : text;
    };
    std::string error = parse_modes(or_else(raw.mode, "latency,rate"), o.modes);
    if (error.empty())
        error = parse_operations(raw.operation, o.operations);
    if (error.empty())
        error = list_of("size", or_else(raw.size, default_sizes), 1, largest_asked_size, o.sizes);
    if (error.empty())
        error = list_of("burst", or_else(raw.burst, "0"), raw.burst.empty() ? 0 : 1, largest_burst,
                        o.bursts);
    if (error.empty())
        error = list_of("in-flight", or_else(raw.in_flight, "1"), 1, most_in_flight, o.in_flight);
    if (error.empty())
        error = list_of("queues", or_else(raw.queues, "1"), 1, largest_queues, o.queues);
    if (error.empty())
        error = parse_rates(or_else(raw.rate, default_rates), o.rates);
    o.in_flight_given = !raw.in_flight.empty();
    return error;
}

std::string check_one_sided_together(const Options &o, const Raw &raw)
{
    const bool writes = has(o, Operation::write) || has(o, Operation::write_imm);
    if (!raw.region.empty() && !writes)
        return "--region goes with --operation write or write-imm";
    if (!raw.completion.empty() && !has(o, Operation::write))
        return "--completion goes with --operation write";
    if (raw.completion == "stored" && o.served)
        return "--completion stored and --region served contradict each other";
    if (!any_one_sided(o))
        return {};
    if (has(o, Mode::replay) || o.mix.kind == MixKind::pcap)
        return "one-sided operations know no packets: not with --mode replay or --mix pcap:FILE";
    if (!o.capture.empty())
        return "--capture takes messages: not with one-sided operations";
    if (has(o, Operation::read) && o.verify && o.mix.kind != MixKind::fixed)
        return "--verify of reads wants one size: not with --mix";
    return {};
}

/// Options that none of the measurements looks at.
std::string check_effect(const Options &o, const Raw &raw)
{
    if (has(o, Mode::replay) && !raw.pattern.empty())
        return "--pattern has no effect with --mode replay";
    if (has(o, Mode::replay) && raw.seconds > 0)
        return "--seconds has no effect with --mode replay, which ends with the file";
    if (!raw.clock.empty() && !has(o, Mode::latency) && !has(o, Mode::load))
        return "--clock goes with --mode latency";
    if (!std::all_of(o.operations.begin(), o.operations.end(), is_atomic))
        return {};
    const struct {
        const char *name;
        const std::string &value;
    } table[] = {{"--size", raw.size}, {"--mix", raw.mix}, {"--pattern", raw.pattern}};
    for (const auto &row : table) {
        if (!row.value.empty())
            return std::string(row.name) + " has no effect on atomic operations";
    }
    return {};
}

/// What --build in-place cannot be had with.
std::string check_in_place(const Options &o)
{
    if (!o.in_place)
        return {};
    const auto one_way = [](Mode mode) { return mode == Mode::rate || mode == Mode::throughput; };
    if (!std::all_of(o.modes.begin(), o.modes.end(), one_way))
        return "--build in-place goes with --mode rate and throughput";
    if (any_one_sided(o))
        return "--build in-place goes with --operation queue and send";
    if (o.verify)
        return "--build in-place and --verify contradict each other: what was built is never read";
    if (o.mix.kind == MixKind::pcap)
        return "--build in-place knows no packets: not with --mix pcap:FILE";
    return {};
}

/// Options that contradict each other, or do nothing.
std::string check_together(const Options &o, const Raw &raw)
{
    if (o.once)
        return "--once goes with --serve";
    if (!raw.size.empty() && o.mix.kind != MixKind::fixed)
        return "--size and --mix contradict each other";
    if (!raw.rate.empty() && !has(o, Mode::load))
        return "--rate goes with --mode load";
    if (!raw.in_flight.empty() && !has(o, Mode::latency) && !any_one_sided(o))
        return "--in-flight goes with --mode latency, or with one-sided operations";
    if (has(o, Mode::replay) != !o.pcap.empty())
        return "--mode replay and --pcap FILE go together";
    if (has(o, Mode::replay) && (o.modes.size() > 1 || !raw.size.empty() || !raw.mix.empty()))
        return "--mode replay sends what the file holds: no other mode, --size or --mix";
    if (has(o, Mode::replay) && (o.queues.size() > 1 || o.queues[0] != 1))
        return "--mode replay keeps the order of the file: over one queue";
    if (!raw.pace.empty() && !has(o, Mode::replay))
        return "--pace goes with --mode replay";
    if (o.recorded && o.count != 0)
        return "--count and --pace recorded contradict each other";
    if (has(o, Mode::incast) && o.devices.size() < 2)
        return "--mode incast wants several peers: give --device twice or more";
    if (o.mix.kind == MixKind::pcap && (has(o, Mode::incast) || has(o, Mode::bidirectional)))
        return "--mix pcap:FILE is known to this end only: not for what the server sends";
    if (!o.capture.empty() && !has(o, Mode::bidirectional) && !has(o, Mode::incast))
        return "--capture takes what arrives at this end: give it to the server, or with "
               "--mode bidirectional or incast";
    if (!o.clock && has(o, Mode::load))
        return "--clock off and --mode load contradict each other";
    if (o.json == "-" && o.csv == "-")
        return "--json - and --csv - cannot share standard output";
    std::string error = check_queues(o, *std::max_element(o.queues.begin(), o.queues.end()));
    if (error.empty())
        error = check_one_sided_together(o, raw);
    return error.empty() ? check_effect(o, raw) : error;
}

void note_as_text(Options &o, const Raw &raw)
{
    const auto or_else = [](const std::string &text, const std::string &otherwise) {
        return text.empty() ? otherwise : text;
    };
    o.as_text = {
        {"mode", or_else(raw.mode, "latency,rate")},
        {"size", or_else(raw.size, default_sizes)},
        {"mix", or_else(raw.mix, "fixed")},
        {"burst", or_else(raw.burst, "auto")},
        {"in-flight", or_else(raw.in_flight, "1")},
        {"queues", or_else(raw.queues, "1")},
        {"rate", or_else(raw.rate, default_rates)},
        {"operation", or_else(raw.operation, "queue")},
        {"region", or_else(raw.region, "direct")},
        {"completion", or_else(raw.completion, "by mode")},
        {"copy", or_else(raw.copy, "as the devices are")},
        {"seconds", std::to_string(o.seconds)},
        {"count", std::to_string(o.count)},
        {"repeat", std::to_string(o.repeat)},
        {"pattern", name_of(o.pattern)},
        {"build", app::build_name(o.in_place)},
        {"verify", o.verify ? "yes" : "no"},
        {"pcap", o.pcap},
        {"pace", o.recorded ? "recorded" : "max"},
        {"clock", o.clock ? "on" : "off"},
        {"realtime", o.realtime ? "yes" : "no"},
        {"ring", o.ring != 0 ? std::to_string(o.ring) : "the device's"},
        {"max-message", std::to_string(o.max_message)},
    };
}

std::string check_drive(Options &o, const Raw &raw)
{
    std::string error = parse_words(o, raw);
    if (error.empty())
        error = parse_lists(o, raw);
    if (error.empty())
        error = check_together(o, raw);
    if (error.empty())
        error = check_in_place(o);
    if (o.timeout <= 0)
        o.timeout = default_timeout;
    note_as_text(o, raw);
    return error;
}

} // namespace

bool want_channels(const Options &o)
{
    return std::any_of(o.operations.begin(), o.operations.end(), wants_channel);
}

std::string parse(int argc, char **argv, Options &options)
{
    Raw raw;
    std::string error = app::parse_options(argc, argv, option_table(options, raw));
    if (!error.empty() || options.help || options.version)
        return error;
    if (options.devices.empty())
        options.devices.emplace_back(default_device);
    std::vector<std::string> sorted = options.devices;
    std::sort(sorted.begin(), sorted.end());
    if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
        return "--device: the same one twice";
    if (options.ring != 0 && !std::has_single_bit(options.ring))
        return "--ring " + std::to_string(options.ring) + ": must be a power of two";
    if (raw.capture_bytes != 0 && options.capture.empty())
        return "--capture-bytes goes with --capture";
    options.seconds = raw.seconds > 0 ? raw.seconds : options.seconds;
    options.repeat = raw.repeat != 0 ? raw.repeat : options.repeat;
    options.capture_bytes = raw.capture_bytes != 0 ? raw.capture_bytes : options.capture_bytes;
    return options.serve ? check_serve(options, raw) : check_drive(options, raw);
}

std::string help_text()
{
    Options unused;
    Raw raw;
    return "Traffic between two hosts over ntbmsg, measured: round trips, rates, throughput.\n"
           "\n"
           "  ntbmsg-pktgen [EAL options] -- --serve [options]\n"
           "  ntbmsg-pktgen [EAL options] -- [options]\n"
           "\n"
           "The second one is the client: it controls the server. Either may start first.\n"
           "\n" +
           app::describe_options(option_table(unused, raw)) +
           "\n"
           "LIST is one value or several between commas; every combination is measured. K, M and "
           "G\n"
           "after a number multiply by 1024, 1024^2 and 1024^3. EAL's main lcore of each end "
           "polls, "
           "and\n"
           "others for further queues: give all of them cores of their own. On one machine, "
           "without "
           "a\n"
           "card:\n"
           "\n"
           "  ntbmsg-pktgen -l 0 --in-memory --no-pci "
           "--vdev=raw_plx_ntb0,cable=$XDG_RUNTIME_DIR/cable -- "
           "--serve\n"
           "  ntbmsg-pktgen -l 1 --in-memory --no-pci "
           "--vdev=raw_plx_ntb0,cable=$XDG_RUNTIME_DIR/cable -- \\\n"
           "      --mode latency,throughput --size 8-64K --json result.json\n"
           "\n"
           "Without hugepages: --no-huge -m 512 --no-shconf instead of --in-memory. SIGINT ends a "
           "run\n"
           "early and keeps what was measured.\n"
           "Exit status: 0 everything was measured and every message arrived, 1 not so, 2 the "
           "command\n"
           "line is wrong, 128 + number of the signal that ended a run early.\n";
}

} // namespace pktgen

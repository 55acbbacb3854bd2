// SPDX-License-Identifier: BSD-3-Clause
#include "campaign/measure.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

namespace bench
{

namespace
{

constexpr uint64_t ms = 1000000;
/// Of what is written in turn where the benchmark owns the memory. The limits have the same choice,
/// and more.
constexpr uint32_t line_footprints[] = {32 << 10, 128 << 10, 512 << 10, 4 << 20};
constexpr uint32_t footprints[] = {256 << 10, 1 << 20, 4 << 20};
constexpr uint64_t bound = 3000 * ms;
constexpr uint64_t rate_run = 25 * ms;
constexpr uint64_t round_trip_run = 500 * ms; ///< at most: the rounds end it long before
constexpr uint64_t round_trips = 50000;
constexpr double largest_spread = 0.15; ///< between the two runs of a figure in one pair

struct Run {
    double value;
    bool undisturbed;
    double at_percentile[percentile_count];
};

Op op_of(Kind kind)
{
    switch (kind) {
    case Kind::round_trip:
        return Op::host_rtt;
    case Kind::engine:
        return Op::host_engine;
    case Kind::write_round_trip:
        return Op::host_write_rtt;
    case Kind::write_rate:
    case Kind::write_stream:
        return Op::host_write_rate;
    case Kind::rate:
    case Kind::stream:
        break;
    }
    return Op::host_rate;
}

bool is_round_trip(const Measure &measure)
{
    return measure.kind == Kind::round_trip || measure.kind == Kind::write_round_trip;
}

/// What a queue writes is placed by the library.
bool owns_memory(const Measure &measure)
{
    return op_of(measure.kind) == Op::host_engine || op_of(measure.kind) == Op::host_write_rate;
}

Command command_for(const Measure &measure, bool timed, uint32_t footprint)
{
    Command command{};
    command.op = op_of(measure.kind);
    command.slot_count = footprint / measure.payload;
    command.payload = measure.payload;
    command.shape = measure.shape;
    command.used = measure.used;
    command.in_place = measure.in_place ? 1 : 0;
    command.bare = measure.bare ? 1 : 0;
    command.batch = measure.batch;
    command.rounds = round_trips;
    command.run_ns = is_round_trip(measure) ? round_trip_run : rate_run;
    command.bound_ns = bound;
    command.timed = timed;
    command.as_it_is = measure.as_it_is ? 1 : 0;
    return command;
}

double value_of(const Measure &measure, const Answers &answers)
{
    const Result &near = answers.of[0];
    const Result &receiver = answers.of[1];
    if (is_round_trip(measure))
        return static_cast<double>(near.ns) / static_cast<double>(near.counted);
    const double rate =
        static_cast<double>(receiver.counted) * 1e9 / static_cast<double>(receiver.ns);
    return measure.kind == Kind::rate || measure.kind == Kind::write_rate ? rate
                                                                          : rate * measure.payload;
}

/// Says what is wrong with an answer that has no error of its own.
std::string refuse(const Measure &measure, const Answers &answers)
{
    if (answers.of[0].count != answers.of[1].count)
        return std::to_string(answers.of[0].count) + " messages were sent, " +
               std::to_string(answers.of[1].count) + " came";
    const Result &timed = answers.of[is_round_trip(measure) ? 0 : 1];
    return timed.ns == 0 || timed.counted == 0 ? "too few messages for a figure" : "";
}

bool open_engine(Session &session, Command command, std::string &error)
{
    command.op = Op::host_engine_open;
    const auto opened = session.run(command);
    error = !opened ? session.error() : opened->error() ? opened->text() : "";
    return error.empty();
}

std::optional<Run> run_in(Session &session, const Measure &measure, bool timed, uint32_t footprint,
                          std::string &error)
{
    Command command = command_for(measure, timed, footprint);
    if (!session.shape_hosts(measure.shape)) {
        error = session.error();
        return std::nullopt;
    }
    if (measure.kind == Kind::engine && !open_engine(session, command, error))
        return std::nullopt;
    const auto answers = session.run(command);
    if (measure.kind == Kind::engine) {
        command.op = Op::host_engine_close;
        session.run(command);
    }
    if (!answers) {
        error = session.error();
        return std::nullopt;
    }
    error = answers->error() ? answers->text() : refuse(measure, *answers);
    if (!error.empty()) {
        Command drain{};
        drain.op = Op::host_drain;
        drain.bound_ns = bound;
        session.run(drain);
        session.forget_shape();
        return std::nullopt;
    }
    Run run{value_of(measure, *answers), answers->undisturbed(), {}};
    std::copy_n(answers->of[0].at_percentile, percentile_count, run.at_percentile);
    return run;
}

std::span<const uint32_t> footprints_of(const Measure &measure)
{
    if (measure.kind == Kind::write_rate)
        return line_footprints;
    return footprints;
}

/// The best of all footprints, where there is a choice.
std::optional<Run> take_run(Session &session, const Measure &measure, bool timed,
                            std::string &error)
{
    if (!owns_memory(measure))
        return run_in(session, measure, timed, 0, error);
    std::optional<Run> best;
    for (const uint32_t footprint : footprints_of(measure)) {
        if (footprint / measure.payload < 2 * measure.batch)
            continue;
        const auto run = run_in(session, measure, timed, footprint, error);
        if (!run)
            return std::nullopt;
        if (!best || run->value > best->value)
            best = run;
    }
    return best;
}

/// The same over fewer layers is the limit, or the same copied out of mbufs.
std::optional<Limit> layer_limit(Session &session, Measure measure, std::string &error)
{
    const bool in_place = std::exchange(measure.in_place, false);
    measure.used = measure.against;
    const auto run = take_run(session, measure, false, error);
    if (!run)
        return std::nullopt;
    return Limit{run->value, in_place            ? "copied out of mbufs"
                             : measure.used == 0 ? "the bare queue"
                                                 : "one of the channels"};
}

std::string why_disturbed(const Pair &pair, const Run &before, const Run &after)
{
    if (!same_place(pair.probe_before_ns, pair.probe_after_ns))
        return "placement changed";
    if (!before.undisturbed || !after.undisturbed)
        return "a host lost its core for a while";
    if (std::fabs(before.value - after.value) > largest_spread * pair.value)
        return "the two runs of the figure differ";
    return "";
}

} // namespace

std::optional<Limit> take_limit(Session &session, const Measure &measure)
{
    switch (measure.kind) {
    case Kind::round_trip:
    case Kind::write_round_trip:
        return ping_limit(session, measure.payload);
    case Kind::write_rate: // nothing but the data says that it is there
        return ring_limit(session, static_cast<uint32_t>(measure.payload / line_bytes));
    case Kind::rate:
        // The message and a word or two that say it is there, in whole lines.
        return ring_limit(session, static_cast<uint32_t>(measure.payload / line_bytes + 1));
    case Kind::stream:
    case Kind::engine:
    case Kind::write_stream:
        break;
    }
    // A message that is longer than the pieces comes from as many bytes of memory.
    constexpr uint32_t longest_piece = 65536;
    // Messages in one mbuf are written by who sends them.
    const bool written =
        measure.kind == Kind::stream && measure.payload <= longest_piece && !measure.as_it_is;
    return copy_limit(session, measure.payload > longest_piece ? measure.payload : 0, written);
}

bool exercise(Session &session, const Measure &measure, std::string &error)
{
    return take_run(session, measure, false, error).has_value();
}

std::optional<Pair> take_pair(Session &session, const Measure &measure, std::string &error)
{
    const auto probe_before = probe(session);
    const auto before = probe_before ? take_run(session, measure, false, error) : std::nullopt;
    const auto limit = !before                               ? std::nullopt
                       : measure.against == Measure::machine ? take_limit(session, measure)
                                                             : layer_limit(session, measure, error);
    const auto after = limit ? take_run(session, measure, false, error) : std::nullopt;
    const auto probe_after = after ? probe(session) : std::nullopt;
    if (!probe_after)
        return std::nullopt;
    Pair pair{(before->value + after->value) / 2,
              limit->value,
              limit->how,
              *probe_before,
              *probe_after,
              classify(*probe_before),
              {},
              ""};
    pair.disturbed = why_disturbed(pair, *before, *after);
    if (measure.kind != Kind::round_trip)
        return pair;
    const auto tails = take_run(session, measure, true, error);
    if (!tails)
        return std::nullopt;
    std::copy_n(tails->at_percentile, percentile_count, pair.at_percentile);
    return pair;
}

double median(std::vector<double> values)
{
    if (values.empty())
        return 0;
    const size_t middle = values.size() / 2;
    std::sort(values.begin(), values.end());
    return values.size() % 2 != 0 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

} // namespace bench

// SPDX-License-Identifier: BSD-3-Clause
// Pairs of a figure and its limit, taken within a second on the same two cores between the same two
// processes, with a placement probe before and after.
#ifndef BENCH_CAMPAIGN_MEASURE_HPP
#define BENCH_CAMPAIGN_MEASURE_HPP

#include "campaign/limits.hpp"
#include "placement.hpp"
#include "session/session.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace bench
{

using app::classify;
using app::name_of;
using app::same_place;
using Class = app::Placement;
inline constexpr unsigned class_count = app::placement_count;

/// Round trips in ns, rates in messages or writes per second, streams and copies of a DMA engine in
/// bytes per second.
enum class Kind { round_trip, rate, stream, engine, write_round_trip, write_rate, write_stream };

/// Something that is measured together with its limit; figures are derived from it.
struct Measure {
    std::string_view name;
    Kind kind;
    uint32_t payload; ///< bytes
    uint32_t batch;   ///< messages per burst
    Shape shape = usual_shape;
    uint32_t used = 0;          ///< channels, in turn; 0: the bare queue
    uint32_t against = machine; ///< the limit: the same over so many channels, or over the queue
    static constexpr uint32_t machine = UINT32_MAX; ///< what two cores can do
    bool as_it_is = false; ///< of streams: the payload is not written, nor is the limit's
    bool in_place = false; ///< built in receive buffers of the peer; the limit is copied there
    bool bare = false;     ///< mbufs without the library
};

inline constexpr Measure measures[] = {
    {"rtt.8", Kind::round_trip, 8, 1},
    {"rtt.64", Kind::round_trip, 64, 1},
    {"bare.rtt.64", Kind::round_trip, 64, 1, usual_shape, 0, Measure::machine, false, false, true},
    {"rate.32", Kind::rate, 32, 32},
    {"rate.64", Kind::rate, 64, 32},
    {"bare.rate.64", Kind::rate, 64, 32, usual_shape, 0, Measure::machine, false, false, true},
    {"rate.256", Kind::rate, 256, 32},
    {"stream.2048", Kind::stream, 2048, 8}, // no figure: fills the usual buffers
    {"stream.4096", Kind::stream, 4096, 4, {4096, 0, 0}},
    {"carry.4096", Kind::stream, 4096, 4, {4096, 0, 0}, 0, Measure::machine, true},
    {"build.stream.4096", Kind::stream, 4096, 4, {4096, 0, 0}, 0, 0, false, true},
    {"build.rate.1518", Kind::rate, 1518, 32, usual_shape, 0, 0, false, true},
    {"engine.4096", Kind::engine, 4096, 16},
    {"engine.65536", Kind::engine, 65536, 4},
    {"engine.1048576", Kind::engine, 1048576, 1},
    {"channel.rtt.8", Kind::round_trip, 8, 1, {2048, 1, 0}, 1, 0},
    {"channel.rtt.64", Kind::round_trip, 64, 1, {2048, 1, 0}, 1, 0},
    {"poller.rtt.64", Kind::round_trip, 64, 1, {2048, 1, 0, 1}, 1},
    {"channel.rate.64", Kind::rate, 64, 32, {2048, 1, 0}, 1, 0},
    {"channels.rate.64", Kind::rate, 64, 32, {2048, 1000, 0}, 1000, 1},
    {"channel.stream.1048576", Kind::stream, 1048576, 1, {long_room, 1, 0}, 1},
    {"write.rtt.8", Kind::write_round_trip, 8, 1, {2048, 1, 1}},
    {"write.rate.64", Kind::write_rate, 64, 32, {2048, 1, 1}},
    {"write.stream.65536", Kind::write_stream, 65536, 1, {2048, 1, 1}},
};

struct Pair {
    double value; ///< of the figure, the mean of one run before and one after the limit
    double limit;
    std::string limit_how;
    double probe_before_ns;
    double probe_after_ns;
    Class placement;
    double at_percentile[percentile_count]; ///< ns; round trips only
    std::string disturbed;                  ///< why the pair does not count; empty if it does
};

/// The limit that belongs to a measure, in its unit.
std::optional<Limit> take_limit(Session &, const Measure &);

/// One run of a measure, for what it leaves behind. @return whether it went well, else @p error
bool exercise(Session &, const Measure &, std::string &error);

/// Takes one pair. @return nothing: the figure failed, @p error says why; or, with @p error empty,
/// a limit could not be taken, session.error() says why
std::optional<Pair> take_pair(Session &, const Measure &, std::string &error);

/// Median, 0 of nothing.
double median(std::vector<double> values);

} // namespace bench

#endif

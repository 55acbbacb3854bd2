// SPDX-License-Identifier: BSD-3-Clause
// The figures by name: what they are made of and what they have to reach.
#ifndef BENCH_RESULTS_FIGURES_HPP
#define BENCH_RESULTS_FIGURES_HPP

#include "campaign/campaign.hpp"

#include <string>
#include <string_view>

namespace bench
{

enum class Source { value, beyond_limit, memory, idle, crossover, turnover, wakeup, kill, restart };
enum class Reach { none, ratio_at_most, ratio_at_least, value_at_least, value_at_most };

/// What a figure has to reach in each class; 0: nothing is asked of it there.
using Bounds = std::array<double, class_count>;

constexpr Bounds everywhere(double bound)
{
    return {bound, bound, bound, bound};
}
/// In the order of Class. Of two threads of one core nothing is asked.
constexpr Bounds by_class(double ccx, double other, double far)
{
    return {0, ccx, other, far};
}

struct Figure {
    std::string_view name;
    Source source;
    std::string_view measure; ///< of measures[], for the first two sources
    std::string_view unit;
    double scale; ///< unit per basic unit
    Reach reach;
    Bounds bounds; ///< of the ratio, or of the value in its unit
};

inline constexpr Figure figures[] = {
    {"qp.rtt.8", Source::value, "rtt.8", "ns", 1, Reach::ratio_at_most, everywhere(1.8)},
    {"qp.rtt.64", Source::value, "rtt.64", "ns", 1, Reach::ratio_at_most,
     by_class(1.35, 1.15, 1.1)},
    {"qp.ovh.8", Source::beyond_limit, "rtt.8", "ns", 1, Reach::value_at_most, everywhere(80)},
    {"qp.ovh.64", Source::beyond_limit, "rtt.64", "ns", 1, Reach::value_at_most,
     by_class(40, 40, 60)},
    {"bare.rtt.64", Source::value, "bare.rtt.64", "ns", 1, Reach::none, {}},
    {"bare.rate.64", Source::value, "bare.rate.64", "Mmsg/s", 1e-6, Reach::none, {}},
    {"qp.rate.32", Source::value, "rate.32", "Mmsg/s", 1e-6, Reach::ratio_at_least,
     by_class(0.4, 0.45, 0.8)},
    {"qp.rate.64", Source::value, "rate.64", "Mmsg/s", 1e-6, Reach::ratio_at_least,
     by_class(0.65, 0.65, 0.8)},
    {"qp.rate.256", Source::value, "rate.256", "Mmsg/s", 1e-6, Reach::ratio_at_least,
     by_class(0.5, 0.65, 0.5)},
    {"qp.stream.4096", Source::value, "stream.4096", "GB/s", 1e-9, Reach::ratio_at_least,
     by_class(0.85, 0.9, 0.7)},
    {"qp.carry.4096", Source::value, "carry.4096", "GB/s", 1e-9, Reach::none, {}},
    {"build.stream.4096", Source::value, "build.stream.4096", "GB/s", 1e-9, Reach::none, {}},
    {"build.rate.1518", Source::value, "build.rate.1518", "Mmsg/s", 1e-6, Reach::none, {}},
    {"mem.host", Source::memory, "", "MiB", 1.0 / (1 << 20), Reach::value_at_most, everywhere(64)},
    {"idle.cpu", Source::idle, "", "%", 100, Reach::none, {}},
    {"dma.stream.4096", Source::value, "engine.4096", "GB/s", 1e-9, Reach::ratio_at_least,
     by_class(0.85, 0.9, 0.7)},
    {"dma.stream.65536", Source::value, "engine.65536", "GB/s", 1e-9, Reach::ratio_at_least,
     by_class(0.85, 0.9, 0.7)},
    {"dma.stream.1048576", Source::value, "engine.1048576", "GB/s", 1e-9, Reach::ratio_at_least,
     by_class(0.85, 0.9, 0.7)},
    {"chan.rtt.8", Source::value, "channel.rtt.8", "ns", 1, Reach::ratio_at_most, everywhere(1.15)},
    {"chan.rtt.64", Source::value, "channel.rtt.64", "ns", 1, Reach::ratio_at_most,
     everywhere(1.15)},
    {"poller.rtt.64", Source::value, "poller.rtt.64", "ns", 1, Reach::none, {}},
    {"chan.rate.64", Source::value, "channel.rate.64", "Mmsg/s", 1e-6, Reach::ratio_at_least,
     everywhere(0.9)},
    {"chan1000.rate.64", Source::value, "channels.rate.64", "Mmsg/s", 1e-6, Reach::ratio_at_least,
     everywhere(0.8)},
    {"msg.stream.1048576", Source::value, "channel.stream.1048576", "GB/s", 1e-9,
     Reach::ratio_at_least, everywhere(0.85)},
    {"write.rtt.8", Source::value, "write.rtt.8", "ns", 1, Reach::ratio_at_most, everywhere(2.5)},
    {"write.rate.64", Source::value, "write.rate.64", "Mwrite/s", 1e-6, Reach::value_at_least,
     by_class(100, 80, 60)},
    {"write.stream.65536", Source::value, "write.stream.65536", "GB/s", 1e-9, Reach::ratio_at_least,
     by_class(0.85, 0.9, 0.7)},
    {"dma.rate.64", Source::turnover, "", "Mdesc/s", 1e-6, Reach::none, {}},
    {"copy.crossover", Source::crossover, "", "bytes", 1, Reach::none, {}},
    {"sleep.wakeup", Source::wakeup, "", "us", 1e-3, Reach::none, {}},
    {"link.kill_to_event", Source::kill, "", "ms", 1e-6, Reach::value_at_most, everywhere(50)},
    {"link.restart_to_message", Source::restart, "", "ms", 1e-6, Reach::value_at_most,
     everywhere(100)},
};
inline constexpr size_t figure_count = std::size(figures);

using Selection = std::array<bool, figure_count>;

/// Selects figures by name, or by the beginning of names up to a dot ("qp.rate").
/// @return false if there is none of that name
bool select(std::string_view name, Selection &);

/// What has to be measured for them.
void plan_for(const Selection &, Plan &);

/// One line of the table.
struct Row {
    const Figure *figure = nullptr;
    std::optional<double> value; ///< in the figure's unit, as is the limit
    std::optional<double> limit;
    std::optional<double> ratio;
    std::optional<Class> placement;
    std::string verdict; ///< reached, missed, shown, never, disturbed, failed, missing
    std::string note;    ///< why it failed, how many pairs
};

/// What the figure has to reach where a row was taken; 0: nothing.
double bound_of(const Row &);

/// The row of a figure in one class; without pairs there its verdict is "missing".
Row row_in_class(const Figure &, const Findings &, Class);
/// The row that comes first: of the class with most pairs that count.
Row row_of(const Figure &, const Findings &);

} // namespace bench

#endif

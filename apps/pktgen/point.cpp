// SPDX-License-Identifier: BSD-3-Clause
#include "point.hpp"

#include <cmath>

namespace pktgen
{

namespace
{

constexpr const char *modes[mode_count] = {"latency",       "load",   "rate",  "throughput",
                                           "bidirectional", "incast", "replay"};
constexpr const char *operations[operation_count] = {"queue", "send"};
constexpr const char *patterns[pattern_count] = {"counter", "zeros", "ones", "random"};

template <typename Enum>
bool known(Enum value, unsigned count)
{
    return static_cast<unsigned>(value) < count;
}

} // namespace

const char *name_of(Mode mode)
{
    return modes[static_cast<unsigned>(mode)];
}

const char *name_of(Operation operation)
{
    return operations[static_cast<unsigned>(operation)];
}

const char *name_of(Pattern pattern)
{
    return patterns[static_cast<unsigned>(pattern)];
}

std::string check(const Point &p)
{
    if (!known(p.mode, mode_count) || !known(p.way, way_count) ||
        !known(p.operation, operation_count) || !known(p.pattern, pattern_count) ||
        !known(p.mix, mix_count))
        return "something that this version does not know";
    if (p.size == 0 || p.size > p.size_to || p.size_to > largest_size)
        return "a message size out of range";
    if (p.burst == 0 || p.burst > largest_burst)
        return "a burst out of range";
    if (p.window == 0 || p.window > largest_window)
        return "a window out of range";
    if (p.queues == 0 || p.queues > largest_queues)
        return "a number of queues out of range";
    if (p.run_us == 0 || p.run_us > longest_run_us)
        return "a duration out of range";
    if (!std::isfinite(p.rate) || p.rate < 0)
        return "a rate out of range";
    return {};
}

} // namespace pktgen

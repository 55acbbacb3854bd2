// SPDX-License-Identifier: BSD-3-Clause
#include "point/point.hpp"

#include <algorithm>
#include <cmath>

namespace pktgen
{

namespace
{

constexpr const char *modes[mode_count] = {"latency",       "load",   "rate",  "throughput",
                                           "bidirectional", "incast", "replay"};
constexpr const char *operations[operation_count] = {
    "queue", "send", "write", "write-imm", "read", "fetch-add", "compare-swap"};
constexpr uint32_t line = 64;
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

bool is_one_sided(Operation operation)
{
    return operation != Operation::queue && operation != Operation::send;
}

bool is_write(Operation operation)
{
    return operation == Operation::write || operation == Operation::write_imm;
}

bool is_atomic(Operation operation)
{
    return operation == Operation::fetch_add || operation == Operation::compare_swap;
}

bool wants_channel(Operation operation)
{
    return operation != Operation::queue;
}

bool far_end_counts(const Point &p)
{
    return !is_one_sided(p.operation) || p.operation == Operation::write_imm ||
           (p.operation == Operation::write && p.verify);
}

bool far_end_times(Operation operation)
{
    return !is_one_sided(operation) || operation == Operation::write_imm;
}

uint32_t stride_of(const Point &p)
{
    return (p.size_to + line - 1) / line * line;
}

uint32_t in_flight_room(uint32_t size, uint32_t queues)
{
    const uint64_t stride = (uint64_t{size} + line - 1) / line * line;
    return static_cast<uint32_t>(std::max<uint64_t>(1, most_exposed / queues / stride));
}

namespace
{

std::string check_one_sided(const Point &p)
{
    if (p.mode == Mode::replay || p.mix == MixKind::pcap)
        return "a one-sided operation for the packets of a file";
    if (is_atomic(p.operation) && (p.size != atomic_bytes || p.size_to != atomic_bytes))
        return "an atomic operation of other than 8 bytes";
    if (p.in_flight > std::min(most_in_flight, in_flight_room(p.size_to, p.queues)))
        return "more than 16 MiB in flight";
    if (p.verify && p.size < seal_bytes)
        return "a verified operation of less than 8 bytes";
    if (p.verify && p.operation == Operation::read && p.size != p.size_to)
        return "verified reads of more than one size";
    if (p.confirm && p.operation != Operation::write)
        return "a confirmation of what confirms itself";
    return {};
}

} // namespace

std::string check(const Point &p)
{
    if (!known(p.mode, mode_count) || !known(p.direction, direction_count) ||
        !known(p.operation, operation_count) || !known(p.pattern, pattern_count) ||
        !known(p.mix, mix_count))
        return "something that this version does not know";
    const bool one_sided = is_one_sided(p.operation);
    if (p.size == 0 || p.size > p.size_to ||
        p.size_to > (one_sided ? largest_operation : largest_size))
        return "a message size out of range";
    if (p.burst == 0 || p.burst > largest_burst)
        return "a burst out of range";
    if (p.in_flight == 0 || p.in_flight > most_in_flight)
        return "the number in flight is out of range";
    if (p.queues == 0 || p.queues > largest_queues)
        return "a number of queues out of range";
    if (p.run_us == 0 || p.run_us > longest_run_us)
        return "a duration out of range";
    if (!std::isfinite(p.rate) || p.rate < 0)
        return "a rate out of range";
    if (wants_channel(p.operation) && p.queues > largest_channels)
        return "a number of channels out of range";
    return one_sided ? check_one_sided(p) : std::string();
}

} // namespace pktgen

// SPDX-License-Identifier: BSD-3-Clause
// What two cores could do at best: each limit is tried in every form that this CPU has, and the
// best one counts.
#ifndef BENCH_CAMPAIGN_LIMITS_HPP
#define BENCH_CAMPAIGN_LIMITS_HPP

#include "session/session.hpp"

#include <string>

namespace bench
{

struct Limit {
    double value = 0;
    std::string how; ///< the form that was best
};

/// Round trip in ns of a two-line ping-pong, plain polling; the placement probe.
std::optional<double> probe(Session &);
/// The same with @p payload bytes, 8 or 64, written and read at each end.
std::optional<Limit> ping_limit(Session &, uint32_t payload);
/// Slots per second through a ring of slots of @p slot_lines lines, made up in registers.
std::optional<Limit> ring_limit(Session &, uint32_t slot_lines);
/// Bytes per second from a private buffer of the writer through shared memory, every line read, in
/// pieces of 4 KiB or of 64 KiB.
/// @param source  bytes that are copied in turn, a power of two up to 1 MiB; 0: each piece the same
/// @param written  the buffer is written before each copy: two passes over the payload
std::optional<Limit> copy_limit(Session &, uint32_t source = 0, bool written = false);

} // namespace bench

#endif

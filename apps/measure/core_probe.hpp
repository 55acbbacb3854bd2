// SPDX-License-Identifier: BSD-3-Clause
// How long two CPUs take to hand a line to each other and back, taken from within one process.
#ifndef APP_CORE_PROBE_HPP
#define APP_CORE_PROBE_HPP

#include <optional>

namespace app
{

/// A ping-pong of two lines, plain polling, between the calling thread and one of its own on
/// @p other_cpu, where nothing else may be polling meanwhile. Takes some milliseconds, 100 at most.
/// @return round trip in ns, for classify(); nothing where that CPU is not for this process, or it
///   did not answer in time
std::optional<double> probe_core(int other_cpu);

} // namespace app

#endif

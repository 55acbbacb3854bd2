// SPDX-License-Identifier: BSD-3-Clause
// Real-time priority of the polling thread for the length of one measurement, on a machine that has
// other work to do.
#ifndef PKTGEN_MEASURE_REALTIME_HPP
#define PKTGEN_MEASURE_REALTIME_HPP

#include <cstdint>

namespace pktgen
{

/// Longer measurements do without: heartbeats, which share the core, have to go on.
inline constexpr uint64_t longest_realtime_us = 300000;

class Realtime
{
public:
    /// @param on  false: changes nothing. Not allowed is no error: the measurement is noisier
    explicit Realtime(bool on);
    ~Realtime();
    Realtime(const Realtime &) = delete;
    Realtime &operator=(const Realtime &) = delete;

private:
    const bool on_;
};

} // namespace pktgen

#endif

// SPDX-License-Identifier: BSD-3-Clause
// What one run of the sending side found, as text and as JSON.
#ifndef ECHO_ROUND_TRIP_REPORT_HPP
#define ECHO_ROUND_TRIP_REPORT_HPP

#include <cstdint>
#include <cstdio>
#include <string>

#include <ntbmsg.h>

#include "histogram.hpp"
#include "options/command_line.hpp"

namespace echo
{

struct Report {
    std::string error;          ///< empty: all that was sent came back unchanged
    bool interrupted = false;   ///< a signal ended the run early
    uint64_t messages = 0;      ///< came back and were compared
    uint64_t bytes = 0;         ///< in them
    uint64_t built = 0;         ///< of them, in receive buffers of this side
    uint64_t missing = 0;       ///< sent and not come back
    double seconds = 0;         ///< from the first message sent to the last one back
    double cpu_share = 1;       ///< part of that time that the thread had its CPU
    uint32_t crc_sent = 0;      ///< CRC-32C of everything that was sent
    uint32_t crc_back = 0;      ///< CRC-32C of everything that came back
    app::Histogram round_trips; ///< TSC cycles
    ntbmsg_endpoint_stats stats{};
};

/// The text for people, on @p to ("stdout" or "stderr" as a stream).
void print(const Report &report, const Options &options, FILE *to);

/// @return empty, or one line that says why it could not be written
std::string write_json(const Report &report, const Options &options);

} // namespace echo

#endif

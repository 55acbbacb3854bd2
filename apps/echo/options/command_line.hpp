// SPDX-License-Identifier: BSD-3-Clause
// The command line of ntbmsg-echo.
#ifndef ECHO_OPTIONS_COMMAND_LINE_HPP
#define ECHO_OPTIONS_COMMAND_LINE_HPP

#include <cstdint>
#include <string>

#include <ntbmsg.h>

namespace echo
{

struct Options {
    bool help = false;
    bool version = false;
    bool serve = false;
    bool once = false;
    bool quiet = false;
    std::string send; ///< file to send, "-" for standard input
    std::string out;  ///< where what comes back is written
    std::string json;

    // The harness.
    bool interactive = false;
    bool auto_start = false;
    bool tx_first = false;
    std::string cmdline_file;
    std::string dir;          ///< of mode file; empty: not given
    std::string forward_mode; ///< of all queues; empty: not given
    uint64_t burst = 0;       ///< 0: not given
    uint64_t flows = 0;       ///< 0: not given
    double stats_period = 0;  ///< seconds; 0: never

    std::string build;     ///< of what is echoed; empty: not given
    bool in_place = false; ///< what it says

    std::string device = "raw_plx_ntb0";
    uint64_t size = 0;      ///< bytes of a message; 0: not given
    uint64_t in_flight = 0; ///< messages per queue; 0: not given
    uint64_t count = 0;     ///< messages; 0: what the file has
    uint64_t queues = 0;    ///< 0: not given; 1 after parse(), or 0 beside channels
    uint64_t channels = 0;
    bool connect = false;     ///< the channels; the other side listens
    uint64_t ring = 0;        ///< lines; 0: as the device chooses
    uint64_t max_message = 0; ///< bytes; 0: the device's default
    double seconds = 0;       ///< 0: until the file ends
    double timeout = 0;       ///< 0: not given

    /// The harness without commands: one mode, until a signal.
    bool alone() const { return harness() && !interactive && cmdline_file.empty(); }
    bool harness() const { return interactive || !cmdline_file.empty() || !forward_mode.empty(); }
};

/// Fills in @p options, defaults of the chosen side included.
/// @return empty, or one line that says what is wrong
std::string parse(int argc, char **argv, Options &options);

std::string help_text();

/// What the endpoint has to be like for these options.
ntbmsg_endpoint_options endpoint_options(const Options &options);
/// Bytes in receive buffers that a peer may have sent on each channel and this side not received:
/// an equal part of what the worker has for all of them, and at least the longest message that the
/// options name.
uint32_t channel_credit_bytes(const Options &options);

} // namespace echo

#endif

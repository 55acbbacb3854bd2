// SPDX-License-Identifier: BSD-3-Clause
// The command line of ntbmsg-pktgen.
#ifndef PKTGEN_OPTIONS_COMMAND_LINE_HPP
#define PKTGEN_OPTIONS_COMMAND_LINE_HPP

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "point/point.hpp"
#include "point/sizes.hpp"
#include "transport/copy_mode.hpp"

namespace pktgen
{

struct Options {
    bool help = false, version = false, serve = false, once = false, quiet = false,
         realtime = false;
    std::vector<std::string> devices;
    double timeout = 0;       ///< seconds; 0: not given
    uint64_t max_message = 0; ///< bytes this end takes; 0: the device's default
    uint64_t ring = 0;        ///< lines; 0: as the device chooses
    uint64_t serve_queues = 1;
    std::string capture;
    uint64_t capture_bytes = uint64_t{64} << 20;

    /// Operations that are measured, or, serving, that clients may use beside queue.
    std::vector<Operation> operations;

    std::vector<Mode> modes;
    std::vector<uint64_t> sizes, bursts, in_flight, queues; ///< bursts: 0 is "by size"
    std::vector<double> rates;                              ///< messages per second
    Mix mix;
    Pattern pattern = Pattern::counter;
    bool in_place = false; ///< messages are built in receive buffers of the peer
    bool verify = false, clock = true, recorded = false, no_probe = false;
    bool in_flight_given = false;
    bool served = false;              ///< regions are registered, so that all is served
    std::optional<bool> confirm;      ///< of writes; not given: by mode
    std::vector<CopyMode> copy_modes; ///< gone through; none: as the devices are
    std::string pcap;
    double seconds = 0.5;
    uint64_t repeat = 3;
    uint64_t count = 0;
    double stats_period = 0; ///< seconds; 0: none
    std::string json, csv;

    /// What the client was asked for, by name, for the result file.
    std::vector<std::pair<std::string, std::string>> as_text;
};

/// Whether endpoints need a worker.
bool want_channels(const Options &options);

/// @return empty, or one line that says what is wrong
std::string parse(int argc, char **argv, Options &options);

std::string help_text();

} // namespace pktgen

#endif

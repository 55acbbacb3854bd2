// SPDX-License-Identifier: BSD-3-Clause
// A result file, version 2: what was measured, on what, how. doc/results.md says what each field
// means, doc/result.schema.json what a file has to look like.
#ifndef APP_RESULT_HPP
#define APP_RESULT_HPP

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "latency.hpp"

namespace app
{

/// One way of a measurement, or one peer of it.
struct Flow {
    std::string name; ///< "out", "in", "echo", or the device whose peer it is
    uint64_t messages = 0, bytes = 0;
    double seconds = 0; ///< the time that these took, at the end that received them
    uint64_t queue = 0;
    int cpu = -1; ///< that drove the queue at the client
};

/// One measurement.
struct ResultPoint {
    std::string mode, operation, device, mix, pattern, clock;
    uint64_t size = 0; ///< bytes; of a mix: the mean
    uint64_t burst = 0, in_flight = 0, queues = 0, repeat = 0;
    double offered_rate = 0; ///< messages per second; 0: as many as possible
    bool verified = false;   ///< CRC and sequence of every message
    bool copied_by_dma = false;
    std::string copy_mode = "auto";         ///< or cpu, dma: what the device was asked for
    std::string build = "mbuf";             ///< or in-place: where what is sent is put together
    std::string completion = "received";    ///< or stored, done, reported: what counts as one
    std::string region = "none";            ///< direct or served, of one-sided operations
    uint64_t lcores = 1, server_lcores = 1; ///< that drove the queues

    bool complete = false;
    std::string error;    ///< one line; empty when complete
    bool rate_met = true; ///< as many messages went as were offered
    double cpu_share = 1; ///< of their time, in which the polling threads had their CPUs; the least
    std::string disturbed; ///< why the figures are not the program's alone; empty if they are
    double seconds = 0;
    std::vector<Flow> flows;
    std::optional<Latency> latency;               ///< from the actual time of sending
    std::optional<Latency> latency_from_intended; ///< from when it should have been sent

    uint64_t lost = 0, corrupt = 0, out_of_order = 0;
    uint64_t tx_full = 0, rx_nombuf = 0, captured = 0;
    uint64_t served = 0; ///< one-sided operations that the responder's workers did
    double probe_before_ns = 0, probe_after_ns = 0; ///< 0: not taken
    std::string placement;                          ///< class of the first probe, or why not
};

/// What all flows of a point carry together.
struct ResultRate {
    uint64_t messages = 0, bytes = 0;
    double messages_per_second = 0, bytes_per_second = 0;
};
ResultRate rate_of(const ResultPoint &point);

/// Sets `disturbed` by the CPU share and the probes, and, where the offered rate was not met, that
/// and why it is not complete.
void judge(ResultPoint &point);

struct ResultDevice {
    std::string name, platform, burst; ///< platform: twin or pci
    uint32_t pcie_generation = 0, lanes = 0;
    uint32_t ring_lines = 0, inline_max = 0, max_message = 0, peer_max_message = 0;
    uint64_t dma_min = 0; ///< bytes; 0: no message goes by DMA
};

struct Skipped {
    std::string what, why;
};

/// All of a file. Texts are of the machine that drives.
struct Result {
    std::string program, command, started; ///< started: ISO 8601, UTC
    bool complete = false;
    bool interrupted = false;
    std::string error;
    double seconds = 0;
    int client_cpu = -1, server_cpu = -1;
    bool same_machine = false;
    double load_1min = 0; ///< before the first measurement
    std::vector<std::pair<std::string, std::string>> options;
    std::vector<ResultDevice> devices;
    std::vector<ResultPoint> points;
    std::vector<Skipped> skipped;
};

std::string to_json(const Result &result);
/// One line a point, and one above them with the names of the columns.
std::string to_csv(const Result &result);

} // namespace app

#endif

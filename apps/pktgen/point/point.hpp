// SPDX-License-Identifier: BSD-3-Clause
// One measurement as both ends have to know it. It travels to the server (control.hpp), which
// checks it: plain fields of fixed width, values that check() accepts.
#ifndef PKTGEN_POINT_POINT_HPP
#define PKTGEN_POINT_POINT_HPP

#include <cstdint>
#include <string>

namespace pktgen
{

enum class Mode : uint8_t { latency, load, rate, throughput, bidirectional, incast, replay };
inline constexpr unsigned mode_count = 7;
enum class Direction : uint8_t { echo, out, in, both }; ///< as the client sees it
inline constexpr unsigned direction_count = 4;
enum class Operation : uint8_t {
    queue, ///< messages of queue pairs
    send,  ///< messages of channels
    write,
    write_imm,
    read,
    fetch_add,
    compare_swap,
};
inline constexpr unsigned operation_count = 7;
enum class Pattern : uint8_t { counter, zeros, ones, random };
inline constexpr unsigned pattern_count = 4;
enum class MixKind : uint8_t { fixed, imix, uniform, pcap };
inline constexpr unsigned mix_count = 4;

const char *name_of(Mode);
const char *name_of(Operation);
const char *name_of(Pattern);

inline constexpr uint32_t largest_size = (1U << 24) - 1; ///< 24 bits of length on the wire
inline constexpr uint32_t largest_burst = 256;
inline constexpr uint32_t most_in_flight = 4096;
inline constexpr uint32_t largest_queues = 63; ///< one more carries the control messages
/// With channels: each has a queue pair of its own.
inline constexpr uint32_t largest_channels = 31;
inline constexpr uint32_t largest_operation = 1U << 24; ///< bytes, of a one-sided operation
inline constexpr uint32_t atomic_bytes = 8;
/// Verified writes and reads begin with a number and a CRC.
inline constexpr uint32_t seal_bytes = 8;
/// Memory that an end exposes in a measurement, of all queues: bounds the number in flight of large
/// operations. No more, because taking memory back may hold up a link's heartbeats.
inline constexpr uint64_t most_exposed = uint64_t{16} << 20;
inline constexpr uint64_t longest_run_us = uint64_t{3600} * 1000 * 1000;

struct Point {
    Mode mode = Mode::latency;
    Direction direction = Direction::echo;
    Operation operation = Operation::queue;
    Pattern pattern = Pattern::counter;
    MixKind mix = MixKind::fixed;
    bool verify = false;  ///< CRC and sequence with every message
    bool clock = true;    ///< time each round trip
    bool confirm = false; ///< writes are complete when done at the far end, not when stored
    bool served = false;  ///< exposed memory is registered, so that writes are served as well
    uint32_t size = 0;    ///< bytes; of a mix: the smallest
    uint32_t size_to = 0; ///< bytes; of a mix: the largest
    uint32_t burst = 1;
    uint32_t in_flight = 1; ///< messages per queue; round trips only
    uint32_t queues = 1;
    uint64_t run_us = 0;
    uint64_t count = 0; ///< messages that are sent at most; 0: until the time is over
    double rate = 0;    ///< messages per second over all queues; load only
};

/// Neither queue nor send: the requester measures, the far end's program has no part in it.
bool is_one_sided(Operation operation);
bool is_write(Operation operation);
bool is_atomic(Operation operation);
/// Needs a channel for each queue.
bool wants_channel(Operation operation);
/// Whether the program at the far end counts what comes: messages, words, what it verifies.
bool far_end_counts(const Point &point);
/// Each is reported to the far end, so that it is timed there.
bool far_end_times(Operation operation);

/// Bytes from one operation's place in the exposed memory to the next one's.
uint32_t stride_of(const Point &point);
/// So many in flight have room in what an end exposes, at least 1.
uint32_t in_flight_room(uint32_t size, uint32_t queues);

/// @return empty, or what is wrong, for a person at either end
std::string check(const Point &point);

} // namespace pktgen

#endif

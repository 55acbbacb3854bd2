// SPDX-License-Identifier: BSD-3-Clause
// The memory that the parent and its two children share: commands, results, and the lines that the
// limits move. It is an unnamed memory file, so nothing can be left behind.
#ifndef BENCH_SESSION_SHARED_HPP
#define BENCH_SESSION_SHARED_HPP

#include "clock.hpp"
#include "kernel/kernel.hpp"

#include <atomic>
#include <cstdint>

namespace bench
{

/// What both children do at the same time. Child 0 starts, sends, writes; child 1 answers.
enum class Op : uint32_t {
    none,
    quit,
    ping,              ///< limit: ping-pong of one line
    stream,            ///< limit: ring or copy
    host_open,         ///< EAL, device, endpoint, connected
    host_shape,        ///< endpoint closed, opened in another shape, connected
    host_rtt,          ///< round trips through the library
    host_rate,         ///< one way through the library
    host_write_rtt,    ///< round trips by one-sided writes
    host_write_rate,   ///< one way by one-sided writes
    host_drain,        ///< takes out what a failed operation left behind
    host_memory,       ///< what a host occupies
    host_idle,         ///< CPU time beside the polling thread
    host_engine_open,  ///< a DMA channel of child 0, for host_engine and host_turnover
    host_engine_close, ///< the reverse
    host_engine,       ///< copies by a DMA channel, read by child 1
    host_turnover,     ///< descriptors of a DMA channel that child 0 prepares and collects
    host_wakeup,       ///< child 0 wakes child 1, which sleeps
    host_crossover,    ///< from which size on the device copies by DMA, and why
    host_await_loss,   ///< child 0 waits for the report that child 1 is lost
    host_restart,      ///< a new child 1 opens its host and sends a message, child 0 receives it
    host_close,
};

/// What the hosts' endpoints are opened with.
struct Shape {
    uint32_t buf_bytes; ///< of receive buffers, and of mbufs to send from
    uint32_t channels;  ///< open between the hosts; 0: the endpoints have no worker
    uint32_t regions;   ///< 1: each exposes one to the other, over the first channel
    uint32_t dedicated; ///< 1: a thread of its own drives the worker, on the same core
    uint32_t credit;    ///< messages that may be ahead on the first channel; 0: the usual number
    bool operator==(const Shape &) const = default;
};
inline constexpr Shape usual_shape{2048, 0, 0, 0, 0};

/// Room of mbufs for messages that are chains, and of buffers that take them.
inline constexpr uint32_t long_room = 32768;

struct Command {
    Op op;
    uint32_t payload;    ///< bytes
    uint32_t slot_lines; ///< stream
    uint32_t slot_count; ///< stream, host_engine, host_write_rate: a power of two
    uint32_t batch;      ///< slots or messages per burst
    Writer writer;
    Reader reader;
    PingForm form;
    uint32_t copied;   ///< stream: slots are copied from a private source of so many bytes; 0: not
    uint32_t written;  ///< stream: the source of each slot is written before it is copied
    uint32_t as_it_is; ///< host_rate: payloads are not written, but for their first words
    uint32_t timed;    ///< host_rtt: every round trip by itself, for percentiles
    Shape shape;       ///< host_open, host_shape, host_rtt
    uint32_t used;     ///< host_rtt, host_rate: channels in turn; 0: the bare queue
    uint32_t in_place; ///< host_rate: built in receive buffers of the peer, on the bare queue
    uint32_t bare;     ///< host_rtt, host_rate: without the library (mbufs/bare_way.hpp)
    uint64_t rounds;   ///< ping, host_rtt
    uint64_t run_ns;   ///< stream, host_rtt, host_rate: how long to send
    uint64_t bound_ns; ///< give up after that
};

inline constexpr unsigned percentile_count = 4;
inline constexpr double percentiles[percentile_count] = {50, 90, 99, 99.9};

struct Result {
    int32_t error;    ///< 0 or errno; text says more
    uint64_t count;   ///< messages, slots or round trips that went through
    uint64_t counted; ///< those that ns belongs to
    uint64_t ns;
    uint64_t check;   ///< sum over the first word of each message or line read
    uint64_t bytes;   ///< host_memory; host_crossover: 0 is never
    uint64_t wall_ns; ///< of the whole operation
    uint64_t cpu_ns;  ///< that its thread was running: less than wall_ns means it was pushed aside
    double at_percentile[percentile_count]; ///< ns
    char text[256]; ///< of an error; host_crossover: the curve, if there is one
};

/// One child's corner.
struct alignas(128) Seat {
    std::atomic<uint32_t> arrived;               ///< the last command it is ready to run
    alignas(128) std::atomic<uint32_t> finished; ///< the last command it has a result for
    Result result;
};

inline constexpr size_t data_bytes = size_t{8} << 20;

struct Shared {
    std::atomic<uint32_t> issued;  ///< number of the current command; a futex
    std::atomic<uint32_t> results; ///< counts them; a futex for the parent
    Command command;
    Seat seats[2];
    PingLine lines[2];
    Word head;
    Word tail;
    Word total;
    /// host_rate: 1 + messages sent in all, once the sender has ended.
    alignas(128) std::atomic<uint64_t> sent_total;
    alignas(4096) std::byte data[data_bytes];
};

/// Says in one line what went wrong; the first reason stays.
void fail(Result &, int error, const char *text);

using app::clock_ns;
using app::monotonic_ns;

/// Creates the memory in huge pages if it can. @return its descriptor, or -1 with errno
int shared_create();
/// @return the mapping, or nullptr with errno
Shared *shared_map(int fd);
size_t shared_map_bytes();

/// Sleeps until *word differs from @p seen, or for @p timeout_ns, or until a signal.
void futex_wait(const std::atomic<uint32_t> &word, uint32_t seen, uint64_t timeout_ns);
void futex_wake(const std::atomic<uint32_t> &word);

} // namespace bench

#endif

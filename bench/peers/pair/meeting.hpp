// SPDX-License-Identifier: BSD-3-Clause
// The memory that the two processes of a peer share beside what is measured: they come to the same
// point before each run, so that no time contains the waking of the other, and they probe where
// their cores are.
#ifndef BENCH_PEERS_PAIR_MEETING_HPP
#define BENCH_PEERS_PAIR_MEETING_HPP

#include "clock.hpp"
#include "kernel/kernel.hpp"

#include <atomic>
#include <cstdint>

namespace peers
{

inline constexpr size_t data_bytes = size_t{8} << 20;

/// What one process knows of a run and the other one needs.
struct Report {
    uint64_t counted; ///< messages after warming up; ns belongs to these
    uint64_t ns;
    uint64_t wall_ns; ///< of the whole run
    uint64_t cpu_ns;  ///< that its thread was running
};

struct alignas(128) Seat {
    std::atomic<uint32_t> arrived; ///< meetings it has come to
    alignas(128) std::atomic<uint32_t> failed;
    uint64_t max_message; ///< written before a meeting, read after it, as is report
    Report report;
};

struct Shared {
    Seat seats[2];
    bench::PingLine lines[2];
    bench::Word head; ///< of the ring that is the limit
    bench::Word tail;
    bench::Word total;
    alignas(128) std::atomic<uint64_t> sent_total; ///< 1 + messages of a stream, once it has ended
    alignas(4096) std::byte data[data_bytes];
};

class Meeting
{
public:
    Meeting() = default;
    ~Meeting();
    Meeting(const Meeting &) = delete;
    Meeting &operator=(const Meeting &) = delete;

    /// Maps @p path, a file of zeros of at least sizeof(Shared) bytes. @return false with errno
    /// @param realtime  poll with real-time priority. How long our core was taken away is measured
    bool open(const char *path, unsigned side, bool realtime);

    /// Polls until the other side is here too. @return false when it has failed or does not come
    bool meet();
    /// Lets the other side wait for us no longer.
    void fail();

    /// Both sides at once: the round trip of a word between the two cores. @return ns; 0: failed
    double probe();

    Shared &shared() { return *m_shared; }
    Seat &mine() { return m_shared->seats[m_side]; }
    const Seat &theirs() const { return m_shared->seats[1 - m_side]; }
    bool realtime() const { return m_realtime; }
    bool starts() const { return m_side == 0; }

private:
    Shared *m_shared = nullptr;
    unsigned m_side = 0;
    bool m_realtime = false;
};

using app::monotonic_ns;
using app::thread_cpu_ns;

} // namespace peers

#endif

// SPDX-License-Identifier: BSD-3-Clause
// The loops that are timed, one copy for everything that is compared. A Link is one end of it:
//
//   size_t max_message() const;   // bytes, 0 if unknown
//   bool send(size_t bytes, uint64_t value, unsigned n, uint64_t give_up_ns);
//       n messages; every word of message i is written as value + i; waits for room
//   int receive(size_t bytes, unsigned n, uint64_t &sum);
//       one look: takes 0 to n messages, and adds read_payload() of each; -1: it is broken
//
// and both give their messages' memory back themselves.
#ifndef PEERS_TRAFFIC_HPP
#define PEERS_TRAFFIC_HPP

#include "histogram.hpp"
#include "peers/meeting.hpp"
#include "peers/payload.hpp"

#include <algorithm>

#include <x86intrin.h>

namespace peers
{

inline constexpr uint64_t farewell = uint64_t{1} << 40; ///< value of the message that ends a series
inline constexpr uint64_t spins_per_look = 1024;        ///< how often a waiting loop sees the clock
inline constexpr uint64_t bound_ns = 15000000000u;      ///< everything ends by then
inline constexpr unsigned most_burst = 32;

/// Messages per burst: 32, or what 64 KiB hold.
constexpr unsigned burst_of(size_t bytes)
{
    return static_cast<unsigned>(std::clamp<size_t>(65536 / bytes, 1, most_burst));
}

/// Awaits one message. @return false: none came in time, or the link is broken
template <typename Link>
bool receive_one(Link &link, size_t bytes, uint64_t give_up, uint64_t &sum)
{
    for (uint64_t spin = 1;; spin++) {
        const int got = link.receive(bytes, 1, sum);
        if (got != 0)
            return got == 1;
        if (spin % spins_per_look == 0 && monotonic_ns() > give_up)
            return false;
    }
}

template <typename Link>
bool ask_once(Link &link, size_t bytes, uint64_t value, uint64_t give_up)
{
    uint64_t sum = 0;
    return link.send(bytes, value, 1, give_up) && receive_one(link, bytes, give_up, sum) &&
           sum == value * lines_of(bytes);
}

/// Round trips for @p run_ns. @p ticks NULL: only their sum is timed, without a look at the clock
/// in between. @return how many; 0: it failed
template <typename Link>
uint64_t ask(Link &link, size_t bytes, uint64_t run_ns, app::Histogram *ticks, uint64_t &ns)
{
    constexpr uint64_t rounds_per_look = 16;
    const uint64_t begin = monotonic_ns();
    const uint64_t give_up = begin + bound_ns;
    uint64_t rounds = 0;
    uint64_t last = __rdtsc();
    while (rounds % rounds_per_look != 0 || monotonic_ns() - begin <= run_ns) {
        if (!ask_once(link, bytes, ++rounds, give_up))
            return 0;
        if (ticks) {
            const uint64_t now = __rdtsc();
            ticks->record(now - last);
            last = now;
        }
    }
    ns = monotonic_ns() - begin;
    return ask_once(link, bytes, farewell, give_up) ? rounds : 0;
}

/// The other end: knows what must come next. @return false: it did not
template <typename Link>
bool answer(Link &link, size_t bytes)
{
    const uint64_t give_up = monotonic_ns() + bound_ns;
    const uint64_t last = farewell * lines_of(bytes);
    for (uint64_t round = 1;; round++) {
        uint64_t sum = 0;
        if (!receive_one(link, bytes, give_up, sum))
            return false;
        const bool ends = sum == last;
        if (!ends && sum != round * lines_of(bytes))
            return false;
        if (!link.send(bytes, ends ? farewell : round, 1, give_up))
            return false;
        if (ends)
            return true;
    }
}

/// Bursts for @p run_ns, until the other end says that it has all of them: a library may have some
/// left to do that only our calls give it time for. @return messages; 0: it failed
template <typename Link>
uint64_t send_stream(Link &link, size_t bytes, uint64_t run_ns, Shared &shared)
{
    constexpr uint64_t bursts_per_look = 8;
    const unsigned burst = burst_of(bytes);
    const uint64_t begin = monotonic_ns();
    uint64_t sent = 0;
    for (uint64_t bursts = 1;; bursts++) {
        if (!link.send(bytes, sent, burst, begin + bound_ns))
            return 0;
        sent += burst;
        if (bursts % bursts_per_look == 0 && monotonic_ns() - begin > run_ns)
            break;
    }
    shared.sent_total.store(sent + 1, std::memory_order_release); // pairs with receive_stream
    uint64_t sum = 0;
    return receive_one(link, bytes, begin + bound_ns, sum) ? sent : 0;
}

/// From when on a stream is timed: an eighth of the run, when rings and pools have been round, or
/// the first messages where that does not come.
class Lap
{
public:
    Lap(uint64_t start, uint64_t run_ns) : m_warm(start + run_ns / 8) {}

    void look(uint64_t now, uint64_t count)
    {
        if (count == 0 || m_begin > m_warm || (m_begin != 0 && now <= m_warm))
            return;
        m_begin = now;
        m_count = count;
    }
    void end(uint64_t now, uint64_t count, Report &report) const
    {
        report.count = count;
        report.counted = count - m_count;
        report.ns = m_begin != 0 ? now - m_begin : 0;
    }

private:
    uint64_t m_warm;
    uint64_t m_begin = 0;
    uint64_t m_count = 0;
};

/// Until all have come, which the sender is then told.
template <typename Link>
bool receive_stream(Link &link, size_t bytes, uint64_t run_ns, const Shared &shared, Report &report)
{
    constexpr uint64_t calls_per_look = 8;
    const unsigned burst = burst_of(bytes);
    const uint64_t start = monotonic_ns();
    Lap lap(start, run_ns);
    uint64_t sum = 0;
    uint64_t count = 0;
    for (uint64_t call = 1;; call++) {
        const int got = link.receive(bytes, burst, sum);
        if (got < 0)
            return false;
        count += static_cast<unsigned>(got);
        if (got == 0 && shared.sent_total.load(std::memory_order_acquire) == count + 1)
            break;
        if (call % calls_per_look != 0 && count != static_cast<unsigned>(got))
            continue;
        const uint64_t now = monotonic_ns();
        if (now - start > bound_ns)
            return false;
        lap.look(now, count);
    }
    lap.end(monotonic_ns(), count, report);
    return link.send(bytes, farewell, 1, start + bound_ns) && report.counted != 0 &&
           sum == count * (count - 1) / 2 * lines_of(bytes);
}

} // namespace peers

#endif

// SPDX-License-Identifier: BSD-3-Clause
// HOT. The loops that are timed, one body for all that is measured and compared: round trips and
// one-way streams, each with its two ends. A Link is one end of a transport:
//
//   int send(uint64_t value, unsigned n, uint64_t give_up_ns);
//       sends n messages, waiting for room; every word of message i is value + i. 0, or an errno
//   int receive(unsigned n, uint64_t &sum);
//       polls once: takes 0 to n messages and adds what it reads of them; or a negative errno
//   uint64_t sum_of(uint64_t messages, uint64_t values) const;
//       what receive() adds for so many messages whose values add up to that
//
// and, where an answer goes back in the memory that the message came in:
//
//   int receive_kept(uint64_t &sum);
//       polls once for one message, which stays
//   int send_kept(uint64_t value, uint64_t give_up_ns);
//       sends the message that stayed, every word of it written anew
#ifndef APP_LOOPS_HPP
#define APP_LOOPS_HPP

#include "clock.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <type_traits>
#include <x86intrin.h>

namespace measure
{

inline constexpr uint64_t last_value = uint64_t{1} << 40; ///< of the message that ends a series
inline constexpr uint64_t polls_per_clock = 1024; ///< polls between two reads of the clock, waiting

/// What came of a loop.
struct Outcome {
    int error = 0; ///< an errno
    const char *what = "";
    uint64_t count = 0;   ///< messages, or round trips
    uint64_t counted = 0; ///< of them, those that ns belongs to
    uint64_t ns = 0;

    bool fail(int number, const char *text)
    {
        if (error == 0) {
            error = number;
            what = text;
        }
        return false;
    }
};

/// When a busy loop reads the clock: after each quarter of what is done already, at most every
/// @p most. So it costs fast transports nothing, and slow ones end soon after their time.
class ClockReads
{
public:
    explicit ClockReads(uint64_t most) : m_most(most) {}

    bool due(uint64_t done)
    {
        if (done < m_next)
            return false;
        m_next = done + std::clamp<uint64_t>(done / 4, 1, m_most);
        return true;
    }

private:
    const uint64_t m_most;
    uint64_t m_next = 0;
};

/// Polls until @p poll returns anything but 0. @return that, or -ETIMEDOUT
template <typename Poll>
int await(uint64_t give_up, Poll poll)
{
    for (uint64_t spin = 1;; spin++) {
        const int seen = poll();
        if (seen != 0)
            return seen;
        if (spin % polls_per_clock == 0 && app::monotonic_ns() > give_up)
            return -ETIMEDOUT;
    }
}

// Round trips -------------------------------------------------------------------------------------

struct Span {
    uint64_t run_ns;              ///< how long to send
    uint64_t bound_ns;            ///< everything ends by then
    uint64_t rounds = UINT64_MAX; ///< round trips at most
};

/// In place of a function that takes each round trip's ticks: only their sum is timed.
struct Untimed {
};

template <typename Link>
bool ask_once(Link &link, uint64_t value, uint64_t give_up, Outcome &outcome)
{
    uint64_t sum = 0;
    if (const int error = link.send(value, 1, give_up); error != 0)
        return outcome.fail(error, "sending failed");
    if (const int got = await(give_up, [&] { return link.receive(1, sum); }); got < 0)
        return outcome.fail(-got, "no message came");
    if (sum != link.sum_of(1, value))
        return outcome.fail(EBADMSG, "a reply is not what was sent");
    return true;
}

/// One message at a time, each awaited before the next.
/// @param record  takes the ticks of the time-stamp counter of each; or Untimed
template <typename Link, typename Record>
void ask(Link &link, const Span &span, Record record, Outcome &outcome)
{
    constexpr bool timed = !std::is_same_v<Record, Untimed>;
    constexpr uint64_t most_rounds_per_clock = 512;
    const uint64_t begin = app::monotonic_ns();
    const uint64_t give_up = begin + span.bound_ns;
    ClockReads clock(most_rounds_per_clock);
    [[maybe_unused]] uint64_t last = __rdtsc();
    uint64_t count = 0;
    while (count < span.rounds &&
           (!clock.due(count) || app::monotonic_ns() - begin <= span.run_ns)) {
        if (!ask_once(link, count + 1, give_up, outcome))
            break;
        if constexpr (timed) {
            const uint64_t now = __rdtsc();
            record(now - last);
            last = now;
        }
        count++;
    }
    outcome.ns = app::monotonic_ns() - begin;
    outcome.count = outcome.counted = count;
    if (outcome.error == 0)
        ask_once(link, last_value, give_up, outcome);
}

/// The other end, which knows what must come next: each message is read, and its answer written.
template <typename Link>
void answer(Link &link, uint64_t bound_ns, Outcome &outcome)
{
    constexpr bool keeps = requires(uint64_t & sum)
    {
        link.receive_kept(sum);
    };
    const uint64_t give_up = app::monotonic_ns() + bound_ns;
    for (uint64_t value = 1; value != last_value; outcome.count += value != last_value) {
        uint64_t sum = 0;
        const int got = await(give_up, [&] {
            if constexpr (keeps)
                return link.receive_kept(sum);
            else
                return link.receive(1, sum);
        });
        if (got < 0)
            return (void)outcome.fail(-got, "no message came");
        value = outcome.count + 1;
        if (sum != link.sum_of(1, value)) {
            value = last_value;
            if (sum != link.sum_of(1, value))
                return (void)outcome.fail(EBADMSG, "what came is not what was sent");
        }
        int error = 0;
        if constexpr (keeps)
            error = link.send_kept(value, give_up);
        else
            error = link.send(value, 1, give_up);
        if (error != 0)
            return (void)outcome.fail(error, "answering failed");
    }
}

// One way -----------------------------------------------------------------------------------------

/// Bursts for span.run_ns. @param sent_total  becomes 1 + messages sent; shared with the receiver
template <typename Link>
void send_stream(Link &link, unsigned burst, const Span &span, std::atomic<uint64_t> &sent_total,
                 Outcome &outcome)
{
    constexpr uint64_t most_bursts_per_clock = 16;
    const uint64_t begin = app::monotonic_ns();
    const uint64_t give_up = begin + span.bound_ns;
    ClockReads clock(most_bursts_per_clock);
    uint64_t count = 0;
    for (uint64_t bursts = 1;; bursts++) {
        if (const int error = link.send(count, burst, give_up); error != 0) {
            outcome.fail(error, "sending failed");
            break;
        }
        count += burst;
        if (clock.due(bursts) && app::monotonic_ns() - begin > span.run_ns)
            break;
    }
    outcome.ns = app::monotonic_ns() - begin;
    outcome.count = count;
    sent_total.store(count + 1, std::memory_order_release); // pairs with receive_burst
}

/// From when on a stream is timed: an eighth of the run, when rings and pools have been round, or
/// the first messages where that does not come.
class WarmUp
{
public:
    WarmUp(uint64_t start, uint64_t run_ns) : m_until(start + run_ns / 8) {}

    bool over() const { return m_begin > m_until; }
    void note(uint64_t now, uint64_t count)
    {
        if (m_begin != 0 && now <= m_until)
            return;
        m_begin = now;
        m_count = count;
    }
    void end(uint64_t now, Outcome &outcome) const
    {
        outcome.counted = outcome.count - m_count;
        outcome.ns = m_begin != 0 ? now - m_begin : 0;
    }

private:
    uint64_t m_until;
    uint64_t m_begin = 0;
    uint64_t m_count = 0;
};

/// Waits for a burst. @return how many came; 0: it was the last, or the outcome has an error
template <typename Link>
unsigned receive_burst(Link &link, unsigned burst, const std::atomic<uint64_t> &sent_total,
                       uint64_t received, uint64_t give_up, uint64_t &sum, Outcome &outcome)
{
    constexpr uint64_t polls_per_end = 16; // of those in a row that found nothing
    for (uint64_t spin = 1;; spin++) {
        const int got = link.receive(burst, sum);
        if (got > 0)
            return static_cast<unsigned>(got);
        if (got < 0)
            return outcome.fail(-got, "receiving failed");
        // Pairs with send_stream: the count is published behind its messages.
        if (spin % polls_per_end == 0 && sent_total.load(std::memory_order_acquire) == received + 1)
            return 0;
        if (spin % polls_per_clock == 0 && app::monotonic_ns() > give_up)
            return outcome.fail(ETIMEDOUT, "messages are missing");
    }
}

/// Until @p sent_total messages have come.
template <typename Link>
void receive_stream(Link &link, unsigned burst, const Span &span,
                    const std::atomic<uint64_t> &sent_total, Outcome &outcome)
{
    constexpr uint64_t most_bursts_per_clock = 64;
    const uint64_t start = app::monotonic_ns();
    const uint64_t give_up = start + span.bound_ns;
    WarmUp warm_up(start, span.run_ns);
    ClockReads clock(most_bursts_per_clock);
    uint64_t sum = 0;
    uint64_t count = 0;
    uint64_t bursts = 0;
    while (const unsigned got =
               receive_burst(link, burst, sent_total, count, give_up, sum, outcome)) {
        count += got;
        if (!warm_up.over() && clock.due(++bursts))
            warm_up.note(app::monotonic_ns(), count);
    }
    outcome.count = count;
    warm_up.end(app::monotonic_ns(), outcome);
    if (sum != link.sum_of(count, count * (count - 1) / 2))
        outcome.fail(EBADMSG, "what came is not what was sent");
}

} // namespace measure

#endif

// SPDX-License-Identifier: BSD-3-Clause
// What one end does in one measurement on one device, in slices, so that its caller can look at
// the clock and at control messages in between.
#ifndef PKTGEN_MEASURE_WORK_HPP
#define PKTGEN_MEASURE_WORK_HPP

#include <algorithm>
#include <array>
#include <cstdint>

#include <ntbmsg.h>
#include <rte_mbuf.h>

#include "mbufs.hpp"
#include "point/point.hpp"

namespace pktgen
{

struct Sent {
    uint64_t messages = 0, bytes = 0;
    uint64_t sum = 0; ///< of expected_sum(); pattern counter only
};

struct Received {
    uint64_t messages = 0, bytes = 0;
    uint64_t sum = 0; ///< over the first word of every line
    uint64_t corrupt = 0, out_of_order = 0, captured = 0;
    /// After warming up, up to the last look that saw something new.
    uint64_t counted_messages = 0, counted_bytes = 0, counted_ns = 0;
};

/// Messages that are ready and wait until the queue takes them.
struct Staged {
    std::array<rte_mbuf *, largest_burst> messages;
    std::array<ntbmsg_meta, largest_burst> meta;
    uint16_t begin = 0, end = 0;

    bool empty() const { return begin == end; }
    uint16_t count() const { return static_cast<uint16_t>(end - begin); }
    /// Frees what never went.
    void drop()
    {
        rte_pktmbuf_free_bulk(&messages[begin], count());
        begin = end;
    }
};

class Work
{
public:
    /// @param point  of one queue: count and rate are its part of them
    explicit Work(const Point &point);
    virtual ~Work() = default;
    Work(const Work &) = delete;
    Work &operator=(const Work &) = delete;

    /// Before it starts: what has to be agreed with the far end. Called until it is true.
    virtual bool set_up() { return true; }
    /// @param now  in ticks of the TSC
    void start(uint64_t now);

    /// HOT. @param steps  polls of the queue
    virtual void slice(unsigned steps) = 0;
    /// Nothing new is sent from here on; what is ready still is.
    void stop_sending() { sending_ = false; }
    /// Whether nothing waits to be sent, and nothing sent waits for its answer.
    virtual bool sent_all() const = 0;
    /// What was sent and not answered; 0 where there are no answers.
    virtual uint64_t unanswered() const { return 0; }

    /// Between two slices: takes the time of what has come.
    void look(uint64_t now);

    const Sent &sent() const { return sent_; }
    Received received() const { return counted(received_, come_); }
    /// Operations that were posted here and are complete; nothing of messages.
    Received completed() const { return counted(completed_, done_); }
    uint64_t received_messages() const { return received_.messages; }
    uint64_t completed_messages() const { return completed_.messages; }
    uint64_t tx_full() const { return tx_full_; }
    bool sending() const { return sending_; }
    /// 0, or the negative errno that ended it.
    int error() const { return error_; }

protected:
    void fail(int error)
    {
        error_ = error;
        sending_ = false;
    }

    /// Sends what is ready. @param stamped  with its stamps @return messages taken; 0: none, or
    /// failed
    template <typename Transport>
    unsigned send(Transport &transport, Staged &staged, bool stamped)
    {
        const int taken =
            transport.send(&staged.messages[staged.begin],
                           stamped ? &staged.meta[staged.begin] : nullptr, staged.count());
        if (taken < 0) {
            fail(taken);
            return 0;
        }
        staged.begin = static_cast<uint16_t>(staged.begin + taken);
        tx_full_ += staged.empty() ? 0 : 1;
        return static_cast<unsigned>(taken);
    }

    /// Takes what a poll finds. @param stamped  with its stamps
    /// @param take  (message, its stamp or 0), before it is freed @return messages taken
    template <typename Transport, typename Take>
    unsigned take_burst(Transport &transport, uint16_t burst, bool stamped, Take take)
    {
        ntbmsg_meta meta[largest_burst];
        const int got = measure::take_burst<largest_burst>(
            burst,
            [&](rte_mbuf **messages, uint16_t n) {
                return transport.receive(messages, stamped ? meta : nullptr, n);
            },
            [&](const rte_mbuf *message, int i) { take(message, stamped ? meta[i].data : 0); });
        if (got < 0)
            fail(got);
        return static_cast<unsigned>(std::max(got, 0));
    }

    Sent sent_;
    Received received_;
    Received completed_;
    uint64_t tx_full_ = 0;
    bool sending_ = true;

private:
    struct Mark {
        uint64_t tsc = 0, messages = 0, bytes = 0;
    };
    enum class Phase { cold, warming, warm };
    /// What is counted lies between begin and last.
    struct Meter {
        Mark begin, last;
        Phase phase = Phase::cold;
    };

    /// What a loop needs to know of the start. @param now  in ticks of the TSC
    virtual void begin(uint64_t now);
    void look_at(const Received &what, Meter &meter, uint64_t now) const;
    Received counted(const Received &what, const Meter &meter) const;

    const uint64_t warm_ticks_;
    uint64_t created_ = 0;
    Meter come_, done_;
    int error_ = 0;
};

/// Longer measurements do without real-time priority: heartbeats, which share the core, have to go
/// on.
inline constexpr uint64_t longest_realtime_us = 300000;

/// Polls of a queue between two reads of the clock: a fraction of a millisecond.
unsigned steps_for(const Point &point);

} // namespace pktgen

#endif

// SPDX-License-Identifier: BSD-3-Clause
// What one end does in one measurement on one device, in slices, so that who runs it can look at
// the clock and at control messages in between.
#ifndef PKTGEN_WORK_HPP
#define PKTGEN_WORK_HPP

#include <array>
#include <cstdint>

#include <ntbmsg.h>
#include <rte_mbuf.h>

#include "point.hpp"

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
    uint64_t counted_messages = 0, counted_bytes = 0, counted_ticks = 0;
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
    /// @param begin  now, in ticks of the TSC
    Work(const Point &point, uint64_t begin);
    virtual ~Work() = default;
    Work(const Work &) = delete;
    Work &operator=(const Work &) = delete;

    /// HOT. @param steps  looks at every queue
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
    Received received() const;
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
    template <typename Port>
    unsigned send(Port &port, uint16_t lane, Staged &staged, bool stamped)
    {
        const int taken = port.send(lane, &staged.messages[staged.begin],
                                    stamped ? &staged.meta[staged.begin] : nullptr, staged.count());
        if (taken < 0) {
            fail(taken);
            return 0;
        }
        staged.begin = static_cast<uint16_t>(staged.begin + taken);
        tx_full_ += staged.empty() ? 0 : 1;
        return static_cast<unsigned>(taken);
    }

    Sent sent_;
    Received received_;
    uint64_t tx_full_ = 0;
    bool sending_ = true;

private:
    struct Mark {
        uint64_t tsc, messages, bytes;
    };
    Mark mark(uint64_t now) const { return {now, received_.messages, received_.bytes}; }

    enum class Phase { cold, warming, warm };

    const uint64_t warm_ticks_;
    const Mark created_;
    Mark begin_, last_; ///< what is counted lies in between
    Phase phase_ = Phase::cold;
    int error_ = 0;
};

/// Looks at every queue between two looks at the clock: a fraction of a millisecond.
unsigned steps_for(const Point &point);

} // namespace pktgen

#endif

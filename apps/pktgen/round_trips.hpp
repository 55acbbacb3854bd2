// SPDX-License-Identifier: BSD-3-Clause
// HOT. Messages there and back: a window of them that is kept full, or at a given rate whatever
// comes back. The driving end runs it; echo_back.hpp is the other one.
#ifndef PKTGEN_ROUND_TRIPS_HPP
#define PKTGEN_ROUND_TRIPS_HPP

#include <memory>
#include <vector>

#include "histogram.hpp"
#include "maker.hpp"
#include "work.hpp"

namespace pktgen
{

/// In ticks of the TSC.
struct Timings {
    app::Histogram actual;   ///< from when a message left
    app::Histogram intended; ///< from when it should have left; with a rate only
};

template <typename Port>
class RoundTrips final : public Work
{
public:
    /// @param timings  outlives it
    RoundTrips(Port port, const Point &point, uint64_t begin, Maker maker, Timings &timings);
    ~RoundTrips() override;

    void slice(unsigned steps) override;
    bool sent_all() const override;
    uint64_t unanswered() const override;

private:
    struct Times {
        uint64_t intended, left;
    };
    struct Lane {
        Staged staged;
        std::vector<Times> under_way; ///< ring; message n is in its slot n mod size
        uint64_t made = 0, sent = 0, received = 0;
    };

    void step_window(uint16_t number);
    void step_rate(uint16_t number);
    void make(Lane &lane, uint16_t n);
    void push(uint16_t number, uint64_t now);
    void pull(uint16_t number);
    void accept(Lane &lane, const rte_mbuf *message, uint64_t stamp);
    void record();
    static Times &times_of(Lane &lane, uint64_t message)
    {
        return lane.under_way[message & (lane.under_way.size() - 1)];
    }
    uint64_t intended_tsc(uint64_t message) const
    {
        return begin_ + static_cast<uint64_t>(static_cast<double>(message) * ticks_per_message_);
    }

    Port port_;
    const uint16_t burst_;
    const bool verify_, clock_;
    const uint64_t count_, window_;
    const uint64_t begin_;
    const double ticks_per_message_; ///< 0: no rate
    Maker maker_;
    std::vector<Lane> lanes_;
    Timings &timings_;
    uint64_t now_;                          ///< when the last answer came
    std::array<Times, largest_burst> back_; ///< what came last and is not recorded yet: how long
    unsigned back_count_ = 0;
};

} // namespace pktgen

#endif

// SPDX-License-Identifier: BSD-3-Clause
// HOT. Messages there and back: so many in flight at any time, or at a given rate whatever
// comes back. The client runs it; echo_back.hpp is the other one.
#ifndef PKTGEN_MEASURE_ROUND_TRIPS_HPP
#define PKTGEN_MEASURE_ROUND_TRIPS_HPP

#include "measure/maker.hpp"
#include "measure/trips.hpp"
#include "measure/work.hpp"

namespace pktgen
{

template <typename Transport>
class RoundTrips final : public Work
{
public:
    /// @param timings  outlives it
    RoundTrips(Transport transport, const Point &point, Maker maker, Timings &timings);
    ~RoundTrips() override;

    void slice(unsigned steps) override;
    bool sent_all() const override;
    uint64_t unanswered() const override { return trips_.made() - trips_.back(); }

private:
    void begin(uint64_t now) override { trips_.start(now); }
    void step();
    void accept(const rte_mbuf *message, uint64_t stamp);

    Transport transport_;
    const uint16_t burst_;
    const bool verify_;
    const uint64_t count_;
    Maker maker_;
    Staged staged_;
    Trips trips_;
};

} // namespace pktgen

#endif

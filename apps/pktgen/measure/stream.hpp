// SPDX-License-Identifier: BSD-3-Clause
// HOT. One way, or both at once: sends as fast as the queue takes it, or as a recorded file was,
// and receives what comes. Both ends run it.
#ifndef PKTGEN_MEASURE_STREAM_HPP
#define PKTGEN_MEASURE_STREAM_HPP

#include "measure/maker.hpp"
#include "measure/work.hpp"
#include "traffic/capture.hpp"

namespace pktgen
{

/// What an end does of a one-way measurement, or of both ways at once.
struct Sides {
    bool sends, receives;
};

template <typename Transport>
class Stream final : public Work
{
public:
    /// @param pace     when each message may go, point.count of them; NULL: as soon as it can
    /// @param capture  takes what comes, or NULL. Both outlive it
    Stream(Transport transport, const Point &point, Sides sides, Maker maker, const Packets *pace,
           Capture *capture);
    ~Stream() override;

    void slice(unsigned steps) override;
    bool sent_all() const override { return !sending_ && staged_.empty(); }

private:
    void begin(uint64_t now) override { begin_ = now; }
    void push();
    uint16_t due() const;
    void pull();
    void verify(const rte_mbuf *message, uint64_t stamp);

    Transport transport_;
    const Sides sides_;
    const uint16_t burst_;
    const bool verify_;
    const uint64_t count_; ///< messages to send
    const double ns_per_tick_;
    const Packets *const pace_; ///< each message no earlier than this says
    Capture *const capture_;
    Maker maker_;
    Staged staged_;
    uint64_t begin_ = 0;
    uint32_t expected_ = 0; ///< number of the next to come
};

} // namespace pktgen

#endif

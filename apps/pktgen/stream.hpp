// SPDX-License-Identifier: BSD-3-Clause
// HOT. One way, or both at once: sends as fast as the queues take it, or as a recorded file was,
// and receives what comes. Both ends run it.
#ifndef PKTGEN_STREAM_HPP
#define PKTGEN_STREAM_HPP

#include <vector>

#include "capture.hpp"
#include "maker.hpp"
#include "work.hpp"

namespace pktgen
{

/// What an end of a stream does.
struct StreamSides {
    bool sends, receives;
};

template <typename Port>
class Stream final : public Work
{
public:
    /// @param pace     when each message may go, point.count of them; NULL: as soon as it can
    /// @param capture  takes what comes, or NULL. Both outlive it
    Stream(Port port, const Point &point, uint64_t begin, StreamSides sides, Maker maker,
           const Packets *pace, Capture *capture);
    ~Stream() override;

    void slice(unsigned steps) override;
    bool sent_all() const override;

private:
    struct Lane {
        Staged staged;
        uint64_t made = 0;     ///< messages, and the number of the next
        uint32_t expected = 0; ///< number of the next to come
    };

    void push(uint16_t lane);
    uint16_t due() const;
    void pull(uint16_t lane);
    void verify(Lane &lane, const rte_mbuf *message, uint64_t stamp);

    Port port_;
    const StreamSides sides_;
    const uint16_t burst_;
    const bool verify_;
    const uint64_t count_; ///< messages to send
    const uint64_t begin_;
    const double ns_per_tick_;
    const Packets *const pace_; ///< each message no earlier than this says
    Capture *const capture_;
    Maker maker_;
    std::vector<Lane> lanes_;
};

} // namespace pktgen

#endif

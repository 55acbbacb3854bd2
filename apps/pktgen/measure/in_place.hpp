// SPDX-License-Identifier: BSD-3-Clause
// HOT. One way, from the client: messages that are built in receive buffers of the peer
// (rooms), instead of in mbufs that are copied there.
#ifndef PKTGEN_MEASURE_IN_PLACE_HPP
#define PKTGEN_MEASURE_IN_PLACE_HPP

#include <cstdint>

#include "built_bursts.hpp"
#include "measure/work.hpp"
#include "point/sizes.hpp"
#include "traffic/content.hpp"

namespace pktgen
{

template <typename Transport>
class InPlace final : public Work
{
public:
    InPlace(Transport transport, const Point &point, Sizes sizes);

    void slice(unsigned steps) override;
    bool sent_all() const override { return !sending_; }

private:
    void push();
    void look_ahead();
    void count_sent(uint16_t n);

    Transport transport_;
    Sizes sizes_;
    const Content content_;
    const bool plain_;
    const uint16_t burst_;
    const uint64_t count_; ///< messages to send
    app::BuiltBursts bursts_;
    uint32_t lengths_[largest_burst]; ///< of the next messages
    uint16_t ahead_ = 0;              ///< how many these are
};

} // namespace pktgen

#endif

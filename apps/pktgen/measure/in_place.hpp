// SPDX-License-Identifier: BSD-3-Clause
// HOT. One way, from the client: messages that are built in receive buffers of the peer
// (rooms), instead of in mbufs that are copied there.
#ifndef PKTGEN_MEASURE_IN_PLACE_HPP
#define PKTGEN_MEASURE_IN_PLACE_HPP

#include <cstdint>
#include <vector>

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
    ~InPlace() override;

    void slice(unsigned steps) override;
    bool sent_all() const override { return !sending_; }

private:
    void push();
    uint16_t build(uint16_t rooms);
    bool build_one(const ntbmsg_room *rooms, size_t room_count, uint32_t size, uint32_t *used);

    Transport transport_;
    Sizes sizes_;
    const Content content_;
    const bool plain_;
    const uint16_t burst_;
    const uint64_t count_; ///< messages to send
    uint16_t wanted_;      ///< rooms to ask for: grows to what a burst needs
    std::vector<ntbmsg_room> rooms_;
    uint32_t lengths_[largest_burst];
};

} // namespace pktgen

#endif

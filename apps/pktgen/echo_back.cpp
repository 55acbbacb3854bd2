// SPDX-License-Identifier: BSD-3-Clause
#include "echo_back.hpp"

#include <algorithm>

#include <rte_mbuf.h>

#include "payload.hpp"
#include "port.hpp"

namespace pktgen
{

template <typename Port>
EchoBack<Port>::EchoBack(Port port, const Point &point, uint64_t begin)
    : Work(point, begin), port_(port), burst_(static_cast<uint16_t>(point.burst)),
      verify_(point.verify), lanes_(point.queues)
{
}

template <typename Port>
EchoBack<Port>::~EchoBack()
{
    for (Staged &staged : lanes_)
        staged.drop();
}

/// Nothing new is taken while something waits to go back: the peer's back-pressure is passed on.
template <typename Port>
void EchoBack<Port>::slice(unsigned steps)
{
    const auto lanes = static_cast<uint16_t>(lanes_.size());
    for (unsigned step = 0; step < steps && error() == 0; ++step) {
        for (uint16_t lane = 0; lane < lanes; ++lane) {
            if (lanes_[lane].empty())
                pull(lane);
            if (!lanes_[lane].empty())
                push(lane);
        }
    }
}

template <typename Port>
bool EchoBack<Port>::sent_all() const
{
    return std::all_of(lanes_.begin(), lanes_.end(), [](const Staged &s) { return s.empty(); });
}

template <typename Port>
void EchoBack<Port>::pull(uint16_t number)
{
    Staged &staged = lanes_[number];
    const int got = port_.receive(number, staged.messages.data(),
                                  verify_ ? staged.meta.data() : nullptr, burst_);
    staged.begin = 0;
    staged.end = static_cast<uint16_t>(std::max(got, 0));
    if (got < 0)
        fail(got);
    for (uint16_t i = 0; i < staged.end; ++i) {
        rte_mbuf *message = staged.messages[i];
        received_.bytes += message->pkt_len;
        received_.sum += touch_message(message);
        if (verify_)
            received_.corrupt += staged.meta[i].data >> 32 != crc_of(message) ? 1 : 0;
    }
    received_.messages += staged.end;
}

template <typename Port>
void EchoBack<Port>::push(uint16_t number)
{
    sent_.messages += send(port_, number, lanes_[number], verify_);
}

template class EchoBack<QueuePort>;
template class EchoBack<ChannelPort>;

} // namespace pktgen

// SPDX-License-Identifier: BSD-3-Clause
#include "measure/echo_back.hpp"

#include <algorithm>

#include <rte_mbuf.h>

#include "traffic/payload.hpp"
#include "transport/carrier.hpp"

namespace pktgen
{

template <typename Carrier>
EchoBack<Carrier>::EchoBack(Carrier carrier, const Point &point)
    : Work(point), carrier_(carrier), burst_(static_cast<uint16_t>(point.burst)),
      verify_(point.verify)
{
}

template <typename Carrier>
EchoBack<Carrier>::~EchoBack()
{
    staged_.drop();
}

/// Nothing new is taken while something waits to go back: the peer's back-pressure is passed on.
template <typename Carrier>
void EchoBack<Carrier>::slice(unsigned steps)
{
    for (unsigned step = 0; step < steps && error() == 0; ++step) {
        if (staged_.empty())
            pull();
        if (!staged_.empty())
            sent_.messages += send(carrier_, staged_, verify_);
    }
}

template <typename Carrier>
void EchoBack<Carrier>::pull()
{
    const int got =
        carrier_.receive(staged_.messages.data(), verify_ ? staged_.meta.data() : nullptr, burst_);
    staged_.begin = 0;
    staged_.end = static_cast<uint16_t>(std::max(got, 0));
    if (got < 0)
        fail(got);
    for (uint16_t i = 0; i < staged_.end; ++i) {
        rte_mbuf *message = staged_.messages[i];
        received_.bytes += message->pkt_len;
        received_.sum += touch_message(message);
        if (verify_)
            received_.corrupt += staged_.meta[i].data >> 32 != crc_of(message) ? 1 : 0;
    }
    received_.messages += staged_.end;
}

template class EchoBack<QueueCarrier>;
template class EchoBack<ChannelCarrier>;

} // namespace pktgen

// SPDX-License-Identifier: BSD-3-Clause
#include "measure/echo_back.hpp"

#include <algorithm>

#include <rte_mbuf.h>

#include "traffic/payload.hpp"
#include "transport/transport.hpp"

namespace pktgen
{

template <typename Transport>
EchoBack<Transport>::EchoBack(Transport transport, const Point &point)
    : Work(point), transport_(transport), burst_(static_cast<uint16_t>(point.burst)),
      verify_(point.verify)
{
}

template <typename Transport>
EchoBack<Transport>::~EchoBack()
{
    staged_.drop();
}

/// Nothing new is taken while something waits to go back: the peer's back-pressure is passed on.
template <typename Transport>
void EchoBack<Transport>::slice(unsigned steps)
{
    for (unsigned step = 0; step < steps && error() == 0; ++step) {
        if (staged_.empty())
            pull();
        if (!staged_.empty())
            sent_.messages += send(transport_, staged_, verify_);
    }
}

template <typename Transport>
void EchoBack<Transport>::pull()
{
    const int got = transport_.receive(staged_.messages.data(),
                                       verify_ ? staged_.meta.data() : nullptr, burst_);
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

template class EchoBack<QueueTransport>;
template class EchoBack<ChannelTransport>;

} // namespace pktgen

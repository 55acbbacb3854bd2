// SPDX-License-Identifier: BSD-3-Clause
#include "measure/round_trips.hpp"

#include <algorithm>

#include "traffic/payload.hpp"
#include "transport/transport.hpp"

namespace pktgen
{

template <typename Transport>
RoundTrips<Transport>::RoundTrips(Transport transport, const Point &point, Maker maker,
                                  Timings &timings)
    : Work(point), transport_(transport), burst_(static_cast<uint16_t>(point.burst)),
      verify_(point.verify), count_(point.count != 0 ? point.count : UINT64_MAX),
      maker_(std::move(maker)), trips_(point, point.clock, timings)
{
}

template <typename Transport>
RoundTrips<Transport>::~RoundTrips()
{
    staged_.drop();
}

template <typename Transport>
void RoundTrips<Transport>::slice(unsigned steps)
{
    for (unsigned i = 0; i < steps && error() == 0; ++i)
        step();
    trips_.record();
}

template <typename Transport>
bool RoundTrips<Transport>::sent_all() const
{
    return !sending_ && unanswered() == 0;
}

template <typename Transport>
void RoundTrips<Transport>::step()
{
    const uint64_t now = trips_.step_time();
    if (staged_.empty() && sending_) {
        const auto most =
            static_cast<uint16_t>(std::min<uint64_t>(burst_, count_ - sent_.messages));
        const uint16_t due = trips_.due(now, most);
        if (due != 0)
            trips_.make(maker_.make(staged_, due, trips_.made(), sent_));
        sending_ = sent_.messages < count_;
    }
    if (!staged_.empty())
        trips_.leave(send(transport_, staged_, verify_), now);
    trips_.record();
    if (take_burst(transport_, burst_, verify_, [this](const rte_mbuf *message, uint64_t stamp) {
            accept(message, stamp);
        }) != 0)
        trips_.stamp();
}

/// @param message  an answer, or, from a peer that lies, anything
template <typename Transport>
void RoundTrips<Transport>::accept(const rte_mbuf *message, uint64_t stamp)
{
    if (trips_.back() == trips_.sent()) {
        ++received_.out_of_order;
        return;
    }
    received_.sum += read_message(message);
    received_.bytes += message->pkt_len;
    ++received_.messages;
    if (verify_) {
        received_.out_of_order +=
            static_cast<uint32_t>(stamp) != static_cast<uint32_t>(trips_.back()) ? 1 : 0;
        received_.corrupt += stamp >> 32 != crc_of(message) ? 1 : 0;
    }
    trips_.come_back();
}

template class RoundTrips<QueueTransport>;
template class RoundTrips<ChannelTransport>;

} // namespace pktgen

// SPDX-License-Identifier: BSD-3-Clause
#include "measure/stream.hpp"

#include <algorithm>

#include <rte_cycles.h>
#include <rte_mbuf.h>

#include "traffic/payload.hpp"
#include "transport/transport.hpp"

namespace pktgen
{

template <typename Transport>
Stream<Transport>::Stream(Transport transport, const Point &point, Sides sides, Maker maker,
                          const Packets *pace, Capture *capture)
    : Work(point), transport_(transport), sides_(sides), burst_(static_cast<uint16_t>(point.burst)),
      verify_(point.verify), count_(point.count != 0 ? point.count : UINT64_MAX),
      ns_per_tick_(1e9 / static_cast<double>(rte_get_tsc_hz())), pace_(pace), capture_(capture),
      maker_(std::move(maker))
{
    sending_ = sides.sends;
}

template <typename Transport>
Stream<Transport>::~Stream()
{
    staged_.drop();
}

template <typename Transport>
void Stream<Transport>::slice(unsigned steps)
{
    for (unsigned step = 0; step < steps && error() == 0; ++step) {
        if (sides_.sends)
            push();
        if (sides_.receives)
            pull();
    }
}

/// How many messages may be made now.
template <typename Transport>
uint16_t Stream<Transport>::due() const
{
    const auto most = static_cast<uint16_t>(std::min<uint64_t>(burst_, count_ - sent_.messages));
    if (pace_ == nullptr)
        return most;
    // The clock is read here only: at recorded speed there is time for it.
    const auto ns = static_cast<uint64_t>(static_cast<double>(rte_rdtsc() - begin_) * ns_per_tick_);
    uint16_t n = 0;
    while (n < most && pace_->ns(sent_.messages + n) <= ns)
        ++n;
    return n;
}

template <typename Transport>
void Stream<Transport>::push()
{
    if (staged_.empty()) {
        const uint16_t wanted = sending_ ? due() : uint16_t{0};
        if (wanted == 0)
            return;
        maker_.make(staged_, wanted, sent_.messages, sent_);
        sending_ = sent_.messages < count_;
    }
    send(transport_, staged_, verify_);
}

template <typename Transport>
void Stream<Transport>::pull()
{
    received_.messages +=
        take_burst(transport_, burst_, verify_, [this](const rte_mbuf *message, uint64_t stamp) {
            received_.bytes += message->pkt_len;
            received_.sum += read_message(message);
            if (verify_)
                verify(message, stamp);
            if (capture_ != nullptr)
                received_.captured += capture_->take(message) ? 1 : 0;
        });
}

template <typename Transport>
void Stream<Transport>::verify(const rte_mbuf *message, uint64_t stamp)
{
    const auto number = static_cast<uint32_t>(stamp);
    received_.out_of_order += number != expected_ ? 1 : 0;
    received_.corrupt += stamp >> 32 != crc_of(message) ? 1 : 0;
    expected_ = number + 1;
}

template class Stream<QueueTransport>;
template class Stream<ChannelTransport>;

} // namespace pktgen

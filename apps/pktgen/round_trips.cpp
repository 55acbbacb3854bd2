// SPDX-License-Identifier: BSD-3-Clause
#include "round_trips.hpp"

#include <algorithm>
#include <bit>

#include <rte_cycles.h>

#include "payload.hpp"
#include "port.hpp"

namespace pktgen
{

template <typename Port>
RoundTrips<Port>::RoundTrips(Port port, const Point &point, uint64_t begin, Maker maker,
                             Timings &timings)
    : Work(point, begin), port_(port), burst_(static_cast<uint16_t>(point.burst)),
      verify_(point.verify), clock_(point.clock),
      count_(point.count != 0 ? point.count : UINT64_MAX), window_(point.window), begin_(begin),
      ticks_per_message_(point.rate > 0 ? static_cast<double>(rte_get_tsc_hz()) / point.rate : 0),
      maker_(std::move(maker)), lanes_(point.queues), timings_(timings), now_(begin)
{
    for (Lane &lane : lanes_)
        lane.under_way.resize(std::bit_ceil(uint64_t{point.window}));
}

template <typename Port>
RoundTrips<Port>::~RoundTrips()
{
    for (Lane &lane : lanes_)
        lane.staged.drop();
}

template <typename Port>
void RoundTrips<Port>::slice(unsigned steps)
{
    const auto lanes = static_cast<uint16_t>(lanes_.size());
    for (unsigned step = 0; step < steps && error() == 0; ++step) {
        for (uint16_t lane = 0; lane < lanes; ++lane) {
            if (ticks_per_message_ > 0)
                step_rate(lane);
            else
                step_window(lane);
        }
    }
    record();
}

template <typename Port>
bool RoundTrips<Port>::sent_all() const
{
    const auto quiet = [](const Lane &lane) { return lane.received == lane.made; };
    return !sending_ && std::all_of(lanes_.begin(), lanes_.end(), quiet);
}

template <typename Port>
uint64_t RoundTrips<Port>::unanswered() const
{
    uint64_t open = 0;
    for (const Lane &lane : lanes_)
        open += lane.made - lane.received;
    return open;
}

/// A message leaves as soon as the window has room: when the answer came that made it.
template <typename Port>
void RoundTrips<Port>::step_window(uint16_t number)
{
    Lane &lane = lanes_[number];
    const uint64_t room = window_ - (lane.made - lane.received);
    if (lane.staged.empty() && sending_ && room != 0)
        make(lane, static_cast<uint16_t>(std::min<uint64_t>(burst_, room)));
    if (!lane.staged.empty())
        push(number, now_);
    record();
    pull(number);
}

/// A message has its time by the rate alone. What the window or the queue does not take waits, and
/// its wait counts.
template <typename Port>
void RoundTrips<Port>::step_rate(uint16_t number)
{
    Lane &lane = lanes_[number];
    const uint64_t now = rte_rdtsc();
    const uint64_t room = window_ - (lane.made - lane.received);
    const uint64_t most = std::min<uint64_t>(burst_, room);
    uint16_t due = 0;
    while (sending_ && lane.staged.empty() && due < most &&
           intended_tsc(sent_.messages + due) <= now)
        ++due;
    if (due != 0)
        make(lane, due);
    if (!lane.staged.empty())
        push(number, now);
    record();
    pull(number);
}

template <typename Port>
void RoundTrips<Port>::make(Lane &lane, uint16_t n)
{
    const uint64_t scheduled = sent_.messages;
    const uint16_t made = maker_.make(lane.staged, n, lane.made, sent_);
    for (uint16_t i = 0; i < made; ++i)
        times_of(lane, lane.made + i).intended =
            ticks_per_message_ > 0 ? intended_tsc(scheduled + i) : now_;
    lane.made += made;
    sending_ = sending_ && sent_.messages < count_;
}

template <typename Port>
void RoundTrips<Port>::push(uint16_t number, uint64_t now)
{
    Lane &lane = lanes_[number];
    const unsigned taken = send(port_, number, lane.staged, verify_);
    for (unsigned i = 0; i < taken; ++i)
        times_of(lane, lane.sent++).left = now;
}

template <typename Port>
void RoundTrips<Port>::pull(uint16_t number)
{
    rte_mbuf *messages[largest_burst];
    ntbmsg_meta meta[largest_burst];
    const int got = port_.receive(number, messages, verify_ ? meta : nullptr, burst_);
    if (got <= 0) {
        if (got < 0)
            fail(got);
        return;
    }
    Lane &lane = lanes_[number];
    for (int i = 0; i < got; ++i)
        accept(lane, messages[i], verify_ ? meta[i].data : 0);
    rte_pktmbuf_free_bulk(messages, static_cast<unsigned>(got));
    if (!clock_)
        return;
    now_ = rte_rdtsc();
    for (unsigned i = 0; i < back_count_; ++i) {
        back_[i].intended = now_ - back_[i].intended;
        back_[i].left = now_ - back_[i].left;
    }
}

/// @param message  an answer, or, from a peer that lies, anything
template <typename Port>
void RoundTrips<Port>::accept(Lane &lane, const rte_mbuf *message, uint64_t stamp)
{
    if (lane.received == lane.sent) {
        ++received_.out_of_order;
        return;
    }
    received_.sum += read_message(message);
    received_.bytes += message->pkt_len;
    ++received_.messages;
    if (verify_) {
        received_.out_of_order +=
            static_cast<uint32_t>(stamp) != static_cast<uint32_t>(lane.received) ? 1 : 0;
        received_.corrupt += stamp >> 32 != crc_of(message) ? 1 : 0;
    }
    back_[back_count_++] = times_of(lane, lane.received++);
}

/// What came last is recorded when the next message is on its way, which hides what it costs.
template <typename Port>
void RoundTrips<Port>::record()
{
    for (unsigned i = 0; clock_ && i < back_count_; ++i) {
        timings_.actual.record(back_[i].left);
        if (ticks_per_message_ > 0)
            timings_.intended.record(back_[i].intended);
    }
    back_count_ = 0;
}

template class RoundTrips<QueuePort>;
template class RoundTrips<ChannelPort>;

} // namespace pktgen

// SPDX-License-Identifier: BSD-3-Clause
// HOT. What carries the messages of an operation: what the loops of stream.hpp, round_trips.hpp and
// echo_back.hpp are instantiated with. Another operation that moves mbufs is another such class.
#ifndef PKTGEN_TRANSPORT_TRANSPORT_HPP
#define PKTGEN_TRANSPORT_TRANSPORT_HPP

#include <array>
#include <cstdint>

#include <ntbmsg.h>

#include "point/point.hpp"
#include "transport/channels.hpp"

struct rte_mbuf;

namespace pktgen
{

/// A queue pair. The endpoint's first one belongs to the control messages.
class QueueTransport
{
public:
    QueueTransport(ntbmsg_endpoint *endpoint, uint32_t lane)
        : endpoint_(endpoint), queue_(static_cast<uint16_t>(lane + 1))
    {
        ntbmsg_queue_burst_get(endpoint, queue_, &calls_);
    }

    /// @return messages taken, or a negative errno
    int send(rte_mbuf **messages, const ntbmsg_meta *meta, uint16_t n) const
    {
        return ntbmsg_queue_burst_send(&calls_, messages, meta, n);
    }
    /// @return messages received, or a negative errno
    int receive(rte_mbuf **messages, ntbmsg_meta *meta, uint16_t n) const
    {
        return ntbmsg_queue_burst_recv(&calls_, messages, meta, n);
    }
    /// Rooms for messages that are built in place. @return how many, or a negative errno
    int reserve(ntbmsg_room *rooms, uint16_t n) const
    {
        return ntbmsg_queue_reserve(endpoint_, queue_, rooms, n);
    }
    /// @return n, or a negative errno
    int commit(const uint32_t *lengths, uint16_t n) const
    {
        return ntbmsg_queue_commit(endpoint_, queue_, lengths, nullptr, n);
    }
    void abort() const { ntbmsg_queue_abort(endpoint_, queue_); }

private:
    ntbmsg_endpoint *endpoint_;
    uint16_t queue_;
    ntbmsg_queue_burst calls_{};
};

/// A channel. It carries 32 bits beside a message: of a stamp the CRC. Its number is counted, as a
/// channel keeps the order; a message that is missing shows by its CRC.
class ChannelTransport
{
public:
    explicit ChannelTransport(const ChannelLane &lane)
        : channel_(lane.channel), worker_(lane.worker)
    {
    }

    int send(rte_mbuf **messages, const ntbmsg_meta *meta, uint16_t n)
    {
        std::array<uint32_t, largest_burst> words;
        for (uint16_t i = 0; meta != nullptr && i < n; ++i)
            words[i] = static_cast<uint32_t>(meta[i].data >> 32);
        const int taken = ntbmsg_channel_send_burst(channel_, messages,
                                                    meta != nullptr ? words.data() : nullptr, n);
        if (taken < n) // credits come by polling the worker
            ntbmsg_worker_poll(worker_);
        return taken;
    }

    int receive(rte_mbuf **messages, ntbmsg_meta *meta, uint16_t n)
    {
        std::array<uint32_t, largest_burst> words;
        const int got = ntbmsg_channel_recv_burst(channel_, messages,
                                                  meta != nullptr ? words.data() : nullptr, n);
        for (int i = 0; meta != nullptr && i < got; ++i)
            meta[i] = {uint64_t{words[static_cast<size_t>(i)]} << 32 | received_++, 0, 0};
        return got;
    }

    int reserve(ntbmsg_room *rooms, uint16_t n) const
    {
        const int got = ntbmsg_channel_reserve(channel_, rooms, n);
        if (got < n)
            ntbmsg_worker_poll(worker_);
        return got;
    }
    int commit(const uint32_t *lengths, uint16_t n) const
    {
        return ntbmsg_channel_commit(channel_, lengths, nullptr, n);
    }
    void abort() const { ntbmsg_channel_abort(channel_); }

private:
    ntbmsg_channel *channel_;
    ntbmsg_worker *worker_;
    uint32_t received_ = 0;
};

} // namespace pktgen

#endif

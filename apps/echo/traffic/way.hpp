// SPDX-License-Identifier: BSD-3-Clause
// A queue of an endpoint, or a channel, as modes see it: on a channel the metadata is in the word
// that travels with a message, and a channel that has ended counts as a lost peer.
#ifndef ECHO_TRAFFIC_WAY_HPP
#define ECHO_TRAFFIC_WAY_HPP

#include <cstdint>

#include <ntbmsg.h>

struct rte_mbuf;

namespace echo
{

inline constexpr uint16_t longest_burst = 512;

/// What of a stamp travels on a channel: 32 bits there, one of them the flag of an echo.
inline constexpr uint64_t channel_stamp_mask = 0x7fffffff;

/// A queue of an endpoint, or a channel, as modes see it.
struct Way {
    ntbmsg_endpoint *endpoint;
    uint16_t number; ///< of the queue; channels are counted on from the queues
    /// Where the channel's handle is, NULL there while it is not connected; NULL: a queue.
    ntbmsg_channel *const *channel = nullptr;

    // As ntbmsg_queue_send_burst() and ntbmsg_queue_recv_burst().
    int send(rte_mbuf **mbufs, const ntbmsg_meta *meta, uint16_t n) const
    {
        return channel == nullptr ? ntbmsg_queue_send_burst(endpoint, number, mbufs, meta, n)
                                  : send_on_channel(mbufs, meta, n);
    }
    int receive(rte_mbuf **mbufs, ntbmsg_meta *meta, uint16_t n) const
    {
        return channel == nullptr ? ntbmsg_queue_recv_burst(endpoint, number, mbufs, meta, n)
                                  : receive_on_channel(mbufs, meta, n);
    }
    // As ntbmsg_queue_reserve(), ntbmsg_queue_commit() and ntbmsg_queue_abort().
    int reserve(ntbmsg_room *rooms, uint16_t n) const
    {
        return channel == nullptr ? ntbmsg_queue_reserve(endpoint, number, rooms, n)
                                  : reserve_on_channel(rooms, n);
    }
    int commit(const uint32_t *lengths, const ntbmsg_meta *meta, uint16_t n) const
    {
        return channel == nullptr ? ntbmsg_queue_commit(endpoint, number, lengths, meta, n)
                                  : commit_on_channel(lengths, meta, n);
    }
    void abort() const
    {
        if (channel == nullptr)
            ntbmsg_queue_abort(endpoint, number);
        else
            ntbmsg_channel_abort(*channel);
    }
    /// Longest message in bytes that the peer takes; 0: there is none.
    uint32_t max_message() const;
    /// Bytes of receive buffers that the peer has for what it sends on the channel; 0: it is not
    /// open.
    uint32_t granted_bytes() const;
    /// What of ntbmsg_meta::data travels.
    uint64_t stamp_mask() const { return channel == nullptr ? ~uint64_t{0} : channel_stamp_mask; }

private:
    ntbmsg_channel_info info() const;
    int send_on_channel(rte_mbuf **mbufs, const ntbmsg_meta *meta, uint16_t n) const;
    int receive_on_channel(rte_mbuf **mbufs, ntbmsg_meta *meta, uint16_t n) const;
    int reserve_on_channel(ntbmsg_room *rooms, uint16_t n) const;
    int commit_on_channel(const uint32_t *lengths, const ntbmsg_meta *meta, uint16_t n) const;
};

} // namespace echo

#endif

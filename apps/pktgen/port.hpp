// SPDX-License-Identifier: BSD-3-Clause
// HOT. How messages of an operation travel: what the loops of stream.hpp, round_trips.hpp and
// echo_back.hpp are instantiated with. Another operation that moves mbufs is another such class.
#ifndef PKTGEN_PORT_HPP
#define PKTGEN_PORT_HPP

#include <cstdint>

#include <ntbmsg.h>

struct rte_mbuf;

namespace pktgen
{

/// Queue pairs. The first one belongs to the control messages.
class QueuePort
{
public:
    explicit QueuePort(ntbmsg_endpoint *endpoint) : endpoint_(endpoint) {}

    /// @return messages taken, or a negative errno
    int send(uint16_t lane, rte_mbuf **messages, const ntbmsg_meta *meta, uint16_t n) const
    {
        return ntbmsg_send_burst(endpoint_, queue_of(lane), messages, meta, n);
    }
    /// @return messages received, or a negative errno
    int receive(uint16_t lane, rte_mbuf **messages, ntbmsg_meta *meta, uint16_t n) const
    {
        return ntbmsg_recv_burst(endpoint_, queue_of(lane), messages, meta, n);
    }

private:
    static uint16_t queue_of(uint16_t lane) { return static_cast<uint16_t>(lane + 1); }

    ntbmsg_endpoint *endpoint_;
};

} // namespace pktgen

#endif

// SPDX-License-Identifier: BSD-3-Clause
// HOT. The sending end of a Link (loops.hpp) that builds its messages in receive buffers of the
// peer, as an application would write it. Each message takes one.
#ifndef BENCH_MBUFS_IN_PLACE_LINK_HPP
#define BENCH_MBUFS_IN_PLACE_LINK_HPP

#include "kernel/payload.hpp"
#include "loops.hpp"
#include "mbufs/mbuf_link.hpp"

#include <algorithm>

#include <ntbmsg.h>

namespace bench
{

template <size_t size>
class InPlaceLink
{
public:
    explicit InPlaceLink(ntbmsg_endpoint *endpoint) : m_endpoint(endpoint)
    {
        std::fill_n(m_lengths, most_burst, static_cast<uint32_t>(size));
    }

    int send(uint64_t value, unsigned n, uint64_t give_up)
    {
        ntbmsg_room rooms[most_burst];
        for (unsigned sent = 0; sent < n;) {
            const int got = measure::await(give_up, [&] {
                return ntbmsg_queue_reserve(m_endpoint, 0, rooms, static_cast<uint16_t>(n - sent));
            });
            if (got < 0)
                return -got;
            const auto count = static_cast<unsigned>(got);
            for (unsigned i = 0; i < count; i++)
                write_payload(rooms[i].address, size, value + sent + i);
            const int done = ntbmsg_queue_commit(m_endpoint, 0, m_lengths, nullptr,
                                                 static_cast<uint16_t>(count));
            if (done < 0)
                return -done;
            sent += count;
        }
        return 0;
    }

private:
    ntbmsg_endpoint *m_endpoint;
    uint32_t m_lengths[most_burst];
};

} // namespace bench

#endif

// SPDX-License-Identifier: BSD-3-Clause
#include "transport/note.hpp"

#include <cstring>

#include <rte_mbuf.h>

namespace pktgen
{

bool send_note(const ChannelLane &lane, rte_mempool *pool, const Note &note)
{
    rte_mbuf *message = rte_pktmbuf_alloc(pool);
    if (message == nullptr)
        return false;
    if (char *room = rte_pktmbuf_append(message, sizeof(note)); room != nullptr) {
        std::memcpy(room, &note, sizeof(note));
        if (ntbmsg_channel_send_burst(lane.channel, &message, nullptr, 1) == 1)
            return true;
    }
    rte_pktmbuf_free(message);
    return false;
}

std::optional<Note> take_note(const ChannelLane &lane)
{
    rte_mbuf *message = nullptr;
    if (ntbmsg_channel_recv_burst(lane.channel, &message, nullptr, 1) != 1)
        return std::nullopt;
    Note note; // the one copy that is looked at: the peer may still write to the mbuf
    const bool whole = message->pkt_len == sizeof(note) && message->data_len == sizeof(note);
    if (whole)
        std::memcpy(&note, rte_pktmbuf_mtod(message, const void *), sizeof(note));
    rte_pktmbuf_free(message);
    return whole ? std::optional(note) : std::nullopt;
}

} // namespace pktgen

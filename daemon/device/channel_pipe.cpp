// SPDX-License-Identifier: BSD-3-Clause
#include "device/channel_pipe.hpp"

#include <rte_mbuf.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace ntbd
{

namespace
{
// Up to the default of the devices for inline messages, which use no receive buffers.
constexpr size_t inline_bytes = 768;
constexpr size_t rooms_max = 16;

// What ends a channel, and what only says that it is not the time.
bool is_end(int status)
{
    return status < 0 && status != -ENOTCONN && status != -EBUSY;
}
} // namespace

size_t ChannelPipe::longest() const
{
    if (longest_ == 0) {
        ntbmsg_channel_info info = {};
        info.size = sizeof(info);
        ntbmsg_channel_info_get(channel_, &info);
        // Of an ended channel nothing is known: sending says so.
        longest_ = std::max(info.max_message, uint32_t{1});
    }
    return longest_;
}

int ChannelPipe::send_mbuf(rte_mbuf *message, uint32_t imm)
{
    const int sent = ntbmsg_channel_send_burst(channel_, &message, &imm, 1);
    if (sent != 1)
        rte_pktmbuf_free(message);
    return is_end(sent) ? sent : std::max(sent, 0);
}

ssize_t ChannelPipe::send_inline(const ntbc::Receiver &ring, size_t bytes)
{
    rte_mbuf *message = rte_pktmbuf_alloc(ntbmsg_endpoint_pool(endpoint_));
    char *to =
        message != nullptr ? rte_pktmbuf_append(message, static_cast<uint16_t>(bytes)) : nullptr;
    if (to == nullptr) {
        rte_pktmbuf_free(message);
        return -EAGAIN;
    }
    ring.copy(to, 0, bytes);
    const int sent = send_mbuf(message, 0);
    return sent == 1 ? static_cast<ssize_t>(bytes) : sent;
}

// Straight from the client's ring into the peer's window.
ssize_t ChannelPipe::send_in_place(const ntbc::Receiver &ring, size_t bytes)
{
    ntbmsg_room rooms[rooms_max];
    const size_t wanted = std::min((bytes + room_bytes_ - 1) / room_bytes_, rooms_max);
    const int got = ntbmsg_channel_reserve(channel_, rooms, static_cast<uint16_t>(wanted));
    if (got <= 0)
        return is_end(got) ? got : 0;
    room_bytes_ = rooms[0].bytes;
    size_t done = 0;
    for (int i = 0; i < got && done < bytes; i++) {
        const size_t some = std::min<size_t>(bytes - done, rooms[i].bytes);
        ring.copy(rooms[i].address, done, some);
        done += some;
    }
    const auto length = static_cast<uint32_t>(done);
    const int sent = ntbmsg_channel_commit(channel_, &length, nullptr, 1);
    ntbmsg_channel_abort(channel_);
    return sent == 1 ? static_cast<ssize_t>(done) : sent;
}

ssize_t ChannelPipe::send(const ntbc::Receiver &ring, size_t bytes)
{
    return bytes <= inline_bytes ? send_inline(ring, bytes) : send_in_place(ring, bytes);
}

int ChannelPipe::send(const Mark &mark)
{
    rte_mbuf *message = rte_pktmbuf_alloc(ntbmsg_endpoint_pool(endpoint_));
    char *to = message != nullptr ? rte_pktmbuf_append(message, sizeof(mark.count)) : nullptr;
    if (to == nullptr) {
        rte_pktmbuf_free(message);
        return -EAGAIN;
    }
    memcpy(to, &mark.count, sizeof(mark.count));
    return send_mbuf(message, mark.bits);
}

// The peer may still write what lies in its window: lengths were checked by the library, and bytes
// are the client's business.
Pipe::Got ChannelPipe::receive(ntbc::Sender *ring, size_t most)
{
    rte_mbuf *message;
    uint32_t imm;
    const int count = ntbmsg_channel_recv_burst(channel_, &message, &imm, 1);
    if (count == 0)
        return {Got::Kind::nothing};
    if (count < 0)
        return {Got::Kind::ended};
    Got got = {Got::Kind::bytes, rte_pktmbuf_pkt_len(message)};
    if (imm != 0) {
        got.kind = got.bytes == sizeof(got.mark.count) ? Got::Kind::mark : Got::Kind::wrong;
        got.mark.bits = imm;
        if (got.kind == Got::Kind::mark) {
            const void *bytes =
                rte_pktmbuf_read(message, 0, sizeof(got.mark.count), &got.mark.count);
            if (bytes != &got.mark.count)
                memcpy(&got.mark.count, bytes, sizeof(got.mark.count));
        }
    } else if (got.bytes == 0 || got.bytes > most) {
        got.kind = Got::Kind::wrong;
    } else if (ring != nullptr) {
        for (const rte_mbuf *part = message; part != nullptr; part = part->next)
            ring->put(rte_pktmbuf_mtod(part, const void *), rte_pktmbuf_data_len(part));
    }
    rte_pktmbuf_free(message);
    return got;
}

} // namespace ntbd

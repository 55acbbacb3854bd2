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

ChannelPipe::~ChannelPipe()
{
    drop_held();
    ntbmsg_channel_close(channel_);
}

void ChannelPipe::drop_held()
{
    rte_pktmbuf_free(held_);
    held_ = nullptr;
}

template <typename Fill>
ssize_t ChannelPipe::send_inline(size_t bytes, const Fill &fill)
{
    rte_mbuf *message = rte_pktmbuf_alloc(ntbmsg_endpoint_pool(endpoint_));
    char *to =
        message != nullptr ? rte_pktmbuf_append(message, static_cast<uint16_t>(bytes)) : nullptr;
    if (to == nullptr) {
        rte_pktmbuf_free(message);
        return -EAGAIN;
    }
    fill(to, 0, bytes);
    const int sent = send_mbuf(message, 0);
    return sent == 1 ? static_cast<ssize_t>(bytes) : sent;
}

// Straight from the client's ring into the peer's window.
template <typename Fill>
ssize_t ChannelPipe::send_in_place(size_t bytes, const Fill &fill)
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
        fill(rooms[i].address, done, some);
        done += some;
    }
    const auto length = static_cast<uint32_t>(done);
    const int sent = ntbmsg_channel_commit(channel_, &length, nullptr, 1);
    ntbmsg_channel_abort(channel_);
    return sent == 1 ? static_cast<ssize_t>(done) : sent;
}

template <typename Fill>
ssize_t ChannelPipe::send_filled(size_t bytes, const Fill &fill)
{
    return bytes <= inline_bytes ? send_inline(bytes, fill) : send_in_place(bytes, fill);
}

ssize_t ChannelPipe::send(const ntbc::Receiver &ring, size_t bytes)
{
    return send_filled(bytes, [&](void *to, size_t from, size_t n) { ring.copy(to, from, n); });
}

// The peer's receive buffers are larger than the words.
ssize_t ChannelPipe::send(const LineWords &words, const ntb::socket::Ring &ring, uint64_t position,
                          size_t bytes)
{
    const size_t most = std::max(longest(), sizeof(words)) - sizeof(words);
    const size_t all = sizeof(words) + std::min(bytes, most);
    return send_filled(all, [&](void *to, size_t from, size_t n) {
        auto *at = static_cast<uint8_t *>(to);
        size_t skipped = 0;
        if (from < sizeof(words)) {
            skipped = std::min(sizeof(words) - from, n);
            memcpy(at, reinterpret_cast<const uint8_t *>(&words) + from, skipped);
        }
        ring.copy_out(at + skipped, position + (from + skipped - sizeof(words)), n - skipped);
    });
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

Pipe::Got ChannelPipe::receive(LineWords *words)
{
    uint32_t imm;
    drop_held();
    const int count = ntbmsg_channel_recv_burst(channel_, &held_, &imm, 1);
    if (count <= 0) {
        held_ = nullptr;
        return {count == 0 ? Got::Kind::nothing : Got::Kind::ended};
    }
    const size_t bytes = rte_pktmbuf_pkt_len(held_);
    const void *const first = imm == 0 && bytes >= sizeof(*words)
                                  ? rte_pktmbuf_read(held_, 0, sizeof(*words), words)
                                  : nullptr;
    if (first == nullptr)
        return {Got::Kind::wrong};
    if (first != words)
        memcpy(words, first, sizeof(*words));
    return {Got::Kind::words, bytes - sizeof(*words)};
}

void ChannelPipe::copy(size_t from, const ntb::socket::Ring &ring, uint64_t position, size_t bytes)
{
    size_t skip = sizeof(LineWords) + from;
    for (const rte_mbuf *part = held_; part != nullptr && bytes > 0; part = part->next) {
        const size_t length = rte_pktmbuf_data_len(part);
        if (skip >= length) {
            skip -= length;
            continue;
        }
        const size_t some = std::min(length - skip, bytes);
        ring.copy_in(position, rte_pktmbuf_mtod(part, const uint8_t *) + skip, some);
        position += some;
        bytes -= some;
        skip = 0;
    }
}

} // namespace ntbd

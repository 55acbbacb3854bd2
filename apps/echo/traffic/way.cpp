// SPDX-License-Identifier: BSD-3-Clause
#include "traffic/way.hpp"

#include <array>
#include <cerrno>

#include "traffic/stamp.hpp"

namespace echo
{

namespace
{

constexpr unsigned echoed_bit = 31;

using Words = std::array<uint32_t, longest_burst>;

Words words_of(const ntbmsg_meta *meta, uint16_t n)
{
    Words words;
    for (uint16_t i = 0; i < n; ++i)
        words[i] = static_cast<uint32_t>(meta[i].data & channel_stamp_mask) |
                   (meta[i].flags & echoed_flag) << echoed_bit;
    return words;
}

int without_peer(int rc)
{
    return rc == -ESHUTDOWN || rc == -ECONNRESET ? -ENOTCONN : rc;
}

} // namespace

int Way::send_on_channel(rte_mbuf **mbufs, const ntbmsg_meta *meta, uint16_t n) const
{
    if (*channel == nullptr)
        return -ENOTCONN;
    const Words words = words_of(meta, n);
    return without_peer(ntbmsg_channel_send_burst(*channel, mbufs, words.data(), n));
}

int Way::reserve_on_channel(ntbmsg_room *rooms, uint16_t n) const
{
    if (*channel == nullptr)
        return -ENOTCONN;
    return without_peer(ntbmsg_channel_reserve(*channel, rooms, n));
}

int Way::commit_on_channel(const uint32_t *lengths, const ntbmsg_meta *meta, uint16_t n) const
{
    const Words words = words_of(meta, n);
    return without_peer(ntbmsg_channel_commit(*channel, lengths, words.data(), n));
}

int Way::receive_on_channel(rte_mbuf **mbufs, ntbmsg_meta *meta, uint16_t n) const
{
    if (*channel == nullptr)
        return 0;
    Words words;
    const int got = ntbmsg_channel_recv_burst(*channel, mbufs, words.data(), n);
    if (meta == nullptr)
        return got;
    for (int i = 0; i < got; ++i) {
        const uint32_t word = words[static_cast<size_t>(i)];
        meta[i] = {word & channel_stamp_mask, word >> echoed_bit, 0};
    }
    return got;
}

/// @return zeros where the channel is not open
ntbmsg_channel_info Way::info() const
{
    ntbmsg_channel_info info{};
    info.size = sizeof(info);
    const bool open =
        *channel != nullptr && ntbmsg_channel_state_get(*channel) == NTBMSG_CHANNEL_OPEN;
    return open && ntbmsg_channel_info_get(*channel, &info) == 0 ? info : ntbmsg_channel_info{};
}

uint32_t Way::max_message() const
{
    return channel == nullptr ? ntbmsg_endpoint_max_message(endpoint) : info().max_message;
}

uint32_t Way::granted_bytes() const
{
    return info().granted_bytes;
}

} // namespace echo

// SPDX-License-Identifier: BSD-3-Clause
// Channels with credit for long messages, and messages whose bytes say where they belong.
#ifndef LONG_MESSAGES_HPP
#define LONG_MESSAGES_HPP

#include <span>

#include "channels.hpp"

constexpr uint32_t kib = 1024, mib = 1024 * kib;

/// Receive buffers for messages of up to @p longest bytes, and a second time so many that channels
/// may promise.
inline ntbmsg_endpoint_options with_buffers(ntbmsg_endpoint_options options, uint32_t longest)
{
    constexpr uint32_t buffers_per_line = 14, always_kept = 13;
    options.buf_bytes = longest > 4 * mib ? 32768 : 16384;
    const uint32_t needed = (longest + options.buf_bytes - 1) / options.buf_bytes;
    options.queue_buffers =
        (needed + always_kept + buffers_per_line - 1) / buffers_per_line * buffers_per_line;
    options.buffers = options.queue_buffers + needed;
    options.tx_room = 65280;
    options.tx_mbufs = 400;
    return options;
}

/// On workers of both kinds, driven by turns from the test's thread; true: dedicated.
class LongMessage : public Channels, public testing::WithParamInterface<bool>
{
protected:
    static ntbmsg_endpoint_options long_options(uint32_t longest)
    {
        ntbmsg_endpoint_options options = with_buffers(worker_options(), longest);
        options.dedicated = GetParam();
        return options;
    }
    static ntbmsg_channel_options credit_of(uint32_t bytes)
    {
        ntbmsg_channel_options options = channel_options();
        options.credit_bytes = bytes;
        options.send_depth = 4; // dedicated: what waits holds mbufs
        return options;
    }
    /// Both ends with one channel, whose far end grants all buffers that there are.
    void bring_up_with(uint32_t longest)
    {
        ASSERT_NO_FATAL_FAILURE(bring_up(long_options(longest)));
        ASSERT_NO_FATAL_FAILURE(
            join(near_channel_, far_channel_, credit_of(longest), credit_of(longest)));
    }
    /// The near end goes away with its channel, and is opened again.
    void lose_near_and_meet_again(const ntbmsg_endpoint_options &options)
    {
        give_back({near_channel_});
        ASSERT_NO_FATAL_FAILURE(close(near_));
        near_worker_ = nullptr;
        ASSERT_TRUE(await_state(far_channel_, NTBMSG_CHANNEL_LOST));
        give_back({far_channel_});
        ASSERT_NO_FATAL_FAILURE(open(near_device, near_, options));
        ASSERT_EQ(ntbmsg_endpoint_wait_connected(near_, patience_ms), 0);
        ASSERT_EQ(ntbmsg_endpoint_wait_connected(far_, patience_ms), 0);
        near_worker_ = ntbmsg_endpoint_worker(near_, 0);
    }
    /// A message whose bytes say where they belong.
    rte_mbuf *numbered(uint32_t bytes, uint32_t seed)
    {
        rte_mbuf *m = message(near_, bytes, 0);
        uint32_t at = 0;
        for (rte_mbuf *s = m; s != nullptr; s = s->next) {
            auto *data = rte_pktmbuf_mtod(s, uint8_t *);
            for (uint32_t i = 0; i < s->data_len; ++i)
                data[i] = byte_at(at++, seed);
        }
        return m;
    }
    static uint8_t byte_at(uint32_t at, uint32_t seed)
    {
        return static_cast<uint8_t>((at + (at >> 12) + seed) * 131);
    }
    static bool is_numbered(const rte_mbuf *m, uint32_t bytes, uint32_t seed)
    {
        uint32_t at = 0;
        for (const rte_mbuf *s = m; s != nullptr; s = s->next) {
            const auto *data = rte_pktmbuf_mtod(s, const uint8_t *);
            for (uint32_t i = 0; i < s->data_len; ++i)
                if (data[i] != byte_at(at++, seed))
                    return false;
        }
        return at == bytes && m->pkt_len == bytes;
    }
    /// Sends it as soon as there is room.
    bool send(ntbmsg_channel *channel, rte_mbuf *m, uint32_t imm = 0)
    {
        int sent = 0;
        EXPECT_NE(m, nullptr);
        return await(
                   [&] { return (sent = ntbmsg_channel_send_burst(channel, &m, &imm, 1)) != 0; }) &&
               sent == 1;
    }
    void expect(ntbmsg_channel *channel, uint32_t bytes, uint32_t seed)
    {
        uint32_t imm = 0;
        rte_mbuf *got = receive_one(channel, &imm);
        ASSERT_NE(got, nullptr) << bytes;
        EXPECT_EQ(imm, seed);
        EXPECT_TRUE(is_numbered(got, bytes, seed)) << bytes << " " << got->pkt_len;
        rte_pktmbuf_free(got);
    }
    /// Sends so many of these lengths in turn, and receives them meanwhile.
    /// @param at_a_time  most that are on their way
    void expect_order(std::span<const uint32_t> lengths, uint32_t total, uint32_t at_a_time)
    {
        const auto length_of = [&](uint32_t i) { return lengths[i % lengths.size()]; };
        uint32_t sent = 0, received = 0;
        rte_mbuf *m = nullptr;
        ASSERT_TRUE(await([&] {
            if (m == nullptr && sent < total && sent - received < at_a_time)
                m = numbered(length_of(sent), sent);
            if (m != nullptr && ntbmsg_channel_send_burst(near_channel_, &m, &sent, 1) == 1) {
                m = nullptr;
                ++sent;
            }
            rte_mbuf *got = nullptr;
            uint32_t imm = 0;
            if (ntbmsg_channel_recv_burst(far_channel_, &got, &imm, 1) == 1) {
                EXPECT_EQ(imm, received);
                EXPECT_TRUE(is_numbered(got, length_of(received), received)) << received;
                rte_pktmbuf_free(got);
                ++received;
            }
            return received == total;
        })) << sent
            << " " << received;
    }
    ntbmsg_channel *near_channel_ = nullptr;
    ntbmsg_channel *far_channel_ = nullptr;
};

#endif

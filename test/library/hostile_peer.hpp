// SPDX-License-Identifier: BSD-3-Clause
// A worker against a peer that says what no worker says: no one polls the worker of the far end,
// and what it sends and receives goes past it, through the driver.
#ifndef HOSTILE_PEER_HPP
#define HOSTILE_PEER_HPP

#include <rte_pmd_plx_ntb.h>

#include "channels.hpp"

#include "wire/protocol.hpp"

using namespace ntbmsg::protocol;

class HostilePeer : public Channels
{
protected:
    /// Of the endpoint with the worker.
    virtual ntbmsg_endpoint_options near_options() const { return worker_options(); }

    void SetUp() override
    {
        Channels::SetUp();
        far_id_ = static_cast<uint16_t>(rte_pmd_plx_ntb_find(far_device));
        ASSERT_NO_FATAL_FAILURE(open(near_device, near_, near_options()));
        ASSERT_NO_FATAL_FAILURE(open(far_device, far_, worker_options()));
        ASSERT_EQ(ntbmsg_endpoint_wait_connected(near_, patience_ms), 0);
        ASSERT_EQ(ntbmsg_endpoint_wait_connected(far_, patience_ms), 0);
        near_worker_ = ntbmsg_endpoint_worker(near_, 0);
        ASSERT_EQ(ntbmsg_listener_open(port, 0, &listener_), 0);
    }

    /// By the far end. @return what the call gave
    int far_send(rte_mbuf *mbuf, const ntbmsg_meta &meta)
    {
        const rte_pmd_plx_ntb_meta said = {meta.data, meta.flags, 0};
        return rte_pmd_plx_ntb_tx_burst(far_id_, 0, &mbuf, &said, 1);
    }
    int far_receive(rte_mbuf *&mbuf, ntbmsg_meta &meta)
    {
        rte_pmd_plx_ntb_meta heard{};
        const int n = rte_pmd_plx_ntb_rx_burst(far_id_, 0, &mbuf, &heard, 1);
        meta = {heard.data, heard.flags, 0};
        return n;
    }

    struct Heard {
        bool came;
        uint32_t op, word, argument;
        std::vector<uint8_t> bytes;
    };

    /// Says something to the worker.
    void say(uint32_t op, uint32_t word, uint32_t argument, const void *from = nullptr,
             size_t bytes = 0)
    {
        rte_mbuf *mbuf = message(far_, bytes, 0);
        ASSERT_NE(mbuf, nullptr);
        if (bytes != 0)
            std::memcpy(rte_pktmbuf_mtod(mbuf, void *), from, bytes);
        const ntbmsg_meta meta = {header(word, argument), op, 0};
        int sent = 0;
        for (const uint64_t end = now_ms() + patience_ms; sent == 0 && now_ms() < end;) {
            sent = far_send(mbuf, meta);
            ntbmsg_worker_poll(near_worker_);
        }
        ASSERT_EQ(sent, 1);
    }
    /// What the worker says next.
    Heard hear()
    {
        Heard heard = {};
        rte_mbuf *got = nullptr;
        ntbmsg_meta meta{};
        for (const uint64_t end = now_ms() + patience_ms; !heard.came && now_ms() < end;) {
            ntbmsg_worker_poll(near_worker_);
            heard.came = far_receive(got, meta) == 1;
        }
        if (heard.came) {
            heard.op = meta.flags;
            heard.word = header_word(meta.data);
            heard.argument = header_argument(meta.data);
            const auto *data = rte_pktmbuf_mtod(got, const uint8_t *);
            heard.bytes.assign(data, data + got->data_len);
            rte_pktmbuf_free(got);
        }
        return heard;
    }
    /// Until the one worker has read all that was said to it.
    void turn() override
    {
        for (int i = 0; i < 200; ++i)
            ntbmsg_worker_poll(near_worker_);
    }

    static Hello sound_hello()
    {
        Hello hello{};
        hello.magic = hello_magic;
        hello.major = major;
        hello.bytes = sizeof(hello);
        hello.channels = 64;
        hello.buf_bytes = 2048;
        hello.inline_max = 1024;
        return hello;
    }
    void greet()
    {
        const Heard heard = hear();
        ASSERT_EQ(heard.op, op_hello);
        ASSERT_EQ(heard.bytes.size(), sizeof(Hello));
        const Hello hello = sound_hello();
        ASSERT_NO_FATAL_FAILURE(say(op_hello, 0, 0, &hello, sizeof(hello)));
    }
    /// Of what the peer said of itself, for a reason with @p word in it.
    void expect_refused(const char *word)
    {
        char why[100];
        ASSERT_EQ(ntbmsg_endpoint_link_reason_get(near_, why, sizeof(why)), 0);
        EXPECT_NE(std::strstr(why, word), nullptr) << why;
        ntbmsg_channel *channel = nullptr;
        EXPECT_EQ(ntbmsg_channel_connect(near_worker_, port, nullptr, &channel), -ENOTCONN);
    }
    static Opening sound_opening(uint16_t slot = 3)
    {
        return {.slot = slot,
                .generation = 9,
                .messages = 16,
                .buffers = 8,
                .max_message = 8192,
                .timeout_ms = 5000,
                .private_bytes = 0};
    }
    /// A channel that the worker connected and this side accepted. @return its word
    uint32_t open_channel(ntbmsg_channel *&channel, const ntbmsg_channel_options *options = nullptr,
                          const Opening &answer = sound_opening())
    {
        EXPECT_EQ(ntbmsg_channel_connect(near_worker_, port, options, &channel), 0);
        const Heard heard = hear();
        EXPECT_EQ(heard.op, op_connect);
        Opening asked{};
        EXPECT_EQ(heard.bytes.size(), sizeof(asked));
        std::memcpy(&asked, heard.bytes.data(), sizeof(asked));
        const uint32_t word = slot_word(asked.slot, asked.generation);
        say(op_accept, word, 0, &answer, sizeof(answer));
        turn();
        EXPECT_EQ(ntbmsg_channel_state_get(channel), NTBMSG_CHANNEL_OPEN);
        return word;
    }
    /// An answer with so much credit that the ring is full before that is used up.
    static Opening generous_opening()
    {
        Opening opening = sound_opening();
        opening.messages = max_credit;
        return opening;
    }
    /// Sends until the ring takes not even a message of no bytes. @return messages sent
    unsigned fill_ring(ntbmsg_channel *channel)
    {
        unsigned sent = 0;
        for (const size_t bytes : {size_t{64}, size_t{0}}) {
            while (sent < 1000 && send_one(near_, channel, bytes, 0) == 1)
                ++sent;
        }
        EXPECT_LT(sent, 1000U);
        return sent;
    }
    /// The worker says @p n messages of DATA, and nothing else.
    void hear_data(unsigned n)
    {
        for (unsigned i = 0; i < n; ++i)
            ASSERT_EQ(hear().op, op_data) << i << " of " << n;
    }
    /// The worker has nothing more to say.
    bool is_silent()
    {
        turn();
        rte_mbuf *got = nullptr;
        ntbmsg_meta meta;
        if (far_receive(got, meta) == 0)
            return true;
        rte_pktmbuf_free(got);
        return false;
    }
    /// The peer goes and comes back; the worker is not polled meanwhile.
    void come_back()
    {
        ASSERT_NO_FATAL_FAILURE(close(far_));
        ASSERT_TRUE(await_event(near_, NTBMSG_EVENT_LOST));
        ASSERT_NO_FATAL_FAILURE(open(far_device, far_, worker_options()));
        ASSERT_EQ(ntbmsg_endpoint_wait_connected(far_, patience_ms), 0);
        ASSERT_EQ(ntbmsg_endpoint_wait_connected(near_, patience_ms), 0);
    }
    /// The worker answers by a reset, and counts.
    void expect_protest(ntbmsg_channel *channel)
    {
        const Heard heard = hear();
        EXPECT_EQ(heard.op, op_reset);
        EXPECT_EQ(heard.word, slot_word(3, 9));
        EXPECT_EQ(heard.argument, static_cast<uint32_t>(NTBMSG_REASON_PROTOCOL));
        EXPECT_EQ(ntbmsg_channel_state_get(channel), NTBMSG_CHANNEL_RESET);
        EXPECT_EQ(stats(near_).bad_peer, 1U);
        give_back({channel});
    }

    uint16_t far_id_ = 0;
};

#endif

// SPDX-License-Identifier: BSD-3-Clause
// Statements of doc/semantics.md that need two threads: each plays one host, as two machines would.
#include <atomic>
#include <thread>

#include "channels.hpp"

namespace
{

using SemanticsThreads = Channels;

constexpr uint32_t total = 400;

/// Lengths on both sides of what travels inside the ring.
size_t length_of(uint32_t i)
{
    return i % 5 == 0 ? 1200 + i : i % 200;
}

uint8_t byte_of(uint32_t i, size_t at)
{
    return static_cast<uint8_t>(i * 7 + at);
}

/// @return bytes of a message that are not as they were sent, through all its mbufs
size_t wrong_bytes(const rte_mbuf *m, uint32_t i)
{
    size_t at = 0, wrong = 0;
    for (; m != nullptr; m = m->next) {
        const auto *data = rte_pktmbuf_mtod(m, const uint8_t *);
        for (uint16_t k = 0; k < m->data_len; ++k)
            wrong += data[k] != byte_of(i, at++);
    }
    return wrong;
}

// Semantics: receive-1
TEST_F(SemanticsThreads, AMessageIsWholeWhenItIsReceived)
{
    ASSERT_NO_FATAL_FAILURE(bring_up());
    ntbmsg_channel *from = nullptr, *to = nullptr;
    ASSERT_NO_FATAL_FAILURE(join(from, to));
    const uint64_t end = now_ms() + patience_ms;
    std::atomic<bool> sender_well{true};
    std::thread sender([&] {
        for (uint32_t i = 0; i < total && sender_well; ++i) {
            rte_mbuf *mbuf = message(near_, length_of(i), 0);
            if (mbuf == nullptr) {
                sender_well = false;
                break;
            }
            for (size_t at = 0; at < length_of(i); ++at)
                rte_pktmbuf_mtod(mbuf, uint8_t *)[at] = byte_of(i, at);
            int sent = 0;
            while (sent == 0 && now_ms() < end) {
                sent = ntbmsg_channel_send_burst(from, &mbuf, &i, 1);
                if (sent == 0)
                    ntbmsg_worker_poll(near_worker_);
            }
            sender_well = sent == 1;
        }
    });
    uint32_t received = 0;
    size_t wrong = 0;
    while (received < total && sender_well && now_ms() < end) {
        rte_mbuf *got = nullptr;
        uint32_t imm = 0;
        if (ntbmsg_channel_recv_burst(to, &got, &imm, 1) != 1)
            continue;
        wrong += imm != received || got->pkt_len != length_of(received);
        wrong += wrong_bytes(got, received++);
        rte_pktmbuf_free(got);
    }
    sender.join();
    EXPECT_TRUE(sender_well);
    EXPECT_EQ(received, total);
    EXPECT_EQ(wrong, 0U);
    give_back({from, to});
}

} // namespace

// SPDX-License-Identifier: BSD-3-Clause
// Sender and receiver on two threads: real concurrency, and what ThreadSanitizer looks at.
#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include "pair.hpp"
#include "queue/variants.hpp"

namespace test_queue
{

using namespace plx::queue;

namespace
{

constexpr uint32_t messages = 20000;
constexpr unsigned tries_max = 200000000;

uint32_t length_of(uint32_t id)
{
    return id % 17 == 0 ? 1100 + id % 900 : id * 7 % 200;
}

/// @return messages sent before the bound on tries ran out.
uint32_t send_all(Pair &pair, const std::atomic<bool> &give_up)
{
    uint32_t sent = 0;
    for (unsigned tries = 0; sent < messages && tries < tries_max && !give_up; tries++) {
        std::vector<rte_mbuf *> in;
        std::vector<Meta> meta;
        for (uint32_t i = 0; i < 1 + sent % 32 && sent + i < messages; i++) {
            in.push_back(pair.message(length_of(sent + i), sent + i));
            meta.push_back({sent + i, i & 0x3f, 0});
        }
        const int n = pair.send(in, meta.data());
        for (size_t i = n > 0 ? static_cast<size_t>(n) : 0; i < in.size(); i++)
            rte_pktmbuf_free(in[i]);
        if (n < 0)
            break;
        sent += static_cast<uint32_t>(n);
        if (n == 0)
            std::this_thread::yield();
    }
    // What an engine holds comes back in later bursts, and it moves in them.
    for (unsigned tries = 0; tries < tries_max && pair.options.engine != nullptr &&
                             rte_mempool_in_use_count(pair.sent_pool) > 0 && !give_up;
         tries++)
        pair.tx(nullptr, nullptr, 0);
    return sent;
}

uint32_t receive_all(Pair &pair)
{
    uint32_t got = 0;
    for (unsigned tries = 0; got < messages && tries < tries_max; tries++) {
        Meta meta[32];
        const auto out = pair.receive(32, meta);
        for (size_t i = 0; i < out.size(); i++, got++) {
            const bool right = Pair::matches(out[i], length_of(got), got) && meta[i].data == got;
            rte_pktmbuf_free(out[i]);
            if (!right)
                return got;
        }
        if (out.empty())
            std::this_thread::yield();
    }
    return got;
}

void pass_all(Pair &pair)
{
    std::atomic<bool> give_up{false};
    uint32_t sent = 0;
    std::thread sender([&] { sent = send_all(pair, give_up); });
    const uint32_t got = receive_all(pair);
    give_up = true;
    sender.join();
    EXPECT_EQ(got, messages);
    EXPECT_EQ(sent, messages);
    EXPECT_EQ(tx_stats(pair.tx_half).messages, messages);
    EXPECT_EQ(rx_stats(pair.rx_half).messages, messages);
    pair.close();
    EXPECT_TRUE(pair.nothing_leaked());
    EXPECT_TRUE(pair.guards_intact());
}

} // namespace

TEST(Threads, EverythingArrivesInOrder)
{
    Pair pair(*select_ops(Policy::plain), {.sent_mbufs = 2047});
    pass_all(pair);
}

TEST(Threads, ASmallRingAndFewBuffersMakeProgress)
{
    Pair pair(*select_ops(Policy::plain), {.ring_lines = 64,
                                           .buffers = 40,
                                           .buffers_target = 28,
                                           .inline_max = 200,
                                           .inline_mbufs = 63,
                                           .sent_mbufs = 2047});
    pass_all(pair);
}

TEST(Threads, WithAnEngineEverythingArrivesInOrderToo)
{
    LateEngine engine;
    engine.eager = true;
    Pair pair(*select_ops(Policy::plain),
              {.sent_mbufs = 2047, .engine = &engine, .engine_min = 1500});
    pass_all(pair);
    EXPECT_GT(tx_stats(pair.tx_half).dma_messages, messages / 100);
    EXPECT_GT(tx_stats(pair.tx_half).cpu_messages, messages / 100);
}

TEST(Threads, TheVariantOfEachCpuIsTheSame)
{
    Pair pair(sse4::plain_ops, {.sent_mbufs = 2047});
    pass_all(pair);
}

TEST(Threads, StatisticsMayBeReadMeanwhile)
{
    Pair pair(*select_ops(Policy::plain), {.sent_mbufs = 2047});
    std::atomic<bool> done{false};
    uint64_t last = 0;
    bool ordered = true;
    std::thread reader([&] {
        while (!done) {
            const uint64_t now = tx_stats(pair.tx_half).messages;
            ordered = ordered && now >= last;
            last = now;
            std::this_thread::yield();
        }
    });
    pass_all(pair);
    done = true;
    reader.join();
    EXPECT_TRUE(ordered);
}

} // namespace test_queue

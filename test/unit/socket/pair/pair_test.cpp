// SPDX-License-Identifier: BSD-3-Clause
#include "pair/pair.hpp"

#include <gtest/gtest.h>
#include <vector>

using namespace ntb::socket;

namespace
{

TEST(Pair, WordsComeBackAsStored)
{
    SenderLine line = {};
    const SenderWords words = {.generation = 3,
                               .started = true,
                               .mark = Mark::Revert,
                               .start = 1000,
                               .head = 5000,
                               .mark_offset = 5000};
    store_words(line, words);
    const SenderWords got = load_words(line);
    EXPECT_EQ(got.generation, 3u);
    EXPECT_TRUE(got.started);
    EXPECT_EQ(got.mark, Mark::Revert);
    EXPECT_EQ(got.start, 1000u);
    EXPECT_EQ(got.head, 5000u);
    EXPECT_EQ(got.mark_offset, 5000u);
    publish_head(line, 6000);
    EXPECT_EQ(load_words(line).head, 6000u);
}

TEST(Pair, AGrantClearsWhatTheOlderRingHad)
{
    Lines lines = {};
    store_words(lines.sender, {.generation = 1, .started = true, .mark = Mark::Revert, .head = 9});
    lines.receiver_asks.seen = 1;
    lines.receiver_asks.ask = 1;
    store_grant(lines, {.generation = 2, .taken = 77}, 4096);
    const SenderWords sender = load_words(lines.sender);
    EXPECT_EQ(sender.generation, 0u);
    EXPECT_FALSE(sender.started);
    EXPECT_EQ(sender.mark, Mark::None);
    EXPECT_EQ(sender.head, 0u);
    const ReceiverWords receiver = load_words(lines.receiver_asks);
    EXPECT_EQ(receiver.generation, 2u);
    EXPECT_FALSE(receiver.seen);
    EXPECT_FALSE(receiver.ask);
    EXPECT_EQ(lines.receiver.taken, 77u);
    EXPECT_EQ(lines.receiver_asks.ring_bytes, 4096u);
    store_words(lines.receiver_asks, ReceiverWords{.generation = 2, .seen = true, .ask = true});
    EXPECT_TRUE(load_words(lines.receiver_asks).seen);
    EXPECT_TRUE(load_words(lines.receiver_asks).ask);
}

TEST(Pair, BytesGoAroundTheEndOfTheRing)
{
    constexpr std::uint32_t bytes = 4096;
    std::vector<std::uint8_t> memory(ntbc::memory_bytes(bytes), 0xEE);
    for (unsigned direction = 0; direction < 2; direction++) {
        const Ring ring = ring_of(memory.data(), bytes, direction);
        EXPECT_EQ(ring.data, memory.data() + ntbc::page_bytes + direction * bytes);
        const char text[] = "over the end";
        char got[sizeof(text)] = {};
        ring.copy_in(3 * bytes - 5, text, sizeof(text));
        ring.copy_out(got, 7 * bytes - 5, sizeof(text));
        EXPECT_STREQ(got, text);
        EXPECT_EQ(ring.data[bytes - 6], 0xEE);
        EXPECT_EQ(ring.data[sizeof(text) - 5], 0xEE);
    }
}

} // namespace

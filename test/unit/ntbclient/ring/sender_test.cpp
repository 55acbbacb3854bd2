// SPDX-License-Identifier: BSD-3-Clause
#include "rings.hpp"

using namespace ntbc;
using namespace ntbc::test;

namespace
{
TEST(RingSender, RefusesACursorThatGoesBackOrTooFar)
{
    for (const uint64_t wrong : {uint64_t{49}, uint64_t{101}, count_mask}) {
        Rings rings(ring_bytes_min);
        Sender sender;
        rings.open(&sender);
        const std::vector<uint8_t> bytes(200);
        sender.put(bytes.data(), 100);
        sender.publish();
        store(rings.lines().consumed, uint64_t{50});
        ASSERT_EQ(sender.room(ring_bytes_min), ring_bytes_min - 50u);
        sender.put(bytes.data(), 100); // not shown: it cannot be returned
        store(rings.lines().consumed, wrong);
        EXPECT_EQ(sender.room(ring_bytes_min), 0u) << wrong;
        EXPECT_TRUE(sender.is_broken()) << wrong;
        store(rings.lines().consumed, uint64_t{60}); // for good
        EXPECT_EQ(sender.room(ring_bytes_min), 0u) << wrong;
    }
}

// A sender under a consumer that writes anything, everywhere, at any time.
TEST(RingSender, StaysInsideWhateverTheConsumerWrites)
{
    const std::vector<uint8_t> bytes(2 * ring_bytes_min, 7);
    for (uint32_t seed = 0; seed < 2000; seed++) {
        Rings rings(ring_bytes_min);
        Sender sender;
        rings.open(&sender);
        Words words(seed);
        for (int i = 0; i < 50; i++) {
            Direction &lines = rings.lines();
            store(lines.published, words.next(sender.sent()));
            store(lines.consumed, words.next(sender.sent() - sender.outstanding()));
            store(lines.wants_room, static_cast<uint32_t>(words.next(0)));
            store(lines.wants_data, static_cast<uint32_t>(words.next(0)));
            const size_t room = sender.room(1 + words.number(2 * ring_bytes_min));
            ASSERT_LE(room, ring_bytes_min) << "seed " << seed;
            sender.put(bytes.data(), room != 0 ? words.number(room + 1) : 0);
            ASSERT_LE(sender.outstanding(), ring_bytes_min) << "seed " << seed;
            sender.publish();
            if (words.number(4) == 0)
                sender.arm();
            sender.disarm();
            ASSERT_EQ(load(lines.published), sender.sent()) << "seed " << seed;
        }
    }
}

TEST(RingSender, IsWokenWhenAQuarterIsFree)
{
    Rings rings(ring_bytes_min);
    Sender sender;
    Receiver receiver;
    rings.open(&sender);
    rings.open(&receiver);
    EXPECT_FALSE(sender.arm()); // there is room
    const std::vector<uint8_t> bytes(ring_bytes_min);
    sender.put(bytes.data(), bytes.size());
    sender.publish();
    EXPECT_TRUE(sender.arm());
    ASSERT_EQ(receiver.look(), ring_bytes_min);
    EXPECT_FALSE(receiver.take(ring_bytes_min / 4 - 1));
    EXPECT_TRUE(receiver.take(1));
    EXPECT_FALSE(receiver.take(ring_bytes_min / 4)); // once
    EXPECT_FALSE(sender.arm());
}

TEST(RingSender, IsNotWokenForLessThanAQuarter)
{
    Rings rings(ring_bytes_min);
    Sender sender;
    Receiver receiver;
    rings.open(&sender);
    rings.open(&receiver);
    const std::vector<uint8_t> bytes(ring_bytes_min);
    sender.put(bytes.data(), bytes.size());
    sender.publish();
    EXPECT_TRUE(sender.arm());
    receiver.look();
    receiver.take(1);
    EXPECT_FALSE(receiver.publish_taken());
    receiver.take(ring_bytes_min / 4 - 2);
    EXPECT_FALSE(receiver.publish_taken());
    receiver.take(1);
    EXPECT_TRUE(receiver.publish_taken());
}

TEST(RingSender, KeepsTheEndOnceItWasSaid)
{
    Rings rings(ring_bytes_min);
    Sender sender;
    rings.open(&sender);
    EXPECT_FALSE(sender.has_ended());
    sender.publish_end(mark_end);
    EXPECT_TRUE(sender.has_ended());
    sender.publish();
    EXPECT_EQ(load(rings.lines().published), mark_end);
}
} // namespace

// SPDX-License-Identifier: BSD-3-Clause
#include "rings.hpp"

#include <algorithm>
#include <atomic>
#include <thread>

using namespace ntbc;
using namespace ntbc::test;

namespace
{
std::vector<uint8_t> stream(uint64_t from, size_t bytes)
{
    std::vector<uint8_t> out(bytes);
    for (size_t i = 0; i < bytes; i++)
        out[i] = byte_at(from + i);
    return out;
}

TEST(RingReceiver, TakesWhatWasPutInOrderOverManyLaps)
{
    Rings rings(ring_bytes_min);
    Sender sender;
    Receiver receiver;
    rings.open(&sender);
    rings.open(&receiver);
    Words words(1);
    uint64_t put = 0;
    uint64_t taken = 0;
    while (taken < 100 * ring_bytes_min) {
        const size_t bytes = std::min<size_t>(1 + words.number(3000), sender.room(3000));
        sender.put(stream(put, bytes).data(), bytes);
        put += bytes;
        sender.publish();
        const size_t some = std::min<size_t>(1 + words.number(3000), receiver.look());
        std::vector<uint8_t> got(some);
        receiver.copy(got.data(), 0, some);
        ASSERT_EQ(got, stream(taken, some));
        receiver.take(some);
        taken += some;
    }
    EXPECT_EQ(receiver.taken(), taken);
}

TEST(RingReceiver, HoldsAWholeRingAndNoByteMore)
{
    Rings rings(ring_bytes_min);
    Sender sender;
    Receiver receiver;
    rings.open(&sender);
    rings.open(&receiver);
    EXPECT_EQ(sender.room(~size_t{0}), ring_bytes_min);
    sender.put(stream(0, ring_bytes_min).data(), ring_bytes_min);
    sender.publish();
    EXPECT_EQ(sender.room(1), 0u);
    EXPECT_EQ(receiver.look(), ring_bytes_min);
    receiver.take(ring_bytes_min);
    EXPECT_EQ(sender.room(1), ring_bytes_min);
}

TEST(RingReceiver, CopiesFromBehindTheBeginning)
{
    Rings rings(ring_bytes_min);
    Sender sender;
    Receiver receiver;
    rings.open(&sender);
    rings.open(&receiver);
    sender.put(stream(0, 100).data(), 100);
    EXPECT_EQ(receiver.look(), 0u); // not published
    sender.publish();
    ASSERT_EQ(receiver.look(), 100u);
    std::vector<uint8_t> got(50);
    receiver.copy(got.data(), 30, 50);
    EXPECT_EQ(got, stream(30, 50));
    EXPECT_EQ(receiver.readable(), 100u);
}

TEST(RingReceiver, SeesTheEndBehindTheLastByte)
{
    Rings rings(ring_bytes_min);
    Sender sender;
    Receiver receiver;
    rings.open(&sender);
    rings.open(&receiver);
    sender.put("last", 4);
    sender.publish_end(mark_end);
    EXPECT_EQ(receiver.look(), 4u);
    EXPECT_EQ(receiver.end(), mark_end);
    sender.publish_end(mark_closed | mark_reset);
    EXPECT_EQ(receiver.look(), 4u);
    EXPECT_EQ(receiver.end(), marks);
    EXPECT_FALSE(receiver.is_broken());
}

TEST(RingReceiver, RefusesBytesBehindAnEnd)
{
    Rings rings(ring_bytes_min);
    Receiver receiver;
    rings.open(&receiver);
    store(rings.lines().published, 4 | mark_end);
    EXPECT_EQ(receiver.look(), 4u);
    store(rings.lines().published, 5 | mark_end);
    EXPECT_EQ(receiver.look(), 0u);
    EXPECT_TRUE(receiver.is_broken());
}

TEST(RingReceiver, RefusesACursorThatGoesBackOrTooFar)
{
    for (const uint64_t wrong : {uint64_t{99}, 100 + uint64_t{ring_bytes_min} + 1, count_mask}) {
        Rings rings(ring_bytes_min);
        Receiver receiver;
        rings.open(&receiver);
        store(rings.lines().published, uint64_t{100});
        ASSERT_EQ(receiver.look(), 100u);
        receiver.take(100);
        store(rings.lines().published, wrong);
        EXPECT_EQ(receiver.look(), 0u) << wrong;
        EXPECT_TRUE(receiver.is_broken()) << wrong;
        store(rings.lines().published, uint64_t{200}); // for good
        EXPECT_EQ(receiver.look(), 0u) << wrong;
    }
}

// A receiver under a producer that writes anything, everywhere, at any time.
TEST(RingReceiver, StaysInsideWhateverTheProducerWrites)
{
    for (uint32_t seed = 0; seed < 2000; seed++) {
        Rings rings(ring_bytes_min);
        Receiver receiver;
        rings.open(&receiver);
        Words words(seed);
        std::vector<uint8_t> got(2 * ring_bytes_min);
        for (int i = 0; i < 50; i++) {
            const uint64_t near = receiver.taken() + receiver.readable();
            Direction &lines = rings.lines();
            store(lines.published, words.next(near));
            store(lines.consumed, words.next(near));
            store(lines.wants_room, static_cast<uint32_t>(words.next(0)));
            store(lines.wants_data, static_cast<uint32_t>(words.next(0)));
            const size_t readable = receiver.look();
            ASSERT_LE(readable, ring_bytes_min) << "seed " << seed;
            const size_t some = readable != 0 ? 1 + words.number(readable) : 0;
            receiver.copy(got.data(), readable - some, some);
            receiver.take(some);
            receiver.publish_taken();
            if (words.number(4) == 0)
                receiver.arm();
            receiver.disarm();
            ASSERT_EQ(load(lines.consumed), receiver.taken()) << "seed " << seed;
        }
    }
}

TEST(RingReceiver, IsWokenOnceForASleep)
{
    Rings rings(ring_bytes_min);
    Sender sender;
    Receiver receiver;
    rings.open(&sender);
    rings.open(&receiver);
    EXPECT_FALSE(sender.publish());
    EXPECT_TRUE(receiver.arm());
    sender.put("a", 1);
    EXPECT_TRUE(sender.publish());
    sender.put("b", 1);
    EXPECT_FALSE(sender.publish());
    receiver.disarm();
    EXPECT_FALSE(receiver.arm()); // there is something
    receiver.look();
    receiver.take(2);
    EXPECT_TRUE(receiver.arm());
    sender.put("c", 1);
    EXPECT_TRUE(sender.publish()); // another sleep
}

TEST(RingReceiver, DoesNotSleepAtAnEnd)
{
    Rings rings(ring_bytes_min);
    Sender sender;
    Receiver receiver;
    rings.open(&sender);
    rings.open(&receiver);
    sender.publish_end(mark_end);
    EXPECT_FALSE(receiver.arm());
}

// Whatever the sizes, no one sleeps for ever: each end sleeps when it cannot go on, and is woken by
// what the other one does. Two threads, so the thread sanitizer sees the order of all accesses.
TEST(RingReceiver, EndsNeverBothSleep)
{
    constexpr uint64_t total = 200000;
    Rings rings(ring_bytes_min);
    std::atomic<bool> data_rung{false};
    std::atomic<bool> room_rung{false};
    std::thread producer([&] {
        Sender sender;
        rings.open(&sender);
        Words words(2);
        uint64_t put = 0;
        while (put < total) {
            const size_t bytes = std::min<size_t>(
                {1 + words.number(2500), sender.room(1), static_cast<size_t>(total - put)});
            if (bytes == 0) {
                if (sender.arm()) {
                    while (!room_rung.exchange(false))
                        std::this_thread::yield();
                    sender.disarm();
                }
                continue;
            }
            sender.put(stream(put, bytes).data(), bytes);
            put += bytes;
            if (sender.publish())
                data_rung.store(true);
        }
    });
    Receiver receiver;
    rings.open(&receiver);
    Words words(3);
    uint64_t taken = 0;
    bool right = true;
    while (taken < total) {
        const size_t bytes = std::min<size_t>(1 + words.number(2500), receiver.look());
        if (bytes == 0) {
            if (receiver.arm()) {
                while (!data_rung.exchange(false))
                    std::this_thread::yield();
                receiver.disarm();
            }
            continue;
        }
        std::vector<uint8_t> got(bytes);
        receiver.copy(got.data(), 0, bytes);
        right = right && got == stream(taken, bytes);
        if (receiver.take(bytes))
            room_rung.store(true);
        taken += bytes;
    }
    producer.join();
    EXPECT_TRUE(right);
}
} // namespace

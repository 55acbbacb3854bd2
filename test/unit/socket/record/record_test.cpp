// SPDX-License-Identifier: BSD-3-Clause
#include "record/record.hpp"

#include <gtest/gtest.h>
#include <memory>
#include <random>
#include <sys/wait.h>
#include <unistd.h>

using namespace ntb::socket;

namespace
{

class Records : public testing::Test
{
protected:
    // End 0 has switched to a ring at offset 3 and has sent 7 bytes in all; 4 more are unread here.
    void SetUp() override
    {
        Sender sender;
        sender.wrote_by_kernel(3);
        want(sender);
        sender.granted(1, 4096);
        sender.route(3, {});
        sender.wrote_into_ring(4);
        record->out.sender.put(sender);
    }
    static void want(Sender &sender) { ASSERT_EQ(sender.want(), 1u); }
    void receive()
    {
        Receiver receiver;
        receiver.grant(4096);
        SenderWords peer = {.generation = 1, .started = true, .head = 4};
        ASSERT_TRUE(receiver.look(peer, 0));
        record->in.receiver.put(receiver);
        store_words(page->direction[1].sender, peer);
    }
    SenderWords said() const { return load_words(page->direction[0].sender); }

    std::unique_ptr<Record> record = std::make_unique<Record>();
    std::unique_ptr<Page> page = std::make_unique<Page>();
};

TEST_F(Records, ADaemonSaysTheEndBehindAllThatWasRecorded)
{
    ASSERT_TRUE(say_end(*record, *page, 0, 1, false));
    EXPECT_EQ(said().mark, Mark::End);
    EXPECT_EQ(said().mark_offset, 7u);
    EXPECT_EQ(said().head, 7u);
    EXPECT_EQ(said().start, 3u);
    EXPECT_TRUE(said().started);
    ASSERT_TRUE(say_end(*record, *page, 0, 1, false)); // twice is once
    EXPECT_EQ(said().mark_offset, 7u);
}

TEST_F(Records, OfAnotherRingNothingIsSaid)
{
    ASSERT_TRUE(say_end(*record, *page, 0, 2, false));
    EXPECT_EQ(said().mark, Mark::None);
}

TEST_F(Records, WhoHasTheLockIsNotDisturbed)
{
    record->out.lock.take();
    EXPECT_FALSE(say_end(*record, *page, 0, 1, false));
    EXPECT_EQ(said().mark, Mark::None);
    EXPECT_TRUE(say_end(*record, *page, 0, 1, true)); // nobody is left who could have it
    EXPECT_EQ(said().mark, Mark::End);
}

TEST_F(Records, UnreadBytesOfTheDeadResetWhatTheySent)
{
    receive();
    EXPECT_TRUE(has_unread(*record, *page, 0));
    ASSERT_TRUE(say_end(*record, *page, 0, 1, true));
    EXPECT_EQ(said().mark, Mark::Reset);
    say_gone(*record, *page, 0);
    EXPECT_EQ(page->direction[1].receiver_asks.gone, 1u);
    EXPECT_EQ(page->direction[1].receiver.taken, 0u);
}

TEST_F(Records, AGrantThatNobodyLookedAtIsReturned)
{
    Sender sender;
    want(sender);
    record->out.sender.put(sender);
    store_grant(page->direction[0], {.generation = 1}, 4096);
    ASSERT_TRUE(say_end(*record, *page, 0, 1, true));
    EXPECT_EQ(said().generation, 1u);
    EXPECT_EQ(said().mark, Mark::Return);
    EXPECT_FALSE(said().started);
}

TEST_F(Records, AnyBytesAreARecord)
{
    std::mt19937_64 random(5);
    for (int round = 0; round < 2000; round++) {
        auto *words = reinterpret_cast<std::uint32_t *>(record.get());
        for (std::size_t i = 0; i < sizeof(Record) / 4; i++)
            words[i] = static_cast<std::uint32_t>(round % 2 == 0 ? random() : random() % 6);
        words = reinterpret_cast<std::uint32_t *>(page.get());
        for (std::size_t i = 0; i < sizeof(Page) / 4; i++)
            words[i] = static_cast<std::uint32_t>(random() % 6);
        for (std::uint32_t generation = 0; generation < 4; generation++)
            say_end(*record, *page, 0, generation, round % 3 == 0);
        say_gone(*record, *page, 0);
        figures_of(*record);
    }
}

TEST(Committed, ChangesAtOnce)
{
    Committed<int> value;
    for (int i = 1; i < 5; i++) {
        value.put(i);
        EXPECT_EQ(value.now(), i);
    }
}

TEST(Holders, TheLastOfTheKnownOnes)
{
    Holders holders;
    holders.add(getpid());
    holders.add(getpid());
    const pid_t child = fork();
    if (child == 0) {
        pause();
        _exit(0);
    }
    holders.add(child);
    EXPECT_FALSE(holders.remove(getpid()));
    holders.add(getpid());
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    EXPECT_TRUE(holders.remove(getpid())); // the other one is dead
}

TEST(Holders, WhoIsExpectedCounts)
{
    Holders holders;
    holders.add(getpid());
    holders.expect();
    EXPECT_FALSE(holders.remove(getpid()));
    holders.expect_no_more();
    EXPECT_TRUE(holders.remove(getpid()));
}

TEST(Holders, MoreThanThereIsRoomForAreNeverAlone)
{
    Holders holders;
    for (std::int32_t i = 0; i < 20; i++)
        holders.add(0x70000000 + i); // no such process
    EXPECT_FALSE(holders.remove(getpid()));
}

} // namespace

// SPDX-License-Identifier: BSD-3-Clause
#include "record/record.hpp"

#include <csignal>
#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <new>
#include <random>
#include <string>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

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
    EXPECT_TRUE(say_end(*record, *page, 0, 1, true)); // no one is left who could have it
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

TEST_F(Records, ADaemonGoesBackForASenderOnceTheSwitchWasSeen)
{
    EXPECT_FALSE(is_asked(*record, *page, 0));
    ReceiverAsks &asks = page->direction[0].receiver_asks;
    asks.generation = 1;
    asks.ask = 1;
    EXPECT_TRUE(is_asked(*record, *page, 0));
    EXPECT_FALSE(answer_ask(*record, *page, 0)) << "the receiver may still read TCP (rule S3)";
    EXPECT_EQ(said().mark, Mark::None);
    asks.seen = 1;
    record->out.lock.take();
    EXPECT_FALSE(answer_ask(*record, *page, 0));
    record->out.lock.give();
    EXPECT_TRUE(answer_ask(*record, *page, 0));
    EXPECT_EQ(said().mark, Mark::Revert);
    EXPECT_EQ(said().mark_offset, 7u);
    Sender sender = record->out.sender.now();
    EXPECT_EQ(sender.state(), Sender::State::Tcp);
    EXPECT_EQ(sender.want(), 0u) << "no ring any more";
    EXPECT_FALSE(is_asked(*record, *page, 0));
}

TEST_F(Records, AGrantThatIsAskedBackIsReturned)
{
    Sender sender;
    want(sender);
    record->out.sender.put(sender);
    store_grant(page->direction[0], {.generation = 1}, 4096);
    EXPECT_FALSE(is_asked(*record, *page, 0));
    page->direction[0].receiver_asks.ask = 1;
    EXPECT_TRUE(is_asked(*record, *page, 0)) << "its sender makes no call";
    EXPECT_TRUE(answer_ask(*record, *page, 0));
    EXPECT_EQ(said().mark, Mark::Return);
    EXPECT_EQ(record->out.sender.now().state(), Sender::State::Tcp);
    EXPECT_FALSE(is_asked(*record, *page, 0));
}

TEST_F(Records, AGrantToWhoTakesNoRingAnyMoreIsReturnedForHim)
{
    Sender sender;
    want(sender);
    sender.forbid_rings();
    record->out.sender.put(sender);
    store_grant(page->direction[0], {.generation = 1}, 4096);
    page->direction[0].receiver_asks.ask = 1;
    EXPECT_TRUE(is_asked(*record, *page, 0));
    EXPECT_TRUE(answer_ask(*record, *page, 0));
    EXPECT_EQ(said().mark, Mark::Return);
    EXPECT_EQ(said().generation, 1u);
    EXPECT_FALSE(is_asked(*record, *page, 0));
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
        is_asked(*record, *page, 0);
        answer_ask(*record, *page, 0);
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

TEST(Holders, NobodyIsAloneWithAChildToCome)
{
    Holders holders;
    holders.add(getpid());
    EXPECT_TRUE(holders.is_alone(getpid(), false));
    holders.expect();
    EXPECT_FALSE(holders.is_alone(getpid(), true));
    holders.add(getpid() + 1);
    holders.expect_no_more();
    EXPECT_FALSE(holders.is_alone(getpid(), false));
    holders.remove(getpid() + 1);
    EXPECT_TRUE(holders.is_alone(getpid(), false));
}

class Children
{
public:
    explicit Children(Holders &holders, std::size_t count) : pids_(count)
    {
        for (pid_t &child : pids_) {
            child = fork();
            if (child == 0) {
                pause();
                _exit(0);
            }
            holders.add(child);
        }
    }
    ~Children()
    {
        for (const pid_t child : pids_) {
            kill(child, SIGKILL);
            waitpid(child, nullptr, 0);
        }
    }
    Children(const Children &) = delete;
    Children &operator=(const Children &) = delete;

private:
    std::vector<pid_t> pids_;
};

// A child comes and its parent goes, in the middle of a look: half of the list lies in a page that
// is not there when the look comes to it.
struct {
    Holders *holders;
    void *page;
    long bytes;
    int times;
} meanwhile;

void give_birth(int)
{
    mprotect(meanwhile.page, static_cast<std::size_t>(meanwhile.bytes), PROT_READ | PROT_WRITE);
    meanwhile.times++;
    meanwhile.holders->expect();
    meanwhile.holders->add(1);
    meanwhile.holders->expect_no_more();
    meanwhile.holders->remove(getppid());
}

TEST(Holders, AChildThatComesWhileItIsLookedAtIsSeen)
{
    const long page = sysconf(_SC_PAGESIZE);
    const auto bytes = static_cast<std::size_t>(page);
    void *memory =
        mmap(nullptr, 2 * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    auto *second = static_cast<std::byte *>(memory) + page;
    auto *holders = new (second - sizeof(Holders) / 2) Holders;
    {
        const Children first(*holders, 10);
        holders->add(getpid());
        holders->add(getppid());
    }
    EXPECT_FALSE(holders->remove(getpid()));
    holders->add(getpid());
    meanwhile = {holders, second, page, 0};
    signal(SIGSEGV, give_birth);
    mprotect(second, bytes, PROT_NONE);
    EXPECT_FALSE(holders->is_alone(getpid(), false));
    signal(SIGSEGV, SIG_DFL);
    EXPECT_EQ(meanwhile.times, 1);
    holders->remove(1);
    EXPECT_TRUE(holders->is_alone(getpid(), false));
    munmap(memory, 2 * bytes);
}

TEST(Holders, TheDeadMakeRoom)
{
    Holders holders;
    holders.add(getpid());
    for (std::int32_t i = 0; i < 100; i++) {
        holders.add(0x70000000 + i); // no such process
        EXPECT_TRUE(holders.is_alone(getpid(), true));
    }
    EXPECT_FALSE(holders.is_alone(getpid(), false));
}

TEST(Holders, HaveDiedOnceNoneIsLeftOrToCome)
{
    constexpr std::int32_t dead = 0x70000000; // no such process
    Holders holders;
    EXPECT_FALSE(holders.have_died(getpid())); // there was none
    holders.add(getpid());
    holders.add(dead);
    EXPECT_FALSE(holders.have_died(getpid()));
    holders.expect();
    holders.remove(getpid());
    holders.add(dead);
    EXPECT_FALSE(holders.have_died(getpid()));
    holders.expect_no_more();
    EXPECT_TRUE(holders.have_died(getpid()));
    holders.add(getppid());
    EXPECT_FALSE(holders.have_died(getpid()));
    // What a client has written there: no group is asked.
    Holders lie;
    lie.add(dead);
    lie.add(-dead);
    EXPECT_FALSE(lie.have_died(getpid()));
}

TEST(Holders, MoreThanThereIsRoomForAreNeverAlone)
{
    Holders holders;
    {
        const Children children(holders, 20);
    }
    EXPECT_FALSE(holders.remove(getpid()));
}

// ---- what an idle end gives back

class Resting : public testing::Test
{
protected:
    static constexpr std::uint32_t ring_bytes = 65536;

    // End 0 has written into its ring up to `head`, counted from the switch at 3; `taken` of it was
    // taken. Every page of both rings is there.
    // @param narrow  bytes of the ring that are used at first, and until so many are written
    void write(std::uint64_t head, std::uint64_t taken, std::uint32_t narrow = 0)
    {
        Sender sender;
        sender.wrote_by_kernel(3);
        ASSERT_EQ(sender.want(), 1u);
        sender.granted(1, ring_bytes, narrow);
        sender.route(3, {});
        if (narrow != 0 && head >= narrow) {
            sender.wrote_into_ring(narrow);
            EXPECT_TRUE(sender.filled());
        }
        sender.wrote_into_ring(head - (sender.count() - 3));
        record->out.sender.put(sender);
        memset(memory, 7, bytes);
        ntbc::store(page->direction[0].receiver.taken, taken + 3);
    }
    /// Which of the ring's pages are there: those that are not read as zeros.
    std::string pages(unsigned direction) const
    {
        std::string said;
        const Ring ring = ring_of(memory, ring_bytes, direction);
        for (std::uint32_t at = 0; at < ring_bytes; at += 4096)
            said += ring.data[at] == 7 ? 'x' : '.';
        return said;
    }
    void SetUp() override { ASSERT_NE(memory, MAP_FAILED); }
    void TearDown() override { munmap(memory, bytes); }

    const std::size_t bytes = ntbc::memory_bytes(ring_bytes);
    void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    Page *page = static_cast<Page *>(memory);
    std::unique_ptr<Record> record = std::make_unique<Record>();
};

TEST_F(Resting, AnEmptyRingGivesAllItsPages)
{
    write(100000, 100000);
    EXPECT_TRUE(rest(*record, *page, 0, ring_bytes));
    EXPECT_EQ(pages(0), std::string(16, '.'));
    EXPECT_EQ(pages(1), std::string(16, 'x')) << "the other end's";
}

TEST_F(Resting, PagesWithBytesThatMayBeReadStay)
{
    const struct {
        std::uint64_t head, taken;
        const char *left;
    } cases[] = {
        {5000, 0, "xx.............."},
        {5000, 4095, "xx.............."},
        {5000, 4096, ".x.............."},
        {65536 + 10, 65536 - 10, "x..............x"},
        {65536 + 4096, 8192, "x.xxxxxxxxxxxxxx"},
        {2 * 65536, 65536, "xxxxxxxxxxxxxxxx"},
        {65536 + 8192, 65535, "xx.............x"},
        {65535, 0, "xxxxxxxxxxxxxxxx"},
        {65000, 100, "xxxxxxxxxxxxxxxx"},
        {65436 + 65536 - 100, 65436 - 50, "xxxxxxxxxxxxxxxx"},
    };
    for (const auto &one : cases) {
        write(one.head, one.taken);
        EXPECT_FALSE(rest(*record, *page, 0, ring_bytes)) << one.head;
        EXPECT_EQ(pages(0), one.left) << one.head << " " << one.taken;
    }
}

TEST_F(Resting, OfANarrowRingToo)
{
    const struct {
        std::uint64_t head, taken;
        const char *left;
    } cases[] = {
        {10000, 10000, "................"},
        {5000, 0, "xx.............."},
        {16384, 0, "xxxx............"}, // wide from here on
        {16384 + 10, 16384 - 10, "...xx..........."},
        {16384 + 10, 16384, "....x..........."},
        {65536, 12287, "..xxxxxxxxxxxxxx"},
        {65536, 16384, "....xxxxxxxxxxxx"},
        {65536 + 4096, 65536 - 1, "x..............x"},
    };
    for (const auto &one : cases) {
        write(one.head, one.taken, 16384);
        rest(*record, *page, 0, ring_bytes);
        EXPECT_EQ(pages(0), one.left) << one.head << " " << one.taken;
        EXPECT_EQ(pages(1), std::string(16, 'x'));
    }
}

TEST_F(Resting, WhoWritesOrLiesLosesNothingElse)
{
    write(5000, 5000);
    record->out.lock.take();
    EXPECT_FALSE(rest(*record, *page, 0, ring_bytes));
    EXPECT_EQ(pages(0), std::string(16, 'x'));
    record->out.lock.give();
    // The peer's word is of its own bytes alone.
    for (const std::uint64_t lie : {std::uint64_t{70000}, ~std::uint64_t{0} - 3}) {
        write(5000, lie);
        rest(*record, *page, 0, ring_bytes);
        EXPECT_EQ(pages(1), std::string(16, 'x')) << lie;
    }
}

TEST_F(Resting, ASenderThatIsOnTcpIsLeftAlone)
{
    memset(memory, 7, bytes);
    EXPECT_TRUE(rest(*record, *page, 0, ring_bytes));
    EXPECT_EQ(pages(0), std::string(16, 'x'));
}

TEST_F(Resting, WhatWasTakenIsSaid)
{
    Receiver receiver;
    receiver.grant(ring_bytes);
    SenderWords peer = {.generation = 1, .started = true, .head = 100};
    ASSERT_TRUE(receiver.look(peer, 0));
    receiver.took_from_ring(60);
    record->in.receiver.put(receiver);
    ntbc::store(page->direction[1].receiver_asks.generation, 2u);
    rest(*record, *page, 0, ring_bytes);
    EXPECT_EQ(ntbc::load(page->direction[1].receiver.taken), 0u) << "of another ring";
    ntbc::store(page->direction[1].receiver_asks.generation, 1u);
    rest(*record, *page, 0, ring_bytes);
    EXPECT_EQ(ntbc::load(page->direction[1].receiver.taken), 60u);
}

} // namespace

// SPDX-License-Identifier: BSD-3-Clause
#include "memory/exchange.hpp"

#include <atomic>
#include <cstring>
#include <thread>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../../verbs/memory_files.hpp"
#include "memory/pages.hpp"

namespace
{

using namespace ntb::verbs;

class Exchange : public testing::Test
{
protected:
    static constexpr std::uint64_t bytes = 16 * page;

    void SetUp() override
    {
        if (!can_exchange())
            GTEST_SKIP() << "the kernel has no userfaultfd for this user";
        memory = static_cast<std::byte *>(
            mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        segment = files.create(bytes + page);
        ASSERT_NE(segment, nullptr);
        for (std::uint64_t i = 0; i < bytes; ++i)
            memory[i] = value(i);
    }
    void TearDown() override
    {
        if (memory)
            munmap(memory, bytes);
    }
    static std::byte value(std::uint64_t i) { return static_cast<std::byte>(i * 7 + (i >> 12)); }
    bool is_as_it_was() const
    {
        for (std::uint64_t i = 0; i < bytes; ++i)
            if (memory[i] != value(i))
                return false;
        return true;
    }

    MemoryFiles files;
    std::shared_ptr<Segment> segment;
    std::byte *memory = nullptr;
};

TEST_F(Exchange, KeepsWhatIsThereBothWays)
{
    ASSERT_EQ(exchange_to_segment(memory, bytes, *segment), 0);
    EXPECT_TRUE(is_as_it_was());
    EXPECT_EQ(std::memcmp(segment->data(), memory, bytes), 0);
    segment->data()[5] = std::byte{99};
    EXPECT_EQ(memory[5], std::byte{99}) << "it is one memory";
    segment->data()[5] = value(5);
    EXPECT_FALSE(is_plain_memory(memory, bytes));
    ASSERT_EQ(exchange_to_private(memory, bytes, *segment), 0);
    EXPECT_TRUE(is_as_it_was());
    EXPECT_TRUE(is_plain_memory(memory, bytes));
    segment->data()[5] = std::byte{99};
    EXPECT_EQ(memory[5], value(5)) << "they are two";
}

TEST_F(Exchange, OfPagesThatWereNeverTouched)
{
    auto *const fresh = static_cast<std::byte *>(
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_EQ(exchange_to_segment(fresh, bytes, *segment), 0);
    EXPECT_EQ(fresh[bytes - 1], std::byte{0});
    ASSERT_EQ(exchange_to_private(fresh, bytes, *segment), 0);
    EXPECT_EQ(fresh[bytes - 1], std::byte{0});
    munmap(fresh, bytes);
}

// Each word is counted up by its own thread; a write that is lost is seen by the thread that made
// it.
TEST_F(Exchange, LosesNoWriteOfAnotherThread)
{
    std::atomic<bool> stop{false};
    std::atomic<std::uint64_t> lost{0}, laps{0};
    std::thread writer([&] {
        auto *const words = reinterpret_cast<std::uint64_t *>(memory);
        constexpr std::uint64_t n = bytes / sizeof(std::uint64_t);
        constexpr std::uint64_t step = 61;
        for (std::uint64_t i = 0; i < n; i += step)
            __atomic_store_n(&words[i], 0, __ATOMIC_RELAXED);
        for (std::uint64_t lap = 0; !stop; ++lap) {
            for (std::uint64_t i = 0; i < n; i += step) {
                if (__atomic_load_n(&words[i], __ATOMIC_RELAXED) != lap)
                    ++lost;
                __atomic_store_n(&words[i], lap + 1, __ATOMIC_RELAXED);
            }
            ++laps;
        }
    });
    while (laps == 0)
        std::this_thread::yield();
    for (int i = 0; i < 300; ++i) {
        EXPECT_EQ(exchange_to_segment(memory, bytes, *segment), 0);
        EXPECT_EQ(exchange_to_private(memory, bytes, *segment), 0);
    }
    stop = true;
    writer.join();
    EXPECT_EQ(lost, 0u) << "of " << laps << " laps";
}

TEST_F(Exchange, IsRefusedWhereItCannotBe)
{
    EXPECT_EQ(exchange_to_segment(memory, bytes + 2 * page, *segment), -EINVAL);
    // Two mappings do not move as one.
    mprotect(memory + page, page, PROT_READ);
    EXPECT_NE(exchange_to_segment(memory, bytes, *segment), 0);
    mprotect(memory + page, page, PROT_READ | PROT_WRITE);
    EXPECT_TRUE(is_as_it_was());
    auto *const stack = static_cast<std::byte *>(__builtin_frame_address(0));
    auto *const of_stack =
        reinterpret_cast<std::byte *>(reinterpret_cast<std::uintptr_t>(stack) & ~(page - 1));
    EXPECT_EQ(exchange_to_segment(of_stack - page, 2 * page, *segment), -EINVAL);
}

TEST_F(Exchange, LeavesAloneWhatIsNotItsOwnAnyMore)
{
    ASSERT_EQ(exchange_to_segment(memory, bytes, *segment), 0);
    munmap(memory + page, page);
    auto *const other =
        static_cast<std::byte *>(mmap(memory + 2 * page, page, PROT_READ | PROT_WRITE,
                                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
    other[0] = std::byte{42};
    ASSERT_EQ(exchange_to_private(memory, bytes, *segment), 0);
    EXPECT_EQ(other[0], std::byte{42});
    Mapping found[4];
    ASSERT_GE(find_mappings(memory, bytes, found, 4), 2);
    EXPECT_EQ(found[0].bytes, page) << "nothing was put where nothing is";
    EXPECT_EQ(found[1].memory, other);
    segment->data()[0] = segment->data()[3 * page] = std::byte{99};
    EXPECT_EQ(memory[0], value(0));
    EXPECT_EQ(memory[3 * page], value(3 * page));
}

TEST_F(Exchange, AChildHasACopyOfItsOwn)
{
    ASSERT_EQ(exchange_to_segment(memory, bytes, *segment), 0);
    const pid_t child = fork();
    if (child == 0) {
        const bool copied = copy_to_private(memory, bytes, *segment) == 0;
        memory[7] = std::byte{1};
        _exit(copied && memory[8] == value(8) ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(memory[7], value(7));
    EXPECT_EQ(exchange_to_private(memory, bytes, *segment), 0);
}

} // namespace

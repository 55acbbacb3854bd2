// SPDX-License-Identifier: BSD-3-Clause
#include "memory/pages.hpp"

#include <cstdlib>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../../../verbs/memory_files.hpp"

namespace
{

using namespace ntb::verbs;

/// Anonymous memory between two pages of none.
struct Area {
    static constexpr std::uint64_t bytes = 8 * page;
    std::byte *const around;
    std::byte *const memory;

    Area()
        : around(static_cast<std::byte *>(
              mmap(nullptr, bytes + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))),
          memory(around + page)
    {
        mprotect(memory, bytes, PROT_READ | PROT_WRITE);
    }
    ~Area() { munmap(around, bytes + 2 * page); }
    Area(const Area &) = delete;
    Area &operator=(const Area &) = delete;
};

TEST(Pages, OfMallocArePlain)
{
    const Area area;
    EXPECT_TRUE(is_plain_memory(area.memory, Area::bytes));
    EXPECT_TRUE(is_plain_memory(area.memory + page, page));
    void *some = nullptr;
    ASSERT_EQ(posix_memalign(&some, page, 4 * page), 0);
    EXPECT_TRUE(is_plain_memory(static_cast<std::byte *>(some), 4 * page));
    free(some);
}

TEST(Pages, OfThatOthersHaveAPromiseAreNot)
{
    constexpr int advice[] = {MADV_DONTFORK, MADV_WIPEONFORK, MADV_DONTDUMP};
    for (const int said : advice) {
        const Area area;
        ASSERT_EQ(madvise(area.memory + page, page, said), 0);
        EXPECT_FALSE(is_plain_memory(area.memory, Area::bytes)) << said;
        EXPECT_FALSE(is_plain_memory(area.memory + page, page)) << said;
        EXPECT_TRUE(is_plain_memory(area.memory, page)) << said;
    }
    const Area locked;
    // Sanitizers make nothing of the library's function.
    if (syscall(SYS_mlock, locked.memory, page) == 0) {
        EXPECT_FALSE(is_plain_memory(locked.memory, page));
    }
    // Where the machine has some to give.
    constexpr std::size_t huge = std::size_t{2} << 20;
    void *pages = mmap(nullptr, huge, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
    if (pages != MAP_FAILED) {
        EXPECT_FALSE(is_plain_memory(static_cast<std::byte *>(pages), huge));
        EXPECT_FALSE(is_plain_memory(static_cast<std::byte *>(pages) + page, page));
        munmap(pages, huge);
    }
    for (const int rights : {PROT_READ, PROT_NONE, PROT_READ | PROT_WRITE | PROT_EXEC}) {
        const Area other;
        mprotect(other.memory, page, rights);
        EXPECT_FALSE(is_plain_memory(other.memory, page)) << rights;
        EXPECT_FALSE(is_plain_memory(other.memory, 2 * page)) << rights;
    }
    const Area hole;
    munmap(hole.memory + page, page);
    EXPECT_FALSE(is_plain_memory(hole.memory, 3 * page));
}

TEST(Pages, OfTheStackAndOfFilesAreNot)
{
    const auto stack = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    EXPECT_FALSE(is_plain_memory(reinterpret_cast<std::byte *>(stack & ~(page - 1)), page));
    MemoryFiles files;
    const auto file = files.create(4 * page);
    EXPECT_FALSE(is_plain_memory(file->data(), 4 * page));
    void *copy = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE, file->descriptor(), 0);
    EXPECT_FALSE(is_plain_memory(static_cast<std::byte *>(copy), page));
    munmap(copy, page);
}

TEST(Pages, TheMappingsOfARangeAreCutToIt)
{
    const Area area;
    mprotect(area.memory + 2 * page, page, PROT_READ);
    munmap(area.memory + 4 * page, page);
    Mapping found[8];
    ASSERT_EQ(find_mappings(area.memory + page, 5 * page, found, 8), 4);
    EXPECT_EQ(found[0].memory, area.memory + page);
    EXPECT_EQ(found[0].bytes, page);
    EXPECT_TRUE(found[0].is_plain);
    EXPECT_FALSE(found[1].is_plain);
    EXPECT_EQ(found[2].bytes, page);
    EXPECT_EQ(found[3].memory, area.memory + 5 * page);
    EXPECT_EQ(found[3].bytes, page);
    EXPECT_EQ(find_mappings(area.memory + page, 5 * page, found, 3), -1);
}

TEST(Pages, AMappingOfAFileHasItsOffset)
{
    MemoryFiles files;
    const auto file = files.create(4 * page);
    Mapping found;
    ASSERT_EQ(find_mappings(file->data() + page, page, &found, 1), 1);
    EXPECT_TRUE(found.is_shared);
    EXPECT_EQ(found.offset, page);
    EXPECT_NE(found.inode, 0u);
}

TEST(Pages, WhatIsMappedIsAccessible)
{
    const Area area;
    EXPECT_TRUE(is_accessible(area.memory, Area::bytes, true));
    EXPECT_TRUE(is_accessible(area.memory + 1, Area::bytes - 1, true));
    EXPECT_TRUE(is_accessible(area.memory + Area::bytes, 0, true));
    EXPECT_FALSE(is_accessible(area.memory - 1, 2, false));
    EXPECT_FALSE(is_accessible(area.memory, Area::bytes + 1, false));
    EXPECT_FALSE(is_accessible(area.memory, std::uint64_t{0} - 1, false));
    munmap(area.memory + 4 * page, page);
    EXPECT_FALSE(is_accessible(area.memory, Area::bytes, false));
    EXPECT_TRUE(is_accessible(area.memory, 4 * page, true));
    EXPECT_FALSE(is_accessible(area.memory + 4 * page, 1, false));
}

TEST(Pages, WhatIsForReadingIsNotForWriting)
{
    const Area area;
    mprotect(area.memory + page, 2 * page, PROT_READ);
    EXPECT_TRUE(is_accessible(area.memory + page, 2 * page, false));
    EXPECT_FALSE(is_accessible(area.memory + page, 2 * page, true));
    EXPECT_FALSE(is_accessible(area.memory, 2 * page, true)) << "its last page";
    EXPECT_FALSE(is_accessible(area.memory + 2 * page, 2 * page, true)) << "its first page";
}

TEST(Pages, BehindTheEndOfItsFileNothingIsAccessible)
{
    MemoryFiles files;
    const auto file = files.create(page);
    void *const area =
        mmap(nullptr, 3 * page, PROT_READ | PROT_WRITE, MAP_SHARED, file->descriptor(), 0);
    ASSERT_NE(area, MAP_FAILED);
    EXPECT_TRUE(is_accessible(area, page, true));
    EXPECT_FALSE(is_accessible(area, 3 * page, true));
    munmap(area, 3 * page);
}

TEST(Pages, HolesAreFoundInLongRanges)
{
    constexpr std::uint64_t bytes = std::uint64_t{1} << 30;
    auto *const memory =
        static_cast<std::byte *>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    ASSERT_NE(memory, MAP_FAILED);
    madvise(memory, bytes, MADV_NOHUGEPAGE);
    EXPECT_TRUE(is_accessible(memory, bytes, true));
    for (const std::uint64_t hole : {bytes - 2 * page, 4096 * page, 4095 * page, page}) {
        munmap(memory + hole, page);
        EXPECT_FALSE(is_accessible(memory, bytes, true)) << hole;
        EXPECT_TRUE(is_accessible(memory, hole, true)) << hole;
    }
    munmap(memory, bytes);
}

} // namespace

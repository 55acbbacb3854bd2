// SPDX-License-Identifier: BSD-3-Clause
#include "port/memory_files.hpp"

#include <cerrno>

#include <gtest/gtest.h>
#include <unistd.h>

namespace
{

using ntb::verbs::MemoryFiles;

TEST(MemoryFiles, HaveTheirSizeForEver)
{
    MemoryFiles files;
    const auto segment = files.create(3 * 4096);
    ASSERT_NE(segment, nullptr);
    EXPECT_EQ(segment->bytes(), 3u * 4096);
    EXPECT_EQ(segment->data()[3 * 4096 - 1], std::byte{0});
    EXPECT_NE(ftruncate(segment->descriptor(), 0), 0);
    EXPECT_NE(ftruncate(segment->descriptor(), 1 << 20), 0);
}

TEST(MemoryFiles, AreAsManyAsTheyMay)
{
    MemoryFiles files;
    files.limit(1);
    {
        const auto one = files.create(4096);
        EXPECT_NE(one, nullptr);
        EXPECT_EQ(files.create(4096), nullptr);
        EXPECT_EQ(errno, EDQUOT);
        EXPECT_EQ(files.create(4096), nullptr);
    }
    EXPECT_NE(files.create(4096), nullptr) << "the first one has gone";
}

TEST(MemoryFiles, TakeNoMoreThanThereIs)
{
    MemoryFiles files;
    // So many that the kernel would refuse them for another reason: a test must not take all memory
    // where this is broken.
    EXPECT_EQ(files.create(std::uint64_t{1} << 63), nullptr);
    EXPECT_EQ(errno, EDQUOT);
    EXPECT_NE(files.create(4096), nullptr);
}

} // namespace

// SPDX-License-Identifier: BSD-3-Clause
#include "completion/pipe.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

namespace
{

using ntb::verbs::Pipe;

TEST(Pipe, PollsAndGivesRecordsAsTheyWereWritten)
{
    Pipe pipe;
    ASSERT_EQ(pipe.create(), 0);
    pollfd fd = {pipe.descriptor(), POLLIN, 0};
    EXPECT_EQ(poll(&fd, 1, 0), 0);
    for (std::uint64_t i = 0; i < 3; ++i)
        EXPECT_TRUE(pipe.write(&i, sizeof(i)));
    EXPECT_EQ(poll(&fd, 1, 0), 1);
    for (std::uint64_t i = 0; i < 3; ++i) {
        std::uint64_t record = 99;
        ASSERT_EQ(read(pipe.descriptor(), &record, sizeof(record)), 8);
        EXPECT_EQ(record, i);
    }
    EXPECT_EQ(poll(&fd, 1, 0), 0);
}

TEST(Pipe, AFullOneSaysSoAndNeverWaits)
{
    Pipe pipe;
    ASSERT_EQ(pipe.create(), 0);
    std::uint64_t written = 0;
    while (pipe.write(&written, sizeof(written)))
        ++written;
    EXPECT_GE(written, 512u);
    for (std::uint64_t i = 0; i < 512; ++i) { // a page, which is what a pipe frees
        std::uint64_t record;
        ASSERT_EQ(read(pipe.descriptor(), &record, sizeof(record)), 8);
        EXPECT_EQ(record, i);
    }
    EXPECT_TRUE(pipe.write(&written, sizeof(written)));
}

} // namespace

// SPDX-License-Identifier: BSD-3-Clause
#include "signals.hpp"

#include <cerrno>
#include <csignal>
#include <ctime>

#include <gtest/gtest.h>

#include <poll.h>

namespace
{

TEST(Signals, AWaitThatBeginsAfterTheSignalEndsEarlyToo)
{
    app::catch_signals();
    EXPECT_EQ(app::stop_signal(), 0);
    ASSERT_EQ(std::raise(SIGTERM), 0);
    EXPECT_EQ(app::stop_signal(), SIGTERM);
    const timespec long_wait{20, 0};
    for (int wait = 0; wait < 3; ++wait) {
        errno = 0;
        EXPECT_EQ(nanosleep(&long_wait, nullptr), -1) << wait;
        EXPECT_EQ(errno, EINTR);
    }
    EXPECT_EQ(poll(nullptr, 0, 20'000), -1);
    EXPECT_EQ(errno, EINTR);

    app::stop_interrupting();
    const timespec short_wait{0, 50'000'000};
    EXPECT_EQ(nanosleep(&short_wait, nullptr), 0) << "five times as long as between two of them";
}

} // namespace

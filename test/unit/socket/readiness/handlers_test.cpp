// SPDX-License-Identifier: BSD-3-Clause
#include "readiness/handlers.hpp"

#include <cerrno>
#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <thread>
#include <unistd.h>

#include "readiness/kernel_set.hpp"

using namespace ntb::socket;

namespace
{

TEST(Handlers, AreCountedWhereTheyRun)
{
    const Handled before = handled();
    handler_runs(true);
    EXPECT_EQ(handled().all, before.all + 1);
    EXPECT_EQ(handled().not_restarting, before.not_restarting);
    handler_runs(false);
    EXPECT_EQ(handled().all, before.all + 2);
    EXPECT_EQ(handled().not_restarting, before.not_restarting + 1);
    std::thread([] { EXPECT_EQ(handled().all, 0u); }).join();
}

TEST(Handlers, LeaveNoTimeToSleep)
{
    sleep_time() = {5, 6};
    std::thread([] { handler_runs(true); }).join();
    EXPECT_EQ(sleep_time().tv_sec, 5) << "it was another thread's";
    handler_runs(true);
    EXPECT_EQ(sleep_time().tv_sec, 0);
    EXPECT_EQ(sleep_time().tv_nsec, 0);
}

TEST(Handlers, KeepASleepFromBeginning)
{
    const timespec long_time = {1000, 0};
    const int epoll = epoll_create1(EPOLL_CLOEXEC);
    const Handled before = handled();
    handler_runs(true);
    epoll_event event;
    EXPECT_EQ(kernel_sleep(epoll, &event, 1, Deadline(&long_time), nullptr, before), -EINTR);
    EXPECT_EQ(sleep_time().tv_sec, 0) << "no time of a sleep that is over";
    close(epoll);
}

} // namespace

// SPDX-License-Identifier: BSD-3-Clause
// A set with members that are ready when a test says so.
#ifndef TEST_UNIT_SOCKET_READINESS_SETS_HPP
#define TEST_UNIT_SOCKET_READINESS_SETS_HPP

#include <cstdint>
#include <map>
#include <vector>

#include <gtest/gtest.h>
#include <sys/epoll.h>

#include "fake_source.hpp"
#include "readiness/set.hpp"

namespace ntb::socket
{

constexpr timespec at_once = {0, 0};
using Reported = std::map<std::uint64_t, std::uint32_t>;

class Sets : public testing::Test
{
protected:
    Sets() : epoll(epoll_create1(EPOLL_CLOEXEC)), set(Set::create(epoll, nullptr)) {}
    ~Sets() override
    {
        set->destroy();
        close(epoll);
    }

    int control(int op, FakeSource &source, std::uint32_t events, std::uint64_t data = 1)
    {
        epoll_event event = {};
        event.events = events;
        event.data.u64 = data;
        return set->control(op, source.shadow(), &source, nullptr, &event);
    }
    int add(FakeSource &source, std::uint32_t events, std::uint64_t data = 1)
    {
        return control(EPOLL_CTL_ADD, source, events, data);
    }
    int native(int op, int fd, std::uint32_t events, std::uint64_t data = 1)
    {
        epoll_event event = {};
        event.events = events;
        event.data.u64 = data;
        return set->control(op, fd, nullptr, nullptr, &event);
    }
    Reported look(int most = 16, const timespec *timeout = &at_once)
    {
        std::vector<epoll_event> events(static_cast<std::size_t>(most));
        const int n = set->wait(events.data(), most, timeout, nullptr);
        EXPECT_GE(n, 0);
        Reported reported;
        for (int i = 0; i < n; i++)
            reported[events[static_cast<std::size_t>(i)].data.u64] =
                events[static_cast<std::size_t>(i)].events;
        EXPECT_EQ(static_cast<int>(reported.size()), n) << "one reported twice";
        return reported;
    }
    Reported sleep() { return look(16, nullptr); }

    int epoll;
    Set *set;
    FakeSource a, b;
};

} // namespace ntb::socket

#endif

// SPDX-License-Identifier: BSD-3-Clause
#include "readiness/poll.hpp"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <thread>
#include <utility>
#include <vector>

#include "fake_source.hpp"
#include "readiness/handlers.hpp"
#include "spin.hpp"

using namespace ntb::socket;

namespace
{

constexpr timespec at_once = {0, 0};

class Polls : public testing::Test, protected Lookup
{
protected:
    Polls()
    {
        if (pipe2(pipe, O_NONBLOCK | O_CLOEXEC) != 0)
            std::abort();
        entries = {{a.shadow(), POLLIN, 0}, {pipe[0], POLLIN, 0}};
    }
    ~Polls() override
    {
        close(pipe[0]);
        close(pipe[1]);
    }
    int poll(const timespec *timeout, const sigset_t *mask = nullptr)
    {
        Source *const sources[] = {&a, nullptr};
        return ntb::socket::poll(entries.data(), entries.size(), sources, timeout, mask, nullptr);
    }
    Source *source_of(int fd) override
    {
        return fd == a.shadow() ? &a : fd == b.shadow() ? &b : nullptr;
    }
    int select(const std::vector<int> &read, const std::vector<int> &write, const timespec *timeout)
    {
        FD_ZERO(&reads);
        FD_ZERO(&writes);
        for (const int fd : read)
            FD_SET(fd, &reads);
        for (const int fd : write)
            FD_SET(fd, &writes);
        return ntb::socket::select(FD_SETSIZE, &reads, &writes, nullptr, timeout, nullptr, *this,
                                   nullptr);
    }

    FakeSource a, b;
    int pipe[2];
    std::vector<pollfd> entries;
    fd_set reads, writes;
};

TEST_F(Polls, ReportsBothParts)
{
    EXPECT_EQ(poll(&at_once), 0);
    a.arrive();
    EXPECT_EQ(poll(&at_once), 1);
    EXPECT_EQ(entries[0].revents, POLLIN);
    EXPECT_EQ(entries[1].revents, 0);
    EXPECT_EQ(write(pipe[1], "", 1), 1);
    EXPECT_EQ(poll(&at_once), 2);
    EXPECT_EQ(entries[1].revents, POLLIN);
    a.read_all();
    EXPECT_EQ(poll(nullptr), 1);
    EXPECT_EQ(entries[0].revents, 0);
}

TEST_F(Polls, LeavesOutNegativeNumbersAndReportsWrongOnes)
{
    a.arrive();
    entries[0].fd = -1;
    entries[0].revents = POLLIN;
    entries[1].fd = 1000000;
    EXPECT_EQ(poll(nullptr), 1);
    EXPECT_EQ(entries[0].revents, 0);
    EXPECT_EQ(entries[1].revents, POLLNVAL);
}

TEST_F(Polls, IsWokenByBellShadowAndKernel)
{
    for (int i = 0; i < 60; i++) {
        const int armed = a.armed_in;
        ASSERT_EQ(armed, 0);
        std::thread peer([&] {
            await([this] { return a.armed_in > 0; });
            if (i % 3 == 0)
                a.arrive();
            else
                EXPECT_EQ(write(i % 3 == 1 ? a.peer() : pipe[1], "", 1), 1);
        });
        EXPECT_EQ(poll(nullptr), 1);
        peer.join();
        char byte;
        a.read_all();
        a.kept = 0;
        EXPECT_EQ((entries[0].revents != 0), i % 3 != 2);
        (void)!read(pipe[0], &byte, 1);
        (void)!read(a.shadow(), &byte, 1);
    }
}

TEST_F(Polls, SleepsThoughTheShadowIsReadable)
{
    // Behind a switch a FIN alone shows nothing: its mark has to come.
    shutdown(a.peer(), SHUT_WR);
    entries[0].events = POLLOUT;
    std::thread peer([this] {
        // Behind the arming comes one more look before the sleep.
        await([this] { return a.armed_out > 0 && a.looks > a.looks_when_armed; });
        const std::uint64_t looks = a.looks;
        for (int i = 0; i < 1000; i++)
            std::this_thread::yield();
        EXPECT_EQ(a.looks, looks) << "it does not sleep";
        a.room(true);
    });
    EXPECT_EQ(poll(nullptr), 1);
    EXPECT_EQ(entries[0].revents, POLLOUT);
    peer.join();
}

TEST_F(Polls, WhatTheKernelShowsIsNoNewsToACall)
{
    shutdown(a.peer(), SHUT_WR);
    // Even the shortest spin time has laps behind the question.
    const std::uint32_t every = std::exchange(ntb::process_spinning().kernel_every, 2);
    std::atomic<bool> over = false;
    std::thread peer([&] {
        await([&] { return a.armed_out > 0 || over; });
        a.room(true);
    });
    EXPECT_EQ(wait_for(a, EPOLLOUT, nullptr, nullptr), 0);
    EXPECT_GT(a.arrivals_out(), 0u) << "it ends before there is room";
    over = true;
    peer.join();
    ntb::process_spinning().kernel_every = every;
}

TEST_F(Polls, GoesOnWithTheKernelWhenAMemberReverts)
{
    std::thread peer([this] {
        await([this] { return a.armed_in > 0; });
        a.revert();
        EXPECT_EQ(write(a.peer(), "", 1), 1);
    });
    EXPECT_EQ(poll(nullptr), 1);
    EXPECT_EQ(entries[0].revents, POLLIN);
    EXPECT_EQ(a.armed_any, 0);
    peer.join();
}

TEST_F(Polls, ManyEntries)
{
    std::vector<pollfd> many(500, pollfd{pipe[0], POLLIN, 0});
    std::vector<Source *> sources(many.size());
    many.back().fd = a.shadow();
    sources.back() = &a;
    std::thread peer([this] {
        await([this] { return a.armed_in > 0; });
        a.arrive();
    });
    EXPECT_EQ(
        ntb::socket::poll(many.data(), many.size(), sources.data(), nullptr, nullptr, nullptr), 1);
    EXPECT_EQ(many.back().revents, POLLIN);
    peer.join();
}

TEST_F(Polls, TimeOutsEnd)
{
    const timespec soon = {0, 2000000}, wrong = {0, 1000000000};
    EXPECT_EQ(poll(&soon), 0);
    EXPECT_EQ(poll(&wrong), -EINVAL);
    EXPECT_EQ(wait_for(a, EPOLLIN, &soon, nullptr), -EAGAIN);
    a.arrive();
    EXPECT_EQ(wait_for(a, EPOLLIN, &soon, nullptr), 0);
}

TEST_F(Polls, SelectCountsBits)
{
    a.out = true;
    a.arrive();
    EXPECT_EQ(select({a.shadow(), b.shadow(), pipe[0]}, {a.shadow(), pipe[1]}, nullptr), 3);
    EXPECT_TRUE(FD_ISSET(a.shadow(), &reads));
    EXPECT_FALSE(FD_ISSET(b.shadow(), &reads));
    EXPECT_FALSE(FD_ISSET(pipe[0], &reads));
    EXPECT_TRUE(FD_ISSET(a.shadow(), &writes));
    EXPECT_TRUE(FD_ISSET(pipe[1], &writes));
    EXPECT_EQ(select({b.shadow()}, {}, &at_once), 0);
    EXPECT_FALSE(FD_ISSET(b.shadow(), &reads));
    EXPECT_EQ(select({b.shadow(), 1000}, {}, &at_once), -EBADF);
    EXPECT_EQ(select({pipe[0]}, {pipe[1]}, &at_once), 1) << "the kernel's";
}

TEST_F(Polls, SelectForWritingSleepsOverAHangUp)
{
    b.kept = EPOLLHUP;
    std::thread peer([this] {
        await([this] { return a.armed_in > 0; });
        a.arrive();
    });
    EXPECT_EQ(select({a.shadow()}, {b.shadow()}, nullptr), 1);
    EXPECT_TRUE(FD_ISSET(a.shadow(), &reads));
    EXPECT_FALSE(FD_ISSET(b.shadow(), &writes));
    peer.join();
    EXPECT_EQ(select({b.shadow()}, {}, nullptr), 1) << "to who waits to read it is an end";
}

void restarts(int)
{
    handler_runs(true);
}

void ends_call(int)
{
    handler_runs(false);
}

TEST_F(Polls, AHandlerBetweenTwoWaitsOfACallEndsIt)
{
    const timespec soon = {0, 1000000};
    const Handled first = handled();
    handler_runs(true);
    EXPECT_EQ(wait_for(a, EPOLLIN, &soon, nullptr, true, &first), -EAGAIN) << "it restarts calls";
    EXPECT_EQ(wait_for(a, EPOLLIN, &soon, nullptr, false, &first), -EINTR) << "not with a time-out";
    const Handled closing = handled();
    handler_runs(true);
    end_restarts();
    EXPECT_EQ(wait_for(a, EPOLLIN, nullptr, nullptr, true, &closing), -EBADF) << "it was closed";
    const Handled second = handled();
    handler_runs(false);
    EXPECT_EQ(wait_for(a, EPOLLIN, nullptr, nullptr, true, &second), -EINTR);
    a.revert();
    EXPECT_EQ(wait_for(a, EPOLLIN, nullptr, nullptr, true, &second), -EINTR) << "nor by TCP";
    EXPECT_EQ(wait_for(a, EPOLLIN, &soon, nullptr, true), -EAGAIN);
}

TEST_F(Polls, ABlockingCallIsRestartedAfterAHandlerThatSaysSo)
{
    struct sigaction action = {}, first, second;
    action.sa_handler = restarts;
    action.sa_flags = SA_RESTART;
    sigaction(SIGUSR1, &action, &first);
    action.sa_handler = ends_call;
    action.sa_flags = 0;
    sigaction(SIGUSR2, &action, &second);
    const pthread_t self = pthread_self();
    const auto armed_again = [this](std::uint32_t before) {
        await([this, before] { return a.requests > before && a.armed_in > 0; });
    };
    std::thread other([&] {
        armed_again(0);
        const std::uint32_t before = a.requests;
        pthread_kill(self, SIGUSR1);
        armed_again(before);
        pthread_kill(self, SIGUSR2);
    });
    EXPECT_EQ(wait_for(a, EPOLLIN, nullptr, nullptr), -EINTR);
    other.join();
    // With a time-out no handler restarts it.
    std::thread third([&, before = a.requests.load()] {
        armed_again(before);
        pthread_kill(self, SIGUSR1);
    });
    const timespec long_time = {1000, 0};
    EXPECT_EQ(wait_for(a, EPOLLIN, &long_time, nullptr), -EINTR);
    third.join();
    sigaction(SIGUSR1, &first, nullptr);
    sigaction(SIGUSR2, &second, nullptr);
}

TEST_F(Polls, AShortWaitSleepsOnAWordWhereThereIsOne)
{
    const timespec soon = {0, 10000000};
    ntb::Spinning &spinning = ntb::process_spinning();
    const std::uint32_t processors = std::exchange(spinning.processors, 1);
    a.has_word = true;
    std::atomic<bool> waits = true;
    std::thread peer([&] {
        await([&] { return a.dozers > 0; });
        a.arrive();
    });
    int result;
    do
        result = wait_for(a, EPOLLIN, &soon, nullptr);
    while (result == -EAGAIN);
    EXPECT_EQ(result, 0);
    peer.join();
    EXPECT_EQ(a.requests, 0u) << "no bell";
    EXPECT_EQ(a.dozers, 0);
    a.read_all();
    // A handler ends it as any other sleep.
    struct sigaction action = {}, before;
    action.sa_handler = ends_call;
    sigaction(SIGUSR1, &action, &before);
    std::thread other([&, self = pthread_self()] {
        await([&] { return a.dozers > 0; });
        while (waits) {
            pthread_kill(self, SIGUSR1);
            std::this_thread::yield();
        }
    });
    do
        result = wait_for(a, EPOLLIN, &soon, nullptr);
    while (result == -EAGAIN);
    waits = false;
    EXPECT_EQ(result, -EINTR);
    other.join();
    sigaction(SIGUSR1, &before, nullptr);
    // A long one has to hear what the kernel says.
    std::thread third([&] {
        await([&] { return a.armed_in > 0; });
        a.arrive();
    });
    EXPECT_EQ(wait_for(a, EPOLLIN, nullptr, nullptr), 0);
    third.join();
    EXPECT_EQ(a.dozers, 0);
    spinning.processors = processors;
}

TEST_F(Polls, ShortWaitsTryBothWaysWhereThereAreProcessors)
{
    const timespec soon = {0, 10000000};
    ntb::Spinning &spinning = ntb::process_spinning();
    const std::uint32_t processors = std::exchange(spinning.processors, 2);
    const std::uint32_t most_us = std::exchange(spinning.most_us, 0);
    a.has_word = true;
    unsigned by_word = 0, by_bell = 0;
    for (int i = 0; i < 20000 && (by_word == 0 || by_bell == 0); i++) {
        const std::uint32_t rings = a.requests;
        std::thread peer([&] {
            await([&] { return a.dozers > 0 || a.armed_in > 0; });
            a.arrive();
        });
        while (wait_for(a, EPOLLIN, &soon, nullptr) == -EAGAIN)
            ;
        peer.join();
        (a.requests != rings ? by_bell : by_word)++;
        a.read_all();
    }
    EXPECT_GT(by_word, 0u);
    EXPECT_GT(by_bell, 0u);
    spinning.processors = processors;
    spinning.most_us = most_us;
}

// Room comes with time alone, once no look has found any.
TEST_F(Polls, LooksAgainInTimeWhereASourceIsInDoubt)
{
    constexpr timespec patience = {60, 0};
    room_after_a_sleep(a);
    entries[0].events = POLLOUT;
    a.in_doubt = true;
    EXPECT_EQ(poll(&patience), 1);
    EXPECT_EQ(entries[0].revents, POLLOUT);
}

TEST_F(Polls, LooksAfterTheControlConnection)
{
    struct Reported final : Attendant {
        int fd = -1, times = 0;
        int descriptor() const override { return fd; }
        void process() override
        {
            char byte;
            times += ::read(fd, &byte, 1) == 1;
        }
    } attendant;
    attendant.fd = pipe[0];
    std::thread peer([this] {
        await([this] { return a.armed_in > 0; });
        EXPECT_EQ(write(pipe[1], "", 1), 1);
        a.arrive();
    });
    EXPECT_EQ(wait_for(a, EPOLLIN, nullptr, &attendant), 0);
    peer.join();
    EXPECT_LE(attendant.times, 1);
}

} // namespace

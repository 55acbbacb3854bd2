// SPDX-License-Identifier: BSD-3-Clause
// What a wait costs that finds one member ready, beside the kernel's.
#include <benchmark/benchmark.h>

#include <atomic>
#include <cstdlib>
#include <deque>

#include <sys/socket.h>
#include <unistd.h>

#include "readiness/set.hpp"

using namespace ntb::socket;

namespace
{

/// A connection that is ready or not, in memory.
class Member final : public Source
{
public:
    Member()
    {
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, bell_) != 0 ||
            socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, shadow_) != 0)
            std::abort();
    }
    ~Member()
    {
        for (const int fd : {bell_[0], bell_[1], shadow_[0], shadow_[1]})
            close(fd);
    }
    Member(const Member &) = delete;
    Member &operator=(const Member &) = delete;

    bool upgraded() const override { return true; }
    bool go_back() override { return false; }
    std::uint32_t look(std::uint32_t) override { return ready.load() ? std::uint32_t{EPOLLIN} : 0; }
    std::uint64_t signs(std::uint32_t) const override { return 0; }
    std::uint64_t arrivals_in() const override { return arrivals.load(); }
    std::uint64_t arrivals_out() const override { return 0; }
    std::uint64_t arrived_at() const override { return 0; }
    bool is_in_doubt() const override { return false; }
    void arm(std::uint32_t) override { armed.fetch_add(1); }
    void disarm(std::uint32_t, bool) override { armed.fetch_sub(1); }
    const std::uint32_t *doze(std::uint32_t, std::uint32_t &) override { return nullptr; }
    void wake(std::uint32_t) override {}
    int bell() const override { return bell_[0]; }
    int shadow() const override { return shadow_[0]; }
    int peer() const { return shadow_[1]; }
    void become_ready()
    {
        ready = true;
        arrivals.fetch_add(1);
        if (write(bell_[1], "", 1) != 1)
            std::abort();
    }
    void kernel_said(std::uint32_t) override {}

    std::atomic<bool> ready = false;
    std::atomic<std::uint64_t> arrivals = 0;
    std::atomic<int> armed = 0;

private:
    int bell_[2], shadow_[2];
};

constexpr timespec at_once = {0, 0};

/// @param range(0)  members, all but the first idle; range(1): edge triggered
void set_with_one_ready(benchmark::State &state)
{
    const int epoll = epoll_create1(EPOLL_CLOEXEC);
    Set *set = Set::create(epoll, nullptr);
    std::deque<Member> members(static_cast<std::size_t>(state.range(0)));
    const std::uint32_t mode = state.range(1) != 0 ? std::uint32_t{EPOLLET} : 0;
    epoll_event events[64] = {};
    for (Member &member : members) {
        events[0].events = EPOLLIN | mode;
        if (set->control(EPOLL_CTL_ADD, member.shadow(), &member, nullptr, events) != 0)
            std::abort();
    }
    for (int i = 0; i < 100; i++)
        set->wait(events, 64, &at_once, nullptr);
    members[0].become_ready();
    for (int i = 0; i < 100 && set->wait(events, 64, &at_once, nullptr) == 0; i++)
        ;
    for (auto _ : state) {
        members[0].arrivals.fetch_add(1, std::memory_order_relaxed);
        if (set->wait(events, 64, &at_once, nullptr) != 1)
            state.SkipWithError("not reported");
    }
    for (Member &member : members)
        set->closed(member.shadow(), &member, true);
    set->destroy();
    close(epoll);
}
BENCHMARK(set_with_one_ready)->ArgsProduct({{1, 50, 1000}, {0, 1}});

/// Nothing is ready: the kernel has to be asked.
void set_with_none_ready(benchmark::State &state)
{
    const int epoll = epoll_create1(EPOLL_CLOEXEC);
    Set *set = Set::create(epoll, nullptr);
    Member member;
    epoll_event events[64] = {};
    events[0].events = EPOLLIN;
    set->control(EPOLL_CTL_ADD, member.shadow(), &member, nullptr, events);
    for (auto _ : state)
        benchmark::DoNotOptimize(set->wait(events, 64, &at_once, nullptr));
    set->closed(member.shadow(), &member, true);
    set->destroy();
    close(epoll);
}
BENCHMARK(set_with_none_ready);

void poll_with_one_ready(benchmark::State &state)
{
    Member member;
    member.ready = true;
    Source *const sources[] = {&member};
    pollfd entry = {member.shadow(), POLLIN, 0};
    for (auto _ : state)
        benchmark::DoNotOptimize(poll(&entry, 1, sources, nullptr, nullptr, nullptr));
}
BENCHMARK(poll_with_one_ready);

/// @param range(0)  members, all but the first idle; -1: none is ready
void kernel_with_one_ready(benchmark::State &state)
{
    const int epoll = epoll_create1(EPOLL_CLOEXEC);
    const bool ready = state.range(0) > 0;
    std::deque<Member> members(ready ? static_cast<std::size_t>(state.range(0)) : 1);
    epoll_event events[64] = {};
    for (const Member &member : members) {
        events[0].events = EPOLLIN;
        epoll_ctl(epoll, EPOLL_CTL_ADD, member.shadow(), events);
    }
    if (ready && write(members[0].peer(), "", 1) != 1)
        state.SkipWithError("not written");
    for (auto _ : state)
        benchmark::DoNotOptimize(epoll_wait(epoll, events, 64, 0));
    close(epoll);
}
BENCHMARK(kernel_with_one_ready)->Arg(-1)->Arg(1)->Arg(50)->Arg(1000);

void kernel_poll_with_one_ready(benchmark::State &state)
{
    Member member;
    if (write(member.peer(), "", 1) != 1)
        state.SkipWithError("not written");
    pollfd entry = {member.shadow(), POLLIN, 0};
    for (auto _ : state)
        benchmark::DoNotOptimize(::poll(&entry, 1, 0));
}
BENCHMARK(kernel_poll_with_one_ready);

} // namespace

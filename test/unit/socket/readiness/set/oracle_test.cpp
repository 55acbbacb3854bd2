// SPDX-License-Identifier: BSD-3-Clause
// The same calls on sockets in the kernel's set, and on upgraded connections in ours: the same
// answers.
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <sys/epoll.h>
#include <vector>

#include "../fake_source.hpp"
#include "readiness/set.hpp"

using namespace ntb::socket;

namespace
{

constexpr int members = 4;

struct Real {
    int pair[2];
    Real()
    {
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) != 0)
            std::abort();
    }
    ~Real()
    {
        close(pair[0]);
        close(pair[1]);
    }
};

class Worlds
{
public:
    explicit Worlds(unsigned seed) : random_(seed)
    {
        for (FakeSource &fake : fakes_)
            fake.out = true;
    }
    ~Worlds()
    {
        set_->destroy();
        close(ours_);
        close(kernels_);
    }
    void step();

private:
    unsigned below(unsigned n) { return static_cast<unsigned>(random_()) % n; }
    void control();
    void wait();

    std::mt19937 random_;
    int kernels_ = epoll_create1(EPOLL_CLOEXEC), ours_ = epoll_create1(EPOLL_CLOEXEC);
    Set *set_ = Set::create(ours_, nullptr);
    Real reals_[members];
    FakeSource fakes_[members];
    bool ended_[members] = {};
    std::string trace_;
};

void Worlds::control()
{
    const unsigned i = below(members);
    const int op = std::array{EPOLL_CTL_ADD, EPOLL_CTL_MOD, EPOLL_CTL_DEL, EPOLL_CTL_MOD}[below(4)];
    epoll_event event = {};
    event.events = std::array{0u, std::uint32_t{EPOLLIN}, std::uint32_t{EPOLLOUT},
                              std::uint32_t{EPOLLIN | EPOLLRDHUP},
                              std::uint32_t{EPOLLIN | EPOLLOUT}}[below(5)] |
                   (below(2) ? std::uint32_t{EPOLLET} : 0u) |
                   (below(3) ? 0u : std::uint32_t{EPOLLONESHOT});
    event.data.u64 = random_();
    trace_ +=
        " ctl" + std::to_string(op) + ":" + std::to_string(i) + ":" + std::to_string(event.events);
    epoll_event copy = event;
    const int kernel = epoll_ctl(kernels_, op, reals_[i].pair[0], &copy) == 0 ? 0 : -errno;
    ASSERT_EQ(set_->control(op, fakes_[i].shadow(), &fakes_[i], nullptr, &event), kernel) << trace_;
}

void Worlds::wait()
{
    trace_ += " wait";
    epoll_event events[members + 1];
    std::multimap<std::uint64_t, std::uint32_t> kernel, ours;
    const int n = epoll_wait(kernels_, events, members + 1, 0);
    for (int i = 0; i < n; i++)
        kernel.emplace(std::uint64_t{events[i].data.u64}, std::uint32_t{events[i].events});
    const timespec at_once = {0, 0};
    const int m = set_->wait(events, members + 1, &at_once, nullptr);
    for (int i = 0; i < m; i++)
        ours.emplace(std::uint64_t{events[i].data.u64}, std::uint32_t{events[i].events});
    ASSERT_EQ(ours, kernel) << trace_;
}

void Worlds::step()
{
    const unsigned i = below(members);
    char bytes[256];
    switch (below(8)) {
    case 0:
    case 1:
        control();
        return;
    case 2:
    case 3:
        if (ended_[i])
            return;
        trace_ += " write:" + std::to_string(i);
        ASSERT_EQ(write(reals_[i].pair[1], "", 1), 1);
        fakes_[i].arrive();
        return;
    case 4: {
        trace_ += " read:" + std::to_string(i);
        const auto n = read(reals_[i].pair[0], bytes, below(2) ? 1 : sizeof bytes);
        if (n > 0)
            fakes_[i].read(static_cast<std::uint64_t>(n));
        return;
    }
    case 5:
        if (ended_[i] || below(12) != 0)
            return;
        trace_ += " end:" + std::to_string(i);
        ended_[i] = true;
        shutdown(reals_[i].pair[1], SHUT_WR);
        fakes_[i].end();
        return;
    default:
        wait();
    }
}

TEST(SetAgainstTheKernel, ReportsTheSame)
{
    // Ours may report a member of the kernel, or of one that was rung, some calls later.
    ntb::process_spinning().kernel_every = 1;
    for (unsigned seed = 0; seed < 300; seed++) {
        Worlds worlds(seed);
        for (int i = 0; i < 200; i++) {
            worlds.step();
            if (testing::Test::HasFatalFailure()) {
                ADD_FAILURE() << "seed " << seed;
                return;
            }
        }
    }
    ntb::process_spinning().kernel_every = 16;
}

} // namespace

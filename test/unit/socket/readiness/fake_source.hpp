// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTB_TEST_SOCKET_READINESS_FAKE_SOURCE_HPP
#define NTB_TEST_SOCKET_READINESS_FAKE_SOURCE_HPP

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <utility>

#include <climits>

#include <linux/futex.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "readiness/source.hpp"

namespace ntb::socket
{

/// A connection without bytes: counts that tests move, a socket pair for a bell and one for a
/// shadow.
class FakeSource final : public Source
{
public:
    FakeSource()
    {
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, bell_) != 0 ||
            socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, shadow_) != 0)
            std::abort();
    }
    ~FakeSource()
    {
        for (const int fd : {bell_[0], bell_[1], shadow_[0], shadow_[1]})
            if (fd >= 0)
                close(fd);
    }
    FakeSource(const FakeSource &) = delete;
    FakeSource &operator=(const FakeSource &) = delete;

    // ---- what the other end does
    void arrive(std::uint64_t n = 1)
    {
        stamp = clock.fetch_add(1);
        head.fetch_add(n);
        arrived_in.fetch_add(1);
        ring(armed_in);
    }
    void end()
    {
        ends = true;
        arrived_in.fetch_add(1);
        ring(armed_any);
    }
    void room(bool is_there)
    {
        const bool was = out.exchange(is_there);
        if (is_there && !was) {
            arrived_out.fetch_add(1);
            ring(armed_out);
        }
    }
    /// Room for which no bell rings: the next look finds it.
    void unrung_room() { unseen_room = true; }
    void revert()
    {
        up = false;
        ring(armed_any);
    }
    int peer() const { return shadow_[1]; }
    // ---- what the program does
    void read(std::uint64_t n) { taken.fetch_add(n); }
    std::uint64_t read_all()
    {
        const std::uint64_t all = head.load();
        // Another thread may have read beyond: what is taken never becomes unread again, of which
        // no arrival would tell.
        std::uint64_t before = taken.load();
        while (before < all && !taken.compare_exchange_weak(before, all))
            ;
        return before < all ? all - before : 0;
    }
    std::uint64_t unread() const { return head.load() - taken.load(); }
    void close_shadow()
    {
        close(shadow_[0]);
        shadow_[0] = -1;
    }

    bool upgraded() const override { return up.load(); }
    bool go_back() override
    {
        if (goes_back)
            up = false;
        return !up.load();
    }
    std::uint32_t look(std::uint32_t) override
    {
        looks.fetch_add(1, std::memory_order_relaxed);
        if (meanwhile)
            std::exchange(meanwhile, nullptr)();
        if (unseen_room.exchange(false)) {
            out = true;
            arrived_out.fetch_add(1);
        }
        return (unread() > 0 ? EPOLLIN : 0u) | (out.load() ? EPOLLOUT : 0u) | kept.load() |
               (ends.load() ? EPOLLIN | EPOLLRDHUP : 0u);
    }
    std::uint64_t signs(std::uint32_t) const override
    {
        return has_signs ? 1 + arrived_in.load() + arrived_out.load() + (up.load() ? 0 : 1) +
                               (unseen_room.load() ? 1 : 0)
                         : 0;
    }
    std::uint64_t arrivals_in() const override { return arrived_in.load(); }
    std::uint64_t arrivals_out() const override { return arrived_out.load(); }
    std::uint64_t arrived_at() const override { return stamp.load(); }
    bool is_in_doubt() const override { return in_doubt.load(); }
    void arm(std::uint32_t events) override
    {
        looks_when_armed = looks.load();
        armed_any.fetch_add(1);
        armed_in.fetch_add((events & EPOLLIN) != 0);
        armed_out.fetch_add((events & EPOLLOUT) != 0);
        requests.fetch_add(1);
    }
    void disarm(std::uint32_t events, bool) override
    {
        armed_in.fetch_sub((events & EPOLLIN) != 0);
        armed_out.fetch_sub((events & EPOLLOUT) != 0);
        if (armed_any.fetch_sub(1) != 1)
            return;
        char bytes[64];
        while (::read(bell_[0], bytes, sizeof bytes) > 0)
            ;
    }
    const std::uint32_t *doze(std::uint32_t, std::uint32_t &value) override
    {
        if (!has_word)
            return nullptr;
        value = std::atomic_ref(word).load();
        dozers.fetch_add(1);
        return &word;
    }
    void wake(std::uint32_t) override { dozers.fetch_sub(1); }
    int bell() const override { return bells ? bell_[0] : -1; }
    int shadow() const override { return shadow_[0]; }
    void kernel_said(std::uint32_t events) override
    {
        said.fetch_add(1);
        if (events & EPOLLIN) {
            kept.fetch_or(EPOLLIN);
            arrived_in.fetch_add(1);
        }
    }

    std::atomic<std::uint64_t> head = 0, taken = 0, arrived_in = 0, arrived_out = 0, looks = 0,
                               looks_when_armed = 0;
    std::atomic<std::uint32_t> kept = 0, said = 0, requests = 0, answered = 0, rings = 0;
    std::atomic<int> armed_in = 0, armed_out = 0, armed_any = 0;
    std::atomic<bool> out = false, up = true, ends = false, bells = true;
    std::atomic<bool> goes_back = false; ///< once it is asked
    std::atomic<bool> unseen_room = false;
    std::atomic<bool> in_doubt = false;
    std::atomic<bool> has_signs = true;
    std::atomic<bool> has_word = false;
    std::atomic<int> dozers = 0;
    std::uint32_t word = 0;
    std::atomic<std::uint64_t> stamp = 0;
    std::function<void()> meanwhile; ///< by others, once, when it is looked at

private:
    static inline std::atomic<std::uint64_t> clock = 1;

    void ring(const std::atomic<int> &armed)
    {
        if (dozers.load() != 0) {
            std::atomic_ref(word).fetch_add(1);
            syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
        }
        if (armed.load() == 0 || answered.exchange(requests.load()) == requests.load())
            return;
        rings.fetch_add(1);
        (void)!write(bell_[1], "", 1);
    }

    int bell_[2], shadow_[2];
};

/// Waits for a fact that another thread makes true.
template <typename Fact>
void await(const Fact &fact)
{
    while (!fact())
        std::this_thread::yield();
}

/// A source that has room for which no bell rings, from the first look after a sleep on.
inline void room_after_a_sleep(FakeSource &source, bool slept = false)
{
    source.meanwhile = [&source, slept] {
        if (slept && source.armed_out == 0)
            source.unrung_room();
        else
            room_after_a_sleep(source, slept || source.armed_out != 0);
    };
}

} // namespace ntb::socket

#endif

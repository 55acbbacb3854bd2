// SPDX-License-Identifier: BSD-3-Clause
#include "kernel/lock.hpp"

#include "kernel/memory.hpp"
#include "kernel/system.hpp"

#include <atomic>
#include <cerrno>
#include <ctime>

#include <linux/futex.h>
#include <sys/mman.h>

namespace ntb::socket
{

namespace
{

constexpr std::uint32_t waiters = std::uint32_t{1} << 31;
constexpr std::uint32_t the_daemon = waiters - 1; // no thread has this number
constexpr std::uint32_t the_emptying_daemon = waiters - 2;
constexpr int spins = 200;
constexpr long look_after_ns = 2000000; // a sleeper asks so often whether the holder lives
constexpr int daemons_looks = 500;

// What process_life is until there is a page for it: no thread's number is of this life.
constinit std::uint32_t no_life = 0;

std::uint32_t *map_life()
{
    std::uint32_t *at = process_life.load(std::memory_order_acquire);
    if (at != &no_life)
        return at;
    constexpr std::size_t words = 4096 / sizeof *at;
    at = kernel::map<std::uint32_t>(words, MAP_PRIVATE);
    if (at == nullptr)
        return nullptr;
    kernel::call(SYS_madvise, at, 4096, MADV_WIPEONFORK);
    std::uint32_t *none = &no_life;
    if (process_life.compare_exchange_strong(none, at))
        return at;
    kernel::unmap(at, words);
    return none;
}

std::atomic<std::uint32_t> lives;

std::atomic_ref<std::uint32_t> ref(std::uint32_t &word)
{
    return std::atomic_ref(word);
}

void pause()
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

} // namespace

constinit std::atomic<std::uint32_t *> process_life = &no_life;
constinit thread_local OwnThread own_thread = {};

std::uint32_t ask_thread_id()
{
    std::uint32_t *page = map_life();
    if (page == nullptr)
        return static_cast<std::uint32_t>(kernel::call(SYS_gettid));
    std::uint32_t life = ref(*page).load(std::memory_order_relaxed);
    if (life == 0) {
        const std::uint32_t next = lives.fetch_add(1) + 1;
        life = 0;
        if (ref(*page).compare_exchange_strong(life, next))
            life = next;
    }
    if (own_thread.life != life) {
        own_thread.id = static_cast<std::uint32_t>(kernel::call(SYS_gettid));
        own_thread.life = life;
    }
    return own_thread.id;
}

Lock::Taken Lock::take_slowly(std::uint32_t self)
{
    for (int i = 0; i < spins; i++) {
        std::uint32_t none = 0;
        if (ref(word_).compare_exchange_strong(none, self, std::memory_order_acquire))
            return Taken::Clean;
        pause();
    }
    for (int daemons = 0;;) {
        std::uint32_t now = ref(word_).load(std::memory_order_relaxed);
        if (now == 0) {
            if (ref(word_).compare_exchange_strong(now, self | waiters, std::memory_order_acquire))
                return Taken::Clean;
            continue;
        }
        const std::uint32_t holder = now & ~waiters;
        if (holder == self)
            return Taken::Repair;
        if ((now & waiters) == 0 &&
            !ref(word_).compare_exchange_strong(now, now | waiters, std::memory_order_relaxed))
            continue;
        const timespec patience = {0, look_after_ns};
        const long woken =
            kernel::call(SYS_futex, &word_, FUTEX_WAIT, holder | waiters, &patience, nullptr, 0);
        if (woken != -ETIMEDOUT)
            continue;
        const bool is_daemon = holder == the_daemon || holder == the_emptying_daemon;
        const bool gone =
            is_daemon ? ++daemons > daemons_looks : kernel::call(SYS_tkill, holder, 0) == -ESRCH;
        if (!gone)
            continue;
        now = holder | waiters;
        if (ref(word_).compare_exchange_strong(now, self | waiters, std::memory_order_acquire))
            return holder == the_emptying_daemon ? Taken::Doubt : Taken::Repair;
    }
}

// Not ours any more if a handler of this thread took it over and gave it up.
void Lock::give_slowly(std::uint32_t self, std::uint32_t now)
{
    if (now != (self | waiters))
        return;
    ref(word_).store(0, std::memory_order_release);
    kernel::call(SYS_futex, &word_, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

bool Lock::try_take_as_daemon(bool to_empty)
{
    std::uint32_t none = 0;
    return ref(word_).compare_exchange_strong(none, to_empty ? the_emptying_daemon : the_daemon,
                                              std::memory_order_acquire);
}

// Not where it was replaced.
void Lock::give_as_daemon()
{
    std::uint32_t now = ref(word_).load(std::memory_order_relaxed);
    while ((now & ~waiters) == the_daemon || (now & ~waiters) == the_emptying_daemon) {
        if (!ref(word_).compare_exchange_weak(now, 0, std::memory_order_release))
            continue;
        if ((now & waiters) != 0)
            kernel::call(SYS_futex, &word_, FUTEX_WAKE, 1, nullptr, nullptr, 0);
        return;
    }
}

} // namespace ntb::socket

// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTB_SOCKET_KERNEL_LOCK_HPP
#define NTB_SOCKET_KERNEL_LOCK_HPP

#include <atomic>
#include <cstdint>

namespace ntb::socket
{

/// A word that the kernel clears in a child: a number of the process, or 0 until it has one.
extern constinit std::atomic<std::uint32_t *> process_life;
/// The thread's number, and that of the process in which it was asked for: 0 in none.
struct OwnThread {
    std::uint32_t life;
    std::uint32_t id;
};
[[gnu::tls_model("initial-exec")]] extern constinit thread_local OwnThread own_thread;

std::uint32_t ask_thread_id();
/// The calling thread, also after fork().
inline std::uint32_t thread_id()
{
    const std::uint32_t life = std::atomic_ref(*process_life.load(std::memory_order_acquire))
                                   .load(std::memory_order_relaxed);
    if (life != 0 && own_thread.life == life) [[likely]]
        return own_thread.id;
    return ask_thread_id();
}

/// A lock in memory that processes share, whose holder may die (doc/socket-protocol.md, section 8).
/// Not a mutex of the C library: taking one of those follows pointers in the memory, where a daemon
/// may follow nothing that a client wrote.
///
/// A holder is known by its thread's number. One that is gone, or that is the caller itself, who
/// left the call by longjmp() or was interrupted by its own handler, is replaced; so is a daemon
/// that does not give it back within a second: it needs some microseconds. The processes
/// that take a lock are of one pid namespace.
class Lock
{
public:
    enum class Taken {
        Clean,
        Repair, ///< its holder was gone: what it did may be half done
        Doubt,  ///< a daemon held it too long, and may still do what it may do only as its holder
    };

    Taken take()
    {
        const std::uint32_t self = thread_id();
        std::uint32_t none = 0;
        if (std::atomic_ref(word_).compare_exchange_strong(none, self, std::memory_order_acquire))
            [[likely]]
            return Taken::Clean;
        return take_slowly(self);
    }
    /// The thread's number is asked for anew: in a child of a handler's fork() it is another one,
    /// and the lock the parent's.
    void give()
    {
        const std::uint32_t self = thread_id();
        std::uint32_t now = self;
        if (!std::atomic_ref(word_).compare_exchange_strong(now, 0, std::memory_order_release))
            [[unlikely]]
            give_slowly(self, now);
    }

    /// For a daemon, which does not wait. @retval false it is held
    /// @param to_empty  not for stores that may come late, but to take memory away: who replaces it
    ///                  is in doubt
    bool try_take_as_daemon(bool to_empty = false);
    void give_as_daemon();

private:
    Taken take_slowly(std::uint32_t self);
    void give_slowly(std::uint32_t self, std::uint32_t now);

    std::uint32_t word_ = 0; ///< thread that holds it; the highest bit: others sleep
};

/// Holds a lock while it lives, where what a holder that died has left needs no repair.
class Locked
{
public:
    explicit Locked(Lock &lock) : lock_(lock) { lock_.take(); }
    ~Locked() { lock_.give(); }
    Locked(const Locked &) = delete;
    Locked &operator=(const Locked &) = delete;

private:
    Lock &lock_;
};

} // namespace ntb::socket

#endif

// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTB_SOCKET_KERNEL_LOCK_HPP
#define NTB_SOCKET_KERNEL_LOCK_HPP

#include <cstdint>

namespace ntb::socket
{

/// The calling thread, also after fork().
std::uint32_t thread_id();

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

    Taken take();
    void give();

    /// For a daemon, which does not wait. @retval false it is held
    /// @param to_empty  not for stores that may come late, but to take memory away: who replaces it
    ///                  is in doubt
    bool try_take_as_daemon(bool to_empty = false);
    void give_as_daemon();

private:
    Taken take_slowly(std::uint32_t self);

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

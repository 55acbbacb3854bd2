// SPDX-License-Identifier: BSD-3-Clause
// What the threads of this program share: the workers, the main thread, and the control thread of
// the port, which reports the link.
#ifndef APP_NET_STATE_HPP
#define APP_NET_STATE_HPP

#include <atomic>
#include <cstdint>

#include <sys/eventfd.h>
#include <unistd.h>

#include "frame.hpp"

namespace net
{

/// Wakes one thread that polls a descriptor.
class Bell
{
public:
    Bell() : fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}
    ~Bell() { close(fd_); }
    Bell(const Bell &) = delete;
    Bell &operator=(const Bell &) = delete;

    int fd() const { return fd_; }
    void ring() { eventfd_write(fd_, 1); }
    void clear()
    {
        eventfd_t count;
        eventfd_read(fd_, &count);
    }

private:
    int fd_;
};

/// What the peer has said in its hello, in one word. 0: nothing, or it is another program.
struct PeerWord {
    static constexpr uint32_t said_it = 1u << 31;
    static constexpr uint32_t takes_offloads = 1u << 30;
    static constexpr uint32_t queues = 0xffff;
};

struct State {
    Hello hello{}; ///< ours; does not change
    std::atomic<bool> stop = false;
    std::atomic<bool> link_up = false;
    std::atomic<bool> hello_is_due = false; ///< set at a link-up, cleared when it was sent
    std::atomic<uint32_t> peer = 0;         ///< PeerWord, of this connection
    std::atomic<unsigned> active = 1;       ///< queues that the kernel uses
    std::atomic<bool> offloads = false;     ///< the peer takes what the kernel leaves to it
    Bell main;                              ///< link_up or peer have changed
};

} // namespace net

#endif

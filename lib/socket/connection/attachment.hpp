// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTB_SOCKET_CONNECTION_ATTACHMENT_HPP
#define NTB_SOCKET_CONNECTION_ATTACHMENT_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "connection/connection.hpp"
#include "wire/message.hpp"

#include <sys/types.h>

namespace ntb::socket
{

/// This process's attachment to a daemon. It takes no memory of the program: its own comes from
/// mmap() when it is made. Any thread.
class Attachment
{
public:
    /// How claims have ended.
    struct Figures {
        std::uint64_t claimed;   ///< shown to the daemon
        std::uint64_t matched;   ///< with a mirror
        std::uint64_t unmatched; ///< no mirror in time, or the daemon did not answer
        std::uint64_t refused;   ///< by the daemon: quota, or not what it takes
        std::uint64_t failed;    ///< no daemon, no descriptors, no memory here
        std::uint64_t unseen; ///< directions that were not upgraded: bytes that passed unseen (C1)
        std::uint64_t resets; ///< connections that were reset for what the rings had
        std::uint64_t ring_sent, ring_received; ///< bytes by rings, in this process, of connections
                                                ///< that have ended or were settled
        std::uint64_t rings;                    ///< wake-ups that were sent
    };

    /// @param path  of the daemon's socket. It is connected to by the first claim, and again by the
    ///              first claim after a daemon has gone, at most once a second.
    /// @param mirror_within_ms  so long a claim waits to be shown from the other end, too
    /// @return NULL: no memory
    static Attachment *create(const char *path, std::uint32_t mirror_within_ms = 2000);
    /// Connects now, if it is not: later the path may not be reachable.
    void connect();
    /// Whether a claim would find no daemon, as one has just found none: it is not looked for again
    /// yet.
    bool is_out_of_reach() const;

    /// Readable when process() has something to do: answers, the daemon's end. It may change
    /// with each claim. -1: not attached
    int descriptor() const;
    /// Takes in what the daemon has said. Never waits. Who sleeps on a bell sleeps on
    /// descriptor() as well, and calls this.
    void process();
    Figures figures() const;
    /// Takes in what connections that go on have counted so far.
    void settle();

    /// Around fork(), in this order, with no other call in between. A child has the connections
    /// that are matched, together with its parent; claims without an answer are withdrawn. It
    /// attaches for itself when it claims.
    void before_fork();
    /// @param child  0: fork() failed
    void after_fork_in_parent(pid_t child);
    void after_fork_in_child();

private:
    friend class Connection;
    static constexpr std::size_t connections_max = 65536;
    static constexpr std::size_t path_max = 108;
    struct Letter; // a message with what came along

    Attachment() = default;
    ~Attachment() = default;

    bool reach();
    int greet(int fd);
    Connection *take_slot();
    void give_slot(Connection *connection);
    void unlink(Connection *connection);
    void take_in();
    bool take_one(Letter &letter);
    void take(Letter &letter);
    void take_claimed(Letter &letter);
    bool map(Connection &connection, Letter &letter);
    void give_up();
    void settle(Connection &connection);
    void withdraw(Connection &connection);
    Connection *waiting(std::uint64_t token);
    static int send_message(int control, const ntbc::Message &message, const int *fd);
    void count(std::uint64_t Figures::*figure, std::uint64_t n = 1)
    {
        std::atomic_ref(figures_.*figure).fetch_add(n, std::memory_order_relaxed);
    }

    static void turn() { turns_.fetch_add(1, std::memory_order_release); }

    static inline std::atomic<std::uint64_t> turns_;
    static inline std::atomic<int> deaf_ = -1; ///< control socket that was full for too long
    Lock lock_;                                ///< of all but figures_
    char path_[path_max] = {};
    std::uint32_t mirror_within_ms_ = 0;
    int control_ = -1;
    std::atomic<std::int64_t> retry_ms_ = 0; ///< read without the lock, too
    std::uint64_t last_token_ = 0;
    Connection *all_ = nullptr; ///< pending and matched
    Connection *free_ = nullptr;
    std::size_t used_ = 0;
    Figures figures_ = {};
    alignas(
        Connection) std::byte slots_[connections_max * sizeof(Connection)]; // made as they are used
};

} // namespace ntb::socket

#endif

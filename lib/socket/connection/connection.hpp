// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTB_SOCKET_CONNECTION_CONNECTION_HPP
#define NTB_SOCKET_CONNECTION_CONNECTION_HPP

#include <atomic>
#include <cstdint>

#include "kernel/shadow.hpp"
#include "record/record.hpp"

#include <sys/types.h>
#include <sys/uio.h>

namespace ntb::socket
{

class Attachment;

/// A TCP connection of this process that was claimed: doc/socket-protocol.md. What the processes of
/// a connection have to agree on lies in its record, which they share; this is one process's view
/// of it.
///
/// Calls return what libc's would, with -errno for an error; errno stays as it is. `fd` is any
/// descriptor of the connection. Nothing sleeps: a call that has to wait returns -EAGAIN, whatever
/// O_NONBLOCK says, and a send may take a part. The caller waits by look(), arm() and the two
/// descriptors, and calls again.
///
/// Threads and signal handlers may call at any time, but for close(), after which the object is
/// gone in this process: the caller sees to it that no other call has it.
class Connection
{
public:
    /// Shows the socket to the daemon, which looks for its mirror. Nothing waits for the answer:
    /// until it is there, and if there is none, the calls are the kernel's. To be called before
    /// the first byte or later; no other call on the socket at the same time.
    /// @param fd        a connected TCP socket; stays the caller's
    /// @param accepted  made by accept(), else by connect()
    /// @param later  set to true where the daemon has too much to read just now: it may be claimed
    ///               by another call
    /// @return NULL: it stays TCP; Attachment::figures() counts why. Else until close()
    static Connection *claim(Attachment &attachment, int fd, bool accepted, bool *later = nullptr);

    /// Whether calls have to be made here. false: each is the kernel's call, now and for good, but
    /// for close(). One load.
    bool upgraded() const { return stage_.load(std::memory_order_acquire) != Stage::Native; }
    /// Whether a direction has a ring: only then do look(), arm() and bell() say more than the
    /// kernel does of the shadow.
    bool has_ring() const;
    /// A number that changes whenever has_ring() of some connection of this process may have
    /// changed by a call of it: a set looks at its members again. One load.
    static std::uint64_t turns();

    /// As recvmsg() without control data. Flags: MSG_PEEK, MSG_TRUNC, MSG_WAITALL (only as far as
    /// bytes are there), MSG_DONTWAIT (the same), MSG_OOB (the kernel's).
    ssize_t receive(int fd, const iovec *parts, int n, int flags);
    /// Whether receive() would find nothing, and would not ask the kernel either: as it says, but
    /// without the lock. Who has that may store `drained` meanwhile; but it is never above the
    /// head, which is loaded behind it: where both are one, the ring was empty then.
    [[gnu::always_inline]] bool finds_nothing() const
    {
        using ntbc::load;
        if (stage_.load(std::memory_order_acquire) != Stage::Matched)
            return false;
        const ReceiveHalf &half = record_->in;
        const SenderLine &line = lines_in().sender;
        const std::uint64_t drained = load(half.drained);
        return load(line.head) == drained && drained != 0 && load(line.mark) == 0 && !is_lost() &&
               (load(record_->broken) | load(half.is_shut) |
                (load(half.kernel) & ReceiveHalf::ends)) == 0 &&
               load(half.asked, std::memory_order_relaxed) == kernel::tick() &&
               load(half.drained) == drained; // nor has another ring begun meanwhile
    }
    /// As splice() to a pipe, in which there is room for so many bytes: they stay here until they
    /// are there.
    ssize_t splice(int fd, int pipe, std::size_t size);
    /// As sendmsg() without control data. SIGPIPE is raised as the kernel does.
    /// @retval -EAGAIN nothing was taken
    ssize_t send(int fd, const iovec *parts, int n, int flags);
    /// As shutdown().
    int shutdown(int fd, int how);
    /// To be called before the kernel's close.
    /// @param last_here  no descriptor of the connection is left in this process: the object ends
    void close(int fd, bool last_here);
    /// As FIONREAD. @return bytes or a negative errno
    ssize_t readable_bytes(int fd);
    /// The program has heard of this error of the connection's by SO_ERROR, which says it once.
    void reported(int error);
    /// An error that ended a call behind a part, which is what the program has heard of: the next
    /// one says it, as the kernel does.
    void owe(ssize_t result);
    /// As SIOCATMARK.
    bool is_at_mark(int fd);
    /// Goes back to TCP in both directions, and no ring any more: before the socket is handed to
    /// who does not know of rings (rule R8).
    /// @retval true all is TCP now. false: the peer has to do its part; call again after a while
    /// @param in, out  or one direction alone
    bool leave(int fd, bool in = true, bool out = true);
    /// Resets it, where leave() was in vain: as by TCP, reads say ECONNRESET once and then the end.
    void abort(int fd);

    // ---- readiness: section 9, "What is shown"

    /// EPOLLIN, EPOLLOUT, EPOLLRDHUP, EPOLLHUP, EPOLLERR as they are now. A system call only where
    /// the state needs the kernel.
    /// @param wanted  without EPOLLOUT it need not be shown
    std::uint32_t look(int fd, std::uint32_t wanted = ~std::uint32_t{0});
    /// A number that changes when there may be more to see of these of EPOLLIN and EPOLLOUT, or
    /// something is wrong; 0: the state needs a look. Some loads, and no lock.
    std::uint64_t signs(std::uint32_t events) const;
    /// Whether the peer's kernel has sent a FIN: it may have no holder any more, which only time
    /// shows to who waits for room (rule D4).
    bool is_in_doubt() const;
    /// Numbers that differ when something has arrived since the last look: for edge triggered sets.
    std::uint64_t arrivals_in() const;
    std::uint64_t arrivals_out() const;
    /// Larger than that of another connection for what came by ring there before.
    std::uint64_t arrived_at() const;
    /// Asks to be rung for these of EPOLLIN and EPOLLOUT, and for what is wrong. A full fence: who
    /// calls looks again afterwards. Calls are counted. After each the next arrival rings once.
    void arm(std::uint32_t events);
    /// Withdraws one arm().
    /// @param rung  and reads the bell, where no other thread sleeps on it
    void disarm(std::uint32_t events, bool rung = true);
    /// As arm(), for one event and for who sleeps in a futex's wait until a word is no longer
    /// `value`, and not for long: what the kernel has to say, and the peer's death, are not seen.
    /// @return the word; NULL: not in this state
    const std::uint32_t *doze(std::uint32_t event, std::uint32_t &value);
    /// Withdraws one doze().
    void wake(std::uint32_t event);
    /// Readable when rung. -1: there is none, the shadow alone is to be waited for.
    int bell() const { return bell_; }
    /// Of the shadow, what matters to a sleeper beside the bell: EPOLLIN, EPOLLRDHUP, and EPOLLOUT
    /// where the kernel sends.
    std::uint32_t kernel_part() const;
    /// What the kernel said of the shadow (EPOLLIN, EPOLLRDHUP, EPOLLHUP, EPOLLERR): kept until a
    /// read finds nothing.
    void kernel_said(std::uint32_t events);

private:
    friend class Attachment;
    enum class Stage : std::uint32_t { Native, Pending, Matched };
    class Sending;
    class Receiving;

    Connection() = default;
    ~Connection() = default;

    bool is_matched()
    {
        const Stage stage = stage_.load(std::memory_order_acquire);
        return stage == Stage::Matched || (stage == Stage::Pending && is_matched_now());
    }
    bool is_matched_now();
    bool is_lost() const { return (ntbc::load(page_->gone) | ntbc::load(record_->lost)) != 0; }
    /// What the peer and the daemons say to the sending half, which attends to the same words.
    std::uint64_t signs_to_sender() const
    {
        using ntbc::load;
        const ReceiverAsks &asks = lines_out().receiver_asks;
        const bool said =
            (load(asks.ask) | load(asks.gone) | load(record_->broken)) != 0 || is_lost();
        return (std::uint64_t{load(asks.generation)} << 1) + said;
    }
    /// Nothing was said that may have to be attended to more than once, and a grant once.
    bool is_attended() const
    {
        const std::uint64_t signs = signs_to_sender();
        return (signs & 1) == 0 && signs == ntbc::load(record_->out.attended);
    }
    std::uint32_t reset_events() const;
    Lines &lines_out() const { return page_->direction[index_]; }
    Lines &lines_in() const { return page_->direction[1 - index_]; }
    /// The bytes of a ring that are in use.
    Ring ring_out(std::uint64_t used) const { return ring_of(page_, ring_bytes_, index_, used); }
    Ring ring_in(std::uint64_t used) const { return ring_of(page_, ring_bytes_, 1 - index_, used); }
    void open(int fd);
    void unmap();
    void lose();
    void break_off(int fd, bool once_read = false);
    ssize_t say_reset(int fd);
    void check_daemon();
    void close_for_all(int fd);
    /// The bytes of a bell.
    static constexpr char rung_in = 1, rung_out = 2;
    void ring_bell(char byte);
    /// Behind a full fence: the peer's sleep that was not ended yet is.
    void ring_reader()
    {
        SendHalf &half = record_->out;
        const ReceiverAsks &asks = lines_out().receiver_asks;
        if (has_begun(asks.wants_data, half.rung))
            ring_bell(rung_in);
        if (has_begun(asks.dozes_for_data, half.woken))
            end_doze(lines_out().sender_asks.woken_for_data);
    }
    void ring_writer()
    {
        ReceiveHalf &half = record_->in;
        const SenderAsks &asks = lines_in().sender_asks;
        if (has_begun(asks.wants_room, half.rung))
            ring_bell(rung_out);
        if (has_begun(asks.dozes_for_room, half.woken))
            end_doze(lines_in().receiver_asks.woken_for_room);
    }
    /// Whether a sleep has begun that was not served yet: once for each.
    static bool has_begun(const std::uint32_t &sleep, std::uint32_t &served)
    {
        const std::uint32_t now = ntbc::load(sleep, std::memory_order_seq_cst);
        if (now == 0 || now == served) [[likely]]
            return false;
        served = now;
        return true;
    }
    void ring_all();
    void ring_carrier(void (Connection::*ring)());
    void end_doze(std::uint32_t &word);
    void report_fin(std::uint32_t generation);
    static bool is_end(ssize_t result);
    void note(ssize_t result);
    ssize_t say_owed();
    void drain_bell(std::uint32_t others);

    /// By rings in this process. Under the lock of the direction.
    struct Bytes {
        std::uint64_t moved = 0;
        std::uint64_t settled = 0; ///< of these, what the attachment has counted; under its lock

        void add(std::uint64_t bytes) { ntbc::store(moved, moved + bytes); }
    };

    std::atomic<Stage> stage_{Stage::Native};
    std::uint32_t index_ = 0; ///< 0 connected, 1 accepted
    Page *page_ = nullptr;
    Record *record_ = nullptr;
    std::uint32_t ring_bytes_ = 0;
    bool is_carried_ = false; ///< through the daemons: its own is the other end of the memory
    int bell_ = -1;
    int control_ = -1; ///< to the daemon that knows of it
    int fd_ = -1;      ///< that was claimed
    std::uint64_t cookie_ = 0;
    std::uint64_t token_ = 0;
    std::uint64_t id_ = 0;
    Bytes sent_, received_;
    // Of the sender, under its lock: what the receiver has taken, and since when no more.
    std::uint64_t stalled_at_ = 0, stalled_since_ = 0;
    std::atomic<int> owed_{0}; ///< an error that was not said
    Attachment *attachment_ = nullptr;
    Connection *next_ = nullptr;
    Connection *previous_ = nullptr;
};

} // namespace ntb::socket

#endif

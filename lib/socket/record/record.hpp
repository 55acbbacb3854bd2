// SPDX-License-Identifier: BSD-3-Clause
// What an end of a connection knows of it, in memory that its processes share with its daemon
// (doc/socket-protocol.md, sections 4 and 8). Its daemon takes it for what a client wrote.
#ifndef NTB_SOCKET_RECORD_RECORD_HPP
#define NTB_SOCKET_RECORD_RECORD_HPP

#include <atomic>
#include <cstdint>

#include "direction/receiver.hpp"
#include "direction/sender.hpp"
#include "kernel/lock.hpp"
#include "pair/pair.hpp"

#include <sys/epoll.h>

namespace ntb::socket
{

/// A value that changes at once, also if its writer is killed in between.
template <typename T>
class Committed
{
public:
    const T &now() const
    {
        return copies_[std::atomic_ref(const_cast<std::uint32_t &>(which_))
                           .load(std::memory_order_acquire) &
                       1];
    }
    void put(const T &value)
    {
        const std::uint32_t next = (which_ + 1) & 1;
        // Not by an index, of which gcc 14 believes that it may lie behind the array.
        (next == 0 ? copies_[0] : copies_[1]) = value;
        std::atomic_ref(which_).store(next, std::memory_order_release);
    }

private:
    std::uint32_t which_ = 0;
    T copies_[2];
};

/// The processes that are known to have descriptors of the connection.
class Holders
{
public:
    /// The calling process, once.
    void add(std::int32_t pid);
    /// Before fork(): the child is counted until it is in by itself. For ever, if it never comes.
    void expect();
    void expect_no_more() { std::atomic_ref(expected_).fetch_sub(1); }
    /// @param asks  whether those that are listed still exist: a system call for each
    /// @retval true this process alone has it, and will: only a holder can fork with it
    bool is_alone(std::int32_t pid, bool asks) const;
    /// @retval true no other process is known to have it
    bool remove(std::int32_t pid);
    /// For who sees the processes by the same numbers. @param but  one that lives
    /// @retval true some were holders, none of them lives, and none is expected
    bool have_died(std::int32_t but) const;

private:
    static constexpr int most = 16;

    std::uint32_t expected_ = 0; ///< also those beyond the table
    std::uint32_t births_ = 0; ///< that were ever expected: who looks for holders looks here twice
    std::int32_t pids_[most] = {};
};

/// Who sleeps on the bell for one event, or dozes: sleeps on a word of the memory.
struct Sleepers {
    std::uint32_t count;
    std::uint32_t number; ///< of the last sleep
};

struct SendHalf {
    Lock lock;
    Committed<Sender> sender;
    std::uint64_t taken;     ///< as last loaded from the receiver
    std::uint32_t rung;      ///< sleep of the receiver that was rung for
    std::uint32_t woken;     ///< doze of the receiver that was ended
    std::uint32_t mistrust;  ///< switches that the kernel's counts refused (C1)
    std::uint32_t refused;   ///< it found no room since it was last said to have some
    std::uint32_t open_room; ///< the kernel has room, and nothing was written since it said so
    std::uint64_t asked;     ///< when the kernel was asked for ends
    std::uint64_t openings;  ///< times that there was room after there was none
    std::uint64_t attended;  ///< signs to the sender, as last attended
    std::uint64_t by_ring;
    std::uint64_t by_kernel;
    Sleepers sleepers, dozers;
};

struct ReceiveHalf {
    Lock lock;
    Committed<Receiver> receiver;
    std::uint64_t shown;  ///< taken, as last stored
    std::uint32_t rung;   ///< sleep of the sender that was rung for
    std::uint32_t woken;  ///< doze of the sender that was ended
    std::uint32_t kernel; ///< what it said of the shadow: events that are kept
    static constexpr std::uint32_t ends = EPOLLRDHUP | EPOLLHUP | EPOLLERR; ///< of these
    std::uint32_t is_shut;                                                  ///< SHUT_RD
    std::uint32_t above; ///< the next byte comes by ring: the kernel has none that is wanted
    std::uint64_t edges; ///< of the kernel
    std::uint64_t asked; ///< when it was asked for ends
    std::uint64_t by_ring;
    std::uint64_t by_kernel;
    Sleepers sleepers, dozers;
    std::uint64_t drained; ///< the head up to which all is taken, and no mark behind it; 0: not so
};

struct Record {
    std::uint32_t broken;         ///< the shadow was broken off, or has broken
    std::uint32_t reset_reported; ///< ECONNRESET was reported once
    std::uint32_t kernel_reset;   ///< the kernel has said so
    std::uint32_t lost;           ///< the rings are lost
    std::uint32_t owes_reset;     ///< broken off, once what the kernel has is read
    Holders holders;
    alignas(ntbc::line_bytes) SendHalf out;
    alignas(ntbc::line_bytes) ReceiveHalf in;
};

inline constexpr std::size_t record_bytes = 4096;
static_assert(sizeof(Record) <= record_bytes);

/// What a daemon does for a sender whose kernel takes no more (rule D2): stores again what was
/// recorded, and the end. The record is what a client reports.
/// @param alone  all holders have died: none has the lock; bytes that they left unread reset the
///               direction (rule D4)
/// @retval false somebody holds the lock: to be tried again
bool say_end(Record &record, Page &page, unsigned end, std::uint32_t generation, bool alone);
/// Whether the receiver has asked for TCP and the sender has not answered.
bool is_asked(const Record &record, const Page &page, unsigned end);
/// What a daemon does for a sender that does not answer an ask (rule D1): goes back for it, once
/// the receiver has seen the switch. The record is what a client reports.
/// @retval false somebody holds the lock, or the switch was not seen: to be tried again
bool answer_ask(Record &record, Page &page, unsigned end);
/// What a daemon does when all holders are gone: there is no receiver any more.
void say_gone(const Record &record, Page &page, unsigned end);
/// What a daemon does now and then for an end that is idle: says what was taken, and gives the
/// pages of its own ring back that hold no byte which may still be read: the next store finds new
/// ones. The record is what a client reports.
/// @retval false something is left: bytes that were not taken, or somebody holds a lock
bool rest(Record &record, Page &page, unsigned end, std::uint32_t ring_bytes);
/// Gives the pages of a ring back that hold no byte from @p taken up to the head, which lies within
/// the room behind it.
void empty_free(const Ring &whole, const SenderWords &words, std::uint64_t taken);
/// A number that differs when bytes went by ring since.
inline std::uint64_t progress_of(const Record &record)
{
    return ntbc::load(record.out.by_ring) + ntbc::load(record.in.by_ring);
}
/// Bytes in the ring that this end receives from that were not taken.
bool has_unread(const Record &record, const Page &page, unsigned end);

/// What a daemon shows of an end: what a client reports.
struct Figures {
    std::uint32_t sender;   ///< Sender::State
    std::uint32_t receiver; ///< Receiver::State
    std::uint64_t sent_by_ring, sent_by_kernel;
    std::uint64_t received_by_ring, received_by_kernel;
};
Figures figures_of(const Record &record);

} // namespace ntb::socket

#endif

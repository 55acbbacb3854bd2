// SPDX-License-Identifier: BSD-3-Clause
#include "connection/connection.hpp"

#include "connection/attachment.hpp"
#include "connection/halves.hpp"
#include "kernel/shadow.hpp"
#include "kernel/system.hpp"

#include <climits>

#include <linux/futex.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>

namespace ntb::socket
{

using kernel::call;
using ntbc::load;
using ntbc::store;

namespace
{

// Between the words and the look for who sleeps; pairs with the carrier's exchange of its wishes
// before its last look (daemon/carrier/line_relay.cpp). gcc refuses the fence under the thread
// sanitizer, where only x86-64 is built: there a locked instruction is one.
void full_fence()
{
#ifdef __SANITIZE_THREAD__
    std::atomic<int> own = 0;
    own.exchange(1, std::memory_order_seq_cst);
#else
    std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

} // namespace

// ---- life

/// What was exchanged so far went by TCP, and the kernel has counted it.
void Connection::open(int fd)
{
    Sender sender;
    if (const auto written = kernel::bytes_written(fd, index_ == 0, 0); written)
        sender.recount(*written);
    record_->out.sender.put(sender);
    Receiver receiver;
    if (const auto taken = kernel::bytes_taken(fd, 0); taken)
        receiver.recount(*taken);
    record_->in.receiver.put(receiver);
    record_->holders.add(static_cast<std::int32_t>(call(SYS_getpid)));
    stage_.store(Stage::Matched, std::memory_order_release);
}

bool Connection::is_matched_now()
{
    attachment_->process();
    return stage_.load(std::memory_order_acquire) == Stage::Matched;
}

/// Its daemon is gone, or has ended it: the other end hears it from here as well.
void Connection::lose()
{
    store(record_->lost, std::uint32_t{1});
    std::atomic_ref(page_->gone).fetch_or(ntbc::gone_end(index_));
    ring_all();
    Attachment::turn();
}

/// The end of its daemon is seen by who polls rings alone, too.
void Connection::check_daemon()
{
    if (load(record_->lost) == 0 && (kernel::events_of(control_, 0) & (POLLHUP | POLLERR)) != 0)
        lose();
}

void Connection::unmap()
{
    call(SYS_munmap, page_, ntbc::memory_bytes(ring_bytes_));
    call(SYS_munmap, record_, record_bytes);
    call(SYS_close, bell_);
}

void Connection::close(int fd, bool last_here)
{
    if (!last_here)
        return;
    Attachment &attachment = *attachment_;
    attachment.lock_.take();
    // An answer that has arrived counts, also if no call has read it yet.
    if (stage_.load() == Stage::Pending)
        attachment.take_in();
    const Stage stage = stage_.load();
    if (stage == Stage::Pending) {
        attachment.withdraw(*this);
        kernel::end(fd);
    } else if (stage == Stage::Matched) {
        attachment.unlink(this);
    }
    attachment.lock_.give();
    if (stage == Stage::Matched) {
        if (record_->holders.remove(static_cast<std::int32_t>(call(SYS_getpid))))
            close_for_all(fd);
        unmap();
        Attachment::turn();
    }
    attachment.lock_.take();
    attachment.settle(*this);
    attachment.give_slot(this);
    attachment.lock_.give();
}

/// The last known holder says the end. With unread bytes, or where the program wants it, the
/// kernel's close is to send RST.
void Connection::close_for_all(int fd)
{
    bool hard = kernel::closes_hard(fd);
    {
        Receiving in(*this, fd);
        if (in.has_unread()) {
            kernel::close_hard(fd);
            hard = true;
        }
        hard = hard || kernel::bytes_queued(fd) > 0;
        in.publish_taken(true);
        std::atomic_ref(lines_in().receiver_asks.gone).exchange(1, std::memory_order_seq_cst);
        in.half().rung = 0;
        in.half().woken = 0;
        ring_writer();
    }
    {
        Sending out(*this, fd);
        out.attend();
        if (hard) {
            out.sender().abort(); // the kernel's close says so
            out.act({});
        } else {
            out.close();
        }
    }
    ntbc::Message m;
    m.type = ntbc::Type::close;
    m.id = id_;
    Attachment::send_message(control_, m, nullptr);
}

// ---- calls

int Connection::shutdown(int fd, int how)
{
    if (!is_matched() || how < SHUT_RD || how > SHUT_RDWR)
        return static_cast<int>(call(SYS_shutdown, fd, how));
    if (how != SHUT_WR)
        store(record_->in.is_shut, std::uint32_t{1});
    bool is_reset = false;
    if (how != SHUT_RD) {
        Sending out(*this, fd);
        out.attend();
        const bool was_broken = load(record_->broken) != 0;
        out.close();
        is_reset = !was_broken && load(record_->broken) != 0;
    }
    const long result = call(SYS_shutdown, fd, how);
    // What comes now is to be reset, as the kernel does of its own.
    if (load(record_->in.is_shut) != 0 && record_->out.sender.now().state() == Sender::State::Ended)
        Receiving(*this, fd).ask();
    // Of one that was reset by this very call the kernel says that it is none.
    return is_reset && result == -ENOTCONN ? 0 : static_cast<int>(result);
}

ssize_t Connection::readable_bytes(int fd)
{
    if (!is_matched())
        return static_cast<ssize_t>(kernel::bytes_queued(fd));
    return static_cast<ssize_t>(Receiving(*this, fd).readable());
}

void Connection::reported(int error)
{
    if (is_matched())
        note(-error);
}

void Connection::owe(ssize_t result)
{
    if (!is_matched() || !is_end(result))
        return;
    owed_ = static_cast<int>(-result);
    store(record_->reset_reported, std::uint32_t{0});
}

/// @return an error that the caller says, or 0
ssize_t Connection::say_owed()
{
    return owed_.load(std::memory_order_relaxed) == 0 ? 0 : -owed_.exchange(0);
}

// A sender of urgent data has gone back to TCP: what its ring still holds precedes them.
bool Connection::is_at_mark(int fd)
{
    if (is_matched() && Receiving(*this, fd).has_unread())
        return false;
    return kernel::is_at_mark(fd);
}

bool Connection::leave(int fd, bool in, bool out)
{
    if (!is_matched()) {
        attachment_->lock_.take();
        if (stage_.load() == Stage::Pending)
            attachment_->withdraw(*this);
        attachment_->lock_.give();
        if (!is_matched())
            return true;
    }
    // A program that is looked for in many folders would wait in each of them.
    if (load(record_->broken) != 0)
        return true;
    const bool hears = !in || Receiving(*this, fd).ask();
    return (!out || Sending(*this, fd).go_back()) && hears;
}

void Connection::abort(int fd)
{
    if (!is_matched())
        return;
    Sending out(*this, fd);
    out.act(out.sender().abort());
}

// ---- ends that are not orderly

/// Whether a call of the kernel's has said that the connection is over.
bool Connection::is_end(ssize_t result)
{
    return result == -ECONNRESET || result == -ETIMEDOUT || result == -ECONNABORTED ||
           result == -EHOSTUNREACH || result == -ENETUNREACH;
}

/// The kernel's result, which the program gets, says that the connection is over.
void Connection::note(ssize_t result)
{
    if (!is_end(result))
        return;
    store(record_->kernel_reset, std::uint32_t{1});
    store(record_->reset_reported, std::uint32_t{1});
}

/// @param once_read  the peer has closed it, and may have answered before: what the kernel has
///                   comes first, as it survives the peer's RST
void Connection::break_off(int fd, bool once_read)
{
    if (std::atomic_ref(record_->broken).exchange(1) != 0)
        return;
    attachment_->count(&Attachment::Figures::resets);
    if (once_read && kernel::bytes_queued(fd) > 0)
        store(record_->owes_reset, std::uint32_t{1});
    else if (load(record_->kernel_reset) == 0)
        kernel::disconnect(fd);
    Attachment::turn();
}

/// The kernel's error, or ECONNRESET; end of file once that was reported.
ssize_t Connection::say_reset(int fd)
{
    break_off(fd);
    owed_ = 0;
    if (std::atomic_ref(record_->owes_reset).exchange(0) != 0 && load(record_->kernel_reset) == 0)
        kernel::disconnect(fd);
    char byte;
    const iovec place = {&byte, 1};
    const ssize_t said = kernel::receive(fd, &place, 1, 0);
    if (std::atomic_ref(record_->reset_reported).exchange(1) != 0)
        return 0;
    return said < 0 && said != -EAGAIN && said != -ENOTCONN ? said : -ECONNRESET;
}

void Connection::report_fin(std::uint32_t generation)
{
    ntbc::Message m;
    m.type = ntbc::Type::fin_seen;
    m.id = id_;
    m.other = generation;
    Attachment::send_message(control_, m, nullptr);
}

// ---- bells

// No flag of the socket matters, nor does a full one: then the bell is readable already.
void Connection::ring_bell(char byte)
{
    call(SYS_sendto, bell_, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL, nullptr, 0);
    attachment_->count(&Attachment::Figures::rings);
}

/// For words that the other end finds when it looks, which a daemon in its place has to pass on.
/// @param ring  ring_reader() or ring_writer()
void Connection::ring_carrier(void (Connection::*ring)())
{
    if (!is_carried_)
        return;
    full_fence();
    (this->*ring)();
}

/// Whatever the peer sleeps for.
void Connection::ring_all()
{
    ring_bell(rung_in);
    ring_bell(rung_out);
    end_doze(lines_out().sender_asks.woken_for_data);
    end_doze(lines_in().receiver_asks.woken_for_room);
}

/// Several threads may, without a lock between them: none takes back what another has changed.
void Connection::end_doze(std::uint32_t &word)
{
    std::atomic_ref(word).fetch_add(1);
    call(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
    attachment_->count(&Attachment::Figures::rings);
}

} // namespace ntb::socket

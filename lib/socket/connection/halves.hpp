// SPDX-License-Identifier: BSD-3-Clause
// One call's step in a direction, under its lock. What changes is recorded before it is stored.
#ifndef NTB_SOCKET_CONNECTION_HALVES_HPP
#define NTB_SOCKET_CONNECTION_HALVES_HPP

#include "connection/connection.hpp"

#include <algorithm>
#include <limits>

namespace ntb::socket
{

/// The bytes of a call, taken from the front.
class Parts
{
public:
    Parts(const iovec *parts, int n) : parts_(parts), n_(n) {}

    std::size_t total() const
    {
        constexpr std::size_t most = std::numeric_limits<ssize_t>::max();
        return n_ == 1 ? std::min(parts_->iov_len, most) : sum();
    }
    /// The next bytes, at most @p most of them in at most @p room places. @return places
    int next(iovec *places, int room, std::size_t most) const;
    void skip(std::size_t bytes)
    {
        take(bytes, [](void *, std::size_t) {});
    }
    void copy_into(const Ring &ring, std::uint64_t position, std::size_t bytes)
    {
        take(bytes, [&](const void *from, std::size_t n) {
            ring.copy_in(position, from, n);
            position += n;
        });
    }
    void copy_from(const Ring &ring, std::uint64_t position, std::size_t bytes)
    {
        take(bytes, [&](void *to, std::size_t n) {
            ring.copy_out(to, position, n);
            position += n;
        });
    }

private:
    std::size_t sum() const;
    /// Calls step(place, n) for the next bytes, and is behind them then.
    template <typename Step>
    void take(std::size_t bytes, Step step)
    {
        while (n_ > 0 && (bytes > 0 || parts_->iov_len == 0)) {
            const std::size_t left = parts_->iov_len - offset_;
            const std::size_t some = std::min(bytes, left);
            if (some > 0) // a place of no bytes may be NULL
                step(static_cast<std::uint8_t *>(parts_->iov_base) + offset_, some);
            bytes -= some;
            offset_ += some;
            if (some < left)
                return;
            offset_ = 0;
            parts_++;
            n_--;
        }
    }

    const iovec *parts_;
    int n_;
    std::size_t offset_ = 0; // in the first of them
};

class Connection::Sending
{
public:
    Sending(Connection &connection, int fd)
        : connection_(connection), half_(connection.record_->out), fd_(fd),
          taken_(half_.lock.take()), sender_(half_.sender.now())
    {
        if (taken_ != Lock::Taken::Clean) [[unlikely]]
            recover();
    }
    ~Sending() { half_.lock.give(); }
    Sending(const Sending &) = delete;
    Sending &operator=(const Sending &) = delete;

    Sender &sender() { return sender_; }
    SendHalf &half() { return half_; }
    /// What the peer and the daemons have said since the last call.
    void attend()
    {
        if (!connection_.is_attended()) [[unlikely]]
            attend_to_news();
    }
    void act(const Sender::Actions &actions, bool once_read = false);
    /// @return bytes, or a negative errno
    ssize_t write(Parts &parts, std::size_t total, int flags);
    ssize_t write_urgent(const iovec *parts, int n, int flags);
    std::uint32_t look();
    bool go_back();
    void close();

private:
    void recover();
    void repair();
    void attend_to_news();
    void commit() { half_.sender.put(sender_); }
    Sender::Route route(std::size_t wanted);
    std::uint64_t room(std::size_t wanted);
    Sender::Route route_to_ring(std::size_t wanted);
    ssize_t write_on(Parts &parts, std::size_t total, int flags);
    void put(Parts &parts, std::size_t bytes, const SenderWords::Place &place);
    bool has_unseen() const;
    ssize_t write_kernel(const Parts &parts, int flags);
    bool has_room();
    bool is_over();
    bool is_stalled();

    Connection &connection_;
    SendHalf &half_;
    int fd_;
    const Lock::Taken taken_; // in this order: what the lock guards is copied behind
    Sender sender_;
};

class Connection::Receiving
{
public:
    Receiving(Connection &connection, int fd)
        : connection_(connection), half_(connection.record_->in), fd_(fd),
          taken_(half_.lock.take()), receiver_(half_.receiver.now())
    {
        if (taken_ != Lock::Taken::Clean) [[unlikely]]
            recover();
    }
    ~Receiving() { half_.lock.give(); }
    Receiving(const Receiving &) = delete;
    Receiving &operator=(const Receiving &) = delete;

    Receiver &receiver() { return receiver_; }
    ReceiveHalf &half() { return half_; }
    void attend()
    {
        // And then the words: they may have come before.
        const bool lost = connection_.is_lost();
        if (!lost &&
            (has_no_news() || receiver_.look_at_head(load_words(connection_.lines_in().sender))))
            return; // what was looked at is looked at again
        attend_to_news(lost);
    }
    ssize_t read(Parts &parts, std::size_t total, int flags);
    ssize_t splice(int pipe, std::size_t size);
    std::uint64_t readable();
    std::uint32_t look();
    /// Asks for TCP. @retval true it is TCP
    bool ask();
    /// Stores how much was taken, if the sender may not know enough of it.
    void publish_taken(bool all)
    {
        // A quarter of what the sender has in use as long as that is all it knows.
        if (all || receiver_.taken() - half_.shown >= receiver_.place_of(half_.shown).used / 4)
            publish();
    }
    bool has_unread();

private:
    void recover();
    void repair();
    void attend_to_news(bool lost);
    void commit()
    {
        half_.receiver.put(receiver_);
        ntbc::store(half_.above, std::uint32_t{receiver_.is_above()});
        ntbc::store(half_.drained, receiver_.is_drained() ? receiver_.taken() : 0);
    }
    /// Bytes and marks are all that comes once the switch was seen. What else the line says is
    /// looked at with them.
    bool has_no_news() const
    {
        const SenderLine &line = connection_.lines_in().sender;
        return receiver_.state() == Receiver::State::Seen &&
               ntbc::load(line.mark) == static_cast<std::uint32_t>(receiver_.peer().mark) &&
               ntbc::load(line.head) == receiver_.peer().head;
    }
    void grant();
    void publish();
    bool at_mark() const;
    ssize_t read_on(Parts &parts, std::size_t total, int flags, std::size_t done);
    std::size_t take(Parts &parts, std::size_t most, int flags);
    void count_taken(std::size_t bytes);
    ssize_t splice_ring(int pipe, std::size_t most);
    ssize_t splice_kernel(int pipe, std::size_t most);
    Receiver::Reading find_next(const Receiver::Kernel &kernel);
    /// What matters of the kernel in the state: where the ring has bytes, nothing.
    Receiver::Kernel ask_kernel()
    {
        return receiver_.has_bytes() ? Receiver::Kernel{} : ask_kernel_behind();
    }
    Receiver::Kernel ask_kernel_behind();
    std::uint32_t ask_events(std::uint32_t events);
    void copy_out(Parts &parts, std::uint64_t offset, std::size_t bytes) const;
    void copy_place(Parts &parts, std::uint64_t offset, std::size_t bytes) const;
    ssize_t read_kernel(const Parts &parts, std::size_t most, int flags, bool all);
    bool goes_on_by_kernel() const;
    std::size_t peek_behind(const Parts &parts, std::size_t most, int flags);

    Connection &connection_;
    ReceiveHalf &half_;
    int fd_;
    const Lock::Taken taken_; // as in Sending
    Receiver receiver_;
};

} // namespace ntb::socket

#endif

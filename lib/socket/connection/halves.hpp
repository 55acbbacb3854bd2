// SPDX-License-Identifier: BSD-3-Clause
// One call's step in a direction, under its lock. What changes is recorded before it is stored.
#ifndef NTB_SOCKET_CONNECTION_HALVES_HPP
#define NTB_SOCKET_CONNECTION_HALVES_HPP

#include "connection/connection.hpp"

namespace ntb::socket
{

/// The bytes of a call, taken from the front.
class Parts
{
public:
    Parts(const iovec *parts, int n) : parts_(parts), n_(n) {}

    std::size_t total() const;
    /// The next bytes, at most @p most of them in at most @p room places. @return places
    int next(iovec *places, int room, std::size_t most) const;
    void skip(std::size_t bytes);
    void copy_into(const Ring &ring, std::uint64_t position, std::size_t bytes);
    void copy_from(const Ring &ring, std::uint64_t position, std::size_t bytes);

private:
    const iovec *parts_;
    int n_;
    std::size_t offset_ = 0; // in the first of them
};

class Connection::Sending
{
public:
    Sending(Connection &connection, int fd);
    ~Sending() { half_.lock.give(); }
    Sending(const Sending &) = delete;
    Sending &operator=(const Sending &) = delete;

    Sender &sender() { return sender_; }
    SendHalf &half() { return half_; }
    /// What the peer and the daemons have said since the last call.
    void attend();
    void act(const Sender::Actions &actions, bool once_read = false);
    /// @return bytes, or a negative errno
    ssize_t write(Parts &parts, std::size_t total, int flags);
    ssize_t write_urgent(const iovec *parts, int n, int flags);
    std::uint32_t look();
    bool go_back();
    void close();

private:
    void repair();
    void commit() { half_.sender.put(sender_); }
    Sender::Route route(std::size_t wanted);
    bool has_unseen() const;
    ssize_t write_kernel(const Parts &parts, int flags);
    bool has_room();
    bool is_over();
    bool is_stalled();
    bool has_lost_bytes() const;

    Connection &connection_;
    SendHalf &half_;
    int fd_;
    Sender sender_;
};

class Connection::Receiving
{
public:
    Receiving(Connection &connection, int fd);
    ~Receiving() { half_.lock.give(); }
    Receiving(const Receiving &) = delete;
    Receiving &operator=(const Receiving &) = delete;

    Receiver &receiver() { return receiver_; }
    ReceiveHalf &half() { return half_; }
    void attend();
    ssize_t read(Parts &parts, std::size_t total, int flags);
    std::uint64_t readable();
    std::uint32_t look();
    /// Asks for TCP. @retval true it is TCP
    bool ask();
    /// Stores how much was taken, if the sender may not know enough of it.
    void publish_taken(bool all);
    bool has_unread();

private:
    void repair();
    void commit();
    bool is_above() const;
    bool has_no_news() const;
    void grant();
    bool reads_ring() const;
    bool at_mark() const;
    Receiver::Kernel ask_kernel();
    void copy_out(Parts &parts, std::uint64_t offset, std::size_t bytes);
    ssize_t read_kernel(const Parts &parts, std::size_t most, int flags, bool all);
    bool goes_on_by_kernel() const;
    std::size_t peek_behind(const Parts &parts, std::size_t most, int flags);

    Connection &connection_;
    ReceiveHalf &half_;
    int fd_;
    Receiver receiver_;
};

} // namespace ntb::socket

#endif

// SPDX-License-Identifier: BSD-3-Clause
#include "client/client.hpp"

#include <algorithm>
#include <cerrno>

using namespace ntbc;

namespace
{
constexpr int parts_max = 1024;

size_t total_of(const iovec *parts, int n)
{
    size_t total = 0;
    for (int i = 0; i < n; i++)
        if (__builtin_add_overflow(total, parts[i].iov_len, &total) || total > SSIZE_MAX)
            return SSIZE_MAX;
    return total;
}

ssize_t not_open(const ntbclient_conn *conn)
{
    const int error = conn->end->error.load();
    return error != 0 ? error : -ENOTCONN;
}

// Looks if fewer than so many are known.
// @return bytes that can be received; 0: none will be any more, or none is wanted; or a negative
// errno
ssize_t find_readable(ntbclient_conn *conn, size_t wanted)
{
    if (!conn_is_open(conn))
        return not_open(conn);
    if (conn->end->discards.load(std::memory_order_relaxed))
        return conn->end->error.load();
    if (wanted == 0)
        return 0;
    Receiver &receiver = conn->end->receiver;
    if (receiver.readable() < wanted)
        receiver.look();
    while (receiver.readable() == 0) {
        if (conn_goes_on(conn))
            return -EAGAIN;
        const int ended = receive_end(conn);
        if (ended == 1)
            return 0;
        if (ended != 0)
            return ended;
        if (receiver.readable() == 0)
            return -EAGAIN;
    }
    return static_cast<ssize_t>(receiver.readable());
}

ssize_t no_room(ntbclient_conn *conn)
{
    Sender &sender = conn->end->sender;
    if (sender.is_broken()) {
        conn_fail(conn, -ECONNRESET);
        return conn->end->error.load();
    }
    if (sender.has_unpublished() && sender.publish())
        conn_ring(conn, NTBCLIENT_READABLE);
    return -EAGAIN;
}
} // namespace

ssize_t ntbclient_sendv(struct ntbclient_conn *conn, const struct iovec *parts, int n,
                        uint32_t flags)
{
    if (conn == nullptr || (parts == nullptr && n != 0) || n < 0 || n > parts_max ||
        (flags & ~NTBCLIENT_MORE) != 0)
        return -EINVAL;
    if (!conn_is_open(conn))
        return not_open(conn);
    if (const int ended = send_end(conn); ended != 0)
        return ended;
    const size_t total = n == 1 ? parts->iov_len : total_of(parts, n);
    if (total == 0)
        return 0;
    Sender &sender = conn->end->sender;
    size_t left = std::min(total, sender.room(total));
    if (left == 0)
        return no_room(conn);
    const auto sent = static_cast<ssize_t>(left);
    if (n == 1)
        sender.put(parts->iov_base, left);
    for (int i = 0; n != 1 && left > 0; i++) {
        const size_t bytes = std::min(left, parts[i].iov_len);
        sender.put(parts[i].iov_base, bytes);
        left -= bytes;
    }
    if ((flags & NTBCLIENT_MORE) == 0 && sender.publish())
        conn_ring(conn, NTBCLIENT_READABLE);
    return sent;
}

ssize_t ntbclient_send(struct ntbclient_conn *conn, const void *data, size_t bytes, uint32_t flags)
{
    if (data == nullptr && bytes != 0)
        return -EINVAL;
    const iovec part = {const_cast<void *>(data), bytes};
    return ntbclient_sendv(conn, &part, 1, flags);
}

ssize_t ntbclient_place(struct ntbclient_conn *conn, size_t bytes, void **data)
{
    if (conn == nullptr || data == nullptr)
        return -EINVAL;
    if (!conn_is_open(conn))
        return not_open(conn);
    if (const int ended = send_end(conn); ended != 0)
        return ended;
    Sender &sender = conn->end->sender;
    if (sender.room(bytes) == 0)
        return no_room(conn);
    const auto place = sender.place();
    *data = place.data();
    return static_cast<ssize_t>(place.size());
}

// The end is looked for behind what is shown: it may come at any time, and then the bytes are lost
// either way.
ssize_t ntbclient_placed(struct ntbclient_conn *conn, size_t bytes, uint32_t flags)
{
    if (conn == nullptr || (flags & ~NTBCLIENT_MORE) != 0)
        return -EINVAL;
    if (!conn_is_open(conn))
        return not_open(conn);
    Sender &sender = conn->end->sender;
    if (sender.has_ended() || sender.is_broken()) [[unlikely]] {
        const int ended = send_end(conn);
        return ended != 0 ? ended : no_room(conn);
    }
    if (bytes > sender.place().size())
        return -EINVAL;
    sender.placed(bytes);
    if ((flags & NTBCLIENT_MORE) == 0 && sender.publish()) [[unlikely]]
        conn_ring(conn, NTBCLIENT_READABLE);
    if (!conn_sends_on(conn)) [[unlikely]] {
        if (const int ended = send_end(conn); ended != 0)
            return ended;
    }
    return static_cast<ssize_t>(bytes);
}

ssize_t ntbclient_recvv(struct ntbclient_conn *conn, const struct iovec *parts, int n,
                        uint32_t flags)
{
    if (conn == nullptr || (parts == nullptr && n != 0) || n < 0 || n > parts_max ||
        (flags & ~NTBCLIENT_PEEK) != 0)
        return -EINVAL;
    const size_t total = total_of(parts, n);
    const ssize_t readable = find_readable(conn, total);
    if (readable <= 0)
        return readable;
    Receiver &receiver = conn->end->receiver;
    const size_t bytes = std::min(total, static_cast<size_t>(readable));
    size_t done = 0;
    for (int i = 0; done < bytes; i++) {
        const size_t some = std::min(bytes - done, parts[i].iov_len);
        if (parts[i].iov_base != nullptr)
            receiver.copy(parts[i].iov_base, done, some);
        done += some;
    }
    if ((flags & NTBCLIENT_PEEK) == 0 && receiver.take(bytes))
        conn_ring(conn, NTBCLIENT_WRITABLE);
    return static_cast<ssize_t>(bytes);
}

// Apart, so that its place for the part costs nothing where it is not wanted.
[[gnu::noinline]] static ssize_t receive(ntbclient_conn *conn, void *data, size_t bytes,
                                         uint32_t flags)
{
    const iovec part = {data, bytes};
    return ntbclient_recvv(conn, &part, 1, flags);
}

ssize_t ntbclient_recv(struct ntbclient_conn *conn, void *data, size_t bytes, uint32_t flags)
{
    // Who has viewed them has nothing to copy, and nothing to look for.
    if (data == nullptr && flags == 0 && bytes != 0 && conn != nullptr && conn_is_open(conn) &&
        !conn->end->discards.load(std::memory_order_relaxed) &&
        bytes <= conn->end->receiver.readable()) {
        if (conn->end->receiver.take(bytes)) [[unlikely]]
            conn_ring(conn, NTBCLIENT_WRITABLE);
        return static_cast<ssize_t>(bytes);
    }
    return receive(conn, data, bytes, flags);
}

ssize_t ntbclient_view(struct ntbclient_conn *conn, const void **data)
{
    if (conn == nullptr || data == nullptr)
        return -EINVAL;
    // What has come is there whatever else has become of the connection.
    if (!conn_is_open(conn) || conn->end->discards.load(std::memory_order_relaxed) ||
        (conn->end->receiver.readable() == 0 && conn->end->receiver.look() == 0)) {
        const ssize_t readable = find_readable(conn, 1);
        if (readable <= 0)
            return readable;
    }
    const auto view = conn->end->receiver.view();
    *data = view.data();
    return static_cast<ssize_t>(view.size());
}

size_t ntbclient_readable(struct ntbclient_conn *conn)
{
    if (conn == nullptr || !conn_is_open(conn) || conn->end->discards.load())
        return 0;
    return conn->end->receiver.look();
}

size_t ntbclient_writable(struct ntbclient_conn *conn)
{
    if (conn == nullptr || !conn_is_open(conn) || send_end(conn) != 0)
        return 0;
    Sender &sender = conn->end->sender;
    const size_t room = sender.room(conn->ring_bytes);
    if (room == 0 && sender.is_broken())
        conn_fail(conn, -ECONNRESET); // who waits for room may send nothing that would find it
    return room;
}

const uint64_t *ntbclient_monitor(struct ntbclient_conn *conn, uint64_t *value)
{
    if (conn == nullptr || value == nullptr || !conn_is_open(conn))
        return nullptr;
    const Receiver &receiver = conn->end->receiver;
    *value = receiver.cursor_of_nothing();
    return &receiver.cursor();
}

// One's own line until the peer looks, so that it costs a store.
int ntbclient_word_set(struct ntbclient_conn *conn, uint64_t word)
{
    if (conn == nullptr)
        return -EINVAL;
    if (!conn_is_open(conn))
        return -ENOTCONN;
    store(conn->page->word[conn->index].value, word);
    return 0;
}

uint64_t *ntbclient_word(struct ntbclient_conn *conn)
{
    if (conn == nullptr || !conn_is_open(conn))
        return nullptr;
    return &conn->page->word[conn->index].value;
}

uint64_t ntbclient_peer_word(struct ntbclient_conn *conn)
{
    if (conn == nullptr || !conn_is_open(conn))
        return 0;
    return load(conn->page->word[1 - conn->index].value);
}

// SPDX-License-Identifier: BSD-3-Clause
#include "port/connection.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include <ntbclient.h>

#include "port/client.hpp"

namespace ntb::verbs
{
using namespace lane;

namespace
{

// At once, where a message begins: until the first line has come and was checked, the processor
// does not get as far as to ask for the next
// (doc/decisions/059-lines-that-are-asked-for-at-once.md).
constexpr std::size_t lines_fetched = 16;
// Of a burst of short ones, so that the peer begins with the first of them.
constexpr std::size_t shown_at_once = 1024;

// Of a ring, in front of its end: for less, nothing is divided.
constexpr std::size_t least_part = 2048;

} // namespace

// The longest message is a quarter of the ring: for so much the connection can be waited for, and
// so much is let through to a reader that takes nothing before it is complete.
std::unique_ptr<Connection> Connection::create(ntbclient_conn *conn)
{
    ntbclient_info info = {};
    info.size = sizeof(info);
    ntbclient_info_get(conn, &info);
    if (info.ring_bytes < least_ring) {
        errno = EMSGSIZE;
        return nullptr;
    }
    std::unique_ptr<Connection> port(new (std::nothrow) Connection);
    if (!port)
        return nullptr;
    const std::size_t quarter = info.ring_bytes / 4;
    port->memory_.reset(new (std::nothrow) std::byte[2 * quarter]);
    if (!port->memory_)
        return nullptr;
    port->in_ = port->memory_.get() + quarter;
    port->inlet_.ring = info.ring_bytes;
    port->count_ = ntbclient_monitor(conn, &port->inlet_.seen);
    port->watch_count();
    port->watch_.next = port->in_; // until it is known
    port->longest_ = static_cast<std::uint32_t>(quarter - sizeof(Prefix));
    port->out_ = port->memory_.get();
    port->stores_.set_lap(info.ring_bytes);
    port->own_word_ = ntbclient_word(conn);
    port->conn_ = conn;
    return port;
}

Connection::~Connection()
{
    // Bytes that are not taken make a reset of the end.
    if (!ended_)
        give_back();
    ntbclient_close(conn_);
}

std::byte *Connection::reserve(std::uint32_t bytes)
{
    if (!make_room(bytes))
        return nullptr;
    const std::size_t wanted = footprint(bytes);
    std::byte *const message = out_ + lane_.kept;
    // What fills the last line up, if all that is reserved is committed.
    if (wanted <= together)
        std::memset(message + wanted - line, 0, line);
    padded_ = wanted <= together ? sizeof(Prefix) + bytes : 0;
    return message + sizeof(Prefix);
}

// A message that does not lie in one piece is copied once more by who receives it: what is long
// ends where the ring does.
std::uint32_t Connection::suitable(std::uint32_t bytes)
{
    const std::size_t wanted = footprint(bytes);
    if (!make_room(bytes) || wanted <= lane_.run || find_place(wanted) || lane_.run < least_part)
        return bytes;
    return static_cast<std::uint32_t>(lane_.run & ~(line - 1)) - std::uint32_t{sizeof(Prefix)};
}

bool Connection::reaches()
{
    return !ended_ && ntbclient_send(conn_, nullptr, 0, 0) >= 0;
}

bool Connection::make_room(std::uint32_t bytes)
{
    const std::size_t wanted = footprint(bytes);
    if (bytes > longest_)
        return false;
    if (lane_.kept + wanted > shown_at_once)
        publish();
    if (room_ < lane_.kept + wanted) {
        publish(); // what is kept takes room as well
        room_ = ntbclient_writable(conn_);
    }
    if (room_ >= wanted)
        return true;
    if (wanted > Stores::least)
        stores_.is_full();
    return false;
}

// What does not go any more is lost with the connection, as receive() will find. A short message is
// put together here, as one copy costs less than several places, and goes with those that follow it
// at once: each time that something is shown, the line of the count goes to the other CPU and back.
void Connection::commit(std::uint32_t bytes, const iovec *parts, int n)
{
    std::byte *const message = out_ + lane_.kept;
    std::size_t head = sizeof(Prefix) + bytes;
    std::uint32_t total = bytes;
    for (int i = 0; i < n; ++i)
        total += static_cast<std::uint32_t>(parts[i].iov_len);
    const Prefix prefix = {total, 0};
    std::memcpy(message, &prefix, sizeof(prefix));
    const std::size_t whole = footprint(total);
    if (whole <= together) {
        for (int i = 0; i < n; ++i) {
            std::memcpy(message + head, parts[i].iov_base, parts[i].iov_len);
            head += parts[i].iov_len;
        }
        for (; head != padded_ && head < whole; ++head)
            message[head] = std::byte{0};
        lane_.kept += whole;
        return;
    }
    if (put_long(head, parts, n, whole))
        return;
    static constexpr std::byte zeroes[line] = {};
    const std::size_t first = turn_to_count();
    iovec places[max_parts + 2] = {{out_ + first, lane_.kept + head - first}};
    std::copy_n(parts, n, places + 1);
    places[n + 1] = {const_cast<std::byte *>(zeroes), whole - sizeof(prefix) - total};
    const std::size_t sent = std::exchange(lane_.kept, 0) + whole - first;
    note_sent(ntbclient_sendv(conn_, places, n + 2, 0), sent);
}

// Where it will lie in the ring, if that is one piece. @param head  bytes in front of the parts
bool Connection::put_long(std::size_t head, const iovec *parts, int n, std::size_t whole)
{
    const std::size_t sent = lane_.kept + whole;
    if (sent > lane_.run && !find_place(sent))
        return false;
    std::byte *to = lane_.at;
    std::memset(to + sent - line, 0, line);
    std::uint32_t bytes;
    std::memcpy(&bytes, out_, sizeof(bytes));
    put_prefix(to, prefix_of(bytes, counted));
    lane_.is_watched = false;
    std::memcpy(to + sizeof(Prefix), out_ + sizeof(Prefix), lane_.kept + head - sizeof(Prefix));
    to += lane_.kept + head;
    for (int i = 0; i < n; ++i) {
        stores_.copy(to, static_cast<const std::byte *>(parts[i].iov_base), parts[i].iov_len);
        to += parts[i].iov_len;
    }
    stores_.settle();
    lane_.kept = 0;
    note_sent(ntbclient_placed(conn_, sent, 0), sent);
    return true;
}

void Connection::publish()
{
    if (lane_.kept == 0)
        return;
    const std::size_t first = turn_to_count();
    const std::size_t bytes = std::exchange(lane_.kept, 0) - first;
    note_sent(ntbclient_send(conn_, out_ + first, bytes, 0), bytes);
}

// Of what is kept: a peer that looks where it will begin finds there that it has to look at the
// count. No other call stores to such a word.
// @return bytes of it that are put already, and shown with the others
inline std::size_t Connection::turn_to_count()
{
    return lane_.is_watched ? put_counted() : 0;
}

[[gnu::noinline]] std::size_t Connection::put_counted()
{
    lane_.is_watched = false;
    if (lane_.run < sizeof(Prefix) && !find_place(sizeof(Prefix)))
        return 0; // the connection has ended
    std::uint32_t bytes;
    std::memcpy(&bytes, out_, sizeof(bytes));
    put_prefix(lane_.at, prefix_of(bytes, counted));
    note_sent(ntbclient_placed(conn_, sizeof(Prefix), NTBCLIENT_MORE), sizeof(Prefix));
    return sizeof(Prefix);
}

// All bytes, if the connection goes on.
inline void Connection::note_sent(ssize_t sent, std::size_t bytes)
{
    const bool good = sent == static_cast<ssize_t>(bytes);
    room_ = good ? room_ - std::min(room_, bytes) : 0;
    if (lane_.run != 0)
        lane_.at += bytes;
    lane_.run = good ? lane_.run - std::min(lane_.run, bytes) : 0;
}

// One that goes alone is put together where it will lie in the ring. Not those of a burst: it takes
// longer than to copy them, and the peer, which asks for the lines behind what it has seen, takes
// lines away before they are written.
std::byte *Connection::place_elsewhere(std::uint32_t bytes)
{
    const std::size_t wanted = footprint(bytes);
    if (lane_.kept != 0 || wanted > together || !find_place(wanted))
        return nullptr;
    lane_.fill_up(wanted);
    return lane_.at + sizeof(Prefix);
}

bool Connection::find_place(std::size_t wanted)
{
    void *place = nullptr;
    const ssize_t found = ntbclient_place(conn_, wanted, &place);
    lane_.run = found > 0 ? static_cast<std::size_t>(found) : 0;
    lane_.at = static_cast<std::byte *>(place);
    lane_.zeroed = nullptr; // the last time round, or another ring
    lane_.may_mark =
        ntbclient_peer_word(conn_) != 0; // the peer shares the memory, if it has left one
    return wanted <= lane_.run;
}

void Connection::show_otherwise(std::uint32_t bytes)
{
    lane_.is_watched = false;
    put_prefix(lane_.at, prefix_of(bytes, counted));
    shown(footprint(bytes));
}

void Connection::shown(std::size_t whole)
{
    note_sent(ntbclient_placed(conn_, whole, 0), whole);
    // Not the line where the next one begins, at which the peer looks. If it is as long as this
    // one, its other lines are there, and the word behind it is zero.
    for (std::size_t at = line; at < whole && at + line <= lane_.run; at += line)
        own(lane_.at + at);
    lane_.zero_ahead(whole);
}

// With the first line of a message that is collected. @retval false the peer is not what it should
// be
bool Connection::begin(const std::byte *at)
{
    Prefix prefix;
    std::memcpy(&prefix, at, sizeof(prefix));
    if (prefix.bytes > longest_) {
        ntbclient_reset(conn_);
        ended_ = true;
        return false;
    }
    bytes_ = prefix.bytes;
    wanted_ = footprint(bytes_);
    return true;
}

// What has come of the message goes to the copy, so that the ring is empty for who arms.
// @retval false it has not come whole
bool Connection::collect()
{
    while (collected_ < wanted_) {
        const ssize_t got = ntbclient_recv(conn_, in_ + collected_, wanted_ - collected_, 0);
        if (got <= 0) {
            ended_ = got != -EAGAIN;
            ntbclient_monitor(conn_, &inlet_.seen);
            watch_count();
            return false;
        }
        collected_ += static_cast<std::size_t>(got);
        note_taken(static_cast<std::size_t>(got));
        if (wanted_ == line && collected_ == line && !begin(in_))
            return false;
    }
    return true;
}

bool Connection::receive(Incoming &message)
{
    return (inlet_.reach != 0 && (find_marked(message) || find_counted(message))) || look(message);
}

// Behind one that had a mark, one that has a mark. Of what a peer says no more is believed than
// that it is within reach.
inline bool Connection::find_marked(Incoming &message)
{
    if (watch_.word == count_)
        return false;
    const std::uint64_t prefix = load_prefix(watch_.next); // once
    const auto bytes = static_cast<std::uint32_t>(prefix);
    const std::size_t wanted = footprint(bytes);
    if (prefix >> 32 != marked || bytes > longest_ || wanted > inlet_.reach)
        return false;
    for (std::size_t i = line; i < std::min(wanted, lines_fetched * line); i += line)
        __builtin_prefetch(watch_.next + i);
    const std::byte *const data = watch_.next + sizeof(Prefix);
    pass(wanted, true);
    message = {data, bytes, false, inlet_.is_due()};
    return true;
}

// One that has come whole and lies in one piece. The count may be anything: marks, and whatever
// else is no number of bytes that the ring has, are for look() to judge.
inline bool Connection::find_counted(Incoming &message)
{
    const std::uint64_t come = // acquire: pairs with the exchange that shows the message
        std::atomic_ref(*const_cast<std::uint64_t *>(count_)).load(std::memory_order_acquire) -
        inlet_.seen;
    if (come - 1 >= inlet_.ring)
        return false;
    const std::byte *const at = watch_.next;
    const std::size_t there = std::min<std::size_t>(come, inlet_.reach);
    const std::size_t fetched = std::min(there, lines_fetched * line);
    for (std::size_t i = line; i < fetched; i += line)
        __builtin_prefetch(at + i);
    const std::uint64_t prefix = load_prefix(watch_.next); // once
    const auto bytes = static_cast<std::uint32_t>(prefix);
    const std::size_t wanted = footprint(bytes);
    if (bytes > longest_ || wanted > there)
        return false;
    // A lone message is often answered, and the peer, which has read the ring's last turn, still
    // has the lines that the answer will lie in. Before it has sent this one it may ask for them
    // (Engine::find_changed()), so not earlier.
    if (come == wanted && lane_.kept == 0 && !lane_.is_watched)
        expect_lone();
    message = {at + sizeof(Prefix), bytes, come != wanted};
    pass(wanted, prefix >> 32 == marked);
    return true;
}

// To the next message.
inline void Connection::pass(std::size_t wanted, bool was_marked)
{
    inlet_.pass(wanted);
    watch_.next += wanted;
    if (inlet_.reach == 0) {
        watch_.next -= inlet_.ring;
        inlet_.reach = inlet_.ring;
        was_marked = false; // no engine marks the last one
    }
    if (!was_marked)
        return watch_count();
    watch_.word = reinterpret_cast<const std::uint64_t *>(watch_.next);
    watch_.seen = 0;
}

inline void Connection::watch_count()
{
    watch_.word = count_;
    watch_.seen = inlet_.seen;
}

// By calls: that the peer is gone, where in the ring its next bytes lie, and what is collected.
[[gnu::noinline]] bool Connection::look(Incoming &message)
{
    if (ended_ || !give_back())
        return false;
    if (collected_ == 0) {
        const void *data = nullptr;
        const ssize_t shown = ntbclient_view(conn_, &data);
        if (shown <= 0)
            ended_ = shown != -EAGAIN;
        if (inlet_.held != 0)
            return false; // whatever is shown was received by its mark
        ntbclient_monitor(conn_, &inlet_.seen);
        if (shown <= 0) {
            if (watch_.word == count_)
                watch_count();
            return false;
        }
        watch_count();
        watch_.next = static_cast<const std::byte *>(data);
        inlet_.reach = inlet_.ring - (inlet_.seen & (inlet_.ring - 1));
        if (find_counted(message))
            return true;
        inlet_.reach = 0;
        wanted_ = line;
    }
    if (!collect())
        return false;
    message = {in_ + sizeof(Prefix), bytes_};
    return true;
}

void Connection::release()
{
    if (collected_ != 0) {
        collected_ = 0;
        ntbclient_monitor(conn_, &inlet_.seen);
        watch_count();
        return;
    }
    if (inlet_.is_due())
        give_back();
}

// Takes from the ring what was released, which is nothing to who arms. The count of the last one
// that was found by its mark may still be on the way: that one is taken later.
// @retval false the peer has taken back what it had shown, or never counted it
[[gnu::noinline]] bool Connection::give_back()
{
    if (inlet_.held == 0)
        return true;
    const std::size_t there = std::min(inlet_.held, ntbclient_readable(conn_));
    const bool good =
        there == 0 || ntbclient_recv(conn_, nullptr, there, 0) == static_cast<ssize_t>(there);
    inlet_.held -= there;
    note_taken(there);
    if (good && inlet_.held <= together)
        return true;
    ntbclient_reset(conn_);
    ended_ = true;
    return false;
}

// The ring shows the peer what was taken once it is a quarter.
void Connection::note_taken(std::size_t bytes)
{
    inlet_.unreturned += bytes;
    if (inlet_.unreturned >= inlet_.ring / 4)
        inlet_.unreturned = 0;
}

void Connection::close()
{
    ntbclient_reset(conn_);
    ended_ = closed_ = true;
    lane_.run = 0; // nothing is placed any more
}

// What a part of has come is collected, and no reason to look.
bool Connection::arm(bool for_room)
{
    return !ended_ && give_back() &&
           ntbclient_arm(conn_, NTBCLIENT_READABLE | (for_room ? NTBCLIENT_WRITABLE : 0)) == 0;
}

void Connection::disarm()
{
    ntbclient_disarm(conn_, NTBCLIENT_READABLE | NTBCLIENT_WRITABLE);
}

int Connection::bell() const
{
    return ntbclient_conn_fd(conn_);
}

std::uint64_t Connection::left() const
{
    return ntbclient_peer_word(conn_);
}

// ---- memory

std::uint64_t Connection::grant(const std::shared_ptr<Segment> &segment, bool writable)
{
    if (ended_ || orders_.size() >= max_orders)
        return 0;
    orders_.push_back({segment, writable, 0});
    return later;
}

Port::Opening Connection::open(std::uint64_t number)
{
    if (ended_ || orders_.size() >= max_orders)
        return {};
    orders_.push_back({nullptr, false, number});
    return {nullptr, false, true};
}

bool Connection::take(Order &order)
{
    if (orders_.empty())
        return false;
    order = std::move(orders_.front());
    orders_.erase(orders_.begin());
    return true;
}

} // namespace ntb::verbs

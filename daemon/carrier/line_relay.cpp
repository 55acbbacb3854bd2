// SPDX-License-Identifier: BSD-3-Clause
#include "carrier/line_relay.hpp"

#include "kernel/system.hpp"
#include "record/record.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <linux/futex.h>
#include <utility>

namespace ntbd
{

using ntb::socket::ReceiverAsks;
using ntb::socket::ReceiverWords;
using ntb::socket::Ring;
using ntbc::load;
using ntbc::store;
using SocketMark = ntb::socket::Mark;

LineRelay::LineRelay(RelayOrder &&order, Traffic &traffic, Mailbox &mailbox)
    : Relay(std::move(order), traffic), mailbox_(mailbox), client_(order.client_end)
{
}

ntb::socket::Page &LineRelay::page() const
{
    return reinterpret_cast<ntb::socket::Page &>(memory_->page());
}

Ring LineRelay::ring_of(unsigned direction, const SenderWords::Place &place) const
{
    return ntb::socket::ring_of(&page(), ring_bytes(), direction, place.used);
}

// Each byte has the same place in both memories.
void LineRelay::join(std::unique_ptr<Pipe> pipe, bool is_open, uint32_t peer_ring_bytes)
{
    Relay::join(std::move(pipe), is_open, peer_ring_bytes);
    if (peer_ring_bytes != ring_bytes())
        fail();
}

// The server says the rest: it knows the client by more than its memory.
void LineRelay::end(int status)
{
    if (ended_)
        return;
    ended_ = true;
    status_ = status;
}

bool LineRelay::has_ended() const
{
    return ended_ || (peer_closed_ && (sent_.bits & LineWords::closed) != 0);
}

// One of the two does not keep to the protocol. The other daemon hears it by the end of the pipe.
void LineRelay::fail()
{
    pipe_->reset();
    end(-EPROTO);
}

/// Revoked, or it has given its daemon up.
bool LineRelay::is_client_lost() const
{
    return load(page().gone) != 0;
}

bool LineRelay::turn()
{
    if (ended_ || (pipe_ == nullptr && !is_client_lost()))
        return false;
    const bool is_lost = is_client_lost();
    const bool sent = pipe_ != nullptr && move_out();
    if (is_lost && !ended_) {
        end(-ECONNRESET);
        return true;
    }
    const bool got = !ended_ && move_in();
    return sent || got;
}

// ---- from the client

// The words that are stored last are read first, so what is read later is not older. At a grant
// seen is cleared first, so the generation is read before it (T5).
bool LineRelay::read_as_receiver(LineWords *now)
{
    const Lines &lines = lines_in();
    const bool is_gone = load(lines.receiver_asks.gone) != 0;
    const ReceiverWords asks = ntb::socket::load_words(lines.receiver_asks);
    now->taken = load(lines.receiver.taken);
    now->granted = asks.generation;
    now->bits |= (asks.seen ? LineWords::seen : 0) | (asks.ask ? LineWords::ask : 0) |
                 (is_gone ? LineWords::gone : 0);
    if (asks.generation == in_.granted)
        return true;
    // Another ring: wanted, and the one before it is over.
    if (asks.generation != in_.granted + 1 || in_.want != asks.generation ||
        (in_.granted != 0 && in_.words.mark == SocketMark::None) ||
        load(lines.receiver_asks.ring_bytes) != ring_bytes())
        return false;
    in_.granted = asks.generation;
    in_.words = {};
    in_.words.generation = in_.granted;
    return true;
}

/// What the client has stored, but for the head: the line's is in @p line.
/// @return false: it does not keep to the protocol
bool LineRelay::read_client(LineWords *now, SenderWords *line)
{
    *now = {};
    now->bits = closing_ ? LineWords::closed : 0;
    const Lines &lines = lines_out();
    now->want = load(lines.sender_asks.want);
    if (now->want != out_.want && now->want != out_.granted + 1)
        return false;
    *line = out_.words;
    if (const SenderWords words = ntb::socket::load_words(lines.sender);
        out_.granted != 0 && words.generation == out_.granted) {
        if (!ntb::socket::follows(words, out_.words, taken_out(), ring_bytes()))
            return false;
        *line = words;
        now->generation = words.generation;
        now->narrow = words.narrow;
        now->start = words.start;
        now->wide = words.wide;
        now->bits |= words.started ? LineWords::started : 0;
    }
    if (!read_as_receiver(now))
        return false;
    if (in_.fin_reported == in_.granted)
        in_.fin_seen = in_.granted;
    now->fin_seen = in_.fin_seen;
    return true;
}

bool LineRelay::move_out()
{
    bool worked = false;
    for (size_t left = slice; out_ready_ && left > 0;) {
        LineWords now;
        SenderWords line;
        if (!read_client(&now, &line)) {
            fail();
            return true;
        }
        const uint64_t from = out_.words.started ? out_.words.head : line.start;
        const uint64_t unsent = line.started ? line.head - from : 0;
        // One place at a time: narrow or wide.
        const uint64_t here =
            line.wide > from ? std::min<uint64_t>(unsent, line.wide - from) : unsent;
        const size_t bytes = std::min<uint64_t>({here, longest_message, left});
        if (unsent == 0)
            now.mark = static_cast<uint32_t>(line.mark);
        else
            now.want = out_.want; // behind the bytes
        if (bytes == 0 && now == sent_)
            return worked;
        const SenderWords::Place place = line.place_of(from, ring_bytes());
        const ssize_t sent = pipe_->send(now, ring_of(client_, place), place.position, bytes);
        if (sent <= 0) {
            out_ready_ = sent == -EAGAIN;
            return worked;
        }
        const size_t moved = static_cast<size_t>(sent) - sizeof(now);
        sent_ = now;
        out_.want = now.want;
        if (now.generation != 0) {
            out_.words = line;
            out_.words.head = from + moved;
            if (now.mark == 0) {
                out_.words.mark = SocketMark::None;
                out_.words.mark_offset = 0;
            }
        }
        traffic_.messages_out++;
        traffic_.bytes_out += moved;
        left -= std::min(left, static_cast<size_t>(sent) + message_cost);
        worked = true;
        // The other end is closed: nothing is left to do.
        if (has_ended())
            return true;
    }
    return worked;
}

// ---- to the client

bool LineRelay::move_in()
{
    bool worked = false;
    for (size_t left = slice; in_ready_ && left > 0 && !has_ended();) {
        LineWords words;
        const Pipe::Got got = pipe_->receive(&words);
        switch (got.kind) {
        case Pipe::Got::Kind::nothing:
            in_ready_ = false;
            if (lost_)
                end(-ECONNRESET);
            return worked;
        case Pipe::Got::Kind::ended:
            end(-ECONNRESET);
            return true;
        case Pipe::Got::Kind::words:
            if (take(words, got.bytes))
                break;
            [[fallthrough]];
        default:
            fail();
            return true;
        }
        traffic_.messages_in++;
        traffic_.bytes_in += got.bytes;
        left -= std::min(left, got.bytes + sizeof(words) + message_cost);
        worked = true;
    }
    return worked;
}

/// @return false: no daemon sends this
bool LineRelay::take(const LineWords &m, size_t bytes)
{
    const bool was_closed = peer_closed_;
    peer_closed_ = (m.bits & LineWords::closed) != 0;
    if ((m.bits & ~LineWords::all) != 0 || m.reserved != 0 || (was_closed && !peer_closed_))
        return false;
    if (!take_grant(m))
        return false;
    take_asks(m);
    return take_bytes(m, bytes) && take_fin(m.fin_seen);
}

// A ring is granted as its receiver did it at the other host: the line is cleared first (T3).
bool LineRelay::take_grant(const LineWords &m)
{
    if (m.granted == out_.granted)
        return true;
    if (m.granted != out_.granted + 1 || m.granted != out_.want ||
        (out_.granted != 0 && out_.words.mark == SocketMark::None))
        return false;
    out_.granted = m.granted;
    out_.words = {};
    out_.words.generation = m.granted;
    out_.taken = m.taken;
    out_.seen = out_.ask = false;
    ntb::socket::store_grant(lines_out(), {m.granted, false, false, m.taken}, ring_bytes());
    return true;
}

void LineRelay::take_asks(const LineWords &m)
{
    Lines &lines = lines_out();
    // What was not sent cannot have been taken: a client that believes it overwrites bytes here.
    const bool is_open = out_.words.started && out_.words.mark == SocketMark::None;
    const uint64_t taken = is_open ? std::min(m.taken, out_.words.head) : m.taken;
    const bool is_gone = (m.bits & LineWords::gone) != 0 && !out_.gone;
    const bool is_news = taken != out_.taken;
    if (is_news) {
        out_.taken = taken;
        std::atomic_ref(lines.receiver.taken).exchange(taken, std::memory_order_seq_cst);
    }
    const bool seen = (m.bits & LineWords::seen) != 0, ask = (m.bits & LineWords::ask) != 0;
    const bool asks = ask && !out_.ask;
    if (seen != out_.seen || ask != out_.ask) {
        out_.seen = seen;
        out_.ask = ask;
        ntb::socket::store_words(lines.receiver_asks, {out_.granted, seen, ask, taken});
    }
    if (is_gone) {
        out_.gone = true;
        std::atomic_ref(lines.receiver_asks.gone).exchange(1, std::memory_order_seq_cst);
    }
    if (asks || is_gone) {
        ring(bell_readable);
        ring(bell_writable);
        end_doze(lines_in().sender_asks.woken_for_data);
        end_doze(lines.receiver_asks.woken_for_room);
    } else if (is_news) {
        wake_writer();
    }
}

bool LineRelay::take_bytes(const LineWords &m, size_t bytes)
{
    Lines &lines = lines_in();
    if (m.want != in_.want) {
        if (m.want != in_.granted + 1)
            return false;
        in_.want = m.want;
    }
    // A word of the ring before has crossed the grant of this one.
    const bool is_old = m.generation == 0 || m.generation + 1 == in_.granted;
    if (is_old || m.generation != in_.granted) {
        store(lines.sender_asks.want, in_.want);
        return is_old && bytes == 0;
    }
    SenderWords now;
    now.generation = m.generation;
    now.started = (m.bits & LineWords::started) != 0;
    now.mark = static_cast<SocketMark>(m.mark);
    now.start = m.start;
    now.narrow = m.narrow;
    now.wide = m.wide;
    now.head = now.started ? (in_.words.started ? in_.words.head : m.start) + bytes : 0;
    now.mark_offset = m.mark != 0 ? now.head : 0;
    if (m.mark > static_cast<uint32_t>(SocketMark::Reset) || (bytes != 0 && !now.started) ||
        bytes > ring_bytes() || !ntb::socket::follows(now, in_.words, taken_in(), ring_bytes()))
        return false;
    put(now, bytes);
    // Not again what is stored: the client may have cleared the line for the next ring (T4).
    if (now != std::exchange(in_.words, now)) {
        ntb::socket::store_words(lines.sender, now);
        wake_reader();
    }
    store(lines.sender_asks.want, in_.want);
    return true;
}

/// What the client has taken, and says so: no more than it was given.
uint64_t LineRelay::taken_in() const
{
    return in_.words.started ? std::min(load(lines_in().receiver.taken), in_.words.head) : 0;
}

/// What the peer has taken of what it was sent.
uint64_t LineRelay::taken_out() const
{
    return out_.words.started ? std::min(out_.taken, out_.words.head) : 0;
}

// Narrow first, then wide.
void LineRelay::put(const SenderWords &to, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        const uint64_t at = to.head - bytes + done;
        const SenderWords::Place place = to.place_of(at, ring_bytes());
        const size_t some =
            to.wide > at ? std::min<uint64_t>(bytes - done, to.wide - at) : bytes - done;
        pipe_->copy(done, ring_of(1 - client_, place), place.position, some);
        done += some;
    }
}

bool LineRelay::take_fin(uint32_t generation)
{
    if (generation == out_.fin_heard)
        return true;
    if (generation != out_.granted)
        return false;
    out_.fin_heard = generation;
    LinkNews news = {LinkNews::Kind::relay_fin};
    news.id = id_;
    news.generation = generation;
    mailbox_.put(news);
    return true;
}

// The daemon alone stores into this ring.
void LineRelay::rest()
{
    const uint64_t taken = std::max(taken_in(), in_.words.start);
    if (!in_.words.started || in_.words.head > in_.words.end_of_room(taken, ring_bytes()))
        return;
    ntb::socket::empty_free(ntb::socket::ring_of(&page(), ring_bytes(), 1 - client_), in_.words,
                            taken);
}

// ---- bells, as of the other end of a connection

void LineRelay::end_doze(uint32_t &word)
{
    std::atomic_ref(word).fetch_add(1);
    ntb::socket::kernel::call(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void LineRelay::serve(const uint32_t &sleeps, const uint32_t &dozes, uint32_t &woken,
                      Served &served, char event)
{
    const uint32_t sleep = load(sleeps, std::memory_order_seq_cst);
    if (sleep != 0 && sleep != served.rung) {
        served.rung = sleep;
        ring(event);
    }
    const uint32_t doze = load(dozes, std::memory_order_seq_cst);
    if (doze != 0 && doze != served.woken) {
        served.woken = doze;
        end_doze(woken);
    }
}

/// Behind a full fence, as what it is woken for was stored with one.
void LineRelay::wake_reader()
{
    const ReceiverAsks &asks = lines_in().receiver_asks;
    serve(asks.wants_data, asks.dozes_for_data, lines_in().sender_asks.woken_for_data, in_.reader,
          bell_readable);
}

void LineRelay::wake_writer()
{
    const ntb::socket::SenderAsks &asks = lines_out().sender_asks;
    serve(asks.wants_room, asks.dozes_for_room, lines_out().receiver_asks.woken_for_room,
          out_.writer, bell_writable);
}

bool LineRelay::sleep()
{
    if (has_ended() || (is_client_lost() && !ended_))
        return false;
    if (pipe_ == nullptr)
        return true;
    if (in_ready_)
        return false;
    if (!out_ready_)
        return true;
    sleeps_ += sleeps_ == UINT32_MAX ? 2 : 1;
    std::atomic_ref(lines_out().receiver_asks.wants_data)
        .exchange(sleeps_, std::memory_order_seq_cst);
    std::atomic_ref(lines_in().sender_asks.wants_room).exchange(sleeps_, std::memory_order_seq_cst);
    LineWords now;
    SenderWords line;
    const bool is_right = read_client(&now, &line);
    now.mark = static_cast<uint32_t>(line.mark);
    if (is_right && now == sent_ && line.head == out_.words.head && !is_client_lost())
        return true;
    wake();
    return false;
}

void LineRelay::wake()
{
    store(lines_out().receiver_asks.wants_data, uint32_t{0});
    store(lines_in().sender_asks.wants_room, uint32_t{0});
}

} // namespace ntbd

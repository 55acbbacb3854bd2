// SPDX-License-Identifier: BSD-3-Clause
#include "carrier/relay.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/socket.h>

namespace ntbd
{

using ntbc::Page;

namespace
{
// Bytes that one connection moves before others have their turn.
constexpr size_t slice = 65536;
constexpr size_t longest_message = 16384;
// What a message costs beside its bytes, in bytes of a slice.
constexpr size_t message_cost = 256;

constexpr char bell_readable = 1; // NTBCLIENT_READABLE
constexpr char bell_writable = 2; // NTBCLIENT_WRITABLE

// A quarter: a ring that is less full takes the next message, and a client that sleeps for room is
// woken by as much.
constexpr size_t chunk_of(uint32_t ring_bytes)
{
    return std::min<size_t>(ring_bytes / 4, longest_message);
}

constexpr uint32_t bits_of(uint64_t marks)
{
    return static_cast<uint32_t>(marks >> 60);
}
static_assert(bits_of(ntbc::mark_end) == Mark::end && bits_of(ntbc::mark_closed) == Mark::closed &&
              bits_of(ntbc::mark_reset) == Mark::reset);
constexpr uint64_t marks_of(uint32_t bits)
{
    return uint64_t{bits} << 60;
}
} // namespace

Relay::Relay(RelayOrder &&order, Traffic &traffic)
    : id_(order.id), token_(order.token), memory_(std::move(order.memory)),
      bell_(std::move(order.bell)), traffic_(traffic), chunk_in_(chunk_of(memory_->ring_bytes())),
      expecting_(order.kind == RelayOrder::Kind::expect)
{
    Page &page = memory_->page();
    auto *const first = reinterpret_cast<uint8_t *>(&page) + ntbc::page_bytes;
    const uint32_t bytes = memory_->ring_bytes();
    const unsigned client = order.client_end;
    const unsigned own = 1 - client;
    receiver_.open(&page.direction[client], first + size_t{client} * bytes, bytes);
    sender_.open(&page.direction[own], first + size_t{own} * bytes, bytes);
}

// In a time that does not depend on where the tokens differ.
bool Relay::expects(const Ticket &ticket) const
{
    uint8_t difference = 0;
    for (size_t i = 0; i < token_.size(); i++)
        difference = static_cast<uint8_t>(difference | (token_[i] ^ ticket.token[i]));
    return expecting_ && difference == 0;
}

void Relay::join(std::unique_ptr<Pipe> pipe, bool is_open, uint32_t peer_ring_bytes)
{
    pipe_ = std::move(pipe);
    expecting_ = false;
    chunk_out_ = chunk_of(peer_ring_bytes);
    out_ready_ = is_open;
    in_ready_ = true;
}

void Relay::ready(uint32_t events)
{
    if ((events & Pipe::readable) != 0)
        in_ready_ = true;
    if ((events & Pipe::writable) != 0 && !lost_)
        out_ready_ = true;
}

void Relay::abandon()
{
    if (pipe_ == nullptr)
        end(-ECONNRESET);
}

void Relay::lose()
{
    lost_ = true;
    out_ready_ = false;
    in_ready_ = true;
    abandon();
}

void Relay::end(int status)
{
    if (ended_)
        return;
    ended_ = true;
    if ((peer_marks_ & Mark::closed) != 0)
        return;
    status_ = status;
    sender_.publish_end(ntbc::marks);
    ring(bell_readable);
    ring(bell_writable);
}

void Relay::rung()
{
    char bytes[64];
    for (;;) {
        const ssize_t got = recv(bell_.get(), bytes, sizeof(bytes), MSG_DONTWAIT);
        if (got > 0 || (got < 0 && errno == EINTR))
            continue;
        if (got == 0 || errno != EAGAIN)
            bell_closed_ = true;
        return;
    }
}

void Relay::ring(char event)
{
    send(bell_.get(), &event, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    traffic_.rings++;
}

bool Relay::has_ended() const
{
    return ended_ || (sent_marks_ & peer_marks_ & Mark::closed) != 0;
}

bool Relay::is_client_gone() const
{
    return bell_closed_ || ntbc::load(memory_->page().gone) != 0;
}

bool Relay::turn()
{
    if (pipe_ == nullptr || ended_)
        return false;
    const bool sent = move_out();
    const bool got = move_in();
    return sent || got;
}

// ---- from the client

bool Relay::move_out()
{
    bool worked = false;
    for (size_t left = slice; out_ready_ && left > 0 && (sent_marks_ & Mark::closed) == 0;) {
        const size_t bytes = (peer_marks_ & Mark::closed) == 0 ? receiver_.look() : 0;
        if (bytes == 0)
            return send_end() || worked;
        const ssize_t sent =
            pipe_->send(receiver_, std::min({bytes, chunk_out_, left, pipe_->longest()}));
        if (sent <= 0) {
            out_ready_ = sent == -EAGAIN;
            break;
        }
        if (receiver_.take(static_cast<size_t>(sent)))
            ring(bell_writable);
        traffic_.messages_out++;
        traffic_.bytes_out += static_cast<size_t>(sent);
        left -= std::min(left, static_cast<size_t>(sent) + message_cost);
        worked = true;
    }
    return worked;
}

// What is to be said of the end of the client's bytes, of which all seen ones were sent.
uint32_t Relay::end_to_send()
{
    if ((peer_marks_ & Mark::closed) != 0)
        return Mark::end | Mark::closed;
    if (receiver_.is_broken() || sender_.is_broken())
        return Mark::all;
    if ((receiver_.end() & ntbc::mark_closed) == 0 && is_client_gone()) {
        // The last bytes were published before it went.
        if (receiver_.look() > 0)
            return 0;
        if ((receiver_.end() & ntbc::mark_closed) == 0)
            return Mark::all;
    }
    return bits_of(receiver_.end());
}

bool Relay::send_end()
{
    const uint32_t bits = end_to_send();
    if ((bits & ~sent_marks_) == 0)
        return false;
    if (const int sent = pipe_->send(Mark{bits, sender_.sent()}); sent <= 0) {
        out_ready_ = sent == -EAGAIN;
        return false;
    }
    sent_marks_ |= bits;
    return true;
}

// ---- to the client

// A client that has closed, is gone or has broken a cursor takes nothing more. That does not wait
// until the peer's daemon is told: it may never be, with the link lost or both directions full.
bool Relay::drops() const
{
    return (sent_marks_ & Mark::closed) != 0 || (receiver_.end() & ntbc::mark_closed) != 0 ||
           receiver_.is_broken() || sender_.is_broken() || is_client_gone();
}

bool Relay::move_in()
{
    bool worked = false;
    receiver_.look(); // for an end: move_out() looks only where something can be sent
    for (size_t left = slice; in_ready_ && left > 0 && !has_ended();) {
        const bool is_dropped = drops();
        if (!is_dropped && !has_room())
            break;
        const Pipe::Got got = pipe_->receive(is_dropped ? nullptr : &sender_, chunk_in_);
        bool is_right = true;
        switch (got.kind) {
        case Pipe::Got::Kind::nothing:
            in_ready_ = false;
            if (lost_)
                end(-ECONNRESET);
            return worked;
        case Pipe::Got::Kind::bytes:
            is_right = (peer_marks_ & Mark::end) == 0;
            if (is_right && !is_dropped && sender_.publish())
                ring(bell_readable);
            traffic_.messages_in++;
            traffic_.bytes_in += got.bytes;
            break;
        case Pipe::Got::Kind::mark:
            is_right = take_mark(got.mark);
            break;
        case Pipe::Got::Kind::ended:
            end(-ECONNRESET);
            return true;
        case Pipe::Got::Kind::wrong:
            is_right = false;
            break;
        }
        if (!is_right) {
            pipe_->reset();
            end(-ECONNRESET);
            return true;
        }
        left -= std::min(left, got.bytes + message_cost);
        worked = true;
    }
    return worked;
}

// What the other client has not received when it closes is lost, so this one is told of a reset, as
// if the bytes had lain in a ring of both.
bool Relay::take_mark(const Mark &mark)
{
    if (mark.bits == 0 || (mark.bits & ~Mark::all) != 0 || (mark.bits & Mark::end) == 0 ||
        ((mark.bits & Mark::reset) != 0 && (mark.bits & Mark::closed) == 0))
        return false;
    peer_marks_ |= mark.bits;
    uint64_t said = marks_of(mark.bits);
    if ((mark.bits & Mark::closed) != 0) {
        const size_t unsent = receiver_.look();
        if (((receiver_.taken() + unsent - mark.count) & ntbc::count_mask) != 0)
            said |= ntbc::mark_reset;
    }
    if (drops())
        return true;
    sender_.publish_end(said);
    // Whoever sleeps, for room or for bytes, learns of the end.
    ring(bell_readable);
    ring(bell_writable);
    return true;
}

// ---- sleep

bool Relay::sleep()
{
    if (has_ended())
        return false;
    if (pipe_ == nullptr)
        return true;
    if (in_ready_ && (drops() || has_room()))
        return false;
    if (out_ready_) {
        if ((end_to_send() & ~sent_marks_) != 0)
            return false;
        // Behind an end there are no bytes, and what else a client says of its end, it rings.
        if (sent_marks_ == 0) {
            if (receiver_.give_back())
                ring(bell_writable);
            if (!receiver_.arm())
                return false;
        }
    }
    if (in_ready_ && !sender_.arm()) {
        receiver_.disarm();
        return false;
    }
    return true;
}

void Relay::wake()
{
    receiver_.disarm();
    sender_.disarm();
}

} // namespace ntbd

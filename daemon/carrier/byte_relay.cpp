// SPDX-License-Identifier: BSD-3-Clause
#include "carrier/byte_relay.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace ntbd
{

using ntbc::Page;

namespace
{
// A quarter: a ring that is less full takes the next message, and a client that sleeps for room is
// woken by as much.
constexpr size_t chunk_of(uint32_t ring_bytes, size_t longest)
{
    return std::min<size_t>(ring_bytes / 4, longest);
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

ByteRelay::ByteRelay(RelayOrder &&order, Traffic &traffic)
    : Relay(std::move(order), traffic), chunk_in_(chunk_of(ring_bytes(), longest_message))
{
    Page &page = memory_->page();
    auto *const first = reinterpret_cast<uint8_t *>(&page) + ntbc::page_bytes;
    const uint32_t bytes = memory_->ring_bytes();
    const unsigned client = order.client_end;
    const unsigned own = 1 - client;
    receiver_.open(&page.direction[client], first + size_t{client} * bytes, bytes);
    sender_.open(&page.direction[own], first + size_t{own} * bytes, bytes);
}

void ByteRelay::join(std::unique_ptr<Pipe> pipe, bool is_open, uint32_t peer_ring_bytes)
{
    Relay::join(std::move(pipe), is_open, peer_ring_bytes);
    chunk_out_ = chunk_of(peer_ring_bytes, longest_message);
}

void ByteRelay::end(int status)
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

bool ByteRelay::has_ended() const
{
    return ended_ || (sent_marks_ & peer_marks_ & Mark::closed) != 0;
}

bool ByteRelay::is_client_gone() const
{
    return bell_closed_ || ntbc::load(memory_->page().gone) != 0;
}

bool ByteRelay::turn()
{
    if (pipe_ == nullptr || ended_)
        return false;
    const bool sent = move_out();
    const bool got = move_in();
    return sent || got;
}

// ---- from the client

bool ByteRelay::move_out()
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
uint32_t ByteRelay::end_to_send()
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

bool ByteRelay::send_end()
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
// until the peer's daemon knows: it may never do, with the link lost or both directions full.
bool ByteRelay::drops() const
{
    return (sent_marks_ & Mark::closed) != 0 || (receiver_.end() & ntbc::mark_closed) != 0 ||
           receiver_.is_broken() || sender_.is_broken() || is_client_gone();
}

bool ByteRelay::move_in()
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
        case Pipe::Got::Kind::words:
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

// What the other client has not received when it closes is lost, so this one gets a reset, as
// if the bytes had lain in a ring of both.
bool ByteRelay::take_mark(const Mark &mark)
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

bool ByteRelay::sleep()
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
            if (receiver_.publish_taken())
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

void ByteRelay::wake()
{
    receiver_.disarm();
    sender_.disarm();
}

} // namespace ntbd

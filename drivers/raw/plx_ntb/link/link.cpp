// SPDX-License-Identifier: BSD-3-Clause
#include "link/link.hpp"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>

#include <rte_hash_crc.h>

namespace plx::pmd
{

namespace
{

constexpr char not_answered[] = "the peer has not answered yet";

uint32_t hello_crc(const wire::Hello &hello)
{
    return ~rte_hash_crc(&hello, offsetof(wire::Hello, crc), ~0u);
}

bool power_of_two_in(uint64_t value, uint64_t low, uint64_t high)
{
    return value >= low && value <= high && std::has_single_bit(value);
}

/// Everything that the sizes imply, in 64 bits: each factor is bounded before.
const char *judge_sizes(const wire::Hello &h, uint64_t window_bytes)
{
    if (!power_of_two_in(h.block_bytes, wire::block_bytes_min, wire::block_bytes_max))
        return "the peer's block is not a power of two from 1 MiB to 1 GiB";
    if (h.block_bytes > window_bytes)
        return "the peer's block is larger than our window shows";
    if (h.qp_count < 1 || h.qp_count > wire::qp_count_max)
        return "the peer's queue pairs are not 1 to 64";
    if (h.channel_qps > h.qp_count)
        return "the peer has more queue pairs for channels than queue pairs";
    if (!power_of_two_in(h.ring_lines, wire::ring_lines_min, wire::ring_lines_max) ||
        !power_of_two_in(h.buffer_ring_lines, wire::buffer_ring_lines_min,
                         wire::buffer_ring_lines_max))
        return "the peer's rings are not powers of two in their range";
    if (h.buf_bytes < wire::buf_bytes_min || h.buf_bytes > wire::buf_bytes_max ||
        h.buf_bytes % wire::line_bytes != 0)
        return "the peer's buffers are not 64 to 65536 bytes in whole lines";
    const uint64_t begin = uint64_t{h.buf_begin} * wire::line_bytes;
    const uint64_t end = uint64_t{h.buf_end} * wire::line_bytes;
    if (begin < wire::queue_area_end(h.qp_count, h.ring_lines, h.buffer_ring_lines) ||
        end < begin || end > h.block_bytes)
        return "the peer's rings and buffers do not fit its block";
    if (h.max_message > wire::message_max || h.heartbeat_us == 0)
        return "the peer's message size or heartbeat is out of range";
    return nullptr;
}

uint32_t bare_queues(const wire::Hello &hello)
{
    return hello.qp_count - hello.channel_qps;
}

/// Queue pairs are connected by number, and those for channels come last: unless both sides have
/// equally many bare queues, messages of a channel would arrive at a bare queue or the reverse.
bool pairs_fit(const wire::Hello &own, const wire::Hello &peer)
{
    return peer.minor < wire::minor_with_channel_qps ||
           (own.channel_qps == 0 && peer.channel_qps == 0) || bare_queues(own) == bare_queues(peer);
}

/// A refusal of another epoch was meant for whoever had our place on the cable before.
bool refuses(const wire::Hello &hello, uint32_t epoch)
{
    return hello.state == wire::HelloState::refused &&
           (hello.ack == epoch || hello.minor < wire::minor_with_refused_epoch);
}

} // namespace

void seal(wire::Hello &hello)
{
    hello.magic = wire::magic;
    hello.major = wire::version_major;
    hello.minor = wire::version_minor;
    hello.bytes = sizeof(hello);
    hello.crc = hello_crc(hello);
}

uint64_t pair_seed(uint64_t seed, uint32_t epoch)
{
    return wire::mix(seed ^ wire::mix(epoch));
}

Verdict judge(const wire::Hello &hello, uint64_t window_bytes, const char **why)
{
    if (hello.magic != wire::magic || hello.crc != hello_crc(hello))
        return Verdict::torn;
    *why = nullptr;
    if (hello.major != wire::version_major || hello.bytes != sizeof(hello))
        *why = "the peer speaks another version of the protocol";
    else if (hello.state != wire::HelloState::up && hello.state != wire::HelloState::closing &&
             hello.state != wire::HelloState::refused)
        *why = "the peer is in no known state";
    else if (hello.epoch == 0)
        *why = "the peer has no epoch";
    else
        *why = judge_sizes(hello, window_bytes);
    return *why == nullptr ? Verdict::acceptable : Verdict::refused;
}

int Link::start(const wire::Hello &own, uint64_t window_bytes, const LinkTimes &times)
{
    own_ = own;
    own_.seq = 0;
    max_message_ = own.max_message;
    times_ = times;
    window_bytes_ = window_bytes;
    handle({LinkInput::start, not_answered});
    return begin_error_;
}

void Link::tick()
{
    const char *why = "";
    const bool open = device_.reachable(&why);

    if (is_connected(state_)) {
        // After reachable(): what a peer that is gone has stored is in the own block by now.
        hello_ = device_.read_hello();
        const Found found = classify(hello_);
        if (!open && !has_ended(found))
            handle({LinkInput::unreachable, why});
        else if (protocol_error_)
            handle({LinkInput::protocol_error, "the peer broke the protocol"});
        else
            check_connection(found);
    }
    if (is_closing(state_))
        check_receivers();
    leave();
    if (is_waiting(state_)) {
        if (open)
            try_connect();
        else
            handle({LinkInput::unreachable, why});
    }
}

bool Link::linger()
{
    if (!is_connected(state_) || protocol_error_)
        return false;
    const char *why = "";
    if (!device_.reachable(&why)) {
        // Stores may have been lost, so that stop() must not say any more that all have arrived.
        handle({LinkInput::unreachable, why});
        return false;
    }
    closing_ = device_.end_sending();
    if (closing_ && device_.unconfirmed() == 0)
        return false;
    // A peer that has closed, too, or has begun anew confirms nothing more.
    hello_ = device_.read_hello();
    const LinkInput input = classify(hello_).input;
    const LinkStep *step = link_step(state_, input);
    if (step != nullptr && !is_connected(step->next))
        return false;
    const uint64_t now = device_.now_us();
    beat(now);
    const std::optional<Found> found = check_heartbeat(now);
    return !found.has_value() || found->input != LinkInput::heartbeat_ended;
}

bool Link::stop()
{
    handle({LinkInput::stop, "this side stops"});
    if (state_ == LinkState::losing) {
        report_loss(); // by this stop, or owed from before
        handle({LinkInput::stop, why_});
    }
    if (state_ == LinkState::stopping)
        leave();
    return state_ == LinkState::stopped;
}

// ---- events

void Link::try_connect()
{
    LinkInput input;
    do { // again after an adoption: the peer may have answered already
        hello_ = device_.read_hello();
        const Found found = classify(hello_);
        input = found.input;
        handle(found);
    } while (input == LinkInput::hello_new && is_waiting(state_));
    if (input == LinkInput::hello_answered && is_waiting(state_))
        handle({LinkInput::unopened, "the queues could not be opened for this peer"});
}

/// Whether the peer's last word was that it stops. It said so behind all that it had sent, and only
/// if it had reached this side ever since they connected: nothing of it is missing.
bool Link::has_ended(const Found &found) const
{
    return found.input == LinkInput::hello_closing && hello_.epoch == adopted_;
}

void Link::check_connection(const Found &found)
{
    handle(found);
    if (!is_connected(state_))
        return;
    const uint64_t now = device_.now_us();
    if (sent_at_us_ == 0 || now - sent_at_us_ >= times_.beat_us)
        beat(now);
    if (const std::optional<Found> beats = check_heartbeat(now); beats.has_value())
        handle(*beats);
}

/// The peer has stopped and stores nothing more: its access is revoked once the receivers have
/// taken what lies in the own block, or have taken nothing for too long.
void Link::check_receivers()
{
    // The side that stopped waits for as long as it hears this one.
    send_heartbeat();
    if (protocol_error_)
        return handle({LinkInput::protocol_error, "the peer broke the protocol"});
    uint64_t received = 0;
    if (device_.all_received(&received))
        return handle({LinkInput::all_received, why_});
    const uint64_t now = device_.now_us();
    if (received != received_) {
        received_ = received;
        received_at_us_ = now;
    }
    if (now - received_at_us_ >= times_.receive_us)
        handle({LinkInput::receive_overdue,
                "the peer has stopped, and messages of it were not received in time"});
}

/// Ends a connection or a start, as far as possible now.
void Link::leave()
{
    if (!is_fencing(state_))
        return;
    if (report_loss() && device_.fence())
        handle({LinkInput::fenced, "this side has stopped"});
}

/// Reports a loss after the unconfirmed messages were counted, but without waiting for long for an
/// application that stays inside a burst. @return whether no burst is inside
bool Link::report_loss()
{
    const bool quiet = device_.quiesce();
    if (quiet)
        handle({LinkInput::quiet, why_});
    else if (device_.now_us() - lost_at_us_ >= times_.report_us)
        handle({LinkInput::overdue, why_});
    return quiet;
}

Link::Found Link::classify(const wire::Hello &hello)
{
    const char *why = not_answered;
    switch (judge(hello, window_bytes_, &why)) {
    case Verdict::torn:
        return {LinkInput::hello_torn, why};
    case Verdict::refused:
        return {LinkInput::hello_impossible, why};
    case Verdict::acceptable:
        break;
    }
    if (hello.state == wire::HelloState::closing)
        return {LinkInput::hello_closing, "the peer has stopped"};
    if (!pairs_fit(own_, hello))
        return {LinkInput::hello_impossible, describe_pairs(hello)};
    if (refuses(hello, own_.epoch))
        return {LinkInput::hello_refusing,
                "the peer refuses this side: it speaks another version or cannot take its sizes"};
    if (hello.epoch != adopted_)
        return {LinkInput::hello_new, "the peer has started again"};
    if (hello.ack != own_.epoch)
        return {LinkInput::hello_unanswered,
                "the peer is there and has not yet answered this start"};
    return {LinkInput::hello_answered, ""};
}

/// @return text that stays until the next call
const char *Link::describe_pairs(const wire::Hello &hello)
{
    char text[sizeof(pairs_text_)];
    std::snprintf(text, sizeof(text),
                  "queues and workers do not fit: this side has %u and %u, the peer %u and %u",
                  bare_queues(own_), own_.channel_qps, bare_queues(hello), hello.channel_qps);
    if (std::strcmp(text, pairs_text_) != 0) {
        if (why_ == pairs_text_)
            why_ = "";
        std::strcpy(pairs_text_, text);
    }
    return pairs_text_;
}

std::optional<Link::Found> Link::check_heartbeat(uint64_t now)
{
    const uint64_t beat = device_.read_heartbeat();
    const uint64_t heard = device_.heard();
    unheard_us_ += std::min<uint64_t>(now - last_tick_us_, times_.tick_max_us);
    last_tick_us_ = now;
    const bool beats = beat != seen_beat_ && static_cast<uint32_t>(beat) == adopted_;
    // A peer whose control thread has no CPU may send and receive all the same.
    if (beats || heard != heard_) {
        seen_beat_ = beats ? beat : seen_beat_;
        heard_ = heard;
        unheard_us_ = 0;
        return Found{LinkInput::heartbeat, ""};
    }
    if (unheard_us_ >= times_.lost_us)
        return Found{LinkInput::heartbeat_ended, "the peer's heartbeat has stopped"};
    if (unheard_us_ >= times_.silent_us)
        return Found{LinkInput::heartbeat_missing, ""};
    return {};
}

// ---- actions

void Link::handle(const Found &found)
{
    const LinkStep *step = link_step(state_, found.input);
    if (step == nullptr)
        return;
    const bool done = act(step->action, found);
    state_ = done ? step->next : step->otherwise.value_or(step->next);
    // Afterwards: the callback may ask for the link.
    if (done && step->report.has_value())
        device_.report(*step->report);
}

bool Link::act(LinkAction action, const Found &found)
{
    switch (action) {
    case LinkAction::begin:
        return begin(found.why);
    case LinkAction::set_reason:
        set_why(found.why);
        return true;
    case LinkAction::greet:
        set_why(found.why);
        greet(adopted_, wire::HelloState::up);
        return true;
    case LinkAction::refuse:
        set_why(found.why);
        greet(hello_.epoch, wire::HelloState::refused);
        return true;
    case LinkAction::adopt:
        return adopt(hello_);
    case LinkAction::connect:
        return connect(hello_);
    case LinkAction::close_sending:
        set_why(found.why);
        (void)device_.end_sending(); // the peer takes nothing more
        received_ = 0;
        received_at_us_ = device_.now_us();
        return true;
    case LinkAction::lose:
        set_why(found.why);
        lose();
        return true;
    case LinkAction::renew:
        return renew();
    case LinkAction::send_closing:
        set_why(found.why);
        lose();
        send_closing();
        return true;
    case LinkAction::none:
        break;
    }
    return true;
}

bool Link::begin(const char *why)
{
    adopted_ = 0;
    protocol_error_ = false;
    renew_epoch();
    begin_error_ = device_.open_window();
    if (begin_error_ == 0)
        set_why(why);
    return begin_error_ == 0;
}

bool Link::adopt(const wire::Hello &hello)
{
    // The block is prepared for another epoch, whose peer may still write: fenced first. No queue
    // is open in this state, so the fence does not wait for one. The fence may move the block in
    // its window, so this peer is adopted only after it has sent its hello to the new place: else
    // its first messages could be lost.
    if (adopted_ != 0) {
        adopted_ = 0;
        return device_.quiesce() && device_.fence() && device_.open_window() == 0;
    }
    device_.prepare_rings(pair_seed(own_.seed, hello.epoch));
    adopted_ = hello.epoch;
    // The peer's receive-buffer ring limits the buffers of one message.
    const uint64_t room =
        uint64_t{wire::guaranteed_buffers((hello.buffer_ring_lines - 1) * wire::buffers_per_line)} *
        own_.buf_bytes;
    own_.max_message = static_cast<uint32_t>(std::min<uint64_t>(max_message_, room));
    return true;
}

bool Link::connect(const wire::Hello &hello)
{
    peer_ = hello;
    if (device_.open_queues(peer_, pair_seed(own_.seed, peer_.epoch),
                            pair_seed(peer_.seed, own_.epoch)) != 0)
        return false;
    used_ = true;
    protocol_error_ = false;
    closing_ = false;
    seen_beat_ = device_.read_heartbeat();
    heard_ = device_.heard();
    last_tick_us_ = device_.now_us();
    unheard_us_ = 0;
    sent_at_us_ = 0;
    ++connects_;
    set_why("");
    greet(adopted_, wire::HelloState::up);
    return true;
}

void Link::lose()
{
    protocol_error_ = false;
    lost_at_us_ = device_.now_us();
}

/// After the fence: starts again without a peer.
bool Link::renew()
{
    adopted_ = 0;
    if (used_)
        renew_epoch();
    return device_.open_window() == 0;
}

void Link::send_closing()
{
    const char *why = "";
    if (device_.reachable(&why))
        greet(adopted_, wire::HelloState::closing);
}

void Link::renew_epoch()
{
    const uint32_t old = own_.epoch;
    do {
        own_.epoch = static_cast<uint32_t>(device_.random());
    } while (own_.epoch == 0 || own_.epoch == old);
    own_.seed = device_.random();
    used_ = false;
}

void Link::beat(uint64_t now)
{
    sent_at_us_ = now;
    send_heartbeat();
    // Repeated: the one that carried the ack may have been lost in a short link loss that neither
    // side noticed.
    greet(adopted_, closing_ ? wire::HelloState::closing : wire::HelloState::up);
}

void Link::send_heartbeat()
{
    device_.write_heartbeat(uint64_t{own_.epoch} | ++beat_ << 32);
}

/// Repeated in every tick: a hello that was stored while the peer was unreachable is lost.
void Link::greet(uint32_t ack, wire::HelloState state)
{
    if (own_.ack != ack || own_.state != state || own_.seq == 0)
        ++own_.seq;
    own_.ack = ack;
    own_.state = state;
    seal(own_);
    device_.write_hello(own_);
}

void Link::set_why(const char *why)
{
    if (std::strcmp(why_, why) != 0 && why[0] != '\0')
        device_.explain(why);
    why_ = why;
}

} // namespace plx::pmd

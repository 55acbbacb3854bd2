// SPDX-License-Identifier: BSD-3-Clause
#include "plx_link.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include <rte_hash_crc.h>

#include "plx_options.hpp"

namespace plx::pmd
{

namespace
{

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
    if (!power_of_two_in(h.ring_lines, wire::ring_lines_min, wire::ring_lines_max) ||
        !power_of_two_in(h.posted_lines, wire::posted_lines_min, wire::posted_lines_max))
        return "the peer's rings are not powers of two in their range";
    if (h.buf_bytes < wire::buf_bytes_min || h.buf_bytes > wire::buf_bytes_max ||
        h.buf_bytes % wire::line_bytes != 0)
        return "the peer's buffers are not 64 to 65536 bytes in whole lines";
    const uint64_t begin = uint64_t{h.buf_begin} * wire::line_bytes;
    const uint64_t end = uint64_t{h.buf_end} * wire::line_bytes;
    if (begin < wire::queue_area_end(h.qp_count, h.ring_lines, h.posted_lines) || end < begin ||
        end > h.block_bytes)
        return "the peer's rings and buffers do not fit its block";
    if (h.max_message > wire::message_max || h.heartbeat_us == 0)
        return "the peer's message size or heartbeat is out of range";
    return nullptr;
}

} // namespace

void seal(wire::Hello &hello)
{
    hello.magic = wire::magic;
    hello.major = wire::version_major;
    hello.minor = wire::version_minor;
    hello.bytes = sizeof(hello);
    hello.reserved = 0;
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
    own_.features = 0;
    max_message_ = own.max_message;
    times_ = times;
    window_bytes_ = window_bytes;
    adopted_ = 0;
    refused_ = false;
    distrust_ = false;
    renew_epoch();
    const int rc = port_.open_window();
    if (rc != 0)
        return rc;
    state_ = LinkState::waiting;
    set_why("the peer has not answered yet");
    return 0;
}

void Link::renew_epoch()
{
    const uint32_t old = own_.epoch;
    do {
        own_.epoch = static_cast<uint32_t>(port_.random());
    } while (own_.epoch == 0 || own_.epoch == old);
    own_.seed = port_.random();
    used_ = false;
}

void Link::tick()
{
    const char *why = "";
    const bool way = port_.way_open(&why);

    if (state_ == LinkState::connected) {
        if (!way)
            lose(why);
        else if (distrust_)
            lose("the peer broke the protocol");
        else
            connected();
    }
    if (state_ == LinkState::fencing && !finish_fence())
        return;
    if (state_ == LinkState::waiting) {
        if (way)
            waiting();
        else
            set_why(why);
    }
}

void Link::waiting()
{
    const wire::Hello hello = port_.read_hello();
    const char *why = nullptr;
    switch (judge(hello, window_bytes_, &why)) {
    case Verdict::torn:
        set_why("the peer has not answered yet");
        break;
    case Verdict::refused:
        refuse(why);
        return;
    case Verdict::acceptable:
        consider(hello);
        break;
    }
    // Greeted in every tick: a hello that was stored while the way was closed is lost.
    if (state_ == LinkState::waiting || state_ == LinkState::connected)
        greet(adopted_, wire::HelloState::up);
}

void Link::consider(const wire::Hello &hello)
{
    if (hello.state == wire::HelloState::refused) {
        if (!refused_) {
            refused_ = true;
            set_why(
                "the peer refuses this side: it speaks another version or cannot take its sizes");
            port_.report(LinkEvent::refused);
        }
        return;
    }
    refused_ = false;
    if (hello.state == wire::HelloState::closing) {
        set_why("the peer has stopped");
        return;
    }
    if (hello.epoch != adopted_)
        adopt(hello);
    if (hello.ack == own_.epoch && adopted_ == hello.epoch) {
        peer_ = hello;
        connect();
    } else
        set_why("the peer is there and has not yet answered this start");
}

void Link::adopt(const wire::Hello &hello)
{
    // Promised to another epoch before: whoever that was may still write. No queue is open in this
    // state, so the fence does not have to wait for one.
    if (adopted_ != 0) {
        if (!port_.quiesce() || !port_.fence() || port_.open_window() != 0) {
            state_ = LinkState::fencing;
            return;
        }
    }
    port_.prepare_rings(pair_seed(own_.seed, hello.epoch));
    adopted_ = hello.epoch;
    // A chain is limited by how many buffers the peer's block has room to be told of.
    const uint64_t room =
        uint64_t{always_posted((hello.posted_lines - 1) * wire::posted_per_line)} * own_.buf_bytes;
    own_.max_message = static_cast<uint32_t>(std::min<uint64_t>(max_message_, room));
}

void Link::connect()
{
    const uint32_t epoch = own_.epoch;
    if (port_.open_queues(peer_, pair_seed(own_.seed, peer_.epoch), pair_seed(peer_.seed, epoch)) !=
        0) {
        set_why("the queues could not be opened for this peer");
        return;
    }
    state_ = LinkState::connected;
    used_ = true;
    silent_ = false;
    distrust_ = false;
    seen_beat_ = port_.read_heartbeat();
    seen_at_us_ = port_.now_us();
    sent_at_us_ = 0;
    ++connects_;
    set_why("");
    port_.report(LinkEvent::back);
}

void Link::connected()
{
    const wire::Hello hello = port_.read_hello();
    const char *why = nullptr;
    if (judge(hello, window_bytes_, &why) == Verdict::acceptable) {
        if (hello.epoch != adopted_)
            return lose("the peer has started again");
        if (hello.state == wire::HelloState::closing)
            return lose("the peer has stopped");
        if (hello.state == wire::HelloState::refused)
            return lose("the peer refuses this side");
    }
    const uint64_t now = port_.now_us();
    if (sent_at_us_ == 0 || now - sent_at_us_ >= times_.beat_us) {
        sent_at_us_ = now;
        port_.write_heartbeat(uint64_t{own_.epoch} | ++beat_ << 32);
        // Again and again: the one that told the peer of its ack may have been lost with a short
        // break of the link that neither side saw.
        greet(adopted_, wire::HelloState::up);
    }
    check_life(now);
}

void Link::check_life(uint64_t now)
{
    const uint64_t beat = port_.read_heartbeat();
    if (beat != seen_beat_ && static_cast<uint32_t>(beat) == adopted_) {
        seen_beat_ = beat;
        seen_at_us_ = now;
        if (silent_) {
            silent_ = false;
            port_.report(LinkEvent::awake);
        }
        return;
    }
    const uint64_t quiet = now - seen_at_us_;
    if (quiet >= times_.lost_us)
        return lose("the peer's heartbeat has stopped");
    if (quiet >= times_.silent_us && !silent_) {
        silent_ = true;
        port_.report(LinkEvent::silent);
    }
}

void Link::greet(uint32_t ack, wire::HelloState state)
{
    if (own_.ack != ack || own_.state != state || own_.seq == 0)
        ++own_.seq;
    own_.ack = ack;
    own_.state = state;
    seal(own_);
    port_.write_hello(own_);
}

void Link::refuse(const char *why)
{
    if (!refused_) {
        refused_ = true;
        set_why(why);
        port_.report(LinkEvent::refused);
    }
    greet(0, wire::HelloState::refused);
}

void Link::lose(const char *why)
{
    state_ = LinkState::fencing;
    silent_ = false;
    distrust_ = false;
    lost_told_ = false;
    lost_at_us_ = port_.now_us();
    set_why(why);
}

void Link::tell_loss()
{
    if (lost_told_)
        return;
    lost_told_ = true;
    port_.report(LinkEvent::lost);
}

bool Link::finish_fence()
{
    // Told with the count of what is unconfirmed in place, but not held up by an application that
    // stays inside a burst.
    const bool quiet = port_.quiesce();
    if (quiet || port_.now_us() - lost_at_us_ >= times_.tell_us)
        tell_loss();
    if (!quiet || !port_.fence())
        return false;
    adopted_ = 0;
    if (used_)
        renew_epoch();
    if (port_.open_window() != 0)
        return false;
    state_ = LinkState::waiting;
    return true;
}

bool Link::stop()
{
    if (state_ == LinkState::stopped)
        return true;
    const char *why = "";
    if (state_ != LinkState::fencing) {
        if (port_.way_open(&why))
            greet(adopted_, wire::HelloState::closing);
        state_ = LinkState::fencing;
        silent_ = false;
        lost_told_ = true; // by the caller itself: no event
    }
    if (!port_.quiesce())
        return false;
    tell_loss(); // one that came before the stop
    if (!port_.fence())
        return false;
    state_ = LinkState::stopped;
    set_why("this side has stopped");
    return true;
}

void Link::set_why(const char *why)
{
    if (std::strcmp(why_, why) != 0 && why[0] != '\0')
        port_.explain(why);
    why_ = why;
}

} // namespace plx::pmd

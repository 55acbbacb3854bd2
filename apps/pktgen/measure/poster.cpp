// SPDX-License-Identifier: BSD-3-Clause
#include "measure/poster.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "traffic/payload.hpp"

namespace pktgen
{

namespace
{

constexpr uint64_t flush_id = UINT64_MAX;
constexpr int poison = 0xa5;

uint8_t code_of(Operation operation)
{
    switch (operation) {
    case Operation::write_imm:
        return NTBMSG_OP_WRITE_IMM;
    case Operation::read:
        return NTBMSG_OP_READ;
    case Operation::fetch_add:
        return NTBMSG_OP_FETCH_ADD;
    case Operation::compare_swap:
        return NTBMSG_OP_COMPARE_SWAP;
    case Operation::write:
    case Operation::queue:
    case Operation::send:
        break;
    }
    return NTBMSG_OP_WRITE;
}

bool timed(const Point &p)
{
    return p.clock && p.direction == Direction::echo;
}

uint64_t count_of(const Point &p, const Uniques *uniques)
{
    const uint64_t count = p.count != 0 ? p.count : UINT64_MAX;
    return uniques != nullptr ? std::min(count, Uniques::most / p.queues) : count;
}

} // namespace

bool Uniques::take(uint64_t value)
{
    constexpr unsigned bits = 64;
    if (value >= most)
        return false;
    const uint64_t bit = uint64_t{1} << (value % bits);
    return (seen_[value / bits].fetch_or(bit, std::memory_order_relaxed) & bit) == 0;
}

Poster::Poster(const ChannelLane &lane, const Point &p, uint32_t number, Timings &timings,
               Uniques *uniques)
    : lane_(lane), operation_(p.operation), verify_(p.verify),
      rounds_(p.verify && is_write(p.operation)),
      // Only a completion says what was there; one that is timed is reported by itself.
      signal_all_(timed(p) || is_atomic(p.operation)), confirm_(p.confirm),
      burst_(static_cast<uint16_t>(p.burst)), in_flight_(p.in_flight), stride_(stride_of(p)),
      offset_(Region::offset_of(p, number)), count_(count_of(p, uniques)), content_(p.pattern),
      sizes_(p), uniques_(uniques), own_(make_lines(uint64_t{stride_} * in_flight_)),
      pieces_(in_flight_), works_(in_flight_), trips_(p, timed(p), timings)
{
}

Poster::~Poster()
{
    ntbmsg_remote_close(remote_);
}

int Poster::open(const ntbmsg_region_token &token)
{
    if (own_ == nullptr)
        return -ENOMEM;
    const int rc = ntbmsg_remote_open(lane_.channel, &token, &remote_);
    if (rc != 0)
        return rc;
    const bool pieces = !is_atomic(operation_);
    for (uint32_t slot = 0; slot < in_flight_; ++slot) {
        pieces_[slot] = {place(slot), stride_, 0};
        ntbmsg_work &work = works_[slot];
        work = {};
        work.remote = remote_;
        work.offset = offset_ + (pieces ? uint64_t{stride_} * slot : 0);
        work.sges = pieces ? &pieces_[slot] : nullptr;
        work.sge_count = pieces ? 1 : 0;
        work.op = code_of(operation_);
    }
    return 0;
}

int Poster::post(bool &sending, Sent &sent, uint64_t &full)
{
    // Between rounds of verified writes the far end looks, which is no part of a trip.
    const uint64_t now = rounds_ ? rte_rdtsc() : trips_.step_time();
    if (trips_.sent() == trips_.made() && sending) {
        if (const uint16_t n = due(now); n != 0)
            make(n, sent);
        sending = trips_.made() < count_;
    }
    return trips_.sent() != trips_.made() ? push(now, full) : 0;
}

uint16_t Poster::due(uint64_t now) const
{
    uint64_t most = std::min<uint64_t>(burst_, count_ - trips_.made());
    if (rounds_) // the far end looks before a place is written to again
        most = std::min<uint64_t>(most, in_flight_ - (trips_.made() - checked_));
    return trips_.due(now, static_cast<uint16_t>(most));
}

void Poster::make(uint16_t n, Sent &sent)
{
    const uint64_t first = trips_.made();
    for (uint16_t i = 0; i < n; ++i) {
        ntbmsg_work &work = works_[made_slot_];
        const uint32_t size = sizes_.size();
        work.id = first + i;
        work.flags = static_cast<uint8_t>((signal_all_ || i + 1 == n ? NTBMSG_WORK_SIGNAL : 0) |
                                          (confirm_ ? NTBMSG_WORK_CONFIRM : 0));
        fill(work, made_slot_, first + i, size);
        if (operation_ == Operation::read)
            sent.sum += expected_sum(size, made_slot_);
        sent.bytes += size;
        sizes_.advance();
        advance(made_slot_, 1);
    }
    sent.messages += n;
    flushed_ = false;
    trips_.make(n);
}

void Poster::fill(ntbmsg_work &work, uint32_t slot, uint64_t number, uint32_t size)
{
    pieces_[slot].bytes = size;
    switch (operation_) {
    case Operation::read:
        if (verify_) // what is found there was read
            std::memset(place(slot), poison, size);
        break;
    case Operation::fetch_add:
        work.operand = 1;
        break;
    case Operation::compare_swap:
        work.compare = number;
        work.operand = number + 1;
        break;
    case Operation::write:
    case Operation::write_imm:
    case Operation::queue:
    case Operation::send:
        work.imm = static_cast<uint32_t>(number);
        content_.fill(place(slot), size, 0, number);
        if (verify_)
            put_seal(place(slot), size, number);
        break;
    }
}

int Poster::push(uint64_t now, uint64_t &full)
{
    const uint64_t ready = trips_.made() - trips_.sent();
    const auto n = static_cast<uint16_t>(std::min<uint64_t>(ready, in_flight_ - sent_slot_));
    const int taken = ntbmsg_channel_post_burst(lane_.channel, &works_[sent_slot_], n);
    if (taken < 0)
        return taken;
    full += taken < n ? 1 : 0;
    trips_.leave(static_cast<unsigned>(taken), now);
    advance(sent_slot_, static_cast<uint32_t>(taken));
    return 0;
}

int Poster::post_flush()
{
    if (flushing_ || flushed_)
        return 0;
    ntbmsg_work work{};
    work.id = flush_id;
    work.remote = remote_;
    work.op = NTBMSG_OP_WRITE;
    work.flags = NTBMSG_WORK_SIGNAL | NTBMSG_WORK_CONFIRM;
    const int taken = ntbmsg_channel_post_burst(lane_.channel, &work, 1);
    flushing_ = taken == 1;
    return std::min(taken, 0);
}

int Poster::complete(const ntbmsg_completion &completion, Received &tally)
{
    if (completion.status != 0)
        return completion.status;
    if (completion.id == flush_id) {
        flushing_ = false;
        flushed_ = true;
        return 0;
    }
    // A completion stands for those before it that asked for none.
    while (trips_.back() <= completion.id && trips_.back() < trips_.sent())
        finish(completion.value, tally);
    return 0;
}

bool Poster::is_last(const ntbmsg_completion &completion) const
{
    return flushing_ ? completion.id == flush_id : completion.id + 1 == trips_.sent();
}

void Poster::finish(uint64_t value, Received &tally)
{
    const uint32_t slot = back_slot_;
    if (operation_ == Operation::read)
        look_at_read(slot, tally);
    else if (is_atomic(operation_))
        look_at_value(value, tally);
    ++tally.messages;
    tally.bytes += pieces_[slot].bytes;
    advance(back_slot_, 1);
    trips_.come_back();
}

void Poster::look_at_read(uint32_t slot, Received &tally) const
{
    const uint32_t bytes = pieces_[slot].bytes;
    tally.sum += sum_lines(place(slot), bytes);
    if (verify_ && check_seal(place(slot), bytes, slot) != Seal::good)
        ++tally.corrupt;
}

void Poster::look_at_value(uint64_t value, Received &tally)
{
    // What others add in between makes gaps, for fetch-and-add.
    const bool right =
        operation_ == Operation::compare_swap ? value == next_value_ : value >= next_value_;
    tally.out_of_order += right ? 0 : 1;
    next_value_ = value + 1;
    if (uniques_ != nullptr && !uniques_->take(value))
        ++tally.corrupt;
}

bool Poster::round_waits(bool sending) const
{
    const uint64_t made = trips_.made();
    const bool ended = made - checked_ == in_flight_ || !sending;
    return rounds_ && made != checked_ && ended && trips_.back() == made;
}

bool Poster::round_checked(uint64_t number)
{
    if (number != trips_.made() || trips_.back() != number)
        return false;
    checked_ = number;
    return true;
}

} // namespace pktgen

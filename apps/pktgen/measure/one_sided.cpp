// SPDX-License-Identifier: BSD-3-Clause
#include "measure/one_sided.hpp"

#include <atomic>
#include <cerrno>

#include <rte_cycles.h>

#include "traffic/payload.hpp"

namespace pktgen
{

namespace
{

constexpr uint16_t completions_per_poll = 64;
constexpr uint64_t patience_ms = 1000;

} // namespace

OneSided::OneSided(const Setup &setup, const Point &p, Sides sides)
    : Work(p), setup_(setup), point_(p), sides_(sides), writes_(is_write(p.operation)),
      rounds_(writes_ && p.verify), stride_(stride_of(p)),
      offset_(Region::offset_of(p, setup.number)), reported_sizes_(p), checked_sizes_(p)
{
    sending_ = sides.sends;
    if (sides.sends)
        poster_.emplace(setup.lane, p, setup.number, *setup.timings, setup.uniques);
    // What an earlier measurement has left.
    ntbmsg_completion old[completions_per_poll];
    while (ntbmsg_cq_poll(setup_.lane.cq, old, completions_per_poll) > 0) {
    }
}

/// What is in flight still points to memory of this work: it ends with its channel, if need be.
OneSided::~OneSided()
{
    if (!poster_ || poster_->under_way() == 0)
        return;
    ntbmsg_channel_reset(setup_.lane.channel, 0);
    const uint64_t give_up = rte_rdtsc() + rte_get_tsc_hz() / 1000 * patience_ms;
    for (bool last = false; !last && rte_rdtsc() < give_up;) {
        ntbmsg_completion ended;
        ntbmsg_worker_poll(setup_.lane.worker);
        last = ntbmsg_cq_poll(setup_.lane.cq, &ended, 1) == 1 && poster_->is_last(ended);
    }
}

bool OneSided::set_up()
{
    if (error() != 0)
        return true;
    if (sides_.receives && !named_)
        send_token();
    take_notes();
    take_completions();
    if (sides_.sends && poster_->is_open() && !warmed_ && writes_) {
        // The way of writes is found out by the first one.
        if (const int rc = poster_->post_flush(); rc != 0)
            fail(rc);
        warmed_ = poster_->flushed();
    }
    const bool opened = !sides_.sends || (poster_->is_open() && (warmed_ || !writes_));
    ready_ = (named_ || !sides_.receives) && opened;
    return ready_ || error() != 0;
}

void OneSided::begin(uint64_t now)
{
    if (poster_)
        poster_->start(now);
}

void OneSided::send_token()
{
    Note note{Note::token, 0, 0, {}};
    if (!setup_.region->name(note.memory))
        fail(-ENOTCONN);
    else
        named_ = send_note(setup_.lane, ntbmsg_endpoint_pool(setup_.endpoint), note);
}

void OneSided::slice(unsigned steps)
{
    if (!ready_ && !set_up())
        return;
    for (unsigned i = 0; i < steps && error() == 0; ++i)
        step();
    if (poster_)
        poster_->record();
    if (sides_.receives && is_atomic(point_.operation))
        show_word();
}

void OneSided::step()
{
    if (poster_) {
        go_on_posting();
        poster_->record();
    }
    if (rounds_)
        take_notes();
    else
        ntbmsg_worker_poll(setup_.lane.worker);
    take_completions();
}

void OneSided::go_on_posting()
{
    if (const int rc = poster_->post(sending_, sent_, tx_full_); rc != 0)
        return fail(rc);
    if (rounds_ && !round_sent_ && poster_->round_waits(sending_)) {
        const Note note{Note::look, poster_->round_count(), poster_->round_begin(), {}};
        round_sent_ = send_note(setup_.lane, ntbmsg_endpoint_pool(setup_.endpoint), note);
    }
    if (!sending_ && writes_ && poster_->open_ends() == 0) {
        if (const int rc = poster_->post_flush(); rc != 0)
            fail(rc);
    }
}

bool OneSided::sent_all() const
{
    if (answer_waits_)
        return false;
    if (!poster_ || error() != 0)
        return true;
    const bool checked_at = !rounds_ || poster_->round_count() == 0;
    return !sending_ && poster_->open_ends() == 0 && (!writes_ || poster_->flushed()) && checked_at;
}

/// Also polls the worker.
void OneSided::take_notes()
{
    if (answer_waits_)
        answer();
    const auto note = take_note(setup_.lane);
    if (!note)
        return;
    if (note->kind == Note::token && sides_.sends && !poster_->is_open()) {
        if (const int rc = poster_->open(note->memory); rc != 0)
            fail(rc);
    } else if (note->kind == Note::look && sides_.receives && rounds_) {
        check_round(*note);
    } else if (note->kind == Note::checked && poster_ && poster_->round_checked(note->number)) {
        round_sent_ = false;
    }
}

std::byte *OneSided::place(uint32_t slot) const
{
    return setup_.region->at(offset_ + uint64_t{stride_} * slot);
}

/// @param note  of a peer, who may say anything
void OneSided::check_round(const Note &note)
{
    if (note.number != checked_ || note.count > point_.in_flight)
        return fail(-EPROTO);
    for (uint32_t i = 0; i < note.count; ++i) {
        const uint32_t bytes = checked_sizes_.size();
        const Seal seal = check_seal(place(checked_slot_), bytes, checked_++);
        received_.corrupt += seal == Seal::spoilt ? 1 : 0;
        received_.out_of_order += seal == Seal::other_number ? 1 : 0;
        checked_slot_ = checked_slot_ + 1 == point_.in_flight ? 0 : checked_slot_ + 1;
        checked_sizes_.advance();
        if (point_.operation == Operation::write) { // with a word they are counted by it
            ++received_.messages;
            received_.bytes += bytes;
        }
    }
    answer();
}

void OneSided::answer()
{
    const Note note{Note::checked, 0, checked_, {}};
    answer_waits_ = !send_note(setup_.lane, ntbmsg_endpoint_pool(setup_.endpoint), note);
}

void OneSided::take_completions()
{
    ntbmsg_completion completions[completions_per_poll];
    const int got = ntbmsg_cq_poll(setup_.lane.cq, completions, completions_per_poll);
    bool own = false;
    for (int i = 0; i < got; ++i) {
        if (completions[i].op == NTBMSG_OP_RECV_IMM) {
            take_report(completions[i]);
        } else if (poster_) {
            own = true;
            if (const int rc = poster_->complete(completions[i], completed_); rc != 0)
                fail(rc);
        }
    }
    if (own)
        poster_->stamp();
}

/// A write with a word is here, and is read like a message, every line.
void OneSided::take_report(const ntbmsg_completion &completion)
{
    if (!sides_.receives || point_.operation != Operation::write_imm)
        return;
    const uint32_t bytes = reported_sizes_.size();
    received_.out_of_order += completion.imm != static_cast<uint32_t>(reported_) ? 1 : 0;
    // How long it was the completion does not say: of one that was served in pieces, the last one.
    received_.sum += sum_lines(place(reported_slot_), bytes);
    received_.bytes += bytes;
    ++received_.messages;
    ++reported_;
    reported_slot_ = reported_slot_ + 1 == point_.in_flight ? 0 : reported_slot_ + 1;
    reported_sizes_.advance();
}

/// What atomic operations have made of the word, where the client finds it.
void OneSided::show_word()
{
    const std::atomic_ref<uint64_t> word(*reinterpret_cast<uint64_t *>(place(0)));
    received_.sum = word.load(std::memory_order_relaxed);
}

} // namespace pktgen

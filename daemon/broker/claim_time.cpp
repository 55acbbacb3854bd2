// SPDX-License-Identifier: BSD-3-Clause
// What a daemon does for ends that do not do it: their ends, asks that they do not answer, the
// memory of idle ones.
#include "broker/claim_parts.hpp"

#include <algorithm>
#include <limits>
#include <vector>

namespace ntbd
{

using ntbc::Message;
using ntbc::Type;

namespace
{
// How soon an end is said again that somebody's lock was in the way of.
constexpr int64_t again_ms = 2;
// One that has moved no byte by ring for so long gives its rings' pages back. What its peer has not
// taken then is looked at a few times more.
constexpr int64_t idle_ms = 1000;
constexpr int rests_max = 4;
// A receiver that has asked for TCP waits four times as long before it breaks the connection off.
constexpr int64_t ask_ms = 250;
} // namespace

void Claims::fin_seen(ClientId client, uint64_t id, uint32_t generation)
{
    Claim *claim = of_client(client, id);
    if (claim == nullptr || claim->memory == nullptr)
        return;
    if (const auto sender = claims_.find(claim->pair); sender != claims_.end())
        say_end(*sender->second, generation);
    if (claim->carried) {
        order(*claim, RelayOrder::Kind::fin, generation);
    } else if (claim->remote != 0 && peer_) {
        report_to_peer(Type::fin, claim->remote, 0, generation);
    }
}

void Claims::say_end(Claim &sender, uint32_t generation)
{
    again_.erase(sender.id);
    const bool alone = sender.owner.client == 0;
    if (ntb::socket::say_end(sender.record->record(), page_of(*sender.memory), sender.index,
                             generation, alone)) {
        ring_other(sender);
        return;
    }
    again_.insert(sender.id);
    sender.again_ms = now_ms_ + again_ms;
    sender.again_generation = generation;
}

int64_t Claims::next_deadline() const
{
    int64_t next = std::numeric_limits<int64_t>::max();
    for (const auto &[_, id] : waiting_)
        next = std::min(next, claims_.at(id)->deadline_ms);
    for (const uint64_t id : again_)
        next = std::min(next, claims_.at(id)->again_ms);
    return open_ > 0 ? std::min({next, look_ms_, asks_ms_}) : next;
}

void Claims::expire(int64_t now_ms)
{
    now_ms_ = now_ms;
    std::vector<uint64_t> late;
    for (const auto &[_, id] : waiting_)
        if (claims_.at(id)->deadline_ms <= now_ms)
            late.push_back(id);
    for (const uint64_t id : late)
        fail(*claims_.at(id), -ETIMEDOUT);
    const std::set<uint64_t> again = again_;
    for (const uint64_t id : again)
        if (Claim &claim = *claims_.at(id); claim.again_ms <= now_ms)
            say_end(claim, claim.again_generation);
    if (now_ms >= look_ms_)
        look_for_idle();
    if (now_ms >= asks_ms_) {
        look_for_asks();
        look_for_dead();
    }
}

/// Matched, and its client lives.
bool Claims::is_held(const Claim &claim)
{
    return claim.memory != nullptr && claim.owner.client != 0;
}

// Rule D1. A sender that runs answers by itself, so the first look only notes the ask.
void Claims::look_for_asks()
{
    asks_ms_ = now_ms_ + ask_ms;
    for (const auto &[_, claim] : claims_) {
        if (!is_held(*claim))
            continue;
        Record &record = claim->record->record();
        ntb::socket::Page &page = page_of(*claim->memory);
        const bool asked = ntb::socket::is_asked(record, page, claim->index);
        if (asked && claim->asked && ntb::socket::answer_ask(record, page, claim->index))
            ring_other(*claim);
        claim->asked = asked;
    }
}

// Rule D4. A child that has died with a connection of its parent's, which has closed it and lives:
// no end of a control connection says so.
void Claims::look_for_dead()
{
    std::vector<uint64_t> left;
    for (const auto &[id, claim] : claims_)
        if (is_held(*claim) && claim->numbers_agree &&
            claim->record->record().holders.have_died(claim->owner.user.pid))
            left.push_back(id);
    for (const uint64_t id : left)
        let_go(*claims_.at(id));
}

void Claims::look_for_idle()
{
    look_ms_ = now_ms_ + idle_ms;
    for (const auto &[_, claim] : claims_) {
        if (!is_held(*claim))
            continue;
        Record &record = claim->record->record();
        const uint64_t progress = ntb::socket::progress_of(record);
        if (progress != claim->progress) {
            claim->progress = progress;
            claim->rests = 0;
        } else if (claim->rests < rests_max) {
            const bool is_done = ntb::socket::rest(record, page_of(*claim->memory), claim->index,
                                                   claim->memory->ring_bytes());
            claim->rests = is_done ? rests_max : claim->rests + 1;
            // What was said to be taken is passed on, and the other ring is the carrier's.
            if (claim->carried && !claim->relay_ended)
                order(*claim, RelayOrder::Kind::rest);
        }
    }
}

} // namespace ntbd

// SPDX-License-Identifier: BSD-3-Clause
// The objects behind the C border. All fields are used under the engine's lock.
#ifndef NTB_VERBS_QUEUE_PAIR_HPP
#define NTB_VERBS_QUEUE_PAIR_HPP

#include <bit>
#include <cstdint>

#include "completion/queue.hpp"
#include "memory/keys.hpp"
#include "memory/lazy.hpp"
#include "ntbv.h"
#include "queue/direct.hpp"
#include "queue/hook.hpp"
#include "queue/receives.hpp"
#include "queue/requests.hpp"
#include "wire/message.hpp"

namespace ntb::verbs
{
class Engine;
struct Link;

/// A read or an atomic that the responder has accepted and not answered yet.
struct Answer {
    std::uint32_t seq;
    std::uint32_t total, offset;
    std::uint32_t key;
    std::uint64_t address; // of an atomic: the old value
    bool atomic;
};

/// Of a queue pair that receives: what is most often not so, in one word.
struct Unsettled {
    // What is owed to the requester.
    bool owes_nak = false, owes_rnr = false, owes_ready = false;
    bool owes_lack = false; // the data of the expected request are not there
    // In the middle of a request, or behind one that is to come again.
    bool active = false;      // the request that is arriving
    bool has_receive = false; // which it uses
    bool must_wait = false;   // nothing of a later attempt has come yet
    bool starves = false;     // is to wait, and does not know yet that it is ready

    bool is_settled() const { return std::bit_cast<std::uint64_t>(*this) == 0; }
    bool owes_refusal() const
    {
        return static_cast<std::uint32_t>(std::bit_cast<std::uint64_t>(*this)) != 0;
    }
};

/// What goes in front of answers, in another one.
struct Sayings {
    std::uint32_t asks_for = 0; // key of a region; 0: of none
    std::uint32_t mapped = 0;   // of Pair::direct's lent ones: which the peer is to hear of

    bool has_to_say() const { return std::bit_cast<std::uint64_t>(*this) != 0; }
};

} // namespace ntb::verbs

struct ntbv_pd {
    ntb::verbs::Engine *engine;
    std::uint32_t id;
    std::uint32_t users;
};

struct ntbv_mw {
    ntbv_pd *pd;
    ntb::verbs::Window window;
    ntbv_mw_type type;
};

struct ntbv_channel {
    ntb::verbs::Engine *engine;
    std::uint32_t users = 0;
    ntb::verbs::Pipe pipe;
};

struct ntbv_cq {
    ntb::verbs::Engine *engine;
    ntbv_channel *channel;
    std::uint32_t users = 0;
    ntb::verbs::CompletionQueue queue;
    ntb::verbs::Hook<ntbv_cq> owing{this}; // in Engine::owing_, while the channel has no room
};

struct ntbv_srq {
    ntb::verbs::Engine *engine;
    ntbv_pd *pd;
    std::uint64_t cookie;
    std::uint32_t limit;
    std::uint32_t users = 0;
    ntb::verbs::Receives receives;
    ntb::verbs::Hook<ntbv_qp> starved{nullptr}; // queue pairs whose requesters are to wait
};

struct ntbv_qp {
    ntb::verbs::Engine *engine;
    ntbv_pd *pd;
    ntbv_cq *send_cq, *recv_cq;
    ntbv_srq *srq;
    std::uint64_t cookie;
    std::uint32_t number;
    ntbv_qp_type type;
    bool signal_all;
    std::uint64_t serial = 0; // unlike a number, never given again
    ntbv_qp_attr attr = {};
    ntb::verbs::Link *link = nullptr; // of RC and UC, from RTR on

    ntb::verbs::Lazy<ntb::verbs::Direct> direct; // of RC, where the engine is: max_known

    ntb::verbs::Hook<ntbv_qp> work{this};   // in Link::work: has something to send
    ntb::verbs::Hook<ntbv_qp> timer{this};  // in Engine::waiting_: until `deadline`
    ntb::verbs::Hook<ntbv_qp> hungry{this}; // in ntbv_srq::starved

    ntb::verbs::Asker asker() const { return {pd->id, serial}; }

    // ---- requester. Requests are counted from 0, local ones as well, which the wire does not
    // know.
    struct {
        ntb::verbs::Requests queue;
        std::uint32_t next_seq = 0; // on the wire, of what goes there first from now on
        std::uint32_t head = 0;     // behind the last one posted
        std::uint32_t next = 0;     // being sent, from `offset` on
        std::uint32_t high = 0;     // behind the last one of which something was ever sent
        std::uint32_t done = 0;     // the oldest one that is not complete
        std::uint32_t offset = 0;
        std::uint32_t received = 0; // bytes of the answer to `done`
        std::uint32_t reads = 0;    // reads and atomics in [done, high)
        std::uint64_t deadline = 0;
        std::uint16_t attempt = 0;
        std::uint8_t rnr_tries = 0, tries = 0;
        bool waits_for_receive = false; // of what `timer` is
        bool halted = false;            // `next` cannot be sent: it fails when it is the oldest
        bool misses_peer = false;       // it is gone: `timer` ends with the oldest request
        bool reaches_peer = false;      // it has accepted a request
        std::uint32_t detours = 0;      // messages in a row of what could have gone directly

        /// On the wire, of a request up to `high`, or of what follows if it is a local one.
        std::uint32_t seq(std::uint32_t number)
        {
            return number == high ? next_seq : queue[number].seq;
        }
    } send;

    // ---- responder
    struct : ntb::verbs::Unsettled, ntb::verbs::Sayings {
        ntb::verbs::Receives queue; // without SRQ
        std::uint32_t expected = 0;
        // The request that is arriving.
        bool skips = false;             // UC: the rest of a request that is dropped
        ntb::verbs::Header header = {}; // of its first message
        std::uint32_t offset = 0;
        ntb::verbs::Receive receive = {};
        // What is owed to the requester, in this order.
        ntb::verbs::Lazy<ntb::verbs::Answer> answers;
        std::uint32_t answers_head = 0, answers_tail = 0;
        bool owes_ack = false;
        /// But for the acknowledgement and what `answers` has.
        bool owes_more() const { return owes_refusal() || has_to_say(); }
        std::uint32_t nak_code = 0;
        std::uint16_t attempt = 0;     // of the last request
        std::uint16_t rnr_attempt = 0; // of the one that is to wait
        std::uint64_t ack_word = 0;    // word_of_ack() of the first number
        std::uint8_t answered = 0;     // requests in a row that the program answered at once
    } receive;

    ntb::verbs::Lent lent[ntb::verbs::max_lent] = {};
    std::uint32_t next_lent = 0; // is looked at next where there is no place
    std::uint32_t lent_misses = 0;
    std::uint16_t lent_serial = 0;

    bool overrun = false; // a completion was lost: to ERR as soon as nothing is in the middle
};

namespace ntb::verbs
{
using Pair = ::ntbv_qp;
}

#endif

// SPDX-License-Identifier: BSD-3-Clause
// One-sided operations of a channel: what was posted here (Requester), and what the peer asked for
// (Owner). Either half is made when it is needed for the first time.
#ifndef NTBMSG_RMA_ONE_SIDED_HPP
#define NTBMSG_RMA_ONE_SIDED_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/use.hpp"
#include "ntbmsg.h"
#include "wire/one_sided.hpp"

struct rte_mbuf;

namespace ntbmsg
{

/// How writes go to a remote. A token's way through the window is tried before it is trusted: a
/// mapping may follow late, and the token may be older than the connection.
enum class Way : uint8_t {
    served,  ///< by requests, and there is no other way, or it was not found
    probing, ///< a PROBE is under way; by requests meanwhile
    found,   ///< the PROBE has succeeded; direct once the requests before are answered
    direct,  ///< by stores
    closed,  ///< by its user, while a PROBE was under way: it is freed with the answer
};

} // namespace ntbmsg

/// A region of the peer. Written by who posts, but for `reach`.
struct ntbmsg_remote {
    ntbmsg_channel *channel;
    uint64_t key;
    uint64_t bytes;
    uint32_t rights;
    uint32_t word;        ///< of the channel: its slot may have been used again
    std::byte *address;   ///< in the window; NULL: every operation is served
    uint32_t last_change; ///< the latest operation whose request changes the region
    bool has_change;      ///< there is one
    uint32_t until_probe; ///< requests until the way is tried again
    std::atomic<ntbmsg::Way> way;
    [[no_unique_address]] ntbmsg::Watch watch;
};

namespace ntbmsg
{

/// An operation that was posted and is not complete.
struct Operation {
    ntbmsg_remote *remote;
    uint64_t id;
    uint64_t offset;
    uint64_t operand; ///< of atomics; PROBE: the word that was stored
    uint64_t compare;
    uint64_t value;    ///< what an atomic found
    uint32_t bytes;    ///< in all
    uint32_t moved;    ///< WRITE: in requests; READ: arrived
    uint32_t pieces;   ///< the first of them in the ring of pieces
    uint32_t requests; ///< sent and not answered
    uint32_t imm;
    int32_t status;
    uint8_t piece_count;
    uint8_t op;    ///< ntbmsg_op; 0: PROBE, of which nobody is told
    uint8_t flags; ///< NTBMSG_WORK_*
    bool stored;   ///< the data went directly
    bool all_sent; ///< nothing of it is left to be asked for
};

/// A message that did not fit into the ring towards the peer, to be sent before any other.
struct Held {
    rte_mbuf *mbuf;
    uint32_t argument;
    uint8_t op;
};

/// Posted by one thread, driven by the worker's; they may be the same.
struct Requester {
    std::atomic<uint32_t> posted;  ///< operations so far; by who posts
    std::atomic<uint32_t> retired; ///< operations taken out, in order; by the worker
    std::atomic<uint32_t> told;    ///< operations whose completions are where they belong
    std::atomic<uint32_t> pieces_retired;
    uint32_t pieces_posted;
    uint32_t sent;         ///< operations of which all was asked for
    uint32_t next_request; ///< number of the next request
    uint32_t next_answer;  ///< of the oldest one that is not answered
    uint32_t limit;        ///< operations under way
    uint32_t mask;         ///< of the ring of operations
    uint32_t piece_mask;
    Held held;
    Operation *operations;
    ntbmsg_sge *pieces;
};

/// What is to be said about a request of the peer.
struct Answer {
    uint32_t request;
    protocol::Status status;
    uint64_t value;
    uint64_t key; ///< READ: what is left to be read
    uint64_t offset;
    uint32_t left;
    uint32_t imm;
    uint32_t bytes; ///< of a write with an immediate word
    enum class Kind : uint8_t { done, read, imm } kind;
};

/// Served writes that came one behind the other and lie so: what may be one write in pieces.
struct Run {
    uint64_t key;
    uint64_t end; ///< offset behind the last of them
    uint64_t bytes;
};

/// Worker's thread alone.
struct Owner {
    uint32_t next_request; ///< the number that the peer's next request has
    uint32_t answered;     ///< requests so far, in order
    Run run;               ///< up to the last request
    Held held;
    Answer answers[protocol::requests_max];
};
static_assert((protocol::requests_max & (protocol::requests_max - 1)) == 0);

struct OneSided {
    std::atomic<Requester *> made; ///< by who posts
    Requester *requester() const { return made.load(std::memory_order_acquire); }
    Owner *owner;
    bool flushing; ///< one_sided_flush() is under way
};

/// Most bytes that a poll copies for the peer's reads, and of them for one channel before others
/// have their turn: what a poll of 64 messages may take anyway, and a few messages.
inline constexpr uint32_t reads_a_poll = 256 * 1024;
inline constexpr uint32_t reads_a_turn = 64 * 1024;

/// Takes a message of the peer; the mbuf stays the caller's. @return false: it broke the rules
bool one_sided_receive(ntbmsg_worker &worker, ntbmsg_channel &channel, uint32_t op,
                       uint32_t argument, const rte_mbuf *m);
/// Sends what can be sent. @return false: something is left that no message of the peer brings back
bool one_sided_flush(ntbmsg_worker &worker, ntbmsg_channel &channel);
/// The channel has ended: all that is under way completes with @p status, nothing is owed any more.
void one_sided_end(ntbmsg_channel &channel, int status);
/// Goes on with the channels that could not before.
void one_sided_chores(ntbmsg_worker &worker);
/// Does what can be done now; the rest is left to the next polls.
void one_sided_go_on(ntbmsg_channel &channel);
/// Something was posted: it goes at once, or with the next polls. By who posts.
void one_sided_posted(ntbmsg_channel &channel);
/// Another thread has posted.
void one_sided_take_up(ntbmsg_channel &channel);
/// Nothing is under way and nothing owed: CLOSE may go.
bool one_sided_idle(const ntbmsg_channel &channel);
/// Frees what was made. Nothing is under way.
void one_sided_free(ntbmsg_channel &channel);

// post.cpp

/// Why nothing can be posted. By who posts. @return 0: it can
int post_error(const ntbmsg_channel &channel);

// requester.cpp

/// The half that posts, made if it was not. @return NULL: no memory
Requester *requester_of(ntbmsg_channel &channel);
bool requester_receive(ntbmsg_channel &channel, uint32_t op, uint32_t argument, const rte_mbuf *m);
bool requester_flush(ntbmsg_worker &worker, ntbmsg_channel &channel);
/// Completes what is under way. A request that is held has its number and stays to be sent.
void requester_end(ntbmsg_channel &channel, int status);

/// Puts an operation behind those under way, whose places in the rings the caller has looked for.
void requester_push(Requester &r, const Operation &operation, const ntbmsg_sge *pieces);
/// Whether one more operation of @p pieces pieces has a place.
bool requester_has_room(const Requester &r, uint32_t pieces);

// owner.cpp

bool owner_receive(ntbmsg_worker &worker, ntbmsg_channel &channel, uint32_t op, uint32_t argument,
                   const rte_mbuf *m);
bool owner_flush(ntbmsg_worker &worker, ntbmsg_channel &channel);

// remote.cpp

/// Tries the way through the window, where there is room for a PROBE.
void remote_probe(ntbmsg_remote &remote);
/// Whether a write goes by a store. @return -EAGAIN: not before earlier requests are answered
int remote_way(ntbmsg_remote &remote, const Requester &r);

} // namespace ntbmsg

#endif

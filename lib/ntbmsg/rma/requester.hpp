// SPDX-License-Identifier: BSD-3-Clause
// The half of one-sided operations that was posted here: requests out, answers in, completions in
// the order of posting.
#ifndef NTBMSG_RMA_REQUESTER_HPP
#define NTBMSG_RMA_REQUESTER_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "port/payload.hpp"

namespace ntbmsg
{

/// How writes go to a remote. A token's way through the window is tried before it is trusted: a
/// mapping may follow late, and the token may be older than the connection.
enum class Path : uint8_t {
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
    std::atomic<ntbmsg::Path> path;
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

/// Posted by one thread, driven by the worker's; they may be the same.
struct Requester {
    std::atomic<uint32_t> posted;    ///< operations so far; by who posts
    std::atomic<uint32_t> retired;   ///< operations taken out, in order; by the worker
    std::atomic<uint32_t> completed; ///< operations whose completions are where they belong
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

} // namespace ntbmsg

#endif

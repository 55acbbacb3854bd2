// SPDX-License-Identifier: BSD-3-Clause
// The requester: sends requests for operations that were posted here, takes the answers, and
// completes the operations in the order of posting.
#ifndef NTBMSG_RMA_REQUESTER_HPP
#define NTBMSG_RMA_REQUESTER_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "transport/payload.hpp"

namespace ntbmsg
{

/// How writes reach a remote region. The address in a token is probed before it is used: the peer's
/// mapping may become effective late, and the token may be older than the connection.
enum class Path : uint8_t {
    served,  ///< by requests: there is no address, or its probe failed
    probing, ///< a PROBE is outstanding; by requests meanwhile
    found,   ///< the PROBE succeeded; direct once earlier requests are answered
    direct,  ///< by stores through the memory window
    closed,  ///< closed while a PROBE was outstanding: freed with its answer
};

} // namespace ntbmsg

/// A region of the peer. Written by the posting thread, except `path`.
struct ntbmsg_remote {
    ntbmsg_channel *channel;
    uint64_t key;
    uint64_t bytes;
    uint32_t rights;
    uint32_t word;        ///< of the channel: its slot may have been reused
    std::byte *address;   ///< in the memory window; NULL: every operation is served
    uint32_t last_change; ///< the latest served operation that changes the region
    bool has_change;      ///< there is one
    uint32_t until_probe; ///< requests until the next probe
    std::atomic<ntbmsg::Path> path;
    [[no_unique_address]] ntbmsg::Watch watch;
};

namespace ntbmsg
{

/// An operation that was posted and has not completed.
struct Operation {
    ntbmsg_remote *remote;
    uint64_t id;
    uint64_t offset;
    uint64_t operand; ///< of atomics; PROBE: the value that was stored
    uint64_t compare;
    uint64_t value;    ///< result of an atomic
    uint32_t bytes;    ///< total length
    uint32_t moved;    ///< WRITE: bytes sent in requests; READ: bytes that arrived
    uint32_t pieces;   ///< index of the first one in the ring of pieces
    uint32_t requests; ///< requests sent and not answered
    uint32_t imm;
    int32_t status;
    uint8_t piece_count;
    uint8_t op;    ///< ntbmsg_op; 0: PROBE, which has no completion
    uint8_t flags; ///< NTBMSG_WORK_*
    bool stored;   ///< the data were stored through the memory window
    bool all_sent; ///< all its requests were sent
};

/// Filled by the posting thread, driven by the worker's thread; they may be the same.
struct Requester {
    std::atomic<uint32_t> posted;    ///< operations posted so far; by the posting thread
    std::atomic<uint32_t> retired;   ///< operations removed, in order; by the worker's thread
    std::atomic<uint32_t> completed; ///< operations whose completions are in the queue
    std::atomic<uint32_t> pieces_retired;
    uint32_t pieces_posted;
    uint32_t sent;         ///< operations whose requests were all sent
    uint32_t next_request; ///< number of the next request
    uint32_t next_answer;  ///< number of the oldest unanswered request
    uint32_t limit;        ///< most operations outstanding
    uint32_t mask;         ///< of the ring of operations
    uint32_t piece_mask;
    Held held;
    Operation *operations;
    ntbmsg_sge *pieces;
    rte_pmd_plx_ntb_window_writer *writer; ///< of the posting thread: long direct writes
};

/// The requester of a channel, allocated at the first call. @return NULL: no memory
Requester *requester_of(ntbmsg_channel &channel);
/// Nothing posts to it or drives it any more. @param r  may be NULL
void requester_free(Requester *r);
bool requester_receive(ntbmsg_channel &channel, uint32_t op, uint32_t argument, const rte_mbuf *m);
bool requester_flush(ntbmsg_worker &worker, ntbmsg_channel &channel);
/// Completes all outstanding operations with @p status. A held request keeps its number and is
/// still sent.
void requester_end(ntbmsg_channel &channel, int status);

/// Appends an operation; the caller has checked requester_has_room().
void requester_push(Requester &r, const Operation &operation, const ntbmsg_sge *pieces);
/// Whether there is room for an operation of @p pieces pieces.
bool requester_has_room(const Requester &r, uint32_t pieces);

} // namespace ntbmsg

#endif

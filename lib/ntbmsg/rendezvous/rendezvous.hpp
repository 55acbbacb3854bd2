// SPDX-License-Identifier: BSD-3-Clause
// Long messages: announced, granted pieces of the receiver's memory, stored there straight from the
// sender's mbufs, and handed up as a chain of mbufs over those pieces. One copy in all.
#ifndef NTBMSG_RENDEZVOUS_RENDEZVOUS_HPP
#define NTBMSG_RENDEZVOUS_RENDEZVOUS_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/counter.hpp"
#include "ntbmsg.h"
#include "rendezvous/rendezvous_protocol.hpp"
#include "rendezvous/rx_pool.hpp"

struct rte_mbuf;
struct rte_mempool;

namespace ntbmsg
{

namespace protocol
{
struct Hello;
}

/// Messages of a channel that are announced at a time, in each direction: enough for the next ones
/// to be granted while one is filled and another is read.
inline constexpr uint32_t rendezvous_depth = 4;

/// One on its way out.
struct OutgoingMessage {
    rte_mbuf *mbuf;
    rte_mbuf *segment;   ///< to go on with,
    uint32_t segment_at; ///< from this byte of it on
    uint32_t imm;
    uint32_t left;        ///< bytes that are not stored yet
    uint32_t piece_count; ///< that it takes
    uint32_t granted;     ///< pieces
    uint32_t stored;      ///< pieces: by the CPU, or given to the copy engine
    uint32_t piece_at;    ///< bytes of the next one that are
    uint32_t landed;      ///< pieces that are there
    uint32_t told;        ///< pieces of which the peer knows that
    uint32_t under_way;   ///< copies that the engine has not done yet
    bool by_engine;
    bool announced;
    uint32_t pieces[protocol::pieces_max]; ///< the granted ones
};

/// One on its way in.
struct IncomingMessage {
    rte_mbuf *mbuf;   ///< the chain of its pieces; NULL: they were not granted yet
    rte_mbuf *untold; ///< the first of which the peer does not know
    uint32_t imm;
    uint32_t bytes;
    uint32_t piece_count;
    uint32_t granted; ///< pieces of which the peer knows
    uint32_t filled;
};

/// A channel's long messages. Indices run freely.
struct Rendezvous {
    uint32_t out_head, out_tail; ///< taken from the caller; stored
    uint32_t in_head, in_tail;   ///< announced; handed up
    uint32_t unreceived;         ///< pieces handed up, and not received by the application
    uint32_t copies_until;       ///< the channel has ended: the engine's copies before this one
                                 ///< may be its own
    IncomingMessage in[rendezvous_depth];
    OutgoingMessage out[rendezvous_depth];
};

/// A worker's memory for long messages, and how it sees the peer's.
struct RendezvousMemory {
    rte_mempool *pool; ///< mbufs over the shared pieces; NULL: there is none
    std::byte *base;
    size_t bytes;          ///< of window memory
    uint32_t piece_count;  ///< for messages; one more, the last, is for trying the way alone
    uint32_t shared_count; ///< of these, for channels without a pool of their own
    RxPool pools[rx_pools_max];

    std::byte *peer_base;
    uint64_t peer_bus;    ///< the same for copy engines; 0: out of their reach
    uint32_t peer_pieces; ///< 0: the peer has none
    uint32_t peer_piece_bytes;
    std::atomic<uint32_t> peer_longest; ///< message that fits; read by who accepts, too
    uint64_t word;                      ///< that is stored into the peer's last piece
    bool ready;                         ///< the way to the peer's memory was found
    bool try_owed, try_sent;
    bool tried_owed;
    uint32_t tried; ///< the answer that is owed

    /// Pieces of channels that were reset here: the peer may be storing to them until it has come
    /// past a fence behind the RESET. Those that wait for the next fence, and those behind it.
    rte_mbuf *doubtful, *fenced;
    bool fence_owed;
    uint32_t fence; ///< number of the last one
    bool fenced_owed;
    uint32_t peer_fence;  ///< to be answered
    uint32_t peer_copies; ///< once the engine's copies before this one are done

    Counter messages, stored_bytes; ///< that went this way
};

/// Makes the memory of a worker. @return 0 or negative errno, logged
int rendezvous_make(ntbmsg_worker &worker, size_t bytes, size_t pool_bytes, int socket);
/// Makes mbufs over @p count pieces from @p first on. @return NULL, with rte_errno
rte_mempool *rendezvous_pool(const RendezvousMemory &memory, const char *name, uint32_t first,
                             uint32_t count, int socket);
/// Longest message that a channel takes this way; 0: none
uint32_t rendezvous_own_longest(const ntbmsg_channel &channel);
void rendezvous_unmake(ntbmsg_worker &worker);
/// Lends it to the peer, and says so. @return false: not now
bool rendezvous_lend(ntbmsg_worker &worker, protocol::Hello &hello);
/// Takes what the peer says of its own. What cannot be is as if there were none.
void rendezvous_meet(ntbmsg_worker &worker, const protocol::Hello &hello);
/// The connection is gone.
void rendezvous_lose(ntbmsg_worker &worker);
/// Longest message that goes this way; 0: none does. Any thread.
uint32_t rendezvous_longest(const ntbmsg_worker &worker);
/// Takes a message of the peer for the worker. @return false: it broke the rules
bool rendezvous_worker_receive(ntbmsg_worker &worker, uint32_t op, uint32_t argument,
                               const rte_mbuf *m);
/// Goes on with what could not before.
void rendezvous_chores(ntbmsg_worker &worker);
/// Pieces that the peer may still be storing to.
void rendezvous_doubt(ntbmsg_worker &worker, rte_mbuf *chain);

/// DATA and CLOSE may go: no long message is on its way out.
inline bool rendezvous_idle(const Rendezvous *r)
{
    return r == nullptr || r->out_head == r->out_tail;
}
/// CLOSE may come: no long message is on its way in.
inline bool rendezvous_all_in(const Rendezvous *r)
{
    return r == nullptr || r->in_head == r->in_tail;
}
/// The segments hold together what the head says.
bool is_whole(const rte_mbuf *m);
/// Takes a message that is too long for other ways, or longer than the caller wants. With credit.
/// @return false: not now, or it cannot go this way
bool rendezvous_take(ntbmsg_channel &channel, rte_mbuf *m, uint32_t imm);
/// Takes a message of the peer; the mbuf stays the caller's. @return false: it broke the rules
bool rendezvous_receive(ntbmsg_channel &channel, uint32_t op, uint32_t argument, const rte_mbuf *m);
/// The application has received a message of so many pieces.
void rendezvous_received(ntbmsg_channel &channel, uint32_t pieces);
/// The channel has ended. @param stopped  the peer stores nothing for it any more
void rendezvous_end(ntbmsg_channel &channel, bool stopped);
/// It has ended, and the copy engine may still store for it: RESET has to wait.
bool rendezvous_copying(const ntbmsg_channel &channel);
void rendezvous_free(ntbmsg_channel &channel);

// rendezvous_out.cpp, rendezvous_in.cpp: each sends what it can.
// @return false: something is left that no message of the peer brings back

bool rendezvous_push(ntbmsg_channel &channel, Rendezvous &r);
bool rendezvous_grant(ntbmsg_channel &channel, Rendezvous &r);
bool rendezvous_take_grant(const ntbmsg_worker &worker, Rendezvous &r, uint32_t pieces,
                           const rte_mbuf *m);
bool rendezvous_take_announcement(ntbmsg_channel &channel, Rendezvous &r, uint32_t imm,
                                  const rte_mbuf *m);
bool rendezvous_take_filled(ntbmsg_channel &channel, Rendezvous &r, uint32_t pieces,
                            const rte_mbuf *m);

} // namespace ntbmsg

#endif

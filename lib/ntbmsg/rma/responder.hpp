// SPDX-License-Identifier: BSD-3-Clause
// The half of one-sided operations that the peer asked for.
#ifndef NTBMSG_RMA_RESPONDER_HPP
#define NTBMSG_RMA_RESPONDER_HPP

#include <cstdint>

#include "port/payload.hpp"
#include "wire/one_sided.hpp"

namespace ntbmsg
{

/// Most bytes that a poll copies for the peer's reads, and of them for one channel before others
/// have their turn: what a poll of 64 messages may take anyway, and a few messages.
inline constexpr uint32_t read_bytes_per_poll = 256 * 1024;
inline constexpr uint32_t read_bytes_per_turn = 64 * 1024;

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
struct Responder {
    uint32_t next_request; ///< the number that the peer's next request has
    uint32_t answered;     ///< requests so far, in order
    Run run;               ///< up to the last request
    Held held;
    Answer answers[protocol::requests_max];
};
static_assert((protocol::requests_max & (protocol::requests_max - 1)) == 0);

/// Takes a request; the mbuf stays the caller's. @return false: it broke the rules
bool responder_receive(ntbmsg_worker &worker, ntbmsg_channel &channel, uint32_t op,
                       uint32_t argument, const rte_mbuf *m);
bool responder_flush(ntbmsg_worker &worker, ntbmsg_channel &channel);

} // namespace ntbmsg

#endif

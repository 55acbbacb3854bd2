// SPDX-License-Identifier: BSD-3-Clause
// The responder: executes one-sided operations that the peer requested.
#ifndef NTBMSG_RMA_RESPONDER_HPP
#define NTBMSG_RMA_RESPONDER_HPP

#include <cstdint>

#include "transport/payload.hpp"
#include "wire/one_sided.hpp"

namespace ntbmsg
{

/// Most bytes that one poll copies for the peer's reads: no more than receiving 64 messages may
/// cost. Of them, what one channel may use before other channels have their turn.
inline constexpr uint32_t read_bytes_per_poll = 256 * 1024;
inline constexpr uint32_t read_bytes_per_turn = 64 * 1024;

/// A request of the peer that was executed and is not answered yet.
struct Answer {
    uint32_t request;
    protocol::Status status;
    uint64_t value;
    uint64_t key; ///< of a READ: region, offset and bytes still to be sent
    uint64_t offset;
    uint32_t left;
    uint32_t imm;
    uint32_t bytes; ///< of a write with immediate data
    enum class Kind : uint8_t { done, read, imm } kind;
};

/// Consecutive served writes to adjacent addresses: possibly one write in several messages.
struct Run {
    uint64_t key;
    uint64_t end; ///< offset after the last of them
    uint64_t bytes;
};

/// Used by the worker's thread only.
struct Responder {
    uint32_t next_request; ///< number of the peer's next request
    uint32_t answered;     ///< requests answered so far, in order
    Run run;               ///< up to the last request
    Held held;
    Answer answers[protocol::requests_max];
};
static_assert((protocol::requests_max & (protocol::requests_max - 1)) == 0);

/// Takes a request; the caller keeps the mbuf. @return false: it violates the protocol
bool responder_receive(ntbmsg_worker &worker, ntbmsg_channel &channel, uint32_t op,
                       uint32_t argument, const rte_mbuf *m);
bool responder_flush(ntbmsg_worker &worker, ntbmsg_channel &channel);

} // namespace ntbmsg

#endif

// SPDX-License-Identifier: BSD-3-Clause
// Section 6 of doc/channel-protocol.md: long messages.
#ifndef NTBMSG_RENDEZVOUS_RENDEZVOUS_PROTOCOL_HPP
#define NTBMSG_RENDEZVOUS_RENDEZVOUS_PROTOCOL_HPP

#include <cstdint>

namespace ntbmsg::protocol
{

enum RendezvousOp : uint8_t {
    op_rts = 8,     ///< a message is ready; argument: the caller's word; payload: u64 bytes
    op_cts = 9,     ///< argument: pieces granted; payload: a u32 for each
    op_filled = 10, ///< argument: pieces, of the oldest message that is not whole
    // To the worker.
    op_fence = 11,  ///< argument: number
    op_fenced = 12, ///< the answer: all that came before the fence has been done
    op_try = 13,    ///< payload: the u64 that was stored into the last piece
    op_tried = 14,  ///< argument: 1 it is there, 0 it is not
};
inline constexpr uint8_t rendezvous_worker_first = op_fence, rendezvous_worker_last = op_tried;

/// Most pieces in one CTS.
inline constexpr uint32_t pieces_a_grant = 64;
/// Most pieces of a message.
inline constexpr uint32_t pieces_max = 512;
/// Own pieces. A peer's are a power of two in this range.
inline constexpr uint32_t piece_bytes = 32768, piece_bytes_min = 4096, piece_bytes_max = 65536;

} // namespace ntbmsg::protocol

#endif

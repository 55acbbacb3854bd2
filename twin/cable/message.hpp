// SPDX-License-Identifier: BSD-3-Clause
// What crosses a socket cable: messages of one size, each with at most one descriptor.
#ifndef PLX_TWIN_CABLE_MESSAGE_HPP
#define PLX_TWIN_CABLE_MESSAGE_HPP

#include <cstdint>

namespace plx::twin
{

inline constexpr uint32_t message_magic = 0x504C5854;
inline constexpr uint16_t message_version = 4;

enum class MessageType : uint16_t {
    greeting,  ///< the first of both ends; descriptor: the former chip of the one greeted, if held,
               ///< or the chip that both are on
    refusal,   ///< instead of a greeting: why not
    chip,      ///< answers a greeting; descriptor: the sender's chip
    lifeline,  ///< follows the chip; descriptor: hung up when the sender's process dies
    memory,    ///< a block of the sender; descriptor: while the receiver may see it
    follow,    ///< registers have changed: look at them, then answer
    followed,  ///< the answer, with the same sequence
    interrupt, ///< the receiver's interrupt is to be looked at
    bye,       ///< the sender is about to go and waits until the receiver has disconnected
};

enum class Refusal : uint32_t {
    taken,   ///< the cable has two ends
    version, ///< another version of these messages
    wait,    ///< another connection is being greeted
    wiring,  ///< another topology
    user,    ///< a process of another user
};

/// Magic, version and type stay where they are in every version.
struct Message {
    uint32_t magic = message_magic;
    uint16_t version = message_version;
    MessageType type = MessageType::bye;
    uint64_t sequence = 0;
    uint64_t bar_bytes[2] = {};
    uint16_t write_rid = 0;
    uint16_t read_rid = 0;
    Refusal refusal = Refusal::taken;
    uint32_t wiring = 0; ///< wiring_word()
    uint32_t slot = 0;
    uint32_t present = 0;
    uint32_t reserved = 0;
    uint64_t bus = 0;
    uint64_t bytes = 0;
    uint64_t page_bytes = 0;
};
static_assert(sizeof(Message) == 80);

/// Never blocks. @param fd sent along unless -1; stays the caller's
/// @return false when the other end is gone or does not take any more
bool message_send(int socket, const Message &message, int fd);

enum class Received {
    message,
    nothing,   ///< none there now
    closed,    ///< the other end is gone
    malformed, ///< not what this version sends
    starved,   ///< a descriptor came along, and this process may have no more of them
    foreign,   ///< of another version, or no message at all
};
/// Never blocks. @param fd -1, or a descriptor that came along, now the caller's
Received message_receive(int socket, Message *out, int *fd);

} // namespace plx::twin

#endif

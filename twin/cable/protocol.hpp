// SPDX-License-Identifier: BSD-3-Clause
// What the two ends of a cable between processes say to each other, and what is made of it. The
// other end is a stranger: whatever it sends is checked, and nothing waits for it but within a
// bound.
#ifndef PLX_TWIN_CABLE_PROTOCOL_HPP
#define PLX_TWIN_CABLE_PROTOCOL_HPP

#include "cable/lifeline.hpp"
#include "cable/listen.hpp"
#include "cable/message.hpp"
#include "host/host.hpp"

#include <pthread.h>

namespace plx::twin::protocol
{

enum class Stage { none, greeting, chips, up };

struct SocketCable {
    SocketEnd end; // the listener; the connection moves to `connection`
    int connection = -1;
    Lifeline lifeline;
    int peer_lifeline = -1;
    bool accepted = false;
    Stage stage = Stage::none;
    uint64_t greeting_since_ms = 0;
    uint64_t starved_until_ms = 0; ///< no descriptor was left: none is accepted before
    bool starving_reported = false;
    // Requests to follow: one is under way at a time, further ones are one more after it. So a
    // stopped process never finds more than a handful of messages, and a socket never fills.
    uint64_t wanted = 0;
    uint64_t asked = 0;
    uint64_t answered = 0;
    bool late = false; // the request under way ran out of time: no use in waiting for it again
    pthread_cond_t answer;
};

// ---- without the lock

SocketCable &cable_of(Host &host);
uint64_t now_ms();
/// Until there is something to read.
void wait_for(int fd, int timeout_ms);
Message message_of(MessageType type);
void refuse(int connection, Refusal why);
/// Takes the lock itself.
void disconnect(Host &host);

// ---- with the host locked, or while its thread does not run

/// One that does not take a message is treated as gone: the thread sees the end of the connection.
void send(SocketCable &cable, const Message &message, int fd);
/// The first message on a connection.
void greet(Host &host);
/// If the other end has greeted.
void send_chip(Host &host);
/// Announces what is exposed, and waits within a bound until the other end has followed.
void update_peer(Host &host);

/// @return why what a greeting says does not fit this end; NULL: it does
const char *conflict_with(const Host &host, const Message &greeting);
/// @param fd of a chip that the other end offers, taken over; -1: none. @return false to disconnect
bool take_greeting(Host &host, const Message &m, int fd);
/// Any message. @param fd that came along, taken over; -1: none. @return false to disconnect
bool take(Host &host, const Message &m, int fd);

} // namespace plx::twin::protocol

#endif

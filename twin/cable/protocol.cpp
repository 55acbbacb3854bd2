// SPDX-License-Identifier: BSD-3-Clause
#include "cable/protocol.hpp"

#include "host/follow.hpp"
#include "host/interrupt.hpp"
#include "host/peer.hpp"
#include "host/presence.hpp"
#include "host/shared_chip.hpp"
#include "host/wiring.hpp"

#include <cerrno>
#include <cstdio>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

namespace plx::twin::protocol
{

SocketCable &cable_of(Host &host)
{
    return *static_cast<SocketCable *>(host.cable);
}

uint64_t now_ms()
{
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1000 +
           static_cast<uint64_t>(now.tv_nsec) / 1'000'000;
}

void wait_for(int fd, int timeout_ms)
{
    pollfd waiting{fd, POLLIN, 0};
    poll(&waiting, 1, timeout_ms);
}

Message message_of(MessageType type)
{
    Message m;
    m.type = type;
    return m;
}

void send(SocketCable &cable, const Message &message, int fd)
{
    if (cable.connection >= 0 && !message_send(cable.connection, message, fd))
        shutdown(cable.connection, SHUT_RDWR);
}

void refuse(int connection, Refusal why)
{
    Message m = message_of(MessageType::refusal);
    m.refusal = why;
    message_send(connection, m, -1);
}

namespace
{
// A message a block, each of some hundred bytes to the kernel, may be under way at once.
void make_room(int connection)
{
    const int bytes = 1 << 20; // what the kernel allows at the most is enough
    setsockopt(connection, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
}
} // namespace

void greet(Host &host)
{
    SocketCable &cable = cable_of(host);
    make_room(cable.connection);
    Message m = message_of(MessageType::greeting);
    for (unsigned i = 0; i < window_count; i++)
        m.bar_bytes[i] = host.self.bar_bytes[i];
    m.write_rid = host.self.write_rid;
    m.read_rid = host.self.read_rid;
    m.wiring = wiring_word(wiring_of(host.config));
    cable.stage = Stage::greeting;
    cable.greeting_since_ms = now_ms();
    send(cable, m, host.one_chip ? host.chip_fd : host.peer_chip_fd);
}

void disconnect(Host &host)
{
    SocketCable &cable = cable_of(host);
    Locked locked(host);
    for (int *fd : {&cable.connection, &cable.peer_lifeline}) {
        if (*fd >= 0)
            close(*fd);
        *fd = -1;
    }
    cable.stage = Stage::none;
    cable.answered = cable.asked = cable.wanted;
    cable.late = false;
    peer_lost(host);
    pthread_cond_broadcast(&cable.answer);
}

void send_chip(Host &host)
{
    SocketCable &cable = cable_of(host);
    if (cable.stage != Stage::chips)
        return;
    send(cable, message_of(MessageType::chip), host.chip_fd);
    if (cable.lifeline.reader >= 0)
        send(cable, message_of(MessageType::lifeline), cable.lifeline.reader);
}

namespace
{
void send_exposed(Host &host)
{
    for (uint32_t slot = 0; slot < max_blocks; slot++) {
        const Region now = exposed(host, slot);
        if (same_region(now, host.announced[slot]))
            continue;
        Message m = message_of(MessageType::memory);
        m.slot = slot;
        m.present = now.present ? 1 : 0;
        m.bus = now.bus;
        m.bytes = now.bytes;
        m.page_bytes = now.page_bytes;
        send(cable_of(host), m, now.generation != 0 ? host.blocks[slot].fd : -1);
        host.announced[slot] = now;
    }
}

// Unless one is under way.
void ask_to_follow(Host &host)
{
    SocketCable &cable = cable_of(host);
    if (cable.asked != cable.answered || cable.wanted == cable.asked)
        return;
    send_exposed(host);
    cable.asked = cable.wanted;
    Message m = message_of(MessageType::follow);
    m.sequence = cable.asked;
    send(cable, m, -1);
}

timespec in_us(uint32_t us)
{
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    const uint64_t ns = static_cast<uint64_t>(t.tv_nsec) + uint64_t{us} * 1000;
    t.tv_sec += static_cast<time_t>(ns / 1'000'000'000);
    t.tv_nsec = static_cast<long>(ns % 1'000'000'000);
    return t;
}

// The lock is free meanwhile: the thread needs it to take the answer, and to answer the other end,
// which may be waiting for us just so.
void await_answer(Host &host, uint64_t wanted)
{
    SocketCable &cable = cable_of(host);
    if (host.thread_known && pthread_equal(host.thread_self, pthread_self()) != 0)
        return;
    const timespec until = in_us(host.config.remap_wait_us);
    while (host.connected && !cable.late && cable.answered < wanted)
        if (pthread_cond_timedwait(&cable.answer, host.lock, &until) == ETIMEDOUT)
            cable.late = true;
}
} // namespace

void update_peer(Host &host)
{
    SocketCable &cable = cable_of(host);
    if (!host.connected)
        return;
    const uint64_t wanted = ++cable.wanted;
    ask_to_follow(host);
    await_answer(host, wanted);
}

// ---- what the other end says

const char *conflict_with(const Host &host, const Message &greeting)
{
    Wiring theirs;
    if (!wiring_from(greeting.wiring, &theirs))
        return "no wiring that this version knows there";
    return wiring_conflict(wiring_of(host.config), theirs);
}

namespace
{
bool is_bar_size(uint64_t bytes)
{
    return bytes >= facts::window_size_min && bytes <= uint64_t{64} << 30 &&
           (bytes & (bytes - 1)) == 0;
}

/// @param fd of a chip that the other end offers, taken over; -1: none. @return false to disconnect
bool take_offer(Host &host, int fd)
{
    if (fd < 0)
        return true;
    if (host.chip == nullptr && host.offered_chip_fd < 0) {
        host.offered_chip_fd = fd;
        return true;
    }
    if (host.chip != nullptr && host.one_chip)
        return take_offered_chip(host, fd, !cable_of(host).accepted);
    close(fd); // too late for a former chip: this host runs on another one
    return true;
}
} // namespace

bool take_greeting(Host &host, const Message &m, int fd)
{
    SocketCable &cable = cable_of(host);
    const bool sane = cable.stage == Stage::greeting && is_bar_size(m.bar_bytes[0]) &&
                      is_bar_size(m.bar_bytes[1]) && conflict_with(host, m) == nullptr;
    if (!sane) {
        if (fd >= 0)
            close(fd);
        return false;
    }
    host.peer = {{m.bar_bytes[0], m.bar_bytes[1]}, m.write_rid, m.read_rid};
    if (!take_offer(host, fd))
        return false;
    cable.stage = Stage::chips;
    return true;
}

namespace
{
bool take_their_chip(Host &host, int fd)
{
    SocketCable &cable = cable_of(host);
    if (cable.stage != Stage::chips || fd < 0) {
        if (fd >= 0)
            close(fd);
        return false;
    }
    if (!take_chip(host, fd))
        return false;
    cable.stage = Stage::up;
    peer_connected(host);
    return true;
}

void answer_follow(Host &host, uint64_t sequence)
{
    // What changed here is announced before the answer: the other end follows after it.
    follow(host);
    send_exposed(host);
    Message m = message_of(MessageType::followed);
    m.sequence = sequence;
    send(cable_of(host), m, -1);
}

bool take_answer(Host &host, uint64_t sequence)
{
    SocketCable &cable = cable_of(host);
    if (cable.asked == cable.answered || sequence != cable.asked)
        return false;
    cable.answered = sequence;
    cable.late = false;
    // What changed since this was asked is followed when its own answer comes.
    if (cable.wanted == cable.asked && follow(host))
        cable.wanted++;
    ask_to_follow(host);
    pthread_cond_broadcast(&cable.answer);
    return true;
}

bool take_lifeline(SocketCable &cable, int fd)
{
    const bool sane = cable.stage == Stage::up && cable.peer_lifeline < 0 && is_lifeline(fd);
    if (sane)
        cable.peer_lifeline = fd;
    else if (fd >= 0)
        close(fd);
    return sane;
}

// The other end gets a refusal; the end that runs already reports once why it stays alone.
void refuse_wiring(Host &host, const char *conflict)
{
    refuse(cable_of(host).connection, Refusal::wiring);
    if (!host.conflict_reported)
        fprintf(stderr, "plx twin: the ends of the cable %s do not fit: %s\n", host.cable_name,
                conflict);
    host.conflict_reported = true;
}
} // namespace

bool take(Host &host, const Message &m, int fd)
{
    const bool up = cable_of(host).stage == Stage::up;
    switch (m.type) {
    case MessageType::greeting:
        if (const char *conflict = conflict_with(host, m); conflict != nullptr)
            refuse_wiring(host, conflict);
        if (!take_greeting(host, m, fd))
            return false;
        if (host.chip != nullptr)
            send_chip(host);
        return true;
    case MessageType::chip:
        return take_their_chip(host, fd);
    case MessageType::lifeline:
        return take_lifeline(cable_of(host), fd);
    case MessageType::memory:
        if (up)
            return take_memory(host, m.slot, {m.present != 0, m.bus, m.bytes, m.page_bytes, 0}, fd);
        break;
    case MessageType::follow:
        if (up && fd < 0) {
            answer_follow(host, m.sequence);
            return true;
        }
        break;
    case MessageType::interrupt:
        if (up && fd < 0)
            return true; // looked at in each turn of the thread
        break;
    case MessageType::followed:
        if (up && fd < 0)
            return take_answer(host, m.sequence);
        break;
    default:
        break;
    }
    if (fd >= 0)
        close(fd);
    return false;
}

} // namespace plx::twin::protocol

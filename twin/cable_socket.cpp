// SPDX-License-Identifier: BSD-3-Clause
// A cable between two processes. The other one is a stranger: whatever it sends is checked, and
// nothing here ever waits for it but within a bound. One thread a host blocks in poll().
#include "host.hpp"
#include "interrupt.hpp"
#include "message.hpp"
#include "rendezvous.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

namespace plx::twin
{

namespace
{
constexpr int greet_ms = 500;     // attach() waits so long for a greeting of one that listens
constexpr int survivor_ms = 100;  // and so long for one that may hold our former chip
constexpr int stranger_ms = 1000; // an accepted connection must have greeted by then
constexpr int retry_ms = 200;     // between tries where neither connecting nor listening works
constexpr int bye_ms = 100;
constexpr int join_tries = 8;
constexpr int burst = 64; // messages handled before the thread looks around again

enum class Stage { none, greeting, chips, up };

struct SocketCable {
    Meeting meeting; // the listener; the connection moves to `connection`
    int connection = -1;
    bool accepted = false;
    Stage stage = Stage::none;
    uint64_t greeting_since_ms = 0;
    // Requests to follow: one is under way at a time, further ones are one more after it. So a
    // stopped process never finds more than a handful of messages, and a socket never fills.
    uint64_t wanted = 0;
    uint64_t asked = 0;
    uint64_t answered = 0;
    bool late = false; // the request under way ran out of time: no use in waiting for it again
    pthread_cond_t answer;
};

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

// One that does not take a message is treated as gone: the thread sees the end of the connection.
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

// A message a block, each of some hundred bytes to the kernel, may be under way at once.
void make_room(int connection)
{
    const int bytes = 1 << 20; // what the kernel allows at the most is enough
    setsockopt(connection, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
}

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

void hang_up(Host &host)
{
    SocketCable &cable = cable_of(host);
    Locked locked(host);
    if (cable.connection >= 0)
        close(cable.connection);
    cable.connection = -1;
    cable.stage = Stage::none;
    cable.answered = cable.asked = cable.wanted;
    cable.late = false;
    peer_went(host);
    pthread_cond_broadcast(&cable.answer);
}

void send_chip(Host &host)
{
    SocketCable &cable = cable_of(host);
    if (cable.stage == Stage::chips)
        send(cable, message_of(MessageType::chip), host.chip_fd);
}

void send_lent(Host &host)
{
    for (uint32_t slot = 0; slot < max_blocks; slot++) {
        const Region now = lent(host, slot);
        if (same_region(now, host.told[slot]))
            continue;
        Message m = message_of(MessageType::memory);
        m.slot = slot;
        m.present = now.present ? 1 : 0;
        m.bus = now.bus;
        m.bytes = now.bytes;
        m.page_bytes = now.page_bytes;
        send(cable_of(host), m, now.generation != 0 ? host.blocks[slot].fd : -1);
        host.told[slot] = now;
    }
}

// Unless one is under way.
void ask_to_follow(Host &host)
{
    SocketCable &cable = cable_of(host);
    if (cable.asked != cable.answered || cable.wanted == cable.asked)
        return;
    send_lent(host);
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

void tell(Host &host)
{
    SocketCable &cable = cable_of(host);
    if (!host.connected)
        return;
    const uint64_t wanted = ++cable.wanted;
    ask_to_follow(host);
    await_answer(host, wanted);
}

bool is_bar_size(uint64_t bytes)
{
    return bytes >= facts::window_size_min && bytes <= uint64_t{64} << 30 &&
           (bytes & (bytes - 1)) == 0;
}

// ---- what the other end says

const char *conflict_with(const Host &host, const Message &greeting)
{
    Wiring theirs;
    if (!wiring_from(greeting.wiring, &theirs))
        return "no wiring that this version knows there";
    return wiring_conflict(wiring_of(host.config), theirs);
}

/// @param fd of a chip that the other end offers, taken over; -1: none. @return false to hang up
bool take_offer(Host &host, int fd)
{
    if (fd < 0)
        return true;
    if (host.chip == nullptr && host.offered_chip_fd < 0) {
        host.offered_chip_fd = fd;
        return true;
    }
    if (host.chip != nullptr && host.one_chip)
        return meet_chip(host, fd, !cable_of(host).accepted);
    close(fd); // too late for a former chip: this host runs on another one
    return true;
}

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
    peer_came(host);
    return true;
}

void answer_follow(Host &host, uint64_t sequence)
{
    // What changed on our side is told along with the answer, after which the other end looks.
    follow(host);
    send_lent(host);
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
    if (follow(host))
        cable.wanted++;
    ask_to_follow(host);
    pthread_cond_broadcast(&cable.answer);
    return true;
}

// The other end is told; who runs already says once why it stays alone.
void refuse_wiring(Host &host, const char *conflict)
{
    refuse(cable_of(host).connection, Refusal::wiring);
    if (!host.conflict_told)
        fprintf(stderr, "plx twin: the ends of the cable %s do not fit: %s\n", host.cable_name,
                conflict);
    host.conflict_told = true;
}

/// @return false to hang up
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

// ---- before the thread runs: attach()

int refused(Host &host, Refusal why, Error *error)
{
    if (why == Refusal::version)
        return fail(error, -EPROTO, "the other end of %s speaks another version", host.cable_name);
    if (why == Refusal::wiring)
        return fail(error, -EINVAL, "the ends of the cable %s do not fit: another topology there",
                    host.cable_name);
    if (why == Refusal::wait)
        return -EAGAIN;
    return fail(error, -EBUSY, "the cable %s has two ends already", host.cable_name);
}

// The first answer of the other end. 0: greeted, or it may still come; -EAGAIN: try again.
int hear_greeting(Host &host, int timeout_ms, Error *error)
{
    SocketCable &cable = cable_of(host);
    Message m;
    int fd;
    wait_for(cable.connection, timeout_ms);
    switch (message_receive(cable.connection, &m, &fd)) {
    case Received::nothing:
        return 0;
    case Received::foreign:
        return fail(error, -EPROTO, "the other end of %s speaks another version", host.cable_name);
    case Received::message:
        if (m.type == MessageType::greeting) {
            const char *conflict = conflict_with(host, m);
            const bool taken = take_greeting(host, m, fd);
            if (conflict != nullptr)
                return fail(error, -EINVAL, "the ends of the cable %s do not fit: %s",
                            host.cable_name, conflict);
            return taken ? 0 : -EAGAIN;
        }
        if (fd >= 0)
            close(fd);
        return m.type == MessageType::refusal ? refused(host, m.refusal, error) : -EAGAIN;
    default:
        return -EAGAIN;
    }
}

void drop_connection(SocketCable &cable)
{
    close(cable.connection);
    cable.connection = -1;
    cable.stage = Stage::none;
}

bool accept_one(SocketCable &cable)
{
    const int fd = accept4(cable.meeting.listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return false;
    if (cable.connection >= 0) {
        refuse(fd, cable.stage == Stage::up ? Refusal::taken : Refusal::wait);
        close(fd);
        return true;
    }
    cable.connection = fd;
    cable.accepted = true;
    return true;
}

// A dead process's socket lay there: its other end may be about to look for us, with our chip.
void await_survivor(Host &host)
{
    SocketCable &cable = cable_of(host);
    wait_for(cable.meeting.listener, survivor_ms);
    if (!accept_one(cable))
        return;
    greet(host);
    if (hear_greeting(host, greet_ms, nullptr) != 0)
        drop_connection(cable);
}

int try_join(Host &host, Error *error)
{
    SocketCable &cable = cable_of(host);
    int code = meet(host.cable_name, &cable.meeting, error);
    if (code != 0)
        return code;
    if (cable.meeting.listener >= 0) {
        if (cable.meeting.was_stale)
            await_survivor(host);
        return 0;
    }
    cable.connection = cable.meeting.connection;
    if (is_own_process(cable.connection))
        code = fail(error, -EINVAL, "both ends of %s are in one process: use mem:<name> for that",
                    host.cable_name);
    else {
        greet(host);
        code = hear_greeting(host, greet_ms, error);
    }
    if (code != 0)
        drop_connection(cable);
    return code;
}

int join(Host &host, Error *error)
{
    auto *cable = new (std::nothrow) SocketCable;
    if (cable == nullptr)
        return fail(error, -ENOMEM, "no memory for a cable");
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&cable->answer, &monotonic);
    pthread_condattr_destroy(&monotonic);
    host.cable = cable;
    int code = -EAGAIN;
    for (int i = 0; code == -EAGAIN && i < join_tries; i++) {
        if (i > 0)
            poll(nullptr, 0, retry_ms);
        code = try_join(host, error);
    }
    if (code == -EAGAIN)
        code = fail(error, -EBUSY, "the cable %s is being taken by somebody else", host.cable_name);
    if (code != 0) {
        pthread_cond_destroy(&cable->answer);
        delete cable;
    }
    return code;
}

// ---- the thread

void rejoin(Host &host)
{
    SocketCable &cable = cable_of(host);
    Meeting found;
    Error ignored;
    if (meet(host.cable_name, &found, &ignored) != 0)
        return;
    Locked locked(host);
    cable.meeting = found;
    const int connection = found.connection;
    if (connection >= 0 && (cable.connection >= 0 || is_own_process(connection))) {
        close(connection);
    } else if (connection >= 0) {
        cable.connection = connection;
        cable.accepted = false;
        greet(host);
    }
}

/// @return false to hang up
bool handle_one(Host &host, const Message &m, int fd)
{
    if (m.type != MessageType::bye) {
        Locked locked(host);
        return take(host, m, fd);
    }
    if (fd >= 0)
        close(fd);
    // Before it goes for good we listen: whoever comes next in its place finds its chip here.
    if (cable_of(host).meeting.listener < 0)
        rejoin(host);
    return false;
}

void handle_connection(Host &host)
{
    SocketCable &cable = cable_of(host);
    for (int i = 0; i < burst; i++) {
        Message m;
        int fd;
        const Received received = message_receive(cable.connection, &m, &fd);
        if (received == Received::nothing)
            return;
        if (received == Received::foreign)
            refuse(cable.connection, Refusal::version);
        if (received != Received::message || !handle_one(host, m, fd)) {
            hang_up(host);
            return;
        }
    }
}

void handle_listener(Host &host)
{
    SocketCable &cable = cable_of(host);
    Locked locked(host);
    for (int i = 0; i < burst; i++) {
        const bool was_free = cable.connection < 0;
        if (!accept_one(cable))
            return;
        if (was_free)
            greet(host);
    }
}

// A connection that was accepted and does not greet makes room for others.
int time_left(const SocketCable &cable)
{
    if (cable.connection < 0)
        return cable.meeting.listener < 0 ? retry_ms : -1;
    if (!cable.accepted || cable.stage == Stage::up)
        return -1;
    const uint64_t spent = now_ms() - cable.greeting_since_ms;
    return spent >= stranger_ms ? 0 : static_cast<int>(stranger_ms - spent);
}

/// @return false to end
bool turn(Host &host)
{
    SocketCable &cable = cable_of(host);
    pollfd waiting[3] = {{host.wake_fd, POLLIN, 0}, {-1, POLLIN, 0}, {-1, POLLIN, 0}};
    int timeout = -1;
    {
        Locked locked(host);
        if (!host.frozen) {
            waiting[1].fd = cable.connection;
            waiting[2].fd = cable.meeting.listener;
            timeout = until_catch_up_ms(host, time_left(cable));
        }
    }
    if (poll(waiting, 3, timeout) == 0)
        catch_up(host);
    uint64_t count;
    [[maybe_unused]] const ssize_t n = read(host.wake_fd, &count, sizeof(count));
    {
        Locked locked(host);
        if (host.stop)
            return false;
        if (host.frozen)
            return true;
    }
    // The end of the old connection before a new one: who comes back at once is no third end.
    if (waiting[1].revents != 0)
        handle_connection(host);
    else if (cable.accepted && cable.connection >= 0 && time_left(cable) == 0)
        hang_up(host);
    if (waiting[2].revents != 0)
        handle_listener(host);
    if (cable.connection < 0 && cable.meeting.listener < 0)
        rejoin(host);
    return true;
}

void *run(void *arg)
{
    Host &host = *static_cast<Host *>(arg);
    {
        Locked locked(host);
        host.thread_self = pthread_self();
        host.thread_known = true;
    }
    while (turn(host)) {
        deliver_events(host);
        deliver_interrupt(host);
    }
    return nullptr;
}

void unfreeze(Host &host)
{
    wake(host); // the thread first: it takes the answer
    if (follow(host))
        tell(host);
}

void interrupt(Host &host)
{
    send(cable_of(host), message_of(MessageType::interrupt), -1);
}

void await_hang_up(int connection, uint64_t until_ms)
{
    char rest[sizeof(Message)];
    for (uint64_t now = now_ms(); now < until_ms; now = now_ms()) {
        wait_for(connection, static_cast<int>(until_ms - now));
        const ssize_t bytes = recv(connection, rest, sizeof(rest), MSG_DONTWAIT);
        if (bytes == 0 || (bytes < 0 && errno != EAGAIN))
            return;
    }
}

// The thread has ended. Makes sure that the other end listens before it is let go.
void leave(Host &host)
{
    SocketCable &cable = cable_of(host);
    stop_listening(host.cable_name, &cable.meeting);
    if (cable.connection >= 0) {
        const uint64_t until = now_ms() + bye_ms;
        send(cable, message_of(MessageType::bye), -1);
        await_hang_up(cable.connection, until);
        close(cable.connection);
    }
    pthread_cond_destroy(&cable.answer);
    delete &cable;
}
} // namespace

const CableOps socket_cable = {join, send_chip, tell, unfreeze, interrupt, leave, run};

} // namespace plx::twin

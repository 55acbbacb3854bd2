// SPDX-License-Identifier: BSD-3-Clause
// A cable between two processes: how its ends find each other, and the one thread a host that
// listens there, blocked in poll().
#include "cable/ops.hpp"
#include "cable/protocol.hpp"
#include "host/error.hpp"
#include "host/follow.hpp"
#include "host/interrupt.hpp"
#include "host/presence.hpp"

#include <cerrno>
#include <cstdio>
#include <iterator>
#include <new>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

namespace plx::twin
{

namespace
{
using protocol::cable_of;
using protocol::SocketCable;
using protocol::Stage;

constexpr int greet_ms = 500;         // attach() waits so long for a greeting of one that listens
constexpr int survivor_ms = 100;      // and so long for one that may hold our former chip
constexpr int greeting_ms_max = 1000; // an accepted connection must have greeted by then
constexpr int retry_ms = 200;         // between tries where neither connecting nor listening works
constexpr int bye_ms = 100;
constexpr int join_tries = 8;
constexpr int burst = 64; // messages handled before the thread looks around again

// ---- before the thread runs: attach()

int refused(Host &host, Refusal why, Error *error)
{
    if (why == Refusal::version)
        return fail(error, -EPROTO, "the other end of %s speaks another version", host.cable_name);
    if (why == Refusal::wiring)
        return fail(error, -EINVAL, "the ends of the cable %s do not fit: another topology there",
                    host.cable_name);
    if (why == Refusal::user)
        return fail(
            error, -EACCES,
            "the other end of %s refuses processes of this user: start it with cable_uid=%u",
            host.cable_name, geteuid());
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
    protocol::wait_for(cable.connection, timeout_ms);
    switch (message_receive(cable.connection, &m, &fd)) {
    case Received::nothing:
        return 0;
    case Received::foreign:
        return fail(error, -EPROTO, "the other end of %s speaks another version", host.cable_name);
    case Received::message:
        if (m.type == MessageType::greeting) {
            const char *conflict = protocol::conflict_with(host, m);
            const bool taken = protocol::take_greeting(host, m, fd);
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

// Once: repeated attempts must not fill a log.
void report_stranger(Host &host, uid_t user)
{
    if (!host.stranger_reported)
        fprintf(stderr,
                "plx twin: a process of user %u was refused at the cable %s: cable_uid=%u lets it "
                "in\n",
                user, host.cable_name, user);
    host.stranger_reported = true;
}

// Descriptors may be free again soon: it goes on a moment later, and logs it once.
void starve(Host &host)
{
    SocketCable &cable = cable_of(host);
    cable.starved_until_ms = protocol::now_ms() + retry_ms;
    Error error{};
    fail_for_descriptors(&error, host.cable_name);
    if (!cable.starving_reported)
        fprintf(stderr, "plx twin: %s\n", error.text);
    cable.starving_reported = true;
}

bool is_starved(const SocketCable &cable)
{
    return cable.starved_until_ms > protocol::now_ms();
}

// A cable that cannot have what it needs would wait for its other end for ever.
bool has_descriptors()
{
    int taken[descriptors_needed];
    unsigned count = 0;
    while (count < descriptors_needed && (taken[count] = eventfd(0, EFD_CLOEXEC)) >= 0)
        count++;
    for (unsigned i = 0; i < count; i++)
        close(taken[i]);
    return count == descriptors_needed;
}

bool accept_one(Host &host)
{
    SocketCable &cable = cable_of(host);
    const int fd = accept4(cable.end.listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        if (errno == EMFILE || errno == ENFILE)
            starve(host);
        return false;
    }
    uid_t user = 0;
    if (!is_let_in(fd, host.config.cable_uid, &user)) {
        report_stranger(host, user);
        protocol::refuse(fd, Refusal::user);
        close(fd);
        return true;
    }
    if (cable.connection >= 0) {
        protocol::refuse(fd, cable.stage == Stage::up ? Refusal::taken : Refusal::wait);
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
    protocol::wait_for(cable.end.listener, survivor_ms);
    if (!accept_one(host) || cable.connection < 0)
        return;
    protocol::greet(host);
    if (hear_greeting(host, greet_ms, nullptr) != 0)
        drop_connection(cable);
}

int try_join(Host &host, Error *error)
{
    SocketCable &cable = cable_of(host);
    int code = connect_or_listen(host.cable_name, host.config.cable_uid, &cable.end, error);
    if (code != 0)
        return code;
    if (cable.end.listener >= 0) {
        if (cable.end.was_stale)
            await_survivor(host);
        return 0;
    }
    cable.connection = cable.end.connection;
    if (is_own_process(cable.connection))
        code = fail(error, -EINVAL, "both ends of %s are in one process: use mem:<name> for that",
                    host.cable_name);
    else {
        protocol::greet(host);
        code = hear_greeting(host, greet_ms, error);
    }
    if (code != 0)
        drop_connection(cable);
    return code;
}

int join(Host &host, Error *error)
{
    if (!has_descriptors())
        return fail_for_descriptors(error, host.cable_name);
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
        code = fail(error, -EBUSY, "another host is connecting to the cable %s", host.cable_name);
    if (code != 0) {
        pthread_cond_destroy(&cable->answer);
        delete cable;
        return code;
    }
    lifeline_open(host.config, &cable->lifeline);
    return 0;
}

// ---- the thread

void rejoin(Host &host)
{
    SocketCable &cable = cable_of(host);
    SocketEnd found;
    Error ignored;
    if (connect_or_listen(host.cable_name, host.config.cable_uid, &found, &ignored) != 0)
        return;
    Locked locked(host);
    cable.end = found;
    const int connection = found.connection;
    if (connection >= 0 && (cable.connection >= 0 || is_own_process(connection))) {
        close(connection);
    } else if (connection >= 0) {
        cable.connection = connection;
        cable.accepted = false;
        protocol::greet(host);
    }
}

/// @return false to hang up
bool handle_one(Host &host, const Message &m, int fd)
{
    if (m.type != MessageType::bye) {
        Locked locked(host);
        return protocol::take(host, m, fd);
    }
    if (fd >= 0)
        close(fd);
    // Before it goes for good we listen: the next process in its place finds its chip here.
    if (cable_of(host).end.listener < 0)
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
            protocol::refuse(cable.connection, Refusal::version);
        if (received == Received::starved)
            starve(host);
        if (received != Received::message || !handle_one(host, m, fd)) {
            protocol::disconnect(host);
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
        if (!accept_one(host))
            return;
        if (was_free && cable.connection >= 0)
            protocol::greet(host);
    }
}

// A connection that was accepted and does not greet makes room for others.
int time_left(const SocketCable &cable)
{
    if (cable.connection < 0)
        return cable.end.listener < 0 || is_starved(cable) ? retry_ms : -1;
    if (!cable.accepted || cable.stage == Stage::up)
        return -1;
    const uint64_t spent = protocol::now_ms() - cable.greeting_since_ms;
    return spent >= greeting_ms_max ? 0 : static_cast<int>(greeting_ms_max - spent);
}

/// @return false to end
bool turn(Host &host)
{
    SocketCable &cable = cable_of(host);
    // Of a lifeline its end alone.
    pollfd waiting[4] = {{host.wake_fd, POLLIN, 0}, {-1, POLLIN, 0}, {-1, POLLIN, 0}, {-1, 0, 0}};
    int timeout = -1;
    {
        Locked locked(host);
        if (!host.frozen) {
            waiting[1].fd = cable.connection;
            waiting[2].fd = is_starved(cable) ? -1 : cable.end.listener;
            waiting[3].fd = cable.peer_lifeline;
            timeout = until_catch_up_ms(host, time_left(cable));
        }
    }
    if (poll(waiting, std::size(waiting), timeout) == 0)
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
    // The end of the old connection before a new one: a peer that reconnects at once is no third
    // end.
    // What a process has sent before it died is heard first.
    if (waiting[1].revents != 0)
        handle_connection(host);
    else if (waiting[3].revents != 0)
        protocol::disconnect(host);
    else if (cable.accepted && cable.connection >= 0 && time_left(cable) == 0)
        protocol::disconnect(host);
    if (waiting[2].revents != 0)
        handle_listener(host);
    if (cable.connection < 0 && cable.end.listener < 0 && !is_starved(cable))
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
        protocol::update_peer(host);
}

void interrupt(Host &host)
{
    protocol::send(cable_of(host), protocol::message_of(MessageType::interrupt), -1);
}

void await_disconnect(int connection, uint64_t until_ms)
{
    char rest[sizeof(Message)];
    for (uint64_t now = protocol::now_ms(); now < until_ms; now = protocol::now_ms()) {
        protocol::wait_for(connection, static_cast<int>(until_ms - now));
        const ssize_t bytes = recv(connection, rest, sizeof(rest), MSG_DONTWAIT);
        if (bytes == 0 || (bytes < 0 && errno != EAGAIN))
            return;
    }
}

// The thread has ended. Makes sure that the other end listens before its connection is closed.
void leave(Host &host)
{
    SocketCable &cable = cable_of(host);
    stop_listening(host.cable_name, host.config.cable_uid, &cable.end);
    if (cable.connection >= 0) {
        const uint64_t until = protocol::now_ms() + bye_ms;
        protocol::send(cable, protocol::message_of(MessageType::bye), -1);
        await_disconnect(cable.connection, until);
        close(cable.connection);
    }
    if (cable.peer_lifeline >= 0)
        close(cable.peer_lifeline);
    lifeline_close(host.config, &cable.lifeline);
    pthread_cond_destroy(&cable.answer);
    delete &cable;
}
} // namespace

const CableOps socket_cable = {
    join, protocol::send_chip, protocol::update_peer, unfreeze, interrupt, leave, run};

} // namespace plx::twin

// SPDX-License-Identifier: BSD-3-Clause
// Sleeping on the bell. The two directions share it: each byte says for which event it was rung,
// and a thread leaves bytes that are for another one.
#include "client/client.hpp"
#include "ring/polling.hpp"

#include <algorithm>
#include <cerrno>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace ntbc;

namespace
{
constexpr uint32_t all_events = NTBCLIENT_READABLE | NTBCLIENT_WRITABLE;
constexpr int64_t look_again_ns = 10000000;

bool is_event_set(uint32_t events)
{
    return events != 0 && (events & ~all_events) == 0;
}

uint32_t ready_of(ntbclient_conn *conn, uint32_t events)
{
    End &end = *conn->end;
    if (!conn_is_open(conn))
        return end.error.load() != 0 ? events : 0;
    uint32_t ready = 0;
    if ((events & NTBCLIENT_READABLE) != 0 &&
        (end.discards.load() || end.receiver.look() > 0 || receive_end(conn) != 0 ||
         end.receiver.readable() > 0))
        ready |= NTBCLIENT_READABLE;
    if ((events & NTBCLIENT_WRITABLE) != 0 &&
        (send_end(conn) != 0 || end.sender.room(conn->ring_bytes / 4) >= conn->ring_bytes / 4 ||
         end.sender.is_broken()))
        ready |= NTBCLIENT_WRITABLE;
    return ready;
}

void arm_reader(ntbclient_conn *conn)
{
    Receiver &receiver = conn->end->receiver;
    if (receiver.publish_taken())
        conn_ring(conn, NTBCLIENT_WRITABLE);
    receiver.arm();
}

void arm_writer(ntbclient_conn *conn)
{
    Sender &sender = conn->end->sender;
    if (sender.has_unpublished() && sender.publish())
        conn_ring(conn, NTBCLIENT_READABLE);
    sender.arm();
}

void lock_bell(End &end)
{
    if (pthread_mutex_lock(&end.bell_lock) == EOWNERDEAD)
        pthread_mutex_consistent(&end.bell_lock);
}

// Takes bytes up to one that a thread that still sleeps was rung by.
void clear_bell(ntbclient_conn *conn)
{
    End &end = *conn->end;
    lock_bell(end);
    for (;;) {
        char bytes[64];
        const uint32_t others = end.armed.load();
        ssize_t got = recv(conn->bell, bytes, others != 0 ? 1 : sizeof(bytes),
                           MSG_DONTWAIT | (others != 0 ? MSG_PEEK : 0));
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
            end.bell_closed.store(true);
            break;
        }
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0 || (others == 0 && got < static_cast<ssize_t>(sizeof(bytes))))
            break;
        if (others == 0)
            continue;
        if ((static_cast<uint32_t>(bytes[0]) & others) != 0)
            break;
        recv(conn->bell, bytes, 1, MSG_DONTWAIT);
    }
    pthread_mutex_unlock(&end.bell_lock);
}

// @return 0, or -EINTR
int sleep_until(ntbclient_conn *conn, int64_t deadline)
{
    ntbclient *client = conn->client;
    const bool is_own = client->pid == getpid();
    const bool is_open = conn_is_open(conn);
    // Until it is open, another thread may take in, and have seen, what would have woken this one.
    const int64_t left = std::min(deadline - now_ns(), is_open ? INT64_MAX : look_again_ns);
    if (left <= 0)
        return 0;
    pollfd fds[2] = {{is_open ? conn->bell : -1, POLLIN, 0}, {is_own ? client->fd : -1, POLLIN, 0}};
    const timespec rest = {left / 1000000000, left % 1000000000};
    const int woken = ppoll(fds, 2, is_open && deadline == INT64_MAX ? nullptr : &rest, nullptr);
    const int error = woken < 0 ? -errno : 0;
    if (is_own && woken > 0 && fds[1].revents != 0)
        ntbclient_process(client);
    return error;
}

// The time is over, but this thread may have had no CPU for all of it.
int last_look(ntbclient_conn *conn, uint32_t events)
{
    if (!conn_is_open(conn) && conn->client->pid == getpid())
        ntbclient_process(conn->client);
    return static_cast<int>(ready_of(conn, events));
}

uint32_t poll_for_a_while(ntbclient_conn *conn, uint32_t events, int64_t deadline)
{
    std::atomic<uint32_t> &spin_ns = conn->end->spin_ns;
    const uint32_t spin = spin_ns.load(std::memory_order_relaxed);
    const int64_t end = std::min(deadline, now_ns() + spin);
    do {
        pause_lap();
        if (const uint32_t ready = ready_of(conn, events); ready != 0) {
            spin_ns.store(longer_spin(spin), std::memory_order_relaxed);
            return ready;
        }
    } while (now_ns() < end);
    spin_ns.store(shorter_spin(spin), std::memory_order_relaxed);
    return 0;
}
} // namespace

int ntbclient_conn_fd(struct ntbclient_conn *conn)
{
    if (conn == nullptr)
        return -EINVAL;
    return conn_is_open(conn) ? conn->bell : -ENOTCONN;
}

// What is armed is looked at again afterwards: an event that came before is seen here, one that
// comes later rings.
int ntbclient_arm(struct ntbclient_conn *conn, uint32_t events)
{
    if (conn == nullptr || !is_event_set(events))
        return -EINVAL;
    if (!conn_is_open(conn))
        return static_cast<int>(ready_of(conn, events));
    End &end = *conn->end;
    end.sleeps.fetch_add(1, std::memory_order_relaxed);
    end.armed.fetch_or(events);
    if ((events & NTBCLIENT_READABLE) != 0)
        arm_reader(conn);
    if ((events & NTBCLIENT_WRITABLE) != 0)
        arm_writer(conn);
    const uint32_t ready = ready_of(conn, events);
    if (ready != 0)
        ntbclient_disarm(conn, events);
    return static_cast<int>(ready);
}

void ntbclient_disarm(struct ntbclient_conn *conn, uint32_t events)
{
    if (conn == nullptr || !conn_is_open(conn) || !is_event_set(events))
        return;
    End &end = *conn->end;
    if ((events & NTBCLIENT_READABLE) != 0)
        end.receiver.disarm();
    if ((events & NTBCLIENT_WRITABLE) != 0)
        end.sender.disarm();
    end.armed.fetch_and(~events);
    clear_bell(conn);
}

int ntbclient_wait(struct ntbclient_conn *conn, uint32_t events, int timeout_ms)
{
    if (conn == nullptr || !is_event_set(events))
        return -EINVAL;
    const int64_t deadline = timeout_ms < 0 ? INT64_MAX : now_ns() + int64_t{timeout_ms} * 1000000;
    for (;;) {
        if (const uint32_t ready = ready_of(conn, events); ready != 0)
            return static_cast<int>(ready);
        if (now_ns() >= deadline)
            return last_look(conn, events);
        if (const uint32_t ready =
                conn_is_open(conn) ? poll_for_a_while(conn, events, deadline) : 0;
            ready != 0)
            return static_cast<int>(ready);
        if (const int ready = ntbclient_arm(conn, events); ready != 0)
            return ready;
        const int interrupted = sleep_until(conn, deadline);
        ntbclient_disarm(conn, events);
        if (interrupted != 0 && ready_of(conn, events) == 0)
            return interrupted;
    }
}

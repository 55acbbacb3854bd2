// SPDX-License-Identifier: BSD-3-Clause
#include "client/client.hpp"

#include <algorithm>
#include <cerrno>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>

namespace ntbc
{

namespace
{
int64_t now_ms()
{
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1000000;
}

// What has happened counts, whatever time it is: this thread may have had no CPU meanwhile.
// @return false when the time is over
bool wait_until(int socket, short events, int64_t deadline)
{
    for (;;) {
        const int64_t left = std::max<int64_t>(deadline - now_ms(), 0);
        pollfd one = {socket, events, 0};
        const int ready = poll(&one, 1, static_cast<int>(left));
        if (ready > 0)
            return true;
        if (ready == 0 && left == 0)
            return false;
    }
}

ntbclient_conn *find(ntbclient *client, uint64_t id)
{
    ntbclient_conn *conn = client->conns;
    while (conn != nullptr && conn->id != id)
        conn = conn->next;
    return conn;
}

void take_accepted(ntbclient *client, Parcel *parcel)
{
    ntbclient_listener *listener = client->listeners;
    while (listener != nullptr && listener->id != parcel->message.other)
        listener = listener->next;
    if (listener == nullptr) // closed meanwhile: the daemon ends what was not accepted
        return;
    ntbclient_conn *conn = conn_create(client);
    if (conn == nullptr || !conn_open(conn, parcel)) {
        Message close;
        close.type = Type::close;
        close.id = parcel->message.id;
        post(client, close);
        if (conn != nullptr)
            conn_destroy(conn);
        return;
    }
    conn->id = parcel->message.id;
    conn->listener = listener;
    ntbclient_conn **last = &client->conns;
    while (*last != nullptr)
        last = &(*last)->next;
    *last = conn;
}

// An event that names nothing of ours crossed our close.
void take_event(ntbclient *client, Parcel *parcel)
{
    const Message &m = parcel->message;
    if (m.type == Type::accepted) {
        take_accepted(client, parcel);
        return;
    }
    if (m.type == Type::peer) {
        take_peer_host(client, m.id);
        return;
    }
    ntbclient_conn *conn = find(client, m.id);
    if (conn == nullptr)
        return;
    if (m.type == Type::connected) {
        if (!conn_open(conn, parcel))
            conn_fail(conn, -EPROTO);
    } else if (m.type == Type::failed || m.type == Type::ended) {
        conn_fail(conn, m.status < 0 ? m.status : -ECONNRESET);
    }
}

// @return false: nothing more is there, or ever will be
bool take_one(ntbclient *client, Parcel *parcel)
{
    const Received received = message_receive(client->socket, parcel);
    if (received == Received::nothing)
        return false;
    // Without its descriptors a connection cannot be opened, and is closed; the others live on.
    if (received != Received::message && received != Received::starved) {
        give_up(client);
        return false;
    }
    return true;
}
} // namespace

void give_up(ntbclient *client)
{
    client->gone.store(true);
    client->peer_host.store(0);
    // Not closed: the descriptor may be in somebody's poll set, where it is now always readable.
    shutdown(client->socket, SHUT_RDWR);
    for (ntbclient_conn *conn = client->conns; conn != nullptr; conn = conn->next) {
        conn_fail(conn, -ECONNRESET);
        conn_abandon(conn);
    }
}

void take_peer_host(ntbclient *client, uint64_t number)
{
    if (number > NTBCLIENT_MAX_HOST)
        give_up(client);
    else
        client->peer_host.store(static_cast<uint16_t>(number));
}

uint32_t take_in(ntbclient *client, const ntbclient_listener *listener)
{
    Parcel parcel;
    uint32_t taken = 0;
    for (; !client->gone.load() && take_one(client, &parcel); take_event(client, &parcel))
        if (listener == nullptr || parcel.message.type != Type::accepted ||
            parcel.message.other != listener->id)
            taken++;
    return taken;
}

void leave_news(ntbclient *client)
{
    // A full counter is readable, which is all that it has to be.
    eventfd_write(client->news, 1);
}

void post(ntbclient *client, const Message &message)
{
    const int64_t deadline = now_ms() + answer_timeout_ms;
    int sent = client->gone.load() ? -EPIPE : message_send(client->socket, message);
    while (sent == -EAGAIN)
        sent = wait_until(client->socket, POLLOUT, deadline) ? message_send(client->socket, message)
                                                             : -EPIPE;
    if (sent != 0 && !client->gone.load())
        give_up(client);
}

int ask(ntbclient *client, Message *request, Message *answer,
        void (*entry)(void *, const Message &), void *context, int *fd)
{
    const int64_t deadline = now_ms() + answer_timeout_ms;
    request->request = ++client->requests;
    post(client, *request);
    Parcel parcel;
    uint32_t entries = 0;
    while (!client->gone.load()) {
        if (!take_one(client, &parcel)) {
            client->timed_out =
                !client->gone.load() && !wait_until(client->socket, POLLIN, deadline);
            if (client->timed_out)
                give_up(client);
            continue;
        }
        const Message &m = parcel.message;
        const bool is_ours = m.request == request->request;
        if (m.type == Type::answer && is_ours) {
            *answer = m;
            if (fd != nullptr && parcel.count == 1)
                *fd = parcel.take_fd(0);
            return m.status <= 0 ? m.status : -EPROTO;
        }
        if (m.type == Type::entry && is_ours && entry != nullptr && entries++ < list_batch) {
            entry(context, m);
            continue;
        }
        take_event(client, &parcel);
        leave_news(client);
    }
    return -ECONNRESET;
}

int ask_alone(ntbclient *client, Message *request, Message *answer)
{
    pthread_mutex_lock(&client->lock);
    const int status = ask(client, request, answer);
    pthread_mutex_unlock(&client->lock);
    return status;
}

} // namespace ntbc

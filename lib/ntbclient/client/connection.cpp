// SPDX-License-Identifier: BSD-3-Clause
#include "client/client.hpp"
#include "sized.hpp"
#include "wire/sealed.hpp"

#include <cerrno>
#include <cstdlib>
#include <new>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

namespace ntbc
{

namespace
{
void make_lock(pthread_mutex_t *lock)
{
    pthread_mutexattr_t shared;
    pthread_mutexattr_init(&shared);
    pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&shared, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(lock, &shared);
    pthread_mutexattr_destroy(&shared);
}
} // namespace

ntbclient_conn *conn_create(ntbclient *client)
{
    void *memory = malloc(sizeof(ntbclient_conn));
    void *end =
        mmap(nullptr, sizeof(End), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == nullptr || end == MAP_FAILED) {
        free(memory);
        if (end != MAP_FAILED)
            munmap(end, sizeof(End));
        return nullptr;
    }
    auto *conn = new (memory) ntbclient_conn;
    conn->client = client;
    conn->end = new (end) End;
    make_lock(&conn->end->bell_lock);
    return conn;
}

// The daemon is another program as well: sizes and descriptors are checked before they are used.
bool conn_open(ntbclient_conn *conn, Parcel *parcel)
{
    const Message &m = parcel->message;
    if (conn->page != nullptr || parcel->count != 2 || !is_ring_size(m.ring_bytes) || m.end > 1 ||
        !sealed_check(parcel->fd(0), memory_bytes(m.ring_bytes)) || !is_bell(parcel->fd(1)))
        return false;
    auto *memory = static_cast<uint8_t *>(sealed_map(parcel->fd(0), memory_bytes(m.ring_bytes)));
    if (memory == nullptr)
        return false;
    conn->page = reinterpret_cast<Page *>(memory);
    conn->ring_bytes = m.ring_bytes;
    conn->index = m.end;
    conn->peer_uid = m.uid;
    conn->peer_gid = m.gid;
    conn->bell = parcel->take_fd(1);
    uint8_t *const rings[2] = {memory + page_bytes, memory + page_bytes + m.ring_bytes};
    const unsigned own = m.end;
    conn->end->sender.open(&conn->page->direction[own], rings[own], m.ring_bytes);
    conn->end->receiver.open(&conn->page->direction[1 - own], rings[1 - own], m.ring_bytes);
    conn->end->state.store(NTBCLIENT_OPEN, std::memory_order_release);
    return true;
}

void conn_destroy(ntbclient_conn *conn)
{
    if (conn->page != nullptr)
        munmap(conn->page, memory_bytes(conn->ring_bytes));
    if (conn->bell >= 0)
        close(conn->bell);
    munmap(conn->end, sizeof(End));
    free(conn);
}

void unlink_conn(ntbclient_conn **list, const ntbclient_conn *conn)
{
    while (*list != nullptr && *list != conn)
        list = &(*list)->next;
    if (*list != nullptr)
        *list = (*list)->next;
}

void conn_fail(ntbclient_conn *conn, int error)
{
    int none = 0;
    conn->end->error.compare_exchange_strong(none, error);
    conn->end->state.store(NTBCLIENT_ENDED, std::memory_order_release);
}

void conn_finish(ntbclient_conn *conn, bool reset)
{
    if (conn->page == nullptr)
        return;
    const bool unread = conn->end->receiver.look() > 0;
    conn->end->sender.publish_end(mark_end | mark_closed | (reset || unread ? mark_reset : 0));
    // Whoever sleeps there, for room or for bytes, learns of the end.
    conn_ring(conn, NTBCLIENT_READABLE);
    conn_ring(conn, NTBCLIENT_WRITABLE);
}

void conn_abandon(ntbclient_conn *conn)
{
    if (conn->page == nullptr)
        return;
    mark_gone(*conn->page, gone_end(conn->index));
    conn_ring(conn, NTBCLIENT_READABLE);
    conn_ring(conn, NTBCLIENT_WRITABLE);
}

// No flag of the socket matters, nor does a full one: then the bell is readable already.
void conn_ring(ntbclient_conn *conn, uint32_t event)
{
    const char byte = static_cast<char>(event);
    send(conn->bell, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    conn->end->rings.fetch_add(1, std::memory_order_relaxed);
}

int receive_end(ntbclient_conn *conn)
{
    End &end = *conn->end;
    const uint64_t said = end.receiver.end();
    if (end.receiver.is_broken() || (said & mark_reset) != 0)
        conn_fail(conn, -ECONNRESET);
    else if (said != 0)
        return 1;
    // Both come after the last bytes of the other end: it is worth to look once more.
    else if (load(conn->page->gone) != 0 || end.bell_closed.load()) {
        if (end.receiver.look() > 0)
            return 0;
        if (end.receiver.end() == mark_end || end.receiver.end() == (mark_end | mark_closed))
            return 1;
        conn_fail(conn, -ECONNRESET);
    }
    return end.error.load();
}

int send_end(ntbclient_conn *conn)
{
    End &end = *conn->end;
    if (const int error = end.error.load(std::memory_order_relaxed); error != 0)
        return error;
    if (end.sender.has_ended())
        return -EPIPE;
    // In this order: an orderly end was published before its daemon says that the end is gone.
    const uint32_t gone = load(conn->page->gone);
    const bool unreachable = gone != 0 || end.bell_closed.load();
    const uint64_t said = load(conn->page->direction[1 - conn->index].published) & marks;
    if ((said & mark_reset) != 0 || unreachable) {
        if ((said & (mark_reset | mark_closed)) == mark_closed && (gone & gone_revoked) == 0)
            return -EPIPE;
        conn_fail(conn, -ECONNRESET);
        return end.error.load();
    }
    return (said & mark_closed) != 0 ? -EPIPE : 0;
}

} // namespace ntbc

using namespace ntbc;

int ntbclient_connect(struct ntbclient *client, const char *name,
                      const struct ntbclient_options *options, struct ntbclient_conn **out)
{
    Message request;
    request.type = Type::connect;
    if (client == nullptr || out == nullptr)
        return -EINVAL;
    if (const int wrong = name_request(name, options, &request); wrong != 0)
        return wrong;
    ntbclient_conn *conn = conn_create(client);
    if (conn == nullptr)
        return -ENOMEM;
    Message answer;
    pthread_mutex_lock(&client->lock);
    const int status = ask(client, &request, &answer);
    if (status == 0) {
        conn->id = answer.id;
        conn->next = client->conns;
        client->conns = conn;
        if (take_in(client) != 0)
            leave_news(client);
    }
    pthread_mutex_unlock(&client->lock);
    if (status != 0) {
        conn_destroy(conn);
        return status;
    }
    *out = conn;
    return 0;
}

void ntbclient_close(struct ntbclient_conn *conn)
{
    if (conn == nullptr)
        return;
    conn_finish(conn, conn->end->discards.load());
    ntbclient *client = conn->client;
    Message close;
    close.type = Type::close;
    close.id = conn->id;
    pthread_mutex_lock(&client->lock);
    unlink_conn(&client->conns, conn);
    post(client, close);
    pthread_mutex_unlock(&client->lock);
    conn_destroy(conn);
}

void ntbclient_release(struct ntbclient_conn *conn)
{
    if (conn == nullptr)
        return;
    ntbclient *client = conn->client;
    pthread_mutex_lock(&client->lock);
    unlink_conn(&client->conns, conn);
    pthread_mutex_unlock(&client->lock);
    conn_destroy(conn);
}

void ntbclient_reset(struct ntbclient_conn *conn)
{
    if (conn == nullptr)
        return;
    conn->end->discards.store(true);
    conn_fail(conn, -ECONNRESET);
    conn_finish(conn, true);
}

int ntbclient_shutdown(struct ntbclient_conn *conn)
{
    if (conn == nullptr)
        return -EINVAL;
    End &end = *conn->end;
    if (const int error = end.error.load(); error != 0)
        return error;
    if (!conn_is_open(conn))
        return -ENOTCONN;
    if (!end.sender.has_ended() && end.sender.publish_end(mark_end))
        conn_ring(conn, NTBCLIENT_READABLE);
    return 0;
}

int ntbclient_info_get(struct ntbclient_conn *conn, struct ntbclient_info *info)
{
    if (conn == nullptr || info == nullptr)
        return -EINVAL;
    const End &end = *conn->end;
    ntbclient_info now = {};
    now.size = sizeof(now);
    now.id = conn->id;
    now.state = static_cast<ntbclient_state>(end.state.load());
    now.error = end.error.load();
    if (conn_is_open(conn)) {
        now.ring_bytes = conn->ring_bytes;
        now.peer_uid = conn->peer_uid;
        now.peer_gid = conn->peer_gid;
        now.accepted = conn->index;
        now.sent = end.sender.sent();
        now.received = end.receiver.taken();
    }
    now.rings = end.rings.load();
    now.sleeps = end.sleeps.load();
    return ntb::write_sized(now, sizeof(now), *info);
}

// SPDX-License-Identifier: BSD-3-Clause
#include "client/client.hpp"
#include "sized.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <new>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

using namespace ntbc;

namespace
{
int connect_to(const char *path)
{
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    if (strnlen(path, sizeof(address.sun_path)) >= sizeof(address.sun_path))
        return -EINVAL;
    memcpy(address.sun_path, path, strlen(path));
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    // Against a daemon that has stopped: a connect would wait for room in its backlog for ever.
    const timeval patience = {answer_timeout_ms / 1000, 0};
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    if (connect(fd, reinterpret_cast<const sockaddr *>(&address), sizeof(address)) == 0)
        return fd;
    const int error = errno == EAGAIN ? -ETIMEDOUT : errno == EPROTOTYPE ? -EPROTO : -errno;
    close(fd);
    return error;
}

int make_descriptor(ntbclient *client)
{
    client->news = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    client->fd = epoll_create1(EPOLL_CLOEXEC);
    epoll_event readable = {};
    readable.events = EPOLLIN;
    for (const int fd : {client->news, client->socket})
        if (epoll_ctl(client->fd, EPOLL_CTL_ADD, fd, &readable) != 0)
            return -errno;
    return 0;
}

// The reason of a refusal: the daemon's answer, if it could still be read.
int greet(ntbclient *client)
{
    Message hello;
    hello.type = Type::hello;
    Message answer;
    const int status = ask(client, &hello, &answer);
    if (client->timed_out)
        return -ETIMEDOUT;
    if (status != 0)
        return status == -ECONNRESET ? -EPROTO : status;
    if (answer.id == 0 || answer.id > NTBCLIENT_MAX_HOST)
        return -EPROTO;
    client->host = static_cast<uint16_t>(answer.id);
    take_peer_host(client, answer.other);
    return client->gone.load() ? -EPROTO : 0;
}

struct Listing {
    ntbclient_entry *entries;
    size_t size;
    uint32_t room;
    uint32_t count;
};

uint32_t direction_of(uint32_t state, const ntbclient_direction (&names)[6])
{
    return state < 6 ? names[state] : NTBCLIENT_BROKEN;
}

// Bytes of a key: addresses and ports of both ends, the one that connected first.
void take_tuple(const Message &m, ntbclient_entry *entry)
{
    constexpr ntbclient_direction sending[] = {NTBCLIENT_BY_TCP,  NTBCLIENT_GRANTED,
                                               NTBCLIENT_BY_RING, NTBCLIENT_AT_END,
                                               NTBCLIENT_BROKEN,  NTBCLIENT_BROKEN};
    constexpr ntbclient_direction receiving[] = {NTBCLIENT_BY_TCP,  NTBCLIENT_GRANTED,
                                                 NTBCLIENT_BY_RING, NTBCLIENT_GRANTED,
                                                 NTBCLIENT_AT_END,  NTBCLIENT_BROKEN};
    entry->claimed = 1;
    entry->sending = direction_of(m.directions & 0xFF, sending);
    entry->receiving = direction_of(m.directions >> 8 & 0xFF, receiving);
    entry->sent_by_tcp = m.sent_by_tcp;
    entry->received_by_tcp = m.received_by_tcp;
    for (size_t i = 0; i < 2; i++) {
        const uint8_t *at = m.key + i * 18;
        memcpy(entry->address[i], at, 16);
        entry->port[i] = static_cast<uint16_t>(at[16] << 8 | at[17]);
    }
}

void take_entry(void *context, const Message &m)
{
    auto *listing = static_cast<Listing *>(context);
    if (listing->count == listing->room)
        return;
    ntbclient_entry entry = {};
    entry.size = sizeof(entry);
    entry.id = m.id;
    entry.state = m.state;
    entry.end = m.end;
    entry.local = (m.flags & flag_local) != 0 ? 1 : 0;
    entry.carried = (m.flags & flag_carried) != 0 ? 1 : 0;
    entry.uid = m.uid;
    entry.pid = m.pid;
    entry.ring_bytes = m.ring_bytes;
    entry.sent = m.sent;
    entry.received = m.received;
    entry.segment_bytes = m.key_kind == key_tuple ? 0 : m.other;
    if (m.key_kind == key_tuple)
        take_tuple(m, &entry);
    else
        memcpy(entry.name, m.key, m.key_bytes);
    auto *at = reinterpret_cast<ntbclient_entry *>(reinterpret_cast<uint8_t *>(listing->entries) +
                                                   listing->count++ * listing->size);
    at->size = listing->size;
    ntb::write_sized(entry, sizeof(entry), *at);
}
} // namespace

int ntbclient_attach(const char *path, struct ntbclient **out)
{
    if (path == nullptr || out == nullptr)
        return -EINVAL;
    const int socket = connect_to(path);
    if (socket < 0)
        return socket;
    void *memory = malloc(sizeof(ntbclient));
    if (memory == nullptr) {
        close(socket);
        return -ENOMEM;
    }
    auto *client = new (memory) ntbclient;
    client->socket = socket;
    client->pid = getpid();
    int status = make_descriptor(client);
    if (status == 0)
        status = greet(client);
    if (status != 0) {
        ntbclient_detach(client);
        return status;
    }
    *out = client;
    return 0;
}

// The daemon learns of it by the end of the socket, and closes what is left.
void ntbclient_detach(struct ntbclient *client)
{
    if (client == nullptr)
        return;
    while (client->conns != nullptr) {
        ntbclient_conn *conn = client->conns;
        client->conns = conn->next;
        conn_finish(conn, true);
        conn_destroy(conn);
    }
    while (client->listeners != nullptr) {
        ntbclient_listener *listener = client->listeners;
        client->listeners = listener->next;
        free(listener);
    }
    segments_free(client);
    for (const int fd : {client->fd, client->news, client->socket})
        if (fd >= 0)
            close(fd);
    free(client);
}

uint16_t ntbclient_host(const struct ntbclient *client)
{
    return client != nullptr ? client->host : 0;
}

uint16_t ntbclient_peer_host(const struct ntbclient *client)
{
    return client != nullptr ? client->peer_host.load() : 0;
}

int ntbclient_fd(const struct ntbclient *client)
{
    return client != nullptr ? client->fd : -EINVAL;
}

int ntbclient_process(struct ntbclient *client)
{
    if (client == nullptr)
        return -EINVAL;
    pthread_mutex_lock(&client->lock);
    eventfd_t count;
    eventfd_read(client->news, &count);
    take_in(client);
    pthread_mutex_unlock(&client->lock);
    return client->gone.load() ? -ECONNRESET : 0;
}

int ntbclient_list(struct ntbclient *client, uint64_t after, struct ntbclient_entry *entries,
                   uint32_t n)
{
    if (client == nullptr || entries == nullptr || n == 0 ||
        entries->size < sizeof(ntbclient_entry) || entries->size > ntb::max_struct_bytes)
        return -EINVAL;
    Listing listing = {entries, entries->size, std::min(n, list_batch), 0};
    Message request;
    request.type = Type::list;
    request.id = after;
    request.backlog = listing.room;
    Message answer;
    pthread_mutex_lock(&client->lock);
    const int status = ask(client, &request, &answer, take_entry, &listing);
    pthread_mutex_unlock(&client->lock);
    return status != 0 ? status : static_cast<int>(listing.count);
}

int ntbclient_revoke(struct ntbclient *client, uint64_t id)
{
    if (client == nullptr)
        return -EINVAL;
    Message request;
    request.type = Type::revoke;
    request.id = id;
    Message answer;
    return ask_alone(client, &request, &answer);
}

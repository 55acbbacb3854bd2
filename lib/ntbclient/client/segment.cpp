// SPDX-License-Identifier: BSD-3-Clause
#include "client/client.hpp"
#include "sized.hpp"
#include "wire/sealed.hpp"

#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <new>
#include <sys/mman.h>
#include <unistd.h>

using namespace ntbc;

namespace
{
// Its answer may have come too late for the caller, or without what it needs.
void end_at_daemon(ntbclient *client, uint64_t id)
{
    Message m;
    m.type = Type::end_segment;
    m.id = id;
    post(client, m);
}

// Pages that are taken here count as this process's, and no access waits for them later.
int map_segment(ntbclient_segment *segment)
{
    if (segment->writable && fallocate(segment->fd, 0, 0, static_cast<off_t>(segment->bytes)) != 0)
        return -ENOMEM;
    const int rights = segment->writable ? PROT_READ | PROT_WRITE : PROT_READ;
    void *at = mmap(nullptr, segment->bytes, rights, MAP_SHARED, segment->fd, 0);
    if (at == MAP_FAILED)
        return -ENOMEM;
    segment->data = at;
    return 0;
}

void free_segment(ntbclient_segment *segment)
{
    if (segment->data != nullptr)
        munmap(segment->data, segment->bytes);
    if (segment->fd >= 0)
        close(segment->fd);
    free(segment);
}

// The daemon is another program as well: what it sends is checked before it is mapped.
int take_segment(ntbclient *client, Message *request, bool is_own, ntbclient_segment **out)
{
    void *memory = malloc(sizeof(ntbclient_segment));
    if (memory == nullptr)
        return -ENOMEM;
    auto *segment = new (memory) ntbclient_segment;
    segment->client = client;
    segment->is_own = is_own;
    Message answer;
    pthread_mutex_lock(&client->lock);
    int status = ask(client, request, &answer, nullptr, nullptr, &segment->fd);
    const bool is_made = status == 0;
    segment->id = answer.id;
    segment->bytes = answer.other;
    if (is_made && segment->fd < 0)
        status = -EMFILE;
    else if (is_made &&
             (!is_segment_size(segment->bytes) || (is_own && segment->bytes != request->id) ||
              !sealed_check(segment->fd, segment->bytes)))
        status = -EPROTO;
    // A large one takes its time, and other threads need not wait for it.
    pthread_mutex_unlock(&client->lock);
    if (status == 0) {
        segment->writable = (fcntl(segment->fd, F_GETFL) & O_ACCMODE) == O_RDWR;
        status = map_segment(segment);
    }
    pthread_mutex_lock(&client->lock);
    if (status == 0) {
        segment->next = client->segments;
        client->segments = segment;
        *out = segment;
    } else if (is_made) {
        end_at_daemon(client, segment->id);
    }
    pthread_mutex_unlock(&client->lock);
    if (status != 0)
        free_segment(segment);
    return status;
}
} // namespace

namespace ntbc
{

void segments_free(ntbclient *client)
{
    while (client->segments != nullptr) {
        ntbclient_segment *segment = client->segments;
        client->segments = segment->next;
        free_segment(segment);
    }
}

} // namespace ntbc

int ntbclient_segment_create(struct ntbclient *client, uint64_t bytes,
                             struct ntbclient_segment **out)
{
    if (client == nullptr || out == nullptr || !is_segment_size(bytes))
        return -EINVAL;
    Message request;
    request.type = Type::make_segment;
    request.id = bytes;
    return take_segment(client, &request, true, out);
}

int ntbclient_segment_open(struct ntbclient_conn *conn, uint64_t number,
                           struct ntbclient_segment **out)
{
    if (conn == nullptr || out == nullptr)
        return -EINVAL;
    Message request;
    request.type = Type::open_segment;
    request.id = conn->id;
    request.other = number;
    return take_segment(conn->client, &request, false, out);
}

void ntbclient_segment_destroy(struct ntbclient_segment *segment)
{
    if (segment == nullptr)
        return;
    ntbclient *client = segment->client;
    pthread_mutex_lock(&client->lock);
    ntbclient_segment **at = &client->segments;
    while (*at != segment)
        at = &(*at)->next;
    *at = segment->next;
    end_at_daemon(client, segment->id);
    pthread_mutex_unlock(&client->lock);
    free_segment(segment);
}

int ntbclient_segment_info_get(const struct ntbclient_segment *segment,
                               struct ntbclient_segment_info *info)
{
    if (segment == nullptr || info == nullptr)
        return -EINVAL;
    ntbclient_segment_info now = {};
    now.data = segment->data;
    now.bytes = segment->bytes;
    now.fd = segment->fd;
    now.writable = segment->writable ? 1 : 0;
    return ntb::write_sized(now, sizeof(now), *info);
}

int ntbclient_segment_grant(struct ntbclient_conn *conn, struct ntbclient_segment *segment,
                            uint32_t flags, uint64_t *number)
{
    if (conn == nullptr || segment == nullptr || number == nullptr ||
        conn->client != segment->client || !segment->is_own ||
        (flags & ~NTBCLIENT_SEGMENT_WRITABLE) != 0)
        return -EINVAL;
    Message request;
    request.type = Type::grant;
    request.id = conn->id;
    request.other = segment->id;
    request.flags = flags != 0 ? flag_writable : 0;
    Message answer;
    const int status = ask_alone(conn->client, &request, &answer);
    if (status == 0)
        *number = answer.id;
    return status;
}

int ntbclient_segment_revoke(struct ntbclient_conn *conn, uint64_t number)
{
    if (conn == nullptr)
        return -EINVAL;
    Message request;
    request.type = Type::ungrant;
    request.id = conn->id;
    request.other = number;
    Message answer;
    return ask_alone(conn->client, &request, &answer);
}

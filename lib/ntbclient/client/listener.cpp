// SPDX-License-Identifier: BSD-3-Clause
#include "client/client.hpp"

#include <cerrno>
#include <cstdlib>
#include <new>

using namespace ntbc;

int ntbclient_listen(struct ntbclient *client, const char *name,
                     const struct ntbclient_options *options, struct ntbclient_listener **out)
{
    Message request;
    request.type = Type::listen;
    if (client == nullptr || out == nullptr)
        return -EINVAL;
    if (const int wrong = name_request(name, options, &request); wrong != 0)
        return wrong;
    void *memory = malloc(sizeof(ntbclient_listener));
    if (memory == nullptr)
        return -ENOMEM;
    auto *listener = new (memory) ntbclient_listener;
    listener->client = client;
    Message answer;
    pthread_mutex_lock(&client->lock);
    const int status = ask(client, &request, &answer);
    if (status == 0) {
        listener->id = answer.id;
        listener->next = client->listeners;
        client->listeners = listener;
    }
    pthread_mutex_unlock(&client->lock);
    if (status != 0) {
        free(listener);
        return status;
    }
    *out = listener;
    return 0;
}

void ntbclient_listener_close(struct ntbclient_listener *listener)
{
    if (listener == nullptr)
        return;
    ntbclient *client = listener->client;
    Message request;
    request.type = Type::unlisten;
    request.id = listener->id;
    Message answer;
    pthread_mutex_lock(&client->lock);
    // The answer is behind the last connection that was accepted for it.
    ask(client, &request, &answer);
    ntbclient_listener **at = &client->listeners;
    while (*at != listener)
        at = &(*at)->next;
    *at = listener->next;
    for (ntbclient_conn *conn = client->conns, *next; conn != nullptr; conn = next) {
        next = conn->next;
        if (conn->listener != listener)
            continue;
        unlink_conn(&client->conns, conn);
        conn_finish(conn, true);
        Message close;
        close.type = Type::close;
        close.id = conn->id;
        post(client, close);
        conn_destroy(conn);
    }
    pthread_mutex_unlock(&client->lock);
    free(listener);
}

int ntbclient_accept(struct ntbclient_listener *listener, struct ntbclient_conn **out)
{
    if (listener == nullptr || out == nullptr)
        return -EINVAL;
    ntbclient *client = listener->client;
    pthread_mutex_lock(&client->lock);
    int status = -EAGAIN;
    for (int tries = 0; tries < 2 && status == -EAGAIN; tries++) {
        for (ntbclient_conn *conn = client->conns; conn != nullptr; conn = conn->next)
            if (conn->listener == listener) {
                conn->listener = nullptr;
                *out = conn;
                status = 0;
                break;
            }
        if (status != 0 && tries == 0 && take_in(client, listener) != 0)
            leave_news(client);
    }
    if (status != 0 && client->gone.load())
        status = -ECONNRESET;
    if (status == 0) {
        Message taken;
        taken.type = Type::taken;
        taken.id = (*out)->id;
        post(client, taken);
    }
    pthread_mutex_unlock(&client->lock);
    return status;
}

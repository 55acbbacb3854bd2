/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A TCP program that knows nothing of verbs:
 *
 *   tcp_echo PORT            serves one client at 127.0.0.1: sends back what it receives, until the
 * end tcp_echo PORT BYTES      sends so many to it and compares what comes back
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static unsigned char buffer[40000];

static int fail(const char *what)
{
    perror(what);
    return 1;
}

/* What a byte of the stream is. */
static unsigned char byte_at(size_t position)
{
    return (unsigned char)(position * 31 + position / 251);
}

static int serve(int listener, const struct sockaddr_in *address)
{
    const int on = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(listener, (const struct sockaddr *)address, sizeof(*address)) != 0)
        return fail("bind");
    if (listen(listener, 1) != 0)
        return fail("listen");
    const int client = accept(listener, NULL, NULL);
    if (client < 0)
        return fail("accept");
    for (;;) {
        const ssize_t got = recv(client, buffer, sizeof(buffer), 0);
        if (got < 0)
            return fail("recv");
        if (got == 0)
            break;
        for (ssize_t sent = 0; sent < got;) {
            const ssize_t done = send(client, buffer + sent, (size_t)(got - sent), 0);
            if (done < 0)
                return fail("send");
            sent += done;
        }
    }
    return close(client) != 0 ? fail("close") : 0;
}

/* Sends ahead while there is room, so that both directions are busy. */
static int load(int server, const struct sockaddr_in *address, size_t bytes)
{
    if (connect(server, (const struct sockaddr *)address, sizeof(*address)) != 0)
        return fail("connect");
    size_t sent = 0, received = 0;
    while (received < bytes) {
        struct pollfd one = {server, (short)(sent < bytes ? POLLIN | POLLOUT : POLLIN), 0};
        if (poll(&one, 1, -1) < 0)
            return fail("poll");
        if ((one.revents & POLLOUT) != 0) {
            size_t n = bytes - sent < sizeof(buffer) ? bytes - sent : sizeof(buffer);
            for (size_t i = 0; i < n; ++i)
                buffer[i] = byte_at(sent + i);
            const ssize_t done = send(server, buffer, n, MSG_DONTWAIT);
            if (done < 0)
                return fail("send");
            sent += (size_t)done;
        }
        if ((one.revents & ~POLLOUT) != 0) {
            const ssize_t got = recv(server, buffer, sizeof(buffer), 0);
            if (got <= 0)
                return fail("recv");
            for (ssize_t i = 0; i < got; ++i)
                if (buffer[i] != byte_at(received + (size_t)i)) {
                    fprintf(stderr, "byte %zu is another one\n", received + (size_t)i);
                    return 1;
                }
            received += (size_t)got;
        }
    }
    if (shutdown(server, SHUT_WR) != 0)
        return fail("shutdown");
    printf("%zu bytes came back\n", received);
    return close(server) != 0 ? fail("close") : 0;
}

int main(int argc, char **argv)
{
    struct sockaddr_in address = {0};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons((unsigned short)atoi(argv[1]));
    const int one = socket(AF_INET, SOCK_STREAM, 0);
    if (one < 0)
        return fail("socket");
    return argc == 2 ? serve(one, &address) : load(one, &address, strtoul(argv[2], NULL, 10));
}

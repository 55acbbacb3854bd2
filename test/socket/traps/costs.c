// SPDX-License-Identifier: BSD-3-Clause
#include "traps.h"

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

// The kinds are those of COSTS in sockets_test.py, in its order.
enum { kind_count = 6 };

static void repeat(int ends[2], int set, int kind, int calls)
{
    char text[64] = "";
    struct epoll_event event;
    struct pollfd entry = {.fd = ends[1], .events = POLLIN};
    for (int i = 0; i < calls; i++) {
        if (kind == 0) {
            MUST(send(ends[0], text, sizeof(text), 0));
            MUST(recv(ends[1], text, sizeof(text), 0));
        } else if (kind == 1) {
            recv(ends[1], text, sizeof(text), MSG_DONTWAIT);
        } else if (kind == 2) {
            MUST(epoll_wait(set, &event, 1, 0));
        } else if (kind == 3) {
            MUST(poll(&entry, 1, 0));
        } else if (kind == 4) {
            event = (struct epoll_event){.events = EPOLLIN | (i & 1 ? EPOLLOUT : 0)};
            MUST(epoll_ctl(set, EPOLL_CTL_MOD, ends[1], &event));
        } else {
            int made[2];
            connect_pair(made);
            MUST(close(made[0]));
            MUST(close(made[1]));
        }
    }
}

// A connection that was used, and a set with one end of it.
static int connect_in_set(int ends[2])
{
    connect_pair(ends);
    talk_long(ends);
    const int set = (int)MUST(epoll_create1(0));
    struct epoll_event event = {.events = EPOLLIN};
    MUST(epoll_ctl(set, EPOLL_CTL_ADD, ends[1], &event));
    return set;
}

void repeat_calls(int kind, int calls)
{
    int ends[2];
    const int set = connect_in_set(ends);
    repeat(ends, set, kind % kind_count, calls);
}

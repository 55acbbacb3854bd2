// SPDX-License-Identifier: BSD-3-Clause
#include "traps.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>

// What calls cost, in ns: the least of many short spells, which other work on the machine does not
// change. Beside the same without the library it is what that takes of each.
static const char *const kinds[] = {"send and recv of 64 B", "recv of nothing", "epoll_wait",
                                    "poll", "epoll_ctl"};
enum { kind_count = sizeof(kinds) / sizeof(kinds[0]) };

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
        } else {
            event = (struct epoll_event){.events = EPOLLIN | (i & 1 ? EPOLLOUT : 0)};
            MUST(epoll_ctl(set, EPOLL_CTL_MOD, ends[1], &event));
        }
    }
}

static double spell(int ends[2], int set, int kind)
{
    enum { calls = 100 };
    struct timespec begin, end;
    MUST(clock_gettime(CLOCK_MONOTONIC, &begin));
    repeat(ends, set, kind, calls);
    MUST(clock_gettime(CLOCK_MONOTONIC, &end));
    return ((double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec)) /
           calls;
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

void show_costs(void)
{
    int ends[2];
    const int set = connect_in_set(ends);
    for (int kind = 0; kind < kind_count; kind++) {
        double least = spell(ends, set, kind);
        for (int i = 0; i < 2000; i++) {
            const double took = spell(ends, set, kind);
            least = took < least ? took : least;
        }
        printf("%s: %.0f ns\n", kinds[kind], least);
    }
}

void repeat_calls(int kind, int calls)
{
    int ends[2];
    const int set = connect_in_set(ends);
    repeat(ends, set, kind % kind_count, calls);
}

// SPDX-License-Identifier: BSD-3-Clause
// Sets that a child has inherited. The kernel has one for both.
#include "traps.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int set, ends[2];

static int make_set(void)
{
    return (int)MUST(epoll_create1(0));
}

static void add(int to, int fd, uint64_t data)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = data};
    MUST(epoll_ctl(to, EPOLL_CTL_ADD, fd, &event));
}

static void pause_for(long ms)
{
    const struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

// A byte by each of some connections, once the set sleeps.
struct late {
    int count, fds[2];
};

static void *send_late(void *at)
{
    const struct late *late = at;
    for (int i = 0; i < late->count; i++) {
        pause_for(30);
        if (send(late->fds[i], "x", 1, MSG_NOSIGNAL) != 1)
            fail("a late byte");
    }
    return NULL;
}

// One wait for what comes while it sleeps.
static void wait_late(const char *what, struct late late)
{
    struct epoll_event event = {0};
    pthread_t thread;
    MUST(-pthread_create(&thread, NULL, send_late, &late));
    const int found = epoll_wait(set, &event, 1, 1000);
    printf("%s: %d, data %d, events %x\n", what, found, (int)event.data.u64, event.events);
    MUST(-pthread_join(thread, NULL));
}

static void wait_and_hear(const char *what)
{
    char byte = 0;
    wait_late(what, (struct late){1, {ends[0]}});
    see("heard", recv(ends[1], &byte, 1, 0));
    struct epoll_event event;
    see("more", epoll_wait(set, &event, 1, 0));
}

static void begin(void)
{
    connect_pair(ends);
    set = make_set();
    add(set, ends[1], 7);
    wait_and_hear("before");
}

static pid_t begin_child(void)
{
    return (pid_t)MUST(fork());
}

// ---- what a child does with descriptors

static void leave_all(void)
{
    for (int fd = 3; fd < 1000; fd++)
        close(fd);
}

static void close_one(void)
{
    MUST(close(ends[1]));
}

static void close_set_first(void)
{
    MUST(close(set));
    MUST(close(ends[1]));
}

static void replace(void)
{
    MUST(dup2(0, ends[1]));
}

static void replace_by_own(void)
{
    int own[2];
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, own));
    MUST(dup2(own[0], ends[1]));
    MUST(close(ends[1]));
}

static void close_copies(void)
{
    const int copy = (int)MUST(dup(ends[1]));
    MUST(close(ends[1]));
    MUST(close(copy));
}

static void close_in_its_child(void)
{
    const pid_t child = begin_child();
    if (child == 0) {
        close(ends[1]);
        _exit(0);
    }
    MUST(waitpid(child, NULL, 0));
    MUST(close(ends[1]));
}

static void become_another(void)
{
    close(ends[1]);
    execl("/bin/true", "true", NULL);
    _exit(1);
}

static void use_own_set(void)
{
    struct epoll_event event;
    const int own = make_set();
    close(set);
    add(own, ends[1], 8);
    epoll_wait(own, &event, 1, 5);
    close(own);
}

static void just_end(void) {}

static void case_forked_set_closed(void)
{
    static const struct {
        const char *name;
        void (*act)(void);
    } ways[] = {
        {"ends", just_end},
        {"close", close_one},
        {"set first", close_set_first},
        {"dup2", replace},
        {"dup2 of own", replace_by_own},
        {"copies", close_copies},
        {"child", close_in_its_child},
        {"all", leave_all},
        {"exec", become_another},
        {"own set", use_own_set},
    };
    for (unsigned i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        begin();
        const pid_t child = begin_child();
        if (child == 0) {
            ways[i].act();
            _exit(0);
        }
        await_child(child);
        wait_and_hear(ways[i].name);
        wait_and_hear("again");
        MUST(close(set));
        MUST(close(ends[0]));
        MUST(close(ends[1]));
    }
}

const struct trap forked_sets_traps[] = {
    {"forked_set_closed", case_forked_set_closed},
    {NULL, NULL},
};

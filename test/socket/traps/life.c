// SPDX-License-Identifier: BSD-3-Clause
// How connections begin and end.
#include "traps.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static void case_linger(void)
{
    int ends[2];
    connect_pair(ends);
    const struct linger now = {1, 0};
    say(ends[0], "lost");
    MUST(setsockopt(ends[0], SOL_SOCKET, SO_LINGER, &now, sizeof(now)));
    MUST(close(ends[0]));
    char text[8];
    long got;
    while ((got = recv(ends[1], text, sizeof(text), 0)) > 0)
        ;
    see("reset", got);
    connect_pair(ends);
    say(ends[1], "unread");
    struct pollfd entry = {.fd = ends[0], .events = POLLIN};
    MUST(poll(&entry, 1, 5000));
    MUST(close(ends[0])); // with unread bytes: a reset
    see("reset", recv(ends[1], text, sizeof(text), 0));
    see("end", recv(ends[1], text, sizeof(text), 0));
}

static void case_half_close(void)
{
    int ends[2];
    connect_pair(ends);
    say(ends[0], "question");
    see("shutdown", shutdown(ends[0], SHUT_WR));
    hear(ends[1]);
    hear(ends[1]);
    say(ends[1], "answer");
    hear(ends[0]);
    see("shutdown", shutdown(ends[0], SHUT_RD));
    hear(ends[0]);
    see("broken", send(ends[0], "x", 1, MSG_NOSIGNAL));
    struct pollfd entry = {.fd = ends[1], .events = POLLIN | POLLOUT | POLLRDHUP};
    see("poll", poll(&entry, 1, 0));
    printf("events %x\n", (unsigned)entry.revents);
}

// The peer closes with bytes unread, which went by another way than those that are awaited from it.
static void case_reset(void)
{
    int ends[2];
    char text[1000] = "";
    connect_pair(ends);
    for (int round = 0; round < 5000; round++) {
        MUST(send(ends[1], text, sizeof(text), 0));
        MUST(recv(ends[0], text, sizeof(text), MSG_WAITALL));
    }
    MUST(send(ends[1], text, sizeof(text), 0));
    MUST(close(ends[0]));
    struct pollfd entry = {.fd = ends[1], .events = POLLRDHUP};
    see("poll", poll(&entry, 1, -1));
    while (send(ends[1], text, 1, MSG_NOSIGNAL) > 0)
        ;
    long once = 0;
    for (int i = 0;
         i < 3 && (once = recv(ends[1], text, sizeof(text), 0)) < 0 && errno == ECONNRESET;)
        i++;
    see("end", once);
}

// Whether a connection that was not waited for is there may be asked by another connect().
static void case_connect_again(void)
{
    for (int i = 0; i < 20; i++) {
        int ends[2];
        if (listener == 0)
            listen_here();
        ends[0] = (int)MUST(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
        const int first = connect(ends[0], (struct sockaddr *)&place, sizeof(place));
        if (first != 0 && errno != EINPROGRESS)
            fail("connect");
        ends[1] = (int)MUST(accept(listener, NULL, NULL));
        struct pollfd entry = {.fd = ends[0], .events = POLLOUT};
        MUST(poll(&entry, 1, -1));
        see("again", connect(ends[0], (struct sockaddr *)&place, sizeof(place)));
        see("once more", connect(ends[0], (struct sockaddr *)&place, sizeof(place)));
        MUST(fcntl(ends[0], F_SETFL, 0));
        talk(ends);
        MUST(close(ends[0]));
        MUST(close(ends[1]));
    }
}

// A connection that is given up for another one is broken off.
static void case_connect_nowhere(void)
{
    int ends[2];
    char text[8];
    connect_pair(ends);
    talk(ends);
    const struct sockaddr nowhere = {.sa_family = AF_UNSPEC};
    see("connect", connect(ends[0], &nowhere, sizeof(nowhere)));
    see("reset", recv(ends[1], text, sizeof(text), 0));
    see("connect", connect(ends[0], (struct sockaddr *)&place, sizeof(place)));
    ends[1] = (int)MUST(accept(listener, NULL, NULL));
    talk(ends);
}

static void *send_all(void *end)
{
    static char much[1 << 24];
    const long sent = send(*(int *)end, much, sizeof(much), MSG_NOSIGNAL);
    see("sent a part", sent > 0 && sent < (long)sizeof(much));
    see("broken", send(*(int *)end, much, 1, MSG_NOSIGNAL));
    return NULL;
}

// Another thread ends what one sends.
static void case_shutdown_blocked(void)
{
    int ends[2];
    pthread_t thread;
    connect_pair(ends);
    MUST(-pthread_create(&thread, NULL, send_all, &ends[0]));
    struct pollfd entry = {.fd = ends[0], .events = POLLOUT};
    while (poll(&entry, 1, 0) != 0)
        sched_yield();
    MUST(shutdown(ends[0], SHUT_WR));
    MUST(-pthread_join(thread, NULL));
}

static void see_events(const char *what, int fd)
{
    struct pollfd entry = {.fd = fd, .events = POLLIN | POLLOUT | POLLRDHUP};
    see(what, poll(&entry, 1, 5000));
    printf("events %x\n", (unsigned)entry.revents);
}

// What an end shows of itself that was shut down, in turn or at once, and the other one of it.
static void case_shutdown_events(void)
{
    const int orders[3][2] = {{SHUT_RD, SHUT_WR}, {SHUT_WR, SHUT_RD}, {SHUT_RDWR, SHUT_RDWR}};
    for (int i = 0; i < 3; i++) {
        int ends[2];
        connect_pair(ends);
        talk(ends);
        for (int step = 0; step < 2; step++) {
            MUST(shutdown(ends[0], orders[i][step]));
            see_events("here", ends[0]);
            see("read", recv(ends[0], &(char){0}, 1, MSG_DONTWAIT));
            if (orders[i][step] != SHUT_RD) {
                struct pollfd entry = {.fd = ends[1], .events = POLLRDHUP};
                see("ends", poll(&entry, 1, 5000));
                see_events("there", ends[1]);
            }
        }
        MUST(close(ends[0]));
        MUST(close(ends[1]));
    }
    // Both have ended, and what came before is unread.
    int ends[2];
    connect_pair(ends);
    talk(ends);
    MUST(shutdown(ends[0], SHUT_WR));
    say(ends[1], "unread");
    MUST(shutdown(ends[1], SHUT_WR));
    struct pollfd entry = {.fd = ends[0], .events = POLLRDHUP};
    see("ends", poll(&entry, 1, 5000));
    see_events("unread", ends[0]);
    hear(ends[0]);
    see_events("read", ends[0]);
}

static atomic_int rounds;
static atomic_bool waits;

static void *wait_for_ever(void *end)
{
    char byte;
    atomic_store(&waits, true);
    recv(*(int *)end, &byte, 1, 0);
    return NULL;
}

static void *exchange_for_ever(void *ends)
{
    char text[100] = "";
    const int *const both = ends;
    for (;; rounds++) {
        send(both[0], text, sizeof(text), 0);
        recv(both[1], text, sizeof(text), MSG_WAITALL);
    }
    return NULL;
}

// The program ends while its threads are in calls.
static void case_exit(void)
{
    static int idle[2], busy[2];
    pthread_t thread;
    connect_pair(idle);
    connect_pair(busy);
    MUST(-pthread_create(&thread, NULL, wait_for_ever, &idle[1]));
    MUST(-pthread_create(&thread, NULL, exchange_for_ever, busy));
    while (atomic_load(&rounds) < 1000 || !atomic_load(&waits))
        sched_yield();
    puts("exit");
    exit(0);
}

const struct trap life_traps[] = {{"linger", case_linger},
                                  {"half_close", case_half_close},
                                  {"reset", case_reset},
                                  {"connect_again", case_connect_again},
                                  {"exit", case_exit},
                                  {"connect_nowhere", case_connect_nowhere},
                                  {"shutdown_blocked", case_shutdown_blocked},
                                  {"shutdown_events", case_shutdown_events},
                                  {NULL, NULL}};

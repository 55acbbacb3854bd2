// SPDX-License-Identifier: BSD-3-Clause
// Bytes that the kernel moves as pages: those that are sent without a copy.
#include "traps.h"

#include <linux/errqueue.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

// ---- without a copy

static void see_events(const char *what, int fd, int set, short events, int timeout)
{
    struct pollfd entry = {.fd = fd, .events = events};
    struct epoll_event event = {.events = 0};
    see(what, poll(&entry, 1, timeout));
    printf("events %x\n", (unsigned)entry.revents);
    see("epoll", epoll_wait(set, &event, 1, timeout));
    printf("events %x\n", (unsigned)event.events);
}

static void see_completion(int fd)
{
    char room[256];
    struct msghdr message = {.msg_control = room, .msg_controllen = sizeof(room)};
    see("completion", recvmsg(fd, &message, MSG_ERRQUEUE));
    const struct cmsghdr *word = CMSG_FIRSTHDR(&message);
    struct sock_extended_err error = {0};
    if (word != NULL)
        memcpy(&error, CMSG_DATA(word), sizeof(error));
    printf("origin %d, %u to %u\n", error.ee_origin, error.ee_info, error.ee_data);
}

static void *answer_late(void *end)
{
    usleep(50000);
    send(*(int *)end, "late", 4, MSG_NOSIGNAL);
    return NULL;
}

// The program hears in the socket's queue of errors when it may use its bytes again. That there is
// something is shown as an error, which ends nothing.
static void send_without_copy(const int *ends)
{
    static char much[100000], back[100000];
    const int set = (int)MUST(epoll_create1(0));
    struct epoll_event event = {.events = EPOLLIN};
    MUST(epoll_ctl(set, EPOLL_CTL_ADD, ends[0], &event));
    for (unsigned i = 0; i < sizeof(much); i++)
        much[i] = (char)(i * i);
    see("sent", send(ends[0], much, sizeof(much), MSG_ZEROCOPY));
    see("all", recv(ends[1], back, sizeof(back), MSG_WAITALL));
    see("same", memcmp(much, back, sizeof(much)) == 0);
    see_events("completed", ends[0], set, 0, 5000);
    say(ends[1], "an answer");
    struct pollfd entry = {.fd = ends[0], .events = POLLIN};
    while (poll(&entry, 1, 5000) == 1 && (entry.revents & POLLIN) == 0)
        ;
    see_events("both", ends[0], set, POLLIN, 0);
    hear(ends[0]);
    see_events("still", ends[0], set, POLLIN, 0);
    // A call that waits for bytes sleeps.
    struct rusage before, after;
    pthread_t thread;
    MUST(-pthread_create(&thread, NULL, answer_late, (void *)&ends[1]));
    MUST(getrusage(RUSAGE_THREAD, &before));
    hear(ends[0]);
    MUST(getrusage(RUSAGE_THREAD, &after));
    MUST(-pthread_join(thread, NULL));
    const long us = (after.ru_utime.tv_sec - before.ru_utime.tv_sec) * 1000000 +
                    after.ru_utime.tv_usec - before.ru_utime.tv_usec +
                    (after.ru_stime.tv_sec - before.ru_stime.tv_sec) * 1000000 +
                    after.ru_stime.tv_usec - before.ru_stime.tv_usec;
    see("slept", us < 40000);
    see_completion(ends[0]);
    see_events("none", ends[0], set, POLLIN, 0);
    talk((int[]){ends[0], ends[1]});
    MUST(shutdown(ends[0], SHUT_WR));
    hear(ends[1]);
    MUST(close(set));
}

static void case_zerocopy(void)
{
    int ends[2], on = 1, error = -1;
    socklen_t length = sizeof(error);
    connect_pair(ends);
    MUST(setsockopt(ends[0], SOL_SOCKET, SO_ZEROCOPY, &on, sizeof(on)));
    send_without_copy(ends);
    see("SO_ERROR", getsockopt(ends[0], SOL_SOCKET, SO_ERROR, &error, &length));
    printf("error %d\n", error);
    // One who asks for it by a call that is not seen.
    connect_pair(ends);
    MUST(syscall(SYS_setsockopt, ends[0], SOL_SOCKET, SO_ZEROCOPY, &on, sizeof(on)));
    send_without_copy(ends);
}

// An error of the network that ends nothing.
static void case_recverr(void)
{
    int ends[2], on = 1;
    connect_pair(ends);
    MUST(setsockopt(ends[0], IPPROTO_IP, IP_RECVERR, &on, sizeof(on)));
    talk(ends);
}

const struct trap pages_traps[] = {
    {"zerocopy", case_zerocopy}, {"recverr", case_recverr}, {NULL, NULL}};

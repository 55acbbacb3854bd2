// SPDX-License-Identifier: BSD-3-Clause
// Bytes that the kernel moves as pages: sent without a copy, and through pipes.
#include "traps.h"

#include <fcntl.h>
#include <linux/errqueue.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
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

// ---- from a connection to a pipe, and back

static void *send_much(void *end)
{
    static char much[3000000];
    for (unsigned i = 0; i < sizeof(much); i++)
        much[i] = (char)(i * i >> 5);
    const long sent = send(*(int *)end, much, sizeof(much), MSG_NOSIGNAL);
    shutdown(*(int *)end, SHUT_WR);
    return sent == (long)sizeof(much) ? NULL : end;
}

struct drain {
    int pipe;
    unsigned at, wrong;
};

static void *read_late(void *of)
{
    struct drain *drain = of;
    static char some[5000];
    usleep(20000); // the pipe is full meanwhile
    for (long got; (got = read(drain->pipe, some, sizeof(some))) > 0;)
        for (long i = 0; i < got; i++, drain->at++)
            drain->wrong += some[i] != (char)(drain->at * drain->at >> 5);
    return NULL;
}

// A server reads a head and hands on what follows, to a pipe that is read more slowly.
static void case_splice_much(void)
{
    int ends[2], pipes[2];
    pthread_t sender, reader;
    connect_pair(ends);
    MUST(pipe(pipes));
    struct drain drain = {.pipe = pipes[0]};
    say(ends[0], "head");
    hear(ends[1]);
    MUST(-pthread_create(&sender, NULL, send_much, &ends[0]));
    struct pollfd entry = {.fd = ends[1], .events = POLLIN};
    see("poll", poll(&entry, 1, 5000));
    MUST(-pthread_create(&reader, NULL, read_late, &drain));
    long all = 0, once;
    while ((once = splice(ends[1], NULL, pipes[1], NULL, 1 << 20, 0)) > 0)
        all += once;
    see("end", once);
    printf("all %ld\n", all);
    MUST(close(pipes[1]));
    void *failed = NULL;
    MUST(-pthread_join(reader, NULL));
    MUST(-pthread_join(sender, &failed));
    printf("read %u, %u wrong, sent %d\n", drain.at, drain.wrong, failed == NULL);
    say(ends[1], "done");
    hear(ends[0]);
}

static void see_splice(const char *what, int from, int to, size_t size, unsigned flags)
{
    see(what, splice(from, NULL, to, NULL, size, flags));
}

static void await_bytes(int fd, int wanted)
{
    for (int bytes = 0; bytes < wanted; sched_yield())
        MUST(ioctl(fd, FIONREAD, &bytes));
}

// What the pipe does not take stays, and what is refused takes nothing.
static void case_splice_part(void)
{
    static char page[4096], text[8192];
    int ends[2], pipes[2];
    loff_t at = 0;
    connect_pair(ends);
    MUST(pipe(pipes));
    MUST(fcntl(pipes[1], F_SETPIPE_SZ, 4096));
    MUST(fcntl(ends[1], F_SETFL, O_NONBLOCK));
    see_splice("nothing", ends[1], pipes[1], 10, 0);
    memset(page, 'a', sizeof(page));
    MUST(send(ends[0], page, sizeof(page), 0));
    memset(page, 'b', sizeof(page));
    MUST(send(ends[0], page, sizeof(page), 0));
    await_bytes(ends[1], 8192);
    see_splice("no bytes", ends[1], pipes[1], 0, 0);
    see_splice("flags", ends[1], pipes[1], 10, 0x100);
    see_splice("read end", ends[1], pipes[0], 10, 0);
    see_splice("no pipe", ends[1], ends[0], 10, 0);
    see("offset", splice(ends[1], &at, pipes[1], NULL, 10, 0));
    see_splice("ten", ends[1], pipes[1], 10, SPLICE_F_MOVE | SPLICE_F_MORE);
    see("read", read(pipes[0], text, 10));
    // As much as the pipe has room for, and that is no more.
    long all = 10, once;
    while (all < 8192) {
        once = splice(ends[1], NULL, pipes[1], NULL, sizeof(text), SPLICE_F_NONBLOCK);
        if (once <= 0 || once > 4096)
            fail("a part");
        if (read(pipes[0], text + all, (size_t)once) != once)
            fail("what was moved");
        all += once;
    }
    see("order", text[10] == 'a' && text[4095] == 'a' && text[4096] == 'b' && text[8191] == 'b');
    see_splice("nothing", ends[1], pipes[1], 10, SPLICE_F_NONBLOCK);
    say(ends[0], "rest");
    await_bytes(ends[1], 4);
    MUST(write(pipes[1], page, sizeof(page)));
    see_splice("full", ends[1], pipes[1], 10, SPLICE_F_NONBLOCK);
    MUST(fcntl(pipes[1], F_SETFL, O_NONBLOCK));
    see_splice("full", ends[1], pipes[1], 10, 0);
    hear(ends[1]);
    // To a connection, of which bytes are not read.
    say(ends[0], "unread");
    await_bytes(ends[1], 6);
    see_splice("back", pipes[0], ends[1], sizeof(page), 0);
    see("all", recv(ends[0], text, sizeof(page), MSG_WAITALL));
    hear(ends[1]);
    // The last bytes, the end, and no one who reads.
    say(ends[0], "last");
    MUST(shutdown(ends[0], SHUT_WR));
    await_bytes(ends[1], 4);
    see_splice("last", ends[1], pipes[1], 10, 0);
    see_splice("end", ends[1], pipes[1], 10, 0);
    say(ends[1], "answer");
    hear(ends[0]);
    connect_pair(ends);
    signal(SIGPIPE, SIG_IGN);
    say(ends[0], "kept");
    MUST(close(pipes[0]));
    see_splice("broken", ends[1], pipes[1], 10, 0);
    hear(ends[1]);
    const struct timeval soon = {.tv_usec = 20000};
    MUST(pipe(pipes));
    MUST(setsockopt(ends[1], SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof(soon)));
    see_splice("late", ends[1], pipes[1], 10, 0);
    // A folder is no file that could be sent.
    const int folder = (int)MUST(open("/", O_RDONLY));
    see("folder", sendfile(ends[0], folder, NULL, 10));
}

const struct trap pages_traps[] = {{"zerocopy", case_zerocopy},
                                   {"recverr", case_recverr},
                                   {"splice_much", case_splice_much},
                                   {"splice_part", case_splice_part},
                                   {NULL, NULL}};

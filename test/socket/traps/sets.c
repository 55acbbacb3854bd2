// SPDX-License-Identifier: BSD-3-Clause
// Sets of descriptors, as the kernel and the library keep them.
#include "traps.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void case_epoll(void)
{
    int ends[2], early = (int)MUST(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
    connect_pair(ends);
    const int set = (int)MUST(epoll_create1(0)), outer = (int)MUST(epoll_create1(0));
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT, .data.u64 = 1}, got[4];
    see("add", epoll_ctl(set, EPOLL_CTL_ADD, ends[1], &event));
    see("again", epoll_ctl(set, EPOLL_CTL_ADD, ends[1], &event));
    see("wait", epoll_wait(set, got, 4, 0));
    printf("events %x\n", got[0].events);
    event.events = EPOLLIN | EPOLLET;
    see("edge", epoll_ctl(set, EPOLL_CTL_MOD, ends[1], &event));
    say(ends[0], "1");
    see("wait", epoll_wait(set, got, 4, 5000));
    see("reported", epoll_wait(set, got, 4, 0));
    say(ends[0], "2");
    see("wait", epoll_wait(set, got, 4, 5000));
    event.events = EPOLLIN | EPOLLONESHOT;
    see("once", epoll_ctl(set, EPOLL_CTL_MOD, ends[1], &event));
    see("wait", epoll_wait(set, got, 4, 5000));
    see("reported", epoll_wait(set, got, 4, 0));
    event.events = EPOLLIN;
    see("level", epoll_ctl(set, EPOLL_CTL_MOD, ends[1], &event));
    see("nested", epoll_ctl(outer, EPOLL_CTL_ADD, set, &event));
    see("wait", epoll_wait(outer, got, 4, 5000));
    hear(ends[1]);
    see("empty", epoll_wait(outer, got, 4, 0));
    // A member before it is connected.
    event.data.u64 = 2;
    event.events = EPOLLOUT;
    see("early", epoll_ctl(set, EPOLL_CTL_ADD, early, &event));
    see("connect", connect(early, (struct sockaddr *)&place, sizeof(place)));
    const int late = (int)MUST(accept(listener, NULL, NULL));
    see("wait", epoll_wait(set, got, 4, 5000));
    printf("data %d events %x\n", (int)got[0].data.u64, got[0].events);
    int error = -1;
    socklen_t length = sizeof(error);
    see("SO_ERROR", getsockopt(early, SOL_SOCKET, SO_ERROR, &error, &length));
    printf("error %d\n", error);
    event.events = EPOLLIN | EPOLLRDHUP;
    see("modify", epoll_ctl(set, EPOLL_CTL_MOD, early, &event));
    MUST(shutdown(late, SHUT_WR));
    see("wait", epoll_wait(set, got, 4, 5000));
    printf("events %x\n", got[0].events);
    // The copy keeps the connection open, and so a member.
    const int copy = (int)MUST(dup(early));
    MUST(close(early));
    see("wait", epoll_wait(set, got, 4, 5000));
    MUST(close(copy));
    // A daemon that is being shown the socket has it open a moment longer.
    const struct timespec moment = {.tv_nsec = 1000000};
    for (int i = 0; i < 5000 && epoll_wait(set, got, 4, 0) != 0; i++)
        nanosleep(&moment, NULL);
    see("gone", epoll_wait(set, got, 4, 0));
    see("delete", epoll_ctl(set, EPOLL_CTL_DEL, ends[1], NULL));
    see("again", epoll_ctl(set, EPOLL_CTL_DEL, ends[1], NULL));
}

static void case_select(void)
{
    int ends[2];
    connect_pair(ends);
    fd_set in, out;
    struct timeval time = {.tv_usec = 10000};
    FD_ZERO(&in);
    FD_ZERO(&out);
    FD_SET(ends[1], &in);
    see("nothing", select(ends[1] + 1, &in, NULL, NULL, &time));
    say(ends[0], "x");
    FD_SET(ends[1], &in);
    FD_SET(ends[0], &out);
    time.tv_sec = 5;
    see("both", select(ends[1] + 1, &in, &out, NULL, &time));
    printf("in %d out %d\n", FD_ISSET(ends[1], &in) != 0, FD_ISSET(ends[0], &out) != 0);
    struct pollfd entries[2] = {{.fd = ends[1], .events = POLLIN}, {.fd = -1, .events = POLLIN}};
    const struct timespec while_ = {.tv_sec = 5};
    see("ppoll", ppoll(entries, 2, &while_, NULL));
    see("bad", select(-1, NULL, NULL, NULL, &time));
    MUST(close(ends[1]));
    see("closed", poll(entries, 1, 0));
    printf("events %x\n", (unsigned)entries[0].revents);
}

static const uint64_t early_data = 0x123456789abcdef0;

// There and back so often that it goes by ring in the end, if it may: each time the set has to say
// so.
static void talk_in_set(int set, int one)
{
    struct epoll_event event;
    MUST(connect(one, (struct sockaddr *)&place, sizeof(place)));
    const int other = (int)MUST(accept(listener, NULL, NULL));
    for (int round = 0; round < 5000; round++) {
        char there[100], back[sizeof(there)];
        memset(there, round, sizeof(there));
        memset(&event, 0, sizeof(event));
        if (send(other, there, sizeof(there), 0) != (long)sizeof(there) ||
            epoll_wait(set, &event, 1, 10000) != 1 || event.events != EPOLLIN ||
            event.data.u64 != early_data ||
            recv(one, back, sizeof(back), 0) != (long)sizeof(back) ||
            memcmp(there, back, sizeof(back)) != 0 ||
            send(one, back, sizeof(back), 0) != (long)sizeof(back) ||
            recv(other, back, sizeof(back), MSG_WAITALL) != (long)sizeof(back))
            fail("a round");
    }
    see("empty", epoll_wait(set, &event, 1, 5)); // long enough to sleep
    MUST(shutdown(other, SHUT_WR));
    see("end", epoll_wait(set, &event, 1, 10000));
    MUST(epoll_ctl(set, EPOLL_CTL_DEL, one, NULL));
    see("out", epoll_wait(set, &event, 1, 0));
}

// In a set before it is a connection: then the set has to learn of it what the kernel knows.
static void case_epoll_early(void)
{
    listen_here();
    const int set = (int)MUST(epoll_create1(0));
    const int one = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = early_data};
    MUST(epoll_ctl(set, EPOLL_CTL_ADD, one, &event));
    see("before", epoll_wait(set, &event, 1, 0));
    talk_in_set(set, one);
}

static void refuse(unsigned call, unsigned error)
{
    struct sock_filter words[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const struct sock_fprog filter = {sizeof(words) / sizeof(words[0]), words};
    MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    MUST(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter));
}

// As above, by a program that may open nothing, and so cannot see what the kernel knows.
static void case_epoll_blind(void)
{
    refuse(SYS_openat, EACCES);
    case_epoll_early();
}

// As above, in a sandbox that is older than the call.
static void case_epoll_sandboxed(void)
{
    refuse(SYS_epoll_pwait2, EPERM);
    case_epoll_early();
}

// What is connected goes on in a sandbox in which nothing can be said to a daemon any more.
static void case_sandboxed(void)
{
    int old[2], new[2];
    connect_pair(old);
    talk(old);
    refuse(SYS_sendmsg, EPERM);
    talk_long(old);
    connect_pair(new);
    talk(new);
    MUST(shutdown(old[0], SHUT_WR));
    hear(old[1]);
    MUST(close(new[1]));
    hear(new[0]);
}

// In a set while it is on the way to a port where no one listens, and connected again.
static void case_epoll_refused(void)
{
    listen_here();
    const int set = (int)MUST(epoll_create1(0));
    const int one = (int)MUST(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
    const int deaf = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
    struct sockaddr_in nobody = place;
    socklen_t length = sizeof(nobody);
    nobody.sin_port = 0;
    MUST(bind(deaf, (struct sockaddr *)&nobody, sizeof(nobody)));
    MUST(getsockname(deaf, (struct sockaddr *)&nobody, &length));
    see("refused", connect(one, (struct sockaddr *)&nobody, sizeof(nobody)));
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = early_data};
    MUST(epoll_ctl(set, EPOLL_CTL_ADD, one, &event));
    see("before", epoll_wait(set, &event, 1, 10000));
    char byte;
    see("nothing", recv(one, &byte, 1, 0));
    MUST(fcntl(one, F_SETFL, 0));
    see("once more", connect(one, (struct sockaddr *)&place, sizeof(place)));
    talk_in_set(set, one);
}

static void see_in_set(int set)
{
    struct epoll_event event;
    const int n = epoll_wait(set, &event, 1, 0);
    see("says", n);
    if (n == 1)
        printf("events %x data %llx\n", event.events, (unsigned long long)event.data.u64);
}

// A member of a set that parts from its peer: what the set says of it is the kernel's, and again
// once it is connected anew.
static void case_epoll_parted(void)
{
    const struct sockaddr nowhere = {.sa_family = AF_UNSPEC};
    for (int off = 0; off < 2; off++) {
        int ends[2];
        connect_pair(ends);
        const int set = (int)MUST(epoll_create1(0));
        struct epoll_event event = {.events = EPOLLIN | (off ? EPOLLONESHOT : 0),
                                    .data.u64 = early_data};
        MUST(epoll_ctl(set, EPOLL_CTL_ADD, ends[0], &event));
        talk_long(ends);
        if (off) {
            say(ends[1], "once");
            see("once", epoll_wait(set, &event, 1, 10000));
            hear(ends[0]);
        }
        see("apart", connect(ends[0], &nowhere, sizeof(nowhere)));
        see_in_set(set);
        event = (struct epoll_event){.events = EPOLLIN, .data.u64 = early_data};
        MUST(epoll_ctl(set, EPOLL_CTL_MOD, ends[0], &event));
        see_in_set(set);
        MUST(close(ends[1]));
        talk_in_set(set, ends[0]);
        MUST(close(set));
    }
}

// Programs set a part of an event that a set has written to, and hand it back: what is in the rest
// of it means nothing, and what they set comes back.
static void case_epoll_buffer(void)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    struct epoll_event got[8];
    memset(got, 0, sizeof(got));
    for (int round = 0; round < 20; round++) {
        int ends[2];
        connect_pair(ends);
        talk(ends);
        const int set = (int)MUST(epoll_create1(0));
        got[0].events = EPOLLIN | EPOLLRDHUP | EPOLLET;
        got[0].data.fd = 5;
        MUST(epoll_ctl(set, EPOLL_CTL_ADD, ends[1], got));
        for (int i = 0; i < 3 && epoll_wait(set, got, 8, 0) > 0; i++)
            ;
        say(ends[0], "end");
        MUST(shutdown(ends[0], SHUT_WR));
        struct pollfd ended = {.fd = ends[1], .events = POLLRDHUP};
        MUST(poll(&ended, 1, 10000));
        for (int i = 0; i < 5; i++) {
            epoll_wait(set, got, 8, 0);
            nanosleep(&moment, NULL);
        }
        for (int i = 0; i < 8; i++) {
            int pipe_ends[2];
            MUST(pipe(pipe_ends));
            MUST(write(pipe_ends[1], "x", 1));
            got[i].events = EPOLLIN;
            got[i].data.u32 = 1;
            const uint64_t data = got[i].data.u64;
            MUST(epoll_ctl(set, EPOLL_CTL_ADD, pipe_ends[0], got + i));
            struct epoll_event one;
            if (epoll_wait(set, &one, 1, 0) != 1 || one.data.u64 != data)
                fail("an event of a pipe");
            MUST(close(pipe_ends[0]));
            MUST(close(pipe_ends[1]));
        }
        MUST(close(set));
        MUST(close(ends[0]));
        MUST(close(ends[1]));
    }
}

// An edge triggered set around another one: each arrival is an edge of it, also one that comes
// between the last read and the next wait.
static void case_epoll_nested(void)
{
    static const uint32_t kinds[] = {EPOLLIN, EPOLLIN | EPOLLET, EPOLLIN | EPOLLOUT};
    for (int kind = 0; kind < 3; kind++) {
        int ends[2];
        connect_pair(ends);
        talk(ends);
        const int inner = (int)MUST(epoll_create1(0)), outer = (int)MUST(epoll_create1(0));
        struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.u64 = 1};
        MUST(epoll_ctl(outer, EPOLL_CTL_ADD, inner, &event));
        event.events = kinds[kind];
        MUST(epoll_ctl(inner, EPOLL_CTL_ADD, ends[1], &event));
        for (int round = 0; round < 5; round++) {
            say(ends[0], "1");
            say(ends[0], "2");
            see("outer", epoll_wait(outer, &event, 1, 5000));
            see("inner", epoll_wait(inner, &event, 1, 5000));
            printf("events %x\n", event.events);
            struct pollfd both = {.fd = ends[1], .events = POLLIN};
            for (int bytes = 0; bytes < 2;) {
                char text[4];
                MUST(poll(&both, 1, 5000));
                bytes += (int)MUST(recv(ends[1], text, sizeof(text), 0));
            }
        }
        MUST(close(inner));
        MUST(close(outer));
        MUST(close(ends[0]));
        MUST(close(ends[1]));
    }
}

const struct trap sets_traps[] = {{"epoll", case_epoll},
                                  {"select", case_select},
                                  {"epoll_early", case_epoll_early},
                                  {"epoll_blind", case_epoll_blind},
                                  {"epoll_sandboxed", case_epoll_sandboxed},
                                  {"sandboxed", case_sandboxed},
                                  {"epoll_refused", case_epoll_refused},
                                  {"epoll_parted", case_epoll_parted},
                                  {"epoll_buffer", case_epoll_buffer},
                                  {"epoll_nested", case_epoll_nested},
                                  {NULL, NULL}};

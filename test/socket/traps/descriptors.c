// SPDX-License-Identifier: BSD-3-Clause
// Numbers of descriptors: duplicates, closing by ranges and unseen, and passing on.
#include "traps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static void case_dup(void)
{
    int ends[2];
    connect_pair(ends);
    const int copies[] = {(int)MUST(dup(ends[0])), (int)MUST(dup2(ends[0], 77)),
                          (int)MUST(dup3(ends[0], 78, O_CLOEXEC)),
                          (int)MUST(fcntl(ends[0], F_DUPFD, 79)),
                          (int)MUST(fcntl(ends[0], F_DUPFD_CLOEXEC, 79))};
    MUST(close(ends[0]));
    for (unsigned i = 0; i < sizeof(copies) / sizeof(copies[0]); i++) {
        talk((int[]){copies[i], ends[1]});
        MUST(close(copies[i]));
    }
    hear(ends[1]); // the end, with the last copy and no sooner
    see("dup2 of nothing", dup2(500, ends[1]));
    see("dup2 of itself", dup2(ends[1], ends[1]) - ends[1]);
    see("dup3 of itself", dup3(ends[1], ends[1], 0));
}

// dup2() over a connection closes it.
static void case_dup2_over(void)
{
    int first[2], second[2];
    connect_pair(first);
    connect_pair(second);
    MUST(dup2(second[0], first[0]));
    hear(first[1]);
    talk((int[]){first[0], second[1]});
}

static void case_close_range(void)
{
    int first[2], second[2];
    connect_pair(first);
    connect_pair(second);
    MUST(close_range((unsigned)first[0], (unsigned)first[0], 0));
    hear(first[1]);
    see("closed", write(first[0], "x", 1));
    MUST(close_range((unsigned)second[0], (unsigned)second[0], 4 /* CLOSE_RANGE_CLOEXEC */));
    see("flag", fcntl(second[0], F_GETFD));
    talk(second);
    closefrom(3);
    see("all closed", write(second[1], "x", 1));
    listener = 0;
    connect_pair(first);
    printf("numbers %d %d\n", first[0], first[1]);
    talk(first);
}

// Loops over all numbers, as daemons do.
static void case_close_all(void)
{
    int ends[2];
    for (int fd = 3; fd < 1024; fd++)
        close(fd);
    connect_pair(ends);
    printf("numbers %d %d\n", ends[0], ends[1]);
    talk(ends);
    // What is open is the program's own, whatever it asks by.
    int open = 0, members = 0;
    const int set = (int)MUST(epoll_create1(0));
    struct epoll_event event = {.events = EPOLLIN};
    for (int fd = 0; fd < 20000; fd++) {
        open += fcntl(fd, F_GETFD) >= 0;
        members += fd > 2 && epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) == 0;
    }
    printf("open %d members %d\n", open, members);
}

// Numbers closed where no one sees it, and used again.
static void case_unseen_close(void)
{
    int ends[2], pipes[2];
    connect_pair(ends);
    MUST(syscall(SYS_close, ends[0]));
    MUST(pipe(pipes));
    printf("the same number %d\n", pipes[0] == ends[0]);
    hear(ends[1]);
    see("written", write(pipes[1], "pipe", 4));
    char text[8] = "";
    see("read", read(pipes[0], text, sizeof(text)));
    printf("text '%s'\n", text);
    connect_pair(ends);
    FILE *file = fdopen(ends[0], "w");
    fclose(file);
    hear(ends[1]);
    const int null = open("/dev/null", O_RDWR);
    see("to null", write(null, "x", 1));
}

static void case_scm_rights(void)
{
    int ends[2], ways[2];
    connect_pair(ends);
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, ways));
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } words = {.header = {.cmsg_len = CMSG_LEN(sizeof(int)),
                          .cmsg_level = SOL_SOCKET,
                          .cmsg_type = SCM_RIGHTS}};
    memcpy(CMSG_DATA(&words.header), &ends[0], sizeof(int));
    char byte = 'x';
    struct iovec part = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &words, .msg_controllen = sizeof(words)};
    see("sent", sendmsg(ways[0], &message, 0));
    MUST(close(ends[0]));
    see("received", recvmsg(ways[1], &message, 0));
    memcpy(&ends[0], CMSG_DATA(&words.header), sizeof(int));
    talk(ends);
    MUST(close(ends[0]));
    hear(ends[1]);
}

const struct trap descriptors_traps[] = {{"dup", case_dup},
                                         {"dup2_over", case_dup2_over},
                                         {"close_range", case_close_range},
                                         {"close_all", case_close_all},
                                         {"unseen_close", case_unseen_close},
                                         {"scm_rights", case_scm_rights},
                                         {NULL, NULL}};

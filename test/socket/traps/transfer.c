// SPDX-License-Identifier: BSD-3-Clause
// Calls that move bytes.
#include "traps.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static void case_stdio(void)
{
    int ends[2];
    connect_pair(ends);
    say(ends[0], "before\n");
    hear(ends[1]);
    FILE *file = fdopen(ends[0], "r+");
    fprintf(file, "by stdio\n");
    fflush(file);
    hear(ends[1]);
    say(ends[1], "an answer\n");
    char line[32] = "";
    printf("got %d '%s'\n", fgets(line, sizeof(line), file) != NULL, line);
    dprintf(ends[1], "dprintf\n");
    printf("got %d '%s'\n", fgets(line, sizeof(line), file) != NULL, line);
    fclose(file);
    hear(ends[1]);
}

static void case_sendfile(void)
{
    int ends[2], pipes[2];
    connect_pair(ends);
    FILE *file = tmpfile();
    fputs("contents of a file", file);
    fflush(file);
    off_t at = 9;
    see("sendfile", sendfile(ends[0], fileno(file), &at, 100));
    printf("at %ld\n", (long)at);
    hear(ends[1]);
    MUST(pipe(pipes));
    MUST(write(pipes[1], "by a pipe", 9));
    see("splice", splice(pipes[0], NULL, ends[0], NULL, 100, 0));
    say(ends[0], "!");
    char text[32] = "";
    see("all", recv(ends[1], text, 10, MSG_WAITALL));
    say(ends[1], "to a pipe");
    see("splice", splice(ends[0], NULL, pipes[1], NULL, 100, 0));
    see("read", read(pipes[0], text, sizeof(text)));
}

static void case_flags(void)
{
    int ends[2];
    char text[16] = "";
    connect_pair(ends);
    see("nothing", recv(ends[1], text, 4, MSG_DONTWAIT));
    say(ends[0], "0123456789");
    see("peek", recv(ends[1], text, 4, MSG_PEEK));
    see("take", recv(ends[1], text, 4, 0));
    see("discard", recv(ends[1], NULL, 3, MSG_TRUNC));
    int bytes = 0;
    see("FIONREAD", ioctl(ends[1], FIONREAD, &bytes));
    printf("bytes %d\n", bytes);
    see("all", recv(ends[1], text, 3, MSG_WAITALL));
    printf("text '%.3s'\n", text);
    struct iovec parts[2] = {{(char *)"ab", 2}, {(char *)"cd", 2}};
    see("writev", writev(ends[0], parts, 2));
    struct iovec rooms[2] = {{text, 1}, {text + 8, 3}};
    see("readv", readv(ends[1], rooms, 2));
    printf("text '%c%.3s'\n", text[0], text + 8);
    struct iovec many[20] = {{NULL, 0}};
    many[18] = (struct iovec){(char *)"efg", 3};
    see("empty parts", writev(ends[0], many, 20));
    many[18].iov_base = text;
    see("empty parts", readv(ends[1], many, 20));
    see("zero", recv(ends[1], text, 0, MSG_DONTWAIT));
    see("bad", send(ends[0], NULL, 4, 0));
    see("bad", write(ends[0], NULL, 0));
}

static void set_and_get(int fd, int name, int value)
{
    int now = -1;
    socklen_t length = sizeof(now);
    MUST(setsockopt(fd, IPPROTO_TCP, name, &value, sizeof(value)));
    see("option", getsockopt(fd, IPPROTO_TCP, name, &now, &length));
    printf("value %d\n", now);
}

// What is held back until there is more, or for a while: all of it comes.
static void case_cork(void)
{
    int ends[2];
    char text[16] = "";
    connect_pair(ends);
    set_and_get(ends[0], TCP_NODELAY, 1);
    say(ends[0], "at once");
    hear(ends[1]);
    set_and_get(ends[0], TCP_CORK, 1);
    say(ends[0], "corked");
    hear(ends[1]);
    say(ends[0], "held");
    set_and_get(ends[0], TCP_CORK, 0);
    hear(ends[1]);
    set_and_get(ends[0], TCP_NODELAY, 0);
    see("more", send(ends[0], "half", 4, MSG_MORE));
    say(ends[0], "whole");
    see("all", recv(ends[1], text, 9, MSG_WAITALL));
    printf("text '%s'\n", text);
    see("more", send(ends[0], "last", 4, MSG_MORE));
    MUST(shutdown(ends[0], SHUT_WR));
    hear(ends[1]);
    hear(ends[1]);
}

static void case_oob(void)
{
    int ends[2];
    char text[16] = "";
    connect_pair(ends);
    say(ends[0], "abc");
    see("oob", send(ends[0], "!", 1, MSG_OOB));
    say(ends[0], "def");
    struct pollfd entry = {.fd = ends[1], .events = POLLPRI};
    see("poll", poll(&entry, 1, 5000));
    see("mark", sockatmark(ends[1]));
    see("before", recv(ends[1], text, sizeof(text), 0));
    see("mark", sockatmark(ends[1]));
    see("oob", recv(ends[1], text, 1, MSG_OOB));
    printf("text '%c'\n", text[0]);
    see("behind", recv(ends[1], text, sizeof(text), 0));
}

// A read that wants more than there is before the mark ends there; inline, the byte comes with
// what follows it.
static void case_oob_all(void)
{
    for (int is_inline = 0; is_inline < 2; is_inline++) {
        int ends[2];
        char text[16] = "";
        connect_pair(ends);
        MUST(setsockopt(ends[1], SOL_SOCKET, SO_OOBINLINE, &is_inline, sizeof(is_inline)));
        say(ends[0], "abc");
        see("oob", send(ends[0], "!", 1, MSG_OOB));
        say(ends[0], "def");
        struct pollfd entry = {.fd = ends[1], .events = POLLPRI};
        see("poll", poll(&entry, 1, 5000));
        see("all", recv(ends[1], text, 6, MSG_WAITALL));
        printf("text '%s'\n", text);
        see("mark", sockatmark(ends[1]));
        if (!is_inline)
            see("oob", recv(ends[1], text, 1, MSG_OOB));
        memset(text, 0, sizeof(text));
        see("all", recv(ends[1], text, is_inline ? 4 : 3, MSG_WAITALL));
        printf("text '%s'\n", text);
    }
}

// What the kernel alone does.
static void case_kernels(void)
{
    int ends[2], on = 1, error = -1;
    char text[16] = "";
    socklen_t length = sizeof(error);
    connect_pair(ends);
    MUST(setsockopt(ends[1], SOL_SOCKET, SO_PEEK_OFF, &(int){0}, sizeof(int)));
    say(ends[0], "abcd");
    struct pollfd entry = {.fd = ends[1], .events = POLLIN};
    MUST(poll(&entry, 1, 5000));
    for (int i = 0; i < 2; i++) {
        see("peek", recv(ends[1], text, 2, MSG_PEEK));
        printf("text '%s'\n", text);
    }
    connect_pair(ends);
    MUST(setsockopt(ends[1], IPPROTO_TCP, TCP_INQ, &on, sizeof(on)));
    say(ends[0], "counted");
    char words[CMSG_SPACE(sizeof(int))];
    struct iovec part = {text, sizeof(text)};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = words, .msg_controllen = sizeof(words)};
    see("received", recvmsg(ends[1], &message, 0));
    printf("words %d\n", message.msg_controllen != 0);
    // An error that SO_ERROR has said is said.
    connect_pair(ends);
    const struct linger now = {1, 0};
    MUST(setsockopt(ends[0], SOL_SOCKET, SO_LINGER, &now, sizeof(now)));
    MUST(close(ends[0]));
    entry.fd = ends[1];
    see("poll", poll(&entry, 1, 5000));
    printf("events %x\n", (unsigned)entry.revents);
    see("SO_ERROR", getsockopt(ends[1], SOL_SOCKET, SO_ERROR, &error, &length));
    see("poll", poll(&entry, 1, 5000));
    printf("error %d events %x\n", error, (unsigned)entry.revents);
    see("end", recv(ends[1], text, sizeof(text), 0));
    int pipes[2];
    connect_pair(ends);
    MUST(pipe(pipes));
    MUST(write(pipes[1], "pipe", 4));
    see("sendfile", sendfile(ends[0], pipes[0], NULL, 4));
}

static void case_nonblock(void)
{
    int ends[2];
    char text[16];
    connect_pair(ends);
    int on = 1;
    MUST(ioctl(ends[1], FIONBIO, &on));
    see("nothing", read(ends[1], text, sizeof(text)));
    // Another process changes it for all.
    const pid_t child = (pid_t)MUST(fork());
    if (child == 0)
        _exit(fcntl(ends[1], F_SETFL, 0) == 0 ? 0 : 1);
    await_child(child);
    see("flags", fcntl(ends[1], F_GETFL) & O_NONBLOCK);
    MUST(fcntl(ends[0], F_SETFL, O_NONBLOCK));
    static char much[1 << 20];
    long sent = 0, once;
    while ((once = send(ends[0], much, sizeof(much), 0)) > 0)
        sent += once;
    see("full", once);
    MUST(shutdown(ends[0], SHUT_WR));
    long got = 0;
    while ((once = recv(ends[1], much, sizeof(much), 0)) > 0)
        got += once;
    printf("all of it %d\n", got == sent && sent > 0);
}

static void case_timeouts(void)
{
    int ends[2];
    char text[16];
    connect_pair(ends);
    const struct timeval time = {.tv_usec = 20000};
    MUST(setsockopt(ends[1], SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time)));
    see("late", recv(ends[1], text, sizeof(text), 0));
    see("late", read(ends[1], text, sizeof(text)));
    MUST(setsockopt(ends[0], SOL_SOCKET, SO_SNDTIMEO, &time, sizeof(time)));
    static char much[1 << 20];
    long once;
    while ((once = send(ends[0], much, sizeof(much), 0)) > 0)
        ;
    see("late", once);
    struct pollfd entry = {.fd = ends[0], .events = POLLIN};
    see("poll", poll(&entry, 1, 10));
}

// A message of which a part was moved before the time was over is the last one.
static void case_several(void)
{
    int ends[2];
    static char bytes[32 << 20];
    connect_pair(ends);
    talk_long(ends);
    struct iovec part = {bytes, sizeof(bytes)};
    struct mmsghdr all[3];
    memset(all, 0, sizeof(all));
    for (int i = 0; i < 3; i++)
        all[i].msg_hdr = (struct msghdr){.msg_iov = &part, .msg_iovlen = 1};
    const struct timeval some = {.tv_usec = 20000};
    MUST(setsockopt(ends[0], SOL_SOCKET, SO_SNDTIMEO, &some, sizeof(some)));
    MUST(setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &some, sizeof(some)));
    see("sent", sendmmsg(ends[0], all, 3, 0));
    see("a part", all[0].msg_len > 0 && all[0].msg_len < sizeof(bytes));
    see("none", all[1].msg_len);
    say(ends[1], "short");
    see("received", recvmmsg(ends[0], all, 3, MSG_WAITALL, NULL));
    see("of the first", all[0].msg_len);
}

// read() of no bytes does not wait, recv() of none does, and takes nothing.
static void case_no_bytes(void)
{
    int ends[2];
    char text[16];
    connect_pair(ends);
    talk_long(ends);
    struct iovec none[2] = {{text, 0}, {text, 0}};
    struct msghdr message = {.msg_iov = none, .msg_iovlen = 2};
    see("read", read(ends[1], text, 0));
    see("readv", readv(ends[1], none, 2));
    see("recv", recv(ends[1], text, 0, MSG_DONTWAIT));
    see("recvmsg", recvmsg(ends[1], &message, MSG_DONTWAIT));
    see("send", send(ends[0], text, 0, 0));
    say(ends[0], "later");
    see("recv", recv(ends[1], text, 0, 0));
    see("recv", recv(ends[1], text, 0, MSG_WAITALL));
    see("recvmsg", recvmsg(ends[1], &message, 0));
    see("read", read(ends[1], text, 0));
    hear(ends[1]);
    MUST(shutdown(ends[0], SHUT_WR));
    see("recv", recv(ends[1], text, 0, 0));
}

// stdio writes by system calls of its own.
static void case_printf(void)
{
    int ends[2];
    char text[64] = "";
    connect_pair(ends);
    say(ends[0], "head ");
    see("dprintf", dprintf(ends[0], "body %d ", 1));
    say(ends[0], "tail ");
    see("all", recv(ends[1], text, 17, MSG_WAITALL));
    printf("text '%s'\n", text);
    fflush(stdout);
    const int out = dup(STDOUT_FILENO);
    MUST(dup2(ends[0], STDOUT_FILENO));
    printf("printed ");
    fflush(stdout);
    MUST(dup2(out, STDOUT_FILENO));
    say(ends[0], "and sent");
    MUST(shutdown(ends[0], SHUT_WR));
    memset(text, 0, sizeof(text));
    see("all", recv(ends[1], text, sizeof(text), MSG_WAITALL));
    printf("text '%s'\n", text);
    MUST(dup2(ends[0], STDIN_FILENO));
    say(ends[1], "a line\n");
    printf("got %d '%s'\n", fgets(text, sizeof(text), stdin) != NULL, text);
}

// Bytes that go past the library are there, or the connection is reset.
static void case_unseen_bytes(void)
{
    int ends[2];
    char text[64] = "";
    connect_pair(ends);
    say(ends[0], "head ");
    see("unseen", syscall(SYS_write, ends[0], "body ", 5));
    see("said", send(ends[0], "tail", 4, MSG_NOSIGNAL));
    shutdown(ends[0], SHUT_WR);
    const long got = recv(ends[1], text, 14, MSG_WAITALL);
    see("all", got < 14 && got >= 0 ? recv(ends[1], text, 1, 0) : got);
    if (got == 14 && strcmp(text, "head body tail") != 0)
        fail("the order");
}

// Negative numbers for lengths, and nothing for places.
static void case_lengths(void)
{
    int ends[2];
    char text[16] = "text";
    volatile size_t negative = (size_t)-1; // unknown to the compiler, which would warn
    volatile int none = -1;
    volatile nfds_t many = 1 << 30;
    connect_pair(ends);
    struct iovec wrong[2] = {{text, 4}, {text, (size_t)-1}};
    see("write", write(ends[0], text, negative));
    see("writev", writev(ends[0], wrong, 2));
    see("writev", writev(ends[0], wrong, none));
    struct msghdr message = {.msg_iov = wrong, .msg_iovlen = 2};
    see("sendmsg", sendmsg(ends[0], &message, 0));
    say(ends[0], "text");
    see("read", read(ends[1], text, negative));
    see("readv", readv(ends[1], wrong, 2));
    see("recvmsg", recvmsg(ends[1], &message, 0));
    struct iovec right = {text, 4};
    see("flags", pwritev2(ends[0], &right, 1, -1, 0x100000));
    see("flags", preadv2(ends[1], &right, 1, -1, 0x100000));
    struct msghdr *volatile no_message = NULL;
    struct mmsghdr *volatile no_messages = NULL;
    see("none", sendmsg(ends[0], no_message, 0));
    see("none", recvmsg(ends[1], no_message, 0));
    see("none", sendmmsg(ends[0], no_messages, 1, 0));
    see("none", recvmmsg(ends[1], no_messages, 1, 0, NULL));
    message.msg_iov = NULL;
    see("none", sendmsg(ends[0], &message, 0));
    see("none", recvmsg(ends[1], &message, 0));
    struct pollfd *volatile no_entries = NULL;
    struct epoll_event *volatile no_events = NULL, event = {.events = EPOLLIN};
    see("none", poll(no_entries, 1, 0));
    see("many", poll(&(struct pollfd){.fd = ends[1], .events = POLLIN}, many, 0));
    const int set = (int)MUST(epoll_create1(0));
    MUST(epoll_ctl(set, EPOLL_CTL_ADD, ends[1], &event));
    see("none", epoll_wait(set, no_events, 1, 0));
    hear(ends[1]);
}

// What rings do not serve, as it was set before the connection was made.
static void see_option(const char *what, int level, int name, int value)
{
    char text[16] = "", room[256];
    if (listener == 0)
        listen_here();
    const int one = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
    MUST(setsockopt(one, level, name, &value, sizeof(value)));
    MUST(connect(one, (struct sockaddr *)&place, sizeof(place)));
    const int other = (int)MUST(accept(listener, NULL, NULL));
    for (int i = 0; i < 300; i++)
        if (send(other, "0123456789", 10, 0) != 10 || recv(one, text, 10, MSG_WAITALL) != 10 ||
            send(one, text, 10, 0) != 10 || recv(other, text, 10, MSG_WAITALL) != 10)
            fail("a round");
    MUST(send(other, "abc", 3, 0));
    // All that will be there.
    for (int bytes = 0; bytes < 3; sched_yield())
        MUST(ioctl(one, FIONREAD, &bytes));
    struct pollfd entry = {.fd = one, .events = POLLIN};
    see(what, poll(&entry, 1, 0));
    struct iovec part = {text, 2};
    for (int i = 0; i < 2; i++) {
        struct msghdr message = {
            .msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof(room)};
        see("peek", recvmsg(one, &message, MSG_PEEK | MSG_DONTWAIT));
        printf("'%c' and %ld\n", text[0], (long)message.msg_controllen);
        part.iov_len = 1;
    }
    MUST(close(one));
    MUST(close(other));
}

// The kernel begins to take stamps a while after the first socket has asked for them, and goes on
// as long as one does.
static void await_stamps(void)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    const int on = 1;
    int ends[2];
    connect_pair(ends);
    MUST(setsockopt(ends[0], SOL_SOCKET, SO_TIMESTAMP, &on, sizeof(on)));
    for (int i = 0; i < 5000; i++) {
        char byte = 'x', room[256];
        struct iovec part = {&byte, 1};
        struct msghdr message = {
            .msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof(room)};
        MUST(send(ends[1], &byte, 1, 0));
        MUST(recvmsg(ends[0], &message, 0));
        if (message.msg_controllen != 0)
            return;
        nanosleep(&moment, NULL);
    }
    fail("stamps");
}

static void case_options(void)
{
    await_stamps();
    see_option("lowat", SOL_SOCKET, SO_RCVLOWAT, 10);
    see_option("stamp", SOL_SOCKET, SO_TIMESTAMP, 1);
    see_option("offset", SOL_SOCKET, SO_PEEK_OFF, 0);
    see_option("inq", IPPROTO_TCP, TCP_INQ, 1);
    see_option("none", IPPROTO_TCP, TCP_NODELAY, 1);
}

// Of a process that may have no descriptor more, or hardly one, a thread whose stack is small.
static void *serve_little(void *ends)
{
    const int *const both = ends;
    FILE *file = tmpfile();
    static char much[20000], back[20000];
    memset(much, 'x', sizeof(much));
    fwrite(much, sizeof(much), 1, file);
    fflush(file);
    off_t at = 0;
    see("sendfile", sendfile(both[0], fileno(file), &at, sizeof(much)));
    see("all", recv(both[1], back, sizeof(back), MSG_WAITALL));
    see("same", memcmp(much, back, sizeof(much)) == 0);
    const struct rlimit one = {1, 1};
    MUST(setrlimit(RLIMIT_NOFILE, &one));
    const struct timeval soon = {.tv_usec = 20000};
    MUST(setsockopt(both[1], SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof(soon)));
    see("late", recv(both[1], back, 1, 0));
    struct pollfd entry = {.fd = both[1], .events = POLLIN};
    see("nothing", poll(&entry, 1, 20));
    say(both[0], "to the poor");
    see("poll", poll(&entry, 1, 5000));
    hear(both[1]);
    return NULL;
}

static void case_little(void)
{
    int ends[2];
    pthread_attr_t how;
    pthread_t thread;
    connect_pair(ends);
    MUST(-pthread_attr_init(&how));
    MUST(-pthread_attr_setstacksize(&how, (size_t)sysconf(_SC_THREAD_STACK_MIN)));
    MUST(-pthread_create(&thread, &how, serve_little, ends));
    MUST(-pthread_join(thread, NULL));
}

static void *send_rest(void *end)
{
    for (int i = 0; i < 5; i++) {
        usleep(3000); // the reader sleeps meanwhile, or does not: it sees the same
        send(*(int *)end, &"56789"[i], 1, MSG_NOSIGNAL);
    }
    return NULL;
}

// Who peeks at all of what it wants waits for it, until there is no more.
static void case_peek_all(void)
{
    enum { all = MSG_PEEK | MSG_WAITALL };
    int ends[2];
    char text[32] = "";
    pthread_t thread;
    connect_pair(ends);
    say(ends[0], "01234");
    see("at once", recv(ends[1], text, 5, all));
    see("no wait", recv(ends[1], text, 10, all | MSG_DONTWAIT));
    MUST(-pthread_create(&thread, NULL, send_rest, &ends[0]));
    see("all", recv(ends[1], text, 10, all));
    MUST(-pthread_join(thread, NULL));
    printf("text '%s'\n", text);
    const struct timeval soon = {.tv_usec = 20000}, never = {0};
    MUST(setsockopt(ends[1], SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof(soon)));
    see("in time", recv(ends[1], text, sizeof(text), all));
    MUST(setsockopt(ends[1], SOL_SOCKET, SO_RCVTIMEO, &never, sizeof(never)));
    MUST(fcntl(ends[1], F_SETFL, O_NONBLOCK));
    see("nonblock", recv(ends[1], text, sizeof(text), all));
    MUST(fcntl(ends[1], F_SETFL, 0));
    see("take", recv(ends[1], text, 10, MSG_WAITALL));
    // By stdio a ring's sender goes back to TCP.
    say(ends[0], "01234");
    FILE *file = fdopen(dup(ends[0]), "w");
    fputs("abc", file);
    fflush(file);
    see("both", recv(ends[1], text, 8, all));
    memset(text + 8, 0, sizeof(text) - 8);
    printf("text '%s'\n", text);
    MUST(shutdown(ends[0], SHUT_WR));
    see("end", recv(ends[1], text, sizeof(text), all));
    see("take", recv(ends[1], text, sizeof(text), MSG_WAITALL));
    see("nothing", recv(ends[1], text, sizeof(text), all));
}

static void case_long(void)
{
    int ends[2];
    connect_pair(ends);
    talk_long(ends);
}

// Who has waited for long knows what calls do, and has to learn that another process has changed
// it.
static void case_waits(void)
{
    int ends[2];
    char text[16];
    connect_pair(ends);
    talk_long(ends);
    const pid_t sender = (pid_t)MUST(fork());
    if (sender == 0) {
        usleep(30000);
        if (send(ends[0], "x", 1, 0) != 1)
            _exit(2);
        _exit(fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0 ? 0 : 1);
    }
    see("waited", recv(ends[1], text, sizeof(text), 0));
    await_child(sender);
    see("nothing", recv(ends[1], text, sizeof(text), 0));
    MUST(fcntl(ends[1], F_SETFL, 0));
    const struct timeval soon = {.tv_usec = 1000};
    MUST(setsockopt(ends[1], SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof(soon)));
    see("late", recv(ends[1], text, sizeof(text), 0));
    MUST(setsockopt(ends[1], SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){0}, sizeof(soon)));
}

// Each call that moves bytes or waits, once on one end and once on the other where it has two
// kinds.
static void case_calls(void)
{
    int ends[2], bytes = 0;
    char text[64];
    connect_pair(ends);
    struct iovec part = {text, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    struct mmsghdr several = {.msg_hdr = message};
    FILE *file = tmpfile();
    fputs("xx", file);
    fflush(file);
    off_t at = 0;
    int pipes[2];
    MUST(pipe(pipes));
    MUST(write(pipes[1], "x", 1));
    // 10 bytes, and what each call takes of them.
    MUST(write(ends[0], text, 1));
    MUST(writev(ends[0], &part, 1));
    MUST(send(ends[0], text, 1, 0));
    MUST(sendto(ends[0], text, 1, 0, NULL, 0));
    MUST(sendmsg(ends[0], &message, 0));
    MUST(sendmmsg(ends[0], &several, 1, 0));
    MUST(pwritev2(ends[0], &part, 1, -1, 0));
    MUST(sendfile(ends[0], fileno(file), &at, 1));
    MUST(splice(pipes[0], NULL, ends[0], NULL, 1, 0));
    MUST(send(ends[0], text, 1, 0));
    MUST(read(ends[1], text, 1));
    MUST(readv(ends[1], &part, 1));
    MUST(recv(ends[1], text, 1, MSG_WAITALL));
    MUST(recvfrom(ends[1], text, 1, 0, NULL, NULL));
    MUST(recvmsg(ends[1], &message, 0));
    MUST(recvmmsg(ends[1], &several, 1, 0, NULL));
    MUST(preadv2(ends[1], &part, 1, -1, 0));
    extern ssize_t __read_chk(int, void *, size_t, size_t);
    extern ssize_t __recv_chk(int, void *, size_t, size_t, int);
    extern ssize_t __recvfrom_chk(int, void *, size_t, size_t, int, __SOCKADDR_ARG, socklen_t *);
    extern int __poll_chk(struct pollfd *, nfds_t, int, size_t);
    extern int __ppoll_chk(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *,
                           size_t);
    MUST(__read_chk(ends[1], text, 1, sizeof(text)));
    MUST(__recv_chk(ends[1], text, 1, sizeof(text), 0));
    MUST(__recvfrom_chk(ends[1], text, 1, sizeof(text), 0, NULL, NULL));
    MUST(ioctl(ends[1], FIONREAD, &bytes));
    struct pollfd entry = {.fd = ends[1], .events = POLLIN};
    const struct timespec none = {0};
    struct timeval no_time = {0};
    MUST(poll(&entry, 1, 0));
    MUST(__poll_chk(&entry, 1, 0, sizeof(entry)));
    MUST(ppoll(&entry, 1, &none, NULL));
    MUST(__ppoll_chk(&entry, 1, &none, NULL, sizeof(entry)));
    MUST(select(0, NULL, NULL, NULL, &no_time));
    MUST(pselect(0, NULL, NULL, NULL, &none, NULL));
    const int set = (int)MUST(epoll_create1(0));
    struct epoll_event event = {.events = EPOLLIN};
    MUST(epoll_ctl(set, EPOLL_CTL_ADD, ends[1], &event));
    MUST(epoll_wait(set, &event, 1, 0));
    MUST(epoll_pwait(set, &event, 1, 0, NULL));
    MUST(epoll_pwait2(set, &event, 1, &none, NULL));
    MUST(shutdown(ends[0], SHUT_WR));
    puts("all called");
}

const struct trap transfer_traps[] = {{"stdio", case_stdio},
                                      {"sendfile", case_sendfile},
                                      {"flags", case_flags},
                                      {"oob", case_oob},
                                      {"cork", case_cork},
                                      {"oob_all", case_oob_all},
                                      {"kernels", case_kernels},
                                      {"nonblock", case_nonblock},
                                      {"timeouts", case_timeouts},
                                      {"several", case_several},
                                      {"no_bytes", case_no_bytes},
                                      {"long", case_long},
                                      {"waits", case_waits},
                                      {"calls", case_calls},
                                      {"peek_all", case_peek_all},
                                      {"printf", case_printf},
                                      {"unseen_bytes", case_unseen_bytes},
                                      {"lengths", case_lengths},
                                      {"options", case_options},
                                      {"little", case_little},
                                      {NULL, NULL}};

// SPDX-License-Identifier: BSD-3-Clause
// Programs do these things with sockets. Each case says what it saw: the test compares that with
// and without the preload.
//
//   traps CASE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

#define MUST(call)                                                                                 \
    __extension__({                                                                                \
        const long result_ = (long)(call);                                                         \
        if (result_ < 0)                                                                           \
            fail(#call);                                                                           \
        result_;                                                                                   \
    })

// What is seen: a result, and what errno says of a negative one.
static void see(const char *what, long result)
{
    printf("%s %ld%s%s\n", what, result, result < 0 ? " " : "",
           result < 0 ? strerrorname_np(errno) : "");
}

static int listener;
static struct sockaddr_in place;

static void listen_here(void)
{
    socklen_t length = sizeof(place);
    listener = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
    place = (struct sockaddr_in){.sin_family = AF_INET};
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    MUST(bind(listener, (struct sockaddr *)&place, sizeof(place)));
    MUST(listen(listener, 16));
    MUST(getsockname(listener, (struct sockaddr *)&place, &length));
}

// Two ends of a connection: the one that connected, the one that was accepted.
static void connect_pair(int *ends)
{
    if (listener == 0)
        listen_here();
    ends[0] = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
    MUST(connect(ends[0], (struct sockaddr *)&place, sizeof(place)));
    ends[1] = (int)MUST(accept(listener, NULL, NULL));
}

static void say(int fd, const char *text)
{
    see("said", send(fd, text, strlen(text), MSG_NOSIGNAL));
}

static void hear(int fd)
{
    char text[64] = "";
    see("heard", recv(fd, text, sizeof(text) - 1, 0));
    printf("text '%s'\n", text);
}

// Both ways.
static void talk(int *ends)
{
    say(ends[0], "there");
    hear(ends[1]);
    say(ends[1], "and back");
    hear(ends[0]);
}

static void await_child(pid_t child)
{
    int status = 0;
    MUST(waitpid(child, &status, 0));
    printf("child %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
}

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

// Numbers closed where nobody sees it, and used again.
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

static void case_fork(void)
{
    int ends[2];
    connect_pair(ends);
    const pid_t child = (pid_t)MUST(fork());
    if (child == 0) {
        close(ends[1]);
        send(ends[0], "child", 5, 0);
        char text[16] = "";
        _exit(recv(ends[0], text, sizeof(text), 0) == 6 && strcmp(text, "parent") == 0 ? 7 : 1);
    }
    MUST(close(ends[0]));
    hear(ends[1]);
    say(ends[1], "parent");
    await_child(child);
    hear(ends[1]);
}

static void case_vfork(void)
{
    int ends[2];
    connect_pair(ends);
    const pid_t child = vfork();
    if (child == 0) {
        close(ends[0]); // its own descriptor, in memory that is the parent's
        dup2(ends[1], 90);
        _exit(3);
    }
    await_child(child);
    talk(ends);
    see("not there", write(90, "x", 1));
}

extern char **environ;

static void case_posix_spawn(void)
{
    int ends[2];
    connect_pair(ends);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[0], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[1]);
    char *words[] = {(char *)"echo", (char *)"spawned", NULL};
    pid_t child;
    const int status = posix_spawnp(&child, "echo", &actions, NULL, words, environ);
    see("spawn", status);
    posix_spawn_file_actions_destroy(&actions);
    hear(ends[1]);
    await_child(child);
    talk(ends);
}

static void case_exec(void)
{
    int ends[2];
    connect_pair(ends);
    talk(ends);
    const pid_t child = (pid_t)MUST(fork());
    if (child == 0) {
        dup2(ends[0], STDIN_FILENO);
        dup2(ends[0], STDOUT_FILENO);
        execlp("cat", "cat", (char *)NULL);
        _exit(9);
    }
    MUST(close(ends[0]));
    say(ends[1], "through cat");
    hear(ends[1]);
    MUST(shutdown(ends[1], SHUT_WR));
    hear(ends[1]);
    await_child(child);
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
    see("zero", recv(ends[1], text, 0, MSG_DONTWAIT));
    see("bad", send(ends[0], NULL, 4, 0));
    see("bad", write(ends[0], NULL, 0));
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
    see("before", recv(ends[1], text, sizeof(text), 0));
    see("oob", recv(ends[1], text, 1, MSG_OOB));
    printf("text '%c'\n", text[0]);
    see("behind", recv(ends[1], text, sizeof(text), 0));
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

static volatile sig_atomic_t signals;
static void count_signal(int number)
{
    signals += number != 0;
}

static void case_sigpipe(void)
{
    int ends[2];
    connect_pair(ends);
    signal(SIGPIPE, count_signal);
    MUST(shutdown(ends[0], SHUT_WR));
    see("write", write(ends[0], "x", 1));
    printf("signals %d\n", (int)signals);
    see("send", send(ends[0], "x", 1, MSG_NOSIGNAL));
    printf("signals %d\n", (int)signals);
}

static void alarm_soon(void)
{
    const struct timespec soon = {.tv_nsec = 20000000};
    const struct itimerspec once = {.it_value = soon};
    static timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
    MUST(timer_create(CLOCK_MONOTONIC, &event, &timer));
    MUST(timer_settime(timer, 0, &once, NULL));
}

static void case_signals(void)
{
    int ends[2];
    char text[16];
    connect_pair(ends);
    struct sigaction action = {.sa_handler = count_signal};
    MUST(sigaction(SIGALRM, &action, NULL));
    alarm_soon();
    see("recv", recv(ends[1], text, sizeof(text), 0));
    alarm_soon();
    struct pollfd entry = {.fd = ends[1], .events = POLLIN};
    see("poll", poll(&entry, 1, -1));
    struct sigaction old;
    MUST(sigaction(SIGALRM, NULL, &old));
    printf("the handler %d\n", old.sa_handler == count_signal);
    // One that restarts calls: the receive goes on, until its bytes are there.
    action.sa_flags = SA_RESTART;
    MUST(sigaction(SIGALRM, &action, NULL));
    const pid_t child = (pid_t)MUST(fork());
    if (child == 0) {
        const struct timespec while_ = {.tv_nsec = 100000000};
        nanosleep(&while_, NULL);
        _exit(send(ends[0], "late", 4, 0) == 4 ? 0 : 1);
    }
    alarm_soon();
    see("recv", recv(ends[1], text, sizeof(text), 0));
    await_child(child);
    printf("signals %d\n", (int)signals);
}

static sigjmp_buf back;
static void jump(int number)
{
    siglongjmp(back, number);
}

static void case_longjmp(void)
{
    int ends[2];
    char text[16];
    connect_pair(ends);
    signal(SIGALRM, jump);
    for (int i = 0; i < 3; i++) {
        if (sigsetjmp(back, 1) == 0) {
            alarm_soon();
            see("recv", recv(ends[1], text, sizeof(text), 0));
        } else {
            printf("jumped\n");
        }
    }
    talk(ends);
    MUST(close(ends[0]));
    hear(ends[1]);
}

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
    see("told", epoll_wait(set, got, 4, 0));
    say(ends[0], "2");
    see("wait", epoll_wait(set, got, 4, 5000));
    event.events = EPOLLIN | EPOLLONESHOT;
    see("once", epoll_ctl(set, EPOLL_CTL_MOD, ends[1], &event));
    see("wait", epoll_wait(set, got, 4, 5000));
    see("told", epoll_wait(set, got, 4, 0));
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

// Long enough for a daemon to match the connection meanwhile.
static void talk_long(int *ends)
{
    for (int round = 0; round < 5000; round++) {
        char there[100], back[sizeof(there)];
        for (unsigned i = 0; i < sizeof(there); i++)
            there[i] = (char)(round * 7 + (int)i);
        for (int way = 0; way < 2; way++) {
            if (send(ends[way], there, sizeof(there), 0) != (long)sizeof(there) ||
                recv(ends[1 - way], back, sizeof(back), MSG_WAITALL) != (long)sizeof(back) ||
                memcmp(there, back, sizeof(back)) != 0)
                fail("a round");
        }
    }
    puts("all as sent");
}

static void case_long(void)
{
    int ends[2];
    connect_pair(ends);
    talk_long(ends);
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

static void show_costs(void)
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

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } cases[] = {{"dup", case_dup},
                 {"dup2_over", case_dup2_over},
                 {"close_range", case_close_range},
                 {"close_all", case_close_all},
                 {"unseen_close", case_unseen_close},
                 {"fork", case_fork},
                 {"vfork", case_vfork},
                 {"posix_spawn", case_posix_spawn},
                 {"exec", case_exec},
                 {"scm_rights", case_scm_rights},
                 {"stdio", case_stdio},
                 {"sendfile", case_sendfile},
                 {"flags", case_flags},
                 {"oob", case_oob},
                 {"nonblock", case_nonblock},
                 {"timeouts", case_timeouts},
                 {"linger", case_linger},
                 {"half_close", case_half_close},
                 {"sigpipe", case_sigpipe},
                 {"signals", case_signals},
                 {"longjmp", case_longjmp},
                 {"epoll", case_epoll},
                 {"select", case_select},
                 {"long", case_long},
                 {"connect_again", case_connect_again},
                 {"several", case_several},
                 {"no_bytes", case_no_bytes},
                 {"reset", case_reset},
                 {"calls", case_calls}};
    setvbuf(stdout, NULL, _IOLBF, 0);
    // So many calls of one kind, for who counts instructions.
    if (argc == 4 && strcmp(argv[1], "repeat") == 0) {
        int ends[2];
        const int set = connect_in_set(ends);
        repeat(ends, set, atoi(argv[2]) % kind_count, atoi(argv[3]));
        return 0;
    }
    if (argc != 2)
        return 2;
    if (strcmp(argv[1], "costs") == 0) {
        show_costs();
        return 0;
    }
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (strcmp(argv[1], "list") == 0)
            puts(cases[i].name);
        else if (strcmp(argv[1], cases[i].name) == 0) {
            cases[i].run();
            return 0;
        }
    }
    return strcmp(argv[1], "list") == 0 ? 0 : 2;
}

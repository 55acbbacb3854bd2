// SPDX-License-Identifier: BSD-3-Clause
// Servers that fork: a client, which is another process, sends blocks and wants each back as it
// was. Each case is a way in which processes of the server share the connection that was accepted.
//
//   forking list | CASE
#include "must.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { block = 1000, rounds = 1000 };

static char *self;
static int listener, taken;
static pid_t client;

static void fill(char *bytes, unsigned round)
{
    for (unsigned i = 0; i < block; i++)
        bytes[i] = (char)(i * 7 + round * 13 + round / 256);
}

static void await_child(pid_t child)
{
    int status = 0;
    MUST(waitpid(child, &status, 0));
    if (WIFEXITED(status) ? WEXITSTATUS(status) != 0 : WTERMSIG(status) != SIGKILL) {
        fprintf(stderr, "child: status %#x\n", (unsigned)status);
        exit(1);
    }
}

static void exchange(int fd, unsigned round)
{
    char sent[block], got[block];
    fill(sent, round);
    MUST(send(fd, sent, block, MSG_NOSIGNAL));
    if (MUST(recv(fd, got, block, MSG_WAITALL)) != block || memcmp(sent, got, block) != 0)
        exit(2);
}

// A client that wants `rounds` blocks and then the end.
static void want_blocks(int fd)
{
    char byte;
    for (unsigned round = 0; round < rounds; round++)
        exchange(fd, round);
    MUST(shutdown(fd, SHUT_WR));
    exit(recv(fd, &byte, 1, 0) == 0 ? 0 : 3);
}

// The connection, with a client at its other end.
static void begin_with(void (*client_does)(int fd))
{
    struct sockaddr_in place = {.sin_family = AF_INET};
    socklen_t length = sizeof(place);
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    listener = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
    MUST(bind(listener, (struct sockaddr *)&place, sizeof(place)));
    MUST(listen(listener, 1));
    MUST(getsockname(listener, (struct sockaddr *)&place, &length));
    client = (pid_t)MUST(fork());
    if (client != 0) {
        taken = (int)MUST(accept(listener, NULL, NULL));
        return;
    }
    close(listener);
    const int fd = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
    MUST(connect(fd, (struct sockaddr *)&place, sizeof(place)));
    client_does(fd);
    exit(9);
}

static void begin(void)
{
    begin_with(want_blocks);
}

// Blocks that go back. @return all that were asked for
static bool serve(int fd, unsigned count)
{
    char bytes[block];
    for (unsigned i = 0; i < count; i++)
        if (MUST(recv(fd, bytes, block, MSG_WAITALL)) != block ||
            MUST(send(fd, bytes, block, MSG_NOSIGNAL)) != block)
            return false;
    return true;
}

static void serve_rest(int fd)
{
    while (serve(fd, 1))
        ;
    close(fd);
}

static void over(void)
{
    await_child(client);
    puts("served");
}

static void await_byte(int fd)
{
    char byte;
    if (MUST(read(fd, &byte, 1)) != 1)
        exit(4);
}

static void say_byte(int fd)
{
    MUST(write(fd, "x", 1));
}

// The server closes it before its child uses it.
static void case_child(void)
{
    int closed[2];
    MUST(pipe(closed));
    begin();
    const pid_t child = (pid_t)MUST(fork());
    if (child == 0) {
        await_byte(closed[0]);
        serve_rest(taken);
        exit(0);
    }
    close(taken);
    say_byte(closed[1]);
    await_child(child);
    over();
}

// The child uses it first while the server still has it.
static void case_close_late(void)
{
    int used[2];
    MUST(pipe(used));
    begin();
    const pid_t child = (pid_t)MUST(fork());
    if (child == 0) {
        serve(taken, 10);
        say_byte(used[1]);
        serve_rest(taken);
        exit(0);
    }
    await_byte(used[0]);
    close(taken);
    await_child(child);
    over();
}

// The child waits in the kernel when the server closes it: by recv, poll, or a set.
static void waits(int way)
{
    begin();
    const pid_t child = (pid_t)MUST(fork());
    if (child == 0) {
        struct pollfd one = {taken, POLLIN, 0};
        struct epoll_event event = {.events = EPOLLIN};
        const int set = way == 2 ? (int)MUST(epoll_create1(0)) : -1;
        if (way == 2)
            MUST(epoll_ctl(set, EPOLL_CTL_ADD, taken, &event));
        for (bool more = true; more;) {
            if (way == 1)
                MUST(poll(&one, 1, -1));
            if (way == 2)
                MUST(epoll_wait(set, &event, 1, -1));
            more = serve(taken, 1);
        }
        exit(0);
    }
    close(taken);
    await_child(child);
    over();
}

static void case_recv(void)
{
    waits(0);
}

static void case_poll(void)
{
    waits(1);
}

static void case_epoll(void)
{
    waits(2);
}

// One of two that use it in turn, with blocks enough for the client. Each reads its own pipe.
static int ways[2][2];

static void serve_in_turn(int fd, int who)
{
    for (unsigned i = 0; i < rounds / 20; i++) {
        await_byte(ways[who][0]);
        if (!serve(fd, 10))
            exit(5);
        say_byte(ways[1 - who][1]);
    }
}

static void make_ways(void)
{
    MUST(pipe(ways[0]));
    MUST(pipe(ways[1]));
    say_byte(ways[0][1]);
}

// Both use it, in turn, and both keep it.
static void case_both(void)
{
    begin();
    make_ways();
    const pid_t child = (pid_t)MUST(fork());
    serve_in_turn(taken, child == 0);
    if (child == 0)
        exit(0);
    await_child(child);
    serve_rest(taken);
    over();
}

// Two children, and the server, which has given up by then, makes the second one and closes it.
static void case_given_up(void)
{
    pid_t children[2];
    begin();
    make_ways();
    for (int i = 0; i < 2; i++) {
        children[i] = (pid_t)MUST(fork());
        if (children[i] == 0) {
            serve_in_turn(taken, i);
            exit(0);
        }
        if (i == 0 && fdopen(taken, "r") == NULL)
            fail("fdopen");
    }
    close(taken);
    await_child(children[0]);
    await_child(children[1]);
    over();
}

// A child, and a process that is handed it, by a server that then closes it.
static void case_handed_on(void)
{
    int hands[2];
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } words = {.header = {.cmsg_len = CMSG_LEN(sizeof(int)),
                          .cmsg_level = SOL_SOCKET,
                          .cmsg_type = SCM_RIGHTS}};
    char byte = 'x';
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &words,
                             .msg_controllen = sizeof(words.room)};
    make_ways();
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, hands));
    const pid_t other = (pid_t)MUST(fork());
    if (other == 0) {
        int fd;
        MUST(recvmsg(hands[1], &message, 0));
        memcpy(&fd, CMSG_DATA(&words.header), sizeof(fd));
        serve_in_turn(fd, 1);
        exit(0);
    }
    begin();
    const pid_t child = (pid_t)MUST(fork());
    if (child == 0) {
        serve_in_turn(taken, 0);
        exit(0);
    }
    memcpy(CMSG_DATA(&words.header), &taken, sizeof(taken));
    MUST(sendmsg(hands[0], &message, 0));
    close(taken);
    await_child(other);
    await_child(child);
    over();
}

// The child is killed before it uses it, or after: then the server is alone with it.
static void killed(unsigned count)
{
    int used[2];
    MUST(pipe(used));
    begin();
    const pid_t child = (pid_t)MUST(fork());
    if (child == 0) {
        serve(taken, count);
        say_byte(used[1]);
        pause();
    }
    await_byte(used[0]);
    MUST(kill(child, SIGKILL));
    await_child(child);
    serve_rest(taken);
    over();
}

static void case_killed_before(void)
{
    killed(0);
}

static void case_killed_after(void)
{
    killed(10);
}

// ---- a child that is killed while a client waits until it may write

enum { first_rounds = 100 };

static int filled[2];
static const char *way_to_wait;

static void await_room(int fd)
{
    enum { patience_ms = 60000 };
    int ready = 1;
    if (strcmp(way_to_wait, "poll") == 0) {
        struct pollfd entry = {.fd = fd, .events = POLLOUT};
        ready = (int)MUST(poll(&entry, 1, patience_ms));
    } else if (strcmp(way_to_wait, "select") == 0) {
        fd_set writes;
        FD_ZERO(&writes);
        FD_SET(fd, &writes);
        struct timeval patience = {.tv_sec = patience_ms / 1000};
        ready = (int)MUST(select(fd + 1, NULL, &writes, NULL, &patience));
    } else if (strcmp(way_to_wait, "send") == 0) {
        MUST(fcntl(fd, F_SETFL, 0));
    } else {
        const int set = (int)MUST(epoll_create1(0));
        struct epoll_event event = {
            .events = EPOLLOUT | (strcmp(way_to_wait, "edge") == 0 ? (uint32_t)EPOLLET : 0)};
        MUST(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
        ready = (int)MUST(epoll_wait(set, &event, 1, patience_ms));
        close(set);
    }
    if (ready != 1)
        exit(4);
}

// Until it is reset: by ring after a write more, as where its peer had read all.
static void fill_until_reset(int fd)
{
    char bytes[block];
    for (unsigned round = 0; round < first_rounds; round++)
        exchange(fd, round);
    fill(bytes, 0);
    MUST(fcntl(fd, F_SETFL, O_NONBLOCK));
    for (bool was_full = false;;) {
        if (send(fd, bytes, block, MSG_NOSIGNAL) >= 0)
            continue;
        if (errno != EAGAIN)
            exit(errno == ECONNRESET || errno == EPIPE ? 0 : 5);
        if (!was_full)
            say_byte(filled[1]);
        was_full = true;
        await_room(fd);
    }
}

static void killed_unread(const char *way)
{
    way_to_wait = way;
    MUST(pipe(filled));
    begin_with(fill_until_reset);
    // So the connection is the server's, and no daemon knows of the child.
    serve(taken, first_rounds);
    const pid_t child = (pid_t)MUST(fork());
    while (child == 0)
        pause();
    close(taken);
    await_byte(filled[0]);
    MUST(kill(child, SIGKILL));
    await_child(child);
    over();
}

static void case_unread_poll(void)
{
    killed_unread("poll");
}

static void case_unread_select(void)
{
    killed_unread("select");
}

static void case_unread_epoll(void)
{
    killed_unread("epoll");
}

static void case_unread_edge(void)
{
    killed_unread("edge");
}

static void case_unread_send(void)
{
    killed_unread("send");
}

// A child's child serves, and is no one's child by then.
static void case_twice(void)
{
    int closed[2];
    MUST(pipe(closed));
    begin();
    const pid_t child = (pid_t)MUST(fork());
    if (child == 0) {
        if (MUST(fork()) == 0) {
            await_byte(closed[0]);
            serve_rest(taken);
        }
        exit(0);
    }
    close(taken);
    await_child(child);
    say_byte(closed[1]);
    over();
}

// The child goes on as another program, which uses it, and then the server does.
static void other_program(bool is_vfork)
{
    begin();
    char number[16];
    snprintf(number, sizeof(number), "%d", taken);
    const pid_t child = is_vfork ? vfork() : fork();
    if (child == 0) {
        execl(self, self, "serve", number, (char *)NULL);
        _exit(6);
    }
    MUST(child);
    await_child(child);
    serve_rest(taken);
    over();
}

static void case_exec(void)
{
    other_program(false);
}

static void case_vfork(void)
{
    other_program(true);
}

// A program that is started with the connection as its standard input, by a server that closes its
// own. How it goes on from there is the word.
static void started(const char *word, bool is_vfork)
{
    begin();
    MUST(fcntl(taken, F_SETFD, FD_CLOEXEC));
    const pid_t child = is_vfork ? vfork() : fork();
    if (child == 0) {
        if (dup2(taken, 0) == 0)
            execl(self, self, word, "0", (char *)NULL);
        _exit(6);
    }
    MUST(child);
    close(taken);
    await_child(child);
    over();
}

static void case_started(void)
{
    started("serve_rest", false);
}

static void case_started_vfork(void)
{
    started("serve_rest", true);
}

// A login: a program, known by another name, uses the connection, has a child that is confined use
// it, and then goes on by itself, or closes it and leaves it to the child.
static void logs_in(const char *word)
{
    begin();
    const pid_t child = (pid_t)MUST(fork());
    if (child == 0) {
        if (dup2(taken, 0) == 0) {
            close(taken);
            execl(self, "socket_confining", word, "0", (char *)NULL);
        }
        _exit(6);
    }
    close(taken);
    await_child(child);
    over();
}

static void case_confining(void)
{
    logs_in("confining");
}

static void case_confined_alone(void)
{
    logs_in("confined_alone");
}

static void confining(int fd, bool is_alone);

// The same without another program: the process that accepts forks for each connection.
static void case_confining_forked(void)
{
    begin();
    const pid_t child = (pid_t)MUST(fork());
    if (child == 0) {
        confining(taken, false);
        _exit(0);
    }
    close(taken);
    await_child(child);
    over();
}

static void case_started_again(void)
{
    started("again", false);
}

static void case_started_forks(void)
{
    started("forks", true);
}

static void case_started_spawn(void)
{
    pid_t child;
    begin();
    char number[16];
    snprintf(number, sizeof(number), "%d", taken);
    char *words[] = {self, "serve_rest", number, NULL};
    if (posix_spawn(&child, self, NULL, NULL, words, environ) != 0)
        exit(6);
    close(taken);
    await_child(child);
    over();
}

// The first try fails, and then the process serves.
static void case_not_started(void)
{
    int closed[2];
    MUST(pipe(closed));
    begin();
    const pid_t child = (pid_t)MUST(fork());
    if (child == 0) {
        execl("/no/such/program", "program", (char *)NULL);
        await_byte(closed[0]);
        serve_rest(taken);
        exit(0);
    }
    close(taken);
    say_byte(closed[1]);
    await_child(child);
    over();
}

// A program that knows of nothing has a child, which uses the connection when the program is gone
// and its server uses it too.
static void case_unknown(void)
{
    begin();
    make_ways();
    const pid_t child = (pid_t)MUST(fork());
    if (child == 0) {
        char numbers[3][16];
        const int passed[] = {taken, ways[1][0], ways[0][1]};
        for (int i = 0; i < 3; i++)
            snprintf(numbers[i], sizeof(numbers[i]), "%d", passed[i]);
        char *words[] = {self, "stranger", numbers[0], numbers[1], numbers[2], NULL};
        char *nothing[] = {NULL};
        execve(self, words, nothing);
        _exit(6);
    }
    await_child(child);
    serve_in_turn(taken, 0);
    serve_rest(taken);
    over();
}

// One that knows of nothing has the environment passed on to one that does.
static void case_passed_on(void)
{
    setenv("PASSED_ON", getenv("LD_PRELOAD") != NULL ? getenv("LD_PRELOAD") : "", 1);
    begin();
    const pid_t child = (pid_t)MUST(fork());
    if (child == 0) {
        char number[16];
        snprintf(number, sizeof(number), "%d", taken);
        unsetenv("LD_PRELOAD");
        execl(self, self, "pass_on", number, (char *)NULL);
        _exit(6);
    }
    close(taken);
    await_child(child);
    over();
}

// Nothing of the program's before is left that this one would hand on to its children.
static void find_no_family(void)
{
    for (int fd = 0; fd < 2048; fd++) {
        char name[32], file[64];
        snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
        const ssize_t size = readlink(name, file, sizeof(file) - 1);
        const int flags = size < 0 ? -1 : fcntl(fd, F_GETFD);
        file[size < 0 ? 0 : size] = 0;
        if (flags >= 0 && (flags & FD_CLOEXEC) == 0 && strstr(file, "ntbsocket") != NULL)
            exit(8);
    }
}

// What calls on a connection with rings make, and what looks for holders, ends this process: as
// sshd's child.
static void confine(void)
{
    enum { ended = 5 };
    static const unsigned calls[ended] = {SYS_getsockopt, SYS_sendmsg, SYS_sched_yield, SYS_kill,
                                          SYS_ioctl};
    struct sock_filter filter[ended * 2 + 2] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    for (unsigned i = 0; i < ended; i++) {
        filter[1 + i * 2] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i], 0, 1);
        filter[2 + i * 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    }
    filter[ended * 2 + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {ended * 2 + 2, filter};
    MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    MUST(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
}

// More uses than the library lets go by without asking whether other holders live. Where the
// program closes it the child serves all that is left.
static void confining(int fd, bool is_alone)
{
    int told[2];
    MUST(pipe(told));
    serve(fd, 10);
    if (is_alone) { // the one that is confined is not the first
        const pid_t before = (pid_t)MUST(fork());
        if (before == 0)
            _exit(0);
        await_child(before);
    }
    const pid_t child = (pid_t)MUST(fork());
    if (child != 0 && is_alone) {
        close(fd);
        say_byte(told[1]);
        await_child(child);
        return;
    }
    if (child == 0) {
        confine();
        if (is_alone) {
            await_byte(told[0]);
            serve_rest(fd);
        } else {
            serve(fd, 100);
        }
        _exit(0);
    }
    await_child(child);
    serve_rest(fd);
}

// What these are started for.
static int other_program_main(char **words, int count)
{
    const int fd = atoi(words[2]);
    if (getenv("LD_PRELOAD") != NULL)
        find_no_family();
    if (strcmp(words[1], "serve") == 0)
        return serve(fd, rounds / 2) ? 0 : 1;
    if (strcmp(words[1], "serve_rest") == 0)
        serve_rest(fd);
    else if (strcmp(words[1], "confining") == 0 || strcmp(words[1], "confined_alone") == 0)
        confining(fd, strcmp(words[1], "confined_alone") == 0);
    else if (strcmp(words[1], "again") == 0)
        execl(self, self, "serve_rest", words[2], (char *)NULL);
    else if (strcmp(words[1], "pass_on") == 0) {
        setenv("LD_PRELOAD", getenv("PASSED_ON"), 1);
        execl("/proc/self/exe", self, "serve_rest", words[2], (char *)NULL);
    } else if (strcmp(words[1], "forks") == 0) {
        const pid_t child = (pid_t)MUST(fork());
        if (child == 0) {
            serve_rest(fd);
            exit(0);
        }
        close(fd);
        await_child(child);
    } else if (strcmp(words[1], "stranger") == 0 && count == 5) {
        ways[1][0] = atoi(words[3]);
        ways[0][1] = atoi(words[4]);
        if (MUST(fork()) == 0)
            serve_in_turn(fd, 1);
    } else
        return 2;
    return 0;
}

// One thread waits in the kernel for bytes when the connection is its process's alone; others use
// it as well.
static void *receive_rest(void *all)
{
    char bytes[block];
    for (ssize_t got; (got = recv(taken, bytes, block, 0)) > 0;)
        MUST(write(*(int *)all, bytes, (size_t)got));
    close(*(int *)all);
    return NULL;
}

static void case_threads(void)
{
    int used[2], way[2];
    pthread_t receiver;
    begin(); // first: the client has no end of the pipes
    MUST(pipe(used));
    MUST(pipe(way));
    const pid_t child = (pid_t)MUST(fork());
    if (child == 0) {
        await_byte(used[0]);
        close(taken); // before it is waited for
        exit(0);
    }
    if (!serve(taken, 10) || pthread_create(&receiver, NULL, receive_rest, &way[1]) != 0)
        exit(7);
    char bytes[block];
    for (unsigned i = 0;; i++) {
        const ssize_t got = MUST(read(way[0], bytes, block));
        if (got == 0)
            break;
        if (i == 10)
            say_byte(used[1]);
        MUST(send(taken, bytes, (size_t)got, MSG_NOSIGNAL));
    }
    pthread_join(receiver, NULL);
    await_child(child);
    close(taken);
    over();
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } cases[] = {{"child", case_child},
                 {"close_late", case_close_late},
                 {"recv", case_recv},
                 {"poll", case_poll},
                 {"epoll", case_epoll},
                 {"both", case_both},
                 {"given_up", case_given_up},
                 {"handed_on", case_handed_on},
                 {"killed_before", case_killed_before},
                 {"killed_after", case_killed_after},
                 {"unread_poll", case_unread_poll},
                 {"unread_select", case_unread_select},
                 {"unread_epoll", case_unread_epoll},
                 {"unread_edge", case_unread_edge},
                 {"unread_send", case_unread_send},
                 {"twice", case_twice},
                 {"exec", case_exec},
                 {"vfork", case_vfork},
                 {"started", case_started},
                 {"started_vfork", case_started_vfork},
                 {"confining", case_confining},
                 {"confined_alone", case_confined_alone},
                 {"confining_forked", case_confining_forked},
                 {"started_again", case_started_again},
                 {"started_forks", case_started_forks},
                 {"started_spawn", case_started_spawn},
                 {"not_started", case_not_started},
                 {"unknown", case_unknown},
                 {"passed_on", case_passed_on},
                 {"threads", case_threads}};
    self = argv[0];
    if (argc > 2)
        return other_program_main(argv, argc);
    for (unsigned i = 0; argc == 2 && i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (strcmp(argv[1], "list") == 0)
            puts(cases[i].name);
        else if (strcmp(argv[1], cases[i].name) == 0) {
            cases[i].run();
            return 0;
        }
    }
    return argc == 2 && strcmp(argv[1], "list") == 0 ? 0 : 2;
}

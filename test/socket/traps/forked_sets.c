// SPDX-License-Identifier: BSD-3-Clause
// Sets that a child has inherited. The kernel has one for both.
#include "traps.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
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

static double seconds(void)
{
    struct timespec now;
    MUST(clock_gettime(CLOCK_MONOTONIC, &now));
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static double cpu_seconds(void)
{
    struct timespec used;
    MUST(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used));
    return (double)used.tv_sec + (double)used.tv_nsec / 1e9;
}

static void pause_for(long ms)
{
    const struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

// Times that the calling thread gave its CPU away by itself: the library waits in pauses of 1 ms,
// some hundred of them where it waits in vain.
static long pauses(void)
{
    struct rusage used;
    MUST(getrusage(RUSAGE_THREAD, &used));
    return used.ru_nvcsw;
}
enum { pauses_most = 50 };

// Until a thread, of this process or a child, is in the kernel's epoll wait, as the kernel says.
static void await_asleep(pid_t thread)
{
    char path[64], text[32];
    snprintf(path, sizeof(path), "/proc/%d/syscall", (int)thread);
    for (int i = 0; i < 10000; i++, pause_for(1)) {
        const int file = open(path, O_RDONLY);
        const long length = file < 0 ? -1 : read(file, text, sizeof(text) - 1);
        close(file);
        text[length < 0 ? 0 : length] = 0;
        const long call = length > 0 && text[0] != 'r' ? atol(text) : -1; // "running"
        if (call == SYS_epoll_pwait || call == SYS_epoll_pwait2)
            return;
#ifdef SYS_epoll_wait
        if (call == SYS_epoll_wait)
            return;
#endif
    }
    fail("a thread that does not sleep");
}

// Until a child has ended, which stays as it is: the library takes it for one that lives.
static void await_end(pid_t child)
{
    siginfo_t info;
    MUST(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT));
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

static void end_pair(int *pair)
{
    MUST(close(pair[0]));
    MUST(close(pair[1]));
}

// One wait, for more events than there should be.
static void wait_all(const char *what, int timeout)
{
    struct epoll_event events[4] = {{0}};
    const int found = epoll_wait(set, events, 4, timeout);
    printf("%s: %d, data %d, events %x\n", what, found, (int)events[0].data.u64, events[0].events);
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

static int is_by_ring(const int *pair)
{
    const unsigned long long before = sent_by_tcp(pair);
    exchange(pair, 3);
    return sent_by_tcp(pair) == before;
}

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

// Two members more than begin() has: one end of each.
static void begin_two(int *others)
{
    begin();
    connect_pair(others);
    add(set, others[1], 9);
    const int both[2] = {ends[0], others[0]};
    for (int i = 0; i < 2; i++) {
        char byte = 0;
        wait_late("both", (struct late){1, {both[i]}});
        MUST(recv(i == 0 ? ends[1] : others[1], &byte, 1, 0));
    }
}

// What a child takes out of the set is in it no more.
static void case_forked_set_del(void)
{
    int others[2];
    begin_two(others);
    const pid_t child = begin_child();
    if (child == 0)
        _exit(epoll_ctl(set, EPOLL_CTL_DEL, others[1], NULL) == 0 ? 0 : 1);
    await_child(child);
    wait_late("first", (struct late){2, {others[0], ends[0]}});
    hear(ends[1]);
    struct epoll_event event;
    see("more", epoll_wait(set, &event, 1, 0));
    see("delete", epoll_ctl(set, EPOLL_CTL_DEL, others[1], NULL));
    wait_and_hear("after");
}

// And what it adds or changes is as it says, also where its parent has changed others meanwhile.
static void case_forked_set_changed(void)
{
    int others[2], pipes[2];
    char byte = 0;
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = 11};
    begin_two(others);
    MUST(pipe(pipes));
    const pid_t child = begin_child();
    if (child == 0) {
        MUST(read(pipes[0], &byte, 1));
        MUST(epoll_ctl(set, EPOLL_CTL_MOD, ends[1], &event));
        event.data.u64 = 12;
        event.events = EPOLLIN | EPOLLRDHUP;
        see("twice", epoll_ctl(set, EPOLL_CTL_ADD, ends[1], &event));
        _exit(0);
    }
    event.data.u64 = 13;
    see("modify", epoll_ctl(set, EPOLL_CTL_MOD, others[1], &event));
    MUST(write(pipes[1], "x", 1));
    await_child(child);
    wait_and_hear("changed by the child");
    wait_late("changed by the parent", (struct late){1, {others[0]}});
    hear(others[1]);
    event.data.u64 = 14;
    see("modify", epoll_ctl(set, EPOLL_CTL_MOD, ends[1], &event));
    wait_and_hear("changed again");
    see("delete", epoll_ctl(set, EPOLL_CTL_DEL, ends[1], NULL));
    wait_late("deleted", (struct late){2, {ends[0], others[0]}});
    hear(others[1]);
    hear(ends[1]);
}

static void case_forked_set_added(void)
{
    connect_pair(ends);
    set = make_set();
    const pid_t child = begin_child();
    if (child == 0) {
        add(set, ends[1], 7);
        _exit(0);
    }
    await_child(child);
    wait_and_hear("added by the child");
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = 8};
    see("add", epoll_ctl(set, EPOLL_CTL_ADD, ends[1], &event));
    int others[2];
    connect_pair(others);
    add(set, others[1], 9);
    wait_late("added by the parent", (struct late){1, {others[0]}});
    hear(others[1]);
    wait_and_hear("again");
    // The child is gone: what is added from now on keeps its ring.
    int last[2];
    connect_pair(last);
    const int was_by_ring = is_by_ring(last);
    add(set, last[1], 15);
    wait_late("added alone", (struct late){1, {last[0]}});
    hear(last[1]);
    if (was_by_ring && !is_by_ring(last))
        puts("added alone: by TCP");
}

// A child alone goes on, in a set that its parent has used, which is gone.
// @return the set's connection was a ring
static int go_on_alone(void)
{
    begin();
    const int was_by_ring = is_by_ring(ends);
    const pid_t parent = getpid();
    if (begin_child() != 0)
        _exit(0);
    while (kill(parent, 0) == 0) // nor is it waited for
        pause_for(1);
    return was_by_ring;
}

static void end_daemon(int was_by_ring, int to)
{
    if (was_by_ring && !is_by_ring(ends))
        puts("daemon: by TCP");
    MUST(write(to, "x", 1));
    _exit(0);
}

// A daemon goes on with the set of its parent, and with its rings.
static void become_daemon(int to)
{
    const int was_by_ring = go_on_alone();
    wait_and_hear("daemon");
    int others[2];
    connect_pair(others);
    add(set, others[1], 9);
    wait_late("added by the daemon", (struct late){1, {others[0]}});
    end_daemon(was_by_ring, to);
}

// The parent changes a member between two forks. The first child, which does not know of that, has
// taken it as it was, or is gone; and the second one changes it again, or not.
static void change_between_forks(int first_uses, int second_changes)
{
    int start[2];
    char byte = 0;
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = 13};
    begin();
    MUST(pipe(start));
    const pid_t first = begin_child();
    if (first == 0) {
        MUST(read(start[0], &byte, 1));
        if (first_uses)
            MUST(epoll_wait(set, &event, 1, 0));
        _exit(0);
    }
    if (!first_uses) {
        MUST(write(start[1], "x", 1));
        await_child(first);
    }
    MUST(epoll_ctl(set, EPOLL_CTL_MOD, ends[1], &event));
    const pid_t second = begin_child();
    if (second == 0) {
        if (first_uses) {
            MUST(write(start[1], "x", 1));
            while (kill(first, 0) == 0)
                pause_for(1);
        }
        event.data.u64 = 12;
        if (second_changes)
            MUST(epoll_ctl(set, EPOLL_CTL_MOD, ends[1], &event));
        _exit(0);
    }
    if (first_uses)
        await_child(first);
    await_child(second);
    wait_and_hear("changed");
    MUST(close(set));
    MUST(close(ends[0]));
    MUST(close(ends[1]));
}

static void case_forked_set_changed_between(void)
{
    change_between_forks(0, 1);
    change_between_forks(0, 0);
    change_between_forks(1, 0);
}

// A thread of the parent sleeps in the set while the child begins to use it.
static void case_forked_set_sleeper(void)
{
    begin();
    const pid_t child = begin_child();
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = 10};
    if (child == 0) {
        pause_for(50);
        MUST(epoll_ctl(set, EPOLL_CTL_MOD, ends[1], &event));
        MUST(send(ends[0], "x", 1, 0));
        _exit(0);
    }
    see("sleeper", epoll_wait(set, &event, 1, 2000));
    printf("data %d\n", (int)event.data.u64);
    await_child(child);
    hear(ends[1]);
    wait_and_hear("after");
}

// One wait without an end, of another thread.
struct sleeper {
    pthread_t thread;
    _Atomic pid_t number;
    int found;
};

static void *sleep_there(void *at)
{
    struct sleeper *sleeper = at;
    struct epoll_event event = {0};
    sleeper->number = gettid();
    sleeper->found = epoll_wait(set, &event, 1, -1) == 1 ? (int)event.data.u64 : -1;
    return NULL;
}

static void begin_sleeper(struct sleeper *sleeper)
{
    *sleeper = (struct sleeper){0};
    MUST(-pthread_create(&sleeper->thread, NULL, sleep_there, sleeper));
    while (sleeper->number == 0)
        pause_for(1);
    await_asleep(sleeper->number);
}

// @return what it found: -2 where nothing wakes it
static int end_sleeper(struct sleeper *sleeper)
{
    struct timespec end;
    MUST(clock_gettime(CLOCK_REALTIME, &end));
    end.tv_sec += 10;
    return pthread_timedjoin_np(sleeper->thread, NULL, &end) == 0 ? sleeper->found : -2;
}

// A thread sleeps in the set when the child is made, or before it has entries of ours. Another one
// changes the set, and then the child waits in it: what comes for the parent's members finds the
// thread.
static void sleep_while_another_changes(int has_member)
{
    int others[2], pipes[2], start[2];
    struct sleeper sleeper;
    char byte = 0;
    struct epoll_event event;
    MUST(pipe(pipes));
    MUST(pipe(start));
    if (has_member) {
        begin();
    } else {
        set = make_set();
        add(set, pipes[0], 3);
    }
    connect_pair(others);
    begin_sleeper(&sleeper);
    const pid_t child = begin_child();
    if (child == 0) {
        MUST(read(start[0], &byte, 1));
        for (int i = 0; i < 2000; i++) // and leaves it to its parent
            if (epoll_wait(set, &event, 1, 50) > 0)
                pause_for(1);
        _exit(0);
    }
    add(set, others[1], 9);
    MUST(write(start[1], "x", 1));
    await_asleep(child);
    MUST(send(others[0], "x", 1, 0));
    see("sleeper", end_sleeper(&sleeper));
    MUST(kill(child, SIGKILL));
    MUST(waitpid(child, NULL, 0));
    hear(others[1]);
}

static void case_forked_set_asleep(void)
{
    sleep_while_another_changes(1);
}

static void case_forked_set_asleep_empty(void)
{
    sleep_while_another_changes(0);
}

// The parent gets connections after the child has been made, and waits in the set no more: whatever
// the daemon says to it, the child's waits end in time, and take no CPU.
static void case_forked_set_idle(void)
{
    enum { waits = 4, wait_ms = 200 };
    int pipes[2], said[2], others[2];
    MUST(pipe(pipes));
    MUST(pipe(said));
    set = make_set();
    add(set, said[0], 3);
    const pid_t child = begin_child();
    struct epoll_event event;
    char byte = 0;
    if (child == 0) {
        MUST(read(pipes[0], &byte, 1));
        const double began = seconds();
        for (int i = 0; i < waits; i++)
            see("child", epoll_wait(set, &event, 1, wait_ms));
        const double took = seconds() - began, used = cpu_seconds();
        puts(took < 3.0 * waits * wait_ms / 1000 ? "in time" : "late");
        puts(used < took / 2 ? "asleep" : "awake");
        _exit(0);
    }
    connect_pair(ends);
    add(set, ends[1], 7);
    see("parent", epoll_wait(set, &event, 1, 10));
    // What the daemon says of this one is not read any more.
    unsetenv("TRAPS_WARM");
    connect_pair(others);
    exchange(others, 1);
    pause_for(100);
    MUST(write(pipes[1], "x", 1));
    await_child(child);
}

// Bytes that nobody has read when the child comes.
static void case_forked_set_unread(void)
{
    begin();
    say(ends[0], "unread");
    const pid_t child = begin_child();
    struct epoll_event event = {0};
    if (child == 0) {
        see("child", epoll_wait(set, &event, 1, 1000));
        char text[4] = "";
        MUST(recv(ends[1], text, 3, 0));
        puts(text);
        see("child", epoll_wait(set, &event, 1, 1000));
        _exit(0);
    }
    await_child(child);
    see("rest", epoll_wait(set, &event, 1, 1000));
    hear(ends[1]);
    wait_and_hear("after");
}

// And a child that changes such a member, and is gone, has said what is reported of it.
static void case_forked_set_changed_unread(void)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = 12};
    begin();
    say(ends[0], "unread");
    const pid_t child = begin_child();
    if (child == 0) {
        MUST(epoll_ctl(set, EPOLL_CTL_MOD, ends[1], &event));
        _exit(0);
    }
    await_child(child);
    see("wait", epoll_wait(set, &event, 1, 1000));
    printf("data %d\n", (int)event.data.u64);
    hear(ends[1]);
    wait_and_hear("after");
}

static void change(const char *what, int op, int fd, uint32_t events, uint64_t data)
{
    struct epoll_event event = {.events = events, .data.u64 = data};
    see(what, epoll_ctl(set, op, fd, &event));
}

enum later { deleted, changed_data, armed_again };

// Also where its parent has seen before that the child uses the set.
static void change_later(enum later how)
{
    const uint32_t one_shot = how == armed_again ? EPOLLONESHOT : 0;
    struct epoll_event event = {.events = EPOLLIN | one_shot, .data.u64 = 12};
    int start[2], used[2];
    char byte = 0;
    begin();
    if (how == armed_again)
        MUST(epoll_ctl(set, EPOLL_CTL_MOD, ends[1], &event));
    say(ends[0], "unread");
    MUST(pipe(start));
    MUST(pipe(used));
    const pid_t child = begin_child();
    if (child == 0) {
        MUST(epoll_wait(set, (struct epoll_event[1]){{0}}, 1, how == armed_again ? 1000 : 0));
        MUST(write(used[1], "x", 1));
        MUST(read(start[0], &byte, 1));
        MUST(epoll_ctl(set, how == deleted ? EPOLL_CTL_DEL : EPOLL_CTL_MOD, ends[1], &event));
        _exit(0);
    }
    MUST(read(used[0], &byte, 1));
    wait_all("before", how == armed_again ? 20 : 1000);
    MUST(write(start[1], "x", 1));
    await_child(child);
    wait_all("changed", how == deleted ? 20 : 1000);
    hear(ends[1]);
    MUST(close(set));
    end_pair(ends);
    end_pair(start);
    end_pair(used);
}

static void case_forked_set_changed_later(void)
{
    change_later(changed_data);
    change_later(deleted);
    change_later(armed_again);
}

// An edge triggered member, whose unread bytes were shown before, is shown once more where one
// process changes it, also to the other one.
static void change_edges(int child_changes)
{
    int start[2], used[2];
    char byte = 0;
    struct epoll_event event;
    begin();
    change("edges", EPOLL_CTL_MOD, ends[1], EPOLLIN | EPOLLET, 7);
    say(ends[0], "unread");
    wait_all("unread", 1000);
    MUST(pipe(start));
    MUST(pipe(used));
    const pid_t child = begin_child();
    if (child == 0) {
        if (child_changes)
            MUST(epoll_wait(set, &event, 1, 0));
        MUST(write(used[1], "x", 1));
        MUST(read(start[0], &byte, 1));
        if (child_changes)
            change("changed", EPOLL_CTL_MOD, ends[1], EPOLLIN | EPOLLET, 8);
        else
            wait_all("child", 1000);
        _exit(0);
    }
    MUST(read(used[0], &byte, 1));
    if (child_changes)
        while (epoll_wait(set, &event, 1, 900) > 0) // it may be shown when its ring goes
            continue;
    else
        change("changed", EPOLL_CTL_MOD, ends[1], EPOLLIN | EPOLLET, 8);
    MUST(write(start[1], "x", 1));
    await_child(child);
    if (child_changes)
        wait_all("parent", 1000);
    hear(ends[1]);
    MUST(close(set));
    end_pair(ends);
    end_pair(start);
    end_pair(used);
}

static void case_forked_set_edges(void)
{
    change_edges(0);
    change_edges(1);
}

// Calls of read() of this process.
static long count_reads(void)
{
    char text[512] = "";
    const int file = open("/proc/self/io", O_RDONLY);
    const char *at = NULL;
    if (file >= 0 && read(file, text, sizeof(text) - 1) > 0)
        at = strstr(text, "syscr: ");
    close(file);
    return at == NULL ? 0 : atol(at + 7);
}

// What a process asks of the kernel when another one uses the set grows with its members, and not
// with their square.
static void case_forked_set_many(void)
{
    enum { many = 60, reads_most = 6 * many };
    int pairs[many][2];
    struct epoll_event event = {0};
    set = make_set();
    for (int i = 0; i < many; i++) {
        connect_pair(pairs[i]);
        add(set, pairs[i][1], (uint64_t)i);
    }
    see("none", epoll_wait(set, &event, 1, 0));
    const pid_t child = begin_child();
    const long before = count_reads();
    if (child == 0) {
        see("child", epoll_wait(set, &event, 1, 300));
        if (count_reads() - before > reads_most)
            puts("child: many reads");
        _exit(0);
    }
    await_child(child);
    see("parent", epoll_wait(set, &event, 1, 300));
    const long reads = count_reads() - before;
    if (reads > reads_most)
        puts("many reads");
    if (getenv("TRAPS_SHOW") != NULL)
        fprintf(stderr, "%ld reads\n", reads);
    say(pairs[many - 1][0], "x");
    see("wait", epoll_wait(set, &event, 1, 1000));
    printf("data %d\n", (int)event.data.u64);
}

static void change_in_time(const char *what, int op, int fd, uint32_t events, uint64_t data)
{
    const long before = pauses();
    change(what, op, fd, events, data);
    if (pauses() - before > pauses_most)
        puts("late");
}

// Who uses the set, and then lives on as far as that knows.
static pid_t begin_child_that_waits(void)
{
    struct epoll_event event;
    const pid_t child = begin_child();
    if (child == 0) {
        MUST(epoll_wait(set, &event, 1, 0));
        _exit(0);
    }
    await_end(child);
    return child;
}

// In a set that several processes use, members of which bytes are unread are added and changed
// without a delay, and a thread that sleeps there hears of them.
static void case_forked_set_added_unread(void)
{
    int others[2];
    struct sleeper sleeper;
    struct epoll_event event = {0};
    begin();
    connect_pair(others);
    const pid_t child = begin_child_that_waits();
    say(ends[0], "old");
    say(others[0], "new");
    change_in_time("modify", EPOLL_CTL_MOD, ends[1], EPOLLIN | EPOLLOUT, 8);
    change_in_time("modify", EPOLL_CTL_MOD, ends[1], EPOLLIN, 7);
    see("old", epoll_wait(set, &event, 1, 1000));
    hear(ends[1]);
    begin_sleeper(&sleeper);
    change_in_time("add", EPOLL_CTL_ADD, others[1], EPOLLIN, 9);
    see("sleeper", end_sleeper(&sleeper));
    change_in_time("modify", EPOLL_CTL_MOD, others[1], EPOLLIN | EPOLLOUT, 9);
    change_in_time("modify", EPOLL_CTL_MOD, others[1], EPOLLIN, 9);
    hear(others[1]);
    wait_and_hear("after");
    await_child(child);
}

// The same, where the set had no member that could be one of ours.
static void case_forked_set_added_unread_first(void)
{
    struct epoll_event event = {0};
    connect_pair(ends);
    set = make_set();
    const pid_t child = begin_child_that_waits();
    say(ends[0], "new");
    change_in_time("add", EPOLL_CTL_ADD, ends[1], EPOLLIN, 9);
    see("new", epoll_wait(set, &event, 1, 1000));
    hear(ends[1]);
    wait_and_hear("after");
    await_child(child);
}

// ---- what one process says, and another one shows

enum last_word { taken_out, changed, reported, added, last_words };

// Another process has used the set, in which its member went back to TCP, and is gone.
static void share_before(void)
{
    int others[2];
    struct epoll_event event;
    const pid_t child = begin_child_that_waits();
    exchange(ends, 1);
    MUST(epoll_wait(set, &event, 1, 50)); // all rings are over
    await_child(child);
    connect_pair(others);
    add(set, others[1], 9);
}

// Says its word of a member behind the fork, and makes no call of the set any more.
static void say_last(enum last_word word, int ends_first, int was_shared)
{
    int start[2];
    char byte = 0;
    const pid_t parent = getpid();
    begin();
    if (was_shared)
        share_before();
    if (word == added) {
        MUST(close(set));
        set = make_set();
    }
    MUST(pipe(start));
    if (word == reported)
        change("one-shot", EPOLL_CTL_MOD, ends[1], EPOLLIN | EPOLLONESHOT, 7);
    const pid_t child = begin_child();
    if (child == 0) {
        MUST(read(start[0], &byte, 1));
        while (ends_first && kill(parent, 0) == 0)
            pause_for(1);
        MUST(send(ends[0], "x", 1, 0));
        wait_all("child", word == changed || word == added ? 2000 : 50);
        _exit(0);
    }
    if (word == added)
        add(set, ends[1], 7);
    if (word == taken_out)
        see("delete", epoll_ctl(set, EPOLL_CTL_DEL, ends[1], NULL));
    if (word == changed)
        change("modify", EPOLL_CTL_MOD, ends[1], EPOLLIN | EPOLLRDHUP, 8);
    if (word == reported) {
        MUST(send(ends[0], "x", 1, 0));
        wait_all("parent", 2000);
    }
    MUST(write(start[1], "x", 1));
    if (!ends_first)
        await_child(child);
    _exit(0);
}

static void case_forked_set_last_word(void)
{
    for (int i = 0; i < 4 * last_words; i++) {
        // What comes by the ring of a new member is the parent's to show.
        if (i / 4 == added && i / 2 % 2 == 0)
            continue;
        int end[2];
        char byte = 0;
        MUST(pipe(end));
        const pid_t parent = begin_child();
        if (parent == 0) {
            close(end[0]);
            say_last((enum last_word)(i / 4), i % 2, i / 2 % 2);
        }
        MUST(close(end[1]));
        MUST(waitpid(parent, NULL, 0));
        see("end", read(end[0], &byte, 1)); // of both
        MUST(close(end[0]));
    }
}

// A process that has the set alone again, while bytes are unread: what it deletes and changes is
// what the kernel's entry says as well.
static void case_forked_set_alone_again(void)
{
    int others[2], last[2];
    for (int deletes = 0; deletes < 2; deletes++) {
        struct epoll_event event = {.events = EPOLLIN, .data.u64 = 12};
        begin();
        connect_pair(others);
        connect_pair(last);
        say(ends[0], "unread");
        const pid_t child = begin_child();
        if (child == 0) {
            MUST(epoll_ctl(set, EPOLL_CTL_MOD, ends[1], &event));
            _exit(0);
        }
        await_child(child);
        wait_all("unread", 1000);
        add(set, others[1], 9);
        add(set, last[1], 10);
        if (deletes)
            see("delete", epoll_ctl(set, EPOLL_CTL_DEL, ends[1], NULL));
        else
            change("one-shot", EPOLL_CTL_MOD, ends[1], EPOLLIN | EPOLLONESHOT, 13);
        wait_all("changed", deletes ? 0 : 1000);
        hear(ends[1]);
        exchange(ends, 1); // by TCP from now on
        say(ends[0], "more");
        wait_all("more", 20);
        hear(ends[1]);
        MUST(close(set));
        end_pair(ends);
        end_pair(others);
        end_pair(last);
    }
}

// A member that has both the rest of a ring and what came behind that is reported once in a wait.
static void case_forked_set_once(void)
{
    begin();
    say(ends[0], "ring");
    const pid_t child = begin_child_that_waits();
    change("modify", EPOLL_CTL_MOD, ends[1], EPOLLIN | EPOLLOUT, 8);
    for (int i = 0; i < 3; i++)
        wait_all("both", 1000);
    change("one-shot", EPOLL_CTL_MOD, ends[1], EPOLLIN | EPOLLOUT | EPOLLONESHOT, 9);
    wait_all("first", 1000);
    wait_all("no more", 0);
    change("again", EPOLL_CTL_MOD, ends[1], EPOLLIN | EPOLLOUT | EPOLLONESHOT, 10);
    wait_all("first", 1000);
    wait_all("no more", 0);
    hear(ends[1]);
    change("after", EPOLL_CTL_MOD, ends[1], EPOLLIN, 7);
    wait_and_hear("after");
    await_child(child);
}

// A one-shot member that one process has shown is off in the other one, too, while bytes are
// unread.
static void show_one_shot(int child_first)
{
    int start[2], used[2];
    char byte = 0;
    begin();
    if (child_first)
        change("one-shot", EPOLL_CTL_MOD, ends[1], EPOLLIN | EPOLLONESHOT, 7);
    say(ends[0], "unread");
    MUST(pipe(start));
    MUST(pipe(used));
    const pid_t child = begin_child();
    if (child == 0) {
        if (!child_first)
            MUST(epoll_wait(set, (struct epoll_event[1]){{0}}, 1, 0));
        MUST(write(used[1], "x", 1));
        MUST(read(start[0], &byte, 1));
        wait_all("child", child_first ? 1000 : 20);
        _exit(0);
    }
    MUST(read(used[0], &byte, 1));
    if (!child_first) {
        change("one-shot", EPOLL_CTL_MOD, ends[1], EPOLLIN | EPOLLONESHOT, 9);
        wait_all("parent", 1000);
    }
    MUST(write(start[1], "x", 1));
    await_child(child);
    wait_all("again", 20);
    hear(ends[1]);
    MUST(close(set));
    end_pair(ends);
    end_pair(start);
    end_pair(used);
}

static void case_forked_set_one_shot(void)
{
    show_one_shot(1);
    show_one_shot(0);
}

// A call that is refused leaves a member with unread bytes as it was.
static void case_forked_set_refused(void)
{
    begin();
    say(ends[0], "unread");
    const pid_t child = begin_child_that_waits();
    wait_all("before", 1000);
    change("twice", EPOLL_CTL_ADD, ends[1], EPOLLIN, 7);
    wait_all("twice", 1000);
    change("exclusive", EPOLL_CTL_MOD, ends[1], EPOLLIN | EPOLLEXCLUSIVE, 7);
    wait_all("exclusive", 1000);
    hear(ends[1]);
    wait_and_hear("after");
    await_child(child);
}

// What processes may say to each other takes memory once it is said.
static void case_forked_set_memory(void)
{
    enum { faults_most = 100 };
    struct rusage before, after;
    begin();
    MUST(getrusage(RUSAGE_SELF, &before));
    const pid_t child = begin_child();
    if (child == 0)
        _exit(0);
    MUST(getrusage(RUSAGE_SELF, &after));
    if (after.ru_minflt - before.ru_minflt > faults_most)
        puts("many pages");
    await_child(child);
}

// Two processes sleep in the set, the one that knows nothing of a new member since later.
// @param mask  that one's, or NULL
static void sleep_in_two(const sigset_t *mask)
{
    int others[2], pipes[2];
    char byte = 0;
    struct sleeper sleeper;
    struct epoll_event event;
    begin();
    connect_pair(others);
    const pid_t first = begin_child_that_waits();
    exchange(ends, 1);
    MUST(epoll_wait(set, &event, 1, 50)); // both know that all rings are over, and sleep on
    MUST(pipe(pipes));
    begin_sleeper(&sleeper);
    const pid_t child = begin_child();
    if (child == 0) {
        MUST(epoll_wait(set, &event, 1, 50));
        MUST(write(pipes[1], "x", 1));
        for (int i = 0; i < 2000; i++) // and leaves it to its parent
            if (epoll_pwait(set, &event, 1, -1, mask) > 0)
                pause_for(1);
        _exit(0);
    }
    MUST(read(pipes[0], &byte, 1));
    await_asleep(child);
    say(others[0], "new");
    change("add", EPOLL_CTL_ADD, others[1], EPOLLIN, 9);
    see("sleeper", end_sleeper(&sleeper));
    MUST(kill(child, SIGKILL));
    MUST(waitpid(child, NULL, 0));
    hear(others[1]);
    await_child(first);
    MUST(close(set));
    end_pair(ends);
    end_pair(others);
    end_pair(pipes);
}

static void case_forked_set_two_sleep(void)
{
    sigset_t mask;
    sigemptyset(&mask);
    sleep_in_two(NULL);
    sleep_in_two(&mask);
}

// A process whose first member by ring comes when another one has used the set has no thread that
// sleeps there: the next child waits for none.
static void case_forked_set_counted(void)
{
    struct epoll_event event;
    connect_pair(ends);
    set = make_set();
    const pid_t first = begin_child_that_waits();
    say(ends[0], "new");
    add(set, ends[1], 9);
    const pid_t second = begin_child();
    if (second == 0) {
        const long before = pauses();
        MUST(epoll_wait(set, &event, 1, 0));
        if (pauses() - before > pauses_most)
            puts("late");
        _exit(0);
    }
    await_child(second);
    await_child(first);
    see("new", epoll_wait(set, &event, 1, 1000));
    hear(ends[1]);
}

static void *wait_at_once(void *at)
{
    pthread_barrier_wait(at);
    struct epoll_event event;
    MUST(epoll_wait(set, &event, 1, 0));
    return NULL;
}

// Threads of a daemon that make their first calls together go on by ring.
static void become_daemon_of_threads(int to)
{
    enum { threads = 3 };
    pthread_t thread[threads];
    pthread_barrier_t barrier;
    const int was_by_ring = go_on_alone();
    MUST(-pthread_barrier_init(&barrier, NULL, threads));
    for (int i = 0; i < threads; i++)
        MUST(-pthread_create(&thread[i], NULL, wait_at_once, &barrier));
    for (int i = 0; i < threads; i++)
        MUST(-pthread_join(thread[i], NULL));
    end_daemon(was_by_ring, to);
}

static void end_of_daemon(void (*become)(int to))
{
    int pipes[2];
    char byte = 0;
    MUST(pipe(pipes));
    const pid_t child = begin_child();
    if (child == 0) {
        close(pipes[0]);
        become(pipes[1]);
    }
    MUST(close(pipes[1]));
    await_child(child);
    see("daemon", read(pipes[0], &byte, 1));
    see("daemon", read(pipes[0], &byte, 1));
    MUST(close(pipes[0]));
}

static void case_forked_set_daemon(void)
{
    end_of_daemon(become_daemon);
}

static void case_forked_set_daemon_threads(void)
{
    for (int i = 0; i < 8; i++)
        end_of_daemon(become_daemon_of_threads);
}

// Servers whose processes have one set, and the first one goes. Each answers what it gets.
static void serve(int one)
{
    struct epoll_event event;
    char byte;
    while (epoll_wait(set, &event, 1, 3000) == 1) {
        const long got = recv(one, &byte, 1, MSG_DONTWAIT);
        if (got == 0)
            _exit(0);
        if (got == 1)
            MUST(send(one, &byte, 1, 0));
    }
    _exit(1);
}

static void ask(int one, int times)
{
    int answers = 0;
    for (int i = 0; i < times; i++) {
        char byte = (char)i, back = 0;
        pause_for(i % 8 == 0 ? 3 : 0);
        MUST(send(one, &byte, 1, 0));
        answers += recv(one, &back, 1, 0) == 1 && back == byte;
    }
    see("answers", answers);
}

static void case_forked_set_workers(void)
{
    pid_t workers[3];
    const struct timeval patience = {.tv_sec = 3};
    begin();
    MUST(setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)));
    for (int i = 0; i < 3; i++) {
        workers[i] = begin_child();
        if (workers[i] == 0) {
            close(ends[0]);
            serve(ends[1]);
        }
    }
    MUST(close(ends[1]));
    MUST(close(set));
    ask(ends[0], 100);
    MUST(close(ends[0]));
    for (int i = 0; i < 3; i++)
        await_child(workers[i]);
}

const struct trap forked_sets_traps[] = {
    {"forked_set_closed", case_forked_set_closed},
    {"forked_set_del", case_forked_set_del},
    {"forked_set_changed", case_forked_set_changed},
    {"forked_set_changed_between", case_forked_set_changed_between},
    {"forked_set_added", case_forked_set_added},
    {"forked_set_sleeper", case_forked_set_sleeper},
    {"forked_set_idle", case_forked_set_idle},
    {"forked_set_asleep", case_forked_set_asleep},
    {"forked_set_asleep_empty", case_forked_set_asleep_empty},
    {"forked_set_unread", case_forked_set_unread},
    {"forked_set_changed_unread", case_forked_set_changed_unread},
    {"forked_set_changed_later", case_forked_set_changed_later},
    {"forked_set_edges", case_forked_set_edges},
    {"forked_set_many", case_forked_set_many},
    {"forked_set_added_unread", case_forked_set_added_unread},
    {"forked_set_added_unread_first", case_forked_set_added_unread_first},
    {"forked_set_last_word", case_forked_set_last_word},
    {"forked_set_alone_again", case_forked_set_alone_again},
    {"forked_set_once", case_forked_set_once},
    {"forked_set_one_shot", case_forked_set_one_shot},
    {"forked_set_refused", case_forked_set_refused},
    {"forked_set_memory", case_forked_set_memory},
    {"forked_set_two_sleep", case_forked_set_two_sleep},
    {"forked_set_counted", case_forked_set_counted},
    {"forked_set_daemon", case_forked_set_daemon},
    {"forked_set_daemon_threads", case_forked_set_daemon_threads},
    {"forked_set_workers", case_forked_set_workers},
    {NULL, NULL},
};

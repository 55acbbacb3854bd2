// SPDX-License-Identifier: BSD-3-Clause
// Calls of one thread on what another one closes: they go on with the connection that they were
// made on, whatever the number stands for by then.
#include "traps.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static atomic_int caller;
static pthread_t thread;
// What its call said: printed when it has ended, for it runs beside the rest.
static long result;
static int error;
static char text[32];

static void begin(void *(*call)(void *), int *end)
{
    atomic_store(&caller, 0);
    MUST(-pthread_create(&thread, NULL, call, end));
    // Until it sleeps in its call.
    for (char state = 0; state != 'S'; sched_yield()) {
        char name[64], line[256] = "";
        snprintf(name, sizeof(name), "/proc/self/task/%d/stat", atomic_load(&caller));
        FILE *file = fopen(name, "r");
        if (file == NULL)
            continue; // not there yet
        const char *const behind = fgets(line, sizeof(line), file) ? strrchr(line, ')') : NULL;
        state = behind != NULL ? behind[2] : 0;
        fclose(file);
    }
}

static void finish(void)
{
    MUST(-pthread_join(thread, NULL));
    errno = error;
    see("thread", result);
    printf("text '%s'\n", text);
}

static void *ends_with(long said)
{
    result = said;
    error = errno;
    return NULL;
}

static void *receives(void *end)
{
    const int fd = *(int *)end;
    memset(text, 0, sizeof(text));
    atomic_store(&caller, gettid());
    return ends_with(recv(fd, text, sizeof(text) - 1, 0));
}

static void *sends(void *end)
{
    static char much[1 << 24];
    const int fd = *(int *)end;
    memset(much, 'A', sizeof(much));
    atomic_store(&caller, gettid());
    return ends_with(send(fd, much, sizeof(much), MSG_NOSIGNAL) > 0);
}

// It may have either one in the end.
static void *polls(void *end)
{
    struct pollfd entry = {.fd = *(int *)end, .events = POLLIN};
    atomic_store(&caller, gettid());
    poll(&entry, 1, 100);
    return NULL;
}

// Two ends, of which the first has the number `fd`, which is free.
static void connect_at(int fd, int *ends)
{
    connect_pair(ends);
    if (ends[0] != fd && ends[1] != fd)
        fail("the number");
    if (ends[1] == fd) {
        ends[1] = ends[0];
        ends[0] = fd;
    }
}

static void case_shut_and_closed(void)
{
    for (int i = 0; i < 5; i++) {
        int ends[2], others[2];
        connect_pair(ends);
        begin(receives, &ends[1]);
        MUST(shutdown(ends[1], SHUT_RDWR));
        MUST(close(ends[1]));
        connect_at(ends[1], others);
        say(others[1], "of another one");
        finish();
        hear(others[0]);
        MUST(close(ends[0]));
        MUST(close(others[0]));
        MUST(close(others[1]));
    }
}

// The number that it reads at, ends[1], stands for others[0] by now.
static void end_reader(const int *ends, const int *others)
{
    say(others[1], "of another one");
    say(ends[0], "of its own");
    finish();
    hear(ends[1]);
    // With the call its file is closed.
    struct pollfd entry = {.fd = ends[0], .events = POLLRDHUP};
    see("ends", poll(&entry, 1, 5000));
}

static void case_closed_reader(void)
{
    int ends[2], others[2];
    connect_pair(ends);
    begin(receives, &ends[1]);
    MUST(close(ends[1]));
    connect_at(ends[1], others);
    end_reader(ends, others);
}

static void case_replaced_reader(void)
{
    int ends[2], others[2];
    connect_pair(ends);
    connect_pair(others);
    begin(receives, &ends[1]);
    see("dup2", dup2(others[0], ends[1]) == ends[1]);
    end_reader(ends, others);
}

static void case_closed_writer(void)
{
    int ends[2], others[2];
    connect_pair(ends);
    begin(sends, &ends[0]);
    MUST(shutdown(ends[0], SHUT_RDWR));
    MUST(close(ends[0]));
    connect_at(ends[0], others);
    finish();
    say(others[0], "of another one");
    hear(others[1]);
}

// Who waited for the number that is another one's now is nothing to who waits for that one.
static void case_closed_poll(void)
{
    int ends[2], others[2];
    connect_pair(ends);
    begin(polls, &ends[1]);
    MUST(close(ends[1]));
    connect_at(ends[1], others);
    const pthread_t poller = thread;
    begin(receives, &others[0]);
    MUST(-pthread_join(poller, NULL));
    say(others[1], "to who waits");
    finish();
}

// A child has nothing of what a thread of its parent still has.
static void case_closed_and_forked(void)
{
    int ends[2], pipes[2];
    connect_pair(ends);
    MUST(pipe(pipes));
    begin(receives, &ends[1]);
    MUST(close(ends[1]));
    const pid_t child = (pid_t)MUST(fork());
    if (child == 0) {
        char byte;
        close(ends[0]);
        _exit(read(pipes[0], &byte, 1) == 1 ? 0 : 1);
    }
    say(ends[0], "of its own");
    finish();
    hear(ends[0]);
    MUST(write(pipes[1], "x", 1));
    await_child(child);
}

static void end_thread(int number)
{
    (void)number;
    pthread_exit(NULL);
}

// A thread that a handler ends in its call has nothing any more.
static void case_thread_ends(void)
{
    int ends[2];
    connect_pair(ends);
    signal(SIGUSR1, end_thread);
    begin(receives, &ends[1]);
    MUST(-pthread_kill(thread, SIGUSR1));
    MUST(-pthread_join(thread, NULL));
    say(ends[1], "goes on");
    hear(ends[0]);
    MUST(close(ends[1]));
    hear(ends[0]);
}

const struct trap threads_traps[] = {
    {"shut_and_closed", case_shut_and_closed}, {"closed_reader", case_closed_reader},
    {"replaced_reader", case_replaced_reader}, {"closed_writer", case_closed_writer},
    {"closed_poll", case_closed_poll},         {"closed_and_forked", case_closed_and_forked},
    {"thread_ends", case_thread_ends},         {NULL, NULL}};

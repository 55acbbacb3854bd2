// SPDX-License-Identifier: BSD-3-Clause
// Signals in the middle of calls.
#include "traps.h"

#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

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

// What ends a call if the alarm does not.
static pid_t say_later(int fd)
{
    const pid_t child = (pid_t)MUST(fork());
    if (child == 0) {
        const struct timespec while_ = {.tv_nsec = 100000000};
        nanosleep(&while_, NULL);
        _exit(send(fd, "late", 4, 0) == 4 ? 0 : 1);
    }
    return child;
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
    const pid_t child = say_later(ends[0]);
    alarm_soon();
    see("recv", recv(ends[1], text, sizeof(text), 0));
    await_child(child);
    printf("signals %d\n", (int)signals);
}

// Whether the alarm ends a call, or only the bytes after it.
static void see_alarm(const int *ends)
{
    char text[16];
    const pid_t child = say_later(ends[0]);
    alarm_soon();
    see("recv", recv(ends[1], text, sizeof(text), 0));
    await_child(child);
    see("after it", recv(ends[1], text, sizeof(text), MSG_DONTWAIT));
}

// libc changes a handler's flags behind sigaction(), and those of handlers to come.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
static void case_siginterrupt(void)
{
    int ends[2];
    connect_pair(ends);
    signal(SIGALRM, count_signal);
    see("interrupt", siginterrupt(SIGALRM, 1));
    see_alarm(ends);
    signal(SIGALRM, count_signal);
    see_alarm(ends);
    see("restart", siginterrupt(SIGALRM, 0));
    see_alarm(ends);
    see("no handler", siginterrupt(SIGKILL, 1));
    printf("signals %d\n", (int)signals);
}

static sigjmp_buf back;
static int within;
static void jump(int number)
{
    siglongjmp(back, number);
}

static void jump_within(int number)
{
    if (sigsetjmp(back, 1) == 0)
        siglongjmp(back, number);
    send(within, "late", 4, MSG_NOSIGNAL);
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
    MUST(close(ends[1]));
    hear(ends[0]);
    // One that has not left a call goes on.
    connect_pair(ends);
    within = ends[0];
    signal(SIGALRM, jump_within);
    alarm_soon();
    see("recv", recv(ends[1], text, sizeof(text), 0));
}

static int to_close;
static void close_it(int number)
{
    (void)number;
    close(to_close);
}

// What a handler closes that its thread reads from: a read that is started again finds nothing.
static void case_closing_handler(void)
{
    char byte;
    for (int flags = 0; flags <= SA_RESTART; flags += SA_RESTART) {
        int ends[2];
        connect_pair(ends);
        to_close = ends[1];
        const struct sigaction action = {.sa_handler = close_it, .sa_flags = flags};
        MUST(sigaction(SIGALRM, &action, NULL));
        alarm_soon();
        see("recv", recv(ends[1], &byte, 1, 0));
        hear(ends[0]);
        MUST(close(ends[0]));
    }
}

// A signal for each arrival.
static void case_sigio(void)
{
    int ends[2];
    sigset_t wanted;
    connect_pair(ends);
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGIO);
    MUST(sigprocmask(SIG_BLOCK, &wanted, NULL));
    MUST(fcntl(ends[1], F_SETOWN, getpid()));
    MUST(fcntl(ends[1], F_SETFL, O_ASYNC));
    say(ends[0], "signalled");
    const struct timespec while_ = {.tv_sec = 5};
    see("signal", sigtimedwait(&wanted, NULL, &while_));
    hear(ends[1]);
}

const struct trap signals_traps[] = {{"sigpipe", case_sigpipe},
                                     {"signals", case_signals},
                                     {"siginterrupt", case_siginterrupt},
                                     {"longjmp", case_longjmp},
                                     {"sigio", case_sigio},
                                     {"closing_handler", case_closing_handler},
                                     {NULL, NULL}};

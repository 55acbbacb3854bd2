// SPDX-License-Identifier: BSD-3-Clause
#ifndef TEST_SOCKET_TRAPS_H
#define TEST_SOCKET_TRAPS_H

#include "must.h"

#include <netinet/in.h>
#include <sys/types.h>

struct trap {
    const char *name; // NULL: behind the last one
    void (*run)(void);
};

extern const struct trap descriptors_traps[];
extern const struct trap processes_traps[];
extern const struct trap transfer_traps[];
extern const struct trap life_traps[];
extern const struct trap signals_traps[];
extern const struct trap sets_traps[];
extern const struct trap threads_traps[];
extern const struct trap forked_sets_traps[];
extern const struct trap uring_traps[];
extern const struct trap pages_traps[];

// Of listen_here().
extern int listener;
extern struct sockaddr_in place;

// What is seen: a result, and what errno says of a negative one.
void see(const char *what, long result);
void listen_here(void);
// Two ends of a connection: the one that connected, the one that was accepted.
void connect_pair(int *ends);
void say(int fd, const char *text);
void hear(int fd);
// Both ways.
void talk(int *ends);
// A hundred bytes both ways, which are as sent, and what TCP has carried of such so far.
void exchange(const int *ends, int round);
unsigned long long sent_by_tcp(const int *ends);
// Long enough for a daemon to match the connection meanwhile.
void talk_long(int *ends);
void await_child(pid_t child);

// So many calls of one kind, for who counts instructions.
void repeat_calls(int kind, int calls);

#endif

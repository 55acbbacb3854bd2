// SPDX-License-Identifier: BSD-3-Clause
// Children and new programs.
#include "traps.h"

#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

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

// What a shell of libc's own does with a connection comes between what the program does.
static void case_system(void)
{
    int ends[2];
    char command[64];
    connect_pair(ends);
    snprintf(command, sizeof(command), "printf shell >&%d; exit 3", ends[0]);
    see("system", system(command));
    hear(ends[1]);
    talk(ends);
    printf("a shell %d\n", system(NULL) != 0);
}

static void case_popen(void)
{
    int ends[2];
    char command[64], text[16] = "";
    connect_pair(ends);
    snprintf(command, sizeof(command), "printf shell >&%d; printf done; exit 3", ends[0]);
    FILE *file = popen(command, "r");
    printf("read '%s'\n", fgets(text, sizeof(text), file));
    see("closed", pclose(file));
    hear(ends[1]);
    talk(ends);
    snprintf(command, sizeof(command), "cat >&%d", ends[1]);
    file = popen(command, "w");
    see("written", fputs("through cat", file) >= 0);
    see("closed", pclose(file));
    hear(ends[0]);
    talk(ends);
    see("no such way", popen("true", "x") == NULL ? -1 : 0);
}

// A program of the shell's on a connection that has been used already.
static pid_t start_on(int *ends, const char *command)
{
    talk(ends);
    const pid_t child = (pid_t)MUST(fork());
    if (child == 0) {
        dup2(ends[0], STDIN_FILENO);
        dup2(ends[0], STDOUT_FILENO);
        execlp("sh", "sh", "-c", command, (char *)NULL);
        _exit(9);
    }
    MUST(close(ends[0]));
    return child;
}

static void end_cat(int *ends, pid_t child)
{
    say(ends[1], "through cat");
    hear(ends[1]);
    MUST(shutdown(ends[1], SHUT_WR));
    hear(ends[1]);
    await_child(child);
}

// The peer sends while the new program is started.
static void case_exec(void)
{
    int ends[2];
    connect_pair(ends);
    end_cat(ends, start_on(ends, "exec cat"));
}

// It sends once the new program has spoken.
static void case_exec_greets(void)
{
    int ends[2];
    connect_pair(ends);
    const pid_t child = start_on(ends, "printf ready; exec cat");
    hear(ends[1]);
    end_cat(ends, child);
}

const struct trap processes_traps[] = {{"fork", case_fork},
                                       {"vfork", case_vfork},
                                       {"posix_spawn", case_posix_spawn},
                                       {"system", case_system},
                                       {"popen", case_popen},
                                       {"exec", case_exec},
                                       {"exec_greets", case_exec_greets},
                                       {NULL, NULL}};

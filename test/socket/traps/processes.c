// SPDX-License-Identifier: BSD-3-Clause
// Children and new programs.
#include "traps.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wordexp.h>

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

// The child goes on with the connection after its parent has closed it.
static int go_on(void *at)
{
    const int *ends = at;
    char text[16] = "";
    close(ends[1]);
    const long heard = recv(ends[0], text, sizeof(text), 0);
    send(ends[0], text, heard > 0 ? (size_t)heard : 0, 0);
    return 7;
}

static void see_child(int *ends, pid_t child)
{
    if (child == 0)
        _exit(go_on(ends));
    see("made", child > 0 ? 0 : child);
    MUST(close(ends[0]));
    say(ends[1], "going on");
    hear(ends[1]);
    await_child(child);
    hear(ends[1]);
    MUST(close(ends[1]));
}

static char stack[1 << 16] __attribute__((aligned(16)));

// Children of other calls than fork(), with memory of their own.
static void case_clone(void)
{
    int ends[2];
    pid_t number = 0;
    connect_pair(ends);
    const pid_t child =
        clone(go_on, stack + sizeof(stack), CLONE_PARENT_SETTID | SIGCHLD, ends, &number);
    see("its number", number == child);
    see_child(ends, child);
    see("no function", clone(NULL, stack + sizeof(stack), SIGCHLD, NULL));
    see("wrong flags", clone(go_on, stack + sizeof(stack), CLONE_SIGHAND | SIGCHLD, NULL));
    connect_pair(ends);
    talk(ends);
}

// One table of descriptors for two processes: [1] takes the number of [0].
static int replace(void *fds)
{
    const int *from = fds;
    send(from[0], "child", 5, 0);
    return dup2(from[1], from[0]) == from[0] ? 7 : 1;
}

static void case_clone_files(void)
{
    int ends[2], fds[2], way[2];
    char text[16] = "";
    connect_pair(ends);
    MUST(pipe(way));
    fds[0] = ends[0];
    fds[1] = way[1];
    const pid_t child = clone(replace, stack + sizeof(stack), CLONE_FILES | SIGCHLD, fds);
    hear(ends[1]);
    await_child(child);
    hear(ends[1]);
    see("write", write(ends[0], "pipe", 4));
    MUST(fcntl(way[0], F_SETFL, O_NONBLOCK));
    see("read", read(way[0], text, sizeof(text)));
}

static void case_raw_fork(void)
{
    int ends[2];
    const struct clone_args arguments = {.exit_signal = SIGCHLD};
    const long calls[][3] = {
#ifdef SYS_fork
        {SYS_fork, 0, 0},
#endif
        {SYS_clone, SIGCHLD, 0},
        {SYS_clone3, (long)&arguments, sizeof(arguments)}};
    for (unsigned i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        connect_pair(ends);
        see_child(ends, (pid_t)syscall(calls[i][0], calls[i][1], calls[i][2], NULL, NULL, NULL));
    }
    see("wrong flags", syscall(SYS_clone, CLONE_SIGHAND, NULL, NULL, NULL, NULL));
    see("no arguments", syscall(SYS_clone3, NULL, sizeof(arguments)));
    connect_pair(ends);
    talk(ends);
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
    hear(ends[1]);
    await_child(child);
    talk(ends);
    // libc has it since 2.39.
    int (*spawn)(int *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,
                 char *const *, char *const *) = NULL;
    *(void **)&spawn = dlsym(RTLD_DEFAULT, "pidfd_spawnp");
    int handle;
    if (spawn != NULL && spawn(&handle, "echo", &actions, NULL, words, environ) == 0) {
        hear(ends[1]);
        MUST(waitid(P_PIDFD, (id_t)handle, &(siginfo_t){0}, WEXITED));
        MUST(close(handle));
    } else {
        say(ends[0], "spawned\n");
        hear(ends[1]);
    }
    posix_spawn_file_actions_destroy(&actions);
    talk(ends);
}

// The last one that has it is a child, which dies with unread bytes while its peer waits for room.
static void case_dead_reader(void)
{
    static char much[1 << 20];
    int ends[2];
    connect_pair(ends);
    talk(ends);
    const pid_t writer = (pid_t)MUST(fork());
    if (writer == 0) {
        close(ends[1]);
        while (send(ends[0], much, sizeof(much), MSG_NOSIGNAL) > 0)
            ;
        _exit(errno == ECONNRESET || errno == EPIPE ? 0 : 1);
    }
    close(ends[0]);
    const pid_t reader = (pid_t)MUST(fork());
    if (reader == 0) {
        // Until no more comes: the writer waits then.
        int before = -1, bytes = 0;
        while (bytes == 0 || bytes != before) {
            before = bytes;
            usleep(100000);
            ioctl(ends[1], FIONREAD, &bytes);
        }
        _exit(0);
    }
    close(ends[1]);
    await_child(reader);
    await_child(writer);
}

// With connections that rings are about to be granted to, and whose ends make no call meanwhile.
static void case_spawn_early(void)
{
    for (int i = 0; i < 20; i++) {
        int ends[2];
        connect_pair(ends);
        talk(ends);
        char *words[] = {(char *)"true", NULL};
        pid_t child;
        see("spawn", posix_spawnp(&child, "true", NULL, NULL, words, environ));
        await_child(child);
        talk(ends);
        MUST(close(ends[0]));
        MUST(close(ends[1]));
    }
}

// What a shell of libc's own does with a connection comes between what the program does.
static void case_system(void)
{
    int ends[2];
    char command[64], text[64] = "";
    connect_pair(ends);
    snprintf(command, sizeof(command), "printf shell >&%d; exit 3", ends[0]);
    see("system", system(command));
    hear(ends[1]);
    talk(ends);
    // What is unread before it is read first.
    connect_pair(ends);
    say(ends[0], "before");
    snprintf(command, sizeof(command), "printf after >&%d", ends[0]);
    see("system", system(command));
    say(ends[0], "at last");
    MUST(shutdown(ends[0], SHUT_WR));
    see("all", recv(ends[1], text, sizeof(text), MSG_WAITALL));
    printf("text '%s'\n", text);
    say(ends[1], "and back");
    hear(ends[0]);
    printf("a shell %d\n", system(NULL) != 0);
}

static void case_wordexp(void)
{
    int ends[2];
    char words[64];
    wordexp_t result;
    connect_pair(ends);
    snprintf(words, sizeof(words), "one $(printf shell >&%d; printf two)", ends[0]);
    see("words", wordexp(words, &result, 0));
    printf("%zu '%s'\n", result.we_wordc, result.we_wordv[1]);
    wordfree(&result);
    hear(ends[1]);
    talk(ends);
    see("no commands", wordexp(words, &result, WRDE_NOCMD));
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
                                       {"clone", case_clone},
                                       {"clone_files", case_clone_files},
                                       {"raw_fork", case_raw_fork},
                                       {"vfork", case_vfork},
                                       {"posix_spawn", case_posix_spawn},
                                       {"spawn_early", case_spawn_early},
                                       {"dead_reader", case_dead_reader},
                                       {"system", case_system},
                                       {"wordexp", case_wordexp},
                                       {"popen", case_popen},
                                       {"exec", case_exec},
                                       {"exec_greets", case_exec_greets},
                                       {NULL, NULL}};

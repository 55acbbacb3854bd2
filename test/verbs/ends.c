// SPDX-License-Identifier: BSD-3-Clause
// ends PROGRAM [ARGUMENT ...]
// Runs a program, and says of each of its processes that a signal ends which one it was, as no one
// but its parent would learn:
//   ends: signal 11
// The status is the program's. Who ends this ends them all.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

static void give_up(const char *what)
{
    perror(what);
    exit(2);
}

// A stop is a signal that the process is to get, but for those of tracing itself: its first one,
// and those that report a fork.
static void go_on(pid_t process, int status)
{
    const int signal = WSTOPSIG(status);
    const int is_own = signal == SIGSTOP || signal == SIGTRAP;
    ptrace(PTRACE_CONT, process, NULL, (long)(is_own ? 0 : signal));
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    const pid_t program = fork();
    if (program == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
            give_up("ptrace");
        raise(SIGSTOP);
        execvp(argv[1], argv + 1);
        give_up(argv[1]);
    }
    int status;
    if (program < 0 || waitpid(program, &status, 0) != program || !WIFSTOPPED(status))
        give_up("start");
    if (ptrace(PTRACE_SETOPTIONS, program, NULL,
               PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_EXITKILL) != 0)
        give_up("options");
    int result = 2;
    pid_t process = program;
    do {
        if (WIFSTOPPED(status))
            go_on(process, status);
        if (WIFSIGNALED(status))
            fprintf(stderr, "ends: signal %d\n", WTERMSIG(status));
        if (process == program && WIFEXITED(status))
            result = WEXITSTATUS(status);
        process = waitpid(-1, &status, __WALL);
    } while (process > 0);
    return result;
}

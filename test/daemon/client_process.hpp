// SPDX-License-Identifier: BSD-3-Clause
// A client in a process of its own: the test program, begun anew.
#ifndef TEST_DAEMON_CLIENT_PROCESS_HPP
#define TEST_DAEMON_CLIENT_PROCESS_HPP

#include "hosts.hpp"
#include "own_program.hpp"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <sys/socket.h>
#include <sys/wait.h>
#include <vector>

namespace ntbd::test
{

/// What such a client does; then its process ends. Only at namespace scope: its number names the
/// same task in both processes.
class ClientTask
{
public:
    /// @param control  a stream socket to the test; its end is the test's end
    using Run = void (*)(const char *socket, const ntbclient_options &options, int control);

    explicit ClientTask(Run run) : number(all().size()) { all().push_back(run); }

    static std::vector<Run> &all()
    {
        static std::vector<Run> tasks;
        return tasks;
    }

    const size_t number;
};

/// The test's process has threads, and a child of fork() alone would need locks that they may hold.
class ClientProcess
{
public:
    ClientProcess(const ClientTask &task, const Daemon &daemon, const ntbclient_options &options)
    {
        Start start = {task.number, options, {}};
        const std::string &socket = daemon.config.socket;
        EXPECT_EQ(socket.copy(start.socket, sizeof(start.socket) - 1), socket.size());
        int ends[2];
        EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
        control = ends[0];
        EXPECT_EQ(send(control, &start, sizeof(start), MSG_NOSIGNAL), ssize_t{sizeof(start)});
        pid_ =
            plx::test::begin_own_program("client process", "NTBD_TEST_CLIENT_PROCESS=1", ends[1]);
        close(ends[1]);
    }
    ~ClientProcess()
    {
        close(control);
        if (pid_ > 0)
            wait();
    }
    ClientProcess(const ClientProcess &) = delete;
    ClientProcess &operator=(const ClientProcess &) = delete;

    /// At once, whatever it does.
    void kill() const { EXPECT_EQ(::kill(pid_, SIGKILL), 0); }
    /// Until it has ended. @return its status, as of waitpid()
    int wait()
    {
        int status = -1;
        EXPECT_EQ(waitpid(pid_, &status, 0), pid_);
        pid_ = -1;
        return status;
    }

    int control = -1;

private:
    friend class ClientProcessMain;

    struct Start {
        size_t task;
        ntbclient_options options;
        char socket[108];
    };

    static void run()
    {
        Start start;
        if (recv(plx::test::child_control, &start, sizeof(start), MSG_WAITALL) !=
            ssize_t{sizeof(start)})
            return;
        if (start.task < ClientTask::all().size())
            ClientTask::all()[start.task](start.socket, start.options, plx::test::child_control);
    }

    pid_t pid_ = -1;
};

/// Makes the program such a client where ClientProcess began it.
class ClientProcessMain : public testing::Environment
{
    void SetUp() override
    {
        if (getenv("NTBD_TEST_CLIENT_PROCESS") == nullptr)
            return;
        ClientProcess::run();
        _exit(0);
    }
};
inline testing::Environment *const client_process_main =
    testing::AddGlobalTestEnvironment(new ClientProcessMain);

} // namespace ntbd::test

#endif

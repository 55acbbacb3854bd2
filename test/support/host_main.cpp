// SPDX-License-Identifier: BSD-3-Clause
// A host process of its own: obeys the commands that come over a socket, leaves when it closes.
//
//   test_host SOCKET [huge]
#include "local_device.hpp"
#include "pages.hpp"

#include <csignal>
#include <cstdlib>
#include <optional>
#include <vector>

#include <rte_eal.h>

#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace
{

bool start_eal(bool huge)
{
    std::vector<std::string> arguments = test::eal_arguments("test_host", huge, 128);
    std::vector<char *> pointers;
    for (std::string &argument : arguments)
        pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    // EAL ties this thread to one core; which one is the scheduler's business here.
    cpu_set_t cores;
    sched_getaffinity(0, sizeof(cores), &cores);
    const bool started = rte_eal_init(static_cast<int>(arguments.size()), pointers.data()) >= 0;
    sched_setaffinity(0, sizeof(cores), &cores);
    return started;
}

void serve(int socket)
{
    test::LocalDevice first;
    std::optional<test::LocalDevice> second;
    test::Command command;
    while (recv(socket, &command, sizeof(command), 0) == sizeof(command)) {
        if (command.device == 1 && !second)
            second.emplace();
        test::LocalDevice &device = command.device == 1 ? *second : first;
        const test::Answer answer = command.op == test::Op::forward ? device.forward(first, command)
                                                                    : device.execute(command);
        if (send(socket, &answer, sizeof(answer), MSG_NOSIGNAL) != sizeof(answer))
            return;
    }
}

} // namespace

int main(int argc, char **argv)
{
    const pid_t parent = getppid();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (argc < 2 || getppid() != parent || !start_eal(argc > 2))
        return 2;
    serve(std::atoi(argv[1]));
    return rte_eal_cleanup() == 0 ? 0 : 3;
}

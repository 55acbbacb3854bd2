// SPDX-License-Identifier: BSD-3-Clause
#include "host.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>

#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace test
{

namespace
{

/// Longer than anything takes, also under sanitizers on a busy machine; no one waits so long for
/// what does come.
constexpr int patience_ms = 60'000;
constexpr int look_again_ms = 1;

template <class Done>
bool await(Done done)
{
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + std::chrono::milliseconds(patience_ms);
    while (!done()) {
        if (Clock::now() >= end)
            return false;
        poll(nullptr, 0, look_again_ms);
    }
    return true;
}

void put_text(Command &command, const std::string &text)
{
    std::snprintf(command.text, sizeof(command.text), "%s", text.c_str());
}

} // namespace

Answer Host::ask(Op op, uint64_t value, const std::string &text)
{
    Command command;
    command.op = op;
    command.value = value;
    put_text(command, text);
    return ask(command);
}

Answer Host::ask(Op op, uint64_t value, uint64_t extra)
{
    Command command;
    command.op = op;
    command.value = value;
    command.extra = extra;
    return ask(command);
}

bool Host::store_until(uint64_t offset, uint64_t word, const std::function<bool()> &seen)
{
    return await([&] { return ask(Op::store, offset, word).rc == 0 && seen(); });
}

int64_t Host::attach(const std::string &cable, const std::string &devargs)
{
    std::string all = "cable=" + cable;
    for (const std::string &some : {place_, devargs})
        all += some.empty() ? "" : "," + some;
    return ask(Op::attach, 0, all).rc;
}

int64_t Host::configure(const rte_pmd_plx_ntb_config &config)
{
    Command command;
    command.op = Op::configure;
    command.config = config;
    return ask(command).rc;
}

int64_t Host::bring_up(const std::string &cable, const HostSetup &setup)
{
    const int64_t rc = attach(cable, setup.devargs);
    return rc != 0 ? rc : restart(setup);
}

int64_t Host::restart(const HostSetup &setup)
{
    int64_t rc = configure(setup.config);
    if (rc == 0)
        rc = ask(Op::queue_setup, setup.pool_mbufs).rc;
    return rc != 0 ? rc : ask(Op::start).rc;
}

bool Host::await_event(char which, unsigned times)
{
    return await([&] {
        const std::string all = events();
        return std::count(all.begin(), all.end(), which) >= times;
    });
}

bool Host::await_state(rte_pmd_plx_ntb_state state)
{
    return await([&] { return link().state == state; });
}

bool Host::await_why(const std::string &why)
{
    return await([&] { return link().why == why; });
}

bool Host::await_xstat(const std::string &name, uint64_t at_least)
{
    return await([&] { return xstat(name) >= at_least; });
}

LocalHost::~LocalHost()
{
    if (thread_.joinable())
        thread_.join();
}

void LocalHost::begin(const Command &command)
{
    // Control calls stay on the test's thread; traffic has one of its own, as a lcore would.
    if (command.op == Op::traffic || command.op == Op::echo)
        thread_ = std::thread([this, command] { answer_ = local_device_.execute(command); });
    else
        answer_ = local_device_.execute(command);
}

Answer LocalHost::end()
{
    if (thread_.joinable())
        thread_.join();
    return answer_;
}

RemoteHost::RemoteHost(bool huge)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return;
    socket_ = ends[0];
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 3);
    char program[] = TEST_HOST_PROGRAM;
    char number[] = "3";
    char pages[] = "huge";
    char *arguments[] = {program, number, huge ? pages : nullptr, nullptr};
    if (posix_spawn(&pid_, program, &actions, nullptr, arguments, environ) != 0)
        pid_ = -1;
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    EXPECT_GT(pid_, 0) << program;
}

RemoteHost::~RemoteHost()
{
    // Only then: LeakSanitizer stops the threads of a leaving process one by one through ptrace,
    // and a SIGCONT takes such a stop back, upon which both wait for ever.
    if (frozen_)
        thaw();
    if (socket_ >= 0)
        close(socket_); // its sign to leave
    if (pid_ <= 0)
        return;
    if (!gone_within(patience_ms)) {
        ADD_FAILURE() << "a host process did not leave";
        kill_now();
    }
}

bool RemoteHost::gone_within(int ms)
{
    const int handle = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
    pollfd waiting{handle, POLLIN, 0};
    const bool gone = handle >= 0 && poll(&waiting, 1, ms) == 1;
    if (handle >= 0)
        close(handle);
    if (!gone)
        return false;
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
        << "a host process ended with status 0x" << std::hex << status;
    return true;
}

void RemoteHost::begin(const Command &command)
{
    limit_ms_ = command.limit_ms;
    Command addressed = command;
    addressed.device = device_;
    if (send(socket_, &addressed, sizeof(addressed), MSG_NOSIGNAL) != sizeof(addressed))
        ADD_FAILURE() << "a host process is gone";
}

Answer RemoteHost::end()
{
    Answer answer;
    answer.rc = -ETIMEDOUT;
    pollfd waiting{socket_, POLLIN, 0};
    const int wait_ms = static_cast<int>(limit_ms_) + patience_ms;
    if (poll(&waiting, 1, wait_ms) == 1 &&
        recv(socket_, &answer, sizeof(answer), MSG_DONTWAIT) != sizeof(answer)) {
        answer = {};
        answer.rc = -EPIPE;
    }
    if (answer.rc == -EPIPE || answer.rc == -ETIMEDOUT)
        std::snprintf(answer.text, sizeof(answer.text), "the host process did not answer");
    return answer;
}

void RemoteHost::kill_now()
{
    if (pid_ <= 0)
        return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
    frozen_ = false;
}

void RemoteHost::freeze()
{
    kill(pid_, SIGSTOP);
    waitpid(pid_, nullptr, WUNTRACED);
    frozen_ = true;
}

void RemoteHost::thaw()
{
    kill(pid_, SIGCONT);
    frozen_ = false;
}

bool RemoteHost::alive()
{
    return pid_ > 0 && !gone_within(0);
}

Stream stream(uint32_t queue, uint32_t seed, uint32_t count,
              std::initializer_list<uint32_t> lengths)
{
    Stream s;
    s.queue = queue;
    s.seed = seed;
    s.count = count;
    for (const uint32_t length : lengths)
        s.lengths[s.lengths_used++] = length;
    return s;
}

Command traffic(std::initializer_list<Stream> out, std::initializer_list<Stream> in)
{
    Command command;
    command.op = Op::traffic;
    for (const Stream &s : out)
        command.out[command.outs++] = s;
    for (const Stream &s : in)
        command.in[command.ins++] = s;
    return command;
}

Folder::Folder()
{
    char path[] = "/tmp/plx-test-XXXXXX";
    path_ = mkdtemp(path) != nullptr ? path : "";
    EXPECT_FALSE(path_.empty());
}

Folder::~Folder()
{
    std::error_code ignored;
    if (!path_.empty())
        std::filesystem::remove_all(path_, ignored);
}

} // namespace test

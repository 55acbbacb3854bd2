// SPDX-License-Identifier: BSD-3-Clause
// The program as a user runs it: it takes a figure, and leaves nothing behind however it ends.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <poll.h>
#include <string>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace
{

using namespace std::chrono_literals;
constexpr auto patience = 60s;

bool eventually(const std::function<bool()> &fact)
{
    const auto give_up = std::chrono::steady_clock::now() + patience;
    while (!fact()) {
        if (std::chrono::steady_clock::now() > give_up)
            return false;
        usleep(2000);
    }
    return true;
}

class Run : public testing::Test
{
protected:
    void SetUp() override
    {
        ASSERT_NE(getenv("NTBMSG_BENCH"), nullptr);
        ASSERT_NE(mkdtemp(m_folder), nullptr);
        m_watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
        ASSERT_GE(inotify_add_watch(m_watch, m_folder, IN_CREATE), 0);
        // The children of a parent that is killed become ours.
        ASSERT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    }

    void TearDown() override
    {
        if (m_parent > 0)
            kill(m_parent, SIGKILL);
        EXPECT_TRUE(eventually([] { return waitpid(-1, nullptr, WNOHANG) < 0; }));
        EXPECT_TRUE(std::filesystem::is_empty(m_folder));
        std::filesystem::remove_all(m_folder);
        close(m_watch);
    }

    void start(std::vector<std::string> words)
    {
        words.insert(words.begin(), getenv("NTBMSG_BENCH"));
        std::vector<char *> arguments;
        for (std::string &word : words)
            arguments.push_back(word.data());
        arguments.push_back(nullptr);
        ASSERT_EQ(pipe(m_output), 0);
        m_parent = fork();
        ASSERT_GE(m_parent, 0);
        if (m_parent != 0) {
            close(m_output[1]);
            return;
        }
        setenv("TMPDIR", m_folder, 1);
        dup2(m_output[1], STDOUT_FILENO);
        close(m_output[0]);
        close(m_output[1]);
        execv(arguments[0], arguments.data());
        _exit(127);
    }

    std::string read_all()
    {
        std::string text;
        std::array<char, 4096> piece;
        for (ssize_t n; (n = read(m_output[0], piece.data(), piece.size())) > 0;)
            text.append(piece.data(), static_cast<size_t>(n));
        close(m_output[0]);
        return text;
    }

    int wait_status()
    {
        int status = -1;
        EXPECT_TRUE(eventually([&] { return waitpid(m_parent, &status, WNOHANG) == m_parent; }));
        m_parent = -1;
        return status;
    }

    /// The hosts have been started. Reported by the kernel: a look could come too late.
    bool await_folder()
    {
        pollfd waiting{m_watch, POLLIN, 0};
        return poll(&waiting, 1, static_cast<int>(std::chrono::milliseconds(patience).count())) ==
               1;
    }
    /// What was made for the start is gone again: the hosts are joined.
    bool folder_is_gone() { return std::filesystem::is_empty(m_folder); }

    pid_t m_parent = -1;

private:
    char m_folder[32] = "/tmp/bench_run_test.XXXXXX";
    int m_output[2] = {-1, -1};
    int m_watch = -1;
};

} // namespace

TEST_F(Run, TakesAFigure)
{
    start({"--quick", "--only", "mem.host"});
    const std::string text = read_all();
    const int status = wait_status();
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status << "\n" << text;
    EXPECT_NE(text.find("\nmem.host "), std::string::npos) << text;
}

TEST_F(Run, TakesAFigureWithoutHugePages)
{
    start({"--quick", "--no-huge", "--only", "mem.host"});
    const std::string text = read_all();
    const int status = wait_status();
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status << "\n" << text;
    EXPECT_NE(text.find("no huge pages"), std::string::npos) << text;
}

TEST_F(Run, ItSaysItsVersion)
{
    start({"--version"});
    EXPECT_EQ(
        read_all().rfind(std::string("ntbmsg_bench ") + getenv("NTBMSG_VERSION") + ", DPDK", 0),
        0u);
    EXPECT_EQ(wait_status(), 0);
}

TEST_F(Run, WhatFindsNoRoomOnStandardOutputIsAnError)
{
    const std::string program = getenv("NTBMSG_BENCH");
    const int status = std::system((program + " --help > /dev/full").c_str());
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1) << status;
}

TEST_F(Run, AnInterruptEndsItAndLeavesNothing)
{
    start({"--only", "qp.rtt.8"});
    ASSERT_TRUE(await_folder());
    kill(m_parent, SIGINT);
    read_all();
    const int status = wait_status();
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) != 0) << status;
}

TEST_F(Run, ItsHostsDieWithIt)
{
    start({"--only", "qp.rtt.8"});
    ASSERT_TRUE(await_folder());
    ASSERT_TRUE(eventually([&] { return folder_is_gone(); }));
    kill(m_parent, SIGKILL);
    read_all();
    const int status = wait_status();
    EXPECT_TRUE(WIFSIGNALED(status)) << status;
}

TEST_F(Run, AnUnknownFigureIsRefused)
{
    start({"--only", "qp.nothing"});
    read_all();
    const int status = wait_status();
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 2) << status;
}

// SPDX-License-Identifier: BSD-3-Clause
// Descriptors: when they are readable, and who waits for an event.
#include "../../../daemon/hosts.hpp"

#include "cm/device.hpp"

#include <atomic>
#include <csignal>
#include <cstdio>
#include <fcntl.h>
#include <fstream>
#include <poll.h>
#include <thread>
#include <unistd.h>

using namespace ntbd::test;
using ntb::verbs::cm::Device;
using ntb::verbs::cm::Hosts;

namespace
{

std::atomic<int> signals{0};

class CmDevice : public testing::Test
{
protected:
    void SetUp() override
    {
        daemon.start();
        const std::string map = folder.path + "/map";
        FILE *const file = fopen(map.c_str(), "w");
        ASSERT_NE(file, nullptr);
        fprintf(file, "host 127.0.0.0/8 %s\n", daemon.config.socket.c_str());
        fclose(file);
        ASSERT_EQ(hosts.load(map.c_str()), "");
        ASSERT_EQ(device.start(daemon.config.socket.c_str()), 0);
        channel = device.open(O_RDWR | O_CLOEXEC);
        ASSERT_GE(channel, 0);
    }

    template <typename T>
    ssize_t write(std::uint32_t number, const T &payload, std::size_t room = 0)
    {
        struct {
            rdma_ucm_cmd_hdr header;
            T payload;
        } command = {{number, sizeof(T), static_cast<std::uint16_t>(room)}, payload};
        const ssize_t done = device.write(channel, &command, sizeof(command));
        return done == static_cast<ssize_t>(sizeof(command)) ? 0 : done;
    }
    std::uint32_t create()
    {
        rdma_ucm_create_id_resp made = {};
        rdma_ucm_create_id wanted = {};
        wanted.uid = 1;
        wanted.response = reinterpret_cast<std::uintptr_t>(&made);
        wanted.ps = RDMA_PS_TCP;
        EXPECT_EQ(write(RDMA_USER_CM_CMD_CREATE_ID, wanted, sizeof(made)), 0);
        return made.id;
    }
    static sockaddr_in loopback(std::uint16_t port)
    {
        sockaddr_in address = {};
        address.sin_family = AF_INET;
        address.sin_port = htons(port);
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        return address;
    }
    void bind(std::uint32_t id)
    {
        const sockaddr_in to = loopback(0);
        rdma_ucm_bind_ip wanted = {};
        std::memcpy(&wanted.addr, &to, sizeof(to));
        wanted.id = id;
        EXPECT_EQ(write(RDMA_USER_CM_CMD_BIND_IP, wanted), 0);
    }
    void resolve(std::uint32_t id)
    {
        const sockaddr_in to = loopback(7000);
        rdma_ucm_resolve_ip wanted = {};
        std::memcpy(&wanted.dst_addr, &to, sizeof(to));
        wanted.id = id;
        EXPECT_EQ(write(RDMA_USER_CM_CMD_RESOLVE_IP, wanted), 0);
    }
    void destroy(std::uint32_t id)
    {
        rdma_ucm_destroy_id_resp reported = {};
        rdma_ucm_destroy_id wanted = {};
        wanted.response = reinterpret_cast<std::uintptr_t>(&reported);
        wanted.id = id;
        EXPECT_EQ(write(RDMA_USER_CM_CMD_DESTROY_ID, wanted, sizeof(reported)), 0);
    }
    /// Whether that thread of the process waits in the kernel.
    static bool sleeps(int thread_id)
    {
        std::ifstream file("/proc/self/task/" + std::to_string(thread_id) + "/stat");
        std::string line;
        std::getline(file, line);
        const std::size_t name = line.rfind(')');
        return name != std::string::npos && line.substr(name + 2, 1) == "S";
    }
    ssize_t get()
    {
        rdma_ucm_event_resp event;
        const rdma_ucm_get_event wanted = {reinterpret_cast<std::uintptr_t>(&event)};
        return write(RDMA_USER_CM_CMD_GET_EVENT, wanted, sizeof(event));
    }
    bool is_readable() const
    {
        pollfd one = {channel, POLLIN, 0};
        return poll(&one, 1, 0) == 1;
    }
    static void handle(int flags)
    {
        struct sigaction action = {};
        action.sa_handler = [](int) { signals++; };
        action.sa_flags = flags;
        sigaction(SIGUSR1, &action, nullptr);
        signals = 0;
    }

    Folder folder;
    Daemon daemon{folder.path + "/a.sock"};
    Hosts hosts{folder.path + "/a.sock", 1, 2};
    Device device{hosts};
    int channel = -1;
};

TEST_F(CmDevice, ADescriptorIsReadableWhileEventsWait)
{
    EXPECT_TRUE(device.owns(channel));
    EXPECT_FALSE(is_readable());
    const std::uint32_t one = create(), other = create();
    resolve(one);
    resolve(other);
    EXPECT_TRUE(is_readable());
    EXPECT_EQ(get(), 0);
    EXPECT_TRUE(is_readable());
    destroy(other);
    EXPECT_FALSE(is_readable()) << "its event has gone with it";
    fcntl(channel, F_SETFL, O_NONBLOCK);
    EXPECT_EQ(get(), -EAGAIN);
}

TEST_F(CmDevice, WhoWaitsIsToldOfAnEvent)
{
    std::atomic<int> got{1};
    std::thread waiting([&] { got = static_cast<int>(get()); });
    resolve(create());
    waiting.join();
    EXPECT_EQ(got, 0);
    EXPECT_FALSE(is_readable());
}

TEST_F(CmDevice, ASignalEndsAWaitOrStartsItAgain)
{
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "the sanitizer holds signals back in a system call that it does not know";
#endif
    handle(0);
    std::atomic<int> got{1};
    std::thread interrupted([&] { got = static_cast<int>(get()); });
    // One may come before it waits.
    EXPECT_TRUE(await([&] {
        if (got == 1)
            pthread_kill(interrupted.native_handle(), SIGUSR1);
        return got != 1;
    }));
    interrupted.join();
    EXPECT_EQ(got, -EINTR);
    handle(SA_RESTART);
    got = 1;
    std::thread restarted([&] { got = static_cast<int>(get()); });
    EXPECT_TRUE(await([&] {
        pthread_kill(restarted.native_handle(), SIGUSR1);
        return signals >= 100;
    }));
    EXPECT_EQ(got, 1);
    resolve(create());
    restarted.join();
    EXPECT_EQ(got, 0);
}

// As rping ends: an event comes for its second thread, and before that one has looked the first one
// destroys the identifier and closes the channel.
TEST_F(CmDevice, WhoWaitsWhileItIsClosedGoesOnWaiting)
{
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "the sanitizer holds signals back in a system call that it does not know";
#endif
    handle(0);
    for (int i = 0; i < 200; i++) {
        const std::uint32_t id = create();
        std::atomic<int> got{1}, thread_id{0};
        std::thread waiting([&] {
            thread_id = gettid();
            got = static_cast<int>(get());
        });
        ASSERT_TRUE(await([&] { return thread_id != 0 && sleeps(thread_id); }));
        resolve(id);
        destroy(id);
        EXPECT_EQ(device.close(channel), 0);
        EXPECT_TRUE(await([&] {
            if (got == 1)
                pthread_kill(waiting.native_handle(), SIGUSR1);
            return got != 1;
        }));
        waiting.join();
        ASSERT_TRUE(got == -EINTR || got == 0) << got;
        channel = device.open(O_RDWR | O_CLOEXEC);
    }
}

// A command of another thread waits for the daemon, and that thread closes the channel behind it.
TEST_F(CmDevice, WhoHasBegunToWaitBeforeItIsClosedGoesOnWaiting)
{
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "the sanitizer holds signals back in a system call that it does not know";
#endif
    handle(0);
    for (int i = 0; i < 10; i++) {
        const std::uint32_t id = create();
        bind(id);
        std::atomic<bool> is_held{false}, goes_on{false};
        daemon.reload([&](ntbd::Config &) {
            is_held = true;
            EXPECT_TRUE(await([&] { return goes_on.load(); }));
        });
        ASSERT_TRUE(await([&] { return is_held.load(); }));
        std::atomic<int> got{1}, closing_id{0}, waiting_id{0};
        std::thread closing([&] {
            closing_id = gettid();
            destroy(id);
            EXPECT_EQ(device.close(channel), 0);
        });
        ASSERT_TRUE(await([&] { return closing_id != 0 && sleeps(closing_id); }));
        std::thread waiting([&] {
            waiting_id = gettid();
            got = static_cast<int>(get());
        });
        ASSERT_TRUE(await([&] { return waiting_id != 0 && sleeps(waiting_id); }));
        goes_on = true;
        closing.join();
        EXPECT_TRUE(await([&] {
            if (got == 1)
                pthread_kill(waiting.native_handle(), SIGUSR1);
            return got != 1;
        }));
        waiting.join();
        ASSERT_EQ(got, -EINTR);
        channel = device.open(O_RDWR | O_CLOEXEC);
    }
}

TEST_F(CmDevice, AClosedDescriptorIsNotOurs)
{
    EXPECT_EQ(device.close(channel), 0);
    EXPECT_EQ(fcntl(channel, F_GETFD), -1);
    EXPECT_FALSE(device.owns(channel));
    EXPECT_EQ(device.close(channel), -EBADF);
    EXPECT_EQ(get(), -EBADF);
}

} // namespace

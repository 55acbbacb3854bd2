// SPDX-License-Identifier: BSD-3-Clause
// A host in a process of its own, that executes commands of a test, and a cable to it.
#ifndef PLX_TEST_TWIN_FAR_HOST_HPP
#define PLX_TEST_TWIN_FAR_HOST_HPP

#include "bench_pair.hpp"
#include "own_program.hpp"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace plx::test
{

enum class Do : uint32_t {
    attach, ///< argument: twin::ChipState; gives the error code
    detach,
    bring_up,
    expose, ///< argument: MiB, opened through its link BAR2
    close,  ///< closes link BAR2
    csr_read,
    csr_write,
    store, ///< into its BAR2
    load,
    word, ///< of what it exposed
    poke, ///< into what it exposed
    freeze,
    connected,
    watch_doorbells, ///< takes them when it is interrupted
    doorbells_taken, ///< all of them since then
    become,          ///< argument: the user that it is from now on; for root
    limit,           ///< argument: file descriptors that it may have
    give_birth,      ///< gives the pid of a child that has all descriptors, for patience_s at most
};

class FarHost
{
public:
    // The test's process has threads, and a child of fork() alone would need locks that they may
    // have held, those of sanitizers too: the child begins the test program anew, see FarHostMain.
    explicit FarHost(const twin::Config &config)
    {
        int ends[2];
        EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
        control_ = ends[0];
        // What points into this process says nothing there.
        EXPECT_TRUE(config.state_file == nullptr && config.clock == nullptr &&
                    config.thread_start == nullptr && config.thread_join == nullptr);
        Birth birth{config, {}};
        birth.config.cable = nullptr;
        const std::string cable = config.cable;
        EXPECT_EQ(cable.copy(birth.cable, sizeof(birth.cable) - 1), cable.size());
        EXPECT_EQ(send(control_, &birth, sizeof(birth), MSG_NOSIGNAL), ssize_t{sizeof(birth)});
        pid_ = plx::test::begin_own_program("far host", "PLX_TEST_FAR_HOST=1", ends[1]);
        ::close(ends[1]);
    }
    ~FarHost()
    {
        ::close(control_);
        if (pid_ > 0) {
            kill(pid_, SIGCONT);
            waitpid(pid_, nullptr, 0);
        }
    }
    FarHost(const FarHost &) = delete;
    FarHost &operator=(const FarHost &) = delete;

    /// Bounded: a far host that does not answer gives -ETIMEDOUT.
    int64_t operator()(Do what, uint64_t a = 0, uint64_t b = 0)
    {
        const Order order{what, a, b};
        int64_t answer = -ETIMEDOUT;
        pollfd waiting{control_, POLLIN, 0};
        if (send(control_, &order, sizeof(order), MSG_NOSIGNAL) == sizeof(order) &&
            poll(&waiting, 1, patience_s * 1000) == 1 &&
            recv(control_, &answer, sizeof(answer), MSG_DONTWAIT) == sizeof(answer))
            return answer;
        return -ETIMEDOUT;
    }
    void kill_now()
    {
        kill(pid_, SIGKILL);
        waitpid(pid_, nullptr, 0);
        pid_ = -1;
    }
    void stop()
    {
        kill(pid_, SIGSTOP);
        waitpid(pid_, nullptr, WUNTRACED);
    }
    void go_on() { kill(pid_, SIGCONT); }

private:
    friend class FarHostMain;

    struct Birth {
        twin::Config config;
        char cable[108];
    };
    struct Order {
        Do what;
        uint64_t a;
        uint64_t b;
    };
    struct Served {
        twin::Config config;
        twin::Host *host = nullptr;
        twin::Memory exposed{};
        std::atomic<uint32_t> taken{0};
    };

    static void take_doorbells(void *ctx)
    {
        auto *served = static_cast<Served *>(ctx);
        const uint32_t clear = virt_block + reg::db_virt_clear;
        const uint32_t pending = twin::csr_read32(served->host, clear);
        twin::csr_write32(served->host, clear, pending);
        served->taken.fetch_or(pending);
    }

    static void serve(int control)
    {
        Birth birth;
        if (recv(control, &birth, sizeof(birth), 0) != sizeof(birth))
            return;
        Served served;
        served.config = birth.config;
        served.config.cable = birth.cable;
        Order order;
        while (recv(control, &order, sizeof(order), 0) == sizeof(order)) {
            const int64_t answer = obey(served, order);
            if (send(control, &answer, sizeof(answer), MSG_NOSIGNAL) != sizeof(answer))
                break;
        }
        twin::detach(served.host);
    }
    static int64_t obey(Served &s, const Order &order)
    {
        const auto a32 = static_cast<uint32_t>(order.a);
        const auto b32 = static_cast<uint32_t>(order.b);
        twin::Error error{};
        switch (order.what) {
        case Do::attach:
            s.config.state = static_cast<twin::ChipState>(order.a);
            return twin::attach(s.config, &s.host, &error);
        case Do::detach:
            twin::detach(s.host);
            s.host = nullptr;
            return 0;
        case Do::bring_up:
            bring_up(s.host);
            return 0;
        case Do::expose: {
            const int code = twin::memory_add(s.host, order.a * mib, -1, order.b != 0, &s.exposed);
            if (code == 0)
                open_inbound(s.host, 2, s.exposed.bus, order.a * mib);
            return code;
        }
        case Do::close:
            close_inbound(s.host, 2);
            return 0;
        case Do::csr_read:
            return twin::csr_read32(s.host, a32);
        case Do::csr_write:
            twin::csr_write32(s.host, a32, b32);
            return 0;
        case Do::store:
            store32(s.host, 2, order.a, b32);
            return 0;
        case Do::load:
            return load32(s.host, 2, order.a);
        case Do::word:
            return word_at(s.exposed, order.a);
        case Do::poke:
            memcpy(static_cast<uint8_t *>(s.exposed.base) + order.a, &b32, sizeof(b32));
            return 0;
        case Do::freeze:
            twin::inject(s.host, twin::Fault::freeze_remaps, a32);
            return 0;
        case Do::connected:
            return twin::cable_connected(s.host) ? 1 : 0;
        case Do::watch_doorbells:
            twin::on_interrupt(s.host, take_doorbells, &s);
            return 0;
        case Do::doorbells_taken:
            return s.taken.load();
        case Do::limit: {
            const rlimit few{order.a, 1024};
            return setrlimit(RLIMIT_NOFILE, &few) == 0 ? 0 : -errno;
        }
        case Do::give_birth: {
            const pid_t child = fork();
            if (child == 0) {
                sleep(patience_s);
                _exit(0);
            }
            return child;
        }
        case Do::become:
            return setuid(a32) == 0 ? 0 : -errno;
        }
        return -ENOSYS;
    }

    pid_t pid_ = -1;
    int control_ = -1;
};

/// Makes the program a far host where FarHost began it.
class FarHostMain : public testing::Environment
{
    void SetUp() override
    {
        if (getenv("PLX_TEST_FAR_HOST") == nullptr)
            return;
        FarHost::serve(plx::test::child_control);
        _exit(0);
    }
};
inline testing::Environment *const far_host_main =
    testing::AddGlobalTestEnvironment(new FarHostMain);

/// A cable to other processes, in a folder of its own, and this one's end of it.
class BetweenProcesses : public testing::Test
{
protected:
    std::string folder;
    std::string path;
    twin::Config config;
    twin::Host *near = nullptr;

    BetweenProcesses()
    {
        char made[] = "/tmp/plx-twin-XXXXXX";
        folder = mkdtemp(made);
        path = folder + "/cable";
        config.cable = path.c_str();
        config.bar2_bytes = 64 * mib;
        config.remap_wait_us = patience_s * 1'000'000; // a busy machine is no failure
    }
    ~BetweenProcesses() override { std::filesystem::remove_all(folder); }
    void TearDown() override { twin::detach(near); }
};

} // namespace plx::test

#endif

// SPDX-License-Identifier: BSD-3-Clause
// Daemons in this process, without a device: what theirs would report, the test does. With a
// cable their connections go through them.
#ifndef TEST_DAEMON_HOSTS_HPP
#define TEST_DAEMON_HOSTS_HPP

#include "cable.hpp"
#include "config/config.hpp"
#include "ntbclient.h"
#include "server/listen.hpp"
#include "server/server.hpp"

#include <chrono>
#include <csignal>
#include <filesystem>
#include <functional>
#include <gtest/gtest.h>
#include <optional>
#include <pthread.h>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>

namespace ntbd::test
{

inline constexpr auto patience = std::chrono::seconds(30);

/// For calls that wait by themselves, milliseconds.
inline constexpr int long_ms = 30000;

/// Polls until it is true. The pause bounds the cost, not the outcome.
inline bool await(const std::function<bool()> &fact)
{
    const auto until = std::chrono::steady_clock::now() + patience;
    while (!fact()) {
        if (std::chrono::steady_clock::now() > until)
            return false;
        std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    return true;
}

class Folder
{
public:
    Folder()
    {
        char name[] = "/tmp/ntbd-test-XXXXXX";
        path = mkdtemp(name);
    }
    ~Folder() { std::filesystem::remove_all(path); }

    std::string path;
};

inline sockaddr_un address_of(const std::string &path)
{
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    return address;
}

/// In a daemon's place. @return a socket of the caller's
inline int listen_at(const std::string &path, int flags = 0)
{
    const sockaddr_un address = address_of(path);
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0);
    EXPECT_EQ(bind(fd, reinterpret_cast<const sockaddr *>(&address), sizeof(address)), 0);
    EXPECT_EQ(listen(fd, 1), 0);
    return fd;
}

// The server takes signals from a descriptor, thread by thread.
inline void block_signals()
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

class Daemon
{
public:
    explicit Daemon(const std::string &socket) { config.socket = socket; }
    ~Daemon() { stop(); }

    void start()
    {
        block_signals();
        std::string error;
        mailbox_.emplace(); // a process that is started again has heard nothing
        listener_ = std::make_unique<ListeningSocket>();
        ASSERT_TRUE(listener_->open(config.socket, config.mode, &error)) << error;
        server_ = std::make_unique<Server>(listener_->fd(), config, *mailbox_, [this] {
            const std::lock_guard held(reload_lock_);
            reload_(config);
        });
        thread_ = std::thread([this] { EXPECT_TRUE(server_->run()); });
        if (bridge == nullptr)
            return;
        carrier_ = std::make_unique<Carrier>(*bridge, *mailbox_);
        carrier_thread_ = std::thread([this] { EXPECT_TRUE(carrier_->run()); });
    }
    void stop()
    {
        if (!thread_.joinable())
            return;
        pthread_kill(thread_.native_handle(), SIGTERM);
        thread_.join();
        if (carrier_thread_.joinable()) {
            carrier_->stop();
            carrier_thread_.join();
            carrier_.reset();
            bridge->cut();
        }
        server_.reset();
        listener_.reset();
    }
    /// What a new file would change.
    void reload(std::function<void(Config &)> change)
    {
        {
            const std::lock_guard held(reload_lock_);
            reload_ = std::move(change);
        }
        pthread_kill(thread_.native_handle(), SIGHUP);
    }
    Server::Snapshot now() const { return server_->snapshot(); }
    Mailbox &mailbox() { return *mailbox_; }
    Carrier::Figures carried() const { return carrier_->figures(); }

    Config config;                      ///< to be set before the start
    std::unique_ptr<Cable::End> bridge; ///< likewise

private:
    std::mutex reload_lock_;
    std::function<void(Config &)> reload_;
    std::optional<Mailbox> mailbox_;
    std::unique_ptr<ListeningSocket> listener_;
    std::unique_ptr<Server> server_;
    std::thread thread_;
    std::unique_ptr<Carrier> carrier_;
    std::thread carrier_thread_;
};

/// Before both are started.
inline void plug(Cable &cable, Daemon &one, Daemon &other)
{
    one.bridge = std::make_unique<Cable::End>(cable, 0);
    other.bridge = std::make_unique<Cable::End>(cable, 1);
    one.bridge->plug(other.bridge.get());
    other.bridge->plug(one.bridge.get());
}

/// What two devices report to their daemons when a link comes up.
inline void introduce(Daemon &one, Daemon &other)
{
    Daemon *const both[] = {&one, &other};
    Introduction own[2];
    Peer peers[2];
    for (int i = 0; i < 2; i++) {
        const auto carrier =
            one.bridge != nullptr ? CarrierChoice::daemon : CarrierChoice::automatic;
        ASSERT_TRUE(introduce_self(both[i]->config.socket, carrier, &own[i]));
        ASSERT_TRUE(introduction_of(&own[i], sizeof(own[i]), &peers[i]));
    }
    for (int i = 0; i < 2; i++)
        if (both[i]->bridge != nullptr)
            both[i]->bridge->begin(own[i].token);
    // What a host says and what it hears cross.
    for (int i = 0; i < 2; i++) {
        const LinkNews said = {LinkNews::Kind::introducing, own[i], {}};
        const LinkNews heard = {LinkNews::Kind::introduced, {}, peers[1 - i]};
        both[i]->mailbox().put({LinkNews::Kind::lost, {}, {}});
        both[i]->mailbox().put(i == 0 ? said : heard);
        both[i]->mailbox().put(i == 0 ? heard : said);
    }
}

inline void join(Daemon &one, Daemon &other)
{
    introduce(one, other);
    ASSERT_TRUE(await([&] { return one.now().peer && other.now().peer; }));
}

/// An attachment that ends with the scope.
class Client
{
public:
    explicit Client(const Daemon &daemon)
    {
        EXPECT_EQ(ntbclient_attach(daemon.config.socket.c_str(), &handle), 0);
    }
    ~Client() { ntbclient_detach(handle); }
    Client(const Client &) = delete;
    Client &operator=(const Client &) = delete;
    operator ntbclient *() const { return handle; }

    ntbclient *handle = nullptr;
};

inline ntbclient_info info_of(ntbclient_conn *conn)
{
    ntbclient_info info = {};
    info.size = sizeof(info);
    EXPECT_EQ(ntbclient_info_get(conn, &info), 0);
    return info;
}

/// Connects a to b, by a listener that is closed again.
inline void connect_clients(ntbclient *a, ntbclient *b, const ntbclient_options &options,
                            ntbclient_conn **from, ntbclient_conn **to)
{
    ntbclient_listener *listener;
    ASSERT_EQ(ntbclient_listen(b, "make", &options, &listener), 0);
    ASSERT_EQ(ntbclient_connect(a, "make", &options, from), 0);
    ASSERT_TRUE(await([&] { return ntbclient_accept(listener, to) == 0; }));
    ASSERT_EQ(ntbclient_wait(*from, NTBCLIENT_WRITABLE, long_ms), int{NTBCLIENT_WRITABLE});
    ntbclient_listener_close(listener);
}

/// A client at each of two daemons, or two at one, and a connection that the test closes.
struct Pair {
    Pair(const Daemon &near, const Daemon &far, const ntbclient_options &options) : a(near), b(far)
    {
        connect_clients(a, b, options, &from, &to);
    }

    Client a;
    Client b;
    ntbclient_conn *from = nullptr;
    ntbclient_conn *to = nullptr;
};

} // namespace ntbd::test

#endif

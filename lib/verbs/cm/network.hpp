// SPDX-License-Identifier: BSD-3-Clause
// Ways between connection managers by the node daemon: doc/verbs.md, section 12.
#ifndef NTB_VERBS_CM_NETWORK_HPP
#define NTB_VERBS_CM_NETWORK_HPP

#include <atomic>
#include <map>
#include <vector>

#include <ntbclient.h>
#include <poll.h>
#include <pthread.h>

#include "cm/manager.hpp"

namespace ntb::verbs::cm
{

/// Who learns of what has come. The mutex is held.
class Audience
{
public:
    virtual ~Audience() = default;

    virtual void request(Link link, Port port, const Message &message) = 0;
    virtual void message(Link link, const Message &message) = 0;
    virtual void located(Link link, std::uint16_t lid) = 0;
    virtual void lost(Link link, int error) = 0;
    /// After one or more of these.
    virtual void notify() = 0;
};

/// Each way is a connection of the daemon, each claimed port two listeners. All calls but open(),
/// start() and stop() are made with the mutex held.
class Network final : public Carrier
{
public:
    /// Programs connect to what is about to listen: so long, in nanoseconds, a refusal is tried
    /// again.
    static constexpr std::uint64_t default_patience = 1000000000;

    explicit Network(pthread_mutex_t &mutex, std::uint64_t patience = default_patience)
        : mutex_(mutex), patience_(patience)
    {
    }
    ~Network() override;

    /// Attaches to a daemon. @return 0 or a negative errno of ntbclient_attach()
    int open(const char *socket);
    /// Begins to serve by a thread of its own. @return 0 or a negative errno
    int start(Audience &audience);
    void stop();

    int claim(Port port) override;
    void release(Port port) override;
    Link connect(Port port, bool here_first, const Message &request) override;
    Link locate(Port port, bool here_first, std::uint32_t timeout_ms) override;
    bool send(Link link, const Message &message) override;
    void close(Link link) override;

private:
    enum class Stage : std::uint8_t {
        Locating,
        Connecting,
        Pausing, // no one listens yet
        Open,
        Unknown, // has connected, and not yet said what for
    };
    struct Way {
        Stage stage = Stage::Connecting;
        bool here_first = false;
        bool local = false; // the peer is sought at this host
        Port port = {};
        ntbclient_conn *conn = nullptr;
        int error = 0;              // of a connection that could not be begun
        std::uint64_t until = 0;    // of a pause or a question
        std::uint64_t deadline = 0; // of refusals
        Message request = {};
    };
    struct Claim {
        Port port;
        ntbclient_listener *listeners[2];
    };

    void run();
    void turn();
    void accept();
    void make_room();
    void begin(Way &way);
    void advance(Link link);
    void advance_locating(Link link, Way &way);
    void advance_connecting(Link link, Way &way);
    void receive(Link link);
    static bool has_peer(const Way &way);
    bool is_retried(Way &way);
    void lose(Link link, int error);
    void wake();
    void sleep();
    Link number();

    pthread_mutex_t &mutex_;
    const std::uint64_t patience_;
    Audience *audience_ = nullptr;
    ntbclient *client_ = nullptr;
    bool is_lost_ = false; // the daemon
    int bell_ = -1;
    pthread_t thread_ = {};
    bool runs_ = false;
    std::atomic<bool> stop_{false};
    Link last_ = 0;
    std::map<Link, Way> ways_;
    std::vector<Claim> claims_;
    std::vector<pollfd> fds_;
};

} // namespace ntb::verbs::cm

#endif

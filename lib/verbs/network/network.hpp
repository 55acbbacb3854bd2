// SPDX-License-Identifier: BSD-3-Clause
// How an engine finds its peers by the node daemon, and who drives it while its program sleeps:
// doc/verbs.md, sections 8 and 10.
#ifndef NTB_VERBS_NETWORK_NETWORK_HPP
#define NTB_VERBS_NETWORK_NETWORK_HPP

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include <ntbclient.h>
#include <poll.h>
#include <pthread.h>

#include "engine/engine.hpp"
#include "network/segments.hpp"
#include "port/client.hpp"
#include "port/connection.hpp"
#include "port/loopback.hpp"
#include "spin.hpp"

namespace ntb::verbs
{

/// What both ends of a new connection say first, one cache line each: who asks, then who answers.
struct Introduction {
    std::uint64_t magic;
    std::uint32_t version;
    Address from, to;
    std::uint8_t reserved[44];
};
static_assert(sizeof(Introduction) == 64);

/// Listens for the peers of one engine, connects to those that are sought, and drives the engine,
/// by a thread of its own.
class Network final : public Service
{
public:
    /// @param clock  in nanoseconds; NULL: the machine's
    explicit Network(ntbv_clock clock = nullptr, void *context = nullptr);
    ~Network() override;

    /// Attaches to a daemon and draws an address that is free at both hosts.
    /// @return 0 or a negative errno of ntbclient_attach() and ntbclient_listen()
    int open(const char *socket);
    Address address() const { return own_; }
    /// Begins to serve. @return 0 or a negative errno
    int start(Engine &engine);
    /// Ends all connections, and the thread.
    void stop();

    /// Those of the daemon, by which memory is granted to peers.
    Segments &segments() { return segments_; }

    void seek(Address peer) override;
    void wake() override;

private:
    enum class Stage : std::uint8_t {
        Connecting,
        Asking,  // has said who it is
        Asked,   // accepted: is to learn who asks
        Waiting, // was refused: the peer's own connection is on its way
        Met,     // the peer's own connection is there: nothing is left to do
    };
    struct Pending {
        Stage stage;
        bool local = false; // the peer is sought at this host
        Address peer = 0;
        ntbclient_conn *conn = nullptr;
        std::uint64_t until = 0; // while it is waiting
        int refusals = 0;
    };

    int draw();
    bool is_taken_at_peer(const char *name);
    void run();
    void tell_parting();
    void take_wishes();
    void accept();
    void ask(Address peer);
    void make_room();
    void connect(Pending &pending);
    /// @retval false it is over
    bool advance(Pending &pending);
    bool advance_connecting(Pending &pending);
    bool advance_asking(Pending &pending);
    bool advance_asked(Pending &pending);
    bool advance_waiting(Pending &pending);
    void give_up(Pending &pending);
    bool introduce(Pending &pending);
    bool adopt(Pending &pending);
    void join_itself();
    bool take_order(Connection *&port, Connection::Order &order);
    /// @return whether there was one
    bool carry_out_orders();
    void sweep();
    void wait();
    bool is_called() const;
    void sleep();

    std::uint64_t now() const { return clock_ ? clock_(context_) : monotonic(); }

    const ntbv_clock clock_;
    void *const context_;
    Engine *engine_ = nullptr;
    ntbclient *client_ = nullptr;
    ntbclient_listener *listeners_[2] = {nullptr, nullptr}; // peer host, this host
    Address own_ = 0;
    bool lost_ = false; // the daemon
    bool was_joined_ = false, has_met_ = false, has_met_far_ = false;
    int bell_ = -1;
    pthread_t thread_ = {};
    bool runs_ = false;
    std::atomic<bool> stop_{false};
    std::list<Pending> pending_;
    std::vector<std::unique_ptr<Connection>> ports_;
    std::unique_ptr<Loopback> itself_;
    ClientSegments segments_{*this};
    std::vector<pollfd> fds_;
    Spinning spinning_;
    ntb::SpinTime spin_time_;

    pthread_mutex_t wishes_mutex_ = PTHREAD_MUTEX_INITIALIZER;
    Address wishes_[NTBV_MAX_LINKS];
    std::uint32_t n_wishes_ = 0;
};

} // namespace ntb::verbs

#endif

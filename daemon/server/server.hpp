// SPDX-License-Identifier: BSD-3-Clause
// The sockets of the daemon: clients, the peer's daemon where it is on this machine, signals. One
// thread, which sleeps; what clients handed in others close.
#ifndef NTBD_SERVER_SERVER_HPP
#define NTBD_SERVER_SERVER_HPP

#include "broker/broker.hpp"
#include "server/closer.hpp"
#include "server/mailbox.hpp"
#include "server/observer.hpp"

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace ntbd
{

class Server : private Outbox
{
public:
    /// What is shown of the daemon by telemetry.
    struct Snapshot {
        Broker::Figures figures;
        std::map<uid_t, Quota> used;
        bool peer;
        bool carries; ///< connections with the peer host go through the daemons
    };

    /// @param listener a socket that listens, until the server's end @param config changed by
    /// reload()
    /// @param mailbox what the device says @param reload called on SIGHUP
    Server(int listener, const Config &config, Mailbox &mailbox, std::function<void()> reload);
    ~Server() override;

    /// Before run(). @param observer  lives until run() has ended
    void show_to(Observer &observer) { observer_ = &observer; }
    /// Until SIGTERM or SIGINT, which are blocked in all threads, as is SIGHUP.
    /// @return false: the system refused what the loop needs, errno set
    bool run();
    /// Any thread.
    Snapshot snapshot() const;

private:
    struct Session;
    enum class Stage { greeting, client, introducing, waiting_peer, peer };

    void to_client(ClientId client, const ntbc::Message &m, const int *fds, int count) override;
    void to_peer(const ntbc::Message &m, const int *fds, int count) override;
    void to_carrier(RelayOrder &&order) override;
    CloseCall closer_of(uid_t uid) override;

    void show(Observer::Way way, ClientId client, const ntbc::Message &m)
    {
        if (observer_ != nullptr)
            observer_->message(way, client, m);
    }
    bool watch(int fd, uint64_t id, uint32_t events);
    void handle(uint64_t id, uint32_t events);
    void accept_all();
    void add(int fd, const User &user, Stage stage);
    void read_session(uint64_t id);
    bool is_to_wait(const Session &session) const;
    void hold(Session &session);
    void watch_again(Session &session);
    void take_closed();
    void let_go(const Session &session);
    void give_away(const Session &session, ntbc::Parcel *parcel);
    bool take(Session &session, ntbc::Parcel *parcel);
    bool take_claim(Session &session, ntbc::Parcel *parcel);
    bool greet(Session &session, const ntbc::Message &hello);
    void send(Session &session, const ntbc::Message &m, const int *fds, int count);
    void flush(Session &session);
    void doom(Session &session);
    void end_doomed();
    void take_signal();
    void check_time();
    int timeout_ms() const;
    void publish_snapshot();

    // The peer's daemon.
    void take_news();
    void agree_with_peer();
    void take_told(const ntbc::Message &m);
    void meet_peer();
    void connect_to_peer();
    bool take_introduction(Session &session, const ntbc::Message &m);
    bool take_introduced(Session &session, const ntbc::Message &m);
    void answer_introduction(Session &session);
    void become_peer(Session &session);
    void lose_peer();
    void set_peer_host(uint16_t number);

    const Config &config_;
    std::shared_ptr<Closer> closer_; ///< bells have it, too
    std::function<void()> reload_;
    Broker broker_;
    Observer *observer_ = nullptr;
    Mailbox &mailbox_;
    int listener_;
    uint64_t namespace_; ///< of the network
    uint16_t host_;      ///< number of this host
    int poll_ = -1;
    int signals_ = -1;
    bool stops_ = false;
    int64_t now_ms_ = 0;
    uint64_t last_id_;
    std::map<uint64_t, std::unique_ptr<Session>> sessions_;
    std::vector<uint64_t> doomed_;
    std::vector<uint64_t> held_;

    std::optional<Introduction> own_;     ///< sent to the peer
    std::optional<Peer> known_;           ///< the peer, as it introduced itself
    std::optional<Carriage> carriage_;    ///< agreed on with it
    uint16_t peer_host_ = 0;              ///< its number while it is joined
    bool carries_ = false;                ///< joined over the bridge, not by a socket
    uint64_t peer_session_ = 0;           ///< in use
    uint64_t waiting_session_ = 0;        ///< came before the peer's introduction
    int64_t retry_ms_ = INT64_MAX;        ///< when to connect to it again
    int64_t listen_again_ms_ = INT64_MAX; ///< there were no descriptors left

    mutable std::mutex snapshot_lock_;
    Snapshot snapshot_ = {};
};

} // namespace ntbd

#endif

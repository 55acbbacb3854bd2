// SPDX-License-Identifier: BSD-3-Clause
// Who listens, who connects, and which two belong together. It knows clients by numbers and sends
// through a border; sockets are the server's. One thread.
#ifndef NTBD_BROKER_BROKER_HPP
#define NTBD_BROKER_BROKER_HPP

#include "broker/account.hpp"
#include "broker/claims.hpp"
#include "broker/memory.hpp"
#include "broker/outbox.hpp"
#include "broker/relay_order.hpp"
#include "broker/segments.hpp"
#include "wire/message.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include <sys/types.h>

namespace ntbd
{

class Broker
{
public:
    /// @param own the daemon's user, who sees and revokes what all have
    Broker(const Config &config, Outbox &outbox, uid_t own);
    ~Broker();

    // ---- clients

    /// @return false: the quota does not admit it
    bool attach(ClientId client, const User &user);
    /// It has gone, in whatever way: what it has ends.
    void detach(ClientId client);
    /// @return false: a client does not send this; it is to be dropped
    bool take(ClientId client, const ntbc::Message &message);
    /// A claim, and what the kernel says of the socket that came with it.
    bool take_claim(ClientId client, const ntbc::Message &message, const Shown &shown);

    // ---- the daemon of the peer host

    /// Connections through it can be made from now on.
    void peer_up(Carriage carriage = Carriage::direct);
    /// It is lost: its connections end.
    void peer_down();
    /// @return false: a daemon does not send this; it is to be dropped
    bool take_from_peer(ntbc::Parcel *parcel);
    /// A connection that was carried has ended. @param status 0 orderly, or a negative errno
    void relay_ended(uint64_t id, int status);
    /// The other end of a claim that is carried has seen a FIN while that ring was granted.
    void relay_fin(uint64_t id, uint32_t generation) { claims_.relay_fin(id, generation); }

    // ---- time

    /// @return when the next connect runs out of time, INT64_MAX: none does
    int64_t next_deadline() const;
    void expire(int64_t now_ms);
    void set_now(int64_t now_ms)
    {
        now_ms_ = now_ms;
        claims_.set_now(now_ms);
    }

    struct Figures {
        size_t clients, listeners, connecting, open;
        size_t carried; ///< through the daemon: open, and closed with bytes on their way
        uint64_t matched, failed, died, revoked;
        size_t claimed;  ///< TCP connections with a mirror; connecting and open do not count them
        size_t segments; ///< made, and opened
    };
    Figures figures() const;
    const Accounts &accounts() const { return accounts_; }

private:
    struct Client;
    struct Listener;
    struct End;
    struct Offer;
    struct Fds;
    /// A name and whether it is looked for at this host.
    struct Key {
        bool local;
        std::string name;
        auto operator<=>(const Key &) const = default;
    };
    /// Who connects: an end here, or an offer of the peer's daemon.
    struct Caller {
        End *end;
        Offer *offer;
    };

    void listen(Client &client, const ntbc::Message &request);
    void unlisten(Client &client, const ntbc::Message &request);
    void connect(Client &client, const ntbc::Message &request);
    void taken(Client &client, uint64_t id);
    void close(Client &client, uint64_t id);
    void list(const Client &client, const ntbc::Message &request);
    void revoke(const Client &client, const ntbc::Message &request);
    bool take_of_segments(const Client &client, const ntbc::Message &m);
    int grants_status(const End *end) const;
    bool admits(const Client &client, uid_t uid) const;
    bool may_see(const Client &client, const End &end) const;
    ntbc::Message entry_of(const End &end) const;

    bool take_of_segments(ntbc::Parcel *parcel);
    bool take_of_claims(ntbc::Parcel *parcel);
    bool take_offer(const ntbc::Message &offer);
    void take_withdrawal(uint64_t id);
    void take_match(ntbc::Parcel *parcel);
    int take_memory(const End &end, ntbc::Parcel *parcel, std::shared_ptr<Memory> *out);
    int make_memory(const End &end, const ntbc::Message &m, Fds *fds, std::shared_ptr<Memory> *out);
    void take_refusal(const ntbc::Message &m);
    void take_gone(const ntbc::Message &m);

    void answer(const Client &client, const ntbc::Message &request, int status, uint64_t id = 0);
    void seek(End &end);
    void send_offer(const End &end);
    void serve_waiting(Listener &listener);
    int join(Listener &listener, const Caller &caller);
    void carry(const End &end, RelayOrder::Kind kind, Fds *fds, const Token &token,
               uint32_t peer_ring_bytes);
    void order(const End &end, RelayOrder::Kind kind);
    End &accept_end(Listener &listener, std::shared_ptr<Memory> memory);
    void announce(const End &end, ntbc::Type type, const User &other, const int *fds);
    void refuse(const Offer &offer, int status);
    void remove_listener(uint64_t id);
    void fail(End &end, int status);
    void end_memory(End &end, uint32_t mark);
    void end_open(uint64_t id, int status);
    void remove_end(uint64_t id);
    static Key key_of(const ntbc::Message &m);
    End *end_of(const Client &client, uint64_t id);
    Listener *listener_for(const Key &key);

    const Config &config_;
    Outbox &outbox_;
    Accounts accounts_;
    Claims claims_;
    Segments segments_;
    uid_t own_;
    bool peer_ = false;
    Carriage carriage_ = Carriage::direct; ///< of connections with the peer host
    int64_t now_ms_ = 0;
    uint64_t last_id_ = 0; ///< of listeners, connections, claims, segments and grants
    std::map<ClientId, std::unique_ptr<Client>> clients_;
    std::map<uint64_t, std::unique_ptr<Listener>> listeners_;
    std::map<Key, Listener *> by_key_;
    std::map<uint64_t, std::unique_ptr<End>> ends_;
    std::map<uint64_t, std::unique_ptr<Offer>> offers_; // by the id at the peer's daemon
    Figures figures_ = {};
};

} // namespace ntbd

#endif

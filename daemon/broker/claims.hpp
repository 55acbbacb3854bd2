// SPDX-License-Identifier: BSD-3-Clause
// TCP connections that clients have shown, and which two belong together
// (doc/socket-protocol.md, sections 2 and 3). One that has its mirror has memory with a record at
// each end.
#ifndef NTBD_BROKER_CLAIMS_HPP
#define NTBD_BROKER_CLAIMS_HPP

#include "broker/account.hpp"
#include "broker/memory.hpp"
#include "broker/outbox.hpp"
#include "wire/message.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

namespace ntbd
{

/// What the kernel says of a socket that a client has shown.
struct Shown {
    int status = 0;      ///< or why it cannot be claimed, a negative errno
    uint64_t cookie = 0; ///< of the open socket
    std::string local;   ///< address of 16 bytes, IPv4 as mapped, and port of two
    std::string remote;
};

class Claims
{
public:
    /// Who has shown a socket.
    struct Owner {
        ClientId client;
        User user;
    };

    /// @param last_id numbers of connections, shared with the broker's others
    Claims(const Config &config, Outbox &outbox, Accounts &accounts, uint64_t &last_id);
    ~Claims();

    void claim(const Owner &owner, const ntbc::Message &request, const Shown &shown);
    void unclaim(ClientId client, uint64_t token);
    /// The last known holder has closed it.
    void close(ClientId client, uint64_t id);
    /// All its processes are gone.
    /// @return whether it had any
    bool detach(ClientId client);
    void fin_seen(ClientId client, uint64_t id, uint32_t generation);

    void peer_up(Carriage carriage);
    void peer_down();
    // Of one that is carried through the daemons: it has ended, or the other end has seen a FIN.
    void relay_ended(uint64_t id, int status);
    void relay_fin(uint64_t id, uint32_t generation);
    // Of the peer's daemon.
    bool take_offer(const ntbc::Message &offer);
    void take_withdrawal(uint64_t id);
    void take_match(ntbc::Parcel *parcel);
    void take_refusal(const ntbc::Message &m);
    void take_gone(const ntbc::Message &m);
    void take_fin(const ntbc::Message &m);

    void set_now(int64_t now_ms) { now_ms_ = now_ms; }
    int64_t next_deadline() const;
    void expire(int64_t now_ms);

    bool has(uint64_t id) const { return claims_.count(id) != 0; }
    /// Shows one, if its user is admitted. @return false: none with this number
    bool entry_of(uint64_t id, const std::function<bool(uid_t)> &admits, ntbc::Message *out) const;
    /// The next number behind this one, 0: none
    uint64_t next_id(uint64_t after) const;
    bool revoke(uint64_t id, const std::function<bool(uid_t)> &admits);

    struct Figures {
        size_t waiting, open;
        size_t carried; ///< through the daemons, and not over
        uint64_t matched, failed;
    };
    Figures figures() const;

private:
    struct Claim;
    struct Offer;
    /// A connection, seen from the end that connected, and an end of it.
    using Key = std::pair<std::string, uint32_t>;

    Claim *of_client(ClientId client, uint64_t id);
    Claim *waiting(const Key &key);
    int join(Claim &accepted, Claim *connected, const Offer *offer);
    bool open(Claim &claim, std::shared_ptr<Memory> memory, int memory_fd, Descriptor bell,
              const User &other);
    void send_offer(const Claim &claim);
    void withdraw(const Claim &claim);
    void fail(Claim &claim, int status);
    void forget(uint64_t id);
    void drop(uint64_t id);
    void end(Claim &claim, int status);
    void say_end(Claim &sender, uint32_t generation);
    void ring_other(const Claim &claim);
    static bool is_held(const Claim &claim);
    void look_for_idle();
    void look_for_asks();
    void look_for_dead();
    void let_go(Claim &claim);
    bool take_memory(Claim &claim, ntbc::Parcel *parcel);
    bool make_memory(Claim &claim, const ntbc::Message &m);
    bool charge(Claim &claim, uint32_t ring_bytes);
    void carry(const Claim &claim, RelayOrder::Kind kind, Descriptor bell, const Token &token);
    void order(const Claim &claim, RelayOrder::Kind kind, uint32_t generation = 0);
    /// @param id of the claim, as the peer's daemon has it, or of an offer
    void report_to_peer(ntbc::Type type, uint64_t id, int32_t status = 0, uint64_t other = 0);

    const Config &config_;
    Outbox &outbox_;
    Accounts &accounts_;
    uint64_t &last_id_;
    bool peer_ = false;
    Carriage carriage_ = Carriage::direct;
    int64_t now_ms_ = 0;
    int64_t look_ms_ = 0; ///< when those that are idle are looked for again
    int64_t asks_ms_ = 0; ///< when asks that were not answered are
    std::map<uint64_t, std::unique_ptr<Claim>> claims_;
    std::map<Key, uint64_t> waiting_;
    std::set<uint64_t> cookies_;                        // of those that are matched
    std::set<uint64_t> again_;                          // whose end is to be said again
    std::map<uint64_t, std::unique_ptr<Offer>> offers_; // by the id at the peer's daemon
    size_t carried_ = 0;                                // and not over
    size_t open_ = 0;                                   // with memory and a client
    uint64_t matched_ = 0;
    uint64_t failed_ = 0;
};

} // namespace ntbd

#endif

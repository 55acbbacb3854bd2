// SPDX-License-Identifier: BSD-3-Clause
// Segments: memory of one client that another one maps, too, at the other end of a connection of
// this host, or of the peer's where the daemons of both are on one machine. One thread.
#ifndef NTBD_BROKER_SEGMENTS_HPP
#define NTBD_BROKER_SEGMENTS_HPP

#include "broker/account.hpp"
#include "broker/outbox.hpp"
#include "wire/message.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <utility>

namespace ntbd
{

class Segments
{
public:
    /// Grants of one end of a connection at a time.
    static constexpr uint32_t grants_max = 64;

    /// @param last_id the last number that was given to anything
    Segments(Outbox &outbox, Accounts &accounts, uint64_t &last_id)
        : outbox_(outbox), accounts_(accounts), last_id_(last_id)
    {
    }

    // Each is answered but end().
    void make(ClientId client, const User &user, const ntbc::Message &m);
    /// Of what a client has made or opened; another number is ignored.
    void end(ClientId client, uint64_t id);
    /// @param status why the connection has no grants; 0: it can have
    void grant(ClientId client, const ntbc::Message &m, int status);
    void ungrant(ClientId client, const ntbc::Message &m, int status);
    /// @param peer the other end of the connection
    void open(ClientId client, const User &user, const ntbc::Message &m, uint64_t peer, int status);

    // Where the other end is at the peer's daemon, that one says what was granted there.

    /// Asks for it, and answers later. One at a time of each client: the library waits for it.
    /// @param remote the other end, as that daemon calls it
    void ask(ClientId client, const User &user, const ntbc::Message &m, uint64_t remote,
             int64_t now_ms);
    /// The peer's daemon asks. @param status why that end has no grants; 0: it can have
    void find(const ntbc::Message &m, int status);
    /// It answers. @return false: not as a daemon does
    bool found(ntbc::Parcel *parcel);
    /// It is gone.
    void peer_down();
    int64_t next_deadline() const;
    void expire(int64_t now_ms);

    /// Nothing more that was granted by that end is opened.
    void drop_grants(uint64_t end);
    /// It is closed: what was opened at it is charged no longer.
    void end_closed(ClientId client, uint64_t end);
    void detach(ClientId client);

    /// Bytes that were opened at that end.
    uint64_t bytes_at(ClientId client, uint64_t end) const;
    size_t count() const { return handles_.size(); }

private:
    class File;
    /// What one client has of a segment.
    struct Handle {
        std::shared_ptr<File> file; ///< NULL: it is the peer's daemon's
        uint64_t bytes;
        uid_t uid;    ///< who is charged
        uint64_t end; ///< where it was opened; 0: it was made by this client
    };
    struct Grant {
        std::shared_ptr<File> file;
        bool writable;
    };
    /// Of a client that waits for what the peer's daemon says.
    struct Question {
        uint32_t number; ///< by which that daemon answers
        User user;
        ntbc::Message request;
        int64_t deadline_ms;
    };
    using Questions = std::map<ClientId, Question>;
    using Handles = std::map<std::pair<ClientId, uint64_t>, Handle>;
    using Grants = std::map<std::pair<uint64_t, uint64_t>, Grant>;

    Handles::iterator remove(Handles::iterator at);
    template <typename Which>
    void remove_of(ClientId client, Which which);
    bool has_room(uint64_t end);
    void give_up(Questions::iterator at, int status);
    void hand_out(ClientId client, const User &user, const ntbc::Message &m,
                  const std::shared_ptr<File> &file, uint64_t bytes, int fd);
    void answer(ClientId client, const ntbc::Message &request, int status, uint64_t id = 0,
                uint64_t bytes = 0, int fd = -1);

    Outbox &outbox_;
    Accounts &accounts_;
    uint64_t &last_id_;
    Handles handles_; ///< by client and id
    Grants grants_;   ///< by the end that gave it and number
    Questions questions_;
    uint32_t last_question_ = 0;
};

} // namespace ntbd

#endif

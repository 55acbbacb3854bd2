// SPDX-License-Identifier: BSD-3-Clause
// What a broker keeps.
#ifndef NTBD_BROKER_PARTS_HPP
#define NTBD_BROKER_PARTS_HPP

#include "broker/bells.hpp"
#include "broker/broker.hpp"

#include <set>
#include <unistd.h>

namespace ntbd
{

struct Broker::Client {
    ClientId id;
    User user;
    std::set<uint64_t> listeners;
    std::set<uint64_t> ends;
};

struct Broker::Listener {
    uint64_t id;
    Client *client;
    Key key;
    bool once;
    uint32_t backlog;
    uint32_t waiting = 0; ///< connections that were not taken
};

/// One end of a connection, of a client of this host. Its peer is another end here, or one at the
/// peer's daemon.
struct Broker::End {
    uint64_t id;
    Client *client; ///< NULL: closed here, and its memory is not given back before the peer's end
    Key key;
    bool waits; ///< for a listener
    int64_t deadline_ms = 0;
    std::shared_ptr<Memory> memory; ///< NULL: connecting
    uint64_t charged = 0;           ///< bytes
    uid_t owner = 0;                ///< who is charged
    bool carried = false;           ///< through the daemon
    bool relay_ended = false;       ///< and that has ended
    uint32_t index = 0;             ///< 0 connected, 1 accepted
    uint64_t pair = 0;              ///< the other end here; 0: there is none any more
    uint64_t remote = 0;            ///< or its id at the peer's daemon; 0: it is not there
    bool remote_gone = false;       ///< closed there, or lost with the peer's daemon
    uint64_t listener = 0;          ///< where it waits to be taken
    bool revoked = false;
};

/// A client of the peer host that connects to this one.
struct Broker::Offer {
    uint64_t id; ///< at the peer's daemon
    Key key;
    User user;
};

/// What is made for a connection; closed at the end of a scope.
struct Broker::Fds {
    int memory = -1;
    Descriptor bells[2];
    ~Fds()
    {
        if (memory >= 0)
            ::close(memory);
    }
};

} // namespace ntbd

#endif

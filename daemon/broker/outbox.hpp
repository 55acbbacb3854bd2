// SPDX-License-Identifier: BSD-3-Clause
// Clients and the peer's daemon, as the broker knows them.
#ifndef NTBD_BROKER_OUTBOX_HPP
#define NTBD_BROKER_OUTBOX_HPP

#include "broker/relay_order.hpp"
#include "wire/message.hpp"

#include <cstdint>

#include <sys/types.h>

namespace ntbd
{

using ClientId = uint64_t;

struct User {
    uid_t uid = 0;
    gid_t gid = 0;
    pid_t pid = 0;
};

/// Where messages go. Sending never fails here: a receiver that does not take a message is dropped
/// by the server, which then reports its end.
class Outbox
{
public:
    virtual ~Outbox() = default;
    virtual void to_client(ClientId client, const ntbc::Message &message, const int *fds,
                           int count) = 0;
    virtual void to_peer(const ntbc::Message &message, const int *fds, int count) = 0;
    virtual void to_carrier(RelayOrder &&order) = 0;
    /// For a socket into which a client of that user may have put descriptors: their close may
    /// wait. It may be called when this is gone.
    virtual CloseCall closer_of(uid_t) { return {}; }
};

} // namespace ntbd

#endif

// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTBD_SERVER_OBSERVER_HPP
#define NTBD_SERVER_OBSERVER_HPP

#include "broker/outbox.hpp"

namespace ntbd
{

/// Sees who comes and goes, and each control message, for traces. On the server's thread.
class Observer
{
public:
    enum class Way : uint8_t { from_client, to_client, from_peer, to_peer };

    virtual ~Observer() = default;
    /// A client was admitted.
    virtual void attached(ClientId client, const User &user) = 0;
    virtual void detached(ClientId client) = 0;
    /// @param client  0 where it is the peer's daemon @param message  as its sender wrote it: not
    /// checked yet where it was received
    virtual void message(Way way, ClientId client, const ntbc::Message &message) = 0;
};

} // namespace ntbd

#endif

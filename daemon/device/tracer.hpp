// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTBD_DEVICE_TRACER_HPP
#define NTBD_DEVICE_TRACER_HPP

#include "server/observer.hpp"

namespace ntbd
{

/// Gives what the server does to DPDK's trace library.
class Tracer final : public Observer
{
public:
    void attached(ClientId client, const User &user) override;
    void detached(ClientId client) override;
    void message(Way way, ClientId client, const ntbc::Message &message) override;
};

} // namespace ntbd

#endif

// SPDX-License-Identifier: BSD-3-Clause
#include "device/tracer.hpp"

#include "device/trace_points.h"

namespace ntbd
{

void Tracer::attached(ClientId client, const User &user)
{
    ntbd_trace_client_attach(client, user.uid, static_cast<uint32_t>(user.pid));
}

void Tracer::detached(ClientId client)
{
    ntbd_trace_client_detach(client);
}

void Tracer::message(Way way, ClientId client, const ntbc::Message &m)
{
    const auto type = static_cast<uint16_t>(m.type);
    switch (way) {
    case Way::from_client:
        return ntbd_trace_client_received(client, type, m.id, m.other);
    case Way::to_client:
        return ntbd_trace_client_sent(client, type, m.status, m.id, m.other);
    case Way::from_peer:
        return ntbd_trace_peer_received(type, m.status, m.id, m.other);
    case Way::to_peer:
        return ntbd_trace_peer_sent(type, m.status, m.id, m.other);
    }
}

} // namespace ntbd

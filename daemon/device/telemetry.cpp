// SPDX-License-Identifier: BSD-3-Clause
#include "device/telemetry.hpp"

#include <dpdk_compat.hpp>

namespace ntbd
{

namespace
{
const Server *shown;
const Device *shown_device;

void add(rte_tel_data *data, const char *name, uint64_t value)
{
    rte_tel_data_add_dict_uint(data, name, value);
}

int stats(const char *, const char *, rte_tel_data *data)
{
    const Server::Snapshot now = shown->snapshot();
    rte_tel_data_start_dict(data);
    add(data, "peer", now.peer);
    add(data, "clients", now.figures.clients);
    add(data, "listeners", now.figures.listeners);
    add(data, "connecting", now.figures.connecting);
    add(data, "open", now.figures.open);
    add(data, "claimed", now.figures.claimed);
    add(data, "segments", now.figures.segments);
    add(data, "matched", now.figures.matched);
    add(data, "failed", now.figures.failed);
    add(data, "died", now.figures.died);
    add(data, "revoked", now.figures.revoked);
    return 0;
}

int carrier(const char *, const char *, rte_tel_data *data)
{
    const Server::Snapshot server = shown->snapshot();
    const Carrier::Figures now = shown_device->figures();
    rte_tel_data_start_dict(data);
    rte_tel_data_add_dict_string(data, "carrier",
                                 !server.peer     ? "none"
                                 : server.carries ? "daemon"
                                                  : "direct");
    add(data, "connections", now.relays);
    add(data, "polled", now.active);
    add(data, "tx_messages", now.messages_out);
    add(data, "tx_bytes", now.bytes_out);
    add(data, "rx_messages", now.messages_in);
    add(data, "rx_bytes", now.bytes_in);
    add(data, "bells_rung", now.rings);
    add(data, "sleeps", now.sleeps);
    add(data, "refused", now.refused);
    return 0;
}

int users(const char *, const char *, rte_tel_data *data)
{
    rte_tel_data_start_dict(data);
    for (const auto &[uid, used] : shown->snapshot().used) {
        rte_tel_data *user = rte_tel_data_alloc();
        if (user == nullptr)
            return -1;
        rte_tel_data_start_dict(user);
        add(user, "clients", used.clients);
        add(user, "listeners", used.listeners);
        add(user, "connections", used.connections);
        add(user, "bytes", used.bytes);
        add(user, "segments", used.segments);
        rte_tel_data_add_dict_container(data, std::to_string(uid).c_str(), user, 0);
    }
    return 0;
}
} // namespace

void offer_telemetry(const Server &server, const Device &device)
{
    shown = &server;
    shown_device = &device;
    rte_telemetry_register_cmd("/ntbd/stats", stats, "Figures of the node daemon. No parameters");
    rte_telemetry_register_cmd("/ntbd/carrier", carrier,
                               "Connections that the node daemon carries. No parameters");
    rte_telemetry_register_cmd("/ntbd/users", users,
                               "What each user has at the node daemon. No parameters");
}

} // namespace ntbd

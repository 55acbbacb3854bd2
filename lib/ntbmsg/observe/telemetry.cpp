// SPDX-License-Identifier: BSD-3-Clause
// Telemetry commands /ntbmsg/*. Called by the telemetry thread while the application runs; an
// endpoint cannot be closed meanwhile.
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include <rte_rawdev.h>
#include <rte_telemetry.h>

#include <dpdk_compat.hpp>

#include "endpoint/registry.hpp"
#include "observe/view.hpp"

namespace ntbmsg
{

namespace
{

/// Most entries in one answer, which must stay below telemetry's limit of 16 KiB.
constexpr unsigned channels_per_page = 250;
constexpr unsigned regions_per_page = 64;

/// Parses numbers separated by commas. @return how many; -EINVAL: it is something else
int parse_numbers(const char *params, uint32_t *values, int most)
{
    int count = 0;
    while (params != nullptr && *params != '\0') {
        if (count == most || *params < '0' || *params > '9')
            return -EINVAL;
        char *end = nullptr;
        errno = 0;
        const unsigned long value = std::strtoul(params, &end, 10);
        if (errno != 0 || value > UINT32_MAX || (*end != '\0' && *end != ','))
            return -EINVAL;
        values[count++] = static_cast<uint32_t>(value);
        params = *end == ',' ? end + 1 : end;
    }
    return count;
}

void add_endpoint(const Endpoint &e, rte_tel_data *data)
{
    char why[96];
    ntbmsg_endpoint_link_reason_get(&e, why, sizeof(why));
    ntbmsg_endpoint_stats stats{};
    stats.size = sizeof(stats);
    ntbmsg_endpoint_stats_get(&e, &stats);
    rte_tel_data_start_dict(data);
    rte_tel_data_add_dict_string(data, "device", device_name(e));
    rte_tel_data_add_dict_string(data, "link", name_of_link(ntbmsg_endpoint_link_state_get(&e)));
    rte_tel_data_add_dict_string(data, "why", why);
    rte_tel_data_add_dict_uint(data, "max_message", ntbmsg_endpoint_max_message(&e));
    rte_tel_data_add_dict_uint(data, "queues", e.queues);
    rte_tel_data_add_dict_uint(data, "workers", e.workers_made);
    uint64_t used = 0, bad_peer = 0;
    for (uint32_t i = 0; i < e.workers_made; ++i) {
        used += e.workers[i].slots.used();
        bad_peer += e.workers[i].bad_peer.get();
    }
    rte_tel_data_add_dict_uint(data, "channels", used);
    rte_tel_data_add_dict_uint(data, "tx_messages", stats.tx_messages);
    rte_tel_data_add_dict_uint(data, "tx_bytes", stats.tx_bytes);
    rte_tel_data_add_dict_uint(data, "rx_messages", stats.rx_messages);
    rte_tel_data_add_dict_uint(data, "rx_bytes", stats.rx_bytes);
    rte_tel_data_add_dict_uint(data, "tx_full", stats.tx_full);
    rte_tel_data_add_dict_uint(data, "tx_errors", stats.tx_errors);
    rte_tel_data_add_dict_uint(data, "tx_unconfirmed", stats.tx_unconfirmed);
    rte_tel_data_add_dict_uint(data, "rx_nombuf", stats.rx_nombuf);
    rte_tel_data_add_dict_uint(data, "rx_dropped", stats.rx_dropped);
    rte_tel_data_add_dict_uint(data, "bad_peer", bad_peer);
    rte_tel_data_add_dict_uint(data, "links", stats.links);
}

/// Without a parameter the ids of the devices; with one, that endpoint.
int endpoints(const char *, const char *params, rte_tel_data *data)
{
    uint32_t id;
    const int given = parse_numbers(params, &id, 1);
    if (given < 0)
        return given;
    const RegistryLock look;
    if (given == 1) {
        const Endpoint *e = look.at(id);
        if (e == nullptr)
            return -ENODEV;
        add_endpoint(*e, data);
        return 0;
    }
    rte_tel_data_start_array(data, RTE_TEL_INT_VAL);
    for (uint16_t dev = 0; dev < RTE_RAWDEV_MAX_DEVS; ++dev)
        if (look.at(dev) != nullptr)
            rte_tel_data_add_array_int(data, dev);
    return 0;
}

/// "ID": one entry per queue pair.
int queues(const char *, const char *params, rte_tel_data *data)
{
    uint32_t id;
    if (parse_numbers(params, &id, 1) != 1)
        return -EINVAL;
    const RegistryLock look;
    const Endpoint *e = look.at(id);
    if (e == nullptr)
        return -ENODEV;
    rte_tel_data_start_dict(data);
    for (uint32_t q = 0; q < queue_pairs(*e); ++q) {
        const QueueView view = view_queue(*e, static_cast<uint16_t>(q));
        rte_tel_data *row = rte_tel_data_alloc();
        if (row == nullptr)
            return -ENOMEM;
        rte_tel_data_start_dict(row);
        rte_tel_data_add_dict_string(row, "use", view.worker ? "worker" : "bare");
        rte_tel_data_add_dict_uint(row, "tx_messages", view.tx_messages);
        rte_tel_data_add_dict_uint(row, "tx_bytes", view.tx_bytes);
        rte_tel_data_add_dict_uint(row, "tx_full", view.tx_full);
        rte_tel_data_add_dict_uint(row, "rx_messages", view.rx_messages);
        rte_tel_data_add_dict_uint(row, "rx_bytes", view.rx_bytes);
        rte_tel_data_add_dict_uint(row, "rx_nombuf", view.rx_nombuf);
        char name[24];
        std::snprintf(name, sizeof(name), "queue_%u", q);
        rte_tel_data_add_dict_container(data, name, row, 0);
    }
    return 0;
}

void add_worker(const Worker &w, rte_tel_data *data)
{
    rte_tel_data_start_dict(data);
    rte_tel_data_add_dict_int(data, "dedicated", w.dedicated);
    rte_tel_data_add_dict_uint(data, "channels", w.slots.used());
    rte_tel_data_add_dict_uint(data, "channels_max", w.slots.count());
    rte_tel_data_add_dict_uint(data, "messages_to_grant", peek(w.budget.left.messages));
    rte_tel_data_add_dict_uint(data, "rx_dropped", w.rx_dropped.get());
    rte_tel_data_add_dict_uint(data, "bad_peer", w.bad_peer.get());
}

/// "ID,WORKER"
int worker(const char *, const char *params, rte_tel_data *data)
{
    uint32_t values[2] = {};
    if (parse_numbers(params, values, 2) != 2)
        return -EINVAL;
    const RegistryLock look;
    const Endpoint *e = look.at(values[0]);
    if (e == nullptr || values[1] >= e->workers_made)
        return -ENODEV;
    add_worker(e->workers[values[1]], data);
    return 0;
}

void add_channel(const ChannelView &view, rte_tel_data *data)
{
    rte_tel_data_start_dict(data);
    rte_tel_data_add_dict_string(data, "state", view.state);
    rte_tel_data_add_dict_uint(data, "port", view.port);
    rte_tel_data_add_dict_int(data, "reason", view.reason);
    rte_tel_data_add_dict_uint(data, "generation", view.generation);
    rte_tel_data_add_dict_int(data, "handle", view.handle);
    rte_tel_data_add_dict_uint(data, "tx_messages", view.tx_messages);
    rte_tel_data_add_dict_uint(data, "tx_bytes", view.tx_bytes);
    rte_tel_data_add_dict_uint(data, "rx_messages", view.rx_messages);
    rte_tel_data_add_dict_uint(data, "rx_bytes", view.rx_bytes);
    rte_tel_data_add_dict_uint(data, "tx_full", view.tx_full);
    rte_tel_data_add_dict_uint(data, "credit_messages", view.send_left.messages);
    rte_tel_data_add_dict_uint(data, "credit_buffers", view.send_left.buffers);
    rte_tel_data_add_dict_uint(data, "credit_messages_granted", view.send_granted.messages);
    rte_tel_data_add_dict_uint(data, "granted_messages", view.receive_left.messages);
    rte_tel_data_add_dict_uint(data, "granted_messages_total", view.receive_granted.messages);
}

/// Numbers of the channels in use, from @p from on, as many as fit.
void list_channels(const Worker &w, uint32_t from, rte_tel_data *data)
{
    unsigned listed = 0;
    ChannelView view;
    rte_tel_data_start_array(data, RTE_TEL_INT_VAL);
    for (uint32_t slot = from; slot < w.slots.count() && listed < channels_per_page; ++slot) {
        if (!view_channel(w, slot, view))
            continue;
        rte_tel_data_add_array_int(data, static_cast<int>(slot));
        ++listed;
    }
}

enum class What { list, one };

int find_channels(What what, const char *params, rte_tel_data *data)
{
    uint32_t values[3] = {};
    const int given = parse_numbers(params, values, 3);
    if (given < 2 || (what == What::one && given != 3))
        return -EINVAL;
    const RegistryLock look;
    const Endpoint *e = look.at(values[0]);
    if (e == nullptr || values[1] >= e->workers_made)
        return -ENODEV;
    const Worker &w = e->workers[values[1]];
    ChannelView view;
    if (what == What::list)
        list_channels(w, values[2], data);
    else if (view_channel(w, values[2], view))
        add_channel(view, data);
    else
        return -ENOENT;
    return 0;
}

/// "ID,WORKER[,FROM]"
int channels(const char *, const char *params, rte_tel_data *data)
{
    return find_channels(What::list, params, data);
}

/// "ID,WORKER,CHANNEL"
int channel(const char *, const char *params, rte_tel_data *data)
{
    return find_channels(What::one, params, data);
}

/// Rows for regions, from the @p from -th on, as many as fit.
struct RegionRows {
    rte_tel_data *data;
    uint32_t from;
    uint32_t seen;
};

void add_region(const ntbmsg_region &region, void *arg)
{
    auto &rows = *static_cast<RegionRows *>(arg);
    const uint32_t number = rows.seen++;
    if (number < rows.from || number - rows.from >= regions_per_page)
        return;
    rte_tel_data *row = rte_tel_data_alloc();
    if (row == nullptr)
        return;
    rte_tel_data_start_dict(row);
    rte_tel_data_add_dict_uint(row, "bytes", region.bytes);
    rte_tel_data_add_dict_uint(row, "rights", region.rights);
    rte_tel_data_add_dict_int(row, "direct", region.direct);
    rte_tel_data_add_dict_uint(row, "writes", peek(region.writes));
    rte_tel_data_add_dict_uint(row, "reads", peek(region.reads));
    rte_tel_data_add_dict_uint(row, "atomics", peek(region.atomics));
    rte_tel_data_add_dict_uint(row, "refused", peek(region.refused));
    char name[24];
    std::snprintf(name, sizeof(name), "region_%u", number);
    rte_tel_data_add_dict_container(rows.data, name, row, 0);
}

/// "ID[,FROM]"
int regions(const char *, const char *params, rte_tel_data *data)
{
    uint32_t values[2] = {};
    if (parse_numbers(params, values, 2) < 1)
        return -EINVAL;
    const RegistryLock look;
    const Endpoint *e = look.at(values[0]);
    if (e == nullptr)
        return -ENODEV;
    rte_tel_data_start_dict(data);
    RegionRows rows = {.data = data, .from = values[1], .seen = 0};
    e->regions.visit(add_region, &rows);
    return 0;
}

} // namespace

} // namespace ntbmsg

RTE_INIT(ntbmsg_telemetry)
{
    using namespace ntbmsg;
    rte_telemetry_register_cmd(
        "/ntbmsg/endpoints", endpoints,
        "Ids of the open endpoints' devices, or one of them. Parameters: [id]");
    rte_telemetry_register_cmd("/ntbmsg/queues", queues,
                               "Queue pairs of an endpoint. Parameters: id");
    rte_telemetry_register_cmd(
        "/ntbmsg/worker", worker,
        "A worker: channels, credit left to grant, dropped messages. Parameters: id,worker");
    rte_telemetry_register_cmd(
        "/ntbmsg/channels", channels,
        "Numbers of a worker's channels, 250 at most. Parameters: id,worker[,first]");
    rte_telemetry_register_cmd("/ntbmsg/channel", channel,
                               "One channel. Parameters: id,worker,channel");
    rte_telemetry_register_cmd("/ntbmsg/regions", regions,
                               "Regions of an endpoint, 64 at most. Parameters: id[,first]");
}

// SPDX-License-Identifier: BSD-3-Clause
// Telemetry commands /plx_ntb/*: list, and info, link, copy, cache_hint, lead, stores, inline,
// memory, requesters and regs of a device. Called by the telemetry thread while the application
// runs; the application must not close the device meanwhile, as with DPDK's own /rawdev/*.
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include <rte_rawdev.h>
#include <rte_telemetry.h>

#include <dpdk_compat.hpp>

#include "api/devices.hpp"
#include "api/requesters.hpp"
#include "device/trials.hpp"
#include "hw/dump.hpp"

namespace plx::pmd
{

namespace
{

/// The device of a parameter "3" or "3,more". @param rest  what follows the comma, or NULL
Device *device_in(const char *params, const char **rest)
{
    if (params == nullptr || params[0] < '0' || params[0] > '9')
        return nullptr;
    char *end = nullptr;
    errno = 0;
    const unsigned long id = std::strtoul(params, &end, 10);
    if (errno != 0 || id > UINT16_MAX || (*end != '\0' && *end != ','))
        return nullptr;
    *rest = *end == ',' ? end + 1 : nullptr;
    Device *device = device_of(static_cast<uint16_t>(id));
    return device != nullptr && !device->closed() ? device : nullptr;
}

const char *state_name(rte_pmd_plx_ntb_state state)
{
    switch (state) {
    case RTE_PMD_PLX_NTB_STOPPED:
        return "stopped";
    case RTE_PMD_PLX_NTB_WAITING:
        return "waiting";
    case RTE_PMD_PLX_NTB_CONNECTED:
        return "connected";
    case RTE_PMD_PLX_NTB_SILENT:
        return "silent";
    case RTE_PMD_PLX_NTB_FENCING:
        return "fencing";
    case RTE_PMD_PLX_NTB_REFUSED:
        return "refused";
    case RTE_PMD_PLX_NTB_CLOSING:
        return "closing";
    }
    return "unknown";
}

int list(const char *, const char *, rte_tel_data *data)
{
    rte_tel_data_start_array(data, RTE_TEL_INT_VAL);
    for (uint16_t id = 0; id < RTE_RAWDEV_MAX_DEVS; ++id)
        if (const Device *device = device_of(id); device != nullptr && !device->closed())
            rte_tel_data_add_array_int(data, id);
    return 0;
}

int info(const char *, const char *params, rte_tel_data *data)
{
    const char *rest = nullptr;
    Device *device = device_in(params, &rest);
    if (device == nullptr)
        return -EINVAL;
    const Geometry &g = device->geometry();
    const hw::Identity &chip = device->chip().identity();
    char part[8];
    std::snprintf(part, sizeof(part), "%04x", chip.part);
    rte_tel_data_start_dict(data);
    rte_tel_data_add_dict_string(data, "name", device->name());
    rte_tel_data_add_dict_string(data, "platform", device->platform().ops->name);
    rte_tel_data_add_dict_string(data, "part", part);
    rte_tel_data_add_dict_int(data, "revision", chip.revision);
    rte_tel_data_add_dict_uint(data, "nt", chip.nt);
    rte_tel_data_add_dict_string(data, "side", chip.side == facts::Side::virt ? "virtual" : "link");
    rte_tel_data_add_dict_string(data, "topology", device->chip().shared() ? "rp" : "b2b");
    rte_tel_data_add_dict_uint(data, "alut_entries", chip.alut_entries);
    rte_tel_data_add_dict_string(data, "burst", device->ops()->name);
    rte_tel_data_add_dict_int(data, "node", device->node());
    rte_tel_data_add_dict_uint(data, "window_bytes", device->platform().window_bytes);
    rte_tel_data_add_dict_int(data, "write_combining", device->platform().write_combining);
    rte_tel_data_add_dict_uint(data, "block_bytes", device->block().bytes);
    rte_tel_data_add_dict_uint(data, "page_bytes", device->block().page_bytes);
    rte_tel_data_add_dict_uint(data, "queues", device->queue_count());
    rte_tel_data_add_dict_uint(data, "ring_lines", g.ring_lines);
    rte_tel_data_add_dict_string(data, "ring_by", sized_by_name(g.ring_by));
    rte_tel_data_add_dict_uint(data, "buffers", g.buffers);
    rte_tel_data_add_dict_string(data, "buffers_by", sized_by_name(g.buffers_by));
    rte_tel_data_add_dict_uint(data, "private_cache", device->cache_bytes());
    rte_tel_data_add_dict_uint(data, "buf_bytes", g.buf_bytes);
    rte_tel_data_add_dict_uint(data, "queue_buffers", g.queue_buffers);
    rte_tel_data_add_dict_uint(data, "inline_always", g.inline_max);
    rte_tel_data_add_dict_uint(data, "inline_max", g.inline_most);
    rte_tel_data_add_dict_uint(data, "max_message", device->max_message());
    rte_tel_data_add_dict_int(data, "started", device->started());
    return 0;
}

int link(const char *, const char *params, rte_tel_data *data)
{
    const char *rest = nullptr;
    Device *device = device_in(params, &rest);
    if (device == nullptr)
        return -EINVAL;
    rte_pmd_plx_ntb_link now;
    device->link_info(&now);
    const LinkCounts &counts = device->counts();
    char epoch[16];
    std::snprintf(epoch, sizeof(epoch), "%08x", now.peer_epoch);
    rte_tel_data_start_dict(data);
    rte_tel_data_add_dict_string(data, "state", state_name(now.state));
    rte_tel_data_add_dict_string(data, "why", now.why);
    rte_tel_data_add_dict_uint(data, "speed", now.speed);
    rte_tel_data_add_dict_uint(data, "width", now.width);
    rte_tel_data_add_dict_string(data, "peer_epoch", epoch);
    rte_tel_data_add_dict_uint(data, "peer_max_message", now.peer_max_message);
    rte_tel_data_add_dict_uint(data, "queues", now.queues);
    rte_tel_data_add_dict_uint(data, "connects", counts.connects);
    rte_tel_data_add_dict_uint(data, "losses", counts.losses);
    rte_tel_data_add_dict_uint(data, "silences", counts.silences);
    rte_tel_data_add_dict_uint(data, "refusals", counts.refusals);
    rte_tel_data_add_dict_uint(data, "fences", counts.fences);
    return 0;
}

int copy(const char *, const char *params, rte_tel_data *data)
{
    const char *rest = nullptr;
    Device *device = device_in(params, &rest);
    if (device == nullptr)
        return -EINVAL;
    const CopyChoice choice = device->copy_choice();
    rte_tel_data_start_dict(data);
    rte_tel_data_add_dict_string(data, "engine", choice.dma_min != 0 ? "dma" : "cpu");
    rte_tel_data_add_dict_uint(data, "inline_max", choice.inline_max);
    rte_tel_data_add_dict_uint(data, "dma_min", choice.dma_min);
    rte_tel_data_add_dict_uint(data, "dma_queues", choice.dma_queues);
    rte_tel_data_add_dict_string(data, "why", choice.why);
    rte_tel_data_add_dict_int(data, "measured", choice.measured);
    for (unsigned i = 0; i < choice.curve.count; ++i) {
        const CopyPoint &point = choice.curve.points[i];
        char name[32], costs[48];
        std::snprintf(name, sizeof(name), "bytes_%u", point.bytes);
        std::snprintf(costs, sizeof(costs), "cpu %u ns, dma %u ns", point.cpu_ns, point.dma_ns);
        rte_tel_data_add_dict_string(data, name, costs);
    }
    return 0;
}

/// Text for each queue of a device.
int of_queues(const char *params, rte_tel_data *data,
              void (*text_of)(Device &, uint16_t queue, char *out, size_t size))
{
    const char *rest = nullptr;
    Device *device = device_in(params, &rest);
    if (device == nullptr)
        return -EINVAL;
    rte_tel_data_start_dict(data);
    for (uint16_t q = 0; q < device->queue_count(); ++q) {
        char name[16], text[trial_text_bytes];
        std::snprintf(name, sizeof(name), "queue_%u", q);
        text_of(*device, q, text, sizeof(text));
        rte_tel_data_add_dict_string(data, name, text);
    }
    return 0;
}

/// What a trial of each queue has chosen.
template <queue::TrialReport (Device::*report)(uint16_t), const ChoiceNames &names>
int choice(const char *, const char *params, rte_tel_data *data)
{
    return of_queues(params, data, [](Device &device, uint16_t q, char *out, size_t size) {
        describe((device.*report)(q), names, out, size);
    });
}

int stores(const char *, const char *params, rte_tel_data *data)
{
    return of_queues(params, data, [](Device &device, uint16_t q, char *out, size_t size) {
        describe_stores(device.stores_report(q), device.asks_ahead(q), out, size);
    });
}

int lead(const char *, const char *params, rte_tel_data *data)
{
    return of_queues(params, data, [](Device &device, uint16_t q, char *out, size_t size) {
        describe(device.lead_report(q), out, size);
    });
}

/// "ID" or "ID,FIRST": exposed ranges from number FIRST on, as many as fit in one answer.
int windows(const char *, const char *params, rte_tel_data *data)
{
    constexpr unsigned shown_max = 64;
    const char *rest = nullptr;
    Device *device = device_in(params, &rest);
    if (device == nullptr)
        return -EINVAL;
    const ControlLock locked(*device);
    rte_pmd_plx_ntb_memory_info info{};
    device->exposed().info(&info);
    rte_tel_data_start_dict(data);
    rte_tel_data_add_dict_string(
        data, "translation",
        info.translation == RTE_PMD_PLX_NTB_MEMORY_ALUT ? "alut" : "base and offset");
    rte_tel_data_add_dict_uint(data, "window_bytes", info.window_bytes);
    rte_tel_data_add_dict_uint(data, "segment_bytes", info.segment_bytes);
    rte_tel_data_add_dict_uint(data, "segments", info.segments);
    rte_tel_data_add_dict_uint(data, "free_segments", info.free_segments);
    rte_tel_data_add_dict_uint(data, "longest_free", info.longest_free);
    rte_tel_data_add_dict_uint(data, "parts", info.parts);
    rte_tel_data_add_dict_uint(data, "exposed", device->exposed().exposure_count());
    const unsigned long first = rest == nullptr ? 0 : std::strtoul(rest, nullptr, 10);
    rte_pmd_plx_ntb_memory_exposed range;
    for (unsigned i = 0; i < shown_max && device->exposed().exposure(first + i, &range); ++i) {
        char name[32], what[96];
        std::snprintf(name, sizeof(name), "exposed_%lu", first + i);
        std::snprintf(what, sizeof(what), "offset 0x%" PRIx64 ", %zu bytes, %s%s, part %u",
                      range.offset, range.bytes,
                      (range.rights & RTE_PMD_PLX_NTB_MEMORY_READ) != 0 ? "r" : "",
                      (range.rights & RTE_PMD_PLX_NTB_MEMORY_WRITE) != 0 ? "w" : "", range.part);
        rte_tel_data_add_dict_string(data, name, what);
    }
    return 0;
}

int requesters(const char *, const char *params, rte_tel_data *data)
{
    const char *rest = nullptr;
    Device *device = device_in(params, &rest);
    if (device == nullptr)
        return -EINVAL;
    rte_pmd_plx_ntb_requester list[facts::lut_entry_count];
    const unsigned count = list_requesters(*device, list, facts::lut_entry_count);
    rte_tel_data_start_dict(data);
    for (unsigned i = 0; i < count; ++i) {
        char slot[16], id[16], what[48];
        requester_name(list[i].id, id, sizeof(id));
        std::snprintf(slot, sizeof(slot), "slot_%u", list[i].slot);
        std::snprintf(what, sizeof(what), "%s %s", id, requester_kind_name(list[i].kind));
        rte_tel_data_add_dict_string(data, slot, what);
    }
    return 0;
}

void add_register(const hw::RegValue &value, void *arg)
{
    char name[48], text[16];
    const int length = static_cast<int>(value.name.size());
    if (value.count > 1)
        std::snprintf(name, sizeof(name), "%.*s_%u", length, value.name.data(), value.index);
    else
        std::snprintf(name, sizeof(name), "%.*s", length, value.name.data());
    std::snprintf(text, sizeof(text), "%08x", value.value);
    rte_tel_data_add_dict_string(static_cast<rte_tel_data *>(arg), name, text);
}

/// "ID": the names of the chip's parts. "ID,PART": the registers of one, as many as fit in one
/// answer.
int regs(const char *, const char *params, rte_tel_data *data)
{
    const char *part = nullptr;
    Device *device = device_in(params, &part);
    if (device == nullptr)
        return -EINVAL;
    if (part != nullptr) {
        rte_tel_data_start_dict(data);
        return hw::read_part(device->platform().own, device->chip().identity(), part, add_register,
                             data);
    }
    rte_tel_data_start_array(data, RTE_TEL_STRING_VAL);
    for (const std::string_view name : hw::dump_parts)
        rte_tel_data_add_array_string(data, name.data());
    return 0;
}

} // namespace

} // namespace plx::pmd

RTE_INIT(plx_ntb_telemetry)
{
    using namespace plx::pmd;
    rte_telemetry_register_cmd("/plx_ntb/list", list, "Ids of the devices. Takes no parameters");
    rte_telemetry_register_cmd("/plx_ntb/info", info, "What a device is. Parameters: id");
    rte_telemetry_register_cmd("/plx_ntb/link", link, "The connection of a device. Parameters: id");
    rte_telemetry_register_cmd("/plx_ntb/copy", copy,
                               "Which copy engine messages use, and why. Parameters: id");
    rte_telemetry_register_cmd("/plx_ntb/cache_hint",
                               choice<&Device::cache_hint_report, cache_hint_names>,
                               "Cache hints of the receiving queues. Parameters: id");
    rte_telemetry_register_cmd("/plx_ntb/lead", lead,
                               "Whether receiving queues leave their writers a lead. "
                               "Parameters: id");
    rte_telemetry_register_cmd("/plx_ntb/stores", stores,
                               "How the sending queues store long messages. Parameters: id");
    rte_telemetry_register_cmd("/plx_ntb/inline", choice<&Device::inline_report, inline_names>,
                               "How bursts between the inline bounds travel. Parameters: id");
    rte_telemetry_register_cmd("/plx_ntb/memory", windows,
                               "Memory that is exposed to the peer. Parameters: id[,first range]");
    rte_telemetry_register_cmd("/plx_ntb/requesters", requesters,
                               "Requester IDs of this host that reach the peer. Parameters: id");
    rte_telemetry_register_cmd("/plx_ntb/regs", regs,
                               "Registers of a part of the chip. Parameters: id[,part]");
}

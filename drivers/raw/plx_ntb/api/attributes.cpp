// SPDX-License-Identifier: BSD-3-Clause
#include "api/attributes.hpp"

#include <cerrno>
#include <cstring>

#include "api/devices.hpp"
#include "sync/log.hpp"

namespace plx::pmd
{

namespace
{

constexpr unsigned doorbell_count = 16;
rte_pmd_plx_ntb_topo topology(const hw::Chip &chip)
{
    if (!chip.shared())
        return RTE_PMD_PLX_NTB_TOPO_B2B;
    return chip.identity().side == facts::Side::virt ? RTE_PMD_PLX_NTB_TOPO_RP_VIRTUAL
                                                     : RTE_PMD_PLX_NTB_TOPO_RP_LINK;
}

struct Attribute {
    const char *name;
    uint64_t (*get)(Device &, const rte_pmd_plx_ntb_link &);
};

using Info = rte_pmd_plx_ntb_link;
constexpr Attribute attributes[] = {
    {"topo", [](Device &d, const Info &) -> uint64_t { return topology(d.chip()); }},
    {"link_status", [](Device &, const Info &i) -> uint64_t { return i.width != 0; }},
    {"speed", [](Device &, const Info &i) -> uint64_t { return i.speed; }},
    {"width", [](Device &, const Info &i) -> uint64_t { return i.width; }},
    {"mw_count", [](Device &, const Info &) -> uint64_t { return hw::Chip::window_count; }},
    {"db_count", [](Device &, const Info &) -> uint64_t { return doorbell_count; }},
    {"spad_count", [](Device &d, const Info &) -> uint64_t { return d.chip().spad_count(); }},
    {"queue_size", [](Device &d, const Info &) -> uint64_t { return d.geometry().ring_lines; }},
    {"queue_size_by",
     [](Device &d, const Info &) { return static_cast<uint64_t>(d.geometry().ring_by); }},
    {"buffers", [](Device &d, const Info &) -> uint64_t { return d.geometry().buffers; }},
    {"buffers_by",
     [](Device &d, const Info &) { return static_cast<uint64_t>(d.geometry().buffers_by); }},
    {"private_cache", [](Device &d, const Info &) -> uint64_t { return d.cache_bytes(); }},
    {"queue_num", [](Device &d, const Info &) -> uint64_t { return d.queue_count(); }},
    {"connected", [](Device &, const Info &i) -> uint64_t { return i.peer_epoch != 0; }},
    {"peer_epoch", [](Device &, const Info &i) -> uint64_t { return i.peer_epoch; }},
    {"peer_max_message", [](Device &, const Info &i) -> uint64_t { return i.peer_max_message; }},
    {"max_message", [](Device &d, const Info &) -> uint64_t { return d.max_message(); }},
    {"inline_max", [](Device &d, const Info &) -> uint64_t { return d.geometry().inline_most; }},
    {"block_bytes", [](Device &d, const Info &) -> uint64_t { return d.block().bytes; }},
    {"copy_mode",
     [](Device &d, const Info &) { return static_cast<uint64_t>(d.options().copy.mode); }},
    {"copy_engine",
     [](Device &d, const Info &) -> uint64_t { return d.copy_choice().dma_min != 0; }},
    {"dma_min", [](Device &d, const Info &) -> uint64_t { return d.copy_choice().dma_min; }},
    {"cache_hint",
     [](Device &d, const Info &) -> uint64_t { return d.cache_hint_report(0).in_force; }},
    {"stores", [](Device &d, const Info &) -> uint64_t { return d.stores_report(0).in_force; }},
    {"window_stores",
     [](Device &d, const Info &) { return static_cast<uint64_t>(d.window_stores()); }},
    {"linger_ms", [](Device &d, const Info &) -> uint64_t { return d.options().linger_ms; }},
    {"write_combining",
     [](Device &d, const Info &) -> uint64_t { return d.platform().write_combining; }},
};

/// Parses "spad_user_N", a name of raw/ntb. @return N, or -1
int user_spad(const char *name)
{
    constexpr char prefix[] = "spad_user_";
    constexpr size_t length = sizeof(prefix) - 1;
    if (std::strncmp(name, prefix, length) != 0 || name[length] < '0' ||
        name[length] >= '0' + static_cast<int>(user_spad_count) || name[length + 1] != '\0')
        return -1;
    return name[length] - '0';
}

} // namespace

int attr_get(rte_rawdev *raw, const char *name, uint64_t *value)
{
    if (name == nullptr || value == nullptr)
        return -EINVAL;
    Device &device = *device_of(raw);
    if (device.closed())
        return -ENODEV;
    const int spad = user_spad(name);
    if (spad >= 0) {
        uint32_t word = 0;
        const int rc =
            device.chip().spad_read(user_spad_first + static_cast<unsigned>(spad), &word);
        if (rc == 0)
            *value = word;
        return rc;
    }
    for (const Attribute &attribute : attributes) {
        if (std::strcmp(attribute.name, name) != 0)
            continue;
        rte_pmd_plx_ntb_link link;
        device.link_info(&link);
        *value = attribute.get(device, link);
        return 0;
    }
    PLX_LOG(ERR, "%s: no attribute \"%s\"\n", device.name(), name);
    return -EINVAL;
}

int attr_set(rte_rawdev *raw, const char *name, uint64_t value)
{
    if (name == nullptr || value > UINT32_MAX)
        return -EINVAL;
    Device &device = *device_of(raw);
    if (device.closed())
        return -ENODEV;
    const int spad = user_spad(name);
    if (spad >= 0)
        return device.chip().peer_spad_write(device.platform().peer,
                                             user_spad_first + static_cast<unsigned>(spad),
                                             static_cast<uint32_t>(value));
    if (std::strcmp(name, "copy_mode") == 0)
        return value <= static_cast<uint64_t>(CopyMode::dma)
                   ? device.set_copy_mode(static_cast<CopyMode>(value))
                   : -EINVAL;
    rte_pmd_plx_ntb_config config{};
    config.size = sizeof(config);
    if (std::strcmp(name, "queue_size") == 0)
        config.ring_lines = static_cast<uint32_t>(value);
    else if (std::strcmp(name, "queue_num") == 0)
        config.queues = static_cast<uint32_t>(value);
    else {
        PLX_LOG(ERR, "%s: no attribute \"%s\" that can be set\n", device.name(), name);
        return -EINVAL;
    }
    if (value == 0)
        return -EINVAL;
    return device.set_default(config);
}

} // namespace plx::pmd

// SPDX-License-Identifier: BSD-3-Clause
// Attributes under the names that users of raw/ntb know, the dump, the self-test.
#include "device/device.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <rte_rawdev.h>
#include <rte_rawdev_pmd.h>

#include "device/cache_hints.hpp"
#include "hw/dump.hpp"
#include "sync/log.hpp"

namespace plx::pmd
{

namespace
{

constexpr unsigned doorbell_count = 16;
/// raw/ntb's user scratchpads; the lower ones stay free for bring-up.
constexpr unsigned user_spad_first = 4;
constexpr unsigned user_spad_count = 4;

void dump_copy(FILE *file, const CopyChoice &choice)
{
    char text[copy_text_bytes];
    describe(choice, text, sizeof(text));
    std::fprintf(file, "  %s\n", text);
    if (choice.curve.count == 0)
        return;
    std::fprintf(file, "  copy_curve=");
    print_curve(choice.curve, file);
    std::fprintf(file, " (bytes:cpu_ns:dma_ns)\n");
}

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
    {"queue_num", [](Device &d, const Info &) -> uint64_t { return d.queue_count(); }},
    {"connected", [](Device &, const Info &i) -> uint64_t { return i.peer_epoch != 0; }},
    {"peer_epoch", [](Device &, const Info &i) -> uint64_t { return i.peer_epoch; }},
    {"peer_max_message", [](Device &, const Info &i) -> uint64_t { return i.peer_max_message; }},
    {"max_message", [](Device &d, const Info &) -> uint64_t { return d.max_message(); }},
    {"inline_max", [](Device &d, const Info &) -> uint64_t { return d.geometry().inline_max; }},
    {"block_bytes", [](Device &d, const Info &) -> uint64_t { return d.block().bytes; }},
    {"copy_mode",
     [](Device &d, const Info &) { return static_cast<uint64_t>(d.options().copy.mode); }},
    {"copy_engine",
     [](Device &d, const Info &) -> uint64_t { return d.copy_choice().dma_min != 0; }},
    {"dma_min", [](Device &d, const Info &) -> uint64_t { return d.copy_choice().dma_min; }},
    {"drain", [](Device &d, const Info &) -> uint64_t { return d.drain_report(0).in_force; }},
    {"write_combining",
     [](Device &d, const Info &) -> uint64_t { return d.platform().write_combining; }},
};

/// "spad_user_N" as raw/ntb has it. @return N, or -1
int user_spad(const char *name)
{
    constexpr char prefix[] = "spad_user_";
    constexpr size_t length = sizeof(prefix) - 1;
    if (std::strncmp(name, prefix, length) != 0 || name[length] < '0' ||
        name[length] >= '0' + static_cast<int>(user_spad_count) || name[length + 1] != '\0')
        return -1;
    return name[length] - '0';
}

void dump_queue(FILE *file, Device &device, uint16_t index)
{
    const ControlLock locked(device);
    QueuePair &qp = *device.queue(index);
    if (!qp.set_up)
        return;
    const queue::TxStats tx = queue::tx_stats(qp.tx.state);
    const queue::RxStats rx = queue::rx_stats(qp.rx.state);
    std::fprintf(file,
                 "  queue %u: %s, tx %" PRIu64 " messages %" PRIu64 " bytes (%" PRIu64
                 " inline), full %" PRIu64 ", unconfirmed %" PRIu64 "; rx %" PRIu64
                 " messages %" PRIu64 " bytes (%" PRIu64 " inline), nombuf %" PRIu64 "\n",
                 index, qp.tx.gate.is_open() ? "open" : "closed", tx.messages, tx.bytes,
                 inline_messages(qp.tx), tx.full, tx.unconfirmed, rx.messages, rx.bytes,
                 inline_messages(qp.rx), rx.nombuf);
    char text[drain_text_bytes];
    describe(device.drain_report(index), text, sizeof(text));
    std::fprintf(file, "    drain %s\n", text);
}

void dump_requesters(FILE *file, Device &device)
{
    rte_pmd_plx_ntb_requester list[facts::lut_entry_count];
    const unsigned count = list_requesters(device, list, facts::lut_entry_count);
    for (unsigned i = 0; i < count; ++i) {
        char name[16];
        requester_name(list[i].id, name, sizeof(name));
        std::fprintf(file, "  requester %u: %s, %s\n", list[i].slot, name,
                     requester_kind_name(list[i].kind));
    }
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

int dump(rte_rawdev *raw, FILE *file)
{
    if (file == nullptr)
        return -EINVAL;
    Device &device = *device_of(raw);
    if (device.closed())
        return -ENODEV;
    const Geometry &g = device.geometry();
    rte_pmd_plx_ntb_link link;
    device.link_info(&link);
    std::fprintf(file, "%s: %s, %s, %s, node %d\n", device.name(), device.platform().ops->name,
                 topology_name(device.chip()), device.ops()->name, device.node());
    std::fprintf(file, "  link gen %u x%u, peer epoch %08x, %u queues in use%s%s\n", link.speed,
                 link.width, link.peer_epoch, link.queues, link.why[0] != '\0' ? ": " : "",
                 link.why);
    std::fprintf(
        file,
        "  ring %u lines, %u buffers of %u bytes, %u posted, inline %u, largest message %u, "
        "block %zu bytes in %zu-byte pages\n",
        g.ring_lines, g.buffers, g.buf_bytes, g.posted, g.inline_max, device.max_message(),
        device.block().bytes, device.block().page_bytes);
    dump_copy(file, device.copy_choice());
    dump_requesters(file, device);
    const ControlLock locked(device);
    for (uint16_t q = 0; q < device.queue_count(); ++q)
        dump_queue(file, device, q);
    hw::dump_quirks(device.chip().identity(), file);
    hw::dump(device.platform().own, device.chip().identity(), file);
    return 0;
}

/// Does not disturb a running device: identity, then a scratchpad that bring-up does not use.
int selftest(uint16_t dev_id)
{
    Device *device = device_of(dev_id);
    if (device == nullptr || device->closed())
        return -ENODEV;
    hw::Identity identity;
    hw::Refusal why;
    int rc = hw::identify(device->platform().own, &identity, &why);
    if (rc != 0 || identity.nt != device->chip().identity().nt) {
        PLX_LOG(ERR, "%s: self-test: the chip is not the one that was probed: %s\n", device->name(),
                rc != 0 ? why.what : "another NT port");
        return rc != 0 ? rc : -EIO;
    }
    const hw::Chip &chip = device->chip();
    const unsigned index =
        std::min(user_spad_first + user_spad_count, device->chip().spad_count()) - 1;
    uint32_t before = 0;
    rc = chip.spad_read(index, &before);
    for (uint32_t pattern : {0x5a5a5a5au, 0xa5a5a5a5u, before}) {
        uint32_t found = ~pattern;
        if (rc == 0)
            rc = chip.spad_write(index, pattern);
        if (rc == 0)
            rc = chip.spad_read(index, &found);
        if (rc == 0 && found != pattern)
            rc = -EIO;
    }
    if (rc != 0)
        PLX_LOG(ERR, "%s: self-test: scratchpad %u does not hold what was written\n",
                device->name(), index);
    return rc;
}

} // namespace plx::pmd

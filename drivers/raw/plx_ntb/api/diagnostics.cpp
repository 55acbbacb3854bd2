// SPDX-License-Identifier: BSD-3-Clause
#include "api/diagnostics.hpp"

#include <algorithm>
#include <cerrno>
#include <cinttypes>

#include "api/attributes.hpp"
#include "api/devices.hpp"
#include "api/requesters.hpp"
#include "api/statistics.hpp"
#include "device/trials.hpp"
#include "hw/dump.hpp"
#include "sync/log.hpp"

namespace plx::pmd
{

namespace
{

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
    char hint[trial_text_bytes], lead[trial_text_bytes], stores[trial_text_bytes];
    char place[trial_text_bytes];
    describe(device.cache_hint_report(index), cache_hint_names, hint, sizeof(hint));
    describe_stores(device.stores_report(index), device.asks_ahead(index), stores, sizeof(stores));
    describe(device.inline_report(index), inline_names, place, sizeof(place));
    describe(device.lead_report(index), lead, sizeof(lead));
    std::fprintf(file,
                 "    cache hint %s\n    lead for the writer %s\n    stores of long messages %s\n"
                 "    bursts between the inline bounds by %s\n",
                 hint, lead, stores, place);
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
    std::fprintf(file,
                 "  ring %u lines, %u buffers of %u bytes, %u per queue pair, inline %u to %u, "
                 "largest message %u, "
                 "block %zu bytes in %zu-byte pages\n",
                 g.ring_lines, g.buffers, g.buf_bytes, g.queue_buffers, g.inline_max, g.inline_most,
                 device.max_message(), device.block().bytes, device.block().page_bytes);
    const PrivateCache cache = private_cache(device.cache_bytes());
    std::fprintf(
        file, "  ring sized by %s, buffers by %s; private cache of a core %" PRIu64 " KiB%s\n",
        sized_by_name(g.ring_by), sized_by_name(g.buffers_by), cache.bytes >> 10, cache.mark);
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

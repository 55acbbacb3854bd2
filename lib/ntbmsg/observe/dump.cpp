// SPDX-License-Identifier: BSD-3-Clause
// ntbmsg_endpoint_dump(): an endpoint as text.
#include <cerrno>
#include <cinttypes>
#include <cstdio>

#include "observe/view.hpp"

namespace ntbmsg
{

namespace
{

void dump_queue(const Endpoint &e, uint16_t queue, FILE *file)
{
    const QueueView view = view_queue(e, queue);
    std::fprintf(file,
                 "  queue %u (%s): sent %" PRIu64 " messages, %" PRIu64 " bytes, full %" PRIu64
                 "; received %" PRIu64 " messages, %" PRIu64 " bytes, no mbuf %" PRIu64 "\n",
                 queue, view.worker ? "worker" : "bare", view.tx_messages, view.tx_bytes,
                 view.tx_full, view.rx_messages, view.rx_bytes, view.rx_nombuf);
}

void dump_channel(const ChannelView &view, FILE *file)
{
    std::fprintf(file,
                 "    channel %u: port %u, %s%s, reason %d; sent %" PRIu64 " messages, %" PRIu64
                 " bytes, cut short %" PRIu64 "; received %" PRIu64 " messages, %" PRIu64
                 " bytes; credit %u of %u messages, %u of %u buffers; granted %u of %u messages",
                 view.slot, view.port, view.state, view.handle ? "" : " (no handle)", view.reason,
                 view.tx_messages, view.tx_bytes, view.tx_full, view.rx_messages, view.rx_bytes,
                 view.send_left.messages, view.send_granted.messages, view.send_left.buffers,
                 view.send_granted.buffers, view.receive_left.messages,
                 view.receive_granted.messages);
    std::fputc('\n', file);
}

void dump_worker(const Worker &w, FILE *file)
{
    const char *refused = w.refused.load(std::memory_order_relaxed);
    std::fprintf(file,
                 "  worker %u: %u of %u channels, %u messages left to grant, dropped %" PRIu64
                 ", refused of the peer %" PRIu64 "%s%s\n",
                 w.index, w.slots.used(), w.slots.count(), peek(w.budget.left.messages),
                 w.rx_dropped.get(), w.bad_peer.get(), refused != nullptr ? ": " : "",
                 refused != nullptr ? refused : "");
    ChannelView view;
    for (uint32_t slot = 0; slot < w.slots.count(); ++slot)
        if (view_channel(w, slot, view))
            dump_channel(view, file);
}

void dump_region(const ntbmsg_region &region, void *arg)
{
    std::fprintf(static_cast<FILE *>(arg),
                 "  region of %" PRIu64 " bytes (%s%s%s, %s): %" PRIu64 " writes, %" PRIu64
                 " reads, %" PRIu64 " atomics served, %" PRIu64 " refused\n",
                 region.bytes, (region.rights & NTBMSG_RIGHT_WRITE) != 0 ? "w" : "",
                 (region.rights & NTBMSG_RIGHT_READ) != 0 ? "r" : "",
                 (region.rights & NTBMSG_RIGHT_ATOMIC) != 0 ? "a" : "",
                 region.direct ? "direct" : "served", peek(region.writes), peek(region.reads),
                 peek(region.atomics), peek(region.refused));
}

void dump_totals(const Endpoint &e, FILE *file)
{
    ntbmsg_endpoint_stats s{};
    s.size = sizeof(s);
    if (ntbmsg_endpoint_stats_get(&e, &s) != 0)
        return;
    std::fprintf(file,
                 "  sent %" PRIu64 " messages, %" PRIu64 " bytes, unconfirmed %" PRIu64
                 ", refused %" PRIu64 "; received %" PRIu64 " messages, %" PRIu64
                 " bytes, dropped %" PRIu64 "; %" PRIu64 " connections\n",
                 s.tx_messages, s.tx_bytes, s.tx_unconfirmed, s.tx_errors, s.rx_messages,
                 s.rx_bytes, s.rx_dropped, s.links);
}

} // namespace

} // namespace ntbmsg

int ntbmsg_endpoint_dump(const ntbmsg_endpoint *endpoint, FILE *file)
{
    using namespace ntbmsg;
    if (!ntbmsg::is_live(endpoint, __func__) || file == nullptr)
        return -EINVAL;
    const Endpoint &e = *endpoint;
    char why[96];
    ntbmsg_endpoint_link_reason_get(&e, why, sizeof(why));
    std::fprintf(file, "endpoint %s: %s%s%s, longest message %u bytes\n", device_name(e),
                 name_of_link(ntbmsg_endpoint_link_state_get(&e)), why[0] != '\0' ? ": " : "", why,
                 ntbmsg_endpoint_max_message(&e));
    dump_totals(e, file);
    for (uint32_t q = 0; q < queue_pairs(e); ++q)
        dump_queue(e, static_cast<uint16_t>(q), file);
    for (uint32_t i = 0; i < e.workers_made; ++i)
        dump_worker(e.workers[i], file);
    e.regions.visit(dump_region, file);
    return 0;
}

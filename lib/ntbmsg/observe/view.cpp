// SPDX-License-Identifier: BSD-3-Clause
#include "observe/view.hpp"

#include <cstdio>

#include <rte_mempool.h>
#include <rte_rawdev.h>

namespace ntbmsg
{

namespace
{

uint64_t queue_stat(const Endpoint &e, const char *direction, uint16_t queue, const char *detail)
{
    char name[RTE_RAW_DEV_XSTATS_NAME_SIZE];
    std::snprintf(name, sizeof(name), "%s_q%u_%s", direction, queue, detail);
    unsigned id = 0;
    const uint64_t value = rte_rawdev_xstats_by_name_get(e.dev_id, name, &id);
    return value != UINT64_MAX ? value : 0;
}

} // namespace

const char *name_of_link(enum ntbmsg_link_state state)
{
    switch (state) {
    case NTBMSG_LINK_WAITING:
        return "waiting";
    case NTBMSG_LINK_CONNECTED:
        return "connected";
    case NTBMSG_LINK_SILENT:
        return "silent";
    case NTBMSG_LINK_REFUSED:
        return "refused";
    case NTBMSG_LINK_CLOSING:
        return "closing";
    }
    return "unknown";
}

const char *name_of_channel(uint8_t state)
{
    switch (state) {
    case state_requested:
        return "requested";
    case NTBMSG_CHANNEL_CONNECTING:
        return "connecting";
    case NTBMSG_CHANNEL_OPEN:
        return "open";
    case NTBMSG_CHANNEL_PEER_CLOSED:
        return "peer_closed";
    case NTBMSG_CHANNEL_SHUT:
        return "shut";
    case NTBMSG_CHANNEL_CLOSED:
        return "closed";
    case NTBMSG_CHANNEL_REJECTED:
        return "rejected";
    case NTBMSG_CHANNEL_TIMED_OUT:
        return "timed_out";
    case NTBMSG_CHANNEL_RESET:
        return "reset";
    case NTBMSG_CHANNEL_LOST:
        return "lost";
    }
    return "unknown";
}

bool view_channel(const Worker &w, uint32_t slot, ChannelView &view)
{
    if (slot >= w.slots.count())
        return false;
    const Channel &c = w.slots[slot];
    const uint8_t state = state_of(c);
    if (state == state_free)
        return false;
    view = {.slot = slot,
            .generation = ntbmsg::peek(c.generation),
            .state = name_of_channel(state),
            .port = ntbmsg::peek(c.port),
            .reason = static_cast<int32_t>(ntbmsg::peek(c.reason)),
            .send_left = c.tx.now.get(),
            .send_granted = c.tx.granted.get(),
            .receive_left = c.rx.left.get(),
            .receive_granted = c.rx.granted.get(),
            .tx_messages = c.tx_messages.get(),
            .tx_bytes = c.tx_bytes.get(),
            .rx_messages = c.rx_messages.get(),
            .rx_bytes = c.rx_bytes.get(),
            .tx_full = c.tx_full.get(),
            .handle = c.handle.load(std::memory_order_relaxed)};
    return true;
}

QueueView view_queue(const Endpoint &e, uint16_t queue)
{
    return {.worker = queue >= e.queues,
            .tx_messages = queue_stat(e, "tx", queue, "messages"),
            .tx_bytes = queue_stat(e, "tx", queue, "bytes"),
            .tx_full = queue_stat(e, "tx", queue, "full"),
            .rx_messages = queue_stat(e, "rx", queue, "messages"),
            .rx_bytes = queue_stat(e, "rx", queue, "bytes"),
            .rx_nombuf = queue_stat(e, "rx", queue, "nombuf")};
}

uint32_t queue_pairs(const Endpoint &e)
{
    return e.queues + e.workers_made;
}

} // namespace ntbmsg

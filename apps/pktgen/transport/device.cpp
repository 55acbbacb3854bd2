// SPDX-License-Identifier: BSD-3-Clause
#include "transport/device.hpp"

#include <algorithm>

#include <rte_mbuf.h>
#include <rte_pmd_plx_ntb.h>
#include <rte_rawdev.h>

#include "built_bursts.hpp"
#include "point/point.hpp"
#include "transport/channels.hpp"

namespace pktgen
{

namespace
{

// What the device keeps ready for long messages by default.
constexpr uint64_t default_buffer_bytes = 2048;
constexpr uint64_t default_buffers = 4096;
constexpr uint64_t most_by_default = 2044;
constexpr uint64_t buffers_per_line = 14; ///< of the receive-buffer ring
// From here on larger buffers, on both sides: their ring holds only so many, as does a chain.
constexpr uint64_t large_message = uint64_t{256} << 10;
constexpr uint64_t large_buffer_bytes = 16384;
constexpr uint64_t default_tx_mbufs = 4096;
// Mbufs in flight: a burst that is ready, one in the making, and what an engine holds.
constexpr uint64_t long_messages_held = 3;

bool fits_by_default(uint64_t longest, uint64_t queues)
{
    const uint64_t receive_buffers = std::min(default_buffers / 2 / queues, most_by_default);
    return longest <= (receive_buffers - buffers_per_line) * default_buffer_bytes;
}

} // namespace

ntbmsg_endpoint_options endpoint_options(const Needs &needs)
{
    ntbmsg_endpoint_options o;
    ntbmsg_endpoint_options_init(&o);
    o.queues = static_cast<uint32_t>(needs.queues + 1);
    o.workers = needs.channels ? static_cast<uint32_t>(needs.queues) : 0;
    o.ring_lines = static_cast<uint32_t>(needs.ring_lines);
    o.max_message = static_cast<uint32_t>(needs.limit);
    const uint64_t pairs = o.queues + o.workers;
    if (needs.channels)
        o.rx_mbufs = channel_credit_messages;
    const bool large = needs.longest > large_message;
    const uint64_t buffer = large ? large_buffer_bytes : default_buffer_bytes;
    if (large || !fits_by_default(needs.longest, pairs)) {
        // A whole message has to fit the receive buffers while up to two lines are being refilled.
        const uint64_t receive_buffers =
            (needs.longest / buffer / buffers_per_line + 4) * buffers_per_line;
        const uint64_t credit =
            needs.channels ? channel_credit_bytes(needs.longest) / buffer * needs.queues : 0;
        o.max_message = static_cast<uint32_t>(needs.limit != 0 ? needs.limit : needs.longest);
        o.buf_bytes = static_cast<uint32_t>(buffer);
        o.queue_buffers = static_cast<uint32_t>(receive_buffers);
        o.buffers = static_cast<uint32_t>(
            std::max(default_buffers / 4, receive_buffers * 2 * pairs + credit));
    }
    if (large) {
        const uint64_t held = (needs.longest / buffer + 1) * long_messages_held * needs.queues;
        o.tx_room = static_cast<uint32_t>(large_buffer_bytes);
        o.tx_mbufs = static_cast<uint32_t>(std::max(default_tx_mbufs / 4, held));
    }
    return o;
}

namespace
{

/// @return what the driver knows of it; zeros: there is no such device
rte_pmd_plx_ntb_info info_of(uint16_t dev_id)
{
    rte_pmd_plx_ntb_info of_driver{};
    of_driver.size = sizeof(of_driver);
    rte_rawdev_info info{};
    info.dev_private = &of_driver;
    return rte_rawdev_info_get(dev_id, &info, sizeof(of_driver)) == 0 ? of_driver
                                                                      : rte_pmd_plx_ntb_info{};
}

} // namespace

app::ResultDevice describe_device(const std::string &name, const ntbmsg_endpoint *endpoint)
{
    app::ResultDevice device;
    device.name = name;
    device.peer_max_message = ntbmsg_endpoint_max_message(endpoint);
    const int id = rte_pmd_plx_ntb_find(name.c_str());
    if (id < 0)
        return device;
    const auto dev_id = static_cast<uint16_t>(id);
    const rte_pmd_plx_ntb_info of_driver = info_of(dev_id);
    device.platform = of_driver.platform;
    device.burst = of_driver.burst;
    device.ring_lines = of_driver.ring_lines;
    device.inline_max = of_driver.inline_max;
    device.max_message = of_driver.max_message;
    rte_pmd_plx_ntb_link link{};
    if (rte_pmd_plx_ntb_link_get(dev_id, &link) == 0) {
        device.pcie_generation = link.speed;
        device.lanes = link.width;
    }
    rte_rawdev_get_attr(dev_id, "dma_min", &device.dma_min);
    return device;
}

uint32_t longest_built(const std::string &name)
{
    const int id = rte_pmd_plx_ntb_find(name.c_str());
    if (id < 0)
        return 0;
    const rte_pmd_plx_ntb_info info = info_of(static_cast<uint16_t>(id));
    return std::min(info.ring_lines, app::BuiltBursts::most_rooms) * info.buf_bytes;
}

void discard_received(ntbmsg_endpoint *endpoint, uint32_t queues)
{
    constexpr uint16_t burst = 64;
    constexpr unsigned most_bursts =
        65536 / burst; // a ring's worth: a peer that goes on is not for ever
    rte_mbuf *messages[burst];
    for (uint32_t q = 1; q <= queues; ++q) {
        for (unsigned i = 0; i < most_bursts; ++i) {
            const int got = ntbmsg_queue_recv_burst(endpoint, static_cast<uint16_t>(q), messages,
                                                    nullptr, burst);
            if (got <= 0)
                break;
            rte_pktmbuf_free_bulk(messages, static_cast<unsigned>(got));
        }
    }
}

} // namespace pktgen

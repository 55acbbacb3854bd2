// SPDX-License-Identifier: BSD-3-Clause
// Defaults and ranges of an endpoint's options.
#include <cerrno>

#include "base/log.hpp"
#include "endpoint/endpoint.hpp"

namespace ntbmsg
{

namespace
{

// The ranges of rte_pmd_plx_ntb_config; what depends on the device is left to the device.
constexpr uint32_t max_ring_lines = 65536;
constexpr uint32_t max_buf_bytes = 65536;
constexpr uint32_t max_buffers = 1U << 20;
constexpr uint32_t max_message = (1U << 24) - 1; // 24 bits of length on the wire
constexpr uint32_t max_tx_mbufs = 1U << 20;
constexpr uint32_t max_tx_room = 65280; // an mbuf's length and headroom have 16 bits
constexpr uint32_t min_channels = 16, max_channels = 65535;
constexpr uint32_t min_rx_mbufs = 512, max_rx_mbufs = 1U << 20;
constexpr uint32_t min_rendezvous = 65536, max_rendezvous = 1U << 30;
constexpr uint32_t line_bytes = 64;

bool power_of_two(uint32_t value)
{
    return value != 0 && (value & (value - 1)) == 0;
}

/// 0 stands for "the device's default" and is always in range.
bool within(uint32_t value, uint32_t low, uint32_t high)
{
    return value == 0 || (value >= low && value <= high);
}

int refuse(const char *name, uint32_t value, const char *range)
{
    NTBMSG_LOG(ERR, "option %s is %u, must be %s", name, value, range);
    return -EINVAL;
}

} // namespace

int check_options(const ntbmsg_endpoint_options &o)
{
    if (o.queues > RTE_PMD_PLX_NTB_MAX_QUEUES || (o.queues == 0 && o.workers == 0))
        return refuse("queues", o.queues, "0 to 64, and 1 with no workers");
    if (o.workers > RTE_PMD_PLX_NTB_MAX_QUEUES - o.queues)
        return refuse("workers", o.workers, "at most 64 together with queues");
    if (o.dedicated > 1 || o.service > 1 || (o.service == 1 && o.dedicated == 0))
        return refuse("service", o.service, "0, or 1 with dedicated = 1");
    if (!within(o.channels, min_channels, max_channels))
        return refuse("channels", o.channels, "16 to 65535");
    if (!within(o.rx_mbufs, min_rx_mbufs, max_rx_mbufs))
        return refuse("rx_mbufs", o.rx_mbufs, "512 to 1048576");
    if (!within(o.rendezvous_bytes, min_rendezvous, max_rendezvous) ||
        (o.rendezvous_bytes != 0 && !power_of_two(o.rendezvous_bytes)))
        return refuse("rendezvous_bytes", o.rendezvous_bytes, "a power of two, 65536 to 2^30");
    if (o.pool_bytes % protocol::piece_bytes != 0 ||
        (o.pool_bytes != 0 && uint64_t{o.pool_bytes} + min_rendezvous > o.rendezvous_bytes))
        return refuse("pool_bytes", o.pool_bytes,
                      "a multiple of 32768, at most rendezvous_bytes - 65536");
    if (!within(o.ring_lines, line_bytes, max_ring_lines) ||
        (o.ring_lines != 0 && !power_of_two(o.ring_lines)))
        return refuse("ring_lines", o.ring_lines, "a power of two, 64 to 65536");
    if (!within(o.buffers, 1, max_buffers))
        return refuse("buffers", o.buffers, "at most 1048576");
    if (!within(o.buf_bytes, line_bytes, max_buf_bytes) || o.buf_bytes % line_bytes != 0)
        return refuse("buf_bytes", o.buf_bytes, "a multiple of 64, 64 to 65536");
    if (!within(o.posted, 1, max_buffers))
        return refuse("posted", o.posted, "at most 1048576");
    if (!within(o.inline_max, 48, 1024))
        return refuse("inline_max", o.inline_max, "48 to 1024");
    if (!within(o.max_message, 1, max_message))
        return refuse("max_message", o.max_message, "at most 16777215");
    if (o.workers != 0 && !within(o.max_message, protocol::least_message, max_message))
        return refuse("max_message", o.max_message, "256 or more with workers");
    if (!within(o.tx_mbufs, 1, max_tx_mbufs))
        return refuse("tx_mbufs", o.tx_mbufs, "at most 1048576");
    if (!within(o.tx_room, line_bytes, max_tx_room) || o.tx_room % line_bytes != 0)
        return refuse("tx_room", o.tx_room, "a multiple of 64, 64 to 65280");
    return 0;
}

} // namespace ntbmsg

void ntbmsg_endpoint_options_init(ntbmsg_endpoint_options *options)
{
    if (options == nullptr)
        return;
    *options = {};
    options->size = sizeof(*options);
    options->queues = 1;
}

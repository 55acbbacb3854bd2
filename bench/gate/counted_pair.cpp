// SPDX-License-Identifier: BSD-3-Clause
#include "counted_pair.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <rte_pmd_plx_ntb.h>
#include <rte_rawdev.h>

namespace gate
{

namespace
{

constexpr uint32_t connect_ms = 60'000; // a simulated processor is slow

void open(const char *device, ntbmsg_endpoint *&out)
{
    ntbmsg_endpoint_options options;
    ntbmsg_endpoint_options_init(&options);
    options.ring_lines = 4096;
    options.buffers = 1024;
    options.buf_bytes = 2048;
    options.posted = 504;
    if (const int rc = ntbmsg_endpoint_open(device, &options, &out); rc != 0)
        fail(device, rc);
}

} // namespace

void fail(const char *what, int got)
{
    std::fprintf(stderr, "ntbmsg_instructions: %s: %d\n", what, got);
    std::exit(EXIT_FAILURE);
}

Pair::Pair()
{
    open(near_device, near);
    open(far_device, far);
    for (ntbmsg_endpoint *end : {near, far})
        if (const int rc = ntbmsg_wait_connected(end, connect_ms); rc != 0)
            fail("the two do not meet", rc);
}

Pair::~Pair()
{
    ntbmsg_endpoint_close(near);
    ntbmsg_endpoint_close(far);
}

void fill(const Pair &pair, rte_mbuf **mbufs, uint16_t n, uint32_t bytes)
{
    if (rte_pktmbuf_alloc_bulk(ntbmsg_pool(pair.near), mbufs, n) != 0)
        fail("no mbufs", n);
    for (uint16_t i = 0; i < n; ++i) {
        char *data = rte_pktmbuf_append(mbufs[i], static_cast<uint16_t>(bytes));
        if (data == nullptr)
            fail("a message too long for an mbuf", static_cast<int>(bytes));
        std::memset(data, i, bytes);
    }
}

const char *variant()
{
    static rte_pmd_plx_ntb_info device;
    device.size = sizeof(device);
    rte_rawdev_info info{};
    info.dev_private = &device;
    const int id = rte_pmd_plx_ntb_find(near_device);
    if (id < 0 || rte_rawdev_info_get(static_cast<uint16_t>(id), &info, sizeof(device)) != 0)
        fail("no device", id);
    return device.burst;
}

} // namespace gate

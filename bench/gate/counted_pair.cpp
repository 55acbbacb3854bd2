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
constexpr uint16_t port = 1;
constexpr int most_polls = 100'000;

void open(const char *device, ntbmsg_endpoint *&out)
{
    ntbmsg_endpoint_options options;
    ntbmsg_endpoint_options_init(&options);
    options.ring_lines = 4096;
    options.buffers = 4096;
    options.buf_bytes = 2048;
    options.queue_buffers = 504;
    options.workers = 1;
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
        if (const int rc = ntbmsg_endpoint_wait_connected(end, connect_ms); rc != 0)
            fail("the two do not connect", rc);
    ntbmsg_queue_burst_get(near, 0, &near_queue);
    ntbmsg_queue_burst_get(far, 0, &far_queue);
    near_worker = ntbmsg_endpoint_worker(near, 0);
    far_worker = ntbmsg_endpoint_worker(far, 0);
}

void Pair::connect(uint32_t credit, ntbmsg_channel *&near_end, ntbmsg_channel *&far_end)
{
    ntbmsg_listener *listener = nullptr;
    ntbmsg_channel_options options;
    ntbmsg_channel_options_init(&options);
    options.credit_messages = credit;
    options.cq = cq;
    int rc = ntbmsg_listener_open(port, 0, &listener);
    if (rc == 0)
        rc = ntbmsg_channel_connect(near_worker, port, &options, &near_end);
    options.cq = nullptr;
    options.set = far_set;
    for (int i = 0; rc == 0 && i < most_polls && far_end == nullptr; ++i) {
        ntbmsg_request request;
        ntbmsg_worker_poll(near_worker);
        ntbmsg_worker_poll(far_worker);
        if (ntbmsg_listener_poll(listener, far_worker, &request) == 1)
            rc = ntbmsg_channel_accept(&request, &options, &far_end);
    }
    for (int i = 0; i < most_polls && ntbmsg_channel_state_get(near_end) != NTBMSG_CHANNEL_OPEN;
         ++i)
        ntbmsg_worker_poll(near_worker);
    if (rc != 0 || ntbmsg_channel_state_get(near_end) != NTBMSG_CHANNEL_OPEN)
        fail("no channel", rc);
    ntbmsg_listener_close(listener);
}

void Pair::join()
{
    int rc = ntbmsg_cq_create(1024, nullptr, nullptr, &cq);
    if (rc == 0)
        rc = ntbmsg_poll_set_create(far_worker, &far_set);
    if (rc != 0)
        fail("no completion queue or poll set", rc);
    connect(512, from, to);
}

void Pair::join_turns()
{
    for (unsigned i = 0; i < turns; ++i)
        connect(most, each_from[i], each_to[i]);
}

void Pair::expose(size_t bytes)
{
    ntbmsg_region_token token;
    int rc = ntbmsg_region_alloc(far, bytes, NTBMSG_RIGHT_WRITE, &region);
    if (rc == 0)
        rc = ntbmsg_region_token_get(region, &token);
    if (rc == 0)
        rc = ntbmsg_remote_open(from, &token, &remote);
    if (rc != 0)
        fail("no memory exposed", rc);
}

Pair::~Pair()
{
    ntbmsg_remote_close(remote);
    if (region != nullptr)
        ntbmsg_region_release(region);
    ntbmsg_channel_close(from);
    ntbmsg_channel_close(to);
    for (unsigned i = 0; i < turns; ++i) {
        ntbmsg_channel_close(each_from[i]);
        ntbmsg_channel_close(each_to[i]);
    }
    ntbmsg_poll_set_destroy(far_set);
    ntbmsg_cq_destroy(cq);
    ntbmsg_endpoint_close_linger(near, 0, nullptr);
    ntbmsg_endpoint_close_linger(far, 0, nullptr);
}

void fill(const Pair &pair, rte_mbuf **mbufs, uint16_t n, uint32_t bytes)
{
    if (rte_pktmbuf_alloc_bulk(ntbmsg_endpoint_pool(pair.near), mbufs, n) != 0)
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

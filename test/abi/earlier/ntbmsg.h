/* SPDX-License-Identifier: BSD-3-Clause */
/* The first version of ntbmsg.h, reduced to what earlier_user.c calls: its structs lack what came
 * later. Names follow the headers; layouts stay. */
#ifndef NTBMSG_H
#define NTBMSG_H

#include <stddef.h>
#include <stdint.h>

struct ntbmsg_endpoint;
struct ntbmsg_worker;
struct ntbmsg_channel;

struct ntbmsg_endpoint_options {
    size_t size;
    uint32_t queues, ring_lines, buffers, buf_bytes, queue_buffers, inline_max, max_message,
        tx_mbufs;
};

struct ntbmsg_endpoint_stats {
    size_t size;
    uint64_t tx_messages, tx_bytes, rx_messages, rx_bytes, tx_full, tx_errors, tx_unconfirmed,
        rx_nombuf, links;
};

int ntbmsg_endpoint_open(const char *device, const struct ntbmsg_endpoint_options *options,
                         struct ntbmsg_endpoint **out);
int ntbmsg_endpoint_close(struct ntbmsg_endpoint *endpoint);
int ntbmsg_endpoint_wait_connected(struct ntbmsg_endpoint *endpoint, uint32_t timeout_ms);
int ntbmsg_endpoint_stats_get(const struct ntbmsg_endpoint *endpoint,
                              struct ntbmsg_endpoint_stats *stats);

#endif

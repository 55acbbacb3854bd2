/* SPDX-License-Identifier: BSD-3-Clause */
/* The first version of rte_pmd_plx_ntb.h, reduced as ntbmsg.h beside it. */
#ifndef RTE_PMD_PLX_NTB_H
#define RTE_PMD_PLX_NTB_H

#include <stddef.h>
#include <stdint.h>

struct rte_pmd_plx_ntb_config {
    size_t size;
    uint32_t queues, ring_lines, buffers, buf_bytes, queue_buffers, inline_max;
};

struct rte_pmd_plx_ntb_info {
    size_t size;
    uint32_t queues, ring_lines, buffers, buf_bytes, inline_max, max_message;
    int32_t socket_id;
    uint64_t window_bytes, block_bytes;
};

int rte_pmd_plx_ntb_find(const char *name);

#endif

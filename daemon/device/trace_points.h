/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tracepoints of DPDK's trace library, ntbd.*: "eal --trace=ntbd.*" in the configuration turns them
 * on. Numbers are those of wire/message.hpp and of ntb-ss.
 */
#ifndef NTBD_DEVICE_TRACE_POINTS_H
#define NTBD_DEVICE_TRACE_POINTS_H

#include <stdint.h>

#include <rte_common.h>
#include <rte_trace_point.h>

#ifdef __cplusplus
extern "C" {
#endif

RTE_TRACE_POINT(ntbd_trace_client_attach,
                RTE_TRACE_POINT_ARGS(uint64_t client, uint32_t uid, uint32_t pid),
                rte_trace_point_emit_u64(client);
                rte_trace_point_emit_u32(uid); rte_trace_point_emit_u32(pid);)

RTE_TRACE_POINT(ntbd_trace_client_detach, RTE_TRACE_POINT_ARGS(uint64_t client),
                rte_trace_point_emit_u64(client);)

/* type: enum ntbc::Type; id and other as it says there */
RTE_TRACE_POINT(ntbd_trace_client_received,
                RTE_TRACE_POINT_ARGS(uint64_t client, uint16_t type, uint64_t id, uint64_t other),
                rte_trace_point_emit_u64(client);
                rte_trace_point_emit_u16(type); rte_trace_point_emit_u64(id);
                rte_trace_point_emit_u64(other);)

RTE_TRACE_POINT(ntbd_trace_client_sent,
                RTE_TRACE_POINT_ARGS(uint64_t client, uint16_t type, int32_t status, uint64_t id,
                                     uint64_t other),
                rte_trace_point_emit_u64(client);
                rte_trace_point_emit_u16(type); rte_trace_point_emit_i32(status);
                rte_trace_point_emit_u64(id); rte_trace_point_emit_u64(other);)

RTE_TRACE_POINT(ntbd_trace_peer_received,
                RTE_TRACE_POINT_ARGS(uint16_t type, int32_t status, uint64_t id, uint64_t other),
                rte_trace_point_emit_u16(type);
                rte_trace_point_emit_i32(status); rte_trace_point_emit_u64(id);
                rte_trace_point_emit_u64(other);)

RTE_TRACE_POINT(ntbd_trace_peer_sent,
                RTE_TRACE_POINT_ARGS(uint16_t type, int32_t status, uint64_t id, uint64_t other),
                rte_trace_point_emit_u16(type);
                rte_trace_point_emit_i32(status); rte_trace_point_emit_u64(id);
                rte_trace_point_emit_u64(other);)

#ifdef __cplusplus
}
#endif

#endif

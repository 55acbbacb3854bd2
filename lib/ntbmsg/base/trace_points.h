/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tracepoints of DPDK's trace library, lib.ntbmsg.*: EAL's --trace=lib.ntbmsg.* turns them on.
 * Those of the slow path are always there; those of the data path cost instructions even when they
 * are off, so they are compiled in by the build's option trace_fast alone.
 */
#ifndef NTBMSG_BASE_TRACE_POINTS_H
#define NTBMSG_BASE_TRACE_POINTS_H

#include <stdint.h>

#include <rte_common.h>
#include <rte_trace_point.h>

#ifdef __cplusplus
extern "C" {
#endif

RTE_TRACE_POINT(ntbmsg_trace_endpoint_open,
                RTE_TRACE_POINT_ARGS(uint16_t device, uint32_t queues, uint32_t workers),
                rte_trace_point_emit_u16(device);
                rte_trace_point_emit_u32(queues); rte_trace_point_emit_u32(workers);)

RTE_TRACE_POINT(ntbmsg_trace_endpoint_close, RTE_TRACE_POINT_ARGS(uint16_t device),
                rte_trace_point_emit_u16(device);)

/* event: enum ntbmsg_event */
RTE_TRACE_POINT(ntbmsg_trace_endpoint_event, RTE_TRACE_POINT_ARGS(uint16_t device, uint32_t event),
                rte_trace_point_emit_u16(device);
                rte_trace_point_emit_u32(event);)

RTE_TRACE_POINT(ntbmsg_trace_channel_connect,
                RTE_TRACE_POINT_ARGS(uint16_t device, uint16_t worker, uint16_t channel,
                                     uint16_t port),
                rte_trace_point_emit_u16(device);
                rte_trace_point_emit_u16(worker); rte_trace_point_emit_u16(channel);
                rte_trace_point_emit_u16(port);)

RTE_TRACE_POINT(ntbmsg_trace_channel_request,
                RTE_TRACE_POINT_ARGS(uint16_t device, uint16_t worker, uint16_t channel,
                                     uint16_t port),
                rte_trace_point_emit_u16(device);
                rte_trace_point_emit_u16(worker); rte_trace_point_emit_u16(channel);
                rte_trace_point_emit_u16(port);)

/* At both ends: when it is accepted, and when the acceptance has come. */
RTE_TRACE_POINT(ntbmsg_trace_channel_open,
                RTE_TRACE_POINT_ARGS(uint16_t device, uint16_t worker, uint16_t channel,
                                     uint16_t port),
                rte_trace_point_emit_u16(device);
                rte_trace_point_emit_u16(worker); rte_trace_point_emit_u16(channel);
                rte_trace_point_emit_u16(port);)

/* state: enum ntbmsg_channel_state; reason: as in ntbmsg_channel_info */
RTE_TRACE_POINT(ntbmsg_trace_channel_end,
                RTE_TRACE_POINT_ARGS(uint16_t device, uint16_t worker, uint16_t channel,
                                     uint8_t state, int32_t reason),
                rte_trace_point_emit_u16(device);
                rte_trace_point_emit_u16(worker); rte_trace_point_emit_u16(channel);
                rte_trace_point_emit_u8(state); rte_trace_point_emit_i32(reason);)

/* Not RTE_TRACE_POINT_FP: the headers of a packaged DPDK switch that off, whatever is defined. */
#ifdef NTBMSG_TRACE_FAST
RTE_TRACE_POINT(ntbmsg_trace_channel_send,
                RTE_TRACE_POINT_ARGS(const void *channel, uint16_t asked, int taken),
                rte_trace_point_emit_ptr(channel);
                rte_trace_point_emit_u16(asked); rte_trace_point_emit_int(taken);)

RTE_TRACE_POINT(ntbmsg_trace_channel_receive,
                RTE_TRACE_POINT_ARGS(const void *channel, uint16_t asked, int got),
                rte_trace_point_emit_ptr(channel);
                rte_trace_point_emit_u16(asked); rte_trace_point_emit_int(got);)
#else
static inline void ntbmsg_trace_channel_send(const void *channel, uint16_t asked, int taken)
{
    RTE_SET_USED(channel);
    RTE_SET_USED(asked);
    RTE_SET_USED(taken);
}
static inline void ntbmsg_trace_channel_receive(const void *channel, uint16_t asked, int got)
{
    RTE_SET_USED(channel);
    RTE_SET_USED(asked);
    RTE_SET_USED(got);
}
#endif

#ifdef __cplusplus
}
#endif

#endif

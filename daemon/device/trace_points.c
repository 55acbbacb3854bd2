/* SPDX-License-Identifier: BSD-3-Clause */
/* In C: DPDK's macros for registering are not C++. */
#include <rte_trace_point_register.h>

#include "device/trace_points.h"

RTE_TRACE_POINT_REGISTER(ntbd_trace_client_attach, ntbd.client.attach)
RTE_TRACE_POINT_REGISTER(ntbd_trace_client_detach, ntbd.client.detach)
RTE_TRACE_POINT_REGISTER(ntbd_trace_client_received, ntbd.client.received)
RTE_TRACE_POINT_REGISTER(ntbd_trace_client_sent, ntbd.client.sent)
RTE_TRACE_POINT_REGISTER(ntbd_trace_peer_received, ntbd.peer.received)
RTE_TRACE_POINT_REGISTER(ntbd_trace_peer_sent, ntbd.peer.sent)

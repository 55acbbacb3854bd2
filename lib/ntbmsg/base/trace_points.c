/* SPDX-License-Identifier: BSD-3-Clause */
/* In C: DPDK's macros for registering are not C++. */
#include <rte_trace_point_register.h>

#include "base/trace_points.h"

RTE_TRACE_POINT_REGISTER(ntbmsg_trace_endpoint_open, lib.ntbmsg.endpoint.open)
RTE_TRACE_POINT_REGISTER(ntbmsg_trace_endpoint_close, lib.ntbmsg.endpoint.close)
RTE_TRACE_POINT_REGISTER(ntbmsg_trace_endpoint_event, lib.ntbmsg.endpoint.event)
RTE_TRACE_POINT_REGISTER(ntbmsg_trace_channel_connect, lib.ntbmsg.channel.connect)
RTE_TRACE_POINT_REGISTER(ntbmsg_trace_channel_request, lib.ntbmsg.channel.request)
RTE_TRACE_POINT_REGISTER(ntbmsg_trace_channel_open, lib.ntbmsg.channel.open)
RTE_TRACE_POINT_REGISTER(ntbmsg_trace_channel_end, lib.ntbmsg.channel.end)
#ifdef NTBMSG_TRACE_FAST
RTE_TRACE_POINT_REGISTER(ntbmsg_trace_channel_send, lib.ntbmsg.channel.send)
RTE_TRACE_POINT_REGISTER(ntbmsg_trace_channel_receive, lib.ntbmsg.channel.receive)
#endif

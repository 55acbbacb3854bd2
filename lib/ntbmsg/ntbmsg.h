/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NTBMSG_H
#define NTBMSG_H

/**
 * @file
 * ntbmsg: messages between two hosts joined by a PCIe non-transparent bridge.
 *
 * This header includes the whole interface:
 *
 * - ntbmsg_endpoint.h: endpoints and bare queues;
 * - ntbmsg_channel.h: workers, channels, listeners and poll sets;
 * - ntbmsg_rma.h: one-sided operations (remote memory access), completion queues and regions.
 *
 * Object model
 *
 *     endpoint   one device (a card or a software twin, named as EAL names it: "raw_plx_ntb0");
 *      |         its other end is one peer host
 *      +- queue      a bare queue pair: sent on queue q, received from queue q of the peer
 *      +- worker     a queue pair that carries channels, and the engine that drives it
 *      |   +- channel    a connection to a port of the peer host
 *      |       +- remote     a region of the peer, opened for operations on this channel
 *      +- region     memory of this host that the peer may write, read or update atomically
 *     listener   a port of this host, on all its endpoints
 *     poll set   reports which of many channels are ready
 *     completion queue   reports the completion of operations on any number of channels
 *
 * Lifetime: each kind of object has one pair of verbs.
 *
 * | objects                                | begin                        | end     |
 * |----------------------------------------|------------------------------|---------|
 * | endpoints, listeners, remotes          | open                         | close   |
 * | channels                               | connect, accept              | close   |
 * | poll sets, completion queues           | create                       | destroy |
 * | regions                                | alloc, register              | release |
 * | queues, workers                        | belong to their endpoint     |         |
 *
 * Order of calls: rte_eal_init(), ntbmsg_endpoint_open(), any other call, ntbmsg_endpoint_close(),
 * rte_eal_cleanup(). The two hosts may start in any order, and the peer may restart while the
 * endpoint stays open. Channels belong to one connection between the hosts: when the peer is lost,
 * each of them ends in state NTBMSG_CHANNEL_LOST, and new ones are connected after the next
 * NTBMSG_EVENT_CONNECTED. Listeners and poll sets stay.
 *
 * An application may stop the device of an open endpoint (rte_rawdev_stop()). The endpoint treats
 * this as a loss of the peer: NTBMSG_EVENT_LOST is queued when the call returns, the link state is
 * NTBMSG_LINK_WAITING, and rte_rawdev_start() looks for the peer again. All else of the device
 * (configuration, queues, event callback) is reserved for the endpoint until it is closed.
 *
 * Threads: one thread at a time sends on a bare queue and one at a time receives from it. Different
 * queues, and the two directions of one queue, are independent. There are two ways to drive
 * workers, selected by ntbmsg_endpoint_options::dedicated; the calls are the same.
 *
 * - Run to completion: one thread at a time uses a worker and all that belongs to it (its channels,
 *   and poll sets of these). That thread polls by ntbmsg_poll_set_poll(), ntbmsg_worker_poll()
 *   or a receive.
 * - Dedicated: one thread (an lcore, or a DPDK service) calls ntbmsg_worker_poll() in a loop, and
 *   nothing else of the worker. Any number of other threads use channels: each channel, poll set
 *   and completion queue by one thread at a time. The thread that posts a direct write stores it;
 *   the worker does all else. A shutdown, a reset and a close are requests, carried out by the next
 *   polls of the worker, after what was sent before them. The polling has to stop, and all other
 *   calls have to return, before the endpoint is closed.
 *
 * Calls that open or close one endpoint or read its events come from one thread at a time.
 * Statistics and link state may be read by any thread. No call blocks, except those that open or
 * close endpoints, ntbmsg_endpoint_wait_connected(), ntbmsg_channel_wait_open(), and those that
 * wait for confirmation: ntbmsg_queue_flush(), ntbmsg_channel_flush(),
 * ntbmsg_channel_close_linger().
 *
 * Sizes: a struct whose first field is `size` may grow in later versions of this library. Its user
 * sets the field to the sizeof of the struct that it was compiled with.
 *
 * - A struct that is passed in may be smaller than the library's: what is missing counts as 0,
 *   which stands for the default. It may be larger if all that the library does not know is 0;
 *   otherwise the call returns -E2BIG.
 * - Of a struct that is filled in, the library writes `size` bytes; what it does not know is 0.
 * - A size below that of the first version or above 4096 bytes is refused with -EINVAL.
 *
 * Invalid handles: a handle that was closed, destroyed or released is refused as NULL is, for a
 * channel until its slot is used again, for a region until its table entry is. Other invalid
 * pointers are not detected. A library that was built with checks (meson option `checks`; on by
 * default with buildtype=debug and with the address sanitizer) also detects handles whose slot was
 * used again some times, logs each use of an invalid handle, and ends the process (rte_panic())
 * when a second thread enters a channel, poll set, completion queue or worker in use.
 *
 * Delivery: in order (on one queue, on one channel) and exactly once while the peer is connected.
 * When the peer closes, what the peer has sent is received before the end is reported. When it is
 * lost, messages that were sent and not yet confirmed may or may not have arrived. They are
 * counted: ntbmsg_endpoint_stats::tx_unconfirmed, ntbmsg_queue_unconfirmed(),
 * ntbmsg_channel_info::unconfirmed.
 *
 * Stability: functions marked `__rte_experimental` may change or go without notice, with the types
 * that only they use. A program that calls one is compiled with -DALLOW_EXPERIMENTAL_API, as for
 * DPDK's own; without it the compiler warns.
 */

#include <ntbmsg_channel.h>
#include <ntbmsg_endpoint.h>
#include <ntbmsg_rma.h>

#endif

// SPDX-License-Identifier: BSD-3-Clause
// Both ends of the round trip and of the one-way stream, as an application would write them: mbufs
// from a pool and back to it, every payload written by the sender and read by the receiver.
#ifndef BENCH_HOST_TRAFFIC_HPP
#define BENCH_HOST_TRAFFIC_HPP

#include "session/shared.hpp"

struct ntbmsg_endpoint;
struct rte_mempool;

namespace bench
{

class Channels;
struct BareRings;

/// What messages of a host can go by.
struct Ways {
    ntbmsg_endpoint *endpoint;
    rte_mempool *pool; ///< what is sent comes from here
    const Channels &channels;
    BareRings *bare = nullptr; ///< without the library
    unsigned side = 0;
};

/// Writes all mbufs that the pool has, for long messages.
void fill_pool(rte_mempool *pool);

/// Up to command.rounds messages within command.run_ns, one at a time; each is awaited before the
/// next. One line of payload at most.
void ask(const Ways &, const Command &, Result &);
/// Sends each message back, with its payload read and written again, until the asking side ends.
void answer(const Ways &, const Command &, Result &);

/// One message of 64 bytes.
void send_one(const Ways &, const Command &, Result &);

/// Bursts of command.batch messages for command.run_ns; then shared.sent_total is set.
void send(const Ways &, const Command &, Shared &, Result &);
/// Until shared.sent_total messages have come.
void receive(const Ways &, const Command &, Shared &, Result &);

} // namespace bench

#endif

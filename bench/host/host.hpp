// SPDX-License-Identifier: BSD-3-Clause
// One host of a pair: EAL, the twin device, an endpoint, and both ends of every figure, through the
// library's public calls only.
#ifndef BENCH_HOST_HOST_HPP
#define BENCH_HOST_HOST_HPP

#include "host/channels.hpp"
#include "host/engine.hpp"
#include "host/writes.hpp"

struct ntbmsg_endpoint;
struct rte_mempool;

namespace bench
{

struct HostOptions {
    unsigned side; ///< 0 sends and asks, 1 receives and answers
    unsigned cpu;
    const char *folder; ///< for the socket that joins the hosts and for EAL, of both hosts
    bool huge_pages;
};

class Host
{
public:
    Host() = default;
    ~Host();
    Host(const Host &) = delete;
    Host &operator=(const Host &) = delete;

    /// Starts EAL, opens the endpoint and waits for the other host.
    void open(const HostOptions &, const Command &, Result &);
    /// Opens the endpoint anew, in another shape.
    void shape(const Command &, Result &);
    /// Runs one of the host operations.
    void run(const Command &, Shared &, Result &);
    /// The same after a predecessor was killed; then sends one message.
    void restart(const HostOptions &, const Command &, Result &);
    void await_message(const Command &, Result &);
    void close();

private:
    void begin(const HostOptions &, Result &);
    void open_endpoint(const Shape &, Result &);
    void open_channels(const Shape &, Result &);
    void close_channels();
    ntbmsg_worker *driven() const;
    void close_endpoint(Result &);
    void connect(Result &);
    void drain();
    const void *window_address() const;
    void idle(const Command &, Result &);
    void crossover(Result &);
    void await_loss(const Command &, Result &);

    unsigned m_side = 0;
    bool m_eal = false;
    ntbmsg_endpoint *m_endpoint = nullptr;
    rte_mempool *m_pool = nullptr;
    Channels m_channels;
    Writes m_writes;
    Engine m_engine;
};

} // namespace bench

#endif

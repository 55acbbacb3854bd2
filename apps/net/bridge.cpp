// SPDX-License-Identifier: BSD-3-Clause
#include "bridge.hpp"

#include <algorithm>
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <memory>
#include <vector>

#include <poll.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <sys/signalfd.h>

#include "interface.hpp"
#include "lane.hpp"
#include "port.hpp"
#include "state.hpp"
#include "worker.hpp"

namespace net
{

namespace
{

sigset_t ending_signals()
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    return set;
}

/// What the main thread carries from the port and the peer to the kernel.
class Follower
{
public:
    Follower(State &state, Interface &interface, const Options &options)
        : state_(state), interface_(interface), options_(options)
    {
    }

    /// Carrier, offloads and queues as they have to be now.
    void follow()
    {
        const bool up = state_.link_up.load(std::memory_order_acquire);
        const uint32_t peer = state_.peer.load(std::memory_order_acquire);
        const bool offloads = up && (peer & PeerWord::takes_offloads) != 0 &&
                              !options_.no_offloads && (state_.hello.flags & Hello::offloads) != 0;
        const unsigned theirs = std::max<unsigned>(peer & PeerWord::queues, 1);
        const unsigned active = std::min(static_cast<unsigned>(options_.queues), theirs);
        // The kernel stops before the workers, and they begin before it.
        if (offloads)
            state_.offloads.store(true, std::memory_order_relaxed);
        if (offloads != offloads_)
            interface_.set_offloads(offloads);
        state_.offloads.store(offloads, std::memory_order_relaxed);
        if (active < active_)
            state_.active.store(active, std::memory_order_release);
        if (active != active_)
            interface_.set_active(active);
        state_.active.store(active, std::memory_order_release);
        if (up != up_)
            interface_.set_carrier(up);
        if (up != up_ || peer != peer_)
            say(up, peer, offloads, active);
        up_ = up, peer_ = peer, offloads_ = offloads, active_ = active;
    }

private:
    static void say(bool up, uint32_t peer, bool offloads, unsigned active)
    {
        if (!up)
            std::printf("link down\n");
        else if (peer == 0)
            std::printf("link up\n");
        else
            std::printf("peer: queues %u, offloads %s\n", active, offloads ? "on" : "off");
        std::fflush(stdout);
    }

    State &state_;
    Interface &interface_;
    const Options &options_;
    bool up_ = false, offloads_ = false;
    uint32_t peer_ = 0;
    unsigned active_ = 1;
};

int run_worker(void *worker)
{
    static_cast<Worker *>(worker)->run();
    return 0;
}

/// Until a signal.
void follow_until_signal(State &state, Follower &follower,
                         std::vector<std::unique_ptr<Worker>> &workers)
{
    const sigset_t set = ending_signals();
    const int signals = signalfd(-1, &set, SFD_CLOEXEC);
    pollfd fds[] = {{signals, POLLIN, 0}, {state.main.fd(), POLLIN, 0}};
    while (signals >= 0 && (fds[0].revents & POLLIN) == 0) {
        if (poll(fds, 2, -1) < 0)
            continue;
        state.main.clear();
        follower.follow();
        for (auto &worker : workers)
            worker->wake();
    }
    close(signals);
}

void report(const std::vector<std::unique_ptr<Lane>> &lanes)
{
    for (const auto &lane : lanes) {
        const LaneCounts &c = lane->counts();
        std::printf("queue %u: to peer %" PRIu64 ", to kernel %" PRIu64
                    "; dropped: no link %" PRIu64 ", refused by the kernel %" PRIu64
                    ", invalid %" PRIu64 "\n",
                    lane->queue(), c.to_peer.read(), c.to_kernel.read(), c.no_link.read(),
                    c.refused.read(), c.not_a_frame.read());
    }
}

int wrong(const std::string &error)
{
    std::fprintf(stderr, "ntbmsg-net: %s\n", error.c_str());
    return 1;
}

} // namespace

void hold_signals()
{
    const sigset_t set = ending_signals();
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

int bridge(const Options &options)
{
    const unsigned others = rte_lcore_count() - 1;
    if (others == 0)
        return wrong("there is one lcore alone: expected one more, such as --lcores 0@0,1@0");
    const auto queues = static_cast<uint16_t>(options.queues);
    State state;
    Port port;
    std::string error = port.open(options.port, queues, &state);
    if (!error.empty())
        return wrong(error);
    if (options.mtu + RTE_ETHER_HDR_LEN + RTE_VLAN_HLEN + tag_bytes >
        port.mtu() + uint32_t{RTE_ETHER_HDR_LEN} + RTE_VLAN_HLEN)
        return wrong(port.name() + ": its buffers are too small for an MTU of " +
                     std::to_string(options.mtu));
    state.hello = {.version = Hello::known_version,
                   .flags =
                       port.takes_longest() && !options.no_offloads ? Hello::offloads : uint8_t{0},
                   .queues = rte_cpu_to_le_16(queues)};
    Interface interface;
    error =
        interface.open(options.interface, queues, static_cast<uint32_t>(options.mtu), port.mac());
    if (!error.empty())
        return wrong(error);
    std::vector<std::unique_ptr<Lane>> lanes;
    std::vector<std::unique_ptr<Worker>> workers;
    for (unsigned i = 0; i < std::min<unsigned>(others, queues); ++i)
        workers.push_back(std::make_unique<Worker>(state, port.id(), options.idle_us));
    for (uint16_t q = 0; q < queues; ++q) {
        lanes.push_back(std::make_unique<Lane>(state, interface, port.id(), q, port.pool()));
        workers[q % workers.size()]->add(lanes.back().get());
    }
    error = port.start();
    if (!error.empty())
        return wrong(error);
    std::printf("%s on %s\n", options.interface.c_str(), port.name().c_str());
    std::fflush(stdout);
    unsigned lcore = rte_get_next_lcore(UINT_MAX, 1, 0);
    for (auto &worker : workers) {
        rte_eal_remote_launch(run_worker, worker.get(), lcore);
        lcore = rte_get_next_lcore(lcore, 1, 0);
    }
    Follower follower(state, interface, options);
    follower.follow();
    follow_until_signal(state, follower, workers);
    state.stop.store(true, std::memory_order_relaxed);
    for (auto &worker : workers)
        worker->wake();
    rte_eal_mp_wait_lcore();
    port.stop();
    report(lanes);
    return 0;
}

} // namespace net

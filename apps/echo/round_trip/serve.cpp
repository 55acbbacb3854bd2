// SPDX-License-Identifier: BSD-3-Clause
#include "round_trip/serve.hpp"

#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <memory>
#include <thread>
#include <vector>

#include "modes/modes.hpp"
#include "peer.hpp"
#include "signals.hpp"

namespace echo
{

namespace
{

// Events cost a lock: look once in so many rounds, a fraction of a millisecond.
constexpr unsigned rounds_per_check = 1024;
// The most at once: a round of an idle queue costs the same whatever the burst.
constexpr uint64_t burst = 64;
// A signal, and the successor of a refused peer, may have to wait for so long.
constexpr auto refused_interval = std::chrono::milliseconds(20);

class Server
{
public:
    Server(ntbmsg_endpoint *endpoint, const Options &options);
    Server(const Server &) = delete;
    Server &operator=(const Server &) = delete;

    void run();

private:
    void look_at_events();
    void peer_left();

    ntbmsg_endpoint *endpoint_;
    bool once_;
    bool done_ = false;
    std::vector<std::unique_ptr<Forwarder>> queues_;
};

Server::Server(ntbmsg_endpoint *endpoint, const Options &options)
    : endpoint_(endpoint), once_(options.once)
{
    Settings settings;
    settings.burst = burst;
    settings.in_place = options.in_place;
    for (uint16_t q = 0; q < options.queues; ++q)
        queues_.push_back(make_echo({endpoint, q}, settings));
}

void Server::run()
{
    unsigned rounds = 0;
    while (!done_ && app::stop_signal() == 0) {
        for (const auto &queue : queues_)
            queue->poll();
        if (++rounds % rounds_per_check == 0)
            look_at_events();
    }
    if (!done_)
        peer_left();
}

void Server::look_at_events()
{
    ntbmsg_event event;
    while (ntbmsg_endpoint_event_poll(endpoint_, &event) == 1) {
        if (event == NTBMSG_EVENT_LOST) {
            peer_left();
            done_ = once_;
        } else {
            std::printf("%s\n", app::event_text(endpoint_, event).c_str());
        }
        std::fflush(stdout);
    }
}

void Server::peer_left()
{
    Counters sum;
    for (const auto &queue : queues_) {
        queue->link_lost();
        sum.tx_messages += queue->counters().tx_messages;
        sum.tx_bytes += queue->counters().tx_bytes;
        sum.built += queue->counters().built;
        sum.dropped += queue->counters().dropped;
        queue->clear();
    }
    if (sum.tx_messages == 0 && app::stop_signal() != 0)
        return; // no peer was lost
    std::printf("served %" PRIu64 " messages, %" PRIu64 " bytes", sum.tx_messages, sum.tx_bytes);
    if (sum.built != 0)
        std::printf("; %" PRIu64 " built in place", sum.built);
    if (sum.dropped != 0)
        std::printf("; %" PRIu64 " messages could not go back", sum.dropped);
    std::printf("\n");
}

/// A peer that is refused may leave, and another one come.
/// @param seconds  at most; 0: no limit
app::Peer await_first_peer(ntbmsg_endpoint *endpoint, double seconds)
{
    const auto begin = std::chrono::steady_clock::now();
    app::Peer peer = app::await_peer(endpoint, seconds);
    while (peer == app::Peer::refused) {
        ntbmsg_event event;
        while (ntbmsg_endpoint_event_poll(endpoint, &event) == 1) {
            if (event == NTBMSG_EVENT_REFUSED)
                std::printf("%s\n", app::event_text(endpoint, event).c_str());
        }
        std::fflush(stdout);
        std::this_thread::sleep_for(refused_interval);
        const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
        if (seconds > 0 && passed.count() >= seconds)
            return app::Peer::absent;
        peer = app::await_peer(endpoint, seconds > 0 ? seconds - passed.count() : 0);
    }
    return peer;
}

} // namespace

int serve(const Options &options)
{
    const app::Endpoint endpoint(options.device, endpoint_options(options));
    if (!endpoint.ok())
        return 1;
    std::printf("serving on %s, SIGINT ends it\n", options.device.c_str());
    std::fflush(stdout);
    const app::Peer peer = await_first_peer(endpoint.get(), options.timeout);
    if (peer == app::Peer::connected)
        Server(endpoint.get(), options).run();
    if (peer == app::Peer::connected || peer == app::Peer::interrupted)
        return 0;
    std::fprintf(stderr, "ntbmsg-echo: %s\n",
                 app::why_not_connected(endpoint.get(), peer, options.timeout).c_str());
    return 1;
}

} // namespace echo

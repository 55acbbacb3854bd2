// SPDX-License-Identifier: BSD-3-Clause
// The serving side: what comes on a queue goes back on it, in the mbufs it came in.
#include <array>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <vector>

#include <rte_mbuf.h>

#include "echo_format.hpp"
#include "peer.hpp"
#include "roles.hpp"
#include "signals.hpp"

namespace echo
{

namespace
{

constexpr uint16_t burst = 64;
// Events cost a lock: look once in so many rounds, a fraction of a millisecond.
constexpr unsigned rounds_per_look = 1024;

struct Queue {
    std::array<rte_mbuf *, burst> mbufs;
    std::array<ntbmsg_meta, burst> meta;
    uint16_t begin = 0, end = 0; ///< what waits to go back
};

struct Count {
    uint64_t messages = 0, bytes = 0, dropped = 0;
};

class Server
{
public:
    Server(ntbmsg_endpoint *endpoint, const Options &options)
        : endpoint_(endpoint), once_(options.once), queues_(options.queues)
    {
    }
    ~Server() { drop_all(); }
    Server(const Server &) = delete;
    Server &operator=(const Server &) = delete;

    void run();

private:
    void round(uint16_t q);
    void receive(uint16_t q, Queue &queue);
    void send(uint16_t q, Queue &queue);
    void drop_front(Queue &queue);
    void drop_all();
    void look_at_events();
    void peer_left();

    ntbmsg_endpoint *endpoint_;
    bool once_;
    bool done_ = false;
    std::vector<Queue> queues_;
    Count count_; ///< since the peer came
};

void Server::run()
{
    unsigned rounds = 0;
    while (!done_ && app::stop_signal() == 0) {
        for (uint16_t q = 0; q < queues_.size(); ++q)
            round(q);
        if (++rounds % rounds_per_look == 0)
            look_at_events();
    }
    if (!done_ && count_.messages != 0)
        peer_left();
}

/// Nothing new is taken while something waits to go back: the peer's back-pressure is passed on.
void Server::round(uint16_t q)
{
    Queue &queue = queues_[q];
    if (queue.begin == queue.end)
        receive(q, queue);
    if (queue.begin != queue.end)
        send(q, queue);
}

void Server::receive(uint16_t q, Queue &queue)
{
    const int got = ntbmsg_recv_burst(endpoint_, q, queue.mbufs.data(), queue.meta.data(), burst);
    queue.begin = 0;
    queue.end = got > 0 ? static_cast<uint16_t>(got) : uint16_t{0};
    for (uint16_t i = 0; i < queue.end; ++i)
        queue.meta[i].flags |= echoed_flag;
}

void Server::send(uint16_t q, Queue &queue)
{
    const auto n = static_cast<uint16_t>(queue.end - queue.begin);
    // Lengths are taken before the burst: what is sent is not ours any more.
    std::array<uint32_t, burst> bytes;
    for (uint16_t i = 0; i < n; ++i)
        bytes[i] = queue.mbufs[queue.begin + i]->pkt_len;
    const int sent =
        ntbmsg_send_burst(endpoint_, q, &queue.mbufs[queue.begin], &queue.meta[queue.begin], n);
    if (sent < 0) {
        drop_front(queue);
        return;
    }
    for (int i = 0; i < sent; ++i)
        count_.bytes += bytes[static_cast<size_t>(i)];
    count_.messages += static_cast<uint64_t>(sent);
    queue.begin = static_cast<uint16_t>(queue.begin + sent);
}

/// The peer is gone, or does not take a message as long as the one it sent.
void Server::drop_front(Queue &queue)
{
    rte_pktmbuf_free(queue.mbufs[queue.begin]);
    ++queue.begin;
    ++count_.dropped;
}

void Server::drop_all()
{
    for (Queue &queue : queues_) {
        while (queue.begin != queue.end)
            drop_front(queue);
    }
}

void Server::look_at_events()
{
    ntbmsg_event_kind event;
    while (ntbmsg_event_poll(endpoint_, &event) == 1) {
        switch (event) {
        case NTBMSG_EVENT_BACK:
            std::printf("a peer is connected\n");
            break;
        case NTBMSG_EVENT_SILENT:
            std::printf("the peer gives no sign of life\n");
            break;
        case NTBMSG_EVENT_AWAKE:
            std::printf("the peer is awake again\n");
            break;
        case NTBMSG_EVENT_LOST:
            peer_left();
            done_ = once_;
            break;
        case NTBMSG_EVENT_REFUSED:
            std::printf("a peer was refused: %s\n", app::why_no_peer(endpoint_).c_str());
            break;
        }
        std::fflush(stdout);
    }
}

void Server::peer_left()
{
    drop_all(); // what came from this peer does not go to the next one
    std::printf("served %" PRIu64 " messages, %" PRIu64 " bytes", count_.messages, count_.bytes);
    if (count_.dropped != 0)
        std::printf("; %" PRIu64 " messages could not go back", count_.dropped);
    std::printf("\n");
    count_ = {};
}

} // namespace

int serve(const Options &options)
{
    const app::Endpoint endpoint(options.device, endpoint_options(options));
    if (!endpoint.ok())
        return 1;
    std::printf("serving on %s, SIGINT ends it\n", options.device.c_str());
    std::fflush(stdout);
    switch (app::await_peer(endpoint.get(), options.timeout)) {
    case app::Peer::connected:
        Server(endpoint.get(), options).run();
        return 0;
    case app::Peer::interrupted:
        return 0;
    case app::Peer::absent:
        std::fprintf(stderr, "ntbmsg-echo: no peer came in %g s: %s\n", options.timeout,
                     app::why_no_peer(endpoint.get()).c_str());
        return 1;
    case app::Peer::refused:
        std::fprintf(stderr, "ntbmsg-echo: the peer was refused: %s\n",
                     app::why_no_peer(endpoint.get()).c_str());
        return 1;
    }
    return 1;
}

} // namespace echo

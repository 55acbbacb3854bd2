// SPDX-License-Identifier: BSD-3-Clause
// A peer of an ntbmsg-pktgen that serves, and no good one.
//
//     wrong_client EAL... -- --messages   sends each wrong message, and behind each one greets as a
//                                         client does: the server has to answer
//     wrong_client EAL... -- --deaf       asks for a measurement, and takes one report; stays until
//                                         its input ends
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include <rte_mbuf.h>

#include "eal.hpp"
#include "peer.hpp"
#include "session/control.hpp"
#include "transport/device.hpp"

namespace
{

using namespace pktgen;

constexpr double patience_s = 60;
constexpr uint16_t control_queue = 0;
constexpr uint32_t queues = 63;
constexpr uint32_t shortest_ring = 64;

using Bytes = std::vector<char>;

// Where the fields of a control message lie.
constexpr size_t magic_at = 0, version_at = 4, kind_at = 6, role_at = 20;

template <typename Value>
Bytes with(Bytes bytes, size_t at, Value value)
{
    std::memcpy(&bytes[at], &value, sizeof(value));
    return bytes;
}

class Peer
{
public:
    Peer() : endpoint_("raw_plx_ntb0", options()), control_(endpoint_.get(), Role::client, 1) {}

    bool connect() const
    {
        return endpoint_.ok() &&
               app::await_peer(endpoint_.get(), patience_s) == app::Peer::connected;
    }

    /// Polls until @p poll finds something, the peer is lost, or patience ends.
    template <typename Found>
    std::optional<Found> await(const std::function<std::optional<Found>()> &poll) const
    {
        const auto end =
            std::chrono::steady_clock::now() + std::chrono::duration<double>(patience_s);
        while (std::chrono::steady_clock::now() < end) {
            if (auto found = poll())
                return found;
            ntbmsg_event event;
            if (ntbmsg_endpoint_event_poll(endpoint_.get(), &event) == 1 &&
                event == NTBMSG_EVENT_LOST)
                break;
        }
        return std::nullopt;
    }

    std::optional<ControlMessage> await(Kind kind)
    {
        return await<ControlMessage>([this, kind] {
            auto message = control_.poll();
            return message && message->kind == kind ? message : std::nullopt;
        });
    }

    /// The server's hello as it crosses.
    std::optional<Bytes> await_bytes() const
    {
        return await<Bytes>([this]() -> std::optional<Bytes> {
            rte_mbuf *mbuf = nullptr;
            if (ntbmsg_queue_recv_burst(endpoint_.get(), control_queue, &mbuf, nullptr, 1) != 1)
                return std::nullopt;
            Bytes bytes(mbuf->pkt_len);
            const void *data = rte_pktmbuf_read(mbuf, 0, mbuf->pkt_len, bytes.data());
            if (data != bytes.data())
                std::memcpy(bytes.data(), data, bytes.size());
            rte_pktmbuf_free(mbuf);
            return bytes;
        });
    }

    bool send(const Bytes &bytes) const
    {
        rte_mbuf *mbuf = rte_pktmbuf_alloc(ntbmsg_endpoint_pool(endpoint_.get()));
        char *room = mbuf != nullptr ? rte_pktmbuf_append(mbuf, static_cast<uint16_t>(bytes.size()))
                                     : nullptr;
        if (room == nullptr)
            return false;
        std::memcpy(room, bytes.data(), bytes.size());
        return await<bool>([&]() -> std::optional<bool> {
                   return ntbmsg_queue_send_burst(endpoint_.get(), control_queue, &mbuf, nullptr,
                                                  1) == 1
                              ? std::optional(true)
                              : std::nullopt;
               })
            .has_value();
    }

    bool send(const ControlMessage &message)
    {
        return await<bool>(
                   [&] { return control_.send(message) == 0 ? std::optional(true) : std::nullopt; })
            .has_value();
    }

private:
    static ntbmsg_endpoint_options options()
    {
        return endpoint_options({queues, shortest_ring, 0, 0, false});
    }

    app::Endpoint endpoint_;
    Control control_;
};

struct Wrong {
    const char *what;
    Bytes bytes;
};

std::vector<Wrong> wrong_messages(const Bytes &good)
{
    const Bytes client = with(good, role_at, uint16_t{1});
    std::vector<Wrong> all = {
        {"the server's own hello", good},
        {"another server", with(good, 8, uint64_t{2})},
        {"one byte", Bytes(1)},
        {"a byte less", Bytes(client.begin(), client.end() - 1)},
        {"a byte more",
         [&] {
             Bytes more = client;
             more.push_back(0);
             return more;
         }()},
        {"a long message", Bytes(2000, 'x')},
        {"nothing but zeros", Bytes(client.size())},
        {"nothing but ones", Bytes(client.size(), '\xff')},
        {"another magic", with(client, magic_at, uint32_t{0x12345678})},
        {"another version", with(client, version_at, uint16_t{0xffff})},
        {"another role", with(client, role_at, uint16_t{2})},
    };
    for (uint16_t kind = 0; kind <= kind_count; ++kind) {
        const Bytes head = with(with(client, kind_at, kind), 8, uint64_t{2});
        Bytes noise(head.size(), '\xff');
        std::copy_n(head.begin(), std::min(head.size(), role_at + sizeof(uint16_t)), noise.begin());
        all.push_back({"a message full of ones", noise});
    }
    return all;
}

int send_wrong_messages()
{
    Peer peer;
    const auto hello = peer.connect() ? peer.await_bytes() : std::nullopt;
    if (!hello) {
        std::printf("no hello\n");
        return EXIT_FAILURE;
    }
    for (const Wrong &wrong : wrong_messages(*hello)) {
        if (!peer.send(wrong.bytes) || !peer.send(ControlMessage{Kind::hello}) ||
            !peer.await(Kind::hello)) {
            std::printf("no answer after %s\n", wrong.what);
            return EXIT_FAILURE;
        }
    }
    std::printf("all were answered\n");
    return EXIT_SUCCESS;
}

int stay_deaf()
{
    Peer peer;
    ControlMessage begin{Kind::begin};
    begin.serial = 1;
    begin.point.queues = queues;
    begin.point.size = begin.point.size_to = 8;
    begin.point.run_us = 1;
    ControlMessage stop{Kind::stop};
    stop.serial = 1;
    if (!peer.connect() || !peer.send(ControlMessage{Kind::hello}) || !peer.send(begin) ||
        !peer.await(Kind::ready) || !peer.send(stop) || !peer.await(Kind::report)) {
        std::printf("no report\n");
        return EXIT_FAILURE;
    }
    std::cout << "deaf from now on" << std::endl;
    std::string line;
    while (std::getline(std::cin, line))
        ;
    return EXIT_SUCCESS;
}

} // namespace

int main(int argc, char **argv)
{
    const app::OwnArguments own = app::own_arguments(argc, argv);
    const std::string what = own.argc == 2 ? own.argv[1] : "";
    const app::Eal eal(argc, argv);
    if (!eal.running() || (what != "--messages" && what != "--deaf"))
        return EXIT_FAILURE;
    return what == "--deaf" ? stay_deaf() : send_wrong_messages();
}

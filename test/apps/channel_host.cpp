// SPDX-License-Identifier: BSD-3-Clause
// Two endpoints of one process with a channel between them, one message on it, two regions,
// one of which has a receive pool of its own, telemetry on: something for library_telemetry_test.py
// to look at. Says "ready" and stays until its input ends.
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>

#include <rte_eal.h>

#include <ntbmsg.hpp>

namespace
{

constexpr uint16_t port = 9;

struct Two {
    ntbmsg::Endpoint near, far;
    ntbmsg::Listener listener;
    ntbmsg::Channel from, to;
    ntbmsg::Region exposed, registered;
    std::array<std::byte, 4096> memory{};

    bool open()
    {
        ntbmsg::EndpointOptions options;
        options.workers = 1;
        options.buffers = 512;
        options.queue_buffers = 28;
        options.rx_mbufs = 1024;
        options.tx_mbufs = 512;
        return near.open("raw_plx_ntb0", options) == 0 && far.open("raw_plx_ntb1", options) == 0 &&
               near.wait_connected(60'000) == 0 && far.wait_connected(60'000) == 0;
    }

    bool join()
    {
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
        ntbmsg::Worker here = ntbmsg::Worker::of(near, 0), there = ntbmsg::Worker::of(far, 0);
        ntbmsg::ChannelOptions options;
        if (listener.open(port) != 0 || from.connect(here, port, options) != 0)
            return false;
        while (from.state() != NTBMSG_CHANNEL_OPEN && std::chrono::steady_clock::now() < end) {
            ntbmsg_request request;
            here.poll();
            there.poll();
            if (listener.poll(there, request) == 1 && to.accept(request) != 0)
                return false;
        }
        return from.state() == NTBMSG_CHANNEL_OPEN;
    }

    bool expose()
    {
        return exposed.alloc(near, 1000, NTBMSG_RIGHT_WRITE) == 0 &&
               registered.register_memory(near, memory, NTBMSG_RIGHT_READ | NTBMSG_RIGHT_ATOMIC) ==
                   0;
    }

    bool send()
    {
        ntbmsg::Message message = ntbmsg::Message::from(near.pool());
        return message && message.append(100).size() == 100 && from.send(message) == 1;
    }
};

} // namespace

int main(int argc, char **argv)
{
    if (rte_eal_init(argc, argv) < 0)
        return EXIT_FAILURE;
    bool well;
    {
        Two two;
        well = two.open() && two.join() && two.expose() && two.send();
        std::cout << (well ? "ready" : "failed") << std::endl;
        std::string line;
        while (std::getline(std::cin, line))
            ;
    }
    rte_eal_cleanup();
    return well ? EXIT_SUCCESS : EXIT_FAILURE;
}

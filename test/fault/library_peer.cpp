// SPDX-License-Identifier: BSD-3-Clause
// The other host of library_death_test: it listens, exposes memory, takes long messages, and posts
// operations on memory of its peer without end, until it is killed.
#include "pages.hpp"

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include <rte_bus_vdev.h>
#include <rte_eal.h>
#include <rte_mbuf.h>

#include <ntbmsg.h>

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace
{

constexpr uint16_t port = 7;
constexpr unsigned life_s = 120; // whatever happens to the test

[[noreturn]] void give_up(const char *what)
{
    std::fprintf(stderr, "library_peer: %s\n", what);
    _exit(1);
}

struct Peer {
    ntbmsg_endpoint *endpoint = nullptr;
    ntbmsg_worker *worker = nullptr;
    ntbmsg_listener *listener = nullptr;
    ntbmsg_channel *channel = nullptr;
    ntbmsg_cq *cq = nullptr;
    ntbmsg_remote *remote = nullptr;
    ntbmsg_region_token tokens[2]{};
    std::vector<uint8_t> memory = std::vector<uint8_t>(1 << 20);
    std::vector<uint8_t> own = std::vector<uint8_t>(1 << 18);

    void open(const char *cable)
    {
        const std::string arguments = std::string("cable=") + cable;
        ntbmsg_endpoint_options options;
        ntbmsg_endpoint_options_init(&options);
        options.queues = 0;
        options.workers = 1;
        options.channels = 16;
        options.rx_mbufs = 512;
        if (rte_vdev_init("raw_plx_ntb0", arguments.c_str()) != 0 ||
            ntbmsg_endpoint_open("raw_plx_ntb0", &options, &endpoint) != 0 ||
            ntbmsg_cq_create(1024, nullptr, nullptr, &cq) != 0 ||
            ntbmsg_listener_open(port, 0, &listener) != 0 ||
            ntbmsg_endpoint_wait_connected(endpoint, 30'000) != 0)
            give_up("no endpoint");
        worker = ntbmsg_endpoint_worker(endpoint, 0);
    }
    void accept()
    {
        ntbmsg_request request;
        while (ntbmsg_listener_poll(listener, worker, &request) != 1)
            ntbmsg_worker_poll(worker);
        ntbmsg_channel_options options;
        ntbmsg_channel_options_init(&options);
        options.credit_bytes = 1 << 20; // for long messages
        options.cq = cq;
        ntbmsg_region *served = nullptr, *direct = nullptr;
        if (ntbmsg_channel_accept(&request, &options, &channel) != 0 ||
            ntbmsg_region_register(endpoint, memory.data(), memory.size(), 7, &served) != 0 ||
            ntbmsg_region_alloc(endpoint, 1 << 20, 7, &direct) != 0 ||
            ntbmsg_region_token_get(served, &tokens[0]) != 0 ||
            ntbmsg_region_token_get(direct, &tokens[1]) != 0)
            give_up("no channel");
    }
    void tell_tokens()
    {
        rte_mbuf *m = rte_pktmbuf_alloc(ntbmsg_endpoint_pool(endpoint));
        std::memcpy(rte_pktmbuf_append(m, sizeof(tokens)), tokens, sizeof(tokens));
        while (ntbmsg_channel_send_burst(channel, &m, nullptr, 1) == 0)
            ntbmsg_worker_poll(worker);
    }
    /// The first message is a token; all others are dropped.
    void receive()
    {
        rte_mbuf *m = nullptr;
        if (ntbmsg_channel_recv_burst(channel, &m, nullptr, 1) != 1)
            return;
        ntbmsg_region_token token;
        if (remote == nullptr && m->data_len == sizeof(token)) {
            std::memcpy(&token, rte_pktmbuf_mtod(m, void *), sizeof(token));
            if (ntbmsg_remote_open(channel, &token, &remote) != 0)
                give_up("no remote");
        }
        rte_pktmbuf_free(m);
    }
    void post(unsigned number)
    {
        const ntbmsg_sge sge{own.data(), static_cast<uint32_t>(number * 977 % own.size()), 0};
        ntbmsg_work w{};
        w.remote = remote;
        w.sges = &sge;
        w.sge_count = 1;
        w.op = static_cast<uint8_t>(number % 2 == 0 ? NTBMSG_OP_WRITE_IMM : NTBMSG_OP_READ);
        w.flags = NTBMSG_WORK_SIGNAL;
        ntbmsg_channel_post_burst(channel, &w, 1);
    }
};

} // namespace

int main(int argc, char **argv)
{
    if (argc != 2)
        give_up("one argument, the cable");
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(life_s);
    std::vector<std::string> arguments =
        test::eal_arguments("peer", test::huge_pages_granted(), 256);
    std::vector<char *> pointers;
    for (std::string &argument : arguments)
        pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    if (rte_eal_init(static_cast<int>(arguments.size()), pointers.data()) < 0)
        give_up("EAL did not start");
    Peer peer;
    peer.open(argv[1]);
    peer.accept();
    peer.tell_tokens();
    for (unsigned number = 0;; ++number) {
        peer.receive();
        ntbmsg_worker_poll(peer.worker);
        ntbmsg_completion done[32];
        ntbmsg_cq_poll(peer.cq, done, 32);
        if (peer.remote != nullptr)
            peer.post(number);
    }
}

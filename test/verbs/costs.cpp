// SPDX-License-Identifier: BSD-3-Clause
// What bench/gate/instructions.py runs under valgrind's callgrind: the calls of two programs that
// answer each other, over a connection of a daemon in this process. Each case alone is collected,
// and a line says how many messages its counts were for. Both ends are one thread, which owns the
// lock of both engines, and time stands still, so each run does the same.
#include "../daemon/hosts.hpp"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include <valgrind/callgrind.h>

#include "api/attach.hpp"
#include "engine/lock.hpp"
#include "ntbv.h"
#include "port/connection.hpp"

using namespace ntb::verbs;

namespace
{

using ntbd::test::await;

// The first rounds are not counted: keys, rings and the lock come to rest in them. Each 256th poll
// goes the whole way, so the others are a number of such turns.
constexpr unsigned warm_up = 2 * Lock::calls_of_an_owner;
constexpr unsigned rounds = 1024;
constexpr unsigned most = 16; // of a burst
constexpr int skipped = 77;

void need(bool good, const char *what)
{
    if (good)
        return;
    std::fprintf(stderr, "verbs_costs: %s\n", what);
    std::exit(EXIT_FAILURE);
}

std::uint64_t stopped_clock(void *)
{
    return 1;
}

unsigned calls_counted;

/// Counts what @p call executes, when @p counted says so.
template <class Call>
int collect(bool counted, Call call)
{
    if (!counted)
        return call();
    ++calls_counted;
    CALLGRIND_TOGGLE_COLLECT;
    const int got = call();
    CALLGRIND_TOGGLE_COLLECT;
    return got;
}

void begin()
{
    calls_counted = 0;
    CALLGRIND_ZERO_STATS;
}

void finish(const char *name, unsigned messages)
{
    CALLGRIND_DUMP_STATS_AT(name);
    std::printf("%s %u %u\n", name, calls_counted, messages);
}

/// What it takes to begin and to end a count, which is in the count of each call.
void run_nothing()
{
    begin();
    for (unsigned i = 0; i < rounds; ++i)
        collect(true, [] { return 0; });
    finish("nothing", rounds);
}

/// One end, as a program has it: a queue for each kind of completion.
struct Side {
    ntbv_engine *engine = nullptr;
    ntbv_pd *pd = nullptr;
    ntbv_cq *sent = nullptr, *received = nullptr;
    ntbv_qp *qp = nullptr;
    alignas(64) std::array<std::uint8_t, 4096> data{};
    std::uint32_t key = 0;

    explicit Side(std::uint16_t lid)
    {
        engine = ntbv_engine_create(lid, 0, stopped_clock, nullptr);
        need(engine && ntbv_pd_create(engine, &pd) == 0 &&
                 ntbv_cq_create(engine, 256, nullptr, 0, &sent) == 0 &&
                 ntbv_cq_create(engine, 256, nullptr, 0, &received) == 0 &&
                 ntbv_mr_register(pd, data.data(), data.size(), address(),
                                  NTBV_LOCAL_WRITE | NTBV_REMOTE_WRITE | NTBV_REMOTE_READ,
                                  &key) == 0,
             "no engine");
        ntbv_qp_init init = {};
        init.type = NTBV_RC;
        init.send_cq = sent;
        init.recv_cq = received;
        init.max_send_wr = init.max_recv_wr = 128;
        init.max_send_sge = init.max_recv_sge = 1;
        init.signal_all = 1;
        need(ntbv_qp_create(pd, &init, &qp) == 0, "no queue pair");
    }
    ~Side()
    {
        ntbv_qp_destroy(qp);
        ntbv_mr_deregister(pd, key);
        ntbv_cq_destroy(sent);
        ntbv_cq_destroy(received);
        ntbv_pd_destroy(pd);
        ntbv_engine_destroy(engine);
    }
    Side(const Side &) = delete;
    Side &operator=(const Side &) = delete;

    std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(data.data()); }
    void join(const Side &peer, std::uint16_t lid)
    {
        ntbv_qp_attr attr = {};
        attr.port = 1;
        attr.path_mtu = 5;
        attr.access = NTBV_REMOTE_WRITE | NTBV_REMOTE_READ;
        attr.dest_lid = lid;
        attr.dest_qpn = ntbv_qp_number(peer.qp);
        attr.max_dest_rd_atomic = attr.max_rd_atomic = 1;
        constexpr unsigned masks[] = {NTBV_QP_PKEY_INDEX | NTBV_QP_PORT | NTBV_QP_ACCESS,
                                      NTBV_QP_AV | NTBV_QP_PATH_MTU | NTBV_QP_DEST_QPN |
                                          NTBV_QP_RQ_PSN | NTBV_QP_MAX_DEST_RD_ATOMIC |
                                          NTBV_QP_MIN_RNR_TIMER,
                                      NTBV_QP_SQ_PSN | NTBV_QP_TIMEOUT | NTBV_QP_RETRY_CNT |
                                          NTBV_QP_RNR_RETRY | NTBV_QP_MAX_RD_ATOMIC};
        for (unsigned i = 0; i < 3; ++i) {
            attr.state = static_cast<ntbv_qp_state>(NTBV_INIT + i);
            need(ntbv_qp_modify(qp, &attr, NTBV_QP_STATE | masks[i]) == 0, "no connection");
        }
    }
    int post_receive(bool counted)
    {
        const ntbv_sge piece = {address(), 64, key};
        ntbv_recv_wr wr = {};
        wr.sge = &piece;
        wr.n_sge = 1;
        const ntbv_recv_wr *bad;
        return collect(counted, [&] { return ntbv_qp_post_recv(qp, &wr, &bad); });
    }
    /// A list of @p n requests.
    int post(bool counted, ntbv_opcode opcode, std::uint32_t bytes, unsigned n, const Side &peer)
    {
        const ntbv_sge piece = {address(), bytes, key};
        ntbv_send_wr wrs[most] = {};
        for (unsigned i = 0; i < n; ++i) {
            wrs[i].next = i + 1 < n ? &wrs[i + 1] : nullptr;
            wrs[i].sge = &piece;
            wrs[i].n_sge = 1;
            wrs[i].opcode = opcode;
            wrs[i].remote_address = peer.address();
            wrs[i].remote_key = peer.key;
        }
        const ntbv_send_wr *bad;
        return collect(counted, [&] { return ntbv_qp_post_send(qp, wrs, &bad); });
    }
    /// One poll. @return completions, all of which are good
    static int poll(bool counted, ntbv_cq *cq)
    {
        ntbv_wc wcs[most];
        const int got =
            collect(counted, [&] { return ntbv_cq_poll(cq, static_cast<int>(most), wcs); });
        for (int i = 0; i < got; ++i)
            need(wcs[i].status == NTBV_SUCCESS, "a completion is not good");
        return got;
    }
};

/// What is counted of a round.
enum class What { Post, PostReceive, PollMessage, PollNothing, PollThere, Serve, Complete };

struct Two {
    ntbd::test::Folder folder;
    ntbd::test::Daemon daemon{folder.path + "/d.sock"};
    ntbclient *client = nullptr;
    std::unique_ptr<Connection> ports[2];
    std::unique_ptr<Side> sides[2];

    Two()
    {
        daemon.start();
        need(ntbclient_attach(daemon.config.socket.c_str(), &client) == 0, "no daemon");
        ntbclient_options options;
        ntbclient_options_init(&options);
        options.local = 1;
        ntbclient_listener *listener = nullptr;
        ntbclient_conn *conns[2] = {};
        need(ntbclient_listen(client, "costs", &options, &listener) == 0 &&
                 ntbclient_connect(client, "costs", &options, &conns[0]) == 0 &&
                 await([&] { return ntbclient_accept(listener, &conns[1]) == 0; }) &&
                 ntbclient_wait(conns[0], NTBCLIENT_WRITABLE, ntbd::test::long_ms) ==
                     int{NTBCLIENT_WRITABLE},
             "no connection");
        ntbclient_listener_close(listener);
        for (unsigned i = 0; i < 2; ++i) {
            ports[i] = Connection::create(conns[i]);
            sides[i] = std::make_unique<Side>(static_cast<std::uint16_t>(1 + i));
            const auto peer = static_cast<std::uint16_t>(2 - i);
            need(ports[i] && attach(*sides[i]->engine, *ports[i], make_address(peer, 0)) == 0,
                 "no port");
        }
        for (unsigned i = 0; i < 2; ++i)
            sides[i]->join(*sides[1 - i], static_cast<std::uint16_t>(2 - i));
        for (unsigned i = 0; i < 10; ++i) // who is there
            for (auto &side : sides)
                ntbv_engine_drive(side->engine);
    }
    ~Two()
    {
        for (auto &side : sides)
            side.reset();
        for (auto &port : ports)
            port.reset();
        ntbclient_detach(client);
    }
    Two(const Two &) = delete;
    Two &operator=(const Two &) = delete;

    /// Two programs that answer each SEND of 8 bytes by one, and poll once in vain before.
    void run_answers(const char *name, What what)
    {
        begin();
        for (unsigned i = 0; i < warm_up + rounds; ++i) {
            const auto is = [&](What one) { return i >= warm_up && what == one; };
            Side &from = *sides[i % 2], &to = *sides[1 - i % 2];
            need(Side::poll(is(What::PollNothing), to.received) == 0, "a message from nowhere");
            need(to.post_receive(is(What::PostReceive)) == 0, "no receive");
            need(from.post(is(What::Post), NTBV_SEND, 8, 1, to) == 0, "no post");
            need(Side::poll(is(What::PollMessage), to.received) == 1, "no message");
            // Its own request before, which the message has acknowledged.
            need(Side::poll(is(What::PollThere), to.sent) == 1 || i == 0, "no acknowledgement");
        }
        finish(name, rounds);
        // The last one has no answer.
        while (Side::poll(false, sides[0]->sent) + Side::poll(false, sides[1]->sent) == 0) {
        }
    }
    /// Bursts of SENDs of 64 bytes to one end, which has posted a receive for each.
    void run_bursts(const char *name, What what)
    {
        Side &from = *sides[0], &to = *sides[1];
        begin();
        for (unsigned i = 0; i < warm_up + rounds; ++i) {
            const auto is = [&](What one) { return i >= warm_up && what == one; };
            for (unsigned n = 0; n < most; ++n)
                need(to.post_receive(is(What::PostReceive)) == 0, "no receive");
            need(from.post(is(What::Post), NTBV_SEND, 64, most, to) == 0, "no post");
            for (unsigned got = 0; got < most;)
                got += static_cast<unsigned>(Side::poll(is(What::PollMessage), to.received));
            need(Side::poll(is(What::PollMessage), to.received) == 0, "more than were sent");
            for (unsigned got = 0; got < most;)
                got += static_cast<unsigned>(Side::poll(is(What::Complete), from.sent));
        }
        finish(name, rounds * most);
    }
    /// One request at a time, which the peer's program carries out as it polls.
    void run_alone(const char *name, ntbv_opcode opcode, What what)
    {
        Side &from = *sides[0], &to = *sides[1];
        begin();
        for (unsigned i = 0; i < warm_up + rounds; ++i) {
            const auto is = [&](What one) { return i >= warm_up && what == one; };
            need(from.post(is(What::Post), opcode, 8, 1, to) == 0, "no post");
            need(Side::poll(is(What::Serve), to.received) == 0, "a message from nowhere");
            need(Side::poll(is(What::Complete), from.sent) == 1, "no completion");
        }
        finish(name, rounds);
    }
};

/// What the counts depend on, beside the code: they are compared only where these are the same.
void describe()
{
    std::printf("# compiler g++ %s\n", __VERSION__);
    // Of the C library's copies.
    std::printf("# variant %s\n", __builtin_cpu_supports("avx2") ? "avx2" : "sse2");
#ifdef NDEBUG
    std::printf("# build %s\n", GATE_BUILD);
#else
    std::printf("# build %s, asserts\n", GATE_BUILD);
#endif
}

} // namespace

int main()
{
    if (!Kernel::prepare()) {
        std::puts("no membarrier(2), without which no thread owns a lock");
        return skipped;
    }
    Two two;
    describe();
    run_nothing();
    two.run_answers("send.8x1.post", What::Post);
    two.run_answers("send.8x1.post_recv", What::PostReceive);
    two.run_answers("send.8x1.poll", What::PollMessage);
    two.run_answers("send.8x1.poll.there", What::PollThere);
    two.run_answers("poll.nothing", What::PollNothing);
    two.run_bursts("send.64x16.post", What::Post);
    two.run_bursts("send.64x16.post_recv", What::PostReceive);
    two.run_bursts("send.64x16.poll", What::PollMessage);
    two.run_bursts("send.64x16.complete", What::Complete);
    two.run_alone("write.8x1.post", NTBV_WRITE, What::Post);
    two.run_alone("write.8x1.serve", NTBV_WRITE, What::Serve);
    two.run_alone("write.8x1.complete", NTBV_WRITE, What::Complete);
    two.run_alone("read.8x1.post", NTBV_READ, What::Post);
    two.run_alone("read.8x1.serve", NTBV_READ, What::Serve);
    two.run_alone("read.8x1.complete", NTBV_READ, What::Complete);
    return EXIT_SUCCESS;
}

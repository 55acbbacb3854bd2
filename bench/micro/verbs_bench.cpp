// SPDX-License-Identifier: BSD-3-Clause
// What the calls of the verbs engine compute, with both ends in one thread: no line goes from one
// CPU to another, and no daemon is there.
#include <benchmark/benchmark.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <thread>

#include <unistd.h>

#include "api/attach.hpp"
#include "ntbv.h"
#include "port/loopback.hpp"

using namespace ntb::verbs;

namespace
{

void need(bool good)
{
    if (!good)
        std::abort();
}

/// As a program with a network has one: in a process with a single thread the C library spares the
/// locked instructions of a mutex.
void have_another_thread()
{
    static const bool had = [] {
        std::thread([] {
            for (;;)
                pause();
        }).detach();
        return true;
    }();
    need(had);
}

struct Side {
    ntbv_engine *engine = nullptr;
    ntbv_pd *pd = nullptr;
    ntbv_cq *cq = nullptr;
    ntbv_qp *qp = nullptr;
    std::array<std::uint8_t, 4096> data{};
    std::uint32_t key = 0;

    Side(std::uint16_t lid, ntbv_qp_type type)
    {
        engine = ntbv_engine_create(lid, 0, nullptr, nullptr);
        need(engine && ntbv_pd_create(engine, &pd) == 0 &&
             ntbv_cq_create(engine, 256, nullptr, 0, &cq) == 0);
        need(ntbv_mr_register(pd, data.data(), data.size(), address(),
                              NTBV_LOCAL_WRITE | NTBV_REMOTE_WRITE, &key) == 0);
        ntbv_qp_init init = {};
        init.type = type;
        init.send_cq = init.recv_cq = cq;
        init.max_send_wr = init.max_recv_wr = 128;
        init.max_send_sge = init.max_recv_sge = 1;
        init.signal_all = 1;
        need(ntbv_qp_create(pd, &init, &qp) == 0);
    }
    ~Side()
    {
        ntbv_qp_destroy(qp);
        ntbv_mr_deregister(pd, key);
        ntbv_cq_destroy(cq);
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
        attr.access = NTBV_REMOTE_WRITE;
        attr.state = NTBV_INIT;
        need(ntbv_qp_modify(qp, &attr,
                            NTBV_QP_STATE | NTBV_QP_PKEY_INDEX | NTBV_QP_PORT | NTBV_QP_ACCESS) ==
             0);
        attr.state = NTBV_RTR;
        attr.dest_lid = lid;
        attr.dest_qpn = ntbv_qp_number(peer.qp);
        attr.max_dest_rd_atomic = attr.max_rd_atomic = 1;
        need(ntbv_qp_modify(qp, &attr,
                            NTBV_QP_STATE | NTBV_QP_AV | NTBV_QP_PATH_MTU | NTBV_QP_DEST_QPN |
                                NTBV_QP_RQ_PSN | NTBV_QP_MAX_DEST_RD_ATOMIC |
                                NTBV_QP_MIN_RNR_TIMER) == 0);
        attr.state = NTBV_RTS;
        need(ntbv_qp_modify(qp, &attr,
                            NTBV_QP_STATE | NTBV_QP_SQ_PSN | NTBV_QP_TIMEOUT | NTBV_QP_RETRY_CNT |
                                NTBV_QP_RNR_RETRY | NTBV_QP_MAX_RD_ATOMIC) == 0);
    }
    void post_recv()
    {
        const ntbv_sge piece = {address(), static_cast<std::uint32_t>(data.size()), key};
        ntbv_recv_wr wr = {};
        wr.sge = &piece;
        wr.n_sge = 1;
        const ntbv_recv_wr *bad;
        need(ntbv_qp_post_recv(qp, &wr, &bad) == 0);
    }
    void post(ntbv_opcode opcode, std::uint32_t bytes, const Side &peer)
    {
        const ntbv_sge piece = {address(), bytes, key};
        ntbv_send_wr wr = {};
        wr.sge = &piece;
        wr.n_sge = 1;
        wr.opcode = opcode;
        wr.remote_address = peer.address();
        wr.remote_key = peer.key;
        const ntbv_send_wr *bad;
        need(ntbv_qp_post_send(qp, &wr, &bad) == 0);
    }
    void await(std::uint32_t n)
    {
        while (n != 0) {
            ntbv_wc wc[16];
            const int got = ntbv_cq_poll(cq, 16, wc);
            need(got >= 0);
            for (int i = 0; i < got; ++i)
                need(wc[i].status == NTBV_SUCCESS);
            n -= static_cast<std::uint32_t>(got);
        }
    }
};

struct Two {
    std::unique_ptr<Loopback> port = Loopback::create(1 << 16);
    Side a, b;

    explicit Two(ntbv_qp_type type = NTBV_RC) : a(1, type), b(2, type)
    {
        have_another_thread();
        need(port && attach(*a.engine, port->end(0), make_address(2, 0)) == 0 &&
             attach(*b.engine, port->end(1), make_address(1, 0)) == 0);
        a.join(b, 2);
        b.join(a, 1);
        // The first ones find out who is there.
        for (int i = 0; i < 10; ++i) {
            ntbv_engine_drive(a.engine);
            ntbv_engine_drive(b.engine);
        }
    }
};

// A SEND with its receive, its acknowledgement and both completions.
void send(benchmark::State &state)
{
    Two two;
    for ([[maybe_unused]] auto _ : state) {
        two.b.post_recv();
        two.a.post(NTBV_SEND, static_cast<std::uint32_t>(state.range(0)), two.b);
        two.b.await(1);
        two.a.await(1);
    }
}
BENCHMARK(send)->Arg(8)->Arg(64)->Arg(4096);

// There and back, by two programs that answer each SEND at once: two messages, with all calls of
// both ends.
void answers(benchmark::State &state)
{
    const auto bytes = static_cast<std::uint32_t>(state.range(0));
    Two two;
    const auto turn = [&](Side &own, const Side &peer, std::uint32_t completions) {
        own.await(completions);
        own.post_recv();
        own.post(NTBV_SEND, bytes, peer);
    };
    two.a.post_recv();
    two.b.post_recv();
    two.a.post(NTBV_SEND, bytes, two.b);
    turn(two.b, two.a, 1);
    for ([[maybe_unused]] auto _ : state) {
        turn(two.a, two.b, 2); // the answer, and that it was sent
        turn(two.b, two.a, 2);
    }
}
BENCHMARK(answers)->Arg(8)->Arg(64);

// A list of writes: posted one by one, carried out by the peer's engine, acknowledged together.
void writes(benchmark::State &state)
{
    constexpr std::uint32_t at_once = 64;
    Two two;
    for ([[maybe_unused]] auto _ : state) {
        for (std::uint32_t i = 0; i < at_once; ++i)
            two.a.post(NTBV_WRITE, static_cast<std::uint32_t>(state.range(0)), two.b);
        while (ntbv_engine_drive(two.b.engine) != 0) {
        }
        two.a.await(at_once);
    }
    state.SetItemsProcessed(state.iterations() * at_once);
}
BENCHMARK(writes)->Arg(64);

void poll_of_nothing(benchmark::State &state)
{
    const Two two;
    ntbv_wc wc;
    for ([[maybe_unused]] auto _ : state)
        need(ntbv_cq_poll(two.a.cq, 1, &wc) == 0);
}
BENCHMARK(poll_of_nothing);

} // namespace

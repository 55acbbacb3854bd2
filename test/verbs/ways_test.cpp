// SPDX-License-Identifier: BSD-3-Clause
// What comes alone to a program that polls is taken by a short way, and all else by the way of all
// messages. Two engines that are told the same, one of which always goes the latter, come to the
// same end, whatever a peer says.
#include <algorithm>
#include <random>

#include "hosts.hpp"
#include "queue/pair.hpp"
#include "wire/message.hpp"

namespace
{

using namespace verbs_test;
using namespace ntb::verbs;

constexpr std::uint32_t peer_number = 0x777;
constexpr std::uint32_t entries = 16; // of completion queues, which overrun now and then

/// An engine whose peer is the test, and what a program knows of it.
struct Told {
    // To the peer, and to one that no queue pair is connected to.
    std::unique_ptr<Loopback> loopback = Loopback::create(1 << 16),
                              other = Loopback::create(1 << 16);
    Clock clock;
    Host host{1, clock, entries};
    ntbv_cq *empty = nullptr; // of no queue pair
    ntbv_srq *srq = nullptr;
    Memory memory{host.pd, 4096}, closed{host.pd, 256, 0};
    std::vector<ntbv_qp *> qps;

    explicit Told(bool has_other)
    {
        EXPECT_EQ(host.attach(loopback->end(0), 2), 0);
        EXPECT_EQ(ntbv_cq_create(host.engine, entries, nullptr, 3, &empty), 0);
        EXPECT_EQ(ntbv_srq_create(host.pd, 16, 4, 0, 4, &srq), 0);
        qps = {host.make(NTBV_RC, nullptr, 16), host.make(NTBV_RC, nullptr, 16, true),
               host.make(NTBV_RC, srq, 16), host.make(NTBV_UC, nullptr, 16)};
        for (ntbv_qp *qp : qps)
            to_peer(qp, qp == qps[3] ? NTBV_UC : NTBV_RC, 2, peer_number);
        greet(*loopback, 2);
        if (has_other) {
            EXPECT_EQ(host.attach(other->end(0), 3), 0);
            greet(*other, 3);
        }
        rest();
    }
    ~Told()
    {
        for (ntbv_qp *qp : qps)
            host.drop(qp);
        EXPECT_EQ(ntbv_srq_destroy(srq), 0);
        EXPECT_EQ(ntbv_cq_destroy(empty), 0);
    }
    static void say(Loopback &way, const Header &header, const void *payload)
    {
        const auto head = static_cast<std::uint32_t>(sizeof(header));
        std::byte *message = way.end(1).reserve(head + header.bytes);
        ASSERT_NE(message, nullptr);
        std::memcpy(message, &header, head);
        std::memcpy(message + head, payload, header.bytes);
        way.end(1).commit(head + header.bytes);
    }
    static void greet(Loopback &way, std::uint16_t lid)
    {
        const Hello hello = {hello_magic, wire_version, way.end(1).longest(), make_address(lid, 0),
                             0};
        say(way, {.kind = Kind::Hello, .bytes = sizeof(hello), .total = sizeof(hello)}, &hello);
    }
    /// As a program that polls: what it has left undone is found by rest().
    void poll()
    {
        ntbv_wc wc;
        EXPECT_EQ(ntbv_cq_poll(empty, 1, &wc), 0);
    }
    void rest()
    {
        while (ntbv_engine_drive(host.engine) != 0) {
        }
    }
    std::vector<Header> heard()
    {
        std::vector<Header> all;
        for (Port *port : {&loopback->end(1), &other->end(1)})
            for (Port::Incoming message; port->receive(message); port->release()) {
                Header header;
                EXPECT_TRUE(read_header(message.data, message.bytes, header));
                all.push_back(header);
            }
        return all;
    }
    std::vector<ntbv_wc> taken(ntbv_cq *cq, int n) const
    {
        std::vector<ntbv_wc> wc(static_cast<std::size_t>(n));
        const int got = ntbv_cq_poll(cq, n, wc.data());
        EXPECT_GE(got, -EIO);
        wc.resize(static_cast<std::size_t>(std::max(got, 0)));
        return wc;
    }
};

bool are_same(const ntbv_wc &one, const ntbv_wc &two)
{
    return one.id == two.id && one.status == two.status && one.opcode == two.opcode &&
           one.bytes == two.bytes && one.imm == two.imm && one.qpn == two.qpn &&
           one.flags == two.flags;
}

class Ways : public testing::TestWithParam<int>
{
protected:
    std::uint32_t any(std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); }
    bool one_in(std::uint32_t n) { return any(n) == 0; }
    template <typename Do>
    void both(Do what)
    {
        what(*plain);
        what(*polled);
    }
    /// To one that is as little out of order as can be, most often.
    void say_something()
    {
        const std::uint32_t which = any(4);
        const ntbv_qp &qp = *plain->qps[which];
        constexpr Kind others[] = {Kind::Write, Kind::Read, Kind::Ack, Kind::Nak, Kind::Rnr};
        const Kind kind = one_in(10) ? others[any(5)] : Kind::Send;
        const bool has_data = kind == Kind::Send || kind == Kind::Write;
        const std::uint32_t bytes = !has_data || one_in(8) ? 0 : 1 + any(100);
        Header header = {.kind = kind,
                         .flags = flag::last,
                         .to = ntbv_qp_number(plain->qps[which]),
                         .from = one_in(50) ? peer_number + 1 : peer_number,
                         .seq = qp.receive.expected + (one_in(10) ? any(3) - 1 : 0),
                         .bytes = bytes,
                         .offset = 0,
                         .total = bytes,
                         .value = any(1000),
                         .ack = qp.send.next_seq - 1 + (one_in(6) ? any(3) - 1 : 0),
                         .address = 0};
        if (one_in(3))
            header.flags |= one_in(2) ? flag::immediate : flag::solicited;
        if (kind == Kind::Send && one_in(20))
            header.flags = flag::last | flag::invalidate;
        if (one_in(2))
            header.flags |= flag::ack;
        if (has_data && bytes != 0 && one_in(30)) { // a part of a request
            header.flags &= static_cast<std::uint8_t>(~flag::last);
            header.total += 1 + any(100);
            if (one_in(2)) {
                header.offset = header.total - bytes;
                header.flags |= flag::last;
            }
        }
        if (one_in(20))
            header.to += any(3);
        if (one_in(1000))
            header.total = any(200);
        if (one_in(1000))
            header.flags ^= static_cast<std::uint8_t>(1u << any(8));
        const bool by_other = has_other && one_in(20);
        const auto way = [&](Told &told) {
            return by_other ? told.other.get() : told.loopback.get();
        };
        std::uint8_t payload[256];
        for (std::uint8_t &byte : payload)
            byte = static_cast<std::uint8_t>(random());
        both([&](Told &told) { Told::say(*way(told), header, payload); });
        if (one_in(3)) { // and another one behind it
            ++header.seq;
            both([&](Told &told) { Told::say(*way(told), header, payload); });
        }
    }
    void receive_something()
    {
        const std::uint32_t which = any(4), shape = any(40), id = any(1000);
        both([&](Told &told) {
            ntbv_sge piece[2] = {told.memory.piece(any_of(id) % 4000, shape == 0 ? 4 : 96),
                                 told.memory.piece(0, 50)};
            if (shape == 1)
                piece[0].key ^= 1;
            if (shape == 2)
                piece[0] = told.closed.piece(0, 200);
            ntbv_recv_wr wr = {id, nullptr, piece, shape == 3 ? 2 : shape == 4 ? 0 : 1};
            const ntbv_recv_wr *bad;
            for (int n = 0; n < (shape < 5 ? 1 : 3); ++n)
                if (which == 2)
                    ntbv_srq_post(told.srq, &wr, &bad);
                else
                    ntbv_qp_post_recv(told.qps[which], &wr, &bad);
        });
    }
    static std::uint32_t any_of(std::uint32_t id) { return id * 2654435761u >> 8; }
    void send_something()
    {
        const std::uint32_t which = any(4), id = any(1000);
        const bool reads = one_in(6), signals = !one_in(3);
        both([&](Told &told) {
            Work work(reads ? NTBV_READ : NTBV_SEND, id, told.memory.piece(0, 20),
                      signals ? unsigned{NTBV_SIGNALED} : 0u);
            work.wr.sge = &work.sge;
            const ntbv_send_wr *bad;
            ntbv_qp_post_send(told.qps[which], &work.wr, &bad);
        });
    }
    void change_state(std::uint32_t which)
    {
        if (state_of(plain->qps[which]) == NTBV_ERR || one_in(40)) {
            both([&](Told &told) {
                to_state(told.qps[which], NTBV_RESET);
                to_peer(told.qps[which], which == 3 ? NTBV_UC : NTBV_RC, 2, peer_number);
            });
        } else if (one_in(40)) {
            both([&](Told &told) { to_state(told.qps[which], NTBV_ERR); });
        } else if (one_in(4)) {
            both([&](Told &told) { to_state(told.qps[which], NTBV_SQD); });
        } else {
            both([&](Told &told) { to_state(told.qps[which], NTBV_RTS); });
        }
    }
    static void expect_same(const std::vector<ntbv_wc> &one, const std::vector<ntbv_wc> &two)
    {
        EXPECT_TRUE(std::equal(one.begin(), one.end(), two.begin(), two.end(), are_same));
    }
    /// All that a program and a peer see.
    void compare()
    {
        const auto heard = plain->heard();
        const auto also_heard = polled->heard();
        ASSERT_EQ(heard.size(), also_heard.size());
        for (std::size_t i = 0; i < heard.size(); ++i) {
            const Header &header = heard[i];
            EXPECT_EQ(std::memcmp(&header, &also_heard[i], sizeof(header)), 0)
                << i << ": " << int{static_cast<std::uint8_t>(header.kind)};
        }
        for (std::uint32_t which = 0; which < 4; ++which)
            EXPECT_EQ(state_of(plain->qps[which]), state_of(polled->qps[which])) << which;
        EXPECT_EQ(plain->host.events(), polled->host.events());
        EXPECT_EQ(plain->memory.bytes, polled->memory.bytes);
        EXPECT_EQ(plain->closed.bytes, polled->closed.bytes);
        EXPECT_EQ(plain->loopback->dead(), polled->loopback->dead());
        EXPECT_EQ(plain->other->dead(), polled->other->dead());
        if (one_in(3)) {
            const int n = static_cast<int>(1 + any(8));
            expect_same(plain->taken(plain->host.cq, n), polled->taken(polled->host.cq, n));
            expect_same(plain->taken(plain->host.recv_cq, n),
                        polled->taken(polled->host.recv_cq, n));
        }
    }

    std::mt19937 random;
    const bool has_other = GetParam() % 2 != 0;
    std::unique_ptr<Told> plain = std::make_unique<Told>(has_other),
                          polled = std::make_unique<Told>(has_other);
};

TEST_P(Ways, ComeToTheSameEnd)
{
    random.seed(static_cast<unsigned>(GetParam()));
    for (int step = 0;
         step < 1000 && !plain->loopback->dead() && !plain->other->dead() && !HasFailure();
         ++step) {
        // Calm, so that what comes is found by the peer's word.
        polled->poll();
        polled->poll();
        const std::uint32_t what = any(20);
        if (what < 8)
            say_something();
        else if (what < 16)
            receive_something();
        else if (what < 19)
            send_something();
        else
            change_state(any(4));
        for (std::uint32_t which = 0; which < 4; ++which)
            if (state_of(plain->qps[which]) == NTBV_ERR && one_in(8))
                change_state(which);
        polled->poll();
        both([](Told &told) { told.rest(); });
        compare();
    }
    both([](Told &told) {
        told.loopback->kill();
        told.other->kill();
    });
    both([](Told &told) {
        told.rest();
        told.clock.outlast_silence();
        told.rest();
    });
    compare();
}
INSTANTIATE_TEST_SUITE_P(Random, Ways, testing::Range(0, 200));

} // namespace

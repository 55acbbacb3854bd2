// SPDX-License-Identifier: BSD-3-Clause
// Two engines of one process, or one that is joined to itself, and what a verbs program needs.
#ifndef NTB_TEST_VERBS_HOSTS_HPP
#define NTB_TEST_VERBS_HOSTS_HPP

#include <atomic>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <vector>

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include "api/attach.hpp"
#include "ntbv.h"
#include "port/loopback.hpp"
#include "queue_pairs.hpp"

namespace verbs_test
{

struct Clock {
    std::atomic<std::uint64_t> time{1000};
    static std::uint64_t read(void *context) { return static_cast<Clock *>(context)->time; }
    void advance_us(std::uint64_t microseconds) { time += microseconds * 1000; }
    /// Longer than a lost peer is waited for.
    void outlast_silence() { advance_us(1000000); }
};

/// Registered bytes.
struct Memory {
    std::vector<std::uint8_t> bytes;
    ntbv_pd *pd;
    std::uint32_t key = 0;

    Memory(ntbv_pd *domain, std::size_t n, unsigned rights = all_rights, std::uint8_t fill = 0)
        : bytes(n, fill), pd(domain)
    {
        EXPECT_EQ(ntbv_mr_register(pd, bytes.data(), n, address(), rights, &key), 0);
    }
    ~Memory()
    {
        if (key != 0)
            ntbv_mr_deregister(pd, key);
    }
    Memory(const Memory &) = delete;
    Memory &operator=(const Memory &) = delete;
    std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(bytes.data()); }
    ntbv_sge piece(std::size_t offset, std::size_t length) const
    {
        return {address() + offset, static_cast<std::uint32_t>(length), key};
    }
    ntbv_sge all() const { return piece(0, bytes.size()); }
    void count_up()
    {
        for (std::size_t i = 0; i < bytes.size(); ++i)
            bytes[i] = static_cast<std::uint8_t>(i * 7 + (i >> 8));
    }
};

struct Host {
    ntbv_engine *engine = nullptr;
    ntbv_pd *pd = nullptr;
    ntbv_channel *channel = nullptr;
    ntbv_cq *cq = nullptr, *recv_cq = nullptr;
    std::vector<ntbv_qp *> qps;

    Host(std::uint16_t lid, Clock &clock, std::uint32_t entries = 4096)
    {
        engine = ntbv_engine_create(lid, 0, Clock::read, &clock);
        EXPECT_NE(engine, nullptr);
        EXPECT_EQ(ntbv_pd_create(engine, &pd), 0);
        EXPECT_EQ(ntbv_channel_create(engine, &channel), 0);
        EXPECT_EQ(ntbv_cq_create(engine, entries, channel, 1, &cq), 0);
        EXPECT_EQ(ntbv_cq_create(engine, entries, channel, 2, &recv_cq), 0);
    }
    ~Host()
    {
        for (ntbv_qp *qp : qps)
            EXPECT_EQ(ntbv_qp_destroy(qp), 0);
        EXPECT_EQ(ntbv_cq_destroy(cq), 0);
        EXPECT_EQ(ntbv_cq_destroy(recv_cq), 0);
        EXPECT_EQ(ntbv_channel_destroy(channel), 0);
        EXPECT_EQ(ntbv_pd_destroy(pd), 0);
        EXPECT_EQ(ntbv_engine_destroy(engine), 0);
    }
    Host(const Host &) = delete;
    Host &operator=(const Host &) = delete;

    /// To the first node of a host. @return as attach()
    int attach(ntb::verbs::Port &port, std::uint16_t lid)
    {
        return ntb::verbs::attach(*engine, port, ntb::verbs::make_address(lid, 0));
    }
    ntbv_qp *make(ntbv_qp_type type, ntbv_srq *srq = nullptr, std::uint32_t depth = 128,
                  bool signal_all = false)
    {
        ntbv_qp_init init = {};
        init.type = type;
        init.send_cq = cq;
        init.recv_cq = recv_cq;
        init.srq = srq;
        init.max_send_wr = init.max_recv_wr = depth;
        init.max_send_sge = init.max_recv_sge = 16;
        init.max_inline = 256;
        init.signal_all = signal_all;
        init.cookie = 100 + qps.size();
        ntbv_qp *qp = nullptr;
        EXPECT_EQ(ntbv_qp_create(pd, &init, &qp), 0);
        qps.push_back(qp);
        return qp;
    }
    void drop(ntbv_qp *qp)
    {
        std::erase(qps, qp);
        EXPECT_EQ(ntbv_qp_destroy(qp), 0);
    }
    /// Asynchronous events so far, as their types.
    std::vector<std::uint32_t> events()
    {
        std::vector<std::uint32_t> types;
        pollfd fd = {ntbv_engine_events(engine), POLLIN, 0};
        while (poll(&fd, 1, 0) == 1) {
            std::uint32_t record[4];
            EXPECT_EQ(read(fd.fd, record, sizeof(record)), 16);
            types.push_back(record[2]);
        }
        return types;
    }
    /// Completion events so far, as their cookies.
    std::vector<std::uint64_t> notifications()
    {
        std::vector<std::uint64_t> cookies;
        pollfd fd = {ntbv_channel_descriptor(channel), POLLIN, 0};
        while (poll(&fd, 1, 0) == 1) {
            std::uint64_t cookie;
            EXPECT_EQ(read(fd.fd, &cookie, sizeof(cookie)), 8);
            cookies.push_back(cookie);
        }
        return cookies;
    }
};

/// Connected to one at a host, with the usual attributes.
inline void to_peer(ntbv_qp *qp, ntbv_qp_type type, std::uint16_t lid, std::uint32_t number)
{
    ASSERT_EQ(to_init(qp, type), 0);
    ASSERT_EQ(to_rtr(qp, type, lid, number), 0);
    ASSERT_EQ(to_rts(qp, type), 0);
}

/// Drives engines until none has anything to do.
inline void come_to_rest(std::initializer_list<ntbv_engine *> engines, int most_turns)
{
    for (int turns = 0, done = 1; done != 0;) {
        done = 0;
        for (ntbv_engine *engine : engines)
            done += ntbv_engine_drive(engine);
        if (done != 0) {
            ASSERT_LT(++turns, most_turns) << "the engines never come to rest";
        }
    }
}

inline ntbv_qp_state state_of(ntbv_qp *qp)
{
    ntbv_qp_attr attr;
    EXPECT_EQ(ntbv_qp_query(qp, &attr), 0);
    return attr.state;
}

/// Two hosts, joined.
class Hosts : public testing::Test
{
protected:
    void SetUp() override { ASSERT_NO_FATAL_FAILURE(join()); }

    void join()
    {
        ASSERT_NE(loopback, nullptr);
        ASSERT_EQ(a.attach(loopback->end(0), 2), 0);
        ASSERT_EQ(b.attach(loopback->end(1), 1), 0);
    }
    /// Of two that have lost each other.
    void join_again()
    {
        lost.push_back(std::exchange(loopback, ntb::verbs::Loopback::create(1 << 16)));
        join();
    }

    void connect(ntbv_qp *one, ntbv_qp *two, ntbv_qp_type type, ntbv_qp_attr of_one = attributes(),
                 ntbv_qp_attr of_two = attributes())
    {
        of_one.sq_psn = of_two.rq_psn = 0xfffffe;
        of_two.sq_psn = of_one.rq_psn = 77;
        ASSERT_EQ(to_init(one, type, of_one), 0);
        ASSERT_EQ(to_init(two, type, of_two), 0);
        ASSERT_EQ(to_rtr(one, type, 2, ntbv_qp_number(two), of_one), 0);
        ASSERT_EQ(to_rtr(two, type, 1, ntbv_qp_number(one), of_two), 0);
        ASSERT_EQ(to_rts(one, type, of_one), 0);
        ASSERT_EQ(to_rts(two, type, of_two), 0);
    }
    void connect(ntbv_qp_type type, ntbv_qp_attr of_one = attributes(),
                 ntbv_qp_attr of_two = attributes())
    {
        qa = a.make(type);
        qb = b.make(type);
        connect(qa, qb, type, of_one, of_two);
    }
    /// Both engines, until neither has anything to do.
    void run() { come_to_rest({a.engine, b.engine}, 10000000); }
    std::vector<ntbv_wc> take(ntbv_cq *cq)
    {
        run();
        std::vector<ntbv_wc> all(4096);
        const int n = ntbv_cq_poll(cq, 4096, all.data());
        all.resize(static_cast<std::size_t>(n < 0 ? 0 : n));
        return all;
    }
    /// The only completion.
    ntbv_wc one(ntbv_cq *cq)
    {
        const std::vector<ntbv_wc> all = take(cq);
        EXPECT_EQ(all.size(), 1u);
        return all.empty() ? ntbv_wc{.id = ~0ull, .status = ~0u} : all[0];
    }
    void expect(ntbv_cq *cq, std::vector<std::pair<std::uint64_t, std::uint32_t>> id_and_status)
    {
        std::vector<std::pair<std::uint64_t, std::uint32_t>> got;
        for (const ntbv_wc &wc : take(cq))
            got.emplace_back(wc.id, wc.status);
        EXPECT_EQ(got, id_and_status);
    }

    Clock clock;
    std::vector<std::unique_ptr<ntb::verbs::Loopback>> lost; // ports outlive the engines
    std::unique_ptr<ntb::verbs::Loopback> loopback = ntb::verbs::Loopback::create(1 << 16);
    Host a{1, clock}, b{2, clock};
    ntbv_qp *qa = nullptr, *qb = nullptr;
};

} // namespace verbs_test

#endif

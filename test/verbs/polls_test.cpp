// SPDX-License-Identifier: BSD-3-Clause
// Polls of programs that have had nothing to do: they look at the words of their peers alone, and
// yet find all that there is.
#include <tuple>

#include "hosts.hpp"

namespace
{

using namespace verbs_test;

class Polls : public Hosts
{
protected:
    // More than there are between two that go the whole way.
    static constexpr int many = 260;

    /// @return completions, or a negative errno
    static int poll(ntbv_cq *cq, ntbv_wc *wc, int n = 1) { return ntbv_cq_poll(cq, n, wc); }
    static int polls_until_one(ntbv_cq *cq, ntbv_wc &wc)
    {
        for (int n = 1; n <= 1000; ++n)
            if (poll(cq, &wc) == 1)
                return n;
        return 1000;
    }
    /// Each time after one vain poll more than the time before.
    template <typename Body>
    void after_vain_polls_of(ntbv_cq *cq, Body body)
    {
        ntbv_wc wc;
        for (int vain = 2; vain < many; ++vain) {
            for (int i = 0; i < vain; ++i)
                ASSERT_EQ(poll(cq, &wc), 0);
            ASSERT_NO_FATAL_FAILURE(body()) << vain;
        }
    }
};

TEST_F(Polls, FindAtOnceWhatThePeerSends)
{
    connect(NTBV_RC);
    run();
    after_vain_polls_of(b.recv_cq, [&] {
        ASSERT_EQ(post_recv(qb, 1), 0);
        ASSERT_EQ(Work(NTBV_SEND, 2, {}, 0).post(qa), 0);
        ntbv_wc wc;
        ASSERT_EQ(poll(b.recv_cq, &wc), 1);
        EXPECT_EQ(wc.id, 1u);
        EXPECT_EQ(wc.status, NTBV_SUCCESS);
        run();
    });
}

TEST_F(Polls, FindAtOnceWhatTheirEngineSendsItself)
{
    const auto itself = ntb::verbs::Loopback::create(1 << 16);
    Host host(3, clock);
    ASSERT_EQ(host.attach(itself->end(0), 3), 0);
    ASSERT_EQ(host.attach(itself->end(1), 3), 0);
    ntbv_qp *const from = host.make(NTBV_RC), *const to = host.make(NTBV_RC);
    to_peer(from, NTBV_RC, 3, ntbv_qp_number(to));
    to_peer(to, NTBV_RC, 3, ntbv_qp_number(from));
    for (int i = 0; i < 10; ++i)
        ntbv_engine_drive(host.engine);
    after_vain_polls_of(host.recv_cq, [&] {
        ASSERT_EQ(post_recv(to, 1), 0);
        ASSERT_EQ(Work(NTBV_SEND, 2).post(from), 0);
        ntbv_wc wc;
        ASSERT_EQ(poll(host.recv_cq, &wc), 1);
        EXPECT_EQ(wc.id, 1u);
        EXPECT_LE(polls_until_one(host.cq, wc), 2) << "the acknowledgement";
        EXPECT_EQ(wc.id, 2u);
        ASSERT_EQ(poll(host.recv_cq, &wc), 0);
    });
}

TEST_F(Polls, RunTheTimersOfWhatWaits)
{
    connect(NTBV_RC);
    run();
    ntbv_wc wc;
    // No receive is there at first.
    after_vain_polls_of(a.cq, [&] {
        ASSERT_EQ(Work(NTBV_SEND, 2).post(qa), 0);
        ASSERT_EQ(poll(b.recv_cq, &wc), 0);
        for (int i = 0; i < 3; ++i)
            ASSERT_EQ(poll(a.cq, &wc), 0);
        loopback->hold(1, true); // nor does it hear that there is one
        ASSERT_EQ(post_recv(qb, 1), 0);
        ASSERT_EQ(poll(b.recv_cq, &wc), 0);
        ASSERT_EQ(poll(a.cq, &wc), 0);
        clock.advance_us(1000);
        ASSERT_EQ(poll(a.cq, &wc), 0) << "it is sent again";
        ASSERT_EQ(poll(b.recv_cq, &wc), 1);
        loopback->hold(1, false);
        run();
        ASSERT_EQ(poll(a.cq, &wc), 1);
        EXPECT_EQ(wc.status, NTBV_SUCCESS);
    });
}

TEST_F(Polls, MeetANewPeerAtOnce)
{
    ntbv_wc wc;
    connect(NTBV_RC);
    run();
    for (int i = 0; i < 5; ++i)
        ASSERT_EQ(poll(a.cq, &wc), 0);
    const auto way = ntb::verbs::Loopback::create(1 << 16);
    Host c(3, clock);
    ASSERT_EQ(a.attach(way->end(0), 3), 0);
    ASSERT_EQ(c.attach(way->end(1), 1), 0);
    ASSERT_EQ(poll(a.cq, &wc), 0); // the greeting goes
    ntb::verbs::Port::Incoming message;
    EXPECT_TRUE(way->end(1).receive(message));
}

TEST_F(Polls, FindThatThePeerIsGoneWhileNoWordSaysSo)
{
    connect(NTBV_RC);
    run();
    ntbv_wc wc;
    ASSERT_EQ(Work(NTBV_SEND, 2).post(qa), 0);
    for (int i = 0; i < 5; ++i)
        ASSERT_EQ(poll(a.cq, &wc), 0);
    loopback->kill();
    for (int i = 0; i < many; ++i)
        ASSERT_EQ(poll(a.cq, &wc), 0);
    clock.outlast_silence();
    EXPECT_LE(polls_until_one(a.cq, wc), 2);
    EXPECT_EQ(wc.status, NTBV_RETRY_EXC_ERR);
}

// A poll that sees one peer's word move serves that link alone; the other has to get its turn. An
// unreliable connection owes no acknowledgement, which would send the next poll the whole way.
class PollsOfTwoPeers : public Polls
{
protected:
    void SetUp() override
    {
        ASSERT_NO_FATAL_FAILURE(join());
        ASSERT_EQ(a.attach(way->end(0), 3), 0);
        ASSERT_EQ(c.attach(way->end(1), 1), 0);
        connect(NTBV_UC);
        qac = a.make(NTBV_UC);
        qc = c.make(NTBV_UC);
        to_peer(qac, NTBV_UC, 3, ntbv_qp_number(qc));
        to_peer(qc, NTBV_UC, 1, ntbv_qp_number(qac));
        run_all();
    }
    void run_all() { come_to_rest({a.engine, b.engine, c.engine}, 1000); }

    // Lives as long as the fixture's ports: until all engines are gone.
    ntb::verbs::Loopback *const way =
        lost.emplace_back(ntb::verbs::Loopback::create(1 << 16)).get();
    Host c{3, clock};
    ntbv_qp *qac = nullptr, *qc = nullptr;
};

TEST_F(PollsOfTwoPeers, FindWhatBothSend)
{
    after_vain_polls_of(a.recv_cq, [&] {
        ASSERT_EQ(post_recv(qa, 1), 0);
        ASSERT_EQ(post_recv(qac, 2), 0);
        ASSERT_EQ(Work(NTBV_SEND, 3, {}, 0).post(qb), 0);
        ASSERT_EQ(Work(NTBV_SEND, 4, {}, 0).post(qc), 0);
        ntbv_wc one, other;
        ASSERT_EQ(poll(a.recv_cq, &one), 1);
        ASSERT_EQ(poll(a.recv_cq, &other), 1);
        EXPECT_EQ(one.id + other.id, 3u);
        EXPECT_EQ(one.status, NTBV_SUCCESS);
        EXPECT_EQ(other.status, NTBV_SUCCESS);
        run_all();
    });
}

TEST_F(PollsOfTwoPeers, LeaveNoneBehindABusyOne)
{
    // Which of the two is looked at first is not the test's: each is the busy one in turn.
    for (const auto &[busy, busy_here, rare, rare_here] :
         {std::tuple{qb, qa, qc, qac}, std::tuple{qc, qac, qb, qa}}) {
        after_vain_polls_of(a.recv_cq, [&] {
            ASSERT_EQ(post_recv(rare_here, 2), 0);
            ASSERT_EQ(Work(NTBV_SEND, 4, {}, 0).post(rare), 0);
            bool found = false;
            // Before each poll one message more of the busy peer is there.
            for (int polls = 0; polls < 4 && !found; ++polls) {
                ASSERT_EQ(post_recv(busy_here, 1), 0);
                ASSERT_EQ(Work(NTBV_SEND, 3, {}, 0).post(busy), 0);
                ntbv_wc wc;
                ASSERT_EQ(poll(a.recv_cq, &wc), 1);
                EXPECT_EQ(wc.status, NTBV_SUCCESS);
                found = wc.id == 2;
            }
            EXPECT_TRUE(found);
            run_all();
            for (ntbv_wc wc; poll(a.recv_cq, &wc) == 1;)
                EXPECT_TRUE(wc.id == 1 || (!found && wc.id == 2));
        });
    }
}

} // namespace

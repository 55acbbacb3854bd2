// SPDX-License-Identifier: BSD-3-Clause
// Programs that answer each request at once: their acknowledgements ride on the answers, and none
// is lost.
#include "engine/engine.hpp"
#include "hosts.hpp"

namespace
{

using namespace verbs_test;

class Answers : public Hosts
{
protected:
    void SetUp() override
    {
        Hosts::SetUp();
        connect(NTBV_RC);
        for (std::uint64_t i = 0; i < 120; ++i) {
            ASSERT_EQ(post_recv(qa, i), 0);
            ASSERT_EQ(post_recv(qb, i), 0);
        }
        run();
    }
    /// A poll of the program, not of a service. @return ids of what completed; all were successful
    static std::vector<std::uint64_t> poll(ntbv_cq *cq)
    {
        ntbv_wc wc[64];
        const int n = ntbv_cq_poll(cq, 64, wc);
        std::vector<std::uint64_t> ids;
        for (int i = 0; i < n; ++i) {
            EXPECT_EQ(wc[i].status, NTBV_SUCCESS);
            ids.push_back(wc[i].id);
        }
        return ids;
    }
    using Ids = std::vector<std::uint64_t>;

    void ask(std::uint64_t id) { ASSERT_EQ(Work(NTBV_SEND, id).post(qa), 0); }
    void answer(std::uint64_t id) { ASSERT_EQ(Work(NTBV_SEND, id).post(qb), 0); }
    /// Requests and answers in turn, more than it takes to make a habit of it.
    void make_habit()
    {
        for (std::uint64_t i = 0; i < 32; ++i) {
            ask(1000 + i);
            ASSERT_EQ(poll(b.recv_cq).size(), 1u);
            answer(2000 + i);
            ASSERT_EQ(poll(a.recv_cq).size(), 1u);
        }
        EXPECT_EQ(poll(a.cq).size(), 32u);
        run();
        EXPECT_EQ(poll(b.cq).size(), 32u);
        // Once more, and the program has it.
        ask(1);
        ASSERT_EQ(poll(b.recv_cq).size(), 1u);
    }
};

TEST_F(Answers, CarryTheAcknowledgement)
{
    make_habit();
    EXPECT_EQ(poll(a.cq), Ids{}) << "it waits for the answer";
    answer(2);
    EXPECT_EQ(poll(a.cq), Ids{1});
    EXPECT_EQ(poll(a.recv_cq).size(), 1u) << "both came in one message";
}

TEST_F(Answers, ThatDoNotComeKeepNoAcknowledgement)
{
    make_habit();
    EXPECT_EQ(poll(b.recv_cq), Ids{});
    EXPECT_EQ(poll(a.cq), Ids{1});
    // That was no answer, so the next one does not wait for it.
    ask(2);
    EXPECT_EQ(poll(b.recv_cq).size(), 1u);
    EXPECT_EQ(poll(a.cq), Ids{2});
}

TEST_F(Answers, AreNotWaitedForByAServiceThatComesMeanwhile)
{
    make_habit();
    ntbv_engine_drive(b.engine);
    EXPECT_EQ(poll(a.cq), Ids{1});
}

TEST_F(Answers, AreNotWaitedForByAServiceThatIsGoingToSleep)
{
    using Rest = ntb::verbs::Engine::Rest;
    const auto rest = [&] {
        std::uint64_t nanoseconds;
        const ntb::verbs::Visit visit(b.engine->lock());
        return b.engine->rest(nanoseconds);
    };
    make_habit();
    EXPECT_EQ(rest(), Rest::None) << "there is something to do";
    run();
    EXPECT_EQ(poll(a.cq), Ids{1});
    // It would not come back by itself.
    EXPECT_EQ(rest(), Rest::Asleep);
    answer(2);
    EXPECT_EQ(poll(a.recv_cq).size(), 1u);
    for (std::uint64_t i = 0; i < 32; ++i) {
        ask(i);
        ASSERT_EQ(poll(b.recv_cq).size(), 1u);
        EXPECT_EQ(poll(a.cq), Ids{i});
        answer(i);
        ASSERT_EQ(poll(a.recv_cq).size(), 1u);
    }
    const ntb::verbs::Visit visit(b.engine->lock());
    b.engine->rise();
}

TEST_F(Answers, OfAnotherQueuePairAreNone)
{
    ntbv_qp *const other_a = a.make(NTBV_RC), *const other_b = b.make(NTBV_RC);
    connect(other_a, other_b, NTBV_RC);
    ASSERT_EQ(post_recv(other_a, 1), 0);
    make_habit();
    ASSERT_EQ(Work(NTBV_SEND, 1).post(other_b), 0);
    EXPECT_EQ(poll(a.cq), Ids{1});
}

TEST_F(Answers, ThatAreReadsCarryItAsWell)
{
    make_habit();
    Memory from(a.pd, 64), to(b.pd, 64);
    ASSERT_EQ(Work(NTBV_READ, 2, to.all()).to(from).post(qb), 0);
    EXPECT_EQ(poll(a.cq), Ids{1});
    EXPECT_EQ(one(b.cq).id, 2u);
}

TEST_F(Answers, ThatFindNoRoomCarryItLater)
{
    make_habit();
    loopback->set_full(1, true);
    answer(2);
    EXPECT_EQ(poll(a.cq), Ids{});
    loopback->set_full(1, false);
    EXPECT_EQ(one(a.cq).id, 1u);
    EXPECT_EQ(one(b.cq).id, 2u);
}

TEST_F(Answers, ThatFailAtOnceSendItAlone)
{
    make_habit();
    ntbv_sge nowhere = {0x1234, 8, 77};
    ASSERT_EQ(Work(NTBV_SEND, 2, nowhere).post(qb), 0);
    EXPECT_EQ(poll(a.cq), Ids{1});
    ntbv_wc wc;
    ASSERT_EQ(ntbv_cq_poll(b.cq, 1, &wc), 1);
    EXPECT_EQ(wc.status, NTBV_LOC_PROT_ERR);
}

TEST_F(Answers, TwoRequestsAtOnceAreAcknowledgedAtOnce)
{
    make_habit();
    answer(3);
    ask(2);
    ask(3);
    EXPECT_EQ(poll(b.recv_cq).size(), 2u);
    EXPECT_EQ(poll(a.cq), (Ids{1, 2, 3}));
}

// As an adapter that has answered before the program knows.
TEST_F(Answers, AreNotNeededOfAProcessThatIsKilled)
{
    make_habit();
    ask(2); // which is not taken
    loopback->kill();
    run();
    EXPECT_EQ(poll(a.cq), Ids{1});
    clock.outlast_silence();
    expect(a.cq, {{2, NTBV_RETRY_EXC_ERR}});
}

TEST_F(Answers, AreNotNeededOfAQueuePairThatGoes)
{
    make_habit();
    b.drop(qb);
    EXPECT_EQ(poll(a.cq), Ids{1});
}

TEST_F(Answers, AreNotNeededOfAQueuePairThatIsReset)
{
    make_habit();
    ASSERT_EQ(to_state(qb, NTBV_RESET), 0);
    EXPECT_EQ(poll(a.cq), Ids{1});
    // What the word said is of the connection that was.
    ask(2);
    loopback->kill();
    run();
    EXPECT_EQ(poll(a.cq), Ids{});
    clock.outlast_silence();
    expect(a.cq, {{2, NTBV_RETRY_EXC_ERR}});
}

TEST_F(Answers, AreNotNeededOfAQueuePairInError)
{
    make_habit();
    ASSERT_EQ(to_state(qb, NTBV_ERR), 0);
    EXPECT_EQ(poll(a.cq), Ids{1});
}

// The same numbers begin again.
TEST_F(Answers, OfALifeBeforeDoNotCount)
{
    make_habit();
    answer(2);
    run();
    for (ntbv_qp *qp : {qa, qb})
        ASSERT_EQ(to_state(qp, NTBV_RESET), 0);
    run();
    poll(a.cq), poll(a.recv_cq), poll(b.cq), poll(b.recv_cq);
    connect(qa, qb, NTBV_RC);
    ask(3);
    loopback->kill();
    run();
    EXPECT_EQ(poll(a.cq), Ids{});
    clock.outlast_silence();
    expect(a.cq, {{3, NTBV_RETRY_EXC_ERR}});
}

// A carrier that brings no words, as between two daemons.
class Mute final : public ntb::verbs::Port
{
public:
    explicit Mute(Port &port) : port_(port) {}
    std::uint32_t longest() const override { return port_.longest(); }
    std::byte *reserve(std::uint32_t bytes) override { return port_.reserve(bytes); }
    void commit(std::uint32_t bytes, const iovec *parts, int n) override
    {
        port_.commit(bytes, parts, n);
    }
    void publish() override { port_.publish(); }
    bool receive(Incoming &message) override { return port_.receive(message); }
    void release() override { port_.release(); }
    bool alive() override { return port_.alive(); }
    void close() override { port_.close(); }
    bool arm(bool for_room) override { return port_.arm(for_room); }
    void disarm() override { port_.disarm(); }
    int bell() const override { return port_.bell(); }

private:
    Port &port_;
};

class AnswersWithoutWords : public testing::Test
{
};

TEST_F(AnswersWithoutWords, DoNotCarryWhatACrashWouldTakeAlong)
{
    const auto loopback = ntb::verbs::Loopback::create(1 << 16);
    Mute mute[2] = {Mute(loopback->end(0)), Mute(loopback->end(1))};
    Clock clock;
    Host a(1, clock), b(2, clock);
    ASSERT_EQ(a.attach(mute[0], 2), 0);
    ASSERT_EQ(b.attach(mute[1], 1), 0);
    ntbv_qp *const qa = a.make(NTBV_RC), *const qb = b.make(NTBV_RC);
    for (const auto &[own, peer, lid] : {std::tuple{qa, qb, 2}, {qb, qa, 1}}) {
        ASSERT_EQ(to_init(own, NTBV_RC), 0);
        ASSERT_EQ(to_rtr(own, NTBV_RC, static_cast<std::uint16_t>(lid), ntbv_qp_number(peer)), 0);
        ASSERT_EQ(to_rts(own, NTBV_RC), 0);
    }
    const auto taken = [](const Host &host, ntbv_cq *cq) {
        ntbv_engine_drive(host.engine);
        ntbv_wc wc[8];
        return ntbv_cq_poll(cq, 8, wc);
    };
    for (int i = 0; i < 4; ++i) {
        ntbv_engine_drive(a.engine);
        ntbv_engine_drive(b.engine);
    }
    for (std::uint64_t i = 0; i < 64; ++i) {
        ASSERT_EQ(post_recv(qa, i), 0);
        ASSERT_EQ(post_recv(qb, i), 0);
        ASSERT_EQ(Work(NTBV_SEND, i).post(qa), 0);
        ntbv_wc wc;
        ASSERT_EQ(ntbv_cq_poll(b.recv_cq, 1, &wc), 1);
        ASSERT_EQ(taken(a, a.cq), 1) << i;
        ASSERT_EQ(Work(NTBV_SEND, i).post(qb), 0);
        ASSERT_EQ(taken(a, a.recv_cq), 1);
        ASSERT_EQ(taken(b, b.cq), 1);
    }
}

} // namespace

// SPDX-License-Identifier: BSD-3-Clause
// Programs that answer each request at once: their acknowledgements ride on the answers, and none
// is lost.
#include <algorithm>
#include <vector>

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
    to_peer(qa, NTBV_RC, 2, ntbv_qp_number(qb));
    to_peer(qb, NTBV_RC, 1, ntbv_qp_number(qa));
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

class KilledAnswers : public Answers
{
protected:
    /// b is gone, and a learns of it. @return how the oldest requests ended
    std::vector<ntbv_wc> kill()
    {
        loopback->kill();
        for (int i = 0; i < 4; ++i)
            ntbv_engine_drive(a.engine);
        clock.outlast_silence();
        for (int i = 0; i < 4; ++i)
            ntbv_engine_drive(a.engine);
        std::vector<ntbv_wc> wc(8);
        wc.resize(static_cast<std::size_t>(std::max(0, ntbv_cq_poll(a.cq, 8, wc.data()))));
        return wc;
    }
    void expect_first(const std::vector<ntbv_wc> &wc, unsigned status)
    {
        ASSERT_FALSE(wc.empty());
        EXPECT_EQ(wc[0].status, status);
    }
};

TEST_F(KilledAnswers, AreKnownThoughAnotherQueuePairWasDestroyedMeanwhile)
{
    ntbv_qp *const other_a = a.make(NTBV_RC), *const other_b = b.make(NTBV_RC);
    connect(other_a, other_b, NTBV_RC);
    run();
    make_habit();
    b.drop(other_b);
    expect_first(kill(), NTBV_SUCCESS);
}

TEST_F(KilledAnswers, AreKnownThoughAnotherQueuePairWasResetMeanwhile)
{
    ntbv_qp *const other_a = a.make(NTBV_UC), *const other_b = b.make(NTBV_UC);
    connect(other_a, other_b, NTBV_UC);
    run();
    make_habit();
    ASSERT_EQ(to_state(other_b, NTBV_RESET), 0);
    expect_first(kill(), NTBV_SUCCESS);
}

TEST_F(KilledAnswers, DoNotHideThatAReadBeforeThemWasNot)
{
    Memory from(a.pd, 64), to(b.pd, 64);
    make_habit();
    answer(2);
    EXPECT_EQ(poll(a.cq), Ids{1});
    EXPECT_EQ(poll(a.recv_cq).size(), 1u);
    loopback->set_full(1, true); // what b sends does not go
    ASSERT_EQ(Work(NTBV_READ, 5, from.all()).to(to).post(qa), 0);
    ask(6);
    poll(b.cq);
    EXPECT_EQ(poll(b.recv_cq).size(), 1u);
    expect_first(kill(), NTBV_RETRY_EXC_ERR);
}

// A word that stays would be one of the future half a circle of numbers later.
TEST_F(KilledAnswers, LeaveNoWordBehindWhatWasSent)
{
    make_habit();
    const std::uint64_t held = loopback->end(0).left();
    EXPECT_NE(held, ntb::verbs::leaves_words);
    answer(2);
    EXPECT_EQ(loopback->end(0).left(), ntb::verbs::leaves_words);
    EXPECT_EQ(poll(a.cq), Ids{1});
}

/// A port of a process that ends as soon as it has left a word, once it is told so.
class Dying final : public ntb::verbs::Port
{
public:
    Dying(Port &port, ntb::verbs::Loopback &loopback) : port_(port), loopback_(loopback) {}
    std::uint32_t longest() const override { return port_.longest(); }
    std::byte *reserve(std::uint32_t bytes) override
    {
        return is_dead_ ? nullptr : port_.reserve(bytes);
    }
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
    std::uint64_t left() const override { return port_.left(); }
    void die_at_the_next_word() { dies_ = true; }

private:
    void leave_by_call(std::uint64_t word) override
    {
        if (is_dead_)
            return;
        port_.leave(word);
        if (dies_ && word != ntb::verbs::leaves_words) {
            is_dead_ = true;
            loopback_.kill();
        }
    }

    Port &port_;
    ntb::verbs::Loopback &loopback_;
    bool dies_ = false, is_dead_ = false;
};

TEST(AnswersOfTwoQueuePairs, AreEachKnownToWhoLosesThePeer)
{
    const auto loopback = ntb::verbs::Loopback::create(1 << 16);
    Dying dying(loopback->end(1), *loopback);
    Clock clock;
    Host a(1, clock), b(2, clock);
    ASSERT_EQ(a.attach(loopback->end(0), 2), 0);
    ASSERT_EQ(b.attach(dying, 1), 0);
    ntbv_qp *qa[2], *qb[2];
    for (int i = 0; i < 2; ++i) {
        qa[i] = a.make(NTBV_RC);
        qb[i] = b.make(NTBV_RC);
        to_peer(qa[i], NTBV_RC, 2, ntbv_qp_number(qb[i]));
        to_peer(qb[i], NTBV_RC, 1, ntbv_qp_number(qa[i]));
    }
    for (int i = 0; i < 4; ++i) {
        ntbv_engine_drive(a.engine);
        ntbv_engine_drive(b.engine);
    }
    // Both have the habit.
    ntbv_wc wc[64];
    for (std::uint64_t round = 0; round < 40; ++round)
        for (int i = 0; i < 2; ++i) {
            ASSERT_EQ(post_recv(qa[i], round), 0);
            ASSERT_EQ(post_recv(qb[i], round), 0);
            ASSERT_EQ(Work(NTBV_SEND, round).post(qa[i]), 0);
            ASSERT_EQ(ntbv_cq_poll(b.recv_cq, 1, wc), 1);
            ASSERT_EQ(Work(NTBV_SEND, round).post(qb[i]), 0);
            ASSERT_EQ(ntbv_cq_poll(a.recv_cq, 1, wc), 1);
            ntbv_engine_drive(a.engine);
            ntbv_cq_poll(a.cq, 64, wc);
        }
    for (int i = 0; i < 2; ++i)
        ASSERT_EQ(post_recv(qb[i], 1), 0);
    ASSERT_EQ(Work(NTBV_SEND, 100).post(qa[0]), 0);
    ASSERT_EQ(ntbv_cq_poll(b.recv_cq, 1, wc), 1) << "the program has it";
    ASSERT_EQ(Work(NTBV_SEND, 200).post(qa[1]), 0);
    dying.die_at_the_next_word();
    ntbv_cq_poll(b.recv_cq, 1, wc);
    loopback->kill();
    for (int i = 0; i < 4; ++i)
        ntbv_engine_drive(a.engine);
    clock.outlast_silence();
    for (int i = 0; i < 4; ++i)
        ntbv_engine_drive(a.engine);
    const int n = ntbv_cq_poll(a.cq, 64, wc);
    bool is_seen = false;
    for (int i = 0; i < n; ++i)
        if (wc[i].id == 100) {
            is_seen = true;
            EXPECT_EQ(wc[i].status, NTBV_SUCCESS);
        }
    EXPECT_TRUE(is_seen);
}

} // namespace

// SPDX-License-Identifier: BSD-3-Clause
// Memory windows: what binds them, what ends them, and what a peer reaches by them.
#include "hosts.hpp"

namespace
{

using namespace verbs_test;

constexpr unsigned bindable = all_rights | NTBV_MW_BIND;

/// A window of a host, and requests that concern it.
struct OwnWindow {
    ntbv_mw *mw = nullptr;
    std::uint32_t key = 0;

    OwnWindow(ntbv_pd *pd, ntbv_mw_type type) { EXPECT_EQ(ntbv_mw_create(pd, type, &mw, &key), 0); }
    ~OwnWindow() { end(); }
    OwnWindow(const OwnWindow &) = delete;
    OwnWindow &operator=(const OwnWindow &) = delete;
    void end()
    {
        if (mw)
            ntbv_mw_destroy(mw);
        mw = nullptr;
    }
    /// The key as a program changes it for the next binding.
    std::uint32_t next_key() const { return (key & ~0xffu) | ((key + 1) & 0xff); }
    int bind(ntbv_qp *qp, std::uint64_t id, ntbv_bind what, unsigned flags = NTBV_SIGNALED)
    {
        what.mw = mw;
        Work work(NTBV_BIND_MW, id, {}, flags);
        work.wr.bind = &what;
        const int error = work.post(qp);
        if (error == 0)
            key = what.key;
        return error;
    }
    int bind(ntbv_qp *qp, std::uint64_t id, const Memory &memory, std::size_t offset,
             std::size_t length, unsigned access = all_rights & ~NTBV_LOCAL_WRITE,
             unsigned flags = NTBV_SIGNALED)
    {
        return bind(qp, id,
                    {nullptr, next_key(), memory.key, memory.address() + offset, length, access},
                    flags);
    }
};

Work invalidate(std::uint64_t id, std::uint32_t key, unsigned flags = NTBV_SIGNALED)
{
    Work work(NTBV_LOCAL_INV, id, {}, flags);
    return work.imm(key);
}

Work through(ntbv_opcode opcode, std::uint64_t id, ntbv_sge piece, std::uint32_t key,
             std::uint64_t address, unsigned flags = NTBV_SIGNALED)
{
    Work work(opcode, id, piece, flags);
    work.wr.remote_key = key;
    work.wr.remote_address = address;
    return work;
}

class Windows : public Hosts
{
protected:
    void SetUp() override
    {
        Hosts::SetUp();
        connect(NTBV_RC);
        ma.count_up();
    }
    /// Host a tries, and is refused; a new pair of queue pairs is there afterwards.
    void expect_refused(Work work, ntbv_status status = NTBV_REM_ACCESS_ERR)
    {
        const std::vector<std::uint8_t> before = mb.bytes;
        ASSERT_EQ(work.post(qa), 0);
        expect(a.cq, {{work.wr.id, status}});
        EXPECT_EQ(mb.bytes, before);
        EXPECT_EQ(state_of(qb), NTBV_ERR);
        take(b.cq);
        take(b.recv_cq);
        b.events();
        reconnect();
    }
    void reconnect()
    {
        for (ntbv_qp *qp : {qa, qb})
            ASSERT_EQ(to_state(qp, NTBV_RESET), 0);
        connect(qa, qb, NTBV_RC);
    }
    /// The only request of host b is done.
    void expect_done(std::uint64_t id, ntbv_wc_opcode opcode)
    {
        const ntbv_wc got = one(b.cq);
        EXPECT_EQ(got.id, id);
        EXPECT_EQ(got.status, NTBV_SUCCESS);
        EXPECT_EQ(got.opcode, opcode);
        EXPECT_EQ(got.bytes, 0u);
    }
    void bind(OwnWindow &window, std::size_t offset, std::size_t length,
              unsigned access = all_rights & ~NTBV_LOCAL_WRITE)
    {
        ASSERT_EQ(window.bind(qb, 1, mb, offset, length, access), 0);
        expect_done(1, NTBV_WC_BIND_MW);
    }
    Memory ma{a.pd, 40000}, mb{b.pd, 40000, bindable};
};

TEST_F(Windows, LeadsToItsRangeWithItsRightsAndNoFurther)
{
    for (const ntbv_mw_type type : {NTBV_MW_1, NTBV_MW_2}) {
        OwnWindow window(b.pd, type);
        expect_refused(through(NTBV_WRITE, 2, ma.piece(0, 1), window.key, mb.address()));
        bind(window, 1000, 20000, NTBV_REMOTE_WRITE);
        const std::uint64_t begin = mb.address() + 1000;
        ASSERT_EQ(through(NTBV_WRITE, 3, ma.piece(0, 20000), window.key, begin).post(qa), 0);
        EXPECT_EQ(one(a.cq).status, NTBV_SUCCESS);
        EXPECT_TRUE(
            std::equal(ma.bytes.begin(), ma.bytes.begin() + 20000, mb.bytes.begin() + 1000));
        // A window of type 2 is of its queue pair, which goes on after a reset.
        expect_refused(through(NTBV_WRITE, 4, ma.piece(0, 2), window.key, begin + 19999));
        expect_refused(through(NTBV_WRITE, 5, ma.piece(0, 2), window.key, begin - 1));
        expect_refused(through(NTBV_READ, 6, ma.piece(0, 1), window.key, begin));
        expect_refused(through(NTBV_FETCH_ADD, 7, ma.piece(0, 8), window.key, begin));
    }
}

TEST_F(Windows, TheRightToWriteLocallyIsNone)
{
    Memory region(b.pd, 64, NTBV_MW_BIND);
    OwnWindow window(b.pd, NTBV_MW_2);
    ASSERT_EQ(window.bind(qb, 1, region, 0, 64, NTBV_LOCAL_WRITE), 0);
    expect_done(1, NTBV_WC_BIND_MW);
    expect_refused(through(NTBV_WRITE, 2, ma.piece(0, 8), window.key, region.address()));
    EXPECT_EQ(region.bytes, std::vector<std::uint8_t>(64));
    window.end();
}

TEST_F(Windows, EachRightIsGivenByItself)
{
    OwnWindow window(b.pd, NTBV_MW_1);
    bind(window, 0, 4096, NTBV_REMOTE_READ);
    mb.count_up();
    ASSERT_EQ(through(NTBV_READ, 2, ma.piece(0, 4096), window.key, mb.address()).post(qa), 0);
    EXPECT_EQ(one(a.cq).status, NTBV_SUCCESS);
    expect_refused(through(NTBV_WRITE, 3, ma.piece(0, 8), window.key, mb.address()));
    bind(window, 0, 4096, NTBV_REMOTE_ATOMIC);
    ASSERT_EQ(through(NTBV_FETCH_ADD, 4, ma.piece(0, 8), window.key, mb.address()).post(qa), 0);
    EXPECT_EQ(one(a.cq).status, NTBV_SUCCESS);
    expect_refused(through(NTBV_READ, 5, ma.piece(0, 8), window.key, mb.address()));
}

TEST_F(Windows, GivesWritesToARegionThatPeersMayNotWriteTo)
{
    Memory closed(b.pd, 64, NTBV_LOCAL_WRITE | NTBV_MW_BIND);
    OwnWindow window(b.pd, NTBV_MW_2);
    ASSERT_EQ(window.bind(qb, 1, closed, 0, 32), 0);
    expect_done(1, NTBV_WC_BIND_MW);
    ASSERT_EQ(through(NTBV_WRITE, 2, ma.piece(0, 32), window.key, closed.address()).post(qa), 0);
    EXPECT_EQ(one(a.cq).status, NTBV_SUCCESS);
    EXPECT_EQ(closed.bytes[31], ma.bytes[31]);
    expect_refused(through(NTBV_WRITE, 3, ma.piece(0, 1), closed.key, closed.address()));
    window.end();
}

TEST_F(Windows, TypeOneGetsANewKeyWithEachBinding)
{
    OwnWindow window(b.pd, NTBV_MW_1);
    bind(window, 0, 64);
    const std::uint32_t first = window.key;
    bind(window, 128, 64);
    EXPECT_NE(window.key, first);
    expect_refused(through(NTBV_WRITE, 2, ma.piece(0, 1), first, mb.address()));
    expect_refused(through(NTBV_WRITE, 3, ma.piece(0, 1), window.key, mb.address()));
    ASSERT_EQ(through(NTBV_WRITE, 4, ma.piece(0, 64), window.key, mb.address() + 128).post(qa), 0);
    EXPECT_EQ(one(a.cq).status, NTBV_SUCCESS);
    const std::uint32_t second = window.key;
    ASSERT_EQ(window.bind(qb, 5, {}), 0) << "no region and no length: it leads nowhere";
    expect_done(5, NTBV_WC_BIND_MW);
    expect_refused(through(NTBV_WRITE, 6, ma.piece(0, 1), second, mb.address() + 128));
    expect_refused(through(NTBV_WRITE, 7, ma.piece(0, 1), window.key, mb.address() + 128));
}

TEST_F(Windows, TypeOneIsForAllQueuePairsOfItsDomainAndTypeTwoForItsOwn)
{
    ntbv_qp *other_a = a.make(NTBV_RC), *other_b = b.make(NTBV_RC);
    connect(other_a, other_b, NTBV_RC);
    OwnWindow of_all(b.pd, NTBV_MW_1), of_one(b.pd, NTBV_MW_2);
    bind(of_all, 0, 64);
    bind(of_one, 0, 64);
    ASSERT_EQ(through(NTBV_WRITE, 2, ma.piece(0, 8), of_all.key, mb.address()).post(other_a), 0);
    EXPECT_EQ(one(a.cq).status, NTBV_SUCCESS);
    const std::vector<std::uint8_t> before = mb.bytes;
    ASSERT_EQ(through(NTBV_WRITE, 3, ma.piece(8, 8), of_one.key, mb.address()).post(other_a), 0);
    EXPECT_EQ(one(a.cq).status, NTBV_REM_ACCESS_ERR);
    EXPECT_EQ(mb.bytes, before);
    ASSERT_EQ(through(NTBV_WRITE, 4, ma.piece(8, 8), of_one.key, mb.address()).post(qa), 0);
    EXPECT_EQ(one(a.cq).status, NTBV_SUCCESS);
}

TEST_F(Windows, AWindowOfAQueuePairThatIsGoneIsNobodys)
{
    OwnWindow window(b.pd, NTBV_MW_2);
    bind(window, 0, 64);
    b.drop(qb);
    qb = nullptr;
    ntbv_qp *other_b = b.make(NTBV_RC), *other_a = a.make(NTBV_RC);
    connect(other_a, other_b, NTBV_RC);
    ASSERT_EQ(through(NTBV_WRITE, 2, ma.piece(0, 8), window.key, mb.address()).post(other_a), 0);
    EXPECT_EQ(one(a.cq).status, NTBV_REM_ACCESS_ERR);
    EXPECT_EQ(ntbv_mr_deregister(b.pd, mb.key), -EBUSY) << "it is bound as before";
    window.end();
}

TEST_F(Windows, LocalInvalidateEndsAWindowOfTypeTwo)
{
    OwnWindow window(b.pd, NTBV_MW_2);
    bind(window, 0, 64);
    const std::uint32_t first = window.key;
    ASSERT_EQ(invalidate(2, first).post(qb), 0);
    expect_done(2, NTBV_WC_LOCAL_INV);
    expect_refused(through(NTBV_WRITE, 3, ma.piece(0, 8), first, mb.address()));
    bind(window, 0, 64);
    EXPECT_NE(window.key, first);
    EXPECT_EQ(window.key >> 8, first >> 8) << "only the lowest 8 bits are the program's";
    expect_refused(through(NTBV_WRITE, 4, ma.piece(0, 8), first, mb.address()));
    ASSERT_EQ(through(NTBV_WRITE, 5, ma.piece(0, 8), window.key, mb.address()).post(qa), 0);
    EXPECT_EQ(one(a.cq).status, NTBV_SUCCESS);
}

TEST_F(Windows, SendWithInvalidateEndsAWindowAndTellsTheReceiver)
{
    OwnWindow window(b.pd, NTBV_MW_2);
    bind(window, 0, 64);
    ASSERT_EQ(post_recv(qb, 7, mb.piece(20000, 20000)), 0);
    Work work(NTBV_SEND_INV, 2, ma.piece(0, 20000), NTBV_SIGNALED);
    ASSERT_EQ(work.imm(window.key).post(qa), 0);
    EXPECT_EQ(one(a.cq).opcode, NTBV_WC_SEND);
    const ntbv_wc got = one(b.recv_cq);
    EXPECT_EQ(got.id, 7u);
    EXPECT_EQ(got.status, NTBV_SUCCESS);
    EXPECT_EQ(got.flags, NTBV_WC_WITH_INV);
    EXPECT_EQ(got.imm, window.key);
    EXPECT_EQ(got.bytes, 20000u);
    EXPECT_TRUE(std::equal(ma.bytes.begin(), ma.bytes.begin() + 20000, mb.bytes.begin() + 20000));
    EXPECT_TRUE(b.events().empty());
    expect_refused(through(NTBV_WRITE, 3, ma.piece(0, 8), window.key, mb.address()));
}

TEST_F(Windows, APeerMayEndNothingButWindowsThatItMayUse)
{
    OwnWindow of_all(b.pd, NTBV_MW_1), of_other(b.pd, NTBV_MW_2), unbound(b.pd, NTBV_MW_2);
    bind(of_all, 0, 64);
    ntbv_qp *other_a = a.make(NTBV_RC), *other_b = b.make(NTBV_RC);
    connect(other_a, other_b, NTBV_RC);
    ASSERT_EQ(of_other.bind(other_b, 1, mb, 0, 64), 0);
    expect_done(1, NTBV_WC_BIND_MW);
    for (const std::uint32_t key : {mb.key, of_all.key, of_other.key, unbound.key, 0u, ~0u}) {
        ASSERT_EQ(post_recv(qb, 7, mb.piece(0, 64)), 0);
        Work work(NTBV_SEND_INV, 2, {}, NTBV_SIGNALED | NTBV_INLINE);
        ASSERT_EQ(work.imm(key).post(qa), 0);
        expect(b.recv_cq, {{7, NTBV_MW_BIND_ERR}});
        expect(a.cq, {{2, NTBV_REM_ACCESS_ERR}});
        EXPECT_EQ(state_of(qb), NTBV_ERR);
        reconnect();
    }
    for (const std::uint32_t key : {mb.key, of_all.key, of_other.key})
        ASSERT_EQ(through(NTBV_WRITE, 3, ma.piece(0, 8), key, mb.address()).post(other_a), 0);
    expect(a.cq, {{3, NTBV_SUCCESS}, {3, NTBV_SUCCESS}, {3, NTBV_SUCCESS}});
}

TEST_F(Windows, InvalidatingWhatIsNotOnesOwnIsAnError)
{
    OwnWindow of_all(b.pd, NTBV_MW_1), window(b.pd, NTBV_MW_2);
    bind(of_all, 0, 64);
    for (const std::uint32_t key : {mb.key, of_all.key, window.key, 0u}) {
        ASSERT_EQ(invalidate(2, key).post(qb), 0);
        ASSERT_EQ(Work(NTBV_SEND, 3).post(qb), 0);
        expect(b.cq, {{2, NTBV_MW_BIND_ERR}, {3, NTBV_WR_FLUSH_ERR}});
        reconnect();
    }
    bind(window, 0, 64);
    ASSERT_EQ(invalidate(4, window.key ^ 1).post(qb), 0);
    expect(b.cq, {{4, NTBV_MW_BIND_ERR}});
    EXPECT_EQ(ntbv_mr_deregister(b.pd, mb.key), -EBUSY) << "it is bound as before";
}

TEST_F(Windows, WhatCannotBeBoundIsAnErrorOfItsRequest)
{
    Memory unbindable(b.pd, 64, all_rights), read_only(b.pd, 64, NTBV_MW_BIND);
    ntbv_pd *pd = nullptr;
    ASSERT_EQ(ntbv_pd_create(b.engine, &pd), 0);
    {
        Memory elsewhere(pd, 64, bindable);
        OwnWindow foreign(pd, NTBV_MW_2), of_all(b.pd, NTBV_MW_1), window(b.pd, NTBV_MW_2);
        const std::uint64_t begin = mb.address();
        const auto refused = [&](OwnWindow &which, ntbv_bind what) {
            what.key = which.next_key();
            ASSERT_EQ(which.bind(qb, 2, what), 0);
            expect(b.cq, {{2, NTBV_MW_BIND_ERR}});
            EXPECT_EQ(state_of(qb), NTBV_ERR);
            reconnect();
        };
        const unsigned read = NTBV_REMOTE_READ, write = NTBV_REMOTE_WRITE;
        for (OwnWindow *which : {&of_all, &window}) {
            refused(*which, {nullptr, 0, mb.key ^ 1, begin, 8, read});
            refused(*which, {nullptr, 0, mb.key, begin - 1, 8, read});
            refused(*which, {nullptr, 0, mb.key, begin + 39999, 2, read});
            refused(*which, {nullptr, 0, mb.key, begin, ~std::uint64_t{0}, read});
            refused(*which, {nullptr, 0, unbindable.key, unbindable.address(), 8, read});
            refused(*which, {nullptr, 0, read_only.key, read_only.address(), 8, write});
            refused(*which, {nullptr, 0, elsewhere.key, elsewhere.address(), 8, read});
            refused(*which, {nullptr, 0, which->key, begin, 8, read});
        }
        refused(foreign, {nullptr, 0, elsewhere.key, elsewhere.address(), 8, read});
        refused(of_all, {nullptr, 0, mb.key, begin, 8, read | NTBV_ZERO_BASED});
        refused(window, {nullptr, 0, mb.key, begin, 0, read});
        bind(window, 0, 64);
        refused(window, {nullptr, 0, mb.key, begin, 8, read}); // is bound already
        ASSERT_EQ(window.bind(qb, 3, read_only, 0, 8, read), 0);
        expect(b.cq, {{3, NTBV_MW_BIND_ERR}});
        reconnect();
    }
    EXPECT_EQ(ntbv_pd_destroy(pd), 0);
}

TEST_F(Windows, WhatIsWrongByItselfIsRefusedByThePost)
{
    OwnWindow window(b.pd, NTBV_MW_2), foreign(a.pd, NTBV_MW_2);
    EXPECT_EQ(window.bind(qb, 1, mb, 0, 8, NTBV_MW_BIND), -EINVAL);
    EXPECT_EQ(window.bind(qb, 1, mb, 0, 8, 1 << 20), -EINVAL);
    EXPECT_EQ(window.bind(qb, 1, mb, 0, 8, 0, NTBV_INLINE), -EINVAL);
    EXPECT_EQ(window.bind(qb, 1, {nullptr, window.key ^ 0x100, mb.key, mb.address(), 8, 0}),
              -EINVAL);
    EXPECT_EQ(window.bind(qb, 1, {nullptr, window.key ^ 0x10000, mb.key, mb.address(), 8, 0}),
              -EINVAL);
    EXPECT_EQ(foreign.bind(qb, 1, mb, 0, 8), -EINVAL) << "of another device";
    EXPECT_EQ(Work(NTBV_BIND_MW, 1).post(qb), -EINVAL) << "no window";
    ntbv_qp *datagrams = b.make(NTBV_UD), *unreliable = b.make(NTBV_UC);
    ASSERT_EQ(to_init(datagrams, NTBV_UD), 0);
    ASSERT_EQ(to_rtr(datagrams, NTBV_UD, 0, 0), 0);
    ASSERT_EQ(to_rts(datagrams, NTBV_UD), 0);
    EXPECT_EQ(window.bind(datagrams, 1, mb, 0, 8), -EINVAL);
    EXPECT_EQ(invalidate(1, window.key).post(datagrams), -EINVAL);
    EXPECT_EQ(Work(NTBV_SEND_INV, 1).post(datagrams), -EINVAL);
    connect(unreliable, a.make(NTBV_UC), NTBV_UC);
    EXPECT_EQ(Work(NTBV_SEND_INV, 1).post(unreliable), -EINVAL);
    ntbv_mw *none = nullptr;
    std::uint32_t key;
    EXPECT_EQ(ntbv_mw_create(b.pd, static_cast<ntbv_mw_type>(3), &none, &key), -EINVAL);
    EXPECT_TRUE(take(b.cq).empty());
}

TEST_F(Windows, UnreliableQueuePairsBindAndInvalidate)
{
    ntbv_qp *one_qp = a.make(NTBV_UC), *other = b.make(NTBV_UC);
    connect(one_qp, other, NTBV_UC);
    OwnWindow window(b.pd, NTBV_MW_2);
    ASSERT_EQ(window.bind(other, 1, mb, 0, 64), 0);
    expect_done(1, NTBV_WC_BIND_MW);
    ASSERT_EQ(through(NTBV_WRITE, 2, ma.piece(0, 8), window.key, mb.address()).post(one_qp), 0);
    EXPECT_EQ(one(a.cq).status, NTBV_SUCCESS);
    EXPECT_EQ(mb.bytes[1], ma.bytes[1]);
    ASSERT_EQ(invalidate(3, window.key).post(other), 0);
    expect_done(3, NTBV_WC_LOCAL_INV);
    ASSERT_EQ(through(NTBV_WRITE, 4, ma.piece(8, 8), window.key, mb.address()).post(one_qp), 0);
    EXPECT_EQ(one(a.cq).status, NTBV_SUCCESS) << "none reports";
    EXPECT_EQ(mb.bytes[1], ma.bytes[1]) << "and nothing was written";
    ASSERT_EQ(invalidate(5, window.key).post(other), 0);
    ASSERT_EQ(Work(NTBV_SEND, 6).post(other), 0);
    expect(b.cq, {{5, NTBV_MW_BIND_ERR}, {6, NTBV_WR_FLUSH_ERR}});
    EXPECT_EQ(state_of(other), NTBV_SQE);
}

TEST_F(Windows, AZeroBasedWindowBeginsAtZero)
{
    OwnWindow window(b.pd, NTBV_MW_2);
    bind(window, 256, 64, NTBV_REMOTE_WRITE | NTBV_ZERO_BASED);
    ASSERT_EQ(through(NTBV_WRITE, 2, ma.piece(1, 60), window.key, 4).post(qa), 0);
    EXPECT_EQ(one(a.cq).status, NTBV_SUCCESS);
    EXPECT_TRUE(std::equal(mb.bytes.begin() + 260, mb.bytes.begin() + 320, ma.bytes.begin() + 1));
    expect_refused(through(NTBV_WRITE, 3, ma.piece(0, 61), window.key, 4));
    expect_refused(through(NTBV_WRITE, 4, ma.piece(0, 1), window.key, mb.address() + 256));
}

TEST_F(Windows, AWindowIsNoKeyOfLocalMemory)
{
    OwnWindow window(b.pd, NTBV_MW_1);
    bind(window, 0, 64);
    ASSERT_EQ(Work(NTBV_WRITE, 2, {mb.address(), 8, window.key}).to(ma).post(qb), 0);
    expect(b.cq, {{2, NTBV_LOC_PROT_ERR}});
    reconnect();
    ASSERT_EQ(post_recv(qb, 3, {mb.address(), 8, window.key}), 0);
    ASSERT_EQ(Work(NTBV_SEND, 4, ma.piece(0, 8)).post(qa), 0);
    expect(b.recv_cq, {{3, NTBV_LOC_PROT_ERR}});
    expect(a.cq, {{4, NTBV_REM_OP_ERR}});
}

TEST_F(Windows, ARegionStaysWhileWindowsAreBoundToIt)
{
    Memory region(b.pd, 64, bindable);
    OwnWindow one_mw(b.pd, NTBV_MW_1), two(b.pd, NTBV_MW_2);
    const auto deregister = [&] { return ntbv_mr_deregister(b.pd, region.key); };
    const auto move = [&] {
        return ntbv_mr_reregister(b.pd, region.key, b.pd, region.bytes.data(), 64, region.address(),
                                  bindable);
    };
    ASSERT_EQ(one_mw.bind(qb, 1, region, 0, 8), 0);
    ASSERT_EQ(two.bind(qb, 2, region, 0, 8), 0);
    EXPECT_EQ(take(b.cq).size(), 2u);
    EXPECT_EQ(deregister(), -EBUSY);
    EXPECT_EQ(move(), -EBUSY);
    ASSERT_EQ(invalidate(3, two.key).post(qb), 0);
    expect_done(3, NTBV_WC_LOCAL_INV);
    EXPECT_EQ(deregister(), -EBUSY);
    ASSERT_EQ(one_mw.bind(qb, 4, mb, 0, 8), 0) << "bound to another one";
    expect_done(4, NTBV_WC_BIND_MW);
    EXPECT_EQ(move(), 0);
    ASSERT_EQ(two.bind(qb, 5, region, 0, 8), 0);
    expect_done(5, NTBV_WC_BIND_MW);
    EXPECT_EQ(deregister(), -EBUSY);
    EXPECT_EQ(ntbv_mr_deregister(b.pd, two.key), -EINVAL) << "a window is no region";
    EXPECT_EQ(ntbv_mr_reregister(b.pd, two.key, b.pd, region.bytes.data(), 8, 0, 0), -EINVAL);
    two.end();
    EXPECT_EQ(deregister(), 0);
    region.key = 0;
    one_mw.end();
}

TEST_F(Windows, ADomainStaysWhileItHasWindows)
{
    ntbv_pd *pd = nullptr;
    ASSERT_EQ(ntbv_pd_create(b.engine, &pd), 0);
    OwnWindow window(pd, NTBV_MW_1);
    EXPECT_EQ(ntbv_pd_destroy(pd), -EBUSY);
    window.end();
    EXPECT_EQ(ntbv_pd_destroy(pd), 0);
}

TEST_F(Windows, AWindowThatIsGoneLeadsNowhere)
{
    std::uint32_t key;
    {
        OwnWindow window(b.pd, NTBV_MW_2);
        bind(window, 0, 64);
        key = window.key;
    }
    expect_refused(through(NTBV_WRITE, 2, ma.piece(0, 8), key, mb.address()));
    // Nor does a binding that waited for its turn make it one.
    OwnWindow window(b.pd, NTBV_MW_2);
    loopback->set_full(1, true);
    ASSERT_EQ(Work(NTBV_SEND, 3).post(qb), 0);
    ASSERT_EQ(window.bind(qb, 4, mb, 0, 64), 0);
    window.end();
    OwnWindow next(b.pd, NTBV_MW_2);
    loopback->set_full(1, false);
    ASSERT_EQ(post_recv(qa, 5), 0);
    expect(b.cq, {{3, NTBV_SUCCESS}, {4, NTBV_MW_BIND_ERR}});
}

// ---- order

TEST_F(Windows, ABindingIsDoneBeforeWhatIsPostedBehindIt)
{
    OwnWindow window(b.pd, NTBV_MW_2);
    ASSERT_EQ(post_recv(qa, 9, ma.piece(0, 4)), 0);
    ASSERT_EQ(window.bind(qb, 1, mb, 0, 64, NTBV_REMOTE_WRITE, 0), 0);
    Work tell(NTBV_SEND, 2, {reinterpret_cast<std::uint64_t>(&window.key), 4, 0},
              NTBV_SIGNALED | NTBV_INLINE);
    ASSERT_EQ(tell.post(qb), 0);
    EXPECT_EQ(one(a.recv_cq).status, NTBV_SUCCESS);
    std::uint32_t key;
    std::memcpy(&key, ma.bytes.data(), sizeof(key));
    ASSERT_EQ(through(NTBV_WRITE, 3, ma.piece(0, 8), key, mb.address()).post(qa), 0);
    EXPECT_EQ(one(a.cq).status, NTBV_SUCCESS);
    expect(b.cq, {{2, NTBV_SUCCESS}});
}

TEST_F(Windows, LocalRequestsCompleteInOrderAndNeedNoPeer)
{
    OwnWindow window(b.pd, NTBV_MW_2);
    loopback->set_full(1, true);
    bind(window, 0, 64);
    ASSERT_EQ(Work(NTBV_SEND, 2).post(qb), 0);
    ASSERT_EQ(invalidate(3, window.key).post(qb), 0);
    ASSERT_EQ(window.bind(qb, 4, mb, 0, 64), 0);
    EXPECT_TRUE(take(b.cq).empty()) << "behind a request that could not go";
    loopback->set_full(1, false);
    EXPECT_TRUE(take(b.cq).empty()) << "the peer has no receive";
    ASSERT_EQ(post_recv(qa, 9), 0);
    expect(b.cq, {{2, NTBV_SUCCESS}, {3, NTBV_SUCCESS}, {4, NTBV_SUCCESS}});
}

TEST_F(Windows, NobodyHasToBeThereForAWindowToBeBound)
{
    ntbv_qp *alone = b.make(NTBV_RC);
    ASSERT_EQ(to_init(alone, NTBV_RC), 0);
    ASSERT_EQ(to_rtr(alone, NTBV_RC, 9, 5), 0); // no such host
    ASSERT_EQ(to_rts(alone, NTBV_RC), 0);
    OwnWindow window(b.pd, NTBV_MW_2);
    ASSERT_EQ(window.bind(alone, 1, mb, 0, 64), 0);
    expect_done(1, NTBV_WC_BIND_MW);
}

TEST_F(Windows, AFenceHoldsALocalRequestUntilReadsAreComplete)
{
    Memory open(a.pd, 64);
    OwnWindow window(b.pd, NTBV_MW_2);
    bind(window, 0, 64);
    loopback->set_full(0, true);
    ASSERT_EQ(Work(NTBV_READ, 2, mb.piece(0, 64)).to(open).post(qb), 0);
    ASSERT_EQ(invalidate(3, window.key, NTBV_SIGNALED | NTBV_FENCE).post(qb), 0);
    EXPECT_TRUE(take(b.cq).empty());
    EXPECT_EQ(ntbv_mr_deregister(b.pd, mb.key), -EBUSY) << "it is bound as before";
    loopback->set_full(0, false);
    expect(b.cq, {{2, NTBV_SUCCESS}, {3, NTBV_SUCCESS}});
    // Without one it does not wait, but completes in order.
    bind(window, 0, 64);
    loopback->set_full(0, true);
    ASSERT_EQ(Work(NTBV_READ, 4, mb.piece(0, 64)).to(open).post(qb), 0);
    ASSERT_EQ(invalidate(5, window.key).post(qb), 0);
    EXPECT_TRUE(take(b.cq).empty());
    window.end();
    EXPECT_EQ(ntbv_mr_deregister(b.pd, mb.key), 0);
    mb.key = 0;
    loopback->set_full(0, false);
    expect(b.cq, {{4, NTBV_LOC_PROT_ERR}, {5, NTBV_WR_FLUSH_ERR}});
}

TEST_F(Windows, AReadThroughAWindowIsAnsweredBeforeAFencedInvalidation)
{
    OwnWindow window(b.pd, NTBV_MW_2);
    bind(window, 0, 40000);
    mb.count_up();
    const std::vector<std::uint8_t> expected = mb.bytes;
    std::fill(ma.bytes.begin(), ma.bytes.end(), 0);
    ASSERT_EQ(post_recv(qb, 9), 0);
    ASSERT_EQ(through(NTBV_READ, 2, ma.piece(0, 40000), window.key, mb.address()).post(qa), 0);
    Work end(NTBV_SEND_INV, 3, {}, NTBV_SIGNALED | NTBV_FENCE);
    ASSERT_EQ(end.imm(window.key).post(qa), 0);
    expect(a.cq, {{2, NTBV_SUCCESS}, {3, NTBV_SUCCESS}});
    EXPECT_EQ(ma.bytes, expected);
    expect(b.recv_cq, {{9, NTBV_SUCCESS}});
}

TEST_F(Windows, WhatIsSentAgainDoesNotExecuteLocalRequestsAgain)
{
    OwnWindow window(b.pd, NTBV_MW_2);
    // The first request has to wait; what is behind it has been executed, and is not again.
    ASSERT_EQ(Work(NTBV_SEND, 1).post(qb), 0);
    ASSERT_EQ(window.bind(qb, 2, mb, 0, 64), 0);
    ASSERT_EQ(invalidate(3, window.key).post(qb), 0);
    ASSERT_EQ(Work(NTBV_SEND, 4).post(qb), 0);
    ASSERT_EQ(window.bind(qb, 5, mb, 0, 64), 0);
    EXPECT_TRUE(take(b.cq).empty());
    EXPECT_EQ(ntbv_mr_deregister(b.pd, mb.key), -EBUSY) << "the last one is executed";
    for (int i = 0; i < 5; ++i) {
        clock.advance_us(700);
        EXPECT_TRUE(take(b.cq).empty());
    }
    ASSERT_EQ(post_recv(qa, 9), 0);
    ASSERT_EQ(post_recv(qa, 9), 0);
    expect(b.cq, {{1, NTBV_SUCCESS},
                  {2, NTBV_SUCCESS},
                  {3, NTBV_SUCCESS},
                  {4, NTBV_SUCCESS},
                  {5, NTBV_SUCCESS}});
}

TEST_F(Windows, ManyLocalRequestsBetweenOthersLeaveTheNumbersOfTheWireAlone)
{
    OwnWindow window(b.pd, NTBV_MW_2);
    Memory open(a.pd, 64);
    std::vector<std::pair<std::uint64_t, std::uint32_t>> expected;
    std::size_t received = 0;
    for (std::uint64_t id = 0; id < 3000; ++id) {
        const unsigned signaled = id % 7 != 0 ? NTBV_SIGNALED : 0;
        int error = 0;
        switch (id % 6) {
        case 0:
            error = window.bind(qb, id, mb, 0, 64, NTBV_REMOTE_READ, signaled);
            break;
        case 1:
            error = invalidate(id, window.key, signaled).post(qb);
            break;
        case 2:
            ASSERT_EQ(post_recv(qa, id), 0);
            error = Work(NTBV_SEND, id, {}, signaled).post(qb);
            break;
        case 3:
            error = Work(NTBV_READ, id, mb.piece(64, 64), signaled).to(open).post(qb);
            break;
        case 4:
            error = Work(NTBV_WRITE, id, mb.piece(64, 64), signaled).to(open).post(qb);
            break;
        default:
            error = Work(NTBV_FETCH_ADD, id, mb.piece(64, 8), signaled).to(open).post(qb);
        }
        ASSERT_EQ(error, 0);
        if (signaled != 0)
            expected.emplace_back(id, NTBV_SUCCESS);
        if (id % 50 == 49) {
            expect(b.cq, expected);
            expected.clear();
            received += take(a.recv_cq).size();
        }
    }
    EXPECT_EQ(received, 500u);
}

TEST_F(Windows, AFailedBindingFlushesWhatIsBehindItAndNotWhatIsBefore)
{
    OwnWindow window(b.pd, NTBV_MW_2);
    ASSERT_EQ(Work(NTBV_SEND, 1).post(qb), 0);
    ASSERT_EQ(window.bind(qb, 2, {nullptr, window.key, mb.key, 0, 8, 0}), 0);
    ASSERT_EQ(window.bind(qb, 3, mb, 0, 64), 0);
    EXPECT_TRUE(take(b.cq).empty()) << "the first one has no receive yet";
    ASSERT_EQ(post_recv(qa, 9), 0);
    expect(b.cq, {{1, NTBV_SUCCESS}, {2, NTBV_MW_BIND_ERR}, {3, NTBV_WR_FLUSH_ERR}});
    EXPECT_EQ(ntbv_mr_deregister(b.pd, mb.key), 0) << "was not executed";
    mb.key = 0;
}

TEST_F(Windows, OfAListThatIsPostedAllOrNothingNothingIsBound)
{
    OwnWindow window(b.pd, NTBV_MW_2);
    ntbv_bind good = {window.mw, window.next_key(), mb.key, mb.address(), 8, NTBV_REMOTE_READ};
    ntbv_bind bad = {window.mw, window.key ^ 0x100, mb.key, mb.address(), 8, NTBV_REMOTE_READ};
    Work one_wr(NTBV_BIND_MW, 1), send(NTBV_SEND, 2), two(NTBV_BIND_MW, 3);
    one_wr.wr.bind = &good;
    one_wr.wr.next = &send.wr;
    send.wr.next = &two.wr;
    two.wr.bind = &bad;
    EXPECT_EQ(ntbv_qp_post_send_all(qb, &one_wr.wr), -EINVAL);
    send.wr.next = nullptr;
    ASSERT_EQ(post_recv(qa, 9), 0);
    EXPECT_EQ(ntbv_qp_post_send_all(qb, &one_wr.wr), 0);
    expect(b.cq, {{1, NTBV_SUCCESS}, {2, NTBV_SUCCESS}});
}

TEST_F(Windows, ALostPeerFailsWhatIsBehindItAndALaterBindingFails)
{
    OwnWindow window(b.pd, NTBV_MW_2);
    loopback->set_full(1, true);
    ASSERT_EQ(Work(NTBV_SEND, 1).post(qb), 0);
    ASSERT_EQ(window.bind(qb, 2, mb, 0, 64), 0);
    loopback->end(0).close();
    run();
    clock.outlast_silence();
    expect(b.cq, {{1, NTBV_RETRY_EXC_ERR}, {2, NTBV_WR_FLUSH_ERR}});
    ASSERT_EQ(window.bind(qb, 3, mb, 0, 64), 0);
    expect(b.cq, {{3, NTBV_WR_FLUSH_ERR}});
}

} // namespace

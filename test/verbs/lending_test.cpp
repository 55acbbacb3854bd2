// SPDX-License-Identifier: BSD-3-Clause
// SENDs whose data the peer copies from where they lie: doc/verbs.md, section 6, decision 072.
#include <memory>
#include <optional>
#include <vector>

#include "direct_hosts.hpp"
#include "engine/shared.hpp"

namespace
{

using namespace verbs_test;
using namespace ntb::verbs;

/// The sender lends, with memory that has no rights for peers.
class Lending : public Hosts
{
protected:
    static constexpr std::size_t longest = 16 * page;

    void SetUp() override
    {
        if (!can_exchange())
            GTEST_SKIP() << "the kernel has no userfaultfd for this user";
        ASSERT_EQ(be_direct(*a.engine, files, how), 0);
        if (receiver_is_direct) {
            ASSERT_EQ(be_direct(*b.engine, files), 0);
        }
        Hosts::SetUp();
        connect(NTBV_RC);
        source.emplace(a.pd, longest, 0u);
        first = files.newest();
        for (std::size_t i = 0; i < longest; ++i)
            source->memory[i] = static_cast<std::byte>(i * 7 + (i >> 8));
    }
    std::uint64_t lent() { return ntbv_engine_count(a.engine, NTBV_COUNT_LENT); }
    static ntbv_sge piece(const Pages &pages, std::size_t offset, std::size_t bytes)
    {
        return {pages.address() + offset, static_cast<std::uint32_t>(bytes), pages.key};
    }
    Work send(std::size_t offset, std::size_t bytes, ntbv_opcode opcode = NTBV_SEND)
    {
        return Work(opcode, bytes, piece(*source, offset, bytes));
    }
    /// It is received as it was sent. @return whether it went without its data
    bool arrives(Work work, const ntbv_sge *into = nullptr, int n_into = 1)
    {
        const std::uint64_t before = lent();
        const std::byte *const data =
            reinterpret_cast<const std::byte *>(static_cast<std::uintptr_t>(work.sge.address));
        std::fill(target.bytes.begin(), target.bytes.end(), std::uint8_t{0xcc});
        const ntbv_sge all = target.all();
        ntbv_recv_wr wr = {
            5, nullptr, into ? const_cast<ntbv_sge *>(into) : const_cast<ntbv_sge *>(&all), n_into};
        const ntbv_recv_wr *bad = nullptr;
        EXPECT_EQ(ntbv_qp_post_recv(qb, &wr, &bad), 0);
        EXPECT_EQ(work.post(qa), 0);
        const ntbv_wc received = one(b.recv_cq);
        EXPECT_EQ(received.status, NTBV_SUCCESS);
        EXPECT_EQ(received.bytes, work.sge.length);
        const ntbv_wc sent = one(a.cq);
        EXPECT_EQ(sent.status, NTBV_SUCCESS);
        EXPECT_EQ(sent.id, work.wr.id);
        if (!into) {
            EXPECT_EQ(std::memcmp(target.bytes.data(), data, work.sge.length), 0);
            EXPECT_EQ(target.bytes[work.sge.length], 0xcc);
        }
        return lent() != before;
    }
    /// The peer has the region.
    void get_to_know()
    {
        arrives(send(0, 8));
        arrives(send(0, 4096));
        ASSERT_TRUE(arrives(send(0, 4096)));
    }

    bool receiver_is_direct = true;
    ntbv_direct how = NTBV_DIRECT_SENDS;
    MemoryFiles files;
    std::optional<Pages> source;
    std::shared_ptr<Segment> first; // its own
    Memory target{b.pd, longest + 1, NTBV_LOCAL_WRITE};
};

TEST_F(Lending, LongDataAreTakenFromWhereTheyLie)
{
    EXPECT_FALSE(arrives(send(0, 8000))) << "nothing is known of the peer";
    EXPECT_FALSE(arrives(send(0, 8000))) << "it is told of the region";
    for (const std::size_t bytes : {4096ul, 4097ul, 8191ul, 60001ul, longest - 3})
        EXPECT_TRUE(arrives(send(3, bytes))) << bytes;
    EXPECT_TRUE(arrives(send(0, longest)));
    const Pages large(a.pd, (4 << 20) + page, 0u);
    Memory room(b.pd, large.bytes);
    const ntbv_sge whole = room.all();
    for (int i = 0; i < 3; ++i)
        EXPECT_FALSE(arrives(Work(NTBV_SEND, 1, piece(large, 0, large.bytes)), &whole));
    EXPECT_FALSE(arrives(send(3, 4095))) << "short ones have their data with them";
    EXPECT_FALSE(arrives(send(0, 1)));
    EXPECT_TRUE(arrives(send(3, 4096)));
}

TEST_F(Lending, AllThatASendSaysIsSaid)
{
    get_to_know();
    ASSERT_EQ(post_recv(qb, 7, target.all()), 0);
    Work with_imm = send(1, 5000, NTBV_SEND_IMM).imm(0xabcd);
    with_imm.wr.flags |= NTBV_SOLICITED;
    ASSERT_EQ(ntbv_cq_arm(b.recv_cq, true), 0);
    ASSERT_EQ(with_imm.post(qa), 0);
    const ntbv_wc received = one(b.recv_cq);
    EXPECT_EQ(received.id, 7u);
    EXPECT_EQ(received.imm, 0xabcdu);
    EXPECT_EQ(received.flags & NTBV_WC_WITH_IMM, unsigned{NTBV_WC_WITH_IMM});
    EXPECT_EQ(b.notifications(), (std::vector<std::uint64_t>{2}));
    EXPECT_EQ(one(a.cq).status, NTBV_SUCCESS);
    // To several pieces.
    const ntbv_sge pieces[] = {target.piece(9000, 100), target.piece(0, 1), target.piece(20, 8000)};
    EXPECT_TRUE(arrives(send(5, 6000), pieces, 3));
    EXPECT_EQ(std::memcmp(&target.bytes[9000], source->memory + 5, 100), 0);
    EXPECT_EQ(target.bytes[0], static_cast<std::uint8_t>(source->memory[105]));
    EXPECT_EQ(std::memcmp(&target.bytes[20], source->memory + 106, 5899), 0);
    EXPECT_EQ(target.bytes[20 + 5899], 0xcc);
}

TEST_F(Lending, WhatCannotBeLentHasItsDataWithIt)
{
    get_to_know();
    ntbv_sge two[] = {piece(*source, 0, 5000), piece(*source, 6000, 5000)};
    ntbv_send_wr wr = {};
    wr.opcode = NTBV_SEND;
    wr.flags = NTBV_SIGNALED;
    wr.sge = two;
    wr.n_sge = 2;
    const ntbv_send_wr *bad = nullptr;
    const std::uint64_t before = lent();
    ASSERT_EQ(post_recv(qb, 1, target.all()), 0);
    ASSERT_EQ(ntbv_qp_post_send(qa, &wr, &bad), 0);
    EXPECT_EQ(one(b.recv_cq).bytes, 10000u);
    EXPECT_EQ(one(a.cq).status, NTBV_SUCCESS);
    EXPECT_EQ(std::memcmp(target.bytes.data() + 5000, source->memory + 6000, 5000), 0);
    const Memory served(a.pd, 9000, 0); // no whole pages
    for (int i = 0; i < 3; ++i)
        EXPECT_FALSE(arrives(Work(NTBV_SEND, 1, served.all())));
    EXPECT_EQ(lent(), before);
}

TEST_F(Lending, ErrorsAreThoseOfOtherSends)
{
    get_to_know();
    ASSERT_EQ(post_recv(qb, 1, target.piece(0, 5000)), 0);
    ASSERT_EQ(send(0, 5001).post(qa), 0);
    expect(b.recv_cq, {{1, NTBV_LOC_LEN_ERR}});
    expect(a.cq, {{5001, NTBV_REM_INV_REQ_ERR}});
}

TEST_F(Lending, AReceiverWithoutTheRightIsAnError)
{
    get_to_know();
    const Memory closed(b.pd, 6000, 0);
    ASSERT_EQ(post_recv(qb, 1, closed.all()), 0);
    ASSERT_EQ(send(0, 5000).post(qa), 0);
    expect(b.recv_cq, {{1, NTBV_LOC_PROT_ERR}});
    expect(a.cq, {{5000, NTBV_REM_OP_ERR}});
    EXPECT_EQ(closed.bytes, std::vector<std::uint8_t>(6000));
}

TEST_F(Lending, WhatComesTooEarlyComesAgain)
{
    get_to_know();
    for (std::uint64_t id = 0; id < 3; ++id)
        ASSERT_EQ(Work(NTBV_SEND, id, piece(*source, id, 5000 + id)).post(qa), 0);
    EXPECT_TRUE(take(b.recv_cq).empty());
    std::vector<std::unique_ptr<Memory>> into;
    for (std::uint64_t id = 0; id < 3; ++id) {
        into.push_back(std::make_unique<Memory>(b.pd, 6000));
        ASSERT_EQ(post_recv(qb, id, into.back()->all()), 0);
    }
    run();
    clock.advance_us(1000);
    expect(b.recv_cq, {{0, NTBV_SUCCESS}, {1, NTBV_SUCCESS}, {2, NTBV_SUCCESS}});
    expect(a.cq, {{0, NTBV_SUCCESS}, {1, NTBV_SUCCESS}, {2, NTBV_SUCCESS}});
    for (std::size_t id = 0; id < 3; ++id)
        EXPECT_EQ(std::memcmp(into[id]->bytes.data(), source->memory + id, 5000 + id), 0);
}

// Long and short ones, and one that cannot be lent, in the order of posting.
TEST_F(Lending, NothingOvertakes)
{
    get_to_know();
    std::vector<std::unique_ptr<Memory>> into;
    for (std::uint64_t id = 0; id < 60; ++id) {
        into.push_back(std::make_unique<Memory>(b.pd, 20000));
        ASSERT_EQ(post_recv(qb, id, into.back()->all()), 0);
    }
    for (std::uint64_t id = 0; id < 60; ++id) {
        const std::size_t bytes = id % 3 == 0 ? 16 : id % 3 == 1 ? 4096 + id : 20000 - id;
        ASSERT_EQ(Work(NTBV_SEND, id, piece(*source, id, bytes)).post(qa), 0);
    }
    const std::vector<ntbv_wc> received = take(b.recv_cq);
    ASSERT_EQ(received.size(), 60u);
    for (std::uint64_t id = 0; id < 60; ++id) {
        EXPECT_EQ(received[id].id, id);
        EXPECT_EQ(std::memcmp(into[id]->bytes.data(), source->memory + id, received[id].bytes), 0);
    }
    EXPECT_EQ(take(a.cq).size(), 60u);
}

// More regions than there are places: some stay, so that not each SEND tells the peer anew.
TEST_F(Lending, RegionsTakeTurns)
{
    arrives(send(0, 8));
    const auto part_of = [&](std::size_t n) {
        std::vector<std::unique_ptr<Pages>> all;
        for (std::size_t i = 0; i < n; ++i)
            all.push_back(std::make_unique<Pages>(a.pd, 2 * page, 0u));
        std::size_t without = 0;
        for (std::size_t i = 0; i < 40 * n; ++i)
            without += arrives(Work(NTBV_SEND, 1, piece(*all[i % n], 7, 5000)));
        return static_cast<double>(without) / static_cast<double>(40 * n);
    };
    EXPECT_GT(part_of(8), 0.9);
    EXPECT_GT(part_of(12), 0.5);
    EXPECT_GT(part_of(32), 0.15);
}

TEST_F(Lending, ManyRegionsForSomeTimeEach)
{
    arrives(send(0, 8));
    std::vector<std::unique_ptr<Pages>> all;
    constexpr std::size_t regions = 12, sends_of_each = 200;
    for (std::size_t i = 0; i < regions; ++i)
        all.push_back(std::make_unique<Pages>(a.pd, 2 * page, 0u));
    std::size_t without = 0;
    for (std::size_t i = 0; i < regions * sends_of_each; ++i)
        without += arrives(Work(NTBV_SEND, 1, piece(*all[i / sends_of_each], 7, 5000)));
    EXPECT_GT(without, regions * sends_of_each * 3 / 4);
}

TEST_F(Lending, RegionsThatAreGoneMakePlaceForOthers)
{
    arrives(send(0, 8));
    for (int i = 0; i < 300; ++i) {
        const Pages pages(a.pd, 2 * page, 0u);
        const Work work(NTBV_SEND, 1, piece(pages, 0, 2 * page));
        EXPECT_FALSE(arrives(work));
        EXPECT_TRUE(arrives(work)) << i;
    }
}

// An error of the program, that is answered as one: the data of other requests are not concerned.
TEST_F(Lending, ARegionThatEndsBeforeItsDataAreTakenEndsTheRequest)
{
    get_to_know();
    ASSERT_EQ(post_recv(qb, 1, target.all()), 0);
    ASSERT_EQ(post_recv(qb, 2, target.all()), 0);
    loopback->hold(0, true);
    ASSERT_EQ(Work(NTBV_SEND, 1, piece(*source, 0, 5000)).post(qa), 0);
    ASSERT_EQ(Work(NTBV_SEND, 2, piece(*source, 0, 16)).post(qa), 0);
    source->leave();
    loopback->hold(0, false);
    expect(a.cq, {{1, NTBV_LOC_PROT_ERR}, {2, NTBV_WR_FLUSH_ERR}});
    EXPECT_TRUE(take(b.recv_cq).empty());
    EXPECT_EQ(state_of(qb), NTBV_RTS);
}

// The key stays, and what the peer has mapped is of no use any more.
TEST_F(Lending, ARegionThatChangesIsLentAnew)
{
    get_to_know();
    ASSERT_EQ(ntbv_mr_reregister(a.pd, source->key, a.pd, source->memory, longest,
                                 source->address(), NTBV_LOCAL_WRITE),
              0);
    EXPECT_FALSE(arrives(send(0, 5000)));
    EXPECT_TRUE(arrives(send(0, 5000)));
}

// What a request was is in the request: its region's place may have another one meanwhile.
TEST_F(Lending, PlacesThatChangeMeanwhileMixNothingUp)
{
    get_to_know();
    std::vector<std::unique_ptr<Pages>> others;
    for (int i = 0; i < 20; ++i)
        others.push_back(std::make_unique<Pages>(a.pd, 2 * page, 0u));
    for (std::uint64_t id = 0; id < 22; ++id)
        ASSERT_EQ(post_recv(qb, id, target.all()), 0);
    loopback->hold(0, true);
    ASSERT_EQ(Work(NTBV_SEND, 0, piece(*source, 0, 5000)).post(qa), 0);
    for (std::uint64_t id = 1; id < 21; ++id)
        ASSERT_EQ(Work(NTBV_SEND, id, piece(*others[id - 1], 0, 5000)).post(qa), 0);
    registered_word(*first).store(0);
    loopback->hold(0, false);
    const std::vector<ntbv_wc> sent = take(a.cq);
    ASSERT_EQ(sent.size(), 21u);
    for (std::uint64_t id = 0; id < 21; ++id) {
        EXPECT_EQ(sent[id].id, id);
        EXPECT_EQ(sent[id].status, NTBV_SUCCESS);
    }
    registered_word(*first).store(1);
}

// Half of it came in pieces when the peer was to ask again, and learned that it has the region.
TEST_F(Lending, ARequestMayBeginInPiecesAndComeAgainWithout)
{
    arrives(send(0, 8));
    ntbv_qp *const other = a.make(NTBV_UC);
    to_peer(other, NTBV_UC, 2, ntbv_qp_number(qb) + 50);
    ASSERT_EQ(post_recv(qb, 9, target.all()), 0);
    loopback->set_full(1, true);
    for (std::uint64_t id = 0; id < 70; ++id) // more than can be noted: AGAIN
        ASSERT_EQ(Work(NTBV_SEND, id, piece(*source, 0, 8), 0).post(other), 0);
    ASSERT_EQ(send(0, longest).post(qa), 0);
    for (int i = 0; i < 5; ++i)
        ntbv_engine_drive(b.engine);
    loopback->set_full(1, false);
    for (int i = 0; i < 5; ++i)
        ntbv_engine_drive(b.engine);
    loopback->set_full(0, true);
    for (int i = 0; i < 3; ++i)
        ntbv_engine_drive(a.engine);
    loopback->set_full(0, false);
    run();
    clock.advance_us(100000);
    EXPECT_EQ(one(a.cq).status, NTBV_SUCCESS);
    EXPECT_EQ(one(b.recv_cq).status, NTBV_SUCCESS);
    EXPECT_EQ(std::memcmp(target.bytes.data(), source->memory, longest), 0);
}

TEST_F(Lending, AQueuePairThatIsConnectedAnewTellsAnew)
{
    get_to_know();
    ASSERT_EQ(to_state(qa, NTBV_RESET), 0);
    ASSERT_EQ(to_state(qb, NTBV_RESET), 0);
    run(); // each hears that the other one was reset
    connect(qa, qb, NTBV_RC);
    EXPECT_FALSE(arrives(send(0, 5000)));
    EXPECT_FALSE(arrives(send(0, 5000)));
    EXPECT_TRUE(arrives(send(0, 5000)));
}

// As after a fault of a peer that has forgotten: the request and those behind it come by messages.
TEST_F(Lending, APeerThatHasForgottenGetsTheData)
{
    get_to_know();
    std::vector<std::unique_ptr<Memory>> into;
    for (std::uint64_t id = 0; id < 4; ++id) {
        into.push_back(std::make_unique<Memory>(b.pd, 6000));
        ASSERT_EQ(post_recv(qb, id, into.back()->all()), 0);
    }
    // The region ends at the owner's daemon, as far as the peer can see, and is there all the same.
    loopback->hold(0, true);
    for (std::uint64_t id = 0; id < 4; ++id)
        ASSERT_EQ(Work(NTBV_SEND, id, piece(*source, id, 5000)).post(qa), 0);
    registered_word(*first).store(0);
    loopback->hold(0, false);
    expect(b.recv_cq, {{0, NTBV_SUCCESS}, {1, NTBV_SUCCESS}, {2, NTBV_SUCCESS}, {3, NTBV_SUCCESS}});
    expect(a.cq, {{0, NTBV_SUCCESS}, {1, NTBV_SUCCESS}, {2, NTBV_SUCCESS}, {3, NTBV_SUCCESS}});
    for (std::size_t id = 0; id < 4; ++id)
        EXPECT_EQ(std::memcmp(into[id]->bytes.data(), source->memory + id, 5000), 0);
    registered_word(*first).store(1);
    EXPECT_FALSE(arrives(send(0, 5000))) << "it is not lent again";
}

class LendingToNone : public Lending
{
protected:
    LendingToNone() { receiver_is_direct = false; }
};

TEST_F(LendingToNone, APeerThatMapsNothingGetsMessages)
{
    for (int i = 0; i < 5; ++i)
        EXPECT_FALSE(arrives(send(0, 5000)));
}

class DirectAlone : public Lending
{
protected:
    DirectAlone() { how = NTBV_DIRECT; }
};

TEST_F(DirectAlone, WithoutBeingToldNothingIsLent)
{
    const Pages open(a.pd, 4 * page);
    for (int i = 0; i < 5; ++i) {
        EXPECT_FALSE(arrives(send(0, 5000)));
        EXPECT_FALSE(arrives(Work(NTBV_SEND, 1, piece(open, 0, 5000))));
    }
}

} // namespace

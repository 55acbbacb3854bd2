// SPDX-License-Identifier: BSD-3-Clause
// Requests that store into the peer's memory themselves: doc/verbs.md, section 6, decision 042.
#include <array>
#include <optional>
#include <thread>

#include <sys/mman.h>
#include <sys/wait.h>

#include "direct_hosts.hpp"
#include "wire/message.hpp"

namespace
{

using namespace verbs_test;
using namespace ntb::verbs;

using Direct = DirectHosts;

TEST_F(Direct, TheFirstWriteAsksAndTheNextOnesNeedNobody)
{
    ASSERT_EQ(shared(), 1u);
    ma.count_up();
    ASSERT_EQ(work(NTBV_WRITE, 1, 64).post(qa), 0);
    EXPECT_EQ(one(a.cq).status, NTBV_SUCCESS);
    EXPECT_EQ(writes(), 0u);
    for (const std::size_t bytes : {1ul, 7ul, 8ul, 12ul, 64ul, 65ul, 8129ul, 60001ul}) {
        std::memset(mb->memory, 0xcc, mb->bytes);
        ASSERT_EQ(work(NTBV_WRITE, bytes, bytes, 5).post(qa), 0);
        EXPECT_EQ(std::memcmp(mb->memory + 5, ma.bytes.data(), bytes), 0);
        EXPECT_EQ(mb->memory[4], std::byte{0xcc});
        EXPECT_EQ(mb->memory[5 + bytes], std::byte{0xcc});
        const std::vector<ntbv_wc> done = there(a.cq);
        ASSERT_EQ(done.size(), 1u);
        EXPECT_EQ(done[0].id, bytes);
        EXPECT_EQ(done[0].status, NTBV_SUCCESS);
        EXPECT_EQ(done[0].opcode, NTBV_WC_WRITE);
        EXPECT_EQ(done[0].bytes, bytes);
        EXPECT_EQ(done[0].qpn, ntbv_qp_number(qa));
    }
    EXPECT_EQ(writes(), 8u);
    EXPECT_TRUE(take(b.recv_cq).empty());
}

TEST_F(Direct, SoDoReads)
{
    for (std::size_t i = 0; i < mb->bytes; ++i)
        mb->memory[i] = static_cast<std::byte>(i * 3 + (i >> 8));
    get_to_know(NTBV_READ);
    for (const std::size_t bytes : {1ul, 64ul, 60001ul}) {
        std::fill(ma.bytes.begin(), ma.bytes.end(), std::uint8_t{0});
        ASSERT_EQ(work(NTBV_READ, bytes, bytes, 9).post(qa), 0);
        EXPECT_EQ(std::memcmp(mb->memory + 9, ma.bytes.data(), bytes), 0);
        const std::vector<ntbv_wc> done = there(a.cq);
        ASSERT_EQ(done.size(), 1u);
        EXPECT_EQ(done[0].opcode, NTBV_WC_READ);
    }
    EXPECT_EQ(reads(), 3u);
}

TEST_F(Direct, PiecesInlineDataAndListsArriveAsTheyAre)
{
    get_to_know();
    ma.count_up();
    ntbv_sge pieces[4] = {ma.piece(100, 3), ma.piece(0, 0), ma.piece(7, 4096), ma.piece(50, 9)};
    ntbv_send_wr second = {.id = 2,
                           .sge = pieces,
                           .n_sge = 1,
                           .opcode = NTBV_WRITE,
                           .flags = NTBV_INLINE | NTBV_SIGNALED,
                           .remote_address = mb->address() + 8000,
                           .remote_key = mb->key};
    ntbv_send_wr first = second;
    first.id = 1;
    first.n_sge = 4;
    first.flags = 0;
    first.remote_address = mb->address() + 1;
    first.next = &second;
    const ntbv_send_wr *bad = nullptr;
    ASSERT_EQ(ntbv_qp_post_send(qa, &first, &bad), 0);
    EXPECT_EQ(std::memcmp(mb->memory + 1, &ma.bytes[100], 3), 0);
    EXPECT_EQ(std::memcmp(mb->memory + 4, &ma.bytes[7], 4096), 0);
    EXPECT_EQ(std::memcmp(mb->memory + 4100, &ma.bytes[50], 9), 0);
    EXPECT_EQ(std::memcmp(mb->memory + 8000, &ma.bytes[100], 3), 0);
    const std::vector<ntbv_wc> done = there(a.cq);
    ASSERT_EQ(done.size(), 1u) << "one was not signaled";
    EXPECT_EQ(done[0].id, 2u);
    // All or none.
    ASSERT_EQ(ntbv_qp_post_send_all(qa, &first), 0);
    EXPECT_EQ(there(a.cq).size(), 1u);
    EXPECT_EQ(writes(), 4u);
}

TEST_F(Direct, WhatCannotBeIsRefusedAsByMessages)
{
    get_to_know();
    Work inline_read = work(NTBV_READ, 1, 8);
    inline_read.wr.flags |= NTBV_INLINE;
    EXPECT_EQ(inline_read.post(qa), -EINVAL);
    Work too_long = work(NTBV_WRITE, 1, 5000);
    too_long.wr.flags |= NTBV_INLINE;
    EXPECT_EQ(too_long.post(qa), -EINVAL);
    Work strange = work(NTBV_WRITE, 1, 8);
    strange.wr.flags |= 1u << 20;
    EXPECT_EQ(strange.post(qa), -EINVAL);
    Work lacks_key = work(NTBV_WRITE, 7, 8);
    lacks_key.sge.key ^= 1;
    ASSERT_EQ(lacks_key.post(qa), 0);
    EXPECT_EQ(one(a.cq).status, NTBV_LOC_PROT_ERR);
    EXPECT_EQ(work(NTBV_WRITE, 8, 8).post(qa), 0);
    EXPECT_EQ(one(a.cq).status, NTBV_WR_FLUSH_ERR);
    EXPECT_EQ(writes(), 0u);
}

TEST_F(Direct, AWriteNeverOvertakesWhatIsUnacknowledged)
{
    get_to_know();
    ASSERT_EQ(post_recv(qb, 1), 0);
    loopback->hold(0, true);
    ma.count_up();
    mb->set_word(0);
    ASSERT_EQ(Work(NTBV_SEND, 1).post(qa), 0);
    ASSERT_EQ(work(NTBV_WRITE, 2, 8).post(qa), 0);
    run();
    EXPECT_EQ(mb->word(), 0u) << "the message before it is on its way";
    EXPECT_TRUE(there(a.cq).empty());
    loopback->hold(0, false);
    expect(a.cq, {{1, NTBV_SUCCESS}, {2, NTBV_SUCCESS}});
    EXPECT_NE(mb->word(), 0u);
    EXPECT_EQ(writes(), 0u);
    ASSERT_EQ(work(NTBV_WRITE, 3, 8).post(qa), 0);
    EXPECT_EQ(writes(), 1u);
}

TEST_F(Direct, ASendBehindAWriteIsBehindIt)
{
    get_to_know();
    for (std::uint64_t i = 1; i < 50; ++i) {
        ma.bytes[0] = static_cast<std::uint8_t>(i);
        ASSERT_EQ(post_recv(qb, i), 0);
        ASSERT_EQ(work(NTBV_WRITE, i, 1, 64).post(qa), 0);
        ASSERT_EQ(Work(NTBV_SEND, 100 + i).post(qa), 0);
        EXPECT_EQ(one(b.recv_cq).id, i);
        EXPECT_EQ(mb->memory[64], static_cast<std::byte>(i));
        expect(a.cq, {{i, NTBV_SUCCESS}, {100 + i, NTBV_SUCCESS}});
    }
    EXPECT_EQ(writes(), 49u);
}

// A program that never lets its queue run empty.
TEST_F(Direct, AFullQueueChangesItsWay)
{
    std::uint64_t posted = 0, completed = 0;
    for (; posted < 100; ++posted)
        ASSERT_EQ(work(NTBV_WRITE, posted, 64).post(qa), 0);
    while (completed < 2000) {
        for (const ntbv_wc &wc : take(a.cq)) {
            EXPECT_EQ(wc.id, completed++);
            EXPECT_EQ(wc.status, NTBV_SUCCESS);
            if (posted < 2000) {
                ASSERT_EQ(work(NTBV_WRITE, posted++, 64).post(qa), 0);
            }
        }
    }
    EXPECT_GT(writes(), 1500u);
    // A send between them, whose acknowledgement is held back: messages, but not for ever.
    const std::uint64_t before = writes();
    ASSERT_EQ(post_recv(qb, 1), 0);
    loopback->hold(1, true);
    ASSERT_EQ(Work(NTBV_SEND, 1).post(qa), 0);
    for (std::uint64_t i = 0; i < 40; ++i)
        ASSERT_EQ(work(NTBV_WRITE, i, 64).post(qa), 0);
    run();
    EXPECT_EQ(writes(), before);
    loopback->hold(1, false);
    EXPECT_EQ(take(a.cq).size(), 41u);
    EXPECT_GE(writes(), before + 20);
}

TEST_F(Direct, ImmediateDataAndAtomicsGoByMessages)
{
    get_to_know();
    mb->set_word(5);
    ASSERT_EQ(post_recv(qb, 3), 0);
    ASSERT_EQ(work(NTBV_WRITE_IMM, 1, 8, 64).imm(9).post(qa), 0);
    EXPECT_EQ(one(b.recv_cq).imm, 9u);
    Work add = work(NTBV_FETCH_ADD, 2, 8);
    add.wr.compare_add = 2;
    ASSERT_EQ(add.post(qa), 0);
    expect(a.cq, {{1, NTBV_SUCCESS}, {2, NTBV_SUCCESS}});
    EXPECT_EQ(mb->word(), 7u);
    EXPECT_EQ(writes() + reads(), 0u);
}

TEST_F(Direct, ARegionToReadIsNotWritten)
{
    const Pages to_read(b.pd, page, NTBV_REMOTE_READ);
    Work read(NTBV_READ, 1, ma.piece(0, 8)), write(NTBV_WRITE, 2, ma.piece(0, 8));
    for (Work *each : {&read, &write}) {
        each->wr.remote_address = to_read.address();
        each->wr.remote_key = to_read.key;
    }
    ASSERT_EQ(read.post(qa), 0);
    one(a.cq);
    ASSERT_EQ(read.post(qa), 0);
    one(a.cq);
    EXPECT_EQ(reads(), 1u);
    ASSERT_EQ(write.post(qa), 0);
    EXPECT_EQ(one(a.cq).status, NTBV_REM_ACCESS_ERR);
}

TEST_F(Direct, AQueuePairThatMayOnlyReadReadsOnly)
{
    ntbv_qp_attr reader = attributes();
    reader.access = NTBV_REMOTE_READ;
    ntbv_qp *const two = a.make(NTBV_RC), *const other = b.make(NTBV_RC);
    connect(two, other, NTBV_RC, attributes(), reader);
    get_to_know(); // by the queue pair that may write
    for (int i = 0; i < 2; ++i) {
        ASSERT_EQ(work(NTBV_READ, 1, 8).post(two), 0);
        one(a.cq);
    }
    EXPECT_EQ(reads(), 1u);
    ASSERT_EQ(work(NTBV_WRITE, 2, 8).post(two), 0);
    EXPECT_EQ(one(a.cq).status, NTBV_REM_ACCESS_ERR);
}

TEST_F(Direct, OutsideOfTheRegionIsAnError)
{
    get_to_know();
    ASSERT_EQ(work(NTBV_WRITE, 1, 16, mb->bytes - 16).post(qa), 0);
    EXPECT_EQ(writes(), 1u);
    ASSERT_EQ(work(NTBV_WRITE, 2, 16, mb->bytes - 8).post(qa), 0);
    expect(a.cq, {{1, NTBV_SUCCESS}, {2, NTBV_REM_ACCESS_ERR}});
    EXPECT_EQ(b.events(), std::vector<std::uint32_t>{NTBV_EVENT_QP_ACCESS_ERR});
}

TEST_F(Direct, WhatIsDeregisteredIsOutOfReach)
{
    get_to_know();
    ma.count_up();
    ASSERT_EQ(work(NTBV_WRITE, 1, 8).post(qa), 0);
    one(a.cq);
    Work late = work(NTBV_WRITE, 2, 8);
    mb->leave();
    EXPECT_TRUE(is_plain_memory(mb->memory, mb->bytes));
    EXPECT_NE(mb->word(), 0u) << "what was written before is there";
    mb->set_word(0);
    ASSERT_EQ(late.post(qa), 0);
    EXPECT_EQ(one(a.cq).status, NTBV_REM_ACCESS_ERR);
    EXPECT_EQ(mb->word(), 0u);
    EXPECT_EQ(writes(), 1u);
}

// Each write that succeeds is in the memory that is left, and none comes later.
TEST_F(Direct, DeregistrationAgainstWritesThatAreUnderWay)
{
    constexpr int rounds = 100;
    std::uint64_t went = 0;
    for (int round = 0; round < rounds; ++round) {
        ntbv_qp *const one_qp = a.make(NTBV_RC), *const other = b.make(NTBV_RC);
        connect(one_qp, other, NTBV_RC);
        Pages pages(b.pd, 4 * page);
        std::atomic<std::uint64_t> succeeded{0};
        const std::uint64_t before = writes();
        const std::uint32_t key = std::exchange(pages.key, 0);
        std::thread requester([&] {
            ntbv_wc wc = {};
            for (std::uint64_t i = 1; wc.status == NTBV_SUCCESS; ++i) {
                std::memcpy(ma.bytes.data(), &i, sizeof(i));
                Work write(NTBV_WRITE, i, ma.piece(0, 8));
                write.wr.remote_address = pages.address();
                write.wr.remote_key = key;
                EXPECT_EQ(write.post(one_qp), 0);
                while (ntbv_cq_poll(a.cq, 1, &wc) == 0) {
                }
                if (wc.status == NTBV_SUCCESS)
                    succeeded = i;
            }
            EXPECT_EQ(wc.status, NTBV_REM_ACCESS_ERR);
        });
        while (succeeded < static_cast<std::uint64_t>(3 + round))
            ntbv_engine_drive(b.engine);
        EXPECT_EQ(ntbv_mr_deregister(b.pd, key), 0);
        const std::uint64_t left = pages.word();
        while (state_of(one_qp) != NTBV_ERR)
            ntbv_engine_drive(b.engine);
        requester.join();
        EXPECT_EQ(pages.word(), left);
        EXPECT_GE(left, succeeded);
        EXPECT_LE(left, succeeded + 1);
        went += writes() - before;
        a.drop(one_qp);
        b.drop(other);
        a.events();
        b.events();
    }
    EXPECT_GT(went, 0u);
}

TEST_F(Direct, ARegionThatChangesIsAskedForAgain)
{
    get_to_know();
    Pages other(4 * page);
    ASSERT_EQ(ntbv_mr_reregister(b.pd, mb->key, b.pd, other.memory, other.bytes, mb->address(),
                                 all_rights),
              0);
    EXPECT_TRUE(is_plain_memory(mb->memory, mb->bytes));
    ma.bytes[0] = 77;
    for (std::uint64_t i = 0; i < 3; ++i) {
        ASSERT_EQ(work(NTBV_WRITE, i, 1, i).post(qa), 0);
        EXPECT_EQ(one(a.cq).status, NTBV_SUCCESS);
        EXPECT_EQ(other.memory[i], std::byte{77});
    }
    EXPECT_EQ(writes(), 2u);
    EXPECT_EQ(shared(), 2u);
    mb->leave();
    EXPECT_TRUE(is_plain_memory(other.memory, other.bytes));
}

TEST_F(Direct, RegionsThatCannotBeSharedAreServed)
{
    const auto count = [&](ntbv_count which) { return ntbv_engine_count(b.engine, which); };
    Pages pages(8 * page);
    const auto served = [&](std::byte *memory, std::uint64_t bytes, unsigned rights) {
        std::uint32_t key = 0;
        EXPECT_EQ(ntbv_mr_register(b.pd, memory, bytes, 0, rights, &key), 0);
        for (std::uint64_t i = 0; i < 2 && (rights & NTBV_REMOTE_WRITE) != 0; ++i) {
            Work write(NTBV_WRITE, i, ma.piece(0, 8));
            write.wr.remote_key = key;
            EXPECT_EQ(write.post(qa), 0);
            EXPECT_EQ(one(a.cq).status, NTBV_SUCCESS);
        }
        EXPECT_EQ(ntbv_mr_deregister(b.pd, key), 0);
    };
    served(pages.memory + 8, page, all_rights);
    served(pages.memory, page + 8, all_rights);
    EXPECT_EQ(count(NTBV_COUNT_NO_PAGES), 2u);
    served(pages.memory, page, NTBV_LOCAL_WRITE);
    EXPECT_EQ(count(NTBV_COUNT_NO_RIGHTS), 1u);
    served(pages.memory, page, all_rights | NTBV_MW_BIND);
    EXPECT_EQ(count(NTBV_COUNT_WINDOWS), 1u);
    served(mb->memory + page, page, all_rights);
    EXPECT_EQ(count(NTBV_COUNT_OVERLAPS), 1u);
    const auto file = files.create(2 * page);
    served(file->data(), 2 * page, all_rights);
    EXPECT_EQ(count(NTBV_COUNT_NOT_PLAIN), 1u);
    files.limit(0);
    served(pages.memory, page, all_rights);
    EXPECT_EQ(count(NTBV_COUNT_NO_SEGMENT), 1u);
    files.limit(10);
    loopback->grant_nothing();
    served(pages.memory, page, all_rights);
    EXPECT_EQ(count(NTBV_COUNT_NOT_GRANTED), 1u);
    EXPECT_EQ(writes(), 0u);
    EXPECT_EQ(shared(), 2u);
}

class DirectToNone : public Direct
{
protected:
    DirectToNone() { owner_is_direct = false; }
};

TEST_F(DirectToNone, APeerThatNeverGrantsIsReachedByMessages)
{
    for (std::uint64_t i = 0; i < 20; ++i) {
        ASSERT_EQ(work(NTBV_WRITE, i, 64).post(qa), 0);
        ASSERT_EQ(work(NTBV_READ, i, 64).post(qa), 0);
        EXPECT_EQ(take(a.cq).size(), 2u);
    }
    EXPECT_EQ(writes() + reads(), 0u);
}

// Two keys in four may have one place, and each use asks again then.
TEST_F(Direct, ManyRegionsTakeTurns)
{
    std::vector<std::unique_ptr<Pages>> all;
    for (int i = 0; i < 60; ++i)
        all.push_back(std::make_unique<Pages>(b.pd, page));
    for (std::uint64_t i = 0; i < 600; ++i) {
        const Pages &pages = *all[i % all.size()];
        std::memcpy(ma.bytes.data(), &i, sizeof(i));
        Work write(NTBV_WRITE, i, ma.piece(0, 8));
        write.wr.remote_address = pages.address() + 8;
        write.wr.remote_key = pages.key;
        ASSERT_EQ(write.post(qa), 0);
        ASSERT_EQ(one(a.cq).status, NTBV_SUCCESS);
        ASSERT_EQ(pages.word(8), i);
    }
    EXPECT_GT(writes(), 100u);
}

TEST_F(Direct, PlacesOfRegionsThatAreGoneAreGivenAgain)
{
    for (std::uint64_t i = 0; i < 300; ++i) {
        const Pages pages(b.pd, page);
        for (int n = 0; n < 2; ++n) {
            Work write(NTBV_WRITE, i, ma.piece(0, 8));
            write.wr.remote_address = pages.address();
            write.wr.remote_key = pages.key;
            ASSERT_EQ(write.post(qa), 0);
            ASSERT_EQ(one(a.cq).status, NTBV_SUCCESS);
        }
    }
    EXPECT_EQ(writes(), 300u);
}

TEST_F(Direct, APeerThatIsGoneIsNotWrittenTo)
{
    get_to_know();
    ma.bytes[0] = 55;
    loopback->kill();
    run();
    ASSERT_EQ(work(NTBV_WRITE, 1, 1).post(qa), 0);
    EXPECT_EQ(mb->memory[0], std::byte{0});
    clock.outlast_silence();
    EXPECT_EQ(one(a.cq).status, NTBV_RETRY_EXC_ERR);
    ASSERT_NO_FATAL_FAILURE(join_again());
    qa = a.make(NTBV_RC);
    qb = b.make(NTBV_RC);
    connect(qa, qb, NTBV_RC);
    get_to_know();
    ASSERT_EQ(work(NTBV_WRITE, 2, 1).post(qa), 0);
    EXPECT_EQ(mb->memory[0], std::byte{55});
    EXPECT_EQ(writes(), 1u);
}

TEST_F(Direct, AQueuePairThatIsGoneIsMissed)
{
    get_to_know();
    b.drop(qb);
    run();
    ASSERT_EQ(work(NTBV_WRITE, 1, 8).post(qa), 0);
    EXPECT_EQ(writes(), 0u);
    for (int i = 0; i < 20; ++i) {
        run();
        clock.advance_us(100000);
    }
    EXPECT_EQ(one(a.cq).status, NTBV_RETRY_EXC_ERR);
}

TEST_F(Direct, AChildHasItsOwnMemory)
{
    get_to_know();
    mb->set_word(1);
    int go[2], ready[2];
    ASSERT_EQ(pipe(go) | pipe(ready), 0);
    const pid_t child = fork();
    char byte = 0;
    if (child == 0) {
        const bool told = write(ready[1], "r", 1) == 1 && read(go[0], &byte, 1) == 1;
        const bool is_own = mb->word() == 1;
        mb->set_word(3);
        _exit(told && is_own ? 0 : 1);
    }
    ASSERT_EQ(read(ready[0], &byte, 1), 1);
    const std::uint64_t two = 2;
    std::memcpy(ma.bytes.data(), &two, sizeof(two));
    ASSERT_EQ(work(NTBV_WRITE, 1, 8).post(qa), 0);
    EXPECT_EQ(mb->word(), 2u);
    ASSERT_EQ(write(go[1], "g", 1), 1);
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(mb->word(), 2u);
    for (const int fd : {go[0], go[1], ready[0], ready[1]})
        close(fd);
}

TEST_F(Direct, AnEngineReachesItself)
{
    const auto itself = Loopback::create(1 << 16);
    ASSERT_EQ(a.attach(itself->end(0), 1), 0);
    ASSERT_EQ(a.attach(itself->end(1), 1), 0);
    ntbv_qp *const from = a.make(NTBV_RC), *const to = a.make(NTBV_RC);
    ntbv_qp_attr attr = attributes();
    for (ntbv_qp *qp : {from, to})
        ASSERT_EQ(to_init(qp, NTBV_RC, attr), 0);
    ASSERT_EQ(to_rtr(from, NTBV_RC, 1, ntbv_qp_number(to), attr), 0);
    ASSERT_EQ(to_rtr(to, NTBV_RC, 1, ntbv_qp_number(from), attr), 0);
    for (ntbv_qp *qp : {from, to})
        ASSERT_EQ(to_rts(qp, NTBV_RC, attr), 0);
    const Pages pages(a.pd, page);
    ma.bytes[0] = 11;
    for (std::uint64_t i = 0; i < 3; ++i) {
        Work write(NTBV_WRITE, i, ma.piece(0, 1));
        write.wr.remote_address = pages.address() + i;
        write.wr.remote_key = pages.key;
        ASSERT_EQ(write.post(from), 0);
        ASSERT_EQ(one(a.cq).status, NTBV_SUCCESS);
        EXPECT_EQ(pages.memory[i], std::byte{11});
    }
    EXPECT_EQ(writes(), 2u);
    itself->kill();
    run();
    a.drop(from);
    a.drop(to);
}

} // namespace

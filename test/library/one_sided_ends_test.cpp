// SPDX-License-Identifier: BSD-3-Clause
// What one-sided operations need comes to an end: regions are revoked, channels close, the peer is
// lost.
#include "one_sided.hpp"

namespace
{

/// A peer that has stopped is waited for until what it sent is received.
class OneSidedDraining : public OneSided
{
    unsigned linger_ms() const override { return 600'000; }
};

// Semantics: one-sided-8
TEST_P(OneSided, ARevokedRegionIsReachedNoMore)
{
    std::vector<uint8_t> memory(4096), data = pattern(4096, 10);
    ntbmsg_region *region = serve(memory);
    ntbmsg_remote *remote = open_remote(token_of(region));
    const ntbmsg_sge sge = piece(data);
    ASSERT_EQ(run(work(NTBMSG_OP_WRITE, remote, 0, &sge, 1)).status, 0);
    ASSERT_EQ(post(work(NTBMSG_OP_WRITE, remote, 0, &sge, 1)), 1);
    std::fill(memory.begin(), memory.end(), uint8_t{0x55});
    ASSERT_EQ(ntbmsg_region_release(region), 0);
    EXPECT_EQ(next(here_).status, -EKEYREJECTED);
    EXPECT_EQ(memory, std::vector<uint8_t>(4096, 0x55));
    for (const ntbmsg_op op : {NTBMSG_OP_READ, NTBMSG_OP_WRITE_IMM})
        EXPECT_EQ(run(work(op, remote, 0, &sge, 1)).status, -EKEYREJECTED);
    EXPECT_EQ(run(work(NTBMSG_OP_FETCH_ADD, remote, 0)).status, -EKEYREJECTED);
    // The slot is used again, and the old key does not open it.
    ntbmsg_region *next_one = serve(memory);
    EXPECT_EQ(run(work(NTBMSG_OP_WRITE, remote, 0, &sge, 1)).status, -EKEYREJECTED);
    EXPECT_EQ(ntbmsg_region_release(next_one), 0);
    ntbmsg_remote_close(remote);
}

// Semantics: one-sided-8
TEST_P(OneSided, RevokedInTheMiddle)
{
    std::vector<uint8_t> memory(4 << 20), data = pattern(4 << 20, 11);
    for (const ntbmsg_op op : {NTBMSG_OP_WRITE, NTBMSG_OP_READ}) {
        std::fill(memory.begin(), memory.end(), uint8_t{0});
        ntbmsg_region *region = serve(memory);
        ntbmsg_remote *remote = open_remote(token_of(region));
        const ntbmsg_sge sge = piece(data);
        ASSERT_EQ(post(work(op, remote, 0, &sge, 1)), 1);
        turn();
        turn();
        EXPECT_TRUE(here_.seen.empty()) << "it takes more than that";
        ASSERT_EQ(ntbmsg_region_release(region), 0);
        const std::vector<uint8_t> then = memory;
        const ntbmsg_completion c = next(here_);
        EXPECT_EQ(c.status, -EKEYREJECTED);
        EXPECT_EQ(c.bytes, 0u);
        EXPECT_EQ(memory, then);
        ntbmsg_remote_close(remote);
    }
}

// Semantics: one-sided-2, one-sided-8
TEST_P(OneSided, ARevokedDirectRegionKeepsNothingOfLaterStores)
{
    ntbmsg_region *region = nullptr;
    ASSERT_EQ(ntbmsg_region_alloc(far_, 4096, NTBMSG_RIGHT_WRITE, &region), 0);
    ntbmsg_remote *remote = open_remote(token_of(region));
    ASSERT_TRUE(becomes_direct(remote, region));
    ASSERT_EQ(ntbmsg_region_release(region), 0);
    std::vector<uint8_t> data = pattern(64, 12);
    const ntbmsg_sge sge = piece(data);
    EXPECT_EQ(run(work(NTBMSG_OP_WRITE, remote, 0, &sge, 1)).status, 0) << "no one is asked";
    ntbmsg_work confirmed = work(NTBMSG_OP_WRITE, remote, 0, &sge, 1);
    confirmed.flags |= NTBMSG_WORK_CONFIRM;
    EXPECT_EQ(run(confirmed).status, -EKEYREJECTED);
    EXPECT_EQ(run(work(NTBMSG_OP_WRITE_IMM, remote, 0, &sge, 1)).status, -EKEYREJECTED);
    EXPECT_TRUE(there_.seen.empty());
    ntbmsg_remote_close(remote);
}

// ---- ends

// Semantics: one-sided-5
TEST_P(OneSided, WhatIsUnderWayCompletesWhenTheChannelEnds)
{
    std::vector<uint8_t> memory(4 << 20), data = pattern(4 << 20, 13);
    ntbmsg_region *region = serve(memory);
    const ntbmsg_sge sge = piece(data);
    const std::function<void()> ends[] = {
        [&] { EXPECT_EQ(ntbmsg_channel_reset(here_.channel, 1), 0); },
        [&] { EXPECT_EQ(ntbmsg_channel_reset(there_.channel, 1), 0); },
    };
    for (const std::function<void()> &end : ends) {
        ntbmsg_remote *remote = open_remote(token_of(region));
        std::vector<ntbmsg_work> works;
        for (unsigned k = 0; k < 8; ++k) {
            works.push_back(
                work(k % 2 == 0 ? NTBMSG_OP_WRITE : NTBMSG_OP_READ, remote, 0, &sge, 1));
            works.back().flags = k % 3 == 0 ? 0 : NTBMSG_WORK_SIGNAL;
        }
        ASSERT_EQ(ntbmsg_channel_post_burst(here_.channel, works.data(), 8), 8);
        turn();
        end();
        for (const ntbmsg_work &w : works) {
            const ntbmsg_completion c = next(here_);
            EXPECT_EQ(c.id, w.id);
            EXPECT_EQ(c.status, -ECONNRESET);
        }
        EXPECT_EQ(post(works[0]), -ECONNRESET);
        ntbmsg_remote_close(remote);
        close_channel();
        settle();
        ASSERT_NO_FATAL_FAILURE(open_channel());
    }
    EXPECT_EQ(ntbmsg_region_release(region), 0);
}

// Semantics: one-sided-5
TEST_P(OneSided, ClosingCancelsAndTheSlotLivesOn)
{
    std::vector<uint8_t> memory(4 << 20), data = pattern(4 << 20, 14);
    ntbmsg_region *region = serve(memory);
    const ntbmsg_sge sge = piece(data);
    for (unsigned i = 0; i < 3; ++i) {
        ntbmsg_remote *remote = open_remote(token_of(region));
        const ntbmsg_work w = work(NTBMSG_OP_READ, remote, 0, &sge, 1);
        ASSERT_EQ(post(w), 1);
        turn();
        EXPECT_EQ(ntbmsg_channel_close(here_.channel), 0);
        const ntbmsg_completion c = next(here_);
        EXPECT_EQ(c.id, w.id);
        EXPECT_EQ(c.status, -ECANCELED);
        ntbmsg_remote_close(remote);
        EXPECT_TRUE(await([&] {
            return ntbmsg_channel_state_get(there_.channel) == NTBMSG_CHANNEL_PEER_CLOSED;
        })) << "closed in good order";
        EXPECT_EQ(ntbmsg_channel_close(there_.channel), 0);
        settle();
        ASSERT_NO_FATAL_FAILURE(open_channel());
    }
    EXPECT_EQ(ntbmsg_region_release(region), 0);
}

// Semantics: one-sided-6
TEST_P(OneSided, ShuttingDownLetsOperationsEnd)
{
    std::vector<uint8_t> memory(1 << 20), data = pattern(1 << 20, 15);
    ntbmsg_region *region = serve(memory);
    const ntbmsg_sge sge = piece(data);
    ntbmsg_remote *remote = open_remote(token_of(region));
    ASSERT_EQ(post(work(NTBMSG_OP_WRITE, remote, 0, &sge, 1)), 1);
    ASSERT_EQ(ntbmsg_channel_shutdown(here_.channel), 0);
    EXPECT_EQ(post(work(NTBMSG_OP_WRITE, remote, 0, &sge, 1)), -ESHUTDOWN);
    ASSERT_EQ(ntbmsg_channel_shutdown(there_.channel), 0);
    EXPECT_EQ(next(here_).status, 0);
    EXPECT_EQ(memory, data);
    EXPECT_TRUE(await([&] {
        return ntbmsg_channel_state_get(here_.channel) == NTBMSG_CHANNEL_CLOSED &&
               ntbmsg_channel_state_get(there_.channel) == NTBMSG_CHANNEL_CLOSED;
    }));
    ntbmsg_remote_close(remote);
    EXPECT_EQ(ntbmsg_region_release(region), 0);
}

// Semantics: one-sided-5
TEST_P(OneSided, ALostPeerCompletesWhatIsUnderWay)
{
    std::vector<uint8_t> memory(1 << 20), data = pattern(1 << 20, 16);
    ntbmsg_region *region = serve(memory);
    ntbmsg_region *direct = nullptr;
    ASSERT_EQ(ntbmsg_region_alloc(far_, 4096, NTBMSG_RIGHT_WRITE, &direct), 0);
    ntbmsg_remote *remote = open_remote(token_of(region));
    ntbmsg_remote *stored = open_remote(token_of(direct));
    ASSERT_TRUE(becomes_direct(stored, direct));
    const ntbmsg_sge sge = piece(data), little = piece(data, 0, 64);
    ASSERT_EQ(post(work(NTBMSG_OP_READ, remote, 0, &sge, 1)), 1);
    ASSERT_EQ(post(work(NTBMSG_OP_WRITE, stored, 0, &little, 1)), 1);
    ASSERT_EQ(ntbmsg_cq_destroy(there_.cq), -EBUSY);
    ASSERT_EQ(ntbmsg_channel_close(there_.channel), 0);
    there_.channel = nullptr;
    EXPECT_EQ(ntbmsg_region_release(region), 0);
    EXPECT_EQ(ntbmsg_region_release(direct), 0);
    ASSERT_NO_FATAL_FAILURE(close(far_));
    there_.worker = nullptr;
    EXPECT_EQ(next(here_).status, -ECONNRESET);
    EXPECT_EQ(next(here_).status, 0) << "complete with its last store";
    EXPECT_TRUE(
        await([&] { return ntbmsg_channel_state_get(here_.channel) == NTBMSG_CHANNEL_LOST; }));
    EXPECT_EQ(post(work(NTBMSG_OP_WRITE, stored, 0, &little, 1)), -ECONNRESET);
    ntbmsg_remote_close(remote);
    ntbmsg_remote_close(stored);
}

// Semantics: dedicated-7
TEST_P(OneSided, NothingIsStoredOnceTheConnectionIsLost)
{
    ntbmsg_region *direct = nullptr;
    ASSERT_EQ(ntbmsg_region_alloc(far_, 4096, NTBMSG_RIGHT_WRITE, &direct), 0);
    ntbmsg_remote *stored = open_remote(token_of(direct));
    ASSERT_TRUE(becomes_direct(stored, direct));
    std::vector<uint8_t> data = pattern(64, 17);
    const ntbmsg_sge sge = piece(data);
    const ntbmsg_region_token token = token_of(direct);
    ASSERT_EQ(ntbmsg_channel_close(there_.channel), 0);
    there_.channel = nullptr;
    EXPECT_EQ(ntbmsg_region_release(direct), 0);
    ASSERT_NO_FATAL_FAILURE(close(far_));
    there_.worker = nullptr;
    ASSERT_TRUE(await_event(near_, NTBMSG_EVENT_LOST));
    EXPECT_EQ(ntbmsg_channel_state_get(here_.channel), NTBMSG_CHANNEL_OPEN)
        << "its worker is not polled";
    EXPECT_EQ(post(work(NTBMSG_OP_WRITE, stored, 0, &sge, 1)), -ECONNRESET);
    ntbmsg_remote *none = nullptr;
    EXPECT_EQ(ntbmsg_remote_open(here_.channel, &token, &none), -ENOTCONN);
    ntbmsg_remote_close(stored);
}

// Semantics: dedicated-7
TEST_P(OneSidedDraining, NothingIsStoredOnceThePeerHasStopped)
{
    ntbmsg_region *direct = nullptr;
    ASSERT_EQ(ntbmsg_region_alloc(far_, 4096, NTBMSG_RIGHT_WRITE, &direct), 0);
    ntbmsg_remote *stored = open_remote(token_of(direct));
    ASSERT_TRUE(becomes_direct(stored, direct));
    const ntbmsg_region_token token = token_of(direct);
    EXPECT_EQ(ntbmsg_region_release(direct), 0);
    // Its message stays in the near end's ring: the worker is not polled.
    rte_mbuf *unread = message(far_, 64, 1);
    ASSERT_EQ(ntbmsg_channel_send_burst(there_.channel, &unread, nullptr, 1), 1);
    ASSERT_EQ(ntbmsg_channel_close(there_.channel), 0);
    there_.channel = nullptr;
    ntbmsg_worker_poll(there_.worker);
    ASSERT_EQ(ntbmsg_endpoint_close_linger(far_, 0, nullptr), 0);
    far_ = nullptr;
    there_.worker = nullptr;
    ASSERT_TRUE(await_event(near_, NTBMSG_EVENT_CLOSING));

    std::vector<uint8_t> data = pattern(64, 17);
    const ntbmsg_sge sge = piece(data);
    EXPECT_EQ(post(work(NTBMSG_OP_WRITE, stored, 0, &sge, 1)), -ECONNRESET);
    ntbmsg_remote *none = nullptr;
    EXPECT_EQ(ntbmsg_remote_open(here_.channel, &token, &none), -ENOTCONN);
    EXPECT_EQ(ntbmsg_endpoint_link_state_get(near_), NTBMSG_LINK_CLOSING) << "what came is unread";
    EXPECT_EQ(ntbmsg_channel_state_get(here_.channel), NTBMSG_CHANNEL_OPEN);

    rte_mbuf *got = nullptr;
    while (got == nullptr) {
        ntbmsg_worker_poll(here_.worker);
        ASSERT_GE(ntbmsg_channel_recv_burst(here_.channel, &got, nullptr, 1), 0);
    }
    rte_pktmbuf_free(got);
    EXPECT_TRUE(await_event(near_, NTBMSG_EVENT_LOST));
    ntbmsg_remote_close(stored);
}

// Slots are used again: the handle may be the same, the channel is not.
TEST_P(OneSided, ARemoteIsOfOneChannelAndNotOfItsSlot)
{
    std::vector<uint8_t> memory(64), data = pattern(64, 18);
    ntbmsg_region *region = serve(memory);
    ntbmsg_remote *remote = open_remote(token_of(region));
    const ntbmsg_sge sge = piece(data);
    const uint16_t first = id_of(here_.channel);
    unsigned uses = 0;
    do {
        close_channel();
        settle();
        ASSERT_NO_FATAL_FAILURE(open_channel());
    } while (id_of(here_.channel) != first && ++uses < 64);
    ASSERT_EQ(id_of(here_.channel), first);
    ntbmsg_remote *other = open_remote(token_of(region));
    EXPECT_EQ(post(work(NTBMSG_OP_WRITE, remote, 0, &sge, 1)), -EINVAL);
    EXPECT_EQ(run(work(NTBMSG_OP_WRITE, other, 0, &sge, 1)).status, 0);
    ntbmsg_remote_close(remote);
    ntbmsg_remote_close(other);
    EXPECT_EQ(ntbmsg_region_release(region), 0);
}

// A request that met a full ring has its number: the peer waits for it.
TEST_P(OneSided, ClosingInFrontOfAFullRingSaysCloseAndNotReset)
{
    close_channel();
    ntbmsg_channel_options mine = channel_options(here_);
    mine.operations = 256;
    ASSERT_NO_FATAL_FAILURE(open_channel(mine, channel_options(there_)));
    alignas(8) uint64_t word = 0;
    ntbmsg_region *region = nullptr;
    ASSERT_EQ(ntbmsg_region_register(far_, &word, sizeof(word), NTBMSG_RIGHT_ATOMIC, &region), 0);
    ntbmsg_remote *remote = open_remote(token_of(region));
    ntbmsg_work add = work(NTBMSG_OP_FETCH_ADD, remote, 0);
    add.operand = 1;
    const std::vector<ntbmsg_work> works(256, add);
    ASSERT_EQ(ntbmsg_channel_post_burst(here_.channel, works.data(), 256), 256);
    ASSERT_EQ(ntbmsg_channel_close(here_.channel), 0);
    here_.channel = nullptr;
    EXPECT_TRUE(
        await([&] { return ntbmsg_channel_state_get(there_.channel) != NTBMSG_CHANNEL_OPEN; }));
    EXPECT_EQ(ntbmsg_channel_state_get(there_.channel), NTBMSG_CHANNEL_PEER_CLOSED);
    settle();
    EXPECT_EQ(here_.seen.size(), 256u);
    for (const ntbmsg_completion &c : here_.seen)
        EXPECT_EQ(c.status, -ECANCELED);
    EXPECT_GT(word, 0u);
    EXPECT_LT(word, 256u) << "the ring was full, else this tests nothing";
    ntbmsg_remote_close(remote);
    EXPECT_EQ(ntbmsg_region_release(region), 0);
}

INSTANTIATE_TEST_SUITE_P(Workers, OneSidedDraining, testing::Bool(), [](const auto &worker) {
    return worker.param ? "Dedicated" : "RunToCompletion";
});

} // namespace

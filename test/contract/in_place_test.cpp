// SPDX-License-Identifier: BSD-3-Clause
// Messages that are built in receive buffers of the peer: their order, and whose the buffers are
// when the connection ends while they are being filled.
#include "pair.hpp"

#include <cerrno>
#include <cstring>
#include <vector>

#include <rte_mbuf.h>
#include <rte_rawdev.h>

using namespace contract;

namespace
{

class InPlace : public Pair
{
protected:
    using Room = rte_pmd_plx_ntb_room;

    static HostSetup two_queues()
    {
        HostSetup setup = usual();
        setup.config.queues = 2;
        setup.config.buffers = 64;
        setup.config.queue_buffers = 28;
        return setup;
    }
    void bring_up_two()
    {
        ASSERT_NO_FATAL_FAILURE(bring_up(two_queues(), two_queues()));
        ASSERT_NO_FATAL_FAILURE(refill());
    }
    /// The far side makes all its receive buffers available.
    void refill()
    {
        for (uint32_t queue = 0; queue < 2; ++queue)
            one_way(stream(queue, 9, 1, {900}));
    }
    std::vector<Room> reserve(uint16_t n, uint16_t queue = 0, int *rc = nullptr)
    {
        std::vector<Room> rooms(n);
        const int got = rte_pmd_plx_ntb_tx_reserve(id(), queue, rooms.data(), n);
        rooms.resize(got > 0 ? static_cast<size_t>(got) : 0);
        if (rc != nullptr)
            *rc = got;
        return rooms;
    }
    static void build(const Room *rooms, const Stream &s, uint32_t index)
    {
        const uint32_t length = test::message_length(s, index);
        for (uint32_t at = 0; at < length; at += rooms->bytes) {
            const Room &room = rooms[at / rooms->bytes];
            test::fill(static_cast<uint8_t *>(room.address), test::message_key(s.seed, index), at,
                       std::min(length - at, room.bytes));
        }
    }
    int commit(const Stream &s, uint32_t index)
    {
        const uint32_t length = test::message_length(s, index);
        const rte_pmd_plx_ntb_meta meta = test::message_meta(s, index);
        return rte_pmd_plx_ntb_tx_commit(id(), static_cast<uint16_t>(s.queue), &length, &meta, 1);
    }
    int abort(uint16_t queue = 0) { return rte_pmd_plx_ntb_tx_abort(id(), queue); }
    int send(const Stream &s, uint32_t index)
    {
        rte_mbuf *m = test::make_message(local_device().pool(), s, index);
        const rte_pmd_plx_ntb_meta meta = test::message_meta(s, index);
        const int rc = rte_pmd_plx_ntb_tx_burst(id(), static_cast<uint16_t>(s.queue), &m, &meta, 1);
        if (rc != 1)
            rte_pktmbuf_free(m);
        return rc;
    }
    void expect_at_far(Stream s, uint32_t count)
    {
        s.count = count;
        const Answer answer = far().ask(traffic({}, {s}));
        ASSERT_EQ(answer.rc, 0) << answer.text;
    }
    /// The connection ends, and another is made.
    void lose(unsigned times)
    {
        ASSERT_EQ(rte_pmd_plx_ntb_inject(id(), RTE_PMD_PLX_NTB_FAULT_LINK_DOWN, 1), 0);
        ASSERT_TRUE(near().await_event('L', times));
        ASSERT_TRUE(far().await_event('L', times));
        ASSERT_EQ(rte_pmd_plx_ntb_inject(id(), RTE_PMD_PLX_NTB_FAULT_LINK_DOWN, 0), 0);
        await_connected(times + 1);
    }
    static void scribble(const std::vector<Room> &rooms)
    {
        for (const Room &room : rooms)
            std::memset(room.address, 0xee, room.bytes);
    }
    /// Nothing that is stored to @p late reaches the far host: messages in nearly all of its
    /// buffers arrive as they were sent.
    void expect_late_stores_lost(const std::vector<Room> &late)
    {
        uint32_t sent[2] = {};
        for (uint32_t queue = 0; queue < 2; ++queue)
            while (send(stream(queue, 50, 0, {2000}), sent[queue]) == 1)
                ++sent[queue];
        ASSERT_GE(sent[0] + sent[1], 30u);
        scribble(late);
        for (uint32_t queue = 0; queue < 2; ++queue)
            ASSERT_NO_FATAL_FAILURE(expect_at_far(stream(queue, 50, 0, {2000}), sent[queue]));
    }
};

TEST_P(InPlace, TakesItsPlaceAmongBursts)
{
    ASSERT_NO_FATAL_FAILURE(bring_up_two());
    const uint64_t messages = near().xstat("tx_messages"), by_cpu = near().xstat("tx_cpu_messages"),
                   bytes = near().xstat("tx_bytes");
    const Stream s = stream(0, 5, 0, {900, 100, 2000, 5000, 40, 1400});
    const auto rooms = reserve(6);
    ASSERT_EQ(rooms.size(), 6u);
    build(&rooms[0], s, 0);
    ASSERT_EQ(commit(s, 0), 1);
    ASSERT_EQ(send(s, 1), 1);
    build(&rooms[1], s, 2);
    build(&rooms[2], s, 3); // three rooms
    const uint32_t lengths[] = {2000, 5000};
    const rte_pmd_plx_ntb_meta meta[] = {test::message_meta(s, 2), test::message_meta(s, 3)};
    ASSERT_EQ(rte_pmd_plx_ntb_tx_commit(id(), 0, lengths, meta, 2), 2);
    ASSERT_EQ(send(s, 4), 1);
    EXPECT_EQ(send(s, 5), 0) << "long, and a room is left";
    ASSERT_EQ(abort(), 0);
    ASSERT_EQ(send(s, 5), 1);
    expect_at_far(s, 6);
    EXPECT_EQ(near().xstat("tx_messages"), messages + 6);
    EXPECT_EQ(near().xstat("tx_cpu_messages"), by_cpu + 4);
    EXPECT_EQ(near().xstat("tx_bytes"), bytes + 9440);
}

TEST_P(InPlace, WhatCannotBeIsRefused)
{
    ASSERT_EQ(near().bring_up(cable(), two_queues()), 0);
    Room room{};
    uint32_t length = 10;
    EXPECT_EQ(rte_pmd_plx_ntb_tx_reserve(id(), 0, &room, 1), -ENOTCONN);
    EXPECT_EQ(rte_pmd_plx_ntb_tx_commit(id(), 0, &length, nullptr, 1), -EINVAL);
    EXPECT_EQ(abort(), 0);
    for (const uint16_t device : {id(), uint16_t{RTE_RAWDEV_MAX_DEVS}}) {
        const auto queue = static_cast<uint16_t>(device == id() ? 2 : 0);
        EXPECT_EQ(rte_pmd_plx_ntb_tx_reserve(device, queue, &room, 1), -ENODEV);
        EXPECT_EQ(rte_pmd_plx_ntb_tx_commit(device, queue, &length, nullptr, 1), -ENODEV);
        EXPECT_EQ(rte_pmd_plx_ntb_tx_abort(device, queue), -ENODEV);
    }
    ASSERT_EQ(far().bring_up(cable(), two_queues()), 0);
    ASSERT_NO_FATAL_FAILURE(await_connected(1));
    ASSERT_NO_FATAL_FAILURE(refill());
    int rc = 0;
    ASSERT_EQ(reserve(1).size(), 1u);
    EXPECT_TRUE(reserve(1, 0, &rc).empty());
    EXPECT_EQ(rc, -EBUSY);
    EXPECT_EQ(reserve(1, 1).size(), 1u) << "another queue pair";
    length = 0;
    EXPECT_EQ(rte_pmd_plx_ntb_tx_commit(id(), 0, &length, nullptr, 1), -EINVAL);
    length = 1u << 24;
    EXPECT_EQ(rte_pmd_plx_ntb_tx_commit(id(), 0, &length, nullptr, 1), -EMSGSIZE);
    length = 2049;
    EXPECT_EQ(rte_pmd_plx_ntb_tx_commit(id(), 0, &length, nullptr, 1), -EINVAL);
    EXPECT_EQ(rte_pmd_plx_ntb_tx_commit(id(), 0, &length, nullptr, 0), 0);
    EXPECT_EQ(abort(), 0);
    EXPECT_EQ(abort(1), 0);
    length = 10;
    EXPECT_EQ(rte_pmd_plx_ntb_tx_commit(id(), 0, &length, nullptr, 1), -EINVAL) << "given back";
}

TEST_P(InPlace, ALossEndsIt)
{
    ASSERT_NO_FATAL_FAILURE(bring_up_two());
    const Stream s = stream(0, 6, 1, {1500});
    const auto rooms = reserve(2);
    ASSERT_EQ(rooms.size(), 2u);
    build(rooms.data(), s, 0);
    ASSERT_EQ(rte_pmd_plx_ntb_inject(id(), RTE_PMD_PLX_NTB_FAULT_LINK_DOWN, 1), 0);
    ASSERT_TRUE(near().await_event('L'));
    ASSERT_TRUE(far().await_event('L'));
    scribble(rooms);
    EXPECT_EQ(commit(s, 0), -ECONNRESET);
    EXPECT_EQ(commit(s, 0), -EINVAL) << "it is over";
    ASSERT_EQ(rte_pmd_plx_ntb_inject(id(), RTE_PMD_PLX_NTB_FAULT_LINK_DOWN, 0), 0);
    ASSERT_NO_FATAL_FAILURE(await_connected(2));
    both_ways(stream(0, 7, 100, {8, 900, 3000}));
}

TEST_P(InPlace, IsOfItsConnection)
{
    ASSERT_NO_FATAL_FAILURE(bring_up_two());
    const Stream s = stream(0, 6, 1, {1500});
    ASSERT_EQ(reserve(1).size(), 1u);
    ASSERT_EQ(reserve(2, 1).size(), 2u);
    ASSERT_NO_FATAL_FAILURE(lose(1));
    ASSERT_NO_FATAL_FAILURE(refill());
    int rc = 0;
    EXPECT_TRUE(reserve(1, 0, &rc).empty());
    EXPECT_EQ(rc, -EBUSY) << "the old one has not ended";
    EXPECT_EQ(commit(s, 0), -ECONNRESET);
    EXPECT_EQ(abort(1), 0);
    for (const uint16_t queue : {uint16_t{0}, uint16_t{1}}) {
        const auto rooms = reserve(1, queue);
        ASSERT_EQ(rooms.size(), 1u);
        const Stream again = stream(queue, 8, 1, {1500});
        build(rooms.data(), again, 0);
        ASSERT_EQ(commit(again, 0), 1);
        expect_at_far(again, 1);
    }
}

TEST_P(InPlace, LateStoresReachNobody)
{
    ASSERT_NO_FATAL_FAILURE(bring_up_two());
    const auto first = reserve(28);
    ASSERT_GE(first.size(), 15u);
    ASSERT_NO_FATAL_FAILURE(lose(1));
    ASSERT_NO_FATAL_FAILURE(refill());
    ASSERT_NO_FATAL_FAILURE(expect_late_stores_lost(first));
    const auto second = reserve(28, 1);
    ASSERT_GE(second.size(), 15u);
    ASSERT_NO_FATAL_FAILURE(lose(2));
    ASSERT_NO_FATAL_FAILURE(refill());
    for (const auto &late : {first, second})
        ASSERT_NO_FATAL_FAILURE(expect_late_stores_lost(late));
    EXPECT_EQ(abort(), 0);
    EXPECT_EQ(abort(1), 0);
}

TEST_P(InPlace, RoomsThatAreNeverEndedHoldUpNothing)
{
    ASSERT_NO_FATAL_FAILURE(bring_up_two());
    const auto kept = reserve(3);
    ASSERT_EQ(kept.size(), 3u);
    for (unsigned times = 1; times <= 4; ++times) {
        ASSERT_EQ(reserve(1, 1).size(), 1u);
        ASSERT_NO_FATAL_FAILURE(lose(times));
        ASSERT_EQ(abort(1), 0);
        ASSERT_NO_FATAL_FAILURE(refill());
        scribble(kept);
        both_ways(stream(1, 10 + times, 50, {8, 900, 3000}));
    }
    near().stop();
    EXPECT_EQ(near().link().state, RTE_PMD_PLX_NTB_STOPPED);
    scribble(kept);
    ASSERT_EQ(near().ask(Op::start).rc, 0);
    ASSERT_NO_FATAL_FAILURE(await_connected(6));
    EXPECT_EQ(abort(), 0);
    both_ways(stream(0, 20, 50, {8, 900, 3000}));
}

TEST_P(InPlace, APeerThatStopsIsNotHeldUp)
{
    ASSERT_NO_FATAL_FAILURE(bring_up_two());
    const auto rooms = reserve(2);
    ASSERT_EQ(rooms.size(), 2u);
    far().stop();
    ASSERT_TRUE(near().await_event('L'));
    ASSERT_EQ(far().ask(Op::start).rc, 0);
    ASSERT_NO_FATAL_FAILURE(await_connected(2));
    scribble(rooms);
    EXPECT_EQ(commit(stream(0, 6, 1, {900}), 0), -ECONNRESET);
    both_ways(stream(0, 7, 100, {8, 900, 3000}));
}

CONTRACT_EVERYWHERE(InPlace);

} // namespace

// SPDX-License-Identifier: BSD-3-Clause
// Messages that are built in receive buffers of the peer, on bare queues and on channels.
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <type_traits>
#include <utility>

#include <ntbmsg.hpp>
#include <rte_rawdev.h>

#include "channels.hpp"

namespace
{

bool is(const rte_mbuf *m, size_t bytes, int fill)
{
    if (m == nullptr || m->pkt_len != bytes)
        return false;
    for (; m != nullptr; m = m->next) {
        const auto *data = rte_pktmbuf_mtod(m, const uint8_t *);
        if (!std::all_of(data, data + m->data_len, [=](uint8_t b) { return b == fill; }))
            return false;
    }
    return true;
}

void set(const ntbmsg_room &room, int fill)
{
    std::memset(room.address, fill, room.bytes);
}

class OnQueue : public Cabled
{
protected:
    void connect_ready(const ntbmsg_endpoint_options &options = small_options())
    {
        ASSERT_NO_FATAL_FAILURE(connect(options));
        rte_mbuf *none = nullptr; // makes receive buffers available
        for (uint16_t q = 0; q < options.queues; ++q)
            ASSERT_EQ(ntbmsg_queue_recv_burst(far_, q, &none, nullptr, 1), 0);
    }
    void expect(size_t bytes, int fill, uint16_t queue = 0)
    {
        rte_mbuf *got = receive(far_, queue);
        EXPECT_TRUE(is(got, bytes, fill)) << bytes;
        rte_pktmbuf_free(got);
    }
    /// The connection ends, and another is made.
    void lose()
    {
        rte_rawdev_stop(device_id(far_device));
        ASSERT_TRUE(await_event(near_, NTBMSG_EVENT_LOST));
        ASSERT_EQ(rte_rawdev_start(device_id(far_device)), 0);
        ASSERT_EQ(ntbmsg_endpoint_wait_connected(near_, patience_ms), 0);
        ASSERT_EQ(ntbmsg_endpoint_wait_connected(far_, patience_ms), 0);
    }
    static uint16_t device_id(const char *device) { return rte_rawdev_get_dev_id(device); }
};

TEST_F(OnQueue, BurstsAndCommitsKeepTheirOrder)
{
    ASSERT_NO_FATAL_FAILURE(connect_ready());
    ntbmsg_room rooms[4];
    ASSERT_EQ(ntbmsg_queue_reserve(near_, 0, rooms, 4), 4);
    EXPECT_EQ(rooms[0].bytes, 2048u);
    for (int i = 0; i < 4; ++i)
        set(rooms[i], i < 2 ? 1 : i + 1);
    rte_mbuf *between = message(near_, 50, 9);
    const uint32_t lengths[] = {3000, 10, 2048};
    const ntbmsg_meta meta[] = {{11, 1, 0}, {12, 2, 0}, {13, 3, 0}};
    ASSERT_EQ(ntbmsg_queue_commit(near_, 0, lengths, meta, 1), 1);
    ASSERT_EQ(ntbmsg_queue_send_burst(near_, 0, &between, nullptr, 1), 1);
    ASSERT_EQ(ntbmsg_queue_commit(near_, 0, lengths + 1, meta + 1, 2), 2);
    ntbmsg_meta got{};
    rte_mbuf *m = receive(far_, 0, &got);
    EXPECT_TRUE(is(m, 3000, 1));
    EXPECT_EQ(got.data, 11u);
    EXPECT_EQ(got.flags, 1u);
    rte_pktmbuf_free(m);
    expect(50, 9);
    expect(10, 3);
    expect(2048, 4);
    EXPECT_EQ(stats(near_).tx_messages, 4u);
    EXPECT_EQ(stats(near_).tx_bytes, 5108u);
}

TEST_F(OnQueue, WhatCannotBeIsRefused)
{
    ASSERT_NO_FATAL_FAILURE(open(near_device, near_));
    ntbmsg_room rooms[2];
    uint32_t length = 10;
    EXPECT_EQ(ntbmsg_queue_reserve(near_, 0, rooms, 1), -ENOTCONN);
    EXPECT_EQ(ntbmsg_queue_reserve(nullptr, 0, rooms, 1), -EINVAL);
    EXPECT_EQ(ntbmsg_queue_reserve(near_, 1, rooms, 1), -EINVAL);
    EXPECT_EQ(ntbmsg_queue_reserve(near_, 0, nullptr, 1), -EINVAL);
    EXPECT_EQ(ntbmsg_queue_commit(nullptr, 0, &length, nullptr, 1), -EINVAL);
    EXPECT_EQ(ntbmsg_queue_commit(near_, 1, &length, nullptr, 1), -EINVAL);
    EXPECT_EQ(ntbmsg_queue_commit(near_, 0, nullptr, nullptr, 1), -EINVAL);
    EXPECT_EQ(ntbmsg_queue_commit(near_, 0, &length, nullptr, 1), -EINVAL);
    EXPECT_EQ(ntbmsg_queue_abort(nullptr, 0), -EINVAL);
    EXPECT_EQ(ntbmsg_queue_abort(near_, 1), -EINVAL);
    EXPECT_EQ(ntbmsg_queue_abort(near_, 0), 0);
    ASSERT_NO_FATAL_FAILURE(open(far_device, far_));
    ASSERT_EQ(ntbmsg_endpoint_wait_connected(near_, patience_ms), 0);
    ASSERT_EQ(ntbmsg_endpoint_wait_connected(far_, patience_ms), 0);
    rte_mbuf *none = nullptr;
    ASSERT_EQ(ntbmsg_queue_recv_burst(far_, 0, &none, nullptr, 1), 0);
    ASSERT_EQ(ntbmsg_queue_reserve(near_, 0, rooms, 2), 2);
    EXPECT_EQ(ntbmsg_queue_reserve(near_, 0, rooms, 2), -EBUSY);
    length = 4097;
    EXPECT_EQ(ntbmsg_queue_commit(near_, 0, &length, nullptr, 1), -EINVAL);
    length = ntbmsg_endpoint_max_message(near_) + 1;
    EXPECT_EQ(ntbmsg_queue_commit(near_, 0, &length, nullptr, 1), -EMSGSIZE);
}

TEST_F(OnQueue, AnOwnerGivesBackWhatItDidNotCommit)
{
    static_assert(!std::is_copy_constructible_v<ntbmsg::QueueRooms<>> &&
                  std::is_nothrow_move_constructible_v<ntbmsg::QueueRooms<>>);
    ASSERT_NO_FATAL_FAILURE(connect_ready());
    const ntbmsg::Queue queue(near_, 0);
    {
        ntbmsg::QueueRooms<4> rooms;
        EXPECT_EQ(rooms.commit(1), -EINVAL);
        ASSERT_EQ(rooms.reserve(queue), 4);
        std::memset(rooms[0].data(), 1, 2048);
        std::memset(rooms[1].data(), 1, 2048);
        ASSERT_EQ(rooms.commit(2100, {5, 0, 0}), 1);
        ASSERT_EQ(rooms.size(), 2u);
        ntbmsg::QueueRooms<4> moved(std::move(rooms));
        EXPECT_EQ(rooms.size(), 0u);
        ASSERT_EQ(moved.size(), 2u);
        std::memset(moved[0].data(), 2, 100);
        EXPECT_EQ(moved.commit(5000), -EINVAL);
        ASSERT_EQ(moved.commit(100), 1);
    }
    ntbmsg::QueueRooms<> again;
    ASSERT_EQ(again.reserve(queue), 1) << "given back";
    ASSERT_EQ(again.reserve(queue), 1);
    std::memset(again[0].data(), 3, 30);
    ASSERT_EQ(again.commit(30), 1);
    expect(2100, 1);
    expect(100, 2);
    expect(30, 3);
    again = ntbmsg::QueueRooms<>();
}

TEST_F(OnQueue, ALossEndsTheReservation)
{
    ASSERT_NO_FATAL_FAILURE(connect_ready());
    ntbmsg::QueueRooms<2> rooms;
    ASSERT_EQ(rooms.reserve(ntbmsg::Queue(near_, 0)), 2);
    ASSERT_NO_FATAL_FAILURE(lose());
    std::memset(rooms[0].data(), 7, rooms[0].size());
    EXPECT_EQ(rooms.commit(10), -ECONNRESET);
    EXPECT_EQ(rooms.size(), 0u);
    rte_mbuf *m = message(near_, 3000, 4);
    ASSERT_EQ(send(near_, far_, m), 1);
    expect(3000, 4);
}

TEST_F(OnQueue, AnEndpointIsClosedWhileRoomsAreHeld)
{
    ASSERT_NO_FATAL_FAILURE(connect_ready());
    ntbmsg_room room;
    ASSERT_EQ(ntbmsg_queue_reserve(near_, 0, &room, 1), 1);
    ASSERT_NO_FATAL_FAILURE(close(near_));
}

class OnChannel : public Channels
{
protected:
    void bring_up_joined()
    {
        ASSERT_NO_FATAL_FAILURE(bring_up());
        ASSERT_NO_FATAL_FAILURE(join(near_channel_, far_channel_));
    }
    void TearDown() override
    {
        give_back({near_channel_, far_channel_});
        Channels::TearDown();
    }
    void expect(size_t bytes, int fill, uint32_t imm)
    {
        uint32_t got_imm = 0;
        rte_mbuf *got = receive_one(far_channel_, &got_imm);
        EXPECT_TRUE(is(got, bytes, fill)) << bytes;
        EXPECT_EQ(got_imm, imm);
        rte_pktmbuf_free(got);
    }
    ntbmsg_channel *near_channel_ = nullptr, *far_channel_ = nullptr;
};

TEST_F(OnChannel, SendsAndCommitsKeepTheirOrder)
{
    ASSERT_NO_FATAL_FAILURE(bring_up_joined());
    ntbmsg_room rooms[4];
    ASSERT_EQ(ntbmsg_channel_reserve(near_channel_, rooms, 4), 4);
    for (int i = 0; i < 4; ++i)
        set(rooms[i], i < 2 ? 1 : i + 1);
    const uint32_t lengths[] = {3000, 10};
    const uint32_t imm[] = {7, 8};
    ASSERT_EQ(ntbmsg_channel_commit(near_channel_, lengths, imm, 1), 1);
    ASSERT_EQ(send_one(near_, near_channel_, 30, 9, 1), 1);
    EXPECT_EQ(send_one(near_, near_channel_, 1500, 9, 1), 0) << "long messages wait";
    ASSERT_EQ(ntbmsg_channel_commit(near_channel_, lengths + 1, imm + 1, 1), 1);
    ASSERT_EQ(ntbmsg_channel_abort(near_channel_), 0);
    ASSERT_EQ(send_one(near_, near_channel_, 1500, 5, 2), 1);
    expect(3000, 1, 7);
    expect(30, 9, 1);
    expect(10, 3, 8);
    expect(1500, 5, 2);
    EXPECT_EQ(info(near_channel_).tx_messages, 4u);
    EXPECT_EQ(info(near_channel_).tx_bytes, 4540u);
    EXPECT_TRUE(await([&] { return ntbmsg_channel_flush(near_channel_, 1) == 0; }));
    EXPECT_EQ(info(near_channel_).unconfirmed, 0u);
}

TEST_F(OnChannel, CreditBoundsItAndReturns)
{
    ASSERT_NO_FATAL_FAILURE(bring_up());
    ntbmsg_channel_options few = channel_options();
    few.credit_messages = 16; // of short messages it comes back by halves
    few.credit_bytes = 4 * 2048;
    ASSERT_NO_FATAL_FAILURE(join(near_channel_, far_channel_, channel_options(), few));
    const uint32_t granted = info(near_channel_).credit_bytes / 2048;
    ASSERT_LE(granted, 8u);
    ntbmsg_room rooms[64];
    for (int round = 0; round < 50; ++round) {
        settle(); // what is due returns when the workers poll
        ASSERT_TRUE(await([&] {
            const int got = ntbmsg_channel_reserve(near_channel_, rooms, 64);
            if (got == static_cast<int>(granted))
                return true;
            EXPECT_EQ(ntbmsg_channel_abort(near_channel_), 0);
            return false;
        })) << "all credit comes back, in round "
            << round;
        EXPECT_EQ(send_one(near_, near_channel_, 20, 1), granted < 16 ? 1 : 0);
        set(rooms[0], round);
        const uint32_t length = 1000;
        ASSERT_EQ(ntbmsg_channel_commit(near_channel_, &length, nullptr, 1), 1);
        ASSERT_EQ(ntbmsg_channel_abort(near_channel_), 0);
        if (granted < 16)
            expect(20, 1, 0);
        expect(1000, round, 0);
    }
}

TEST_F(OnChannel, OneChannelOfAWorkerHoldsRooms)
{
    ASSERT_NO_FATAL_FAILURE(bring_up_joined());
    ntbmsg_channel *other = nullptr, *far_other = nullptr;
    ASSERT_NO_FATAL_FAILURE(join(other, far_other));
    ntbmsg_room room;
    uint32_t length = 10;
    ASSERT_EQ(ntbmsg_channel_reserve(near_channel_, &room, 1), 1);
    EXPECT_EQ(ntbmsg_channel_reserve(near_channel_, &room, 1), -EBUSY);
    EXPECT_EQ(ntbmsg_channel_reserve(other, &room, 1), -EBUSY);
    EXPECT_EQ(ntbmsg_channel_commit(other, &length, nullptr, 1), -EINVAL);
    EXPECT_EQ(ntbmsg_channel_abort(other), 0);
    EXPECT_EQ(ntbmsg_channel_reserve(other, &room, 1), -EBUSY) << "they are not its own";
    give_back({near_channel_});
    near_channel_ = nullptr;
    ASSERT_EQ(ntbmsg_channel_reserve(other, &room, 1), 1) << "a close gives them back";
    ASSERT_EQ(ntbmsg_channel_shutdown(other), 0);
    EXPECT_EQ(ntbmsg_channel_commit(other, &length, nullptr, 1), -ESHUTDOWN);
    EXPECT_EQ(ntbmsg_channel_reserve(other, &room, 1), -ESHUTDOWN);
    give_back({other, far_other});
}

TEST_F(OnChannel, WhatCannotBeIsRefused)
{
    ASSERT_NO_FATAL_FAILURE(bring_up_joined());
    ntbmsg_room rooms[2];
    uint32_t length = 10;
    EXPECT_EQ(ntbmsg_channel_reserve(nullptr, rooms, 1), -EINVAL);
    EXPECT_EQ(ntbmsg_channel_reserve(near_channel_, nullptr, 1), -EINVAL);
    EXPECT_EQ(ntbmsg_channel_commit(nullptr, &length, nullptr, 1), -EINVAL);
    EXPECT_EQ(ntbmsg_channel_commit(near_channel_, nullptr, nullptr, 1), -EINVAL);
    EXPECT_EQ(ntbmsg_channel_commit(near_channel_, &length, nullptr, 1), -EINVAL);
    EXPECT_EQ(ntbmsg_channel_commit(near_channel_, &length, nullptr, 0), 0);
    EXPECT_EQ(ntbmsg_channel_abort(nullptr), -EINVAL);
    ASSERT_EQ(ntbmsg_channel_reserve(near_channel_, rooms, 2), 2);
    length = 0;
    EXPECT_EQ(ntbmsg_channel_commit(near_channel_, &length, nullptr, 1), -EINVAL);
    length = 4097;
    EXPECT_EQ(ntbmsg_channel_commit(near_channel_, &length, nullptr, 1), -EINVAL);
    length = info(near_channel_).max_message + 1;
    EXPECT_EQ(ntbmsg_channel_commit(near_channel_, &length, nullptr, 1), -EMSGSIZE);
    length = 4096;
    set(rooms[0], 6);
    set(rooms[1], 6);
    EXPECT_EQ(ntbmsg_channel_commit(near_channel_, &length, nullptr, 1), 1);
    EXPECT_EQ(ntbmsg_channel_commit(near_channel_, &length, nullptr, 1), -EINVAL) << "committed";
    expect(4096, 6, 0);
}

TEST_F(OnChannel, ALossOrAResetEndsIt)
{
    ASSERT_NO_FATAL_FAILURE(bring_up_joined());
    ntbmsg::Channel channel(near_channel_);
    ntbmsg::ChannelRooms<2> rooms;
    ASSERT_EQ(rooms.reserve(ntbmsg::ChannelWay(channel)), 2);
    std::memset(rooms[1].data(), 3, 100);
    ASSERT_EQ(rooms.commit(2000, 4), 1);
    ASSERT_EQ(ntbmsg_channel_reset(far_channel_, 5), 0);
    ASSERT_TRUE(await_state(near_channel_, NTBMSG_CHANNEL_RESET));
    EXPECT_EQ(rooms.commit(10), -ECONNRESET);
    channel.reset();
    give_back({far_channel_});
    ASSERT_NO_FATAL_FAILURE(join(near_channel_, far_channel_));
    ntbmsg_room room;
    ASSERT_EQ(ntbmsg_channel_reserve(near_channel_, &room, 1), 1) << "the other has none any more";
    const auto device = rte_rawdev_get_dev_id(far_device);
    rte_rawdev_stop(device);
    ASSERT_TRUE(await_event(near_, NTBMSG_EVENT_LOST));
    ASSERT_EQ(rte_rawdev_start(device), 0);
    ASSERT_EQ(ntbmsg_endpoint_wait_connected(near_, patience_ms), 0);
    set(room, 1); // reaches no one
    const uint32_t length = 10;
    EXPECT_EQ(ntbmsg_channel_commit(near_channel_, &length, nullptr, 1), -ECONNRESET);
    give_back({near_channel_, far_channel_});
    ASSERT_EQ(ntbmsg_endpoint_wait_connected(far_, patience_ms), 0);
    ASSERT_NO_FATAL_FAILURE(join(near_channel_, far_channel_));
    ASSERT_EQ(ntbmsg_channel_reserve(near_channel_, &room, 1), 1);
    set(room, 2);
    ASSERT_EQ(ntbmsg_channel_commit(near_channel_, &length, nullptr, 1), 1);
    expect(10, 2, 0);
}

TEST_F(OnChannel, NotOfADedicatedWorker)
{
    ntbmsg_endpoint_options options = worker_options();
    options.dedicated = 1;
    ASSERT_NO_FATAL_FAILURE(bring_up(options));
    ASSERT_NO_FATAL_FAILURE(join(near_channel_, far_channel_));
    ntbmsg_room room;
    const uint32_t length = 10;
    EXPECT_EQ(ntbmsg_channel_reserve(near_channel_, &room, 1), -ENOTSUP);
    EXPECT_EQ(ntbmsg_channel_commit(near_channel_, &length, nullptr, 1), -ENOTSUP);
    EXPECT_EQ(ntbmsg_channel_abort(near_channel_), 0);
    give_back({near_channel_, far_channel_});
    near_channel_ = far_channel_ = nullptr;
    settle();
}

} // namespace

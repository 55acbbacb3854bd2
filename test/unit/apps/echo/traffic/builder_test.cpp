// SPDX-License-Identifier: BSD-3-Clause
// What is built for a peer at the other end of a cable, and what goes as the mbuf it is.
#include "traffic/builder.hpp"

#include <cerrno>
#include <vector>

#include <rte_rawdev.h>

#include "cabled.hpp"
#include "traffic/stamp.hpp"

namespace
{

class Builder : public Cabled
{
protected:
    void connect_ready(const ntbmsg_endpoint_options &options = small_options())
    {
        ASSERT_NO_FATAL_FAILURE(connect(options));
        poll_far();
    }
    /// Makes receive buffers available. Nothing is there to be received.
    void poll_far()
    {
        rte_mbuf *none = nullptr;
        ASSERT_EQ(ntbmsg_queue_recv_burst(far_, 0, &none, nullptr, 1), 0);
    }
    void put(const std::vector<size_t> &sizes)
    {
        for (const size_t size : sizes) {
            const auto number = static_cast<uint32_t>(put_++);
            // Taken for one that this side built, if it is not marked anew.
            box_.add(message(near_, size, static_cast<int>(number)),
                     {number, echo::echoed_flag | echo::built_flag, 0});
        }
    }
    int flush() { return builder_.flush(box_, {near_, 0}, counters_); }
    /// @return whether all has gone
    bool flush_all()
    {
        for (int rounds = 0; !box_.empty() && rounds < 100; ++rounds) {
            if (flush() < 0)
                return false;
        }
        return box_.empty();
    }

    void expect(size_t size, bool built)
    {
        ntbmsg_meta meta{};
        rte_mbuf *m = receive(far_, 0, &meta);
        ASSERT_NE(m, nullptr);
        EXPECT_EQ(m->pkt_len, size);
        EXPECT_EQ(meta.data, got_) << "out of order";
        EXPECT_EQ(meta.flags, echo::echoed_flag | (built ? echo::built_flag : 0)) << size;
        for (rte_mbuf *piece = m; piece != nullptr; piece = piece->next) {
            const auto *data = rte_pktmbuf_mtod(piece, const uint8_t *);
            EXPECT_TRUE(std::all_of(data, data + piece->data_len,
                                    [this](uint8_t byte) { return byte == got_ % 256; }));
        }
        rte_pktmbuf_free(m);
        ++got_;
    }

    echo::Builder builder_;
    echo::Counters counters_;
    echo::Outbox box_;
    uint64_t put_ = 1, got_ = 1;
};

TEST_F(Builder, WhatIsBuiltAndWhatIsCopiedKeepTheirOrder)
{
    ASSERT_NO_FATAL_FAILURE(connect_ready());
    const std::vector<size_t> sizes = {1, 2048, 0, 0, 2049, 64, 6000, 0, 4096};
    put(sizes);
    ASSERT_TRUE(flush_all());
    for (const size_t size : sizes)
        ASSERT_NO_FATAL_FAILURE(expect(size, size != 0));
    EXPECT_EQ(counters_.built, 6u);
    EXPECT_EQ(counters_.tx_messages, 9u);
    EXPECT_EQ(counters_.tx_bytes, 1u + 2048 + 2049 + 64 + 6000 + 4096);
}

TEST_F(Builder, NothingIsLostWhereTheRoomsEnd)
{
    ASSERT_NO_FATAL_FAILURE(connect_ready());
    put(std::vector<size_t>(40, 100));
    while (flush() > 0) {
    }
    const uint16_t waiting = box_.waiting();
    ASSERT_GT(waiting, 0) << "the peer has 28 receive buffers";
    EXPECT_EQ(counters_.built, 40u - waiting);
    for (int i = 0; i < 40 - waiting; ++i)
        ASSERT_NO_FATAL_FAILURE(expect(100, true));
    poll_far();
    while (flush() > 0) {
    }
    EXPECT_TRUE(box_.empty());
    for (int i = 0; i < waiting; ++i)
        ASSERT_NO_FATAL_FAILURE(expect(100, true));
}

TEST_F(Builder, AMessageThatThePeerDoesNotTakeIsTheFirstOne)
{
    ntbmsg_endpoint_options options = small_options();
    options.max_message = 3000;
    ASSERT_NO_FATAL_FAILURE(connect_ready(options));
    put({3000});
    ASSERT_TRUE(flush_all());
    ASSERT_NO_FATAL_FAILURE(expect(3000, true));
    put({10, 3001, 11});
    EXPECT_EQ(flush(), 1) << "one of them is too long: the first one goes alone";
    ASSERT_NO_FATAL_FAILURE(expect(10, false));
    EXPECT_EQ(flush(), -EMSGSIZE);
    ASSERT_EQ(box_.waiting(), 2);
    EXPECT_EQ(box_.front()[0]->pkt_len, 3001u);
    EXPECT_EQ(box_.free_front(1), 1u);
    ++got_;
    EXPECT_EQ(flush(), 1);
    ASSERT_NO_FATAL_FAILURE(expect(11, true));
}

TEST_F(Builder, APeerThatIsLostTakesNoRoomsAlong)
{
    ASSERT_NO_FATAL_FAILURE(connect_ready());
    for (int times = 0; times < 2; ++times) {
        put({5000, 100, 100});
        flush();
        EXPECT_GE(flush(), 0);
        rte_rawdev_stop(rte_rawdev_get_dev_id(far_device));
        ASSERT_TRUE(await_event(near_, NTBMSG_EVENT_LOST));
        put({100});
        EXPECT_EQ(flush(), -ENOTCONN);
        box_.drop_all();
        ASSERT_EQ(rte_rawdev_start(rte_rawdev_get_dev_id(far_device)), 0);
        ASSERT_EQ(ntbmsg_endpoint_wait_connected(near_, patience_ms), 0);
        ASSERT_EQ(ntbmsg_endpoint_wait_connected(far_, patience_ms), 0);
        rte_mbuf *left = nullptr;
        while (ntbmsg_queue_recv_burst(far_, 0, &left, nullptr, 1) > 0)
            rte_pktmbuf_free(left);
        got_ = put_;
        put({3000});
        ASSERT_TRUE(flush_all());
        ASSERT_NO_FATAL_FAILURE(expect(3000, true));
    }
}

} // namespace

// SPDX-License-Identifier: BSD-3-Clause
// Owners of ntbmsg.hpp: who closes what, and when; calls that go through.
#include <array>
#include <cerrno>
#include <type_traits>

#include <rte_mempool.h>

#include <ntbmsg.hpp>

#include "cabled.hpp"

namespace
{

static_assert(!std::is_copy_constructible_v<ntbmsg::Endpoint>);
static_assert(std::is_nothrow_move_constructible_v<ntbmsg::Endpoint>);
static_assert(sizeof(ntbmsg::Endpoint) == sizeof(ntbmsg_endpoint *));
static_assert(sizeof(ntbmsg::Message) == sizeof(rte_mbuf *));

/// An owner whose handles are only counted.
struct Handle {
    int closed = 0;
};
void close_handle(Handle *handle)
{
    ++handle->closed;
}
using Counted = ntbmsg::Owner<Handle, close_handle>;

TEST(Owner, ClosesOnceWhateverWayItTook)
{
    Handle a, b;
    {
        Counted first(&a);
        Counted second(std::move(first));
        EXPECT_FALSE(first);
        EXPECT_EQ(second.get(), &a);
        second.reset(&b);
        EXPECT_EQ(a.closed, 1);
        first = std::move(second);
        EXPECT_EQ(b.closed, 0);
        Counted &itself = first;
        first = std::move(itself);
        EXPECT_EQ(first.get(), &b);
    }
    EXPECT_EQ(a.closed, 1);
    EXPECT_EQ(b.closed, 1);
}

TEST(Owner, ReleasedIsTheCallers)
{
    Handle a;
    {
        Counted owner(&a);
        EXPECT_EQ(owner.release(), &a);
        EXPECT_FALSE(owner);
    }
    EXPECT_EQ(a.closed, 0);
}

class Cpp : public Cabled
{
protected:
    void open_both(ntbmsg::Endpoint &near, ntbmsg::Endpoint &far)
    {
        ntbmsg::EndpointOptions options;
        static_cast<ntbmsg_endpoint_options &>(options) = small_options();
        ASSERT_EQ(near.open(near_device, options), 0);
        ASSERT_EQ(far.open(far_device, options), 0);
        ASSERT_EQ(near.wait_connected(patience_ms), 0);
        ASSERT_EQ(far.wait_connected(patience_ms), 0);
    }
};

TEST_F(Cpp, EndpointsCloseThemselves)
{
    {
        ntbmsg::Endpoint near, far, moved, second;
        ASSERT_NO_FATAL_FAILURE(open_both(near, far));
        EXPECT_EQ(second.open(near_device), -EBUSY);
        EXPECT_FALSE(second);
        moved = std::move(near);
        EXPECT_EQ(moved.link_state(), NTBMSG_LINK_CONNECTED);
        EXPECT_EQ(far.close(), 0);
        EXPECT_FALSE(far);
    }
    ntbmsg::Endpoint again;
    EXPECT_EQ(again.open(near_device), 0);
}

TEST_F(Cpp, MessagesGoAndFreeThemselves)
{
    ntbmsg::Endpoint near, far;
    ASSERT_NO_FATAL_FAILURE(open_both(near, far));
    ntbmsg::Message sent = ntbmsg::Message::from(near.pool());
    ASSERT_TRUE(sent);
    std::memset(sent.append(100).data(), 7, 100);
    EXPECT_TRUE(sent.append(60'000).empty());
    const ntbmsg_meta meta{.data = 42, .flags = 0, .reserved = 0};
    ASSERT_EQ(near.send(0, sent, meta), 1);
    EXPECT_FALSE(sent);

    ntbmsg::Message got;
    ntbmsg_meta with{};
    for (const uint64_t end = now_ms() + patience_ms; !got && now_ms() < end;)
        ASSERT_GE(far.recv(0, got, &with), 0);
    ASSERT_TRUE(got);
    EXPECT_EQ(got.size(), 100U);
    EXPECT_EQ(got.data().back(), std::byte{7});
    EXPECT_EQ(with.data, 42U);
    ntbmsg::EndpointStats stats;
    EXPECT_EQ(near.stats(stats), 0);
    EXPECT_EQ(stats.tx_messages, 1U);
    got.reset();
    EXPECT_EQ(far.close(), 0) << "the message was not freed";
}

TEST_F(Cpp, WhatAWorkerHasGoesBeforeIt)
{
    ntbmsg::EndpointOptions options;
    static_cast<ntbmsg_endpoint_options &>(options) = small_options();
    options.workers = 1;
    options.max_message = 0;
    ntbmsg::Endpoint near;
    ASSERT_EQ(near.open(near_device, options), 0);
    ntbmsg::Worker worker = ntbmsg::Worker::of(near, 0);
    ntbmsg::PollSet set;
    ntbmsg::CompletionQueue queue;
    ASSERT_EQ(set.create(worker), 0);
    ASSERT_EQ(queue.create(16), 0);
    EXPECT_EQ(set.destroy(), 0);
    EXPECT_EQ(queue.destroy(), 0);
    EXPECT_FALSE(set || queue);
}

TEST_F(Cpp, BurstsAreSpans)
{
    ntbmsg::Endpoint near, far;
    ASSERT_NO_FATAL_FAILURE(open_both(near, far));
    std::array<rte_mbuf *, 8> burst;
    ASSERT_EQ(rte_pktmbuf_alloc_bulk(near.pool(), burst.data(), burst.size()), 0);
    std::array<ntbmsg_meta, 8> meta{};
    for (size_t i = 0; i < meta.size(); ++i)
        meta[i].data = i;
    ASSERT_EQ(near.send_burst(0, burst, meta), 8);

    std::array<ntbmsg_meta, 8> came{};
    size_t have = 0;
    for (const uint64_t end = now_ms() + patience_ms; have < burst.size() && now_ms() < end;) {
        const int n =
            far.recv_burst(0, std::span(burst).subspan(have), std::span(came).subspan(have));
        ASSERT_GE(n, 0);
        have += static_cast<size_t>(n);
    }
    ASSERT_EQ(have, burst.size());
    for (size_t i = 0; i < came.size(); ++i)
        EXPECT_EQ(came[i].data, i);
    rte_pktmbuf_free_bulk(burst.data(), 8);
}

} // namespace

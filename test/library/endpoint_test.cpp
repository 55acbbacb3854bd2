// SPDX-License-Identifier: BSD-3-Clause
// An endpoint's life, through ntbmsg.h alone.
#include <cerrno>

#include "cabled.hpp"

namespace
{

using Endpoint = Cabled;

TEST_F(Endpoint, NullArgumentsAreRefused)
{
    EXPECT_EQ(ntbmsg_endpoint_open(nullptr, nullptr, &near_), -EINVAL);
    EXPECT_EQ(ntbmsg_endpoint_open(near_device, nullptr, nullptr), -EINVAL);
    EXPECT_EQ(near_, nullptr);
    EXPECT_EQ(ntbmsg_endpoint_close(nullptr), 0);
    EXPECT_EQ(ntbmsg_endpoint_pool(nullptr), nullptr);
}

TEST_F(Endpoint, UnknownDeviceIsNamed)
{
    EXPECT_EQ(ntbmsg_endpoint_open("raw_plx_ntb9", nullptr, &near_), -ENODEV);
    EXPECT_EQ(near_, nullptr);
}

TEST_F(Endpoint, DeviceOfAnotherDriverIsRefused)
{
    if (rte_vdev_init("rawdev_skeleton0", nullptr) != 0)
        GTEST_SKIP() << "DPDK's skeleton rawdev is not installed";
    EXPECT_EQ(ntbmsg_endpoint_open("rawdev_skeleton0", nullptr, &near_), -ENODEV);
    rte_vdev_uninit("rawdev_skeleton0");
}

TEST_F(Endpoint, OpensOnceADevice)
{
    open(near_device, near_);
    ntbmsg_endpoint *second = nullptr;
    const ntbmsg_endpoint_options options = small_options();
    EXPECT_EQ(ntbmsg_endpoint_open(near_device, &options, &second), -EBUSY);
    EXPECT_EQ(second, nullptr);
}

TEST_F(Endpoint, OpensAgainAfterClose)
{
    for (int i = 0; i < 3; ++i) {
        open(near_device, near_);
        ASSERT_NE(near_, nullptr);
        close(near_);
    }
}

TEST_F(Endpoint, OpensWithTheDefaults)
{
    ASSERT_EQ(ntbmsg_endpoint_open(near_device, nullptr, &near_), 0);
    ASSERT_NE(ntbmsg_endpoint_pool(near_), nullptr);
    EXPECT_EQ(rte_pktmbuf_data_room_size(ntbmsg_endpoint_pool(near_)), RTE_PKTMBUF_HEADROOM + 2048);
}

TEST_F(Endpoint, ALongMessageGoesOutOfOneMbuf)
{
    ntbmsg_endpoint_options options = small_options();
    options.tx_room = 4096;
    options.buf_bytes = 4096;
    connect(options);
    rte_mbuf *out = message(near_, 4096, 3);
    ASSERT_NE(out, nullptr);
    EXPECT_EQ(out->nb_segs, 1);
    ASSERT_EQ(send(near_, far_, out), 1);
    rte_mbuf *in = receive(far_);
    ASSERT_NE(in, nullptr);
    EXPECT_EQ(in->pkt_len, 4096U);
    EXPECT_EQ(in->nb_segs, 1);
    const auto *data = rte_pktmbuf_mtod(in, const uint8_t *);
    EXPECT_TRUE(std::all_of(data, data + 4096, [](uint8_t byte) { return byte == 3; }));
    rte_pktmbuf_free(in);
}

TEST_F(Endpoint, AFailedOpenLeavesNothingBehind)
{
    ntbmsg_endpoint_options options = small_options();
    options.tx_mbufs = 1U << 20; // 2 GiB, which this process does not have
    EXPECT_EQ(ntbmsg_endpoint_open(near_device, &options, &near_), -ENOMEM);
    EXPECT_EQ(near_, nullptr);
    open(near_device, near_);
}

TEST_F(Endpoint, CloseWaitsForItsMbufs)
{
    connect();
    rte_mbuf *held = message(near_, 10, 1);
    ASSERT_NE(held, nullptr);
    EXPECT_EQ(ntbmsg_endpoint_close(near_), -EBUSY);
    rte_pktmbuf_free(held);
    close(near_);
}

TEST_F(Endpoint, CloseWaitsForReceivedMbufs)
{
    connect();
    // One through the ring, one through receive buffers: they come from different pools.
    for (const size_t bytes : {size_t{10}, size_t{4000}}) {
        ASSERT_EQ(send(far_, near_, message(far_, bytes, 2)), 1);
        rte_mbuf *held = receive(near_);
        ASSERT_NE(held, nullptr);
        EXPECT_EQ(ntbmsg_endpoint_close(near_), -EBUSY);
        rte_pktmbuf_free(held);
        close(near_);
        open(near_device, near_);
        ASSERT_EQ(ntbmsg_endpoint_wait_connected(near_, patience_ms), 0);
        ASSERT_TRUE(await_event(far_, NTBMSG_EVENT_LOST));
        ASSERT_EQ(ntbmsg_endpoint_wait_connected(far_, patience_ms), 0);
    }
}

TEST_F(Endpoint, VersionIsTheHeaders)
{
    EXPECT_EQ(ntbmsg_version(), NTBMSG_VERSION_MAJOR << 16 | NTBMSG_VERSION_MINOR);
}

} // namespace

// SPDX-License-Identifier: BSD-3-Clause
// Closing an endpoint whose device cannot be stopped.
#include <cerrno>

#include <rte_pmd_plx_ntb.h>
#include <rte_pmd_plx_ntb_test.h>

#include "cabled.hpp"

namespace
{

class FailedStop : public Cabled, public testing::WithParamInterface<bool>
{
protected:
    uint16_t id_ = 0;

    void card_gone(uint32_t yes)
    {
        ASSERT_EQ(rte_pmd_plx_ntb_inject(id_, RTE_PMD_PLX_NTB_FAULT_CARD_GONE, yes), 0);
    }
    void SetUp() override
    {
        Cabled::SetUp();
        id_ = static_cast<uint16_t>(rte_pmd_plx_ntb_find(near_device));
        ASSERT_NO_FATAL_FAILURE(connect());
        rte_mbuf *none = nullptr;
        if (GetParam()) { // its receive buffers are out
            EXPECT_EQ(ntbmsg_queue_recv_burst(near_, 0, &none, nullptr, 1), 0);
        }
        ASSERT_NO_FATAL_FAILURE(card_gone(1));
    }
};

TEST_P(FailedStop, NothingIsFreedBeforeItIsCompleted)
{
    rte_mbuf *none = nullptr;
    EXPECT_EQ(ntbmsg_endpoint_close(near_), -EIO);
    EXPECT_EQ(ntbmsg_queue_recv_burst(near_, 0, &none, nullptr, 1), 0);
    EXPECT_EQ(ntbmsg_endpoint_close(near_), -EIO);
    ASSERT_NO_FATAL_FAILURE(card_gone(0));
    int rc = -EIO;
    for (const uint64_t end = now_ms() + patience_ms; rc == -EIO && now_ms() < end;)
        rc = ntbmsg_endpoint_close(near_);
    ASSERT_EQ(rc, 0);
    near_ = nullptr;
    ASSERT_NO_FATAL_FAILURE(open(near_device, near_));
    EXPECT_EQ(ntbmsg_endpoint_wait_connected(near_, patience_ms), 0);
}

TEST_P(FailedStop, WithoutTheDeviceAllIsFreed)
{
    EXPECT_EQ(ntbmsg_endpoint_close(near_), -EIO);
    EXPECT_EQ(rte_vdev_uninit(near_device), 0);
    EXPECT_EQ(ntbmsg_endpoint_close(near_), 0);
    near_ = nullptr;
    ASSERT_EQ(rte_vdev_init(near_device, "cable=mem:another"), 0); // as TearDown() expects
}

INSTANTIATE_TEST_SUITE_P(Library, FailedStop, testing::Bool(),
                         [](const auto &i) { return i.param ? "Polled" : "NotPolled"; });

} // namespace

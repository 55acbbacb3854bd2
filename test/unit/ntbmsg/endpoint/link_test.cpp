// SPDX-License-Identifier: BSD-3-Clause
// What the library makes of every state a device can be in. The device is a fake: some of them last
// too short a time to be met on a real one, and a refusal needs a peer of another version.
#include <cerrno>
#include <cstdio>

#include <gtest/gtest.h>

#include "endpoint/endpoint.hpp"

namespace
{

rte_pmd_plx_ntb_link device_link;

class LinkState : public testing::Test
{
protected:
    void SetUp() override
    {
        device_link = {};
        ASSERT_EQ(endpoint_.events.init(), 0);
    }
    void TearDown() override { endpoint_.events.destroy(); }

    void device_is(rte_pmd_plx_ntb_state state, const char *why = "")
    {
        device_link.state = state;
        std::snprintf(device_link.why, sizeof(device_link.why), "%s", why);
    }

    ntbmsg_endpoint endpoint_{};
};

TEST_F(LinkState, EveryStateOfADeviceHasOne)
{
    const struct {
        rte_pmd_plx_ntb_state device;
        enum ntbmsg_link_state endpoint;
        int wait;
    } table[] = {
        {RTE_PMD_PLX_NTB_STOPPED, NTBMSG_LINK_WAITING, -ETIMEDOUT},
        {RTE_PMD_PLX_NTB_WAITING, NTBMSG_LINK_WAITING, -ETIMEDOUT},
        {RTE_PMD_PLX_NTB_CONNECTED, NTBMSG_LINK_CONNECTED, 0},
        {RTE_PMD_PLX_NTB_CLOSING, NTBMSG_LINK_CLOSING, -ETIMEDOUT},
        {RTE_PMD_PLX_NTB_SILENT, NTBMSG_LINK_SILENT, 0},
        {RTE_PMD_PLX_NTB_FENCING, NTBMSG_LINK_WAITING, -ETIMEDOUT},
        {RTE_PMD_PLX_NTB_REFUSED, NTBMSG_LINK_REFUSED, -EPROTO},
    };
    for (const auto &row : table) {
        device_is(row.device);
        EXPECT_EQ(ntbmsg_endpoint_link_state_get(&endpoint_), row.endpoint) << row.device;
        EXPECT_EQ(ntbmsg_endpoint_wait_connected(&endpoint_, 0), row.wait) << row.device;
    }
}

TEST_F(LinkState, ARefusalEndsTheWaitInWords)
{
    device_is(RTE_PMD_PLX_NTB_REFUSED, "it speaks version 2");
    EXPECT_EQ(ntbmsg_endpoint_wait_connected(&endpoint_, UINT32_MAX), -EPROTO);
    char why[96];
    EXPECT_EQ(ntbmsg_endpoint_link_reason_get(&endpoint_, why, sizeof(why)), 0);
    EXPECT_STREQ(why, "it speaks version 2");
}

} // namespace

extern "C" int rte_pmd_plx_ntb_link_get(uint16_t, rte_pmd_plx_ntb_link *link)
{
    *link = device_link;
    return 0;
}

// SPDX-License-Identifier: BSD-3-Clause
#include "mac.hpp"

#include <set>
#include <string>

#include <gtest/gtest.h>

using namespace plx::net;

namespace
{

TEST(NetMac, IsUnicastLocalAndOfItsIdentityAlone)
{
    std::set<std::string> seen;
    for (int i = 0; i < 1000; ++i) {
        const std::string identity = "machine host /run/dpdk/rte net_plx_ntb" + std::to_string(i);
        const rte_ether_addr mac = mac_of(identity.c_str());
        EXPECT_TRUE(rte_is_unicast_ether_addr(&mac));
        EXPECT_TRUE(rte_is_local_admin_ether_addr(&mac));
        const rte_ether_addr again = mac_of(identity.c_str());
        EXPECT_TRUE(rte_is_same_ether_addr(&mac, &again));
        seen.insert({reinterpret_cast<const char *>(mac.addr_bytes), sizeof(mac.addr_bytes)});
    }
    EXPECT_EQ(seen.size(), 1000u);
}

} // namespace

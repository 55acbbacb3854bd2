// SPDX-License-Identifier: BSD-3-Clause
// Devargs, and the rawdev that a port stands on.
#include "ports.hpp"

#include <cerrno>
#include <string>

#include <rte_bus_vdev.h>
#include <rte_pmd_plx_ntb.h>
#include <rte_rawdev.h>

namespace test
{

namespace
{

TEST_F(Ports, BadDevargsAreRefusedWithWhatWasExpected)
{
    const struct {
        const char *args;
        const char *expected;
    } cases[] = {
        {"", "expected cable=<socket path> or dev=<rawdev>"},
        {"mac=01:00:00:00:00:01,cable=mem:bad", "expected a unicast address"},
        {"mac=nonsense,cable=mem:bad", "expected a unicast address"},
        {"zero_copy=2,cable=mem:bad", "expected 0 or 1"},
        {"zero_copy=1,zero_copy=1,cable=mem:bad", "expected this key once"},
        {"queues=4,cable=mem:bad", "rte_eth_dev_configure()"},
        {"rx=stable,cable=mem:bad", "zero_copy=0|1"},
        {"max_message=1000,cable=mem:bad", "data room"},
        {"dev=raw_plx_ntb7", "there is no raw_plx_ntb device \"raw_plx_ntb7\""},
        {"dev=raw_plx_ntb7,dev=raw_plx_ntb7", "expected this key once"},
        {"cable=mem:bad,cable=mem:worse", "expected this key once"},
        {"mac=02:00:00:00:00:01,mac=02:00:00:00:00:01,cable=mem:bad", "expected this key once"},
        {"dev=", "the name of a raw_plx_ntb device"},
        {"dev=raw_plx_ntb7,ring=1024", "takes no devargs"},
        {"cable=mem:bad,colour=red", "unknown or malformed devarg"},
        {"cable=mem:bad,ring=1000", "ring"},
    };
    for (const auto &c : cases) {
        int rc = 0;
        const std::string said = vdev_error("net_plx_ntb9", c.args, &rc);
        EXPECT_LT(rc, 0) << c.args;
        EXPECT_NE(said.find(c.expected), std::string::npos) << c.args << ": " << said;
        if (rc == 0)
            rte_vdev_uninit("net_plx_ntb9");
    }
}

TEST_F(Ports, ARawdevServesOnePort)
{
    ASSERT_EQ(rte_vdev_init("raw_plx_ntb0", (cable() + small).c_str()), 0);
    near = std::make_unique<TestPort>("net_plx_ntb0", "dev=raw_plx_ntb0");
    ASSERT_EQ(near->rc(), 0);
    int rc = 0;
    const std::string said = vdev_error("net_plx_ntb9", "dev=raw_plx_ntb0", &rc);
    EXPECT_EQ(rc, -EBUSY);
    EXPECT_NE(said.find("raw_plx_ntb0 belongs to another port"), std::string::npos) << said;
    far = std::make_unique<TestPort>("net_plx_ntb1", cable() + small);
    start({}, {});
    one_each_way(1);
    near.reset(); // the rawdev stays
    EXPECT_GE(rte_pmd_plx_ntb_find("raw_plx_ntb0"), 0);
    near = std::make_unique<TestPort>("net_plx_ntb0", "dev=raw_plx_ntb0");
    ASSERT_EQ(near->rc(), 0);
    ASSERT_EQ(near->start({}), 0);
    ASSERT_TRUE(near->await_link(true));
    near.reset();
    EXPECT_EQ(rte_vdev_uninit("raw_plx_ntb0"), 0);
}

TEST_F(Ports, ARawdevInUseIsNotTaken)
{
    ASSERT_EQ(rte_vdev_init("raw_plx_ntb0", (cable() + small).c_str()), 0);
    const int raw = rte_pmd_plx_ntb_find("raw_plx_ntb0");
    ASSERT_GE(raw, 0);
    const auto raw_id = static_cast<uint16_t>(raw);
    rte_pmd_plx_ntb_config config{};
    config.size = sizeof(config);
    rte_rawdev_info info{};
    info.dev_private = &config;
    ASSERT_EQ(rte_rawdev_configure(raw_id, &info, sizeof(config)), 0);
    ASSERT_EQ(rte_rawdev_queue_setup(raw_id, 0, nullptr, 0), 0);
    ASSERT_EQ(rte_rawdev_start(raw_id), 0);
    int rc = 0;
    const std::string said = vdev_error("net_plx_ntb9", "dev=raw_plx_ntb0", &rc);
    EXPECT_EQ(rc, -EBUSY);
    EXPECT_NE(said.find("raw_plx_ntb0 is started"), std::string::npos) << said;
    EXPECT_EQ(rte_vdev_uninit("raw_plx_ntb0"), 0);
}

} // namespace

} // namespace test

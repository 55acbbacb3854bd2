// SPDX-License-Identifier: BSD-3-Clause
// Memory and lcores on NUMA nodes. On which node a thread runs, EAL is asked through a symbol that
// this program puts in the place of EAL's, since most machines of developers have one node.
#include <cerrno>
#include <chrono>
#include <string>

#include <gtest/gtest.h>

#include <log_capture.hpp>
#include <rte_bus_vdev.h>
#include <rte_log.h>
#include <rte_pmd_plx_ntb.h>
#include <rte_rawdev.h>

#include <poll.h>

namespace
{
thread_local unsigned node = 0;
}

extern "C" unsigned rte_socket_id(void)
{
    return node;
}

namespace
{

constexpr const char *names[] = {"raw_plx_ntb0", "raw_plx_ntb1"};

template <class Fact>
bool await(Fact fact)
{
    using Clock = std::chrono::steady_clock;
    for (const auto end = Clock::now() + std::chrono::seconds(60); Clock::now() < end;) {
        if (fact())
            return true;
        poll(nullptr, 0, 1);
    }
    return false;
}

class Numa : public testing::Test
{
protected:
    static uint16_t id(const char *name)
    {
        return static_cast<uint16_t>(rte_pmd_plx_ntb_find(name));
    }
    static void start(const char *name)
    {
        ASSERT_EQ(rte_vdev_init(name, "cable=mem:numa,buffers=256,ring=64"), 0);
        rte_pmd_plx_ntb_config config{};
        config.size = sizeof(config);
        rte_rawdev_info info{};
        info.dev_private = &config;
        ASSERT_EQ(rte_rawdev_configure(id(name), &info, sizeof(config)), 0);
        ASSERT_EQ(rte_rawdev_queue_setup(id(name), 0, nullptr, 0), 0);
        ASSERT_EQ(rte_rawdev_start(id(name)), 0);
    }
    void TearDown() override
    {
        node = 0;
        for (const char *name : names)
            rte_vdev_uninit(name);
    }
};

TEST_F(Numa, AnLcoreOnAnotherNodeIsWarnedAbout)
{
    rte_log_set_global_level(RTE_LOG_WARNING);
    const test::LogCapture log;
    for (const char *name : names)
        ASSERT_NO_FATAL_FAILURE(start(name));
    for (const char *name : names)
        ASSERT_TRUE(await([&] {
            rte_pmd_plx_ntb_link link{};
            rte_pmd_plx_ntb_link_get(id(name), &link);
            return link.state == RTE_PMD_PLX_NTB_CONNECTED;
        })) << name;
    rte_mbuf *mbuf = nullptr;
    EXPECT_EQ(rte_pmd_plx_ntb_rx_burst(id(names[0]), 0, &mbuf, nullptr, 1), 0);
    node = 1;
    const std::string warning = "raw_plx_ntb1: the lcore receiving on queue 0 is on NUMA node 1, "
                                "the device on 0\n";
    EXPECT_TRUE(await([&] { // its first burst behind an open gate shows it
        EXPECT_EQ(rte_pmd_plx_ntb_rx_burst(id(names[1]), 0, &mbuf, nullptr, 1), 0);
        return log.driver().find(warning) != std::string::npos;
    })) << log.text();
    EXPECT_EQ(log.driver().find("raw_plx_ntb0: the lcore"), std::string::npos) << log.text();
}

TEST_F(Numa, ANodeThatIsNotThereIsRefused)
{
    const test::LogCapture log;
    EXPECT_EQ(rte_vdev_init(names[0], "cable=mem:numa,numa=31"), -EINVAL);
    EXPECT_NE(log.driver().find("numa=31: this machine has no such NUMA node"), std::string::npos)
        << log.text();
    ASSERT_EQ(rte_vdev_init(names[0], "cable=mem:numa,numa=0"), 0);
}

} // namespace

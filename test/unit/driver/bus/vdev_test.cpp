// SPDX-License-Identifier: BSD-3-Clause
// A secondary process is refused at probe. Which process this is, EAL is asked through a symbol
// that this program puts in the place of EAL's: a real secondary process would need files and
// hugepages of a real primary one.
#include <cerrno>

#include <gtest/gtest.h>

#include <log_capture.hpp>
#include <rte_bus_vdev.h>
#include <rte_eal.h>
#include <rte_rawdev.h>

namespace
{
bool secondary = false;
}

extern "C" enum rte_proc_type_t rte_eal_process_type(void)
{
    return secondary ? RTE_PROC_SECONDARY : RTE_PROC_PRIMARY;
}

namespace
{

constexpr char name[] = "raw_plx_ntb0";
constexpr char devargs[] = "cable=mem:secondary";

int probe(bool in_secondary)
{
    secondary = in_secondary;
    const int rc = rte_vdev_init(name, devargs);
    secondary = false;
    return rc;
}

TEST(Secondary, IsRefusedAndLeavesNothing)
{
    const int before = rte_rawdev_count();
    const test::LogCapture log;
    EXPECT_EQ(probe(true), -ENOTSUP);
    EXPECT_NE(log.driver().find("raw_plx_ntb0: secondary processes are not supported"),
              std::string::npos)
        << log.text();
    EXPECT_EQ(rte_rawdev_count(), before);
    ASSERT_EQ(probe(false), 0) << "the primary one is welcome";
    EXPECT_EQ(rte_rawdev_count(), before + 1);
    EXPECT_EQ(rte_vdev_uninit(name), 0);
}

} // namespace

// SPDX-License-Identifier: BSD-3-Clause
#include "bus.hpp"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>

#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_pmd_plx_ntb.h>
#include <rte_rawdev.h>
#include <rte_rawdev_pmd.h>

#include <sched.h>
#include <unistd.h>

namespace test
{

namespace
{

constexpr unsigned huge_pages_wanted = 48;

std::unique_ptr<Sysfs> tree;

std::string obstacle;
bool eal_started = false;

unsigned free_huge_pages()
{
    unsigned count = 0;
    std::ifstream("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages") >> count;
    return count;
}

std::string obstacle_before()
{
    if (geteuid() != 0)
        return "physical addresses are for root only: run as root";
    if (free_huge_pages() < huge_pages_wanted)
        return std::to_string(huge_pages_wanted) +
               " free huge pages of 2 MB are needed: echo 96 > /proc/sys/vm/nr_hugepages";
    return "";
}

void start_eal()
{
    char arguments[][32] = {
        "test", "--in-memory", "--no-telemetry",        "--iova-mode=pa",
        "-m",   "16",          "--log-level=*:warning", "--log-level=pmd.raw.*:info"};
    constexpr int count = std::size(arguments);
    char *pointers[count + 1] = {};
    for (int i = 0; i < count; i++)
        pointers[i] = arguments[i];
    cpu_set_t cores;
    sched_getaffinity(0, sizeof(cores), &cores);
    if (rte_eal_init(count, pointers) < 0) {
        obstacle = std::string("EAL does not start with physical addresses and huge pages here: ") +
                   rte_strerror(rte_errno);
        return;
    }
    eal_started = true;
    sched_setaffinity(0, sizeof(cores), &cores);
    LogCapture::whole();
    if (rte_eal_iova_mode() != RTE_IOVA_PA)
        obstacle = "EAL gives no physical addresses here (CAP_SYS_ADMIN is missing)";
}

} // namespace

Sysfs &sysfs()
{
    return *tree;
}

void OnTheBus::SetUp()
{
    if (!obstacle.empty())
        GTEST_SKIP() << obstacle;
}

void OnTheBus::TearDown()
{
    if (!obstacle.empty())
        return;
    EXPECT_FALSE(is_mapped());
}

int OnTheBus::probe(const FakeFunction &function, const char *devargs)
{
    sysfs().plug(function);
    return rte_eal_hotplug_add("pci", function.address.c_str(), devargs);
}

int OnTheBus::remove(const std::string &address)
{
    return rte_eal_hotplug_remove("pci", address.c_str());
}

void OnTheBus::start_device(const std::string &address)
{
    const auto id = static_cast<uint16_t>(rawdev(address));
    rte_pmd_plx_ntb_config config{};
    config.size = sizeof(config);
    rte_rawdev_info info{};
    info.dev_private = &config;
    ASSERT_EQ(rte_rawdev_configure(id, &info, sizeof(config)), 0);
    rte_pmd_plx_ntb_queue_config queue{.size = sizeof(queue), .pool = nullptr};
    ASSERT_EQ(rte_rawdev_queue_setup(id, 0, &queue, sizeof(queue)), 0);
    ASSERT_EQ(rte_rawdev_start(id), 0);
}

int OnTheBus::rawdev(const std::string &address)
{
    // Not rte_rawdev_get_dev_id: it looks at no more places than there are devices, so after a
    // removal it misses those behind the gap.
    const rte_rawdev *raw = rte_rawdev_pmd_get_named_dev(address.c_str());
    return raw == nullptr ? -1 : raw->dev_id;
}

size_t OnTheBus::open_descriptors()
{
    size_t count = 0;
    for ([[maybe_unused]] const auto &entry : std::filesystem::directory_iterator("/proc/self/fd"))
        ++count;
    return count;
}

bool OnTheBus::is_mapped()
{
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);)
        if (line.find(sysfs().root()) != std::string::npos)
            return true;
    return false;
}

} // namespace test

int main(int argc, char **argv)
{
    testing::InitGoogleTest(&argc, argv);
    // Listing the cases must not need a working EAL.
    if (testing::GTEST_FLAG(list_tests))
        return RUN_ALL_TESTS();
    test::obstacle = test::obstacle_before();
    if (test::obstacle.empty()) {
        test::tree = std::make_unique<test::Sysfs>();
        test::start_eal();
    }
    const int result = RUN_ALL_TESTS();
    if (test::eal_started) {
        if (result != 0)
            std::fputs(test::LogCapture::whole().c_str(), stderr);
        rte_eal_cleanup();
    }
    test::tree.reset();
    return result;
}

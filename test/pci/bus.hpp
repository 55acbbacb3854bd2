// SPDX-License-Identifier: BSD-3-Clause
// What the tests of the PCI path share: one EAL on a made-up sysfs tree.
#ifndef TEST_PCI_BUS_HPP
#define TEST_PCI_BUS_HPP

#include "log_capture.hpp"
#include "sysfs.hpp"

#include <string>

#include <gtest/gtest.h>

namespace test
{

/// The tree on which EAL started. It maps PCI functions of UIO drivers only with bus addresses that
/// are physical, so it takes root and huge pages; without them every case says so and is skipped.
Sysfs &sysfs();

class OnTheBus : public testing::Test
{
protected:
    void SetUp() override;
    void TearDown() override;

    /// Plugs a function in and has EAL probe it. @return as rte_eal_hotplug_add
    int probe(const FakeFunction &function, const char *devargs = "");
    int remove(const std::string &address);
    /// Configures the device there with one queue, by default in all else, and starts it.
    static void start_device(const std::string &address);
    /// The rawdev of that name. @return -1: there is none
    static int rawdev(const std::string &address);
    static size_t open_descriptors();
    /// Whether anything of the tree is mapped.
    static bool is_mapped();
};

} // namespace test

#endif

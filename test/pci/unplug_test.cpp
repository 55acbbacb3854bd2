// SPDX-License-Identifier: BSD-3-Clause
// Surprise removal as a card shows it: BARs vanish below their mappings, the next access is a
// SIGBUS, and where the application enabled EAL's handling of it zeros lie there from then on.
#include "bus.hpp"

#include <chrono>
#include <string>

#include <rte_dev.h>
#include <rte_pmd_plx_ntb.h>
#include <rte_rawdev.h>

#include <poll.h>

namespace
{

using test::FakeFunction;
using test::LogCapture;
using test::sysfs;

constexpr uint32_t nt0_virtual = 0x3E000;
constexpr uint32_t link_status = nt0_virtual + 0x78, trained = 0x00830000; // Gen3 x8

class PciUnplug : public test::OnTheBus
{
protected:
    FakeFunction nt_;
    uint16_t id_ = 0;

    void start()
    {
        nt_.registers[link_status] = trained;
        ASSERT_EQ(probe(nt_, "ring=64,buffers=64"), 0);
        id_ = static_cast<uint16_t>(rawdev(nt_.address));
        ASSERT_NO_FATAL_FAILURE(start_device(nt_.address));
    }
    rte_pmd_plx_ntb_link link() const
    {
        rte_pmd_plx_ntb_link link{};
        EXPECT_EQ(rte_pmd_plx_ntb_link_get(id_, &link), 0);
        return link;
    }
    bool await_why(const std::string &text) const
    {
        using Clock = std::chrono::steady_clock;
        for (const auto end = Clock::now() + std::chrono::seconds(60); Clock::now() < end;) {
            if (link().why == text)
                return true;
            poll(nullptr, 0, 1);
        }
        return false;
    }
};

TEST_F(PciUnplug, ZerosAreNotTakenForRegistersAndTheDeviceCanGo)
{
    ASSERT_EQ(rte_dev_hotplug_handle_enable(), 0);
    start();
    EXPECT_EQ(link().speed, 3u);
    sysfs().vanish(nt_.address);
    EXPECT_TRUE(await_why("the chip does not answer")) << link().why;
    EXPECT_EQ(link().speed, 0u);

    const LogCapture log;
    EXPECT_EQ(rte_pmd_plx_ntb_stop(id_, 0, nullptr), -EIO);
    EXPECT_EQ(remove(nt_.address), 0);
    EXPECT_EQ(rawdev(nt_.address), -1);
    EXPECT_FALSE(is_mapped());
    EXPECT_NE(log.driver().find("its memory is kept"), std::string::npos) << log.driver();
    sysfs().unplug(nt_.address);
    EXPECT_EQ(rte_dev_hotplug_handle_disable(), 0);
}

TEST_F(PciUnplug, AnotherCardMayComeInItsPlace)
{
    start();
    EXPECT_EQ(link().speed, 3u);
    rte_rawdev_stop(id_);
    EXPECT_EQ(remove(nt_.address), 0);
    sysfs().unplug(nt_.address);
}

} // namespace

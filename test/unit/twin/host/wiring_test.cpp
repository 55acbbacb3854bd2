// SPDX-License-Identifier: BSD-3-Clause
// Which NT port the cable hangs on.
#include "bench_pair.hpp"

#include <cerrno>

using namespace plx;
using namespace plx::test;

namespace
{

class TwinNt1 : public MemPair
{
protected:
    TwinNt1() { config.nt = 1; }
};

TEST_F(TwinNt1, IsWhatConfigurationSpaceShows)
{
    attach_both();
    EXPECT_EQ(twin::config_read32(a, reg::pci_id), 0x87B110B5u);
    EXPECT_EQ(twin::config_read32(a, reg::nt_port_id), 1u);
    EXPECT_EQ(twin::csr_read32(a, facts::nt_base(1, Side::link) + reg::pci_id), 0x87A110B5u);
    EXPECT_EQ(twin::csr_read32(a, facts::nt_base(1, Side::link) + reg::nt_port_id), 0x80000001u);
    EXPECT_EQ(twin::csr_read32(a, virt_block + reg::pci_id), 0x87B010B5u)
        << "the other NT port is there too";
    const uint32_t up = twin::csr_read32(a, reg::vs0_upstream);
    EXPECT_TRUE(facts::nt_port(up, 0).enabled);
    EXPECT_TRUE(facts::nt_port(up, 1).enabled);
}

TEST_F(TwinNt1, ItsOwnLinkIsUpAndItsOwnPortTakesItDown)
{
    attach_both();
    clock.advance_us(config.switches.train_us);
    const auto width = [&](unsigned nt) {
        return field::link_width.get(
            twin::csr_read32(b, facts::nt_base(nt, Side::virt) + reg::pcie_link_ctl_status));
    };
    EXPECT_NE(width(1), 0u);
    EXPECT_EQ(width(0), 0u);
    const uint32_t control = facts::station_base(8) + reg::port_control;
    twin::csr_write32(a, control, 1u << 0);
    EXPECT_NE(width(1), 0u) << "port 8 is NT0's";
    twin::csr_write32(a, control, 1u << 1);
    EXPECT_EQ(width(1), 0u);
    EXPECT_EQ(twin::csr_read32(b, facts::nt_base(1, Side::virt) + reg::link_err_status),
              field::err_link_change.mask());
    EXPECT_EQ(twin::csr_read32(b, virt_block + reg::link_err_status), 0u);
}

TEST(TwinNt, IsChecked)
{
    twin::Config config;
    config.cable = "mem:nt";
    config.nt = 2;
    twin::Host *host = nullptr;
    twin::Error error{};
    EXPECT_EQ(twin::attach(config, &host, &error), -EINVAL);
    EXPECT_NE(std::string(error.text).find('2'), std::string::npos);
}

} // namespace

// SPDX-License-Identifier: BSD-3-Clause
// What the driver makes of a card's BARs, on made-up ones.
#include "bus/pci_bars.hpp"

#include <string>

#include <gtest/gtest.h>

namespace
{

using namespace plx::pmd;

constexpr uint64_t mib = uint64_t{1} << 20;

class PciBarsTest : public testing::Test
{
protected:
    std::byte mapped_{};
    PciBars bars_{.csr = {0xF7000000, 256 << 10, &mapped_, false, false},
                  .data = {0x3800000000, 512 * mib, &mapped_, true, true},
                  .shared = {0x3840000000, 4 * mib, &mapped_, true, true}};

    void expect_fault(const char *bar, const char *word)
    {
        BarFault fault;
        EXPECT_FALSE(check_bars(bars_, &fault));
        EXPECT_NE(std::string(fault.text).find(bar), std::string::npos) << fault.text;
        EXPECT_NE(std::string(fault.text).find(word), std::string::npos) << fault.text;
    }
};

TEST_F(PciBarsTest, TakesWhatABoardHas)
{
    BarFault fault;
    EXPECT_TRUE(check_bars(bars_, &fault)) << fault.text;
    EXPECT_STREQ(fault.text, "");
}

TEST_F(PciBarsTest, NamesTheOneThatWillNotDo)
{
    const PciBars good = bars_;
    bars_.csr.bytes = 0;
    expect_fault("BAR0", "absent");
    bars_ = good;
    bars_.csr.bytes = 128 << 10;
    expect_fault("BAR0", "256 KiB");
    bars_ = good;
    bars_.data.bytes = 0;
    expect_fault("BAR2", "absent");
    bars_ = good;
    bars_.data.bus = 0;
    expect_fault("BAR2", "no address");
    bars_ = good;
    bars_.data.bytes = 384 * mib;
    expect_fault("BAR2", "power of two");
    bars_ = good;
    bars_.data.bytes = mib / 2;
    expect_fault("BAR2", "power of two");
    bars_ = good;
    bars_.data.bus += 4096;
    expect_fault("BAR2", "multiple");
    bars_ = good;
    bars_.data.is_64bit = false;
    expect_fault("BAR2", "32-bit");
    bars_ = good;
    bars_.shared.is_64bit = false;
    expect_fault("BAR4", "32-bit");
    bars_ = good;
    bars_.shared.bytes = mib;
    expect_fault("BAR4", "2048 KiB");
    bars_ = good;
    bars_.shared.addr = nullptr;
    expect_fault("BAR4", "mapped");
}

TEST_F(PciBarsTest, ReadsTheTypeBits)
{
    PciBar bar;
    set_type(&bar, 0xF700000C);
    EXPECT_TRUE(bar.is_64bit);
    EXPECT_TRUE(bar.prefetchable);
    set_type(&bar, 0xF7000000);
    EXPECT_FALSE(bar.is_64bit);
    EXPECT_FALSE(bar.prefetchable);
    set_type(&bar, 0xF7000008);
    EXPECT_FALSE(bar.is_64bit);
    EXPECT_TRUE(bar.prefetchable);
}

TEST_F(PciBarsTest, KnowsHowFarTheEnginesReach)
{
    EXPECT_TRUE(dma_reaches(bars_.data));
    bars_.data.bus = (uint64_t{1} << 48) - bars_.data.bytes;
    EXPECT_TRUE(dma_reaches(bars_.data));
    bars_.data.bus += bars_.data.bytes;
    EXPECT_FALSE(dma_reaches(bars_.data));
    bars_.data.bus = uint64_t{1} << 47;
    bars_.data.bytes = uint64_t{1} << 48;
    EXPECT_FALSE(dma_reaches(bars_.data));
    EXPECT_FALSE(dma_reaches({}));
}

} // namespace

// SPDX-License-Identifier: BSD-3-Clause
// The table of those whose reads and writes a chip lets through, and what comes and goes in it.
#include "chip_fixture.hpp"

#include <cerrno>

namespace
{

using namespace plx::hw;
using namespace test;

TEST_F(ChipTest, ExtraRequestersFollowOurOwn)
{
    without_alut();
    const uint16_t requesters[] = {0x0311, 0x8020}; // 03:02.1 and 80:04.0
    config_.requesters = requesters;
    config_.requester_count = 2;
    open();
    ASSERT_EQ(ntb_.program_all(), 0);
    EXPECT_EQ(chip_.csr[v + 0xD94], 0x05090001u);
    EXPECT_EQ(chip_.csr[v + 0xD98], 0x80210311u);
    EXPECT_EQ(chip_.csr[v + 0xD9C], 0u);
}

// E17: the function number of our reads must not become flags of the table.
TEST_F(ChipTest, FunctionOfOurReadsSetsNoFlags)
{
    open();
    for (uint32_t function = 0; function < 8; function++) {
        chip_.csr[v + 0xC90] = 0x0500 | 9 << 3 | function;
        ASSERT_EQ(ntb_.program_all(), 0);
        EXPECT_EQ(chip_.csr[v + 0xD94], 0x05490001u) << function;
    }
}

class RequesterTest : public ChipTest
{
protected:
    uint16_t given_[1] = {0x0311}; // 03:02.1

    RequesterTest()
    {
        config_.requesters = given_;
        config_.requester_count = 1;
    }
    void start()
    {
        open();
        ASSERT_EQ(ntb_.start(), 0);
        chip_.take();
    }
};

TEST_F(RequesterTest, IsOneRegisterAndLeavesItsNeighbour)
{
    start();
    EXPECT_EQ(ntb_.requester_add(0x4213), 0); // 42:02.3: entry 3, beside the one given
    EXPECT_EQ(chip_.take_writes(), (Log{w(v + 0xD98, 0x42110311)})) << "E17: no function bits";
    EXPECT_EQ(ntb_.requester_add(0x8020), 0);
    EXPECT_EQ(chip_.take_writes(), (Log{w(v + 0xD9C, 0x00008021)}));
    EXPECT_EQ(ntb_.requester_remove(0x4210), 0) << "by bus and device";
    EXPECT_EQ(chip_.take_writes(), (Log{w(v + 0xD98, 0x00000311)}));
    EXPECT_EQ(chip_.csr[v + 0xD9C], 0x00008021u) << "the others keep their places";
    EXPECT_EQ(ntb_.requester_add(0x9008), 0);
    EXPECT_EQ(chip_.take_writes(), (Log{w(v + 0xD98, 0x90090311)}));
}

TEST_F(RequesterTest, SurvivesALinkThatWasLost)
{
    start();
    ASSERT_EQ(ntb_.requester_add(0x4210), 0);
    chip_.csr[v + 0xD94] = chip_.csr[v + 0xD98] = 0;
    ASSERT_EQ(ntb_.program_all(), 0);
    EXPECT_EQ(chip_.csr[v + 0xD94], 0x05090001u);
    EXPECT_EQ(chip_.csr[v + 0xD98], 0x42110311u);
    ASSERT_EQ(ntb_.start(), 0);
    EXPECT_EQ(chip_.csr[v + 0xD98], 0x42110311u);
}

TEST_F(RequesterTest, IsRefusedWhereItIsThereAlready)
{
    start();
    ASSERT_EQ(ntb_.requester_add(0x4210), 0);
    chip_.take();
    for (const uint16_t id :
         std::initializer_list<uint16_t>{0x0000, 0x0007, 0x0508, 0x050F, 0x0310, 0x4210, 0x4217})
        EXPECT_EQ(ntb_.requester_add(id), -EEXIST) << id;
    for (const uint16_t id : std::initializer_list<uint16_t>{0x0000, 0x0508, 0x0310})
        EXPECT_EQ(ntb_.requester_remove(id), -EPERM) << id;
    EXPECT_EQ(ntb_.requester_remove(0x4218), -ENOENT);
    EXPECT_TRUE(chip_.take_writes().empty());
}

TEST_F(RequesterTest, TheTableHasAnEnd)
{
    start();
    for (uint16_t i = 0; i < 29; i++)
        ASSERT_EQ(ntb_.requester_add(static_cast<uint16_t>(0x6000 + i * 8)), 0) << i;
    EXPECT_EQ(ntb_.requester_add(0x7000), -ENOSPC);
    EXPECT_EQ(ntb_.requester(31).id, 0x6000 + 28 * 8);
    EXPECT_EQ(ntb_.requester(0).entry, Chip::Entry::own);
    EXPECT_EQ(ntb_.requester(1).id & 0xFFF8, 0x0508);
    EXPECT_EQ(ntb_.requester(2).entry, Chip::Entry::given);
    ASSERT_EQ(ntb_.requester_remove(0x6008), 0);
    EXPECT_EQ(ntb_.requester(4).entry, Chip::Entry::none);
    EXPECT_EQ(ntb_.requester_add(0x7000), 0);
    EXPECT_EQ(ntb_.requester(4).id, 0x7000);
}

TEST_F(RequesterTest, AChipThatDoesNotAnswer)
{
    start();
    ASSERT_EQ(ntb_.requester_add(0x4210), 0);
    chip_.gone = true;
    EXPECT_EQ(ntb_.requester_add(0x5000), -ENODEV);
    EXPECT_EQ(ntb_.requester_remove(0x4210), -ENODEV);
    EXPECT_EQ(ntb_.requester(3).entry, Chip::Entry::leaving);
    EXPECT_EQ(ntb_.requester_remove(0x4210), -ENODEV) << "as often as it takes";
    EXPECT_TRUE(ntb_.behind_record());
    chip_.gone = false;
    chip_.csr[v + 0xD98] = 0x42110311;
    ASSERT_EQ(ntb_.program_all(), 0);
    EXPECT_FALSE(ntb_.behind_record());
    EXPECT_EQ(chip_.csr[v + 0xD98], 0x00000311u);
    EXPECT_EQ(chip_.csr[v + 0xD9C], 0u) << "what was not entered stays out";
    EXPECT_EQ(ntb_.requester_remove(0x4210), -ENOENT);
    EXPECT_EQ(ntb_.requester_add(0x5000), 0);
}

TEST_F(RequesterTest, OneThatLeavesCanStay)
{
    start();
    ASSERT_EQ(ntb_.requester_add(0x4210), 0);
    chip_.gone = true;
    EXPECT_EQ(ntb_.requester_remove(0x4210), -ENODEV);
    EXPECT_EQ(ntb_.requester_add(0x4210), -ENODEV);
    EXPECT_EQ(ntb_.requester(3).entry, Chip::Entry::leaving);
    chip_.gone = false;
    EXPECT_EQ(ntb_.requester_add(0x4210), 0);
    EXPECT_EQ(chip_.csr[v + 0xD98], 0x42110311u);
}

TEST_F(RequesterTest, GoesWhenTheChipIsLeft)
{
    start();
    ASSERT_EQ(ntb_.requester_add(0x4210), 0);
    ASSERT_EQ(ntb_.shut_down(true), 0);
    EXPECT_EQ(chip_.csr[v + 0xD98], 0x00000311u);
    EXPECT_EQ(ntb_.requester(3).entry, Chip::Entry::none);
}

} // namespace

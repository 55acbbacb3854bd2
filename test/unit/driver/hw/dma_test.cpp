// SPDX-License-Identifier: BSD-3-Clause
// Operations of a DMA channel against a recording border: exact sequences, with offsets and values
// written out.
#include "recording_reg_io.hpp"

#include "hw/dma.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

namespace
{

using namespace plx::hw;
using namespace test;
using testing::ElementsAreArray;

constexpr uint32_t in_progress = 0x40000000;

class DmaTest : public ::testing::Test
{
protected:
    RecordingRegIo dma_;
    DmaChannel channel_;
    Refusal why_;
    DmaRing ring_{0x1234'5678'9000, 64};

    DmaTest()
    {
        dma_.csr[0x000] = 0x87D010B5;
        dma_.csr[0x004] = 0x00100002;
        dma_.csr[0x090] = 0x0000000A;
        dma_.csr[0x22C] = 0x01000010; // as an EEPROM leaves them
        dma_.csr[0x238] = 0x03C20000;
        dma_.csr[0x258] = 0x001D0018;
    }
    void open()
    {
        ASSERT_EQ(channel_.open(dma_.io(), 4, &why_), 0) << why_.what;
        dma_.take();
    }
    void program()
    {
        open();
        ASSERT_EQ(channel_.program(ring_, &why_), 0) << why_.what;
        dma_.take();
    }
    /// The plain storage keeps what was written to CTRL; an engine shows its state there.
    void shows(uint32_t ctrl) { dma_.csr[0x238] = 0x00C20000 | ctrl; }
    Log cleared() const
    {
        return {w(0x200, 0), w(0x204, 0), w(0x208, 0), w(0x20C, 0), w(0x210, 0),
                w(0x214, 0), w(0x218, 0), w(0x220, 0), w(0x21C, 0)};
    }
    /// Everything that program() writes; @p ram: what it makes up for a reset of the function.
    Log programmed(uint32_t bandwidth, const Log &ram = {}) const
    {
        Log log = {w(0x238, 0x80C21700)};
        for (const Access &a : cleared())
            log.push_back(a);
        for (const Access &a : {w(0x23C, 0xFFFF0000), w(0x090, 0x0000001A), w(0x22C, bandwidth),
                                w(0x254, 0x0000003F)})
            log.push_back(a);
        for (const Access &a : ram)
            log.push_back(a);
        for (const Access &a : {w(0x214, 0x56789000), w(0x218, 0x1234), w(0x21C, 0x56789000),
                                w(0x220, 64), w(0x228, 0), w(0x234, 8), w(0x004, 0x6)})
            log.push_back(a);
        return log;
    }
};

TEST_F(DmaTest, OpenWritesNothing)
{
    ASSERT_EQ(channel_.open(dma_.io(), 4, &why_), 0);
    EXPECT_TRUE(dma_.take_writes().empty());
}

TEST_F(DmaTest, OpenRefusesWhatDoesNotAnswer)
{
    dma_.gone = true;
    EXPECT_EQ(channel_.open(dma_.io(), 4, &why_), -ENODEV);
    dma_.gone = false;
    dma_.csr[0x000] = 0;
    EXPECT_EQ(channel_.open(dma_.io(), 4, &why_), -ENODEV);
}

TEST_F(DmaTest, OpenRefusesAnEngineThatStaysInProgress)
{
    dma_.csr[0x238] |= in_progress;
    EXPECT_EQ(channel_.open(dma_.io(), 4, &why_), -EIO);
    EXPECT_NE(std::string(why_.what).find("E9"), std::string::npos);
    EXPECT_EQ(why_.found, 0x43C20000u);
    uint32_t waited = 0;
    for (const Access &a : dma_.take())
        waited += a.kind == Access::delay ? a.value : 0;
    EXPECT_LE(waited, 20'000u);
}

TEST_F(DmaTest, ProgramWritesEverythingThatTheEngineUses)
{
    open();
    ASSERT_EQ(channel_.program(ring_, &why_), 0) << why_.what;
    EXPECT_THAT(dma_.take_writes(), ElementsAreArray(programmed(0x01000010)));
}

TEST_F(DmaTest, ProgramMakesUpForAFunctionLevelReset)
{
    struct Case {
        unsigned channels;
        uint32_t bandwidth; // 128 bytes a write; the clocks between two reads
        uint32_t threshold;
    };
    for (const auto &[channels, bandwidth, threshold] :
         {Case{4, 0x01000010, 0x001D0018}, {2, 0x01000004, 0x003A002E}}) {
        ASSERT_EQ(channel_.open(dma_.io(), channels, &why_), 0);
        dma_.csr[0x090] = 0xA;
        dma_.csr[0x22C] = dma_.csr[0x238] = dma_.csr[0x258] = 0;
        dma_.take();
        ASSERT_EQ(channel_.program(ring_, &why_), 0);
        EXPECT_THAT(dma_.take_writes(), ElementsAreArray(programmed(
                                            bandwidth, {w(0x25C, 0x009800A0), w(0x260, 0x00F80100),
                                                        w(0x2A4, 0x009800A0), w(0x2A8, 0x00F80100),
                                                        w(0x258, threshold)})));
    }
}

TEST_F(DmaTest, ProgramTakesAChannelOverThatWasPausedAndHalted)
{
    open();
    dma_.csr[0x22C] = 0x07010004; // reads halted, writes of 4 bytes
    dma_.csr[0x238] = 0x03C01741;
    dma_.csr[0x23C] = 0x003F803B;
    dma_.csr[0x214] = 0xDEAD0000;
    ASSERT_EQ(channel_.program(ring_, &why_), 0);
    EXPECT_EQ(dma_.csr[0x22C], 0x01000004u);
    EXPECT_EQ(dma_.csr[0x238], 0x80C21700u);
    EXPECT_EQ(dma_.csr[0x23C] & 0xFFFF, 0u);
}

TEST_F(DmaTest, ProgramRefusesRingsThatTheEngineCannotWalk)
{
    open();
    for (const DmaRing &bad :
         {DmaRing{0x1234'0040, 64}, DmaRing{uint64_t{1} << 48, 64}, DmaRing{0x1000, 0}}) {
        EXPECT_EQ(channel_.program(bad, &why_), -EINVAL) << bad.bus;
        EXPECT_TRUE(dma_.take_writes().empty());
    }
}

TEST_F(DmaTest, ProgramRefusesAnEngineThatIsGoneBusyOrDeaf)
{
    open();
    dma_.csr[0x238] |= in_progress;
    EXPECT_EQ(channel_.program(ring_, &why_), -EIO);
    EXPECT_TRUE(dma_.take_writes().empty());
    dma_.csr[0x238] &= ~in_progress;
    dma_.deaf[0x214] = 9;
    EXPECT_EQ(channel_.program(ring_, &why_), -EIO);
    dma_.gone = true;
    EXPECT_EQ(channel_.program(ring_, &why_), -ENODEV);
}

TEST_F(DmaTest, StartIsOneWriteThatKeepsTheTuning)
{
    program();
    channel_.start();
    EXPECT_THAT(dma_.take(), ElementsAreArray(Log{w(0x238, 0x80C2174C)}));
}

TEST_F(DmaTest, StatusTellsAGoneChannelFromABusyOne)
{
    program();
    dma_.csr[0x224] = 0x56789040;
    EXPECT_EQ(channel_.status().last, 0x56789040u);
    EXPECT_FALSE(channel_.status().in_progress);
    dma_.csr[0x238] |= in_progress;
    EXPECT_TRUE(channel_.status().in_progress);
    dma_.gone = true;
    EXPECT_FALSE(channel_.status().answers);
    EXPECT_FALSE(channel_.status().in_progress);
}

TEST_F(DmaTest, AnIdleChannelComesToRestAtOnce)
{
    program();
    EXPECT_EQ(channel_.rest(0), DmaChannel::Rest::at_rest);
    Log expected = {w(0x004, 0x2)};
    for (const Access &a : cleared())
        expected.push_back(a);
    expected.push_back(w(0x238, 0x80C21700));
    EXPECT_THAT(dma_.take_writes(), ElementsAreArray(expected));
    EXPECT_EQ(channel_.program(ring_, &why_), 0) << "and can be used again";
}

TEST_F(DmaTest, RestAsksMoreAndMoreFirmlyAndCutsTheEngineOff)
{
    program();
    shows(in_progress);
    struct Want {
        uint64_t now_us;
        Log writes;
    };
    const Want steps[] = {{100, {w(0x238, 0x80C21745)}},
                          {5099, {}},
                          {5100, {w(0x238, 0x80C21745), w(0x22C, 0x01010010)}},
                          {10099, {}},
                          {10100, {w(0x238, 0x80C21746)}},
                          {15099, {}}};
    for (const Want &step : steps) {
        EXPECT_EQ(channel_.rest(step.now_us), DmaChannel::Rest::moving) << step.now_us;
        EXPECT_THAT(dma_.take_writes(), ElementsAreArray(step.writes)) << step.now_us;
        shows(in_progress);
    }
    EXPECT_EQ(channel_.rest(15100), DmaChannel::Rest::cut_off);
    EXPECT_EQ(dma_.csr[0x004] & 4, 0u) << "bus mastering is off";
    EXPECT_EQ(dma_.csr[0x220], 0u);
    dma_.take();
    EXPECT_EQ(channel_.rest(15200), DmaChannel::Rest::cut_off) << "and stays so";
    EXPECT_TRUE(dma_.take().empty());
    EXPECT_EQ(channel_.program(ring_, &why_), -EIO) << "never used again";
    shows(0);
    EXPECT_EQ(channel_.program(ring_, &why_), -EIO);
}

TEST_F(DmaTest, APausedEngineThatStaysInProgressIsAborted)
{
    program();
    shows(in_progress);
    EXPECT_EQ(channel_.rest(0), DmaChannel::Rest::moving);
    shows(in_progress | 0x200); // paused, SDK's way
    EXPECT_EQ(channel_.rest(1), DmaChannel::Rest::moving);
    EXPECT_EQ(dma_.take_writes().back(), w(0x238, 0x80C21746));
    shows(in_progress);
    EXPECT_EQ(channel_.rest(2), DmaChannel::Rest::moving);
    shows(in_progress | 0x400); // abort done
    EXPECT_EQ(channel_.rest(3), DmaChannel::Rest::at_rest);
    shows(0);
    EXPECT_EQ(channel_.program(ring_, &why_), 0) << why_.what;
}

TEST_F(DmaTest, AChannelThatVanishesIsGone)
{
    program();
    dma_.gone = true;
    EXPECT_EQ(channel_.rest(0), DmaChannel::Rest::gone);
    dma_.gone = false;
    EXPECT_EQ(channel_.program(ring_, &why_), -EIO) << "what came back may be at work";
    shows(in_progress);
    EXPECT_EQ(channel_.rest(0), DmaChannel::Rest::moving);
    EXPECT_EQ(channel_.program(ring_, &why_), -EIO);
    shows(0);
    EXPECT_EQ(channel_.rest(1), DmaChannel::Rest::at_rest);
    EXPECT_EQ(channel_.program(ring_, &why_), 0) << why_.what;
}

// ---- how channels are shared out

class DmaSharesTest : public ::testing::Test
{
protected:
    test::RecordingRegIo chip_;
    Identity id_;

    DmaSharesTest()
    {
        id_.family = plx::facts::Family::draco2;
        id_.upstream_port = 0;
        id_.nt_port = 8;
        chip_.csr[0x21000] = 0x87D010B5;
    }
    void expect(unsigned shown, unsigned own)
    {
        const DmaShares shares = dma_shares(chip_.io(), id_);
        EXPECT_EQ(shares.shown, shown);
        EXPECT_EQ(shares.own, own);
    }
};

TEST_F(DmaSharesTest, AsTheProductsEepromsHaveIt)
{
    chip_.csr[0x211FC] = 0x00080009; // four: ports 9, 0, 8, 0
    expect(4, 2);
    id_.side = plx::facts::Side::link;
    expect(4, 1);
    id_.nt_port = 9;
    expect(4, 1);
    chip_.csr[0x211F8] = 2;
    chip_.csr[0x211FC] = 0x01010000; // two: ports 0 and 1
    id_.nt_port = 1;
    expect(2, 1);
    id_.side = plx::facts::Side::virt;
    expect(2, 1);
    chip_.csr[0x211FC] = 0;
    expect(2, 2);
    id_.side = plx::facts::Side::link;
    expect(2, 0);
}

TEST_F(DmaSharesTest, AChipThatDoesNotSay)
{
    chip_.csr[0x21000] = 0;
    expect(0, 0);
    chip_.csr[0x21000] = ~0u;
    expect(0, 0);
    chip_.csr[0x21000] = 0x87D010B5;
    id_.family = plx::facts::Family::scout;
    expect(0, 0);
    EXPECT_TRUE(chip_.take_writes().empty());
}

} // namespace

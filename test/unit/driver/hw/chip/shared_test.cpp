// SPDX-License-Identifier: BSD-3-Clause
// Chip operations where two hosts share one chip, from either side: exact sequences, with offsets
// written out. And how the virtual side distinguishes that from chips back to back.
#include "../draco2_fixture.hpp"

#include "hw/chip.hpp"

#include <cerrno>
#include <string>

namespace
{

using namespace plx::hw;
using plx::facts::Side;
using namespace test;

constexpr uint64_t mib = uint64_t{1} << 20;
constexpr uint64_t gib = uint64_t{1} << 30;

/// What differs between the sides.
struct Place {
    const char *name;
    Side side;
    uint32_t own, far; ///< blocks
    uint32_t lut;      ///< in the own block
    uint32_t far_setup;
    uint32_t array; ///< A-LUT of what comes to us: all of it for one port
    uint32_t shared_array;
    uint32_t set, clear, mask, unmask; ///< own doorbells
    uint32_t peer_set;
    uint32_t first_spad, first_pattern;
    uint32_t peer_spad, peer_pattern;
};
constexpr Place places[] = {
    {"virtual_side", Side::virt, 0x3E000, 0x3F000, 0xD94, 0xE8, 0x3A000, 0x39000, 0xC4C, 0xC50,
     0xC54, 0xC58, 0xC5C, 0xC6C, 0x20C, 0xC7C, 0x214},
    {"link_side", Side::link, 0x3F000, 0x3E000, 0xDB4, 0xD4, 0x38000, 0x38000, 0xC5C, 0xC60, 0xC64,
     0xC68, 0xC4C, 0xC7C, 0x214, 0xC6C, 0x20C},
};

class SharedChip : public Draco2, public testing::WithParamInterface<Place>
{
protected:
    const Place p_ = GetParam();
    Chip ntb_;
    Refusal why_;
    ChipConfig config_;

    SharedChip()
    {
        if (p_.side == Side::link) {
            chip_.config[0x00] = chip_.csr[l] = 0x87A010B5;
            chip_.config[0xC8C] = 0x80000000;
            chip_.csr[l + 0xC90] = 0x050E;
        }
        far_bars(gib, 4 * mib);
        config_.topology = Topology::root_port;
        config_.bar2_bytes = 64 * mib; // ours: of no account for what the peer sees
    }
    void far_bars(uint64_t bar2, uint64_t bar4)
    {
        const uint64_t setup[] = {~(bar2 - 1) | 0xC, ~(bar4 - 1) | 0xC};
        for (uint32_t i = 0; i < 2; i++) {
            chip_.csr[p_.far + p_.far_setup + 8 * i] = static_cast<uint32_t>(setup[i]);
            chip_.csr[p_.far + p_.far_setup + 8 * i + 4] = static_cast<uint32_t>(setup[i] >> 32);
        }
    }
    void open()
    {
        ASSERT_EQ(ntb_.open(chip_.io(), config_, &why_), 0) << why_.what;
        chip_.take();
    }
    bool virtual_side() const { return p_.side == Side::virt; }
    Log closed(unsigned window) const
    {
        const uint32_t xlat = p_.far + 0xC3C + 8 * window;
        return {w(xlat, ~0u), w(xlat + 4, ~0u)};
    }
    Log denied() const
    {
        Log log;
        for (uint32_t i = 0; i < 256; i++)
            log.push_back(w(p_.array + i / 128 * 0x1000 + 0x800 + i % 128 * 4, 0));
        log.push_back(w(p_.own + 0xC94, 0x10000000));
        return log;
    }
    Log lut() const
    {
        Log log;
        for (uint32_t k = 0; k < 16; k++)
            log.push_back(w(p_.own + p_.lut + 4 * k, k == 0 ? 0x05090001 : 0));
        return log;
    }
};

TEST_P(SharedChip, BringUpSequence)
{
    without_alut();
    open();
    EXPECT_TRUE(ntb_.shared());
    ASSERT_EQ(ntb_.start(), 0);
    Log expected;
    if (virtual_side())
        expected.push_back(w(p_.own + 0xFE4, 0xF));
    expected.push_back(w(p_.own + p_.mask, 0xFFFF));
    append(expected, closed(0));
    append(expected, closed(1));
    expected.push_back(w(p_.own + p_.clear, 0xFFFF));
    if (virtual_side())
        expected.push_back(w(p_.own + 0xFE0, 0xF));
    expected.push_back(w(p_.first_pattern, 0x12345678));
    for (uint32_t i = 0; i < 4; i++)
        expected.push_back(w(p_.own + p_.first_spad + 4 * i, 0));
    for (uint32_t i = 0; i < 2; i++)
        expected.push_back(w(p_.first_pattern + 4 * i, 0));
    if (virtual_side())
        expected.push_back(w(0xA30, 0x10));
    append(expected, lut());
    append(expected, closed(0));
    append(expected, closed(1));
    expected.push_back({Access::config_write, 0x04, 0x6});
    EXPECT_EQ(chip_.take_writes(), expected);
}

TEST_P(SharedChip, WindowsHaveTheSizesOfTheFarBlock)
{
    open();
    EXPECT_EQ(ntb_.window_rules(Chip::data_window).bytes_max, gib);
    EXPECT_EQ(ntb_.window_rules(Chip::data_window).bytes_min, gib);
    EXPECT_EQ(ntb_.window_rules(Chip::data_window).segment(1), 4 * mib);
    EXPECT_EQ(ntb_.window_rules(Chip::shared_window).bytes_max, 4 * mib);
    EXPECT_EQ(ntb_.outbound_offset(Chip::shared_window), 0u);
}

TEST_P(SharedChip, AFarBar2ThatCannotServeIsRefused)
{
    const uint32_t setup = p_.far + p_.far_setup;
    const std::pair<uint32_t, uint32_t> bad[] = {
        {0, 0}, {0xC, 0}, {0xC0000008, 0}, {0xC000000C, 0x7FFFFFFF}};
    for (const auto &[lower, upper] : bad) {
        chip_.csr[setup] = lower;
        chip_.csr[setup + 4] = upper;
        EXPECT_EQ(ntb_.open(chip_.io(), config_, &why_), -ENOTSUP) << lower;
        EXPECT_STRNE(why_.what, "");
        EXPECT_EQ(ntb_.shut_down(false), 0) << "and is not touched";
    }
    EXPECT_TRUE(chip_.take_writes().empty());
}

TEST_P(SharedChip, AFarBar4MayBeMissing)
{
    const uint32_t setup = p_.far + p_.far_setup;
    chip_.csr[setup + 8] = chip_.csr[setup + 12] = 0;
    open();
    const Piece piece = {0x40000000, mib};
    EXPECT_EQ(ntb_.window_set(Chip::shared_window, &piece, 1, rights_all, &why_), -EINVAL);
    EXPECT_EQ(ntb_.window_set(Chip::data_window, &piece, 0, rights_all, &why_), 0);
}

TEST_P(SharedChip, AlutSequence)
{
    open();
    const Piece pieces[] = {{0x80000000, 4 * mib}, {0x1'40000000, 8 * mib}};
    ASSERT_EQ(ntb_.window_set(Chip::data_window, pieces, 2, rights_all, &why_), 0) << why_.what;
    const Log writes = chip_.take_writes();
    Log expected = closed(0);
    append(expected, denied());
    append(expected, closed(0)); // translation is not asked
    const uint64_t shown[] = {0x80000000, 0x1'40000000, 0x1'40400000};
    for (uint32_t i = 0; i < 256; i++) {
        const uint32_t at = p_.array + i / 128 * 0x1000 + i % 128 * 4;
        const uint64_t address = i < 3 ? shown[i] : 0;
        expected.push_back(w(at + 0x400, static_cast<uint32_t>(address >> 32)));
        expected.push_back(w(at, static_cast<uint32_t>(address)));
    }
    expected.push_back(w(p_.own + 0xC94, 0x10000000));
    for (uint32_t i = 0; i < 256; i++)
        expected.push_back(w(p_.array + i / 128 * 0x1000 + 0x800 + i % 128 * 4, i < 3 ? 3 : 0));
    EXPECT_EQ(writes, expected);
    EXPECT_EQ(ntb_.segment_bytes(), 4 * mib);
}

TEST_P(SharedChip, AnAlutThatIsSharedOutToo)
{
    chip_.csr[0x360] = 0xC0002100;
    open();
    const Piece piece = {0x80000000, 8 * mib};
    ASSERT_EQ(ntb_.window_set(Chip::data_window, &piece, 1, rights_write, &why_), 0) << why_.what;
    EXPECT_EQ(chip_.csr[p_.shared_array], 0x80000000u);
    EXPECT_EQ(chip_.csr[p_.shared_array + 0x800], 1u);
    EXPECT_EQ(chip_.csr[p_.shared_array + 0x804], 0u);
}

TEST_P(SharedChip, BaseAndOffsetShowAWholeBar)
{
    without_alut();
    open();
    Piece piece = {2 * gib, mib};
    EXPECT_EQ(ntb_.window_set(Chip::data_window, &piece, 1, rights_all, &why_), -EINVAL);
    EXPECT_EQ(why_.expected, gib);
    EXPECT_TRUE(chip_.take_writes().empty());
    piece.bytes = gib;
    ASSERT_EQ(ntb_.window_set(Chip::data_window, &piece, 1, rights_all, &why_), 0) << why_.what;
    Log expected = closed(0);
    append(expected, {w(p_.far + 0xC3C, 0x80000000), w(p_.far + 0xC40, 0)});
    EXPECT_EQ(chip_.take_writes(), expected);
    ASSERT_EQ(ntb_.window_clear(Chip::data_window), 0);
    EXPECT_EQ(chip_.take_writes(), closed(0));
}

TEST_P(SharedChip, OnlyTheTranslationOfTheFarBlockIsEverWrittenThere)
{
    open();
    ASSERT_EQ(ntb_.start(), 0);
    const Piece piece = {0x80000000, 64 * mib};
    ASSERT_EQ(ntb_.window_set(Chip::data_window, &piece, 1, rights_all, &why_), 0);
    ASSERT_EQ(ntb_.program_all(), 0);
    ASSERT_EQ(ntb_.shut_down(false), 0);
    for (const Access &a : chip_.take_writes())
        if (a.kind == Access::write && a.offset >= p_.far && a.offset < p_.far + 0x1000) {
            EXPECT_GE(a.offset - p_.far, 0xC3Cu) << a;
            EXPECT_LE(a.offset - p_.far, 0xC48u) << a;
        }
}

TEST_P(SharedChip, DoorbellsAreTheOwnSidesAndThePeersInTheOwnBlock)
{
    open();
    test::RecordingRegIo elsewhere;
    ntb_.ring(elsewhere.io(), 0x0102);
    EXPECT_TRUE(elsewhere.take().empty());
    EXPECT_EQ(chip_.take(), Log{w(p_.own + p_.peer_set, 0x0102)});
    chip_.csr[p_.own + p_.clear] = 0xFFFF0081;
    EXPECT_EQ(ntb_.doorbells(), 0x0081);
    chip_.take();
    ntb_.doorbells_clear(0x0001);
    ntb_.doorbells_mask(0x00F0);
    ntb_.doorbells_unmask(0x0F00);
    EXPECT_EQ(chip_.take(), (Log{w(p_.own + p_.clear, 0x0001), w(p_.own + p_.mask, 0x00F0),
                                 w(p_.own + p_.unmask, 0x0F00)}));
}

TEST_P(SharedChip, FourScratchpadsASideAndTwoPatterns)
{
    open();
    ASSERT_EQ(ntb_.start(), 0);
    EXPECT_EQ(ntb_.spad_count(), 6u);
    test::RecordingRegIo elsewhere;
    for (uint32_t i = 0; i < 6; i++) {
        ASSERT_EQ(ntb_.spad_write(i, 0x100 + i), 0);
        ASSERT_EQ(ntb_.peer_spad_write(elsewhere.io(), i, 0x200 + i), 0);
    }
    EXPECT_TRUE(elsewhere.take().empty());
    for (uint32_t i = 0; i < 6; i++) {
        const uint32_t own =
            i < 4 ? p_.own + p_.first_spad + 4 * i : p_.first_pattern + 4 * (i - 4);
        const uint32_t peer = i < 4 ? p_.own + p_.peer_spad + 4 * i : p_.peer_pattern + 4 * (i - 4);
        EXPECT_EQ(chip_.csr[own], 0x100 + i);
        EXPECT_EQ(chip_.csr[peer], 0x200 + i);
        uint32_t value = 0;
        ASSERT_EQ(ntb_.spad_read(i, &value), 0);
        EXPECT_EQ(value, 0x100 + i);
    }
    EXPECT_EQ(ntb_.spad_write(6, 0), -EINVAL);
    EXPECT_EQ(ntb_.peer_spad_write(elsewhere.io(), 6, 0), -EINVAL);
}

TEST_P(SharedChip, FourWhereThePatternKeepsNothing)
{
    chip_.deaf[p_.first_pattern] = ~0u;
    open();
    ASSERT_EQ(ntb_.start(), 0);
    EXPECT_EQ(ntb_.spad_count(), 4u);
    EXPECT_EQ(ntb_.spad_write(4, 1), -EINVAL);
}

TEST_P(SharedChip, RegistersCannotBeClosedToThePeer)
{
    open();
    EXPECT_EQ(ntb_.set_peer_csr(false), -ENOTSUP);
    EXPECT_TRUE(chip_.take_writes().empty());
}

// E28
TEST_P(SharedChip, OnlyTheVirtualSideControlsTheLink)
{
    open();
    ASSERT_EQ(ntb_.link_enable(), 0);
    EXPECT_EQ(chip_.take_writes(), virtual_side() ? Log{w(0x208, 0)} : Log{});
    ASSERT_EQ(ntb_.shut_down(false), 0);
    EXPECT_EQ(chip_.csr[0x208], virtual_side() ? 0x2u : 0u);
}

TEST_P(SharedChip, LinkStatusIsReadInTheOwnBlock)
{
    open();
    chip_.csr[p_.own + 0x78] = 0x00830000;
    LinkStatus status;
    ASSERT_EQ(ntb_.link_status(&status), 0);
    EXPECT_TRUE(status.up);
    EXPECT_EQ(status.width, 8u);
    EXPECT_EQ(status.speed, 3u);
}

TEST_P(SharedChip, AChipThatIsGoneIsReportedByEveryOperation)
{
    open();
    ASSERT_EQ(ntb_.start(), 0);
    chip_.gone = true;
    for (const uint32_t nothing : {~0u, 0u}) {
        chip_.nothing = nothing;
        LinkStatus status;
        uint32_t errors = 0;
        EXPECT_EQ(ntb_.program_all(), -ENODEV);
        EXPECT_EQ(ntb_.window_clear(Chip::data_window), -ENODEV);
        EXPECT_EQ(ntb_.link_status(&status), -ENODEV);
        EXPECT_EQ(ntb_.link_errors_take(&errors), -ENODEV);
        EXPECT_EQ(ntb_.link_enable(), -ENODEV);
    }
}

INSTANTIATE_TEST_SUITE_P(Sides, SharedChip, testing::ValuesIn(places),
                         [](const auto &i) { return std::string(i.param.name); });

class LinkSide : public SharedChip
{
};

// FE0 is the virtual side's; what a link loss did to our table is seen.
TEST_P(LinkSide, AWipedTableIsALinkChange)
{
    open();
    ASSERT_EQ(ntb_.start(), 0);
    uint32_t errors = ~0u;
    ASSERT_EQ(ntb_.link_errors_take(&errors), 0);
    EXPECT_EQ(errors, 0u);
    for (const uint32_t wiped : {0x1u, 0u}) { // from an EEPROM, and without
        chip_.csr[l + 0xDB4] = wiped;
        ASSERT_EQ(ntb_.link_errors_take(&errors), 0);
        EXPECT_EQ(errors, 4u);
        ASSERT_EQ(ntb_.program_all(), 0);
        ASSERT_EQ(ntb_.link_errors_take(&errors), 0);
        EXPECT_EQ(errors, 0u);
    }
}

TEST_P(LinkSide, BackToBackIsNotDrivenFromThere)
{
    config_.topology = Topology::back_to_back;
    EXPECT_EQ(ntb_.open(chip_.io(), config_, &why_), -ENOTSUP);
}

TEST_P(LinkSide, IsSharedWithoutBeingAskedTo)
{
    config_.topology = Topology::automatic;
    open();
    EXPECT_TRUE(ntb_.shared());
}

INSTANTIATE_TEST_SUITE_P(Sides, LinkSide, testing::Values(places[1]),
                         [](const auto &i) { return std::string(i.param.name); });

// ---- which topology, from the virtual side

class Detection : public SharedChip
{
protected:
    Detection()
    {
        config_.topology = Topology::automatic;
        config_.bar4_bytes = 4 * mib;
    }
    bool shared()
    {
        EXPECT_EQ(ntb_.open(chip_.io(), config_, &why_), 0) << why_.what;
        EXPECT_TRUE(chip_.take_writes().empty());
        return ntb_.shared();
    }
};

TEST_P(Detection, TheLinkSideIsNotEnumerated)
{
    EXPECT_FALSE(shared());
    chip_.csr[l + 0x18] = 0xC;
    chip_.csr[l + 0x3C] = 0xFF;
    EXPECT_FALSE(shared());
}

TEST_P(Detection, ItHoldsWhatABackToBackDriverPlanned)
{
    Chip before;
    config_.topology = Topology::back_to_back;
    ASSERT_EQ(before.open(chip_.io(), config_, &why_), 0);
    ASSERT_EQ(before.program_all(), 0);
    const Piece piece = {0x80000000, 64 * mib};
    ASSERT_EQ(before.window_set(Chip::data_window, &piece, 1, rights_all, &why_), 0);
    chip_.take();
    chip_.csr[l + 0x18] |= 0xC; // type bits read back
    config_.topology = Topology::automatic;
    EXPECT_FALSE(shared());
    chip_.csr[l + 0x10] = 0x10000000; // the SDK's samples
    chip_.csr[l + 0x14] = 0;
    chip_.csr[l + 0x18] = 0x20000000;
    chip_.csr[l + 0x1C] = 0;
    EXPECT_FALSE(shared());
}

TEST_P(Detection, SomebodyHasEnumeratedIt)
{
    chip_.csr[l + 0x10] = 0xFB000000;
    EXPECT_TRUE(shared());
    chip_.csr[l + 0x10] = 0;
    chip_.csr[l + 0x18] = 0x4000000C;
    chip_.csr[l + 0x1C] = 0x00000038;
    EXPECT_TRUE(shared());
    chip_.csr[l + 0x18] = chip_.csr[l + 0x1C] = 0;
    chip_.csr[l + 0x3C] = 0x010B;
    EXPECT_TRUE(shared());
}

INSTANTIATE_TEST_SUITE_P(Sides, Detection, testing::Values(places[0]),
                         [](const auto &i) { return std::string(i.param.name); });

} // namespace

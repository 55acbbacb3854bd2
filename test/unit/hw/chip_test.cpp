// SPDX-License-Identifier: BSD-3-Clause
// Chip operations against a recording border: exact sequences, with offsets written out.
#include "draco2_fixture.hpp"

#include "plx_chip.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cerrno>
#include <string>

namespace
{

using namespace plx::hw;
using test::Access;
using Log = std::vector<Access>;

constexpr uint64_t mib = uint64_t{1} << 20;

Access w(uint32_t offset, uint32_t value)
{
    return {Access::write, offset, value};
}
void append(Log &to, const Log &more)
{
    to.insert(to.end(), more.begin(), more.end());
}

class ChipTest : public test::Draco2
{
protected:
    Chip ntb_;
    Refusal why_;
    ChipConfig config_;

    ChipTest()
    {
        config_.topology = Topology::back_to_back;
        config_.bar2_bytes = 512 * mib;
        config_.bar4_bytes = 4 * mib;
    }
    void open()
    {
        ASSERT_EQ(ntb_.open(chip_.io(), config_, &why_), 0) << why_.what;
        chip_.take();
    }
    int set(unsigned window, std::vector<Piece> pieces, uint32_t rights = rights_all)
    {
        return ntb_.window_set(window, pieces.data(), static_cast<unsigned>(pieces.size()), rights,
                               &why_);
    }
    Log denied(uint32_t array, unsigned entries) const
    {
        Log log;
        for (uint32_t i = 0; i < entries; i++)
            log.push_back(w(array + i / 128 * 0x1000 + 0x800 + i % 128 * 4, 0));
        return log;
    }
    // Requester-ID tables: the link side as a peer without a bus number comes, ours as given.
    Log luts(uint32_t first, uint32_t second) const
    {
        Log log;
        for (uint32_t k = 0; k < 16; k++)
            log.push_back(w(l + 0xDB4 + 4 * k, 0x00010001 | (2 * k + 1) << 19 | 2 * k << 3));
        for (uint32_t k = 0; k < 16; k++)
            log.push_back(w(v + 0xD94 + 4 * k, k == 0 ? first : k == 1 ? second : 0));
        return log;
    }
    // Up to the windows.
    Log prologue(uint32_t second_requesters = 0) const
    {
        Log log = {w(0xA30, 0x10),          w(l + 0xE4, 3),          w(l + 0x10, 4),
                   w(l + 0x14, 0x80000000), w(v + 0xC3C, 0),         w(v + 0xC40, 0x40000000),
                   w(v + 0xC44, 0),         w(v + 0xC48, 0x80000000)};
        if (ntb_.identity().alut_entries != 0)
            log.push_back(w(l + 0xC94, 0));
        append(log, luts(0x05090001, second_requesters));
        return log;
    }
    const Log closed_shared_ = {w(l + 0xF4, 0), w(l + 0xF0, 0xC)};
    const Log closed_data_ = {w(l + 0xEC, 0), w(l + 0xE8, 0xC)};
    const Log commands_ = {{Access::config_write, 0x04, 0x6}, w(l + 0x04, 6)};
};

// ---- opening

TEST_F(ChipTest, OpenWritesNothing)
{
    ASSERT_EQ(ntb_.open(chip_.io(), config_, &why_), 0);
    EXPECT_TRUE(chip_.take_writes().empty());
}

TEST_F(ChipTest, OpenRefusesTheLinkSide)
{
    chip_.config[0xC8C] = 0x80000000;
    chip_.csr[l] = 0x87B010B5;
    EXPECT_EQ(ntb_.open(chip_.io(), config_, &why_), -ENOTSUP);
}

TEST_F(ChipTest, OpenRefusesLayoutsThatCannotWork)
{
    const std::pair<uint64_t, uint64_t> bad[] = {{0, 4 * mib},
                                                 {mib / 2, 4 * mib},
                                                 {3 * mib, 4 * mib},
                                                 {512 * mib, 0},
                                                 {512 * mib, mib},
                                                 {512 * mib, 6 * mib},
                                                 {uint64_t{1} << 62, 4 * mib},
                                                 {512 * mib, uint64_t{1} << 63}};
    for (const auto &[bar2, bar4] : bad) {
        config_.bar2_bytes = bar2;
        config_.bar4_bytes = bar4;
        EXPECT_EQ(ntb_.open(chip_.io(), config_, &why_), -EINVAL) << bar2 << " " << bar4;
        EXPECT_STRNE(why_.what, "");
    }
}

TEST_F(ChipTest, OpenBoundsTheRequesters)
{
    const uint16_t many[31] = {};
    config_.requesters = many;
    config_.requester_count = 31;
    EXPECT_EQ(ntb_.open(chip_.io(), config_, &why_), -EINVAL);
    EXPECT_EQ(why_.expected, 30u);
    config_.requester_count = 30;
    EXPECT_EQ(ntb_.open(chip_.io(), config_, &why_), 0);
}

// ---- bring-up

TEST_F(ChipTest, BringUpSequence)
{
    without_alut();
    open();
    ASSERT_EQ(ntb_.start(), 0);

    Log expected = {w(v + 0xFE4, 0xF), w(v + 0xC54, 0xFFFF), w(v + 0xC64, 0xFFFF)};
    append(expected, closed_data_);
    append(expected, closed_shared_);
    append(expected, {w(v + 0xC50, 0xFFFF), w(v + 0xC60, 0xFFFF), w(v + 0xFE0, 0xF)});
    expected.push_back(w(0x20C, 0x12345678));
    for (uint32_t i = 0; i < 8; i++)
        expected.push_back(w(v + 0xC6C + 4 * i, 0));
    for (uint32_t i = 0; i < 4; i++)
        expected.push_back(w(0x20C + 4 * i, 0));
    append(expected, prologue());
    append(expected, closed_data_);
    append(expected, closed_shared_);
    append(expected, commands_);
    EXPECT_EQ(chip_.take_writes(), expected);
}

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

// ---- requesters that come and go

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
    chip_.gone = false;
    chip_.csr[v + 0xD98] = 0x42110311;
    ASSERT_EQ(ntb_.program_all(), 0);
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

TEST_F(ChipTest, HoldingTheLinkSideIsAChoice)
{
    chip_.csr[0xA30] = 0x03000018;
    config_.hold_link_side = false;
    open();
    ASSERT_EQ(ntb_.program_all(), 0);
    EXPECT_EQ(chip_.csr[0xA30], 0x03000008u);
}

TEST_F(ChipTest, LinkSideIsSwitchedOnLast)
{
    open();
    ASSERT_EQ(ntb_.program_all(), 0);
    const Log writes = chip_.take_writes();
    EXPECT_EQ(writes.back(), w(l + 0x04, 6));
}

TEST_F(ChipTest, CommandWriteClearsNoStatus)
{
    chip_.config[0x04] = 0xF9000140;
    open();
    ASSERT_EQ(ntb_.program_all(), 0);
    EXPECT_EQ(chip_.config[0x04], 0x146u);
}

TEST_F(ChipTest, SecondPortUsesItsOwnBlocks)
{
    chip_.csr[0x360] = 0xC0292800;
    chip_.config[0xC8C] = 1;
    chip_.csr[0x3C000] = 0x87B010B5;
    chip_.csr[0x3CC8C] = 1;
    open();
    ASSERT_EQ(ntb_.start(), 0);
    for (const Access &a : chip_.take_writes()) {
        const bool nt0 = a.offset >= 0x3E000 || (a.offset >= 0x38000 && a.offset < 0x3A000);
        EXPECT_FALSE(a.kind == Access::write && nt0) << a;
    }
    EXPECT_EQ(chip_.csr[0x3D004], 6u);
}

// ---- link loss (E3)

TEST_F(ChipTest, RecordIsPutBackAfterALinkLoss)
{
    open();
    ASSERT_EQ(ntb_.start(), 0);
    ASSERT_EQ(set(0, {{0x7F0000000000, 16 * mib}}), 0);
    ASSERT_EQ(set(1, {{0x200000, 2 * mib}}), 0);
    chip_.take();
    ASSERT_EQ(ntb_.program_all(), 0);
    const auto before = chip_.csr;
    const Log once = chip_.take_writes();

    for (uint32_t offset = l; offset < l + 0x1000; offset += 4)
        chip_.csr[offset] = 0xC000000C;
    ASSERT_EQ(ntb_.program_all(), 0);
    EXPECT_EQ(chip_.take_writes(), once);
    for (const Access &a : once)
        if (a.kind == Access::write) {
            EXPECT_EQ(chip_.csr[a.offset], before.at(a.offset)) << a;
        }
}

TEST_F(ChipTest, RepeatedProgrammingTakesNoAccessAwayInBetween)
{
    open();
    ASSERT_EQ(set(0, {{0x7F0000100000, 16 * mib}}), 0); // through the A-LUT
    chip_.take();
    const auto before = chip_.csr;
    ASSERT_EQ(ntb_.program_all(), 0);
    for (const Access &a : chip_.take_writes()) {
        const bool of_window = a.offset >= 0x3A000 && a.offset < 0x3C000;
        if (of_window || a.offset == l + 0xE8 || a.offset == l + 0xEC || a.offset == v + 0xC94) {
            EXPECT_EQ(a.value, before.at(a.offset)) << a;
        }
    }
}

// ---- windows

TEST_F(ChipTest, PlainWindowSequence)
{
    without_alut();
    open();
    ASSERT_EQ(set(0, {{0x7F1234000000, 32 * mib}}), 0);
    Log expected = closed_data_;
    append(expected, {w(l + 0xC3C, 0x34000000), w(l + 0xC40, 0x7F12), w(l + 0xE8, 0xFE00000C),
                      w(l + 0xEC, 0xFFFFFFFF), w(l + 0x18, 0), w(l + 0x1C, 0x40000000)});
    EXPECT_EQ(chip_.take_writes(), expected);
}

TEST_F(ChipTest, SharedWindowLiesInTheSecondHalf)
{
    open();
    ASSERT_EQ(set(1, {{0x40200000, 2 * mib}}), 0);
    Log expected = closed_shared_;
    append(expected, {w(l + 0xC44, 0x40200000), w(l + 0xC48, 0), w(l + 0xF0, 0xFFE0000C),
                      w(l + 0xF4, 0xFFFFFFFF), w(l + 0x20, 0x200000), w(l + 0x24, 0x80000000)});
    EXPECT_EQ(chip_.take_writes(), expected);
    EXPECT_EQ(ntb_.outbound_offset(1), 2 * mib);
    EXPECT_EQ(ntb_.outbound_offset(0), 0u);
}

TEST_F(ChipTest, AlutSequence)
{
    open();
    // Two pieces, 1 MiB each: 2 MiB in 256 segments of 8 KiB.
    ASSERT_EQ(set(0, {{0x100002000, mib}, {0x5000, 0}, {0x200004000, mib}}), -EINVAL);
    ASSERT_EQ(set(0, {{0x100002000, mib}, {0x200004000, mib}}), 0);
    const Log all = chip_.take();

    Log expected = closed_data_;
    append(expected, denied(0x3A000, 256));
    expected.push_back(w(v + 0xC94, 1u << 28));
    expected.push_back({Access::read, v, 0x87B010B5});
    append(expected, {w(l + 0xC3C, ~0u), w(l + 0xC40, ~0u)});
    for (uint32_t i = 0; i < 256; i++) {
        const uint32_t entry = 0x3A000 + i / 128 * 0x1000 + i % 128 * 4;
        expected.push_back(w(entry + 0x400, i < 128 ? 1 : 2));
        expected.push_back(w(entry, (i < 128 ? 0x2000 : 0x4000) + i % 128 * 0x2000));
    }
    expected.push_back({Access::read, v, 0x87B010B5}); // the barrier: no A-LUT RAM is read
    append(expected, {w(v + 0xC94, 1u << 28), w(l + 0xE8, 0xFFE0000C), w(l + 0xEC, 0xFFFFFFFF),
                      w(l + 0x18, 0), w(l + 0x1C, 0x40000000)});
    for (uint32_t i = 0; i < 256; i++)
        expected.push_back(w(0x3A800 + i / 128 * 0x1000 + i % 128 * 4, 3));
    expected.push_back({Access::read, v, 0x87B010B5});
    EXPECT_EQ(all, expected);
}

TEST_F(ChipTest, SharedAlutHas128EntriesInTheSecondArray)
{
    chip_.csr[0x360] = 0xC0292800;
    open();
    EXPECT_EQ(ntb_.window_rules(0).entries, 128u);
    ASSERT_EQ(set(0, {{0x100002000, mib}}), 0);
    EXPECT_EQ(chip_.csr[0x39000 + 127 * 4], 0x2000u + 127 * 0x2000);
    EXPECT_EQ(chip_.csr[0x39800 + 127 * 4], 3u);
    for (const Access &a : chip_.take_writes())
        EXPECT_FALSE(a.offset >= 0x3A000 && a.offset < 0x3E000) << a;
}

TEST_F(ChipTest, AlutGrantsNoMoreThanWasAsked)
{
    open();
    ASSERT_EQ(set(0, {{0x100000000, 3 * mib}}, plx::facts::field::alut_write.mask()), 0);
    for (uint32_t i = 0; i < 256; i++) // 4 MiB in segments of 16 KiB: the last quarter is nobody's
        EXPECT_EQ(chip_.csr[0x3A800 + i / 128 * 0x1000 + i % 128 * 4], i < 192 ? 1u : 0u) << i;
}

TEST_F(ChipTest, AlignedBlockNeedsNoAlut)
{
    open();
    ASSERT_EQ(set(0, {{0x40000000, 16 * mib}}), 0);
    EXPECT_EQ(chip_.csr[v + 0xC94], 0u);
    EXPECT_EQ(chip_.csr[l + 0xC3C], 0x40000000u);
}

TEST_F(ChipTest, NewWindowReplacesTheOldEntries)
{
    open();
    ASSERT_EQ(set(0, {{0x100002000, 2 * mib}}), 0);
    ASSERT_EQ(set(0, {{0x300000000, 3 * mib}}), 0);
    EXPECT_EQ(chip_.csr[0x3A400], 3u);
    EXPECT_EQ(chip_.csr[0x3B800 + 127 * 4], 0u);
}

// E16, and law: what is taken away is known to be away.
TEST_F(ChipTest, ClearingTheSharedWindowClosesIt)
{
    open();
    ASSERT_EQ(set(1, {{0x40200000, 2 * mib}}), 0);
    chip_.take();
    ASSERT_EQ(set(1, {}), 0);
    Log expected = closed_shared_;
    expected.push_back({Access::read, v, 0x87B010B5});
    EXPECT_EQ(chip_.take(), expected);
    ASSERT_EQ(set(1, {{0x40200000, 2 * mib}}), 0);
    ASSERT_EQ(set(1, {{0x40200000, 0}}), 0);
    EXPECT_EQ(chip_.csr[l + 0xF4], 0u);
}

TEST_F(ChipTest, ClearedAlutWindowIsAskedAndDenied)
{
    open();
    ASSERT_EQ(set(0, {{0x40000000, 16 * mib}}), 0);
    chip_.take();
    ASSERT_EQ(ntb_.window_clear(0), 0);
    Log expected = closed_data_;
    append(expected, denied(0x3A000, 256));
    expected.push_back(w(v + 0xC94, 1u << 28));
    expected.push_back({Access::read, v, 0x87B010B5});
    EXPECT_EQ(chip_.take(), expected);
    ASSERT_EQ(ntb_.program_all(), 0);
    EXPECT_EQ(chip_.csr[l + 0xEC], 0u) << "programming again must not open it";
    EXPECT_EQ(ntb_.window_clear(2), -EINVAL);
}

struct Refused {
    const char *name;
    bool alut;
    unsigned window;
    std::vector<Piece> pieces;
    uint32_t rights;
    uint64_t found;
    uint64_t expected;
};

class RefusedWindow : public ChipTest, public ::testing::WithParamInterface<Refused>
{
};

TEST_P(RefusedWindow, SaysWhatWasExpectedAndTouchesNothing)
{
    const Refused &p = GetParam();
    if (!p.alut)
        without_alut();
    open();
    EXPECT_EQ(set(p.window, p.pieces, p.rights), -EINVAL);
    EXPECT_STRNE(why_.what, "");
    EXPECT_EQ(why_.found, p.found);
    EXPECT_EQ(why_.expected, p.expected);
    EXPECT_TRUE(chip_.take_writes().empty());
}

INSTANTIATE_TEST_SUITE_P(
    Windows, RefusedWindow,
    ::testing::Values(
        Refused{"NoSuchWindow", true, 2, {{0, mib}}, 3, 2, 1},
        Refused{"SizeNoPowerOfTwo", false, 0, {{0, 3 * mib}}, 3, 3 * mib, 4 * mib},
        Refused{"SizeBelowTheGranule", false, 0, {{0, mib / 2}}, 3, mib / 2, mib},
        Refused{"AddressUnaligned", false, 0, {{mib, 2 * mib}}, 3, mib, 2 * mib},
        Refused{"AddressUnalignedByOne", false, 0, {{1, mib}}, 3, 1, mib},
        Refused{"TwoPiecesWithoutAlut", false, 0, {{0, mib}, {mib, mib}}, 3, 2, 1},
        Refused{"RightsWithoutAlut", false, 0, {{0, mib}}, 1, 1, 3},
        Refused{"UnknownRights", true, 0, {{0, mib}}, 4, 4, 3},
        Refused{"LargerThanBar2", true, 0, {{0, 1024 * mib}}, 3, 1024 * mib, 512 * mib},
        Refused{"TogetherLarger", true, 0, {{0, 512 * mib}, {0, 1}}, 3, 1, 0},
        Refused{"LargerThanHalfOfBar4", true, 1, {{0, 4 * mib}}, 3, 4 * mib, 2 * mib},
        Refused{"SharedWindowHasNoAlut", true, 1, {{4096, mib}}, 3, 4096, mib},
        Refused{"SharedWindowOnePiece", true, 1, {{0, mib}, {mib, mib}}, 3, 2, 1},
        Refused{"WrapsAround", true, 0, {{~uint64_t{0} - 4095, mib}}, 3, ~uint64_t{0} - 4095, 0},
        Refused{"AlutAddress", true, 0, {{0x800, 2 * mib}}, 3, 0x800, 8192},
        Refused{"AlutSize", true, 0, {{0, 2 * mib - 4096}}, 3, 2 * mib - 4096, 8192},
        Refused{"AlutSecondPiece", true, 0, {{0, mib}, {4096, mib}}, 3, 4096, 8192},
        Refused{"AlutEmptyPiece", true, 0, {{0, mib}, {0, 0}}, 3, 0, 4096},
        Refused{"TooManyPieces", true, 0, std::vector<Piece>(257, {0, 4096}), 3, 257, 256}),
    [](const auto &test) { return test.param.name; });

TEST_F(ChipTest, RulesCanBeAsked)
{
    open();
    const WindowRules data = ntb_.window_rules(0);
    EXPECT_EQ(data.bytes_max, 512 * mib);
    EXPECT_EQ(data.bar_bytes(1), mib);
    EXPECT_EQ(data.bar_bytes(3 * mib), 4 * mib);
    EXPECT_EQ(data.segment(1), 4096u);
    EXPECT_EQ(data.segment(512 * mib), 2 * mib);
    EXPECT_EQ(data.bar_bytes(513 * mib), 0u);
    const WindowRules shared = ntb_.window_rules(1);
    EXPECT_EQ(shared.bytes_max, 2 * mib);
    EXPECT_EQ(shared.segment(mib), mib);
    EXPECT_EQ(ntb_.window_rules(2).bytes_max, 0u);
}

// ---- segments, one by one

class SegmentsTest : public ChipTest
{
protected:
    static constexpr uint64_t segment = 2 * mib;

    // A block in the first four of 256 segments of 2 MiB.
    void open_block()
    {
        open();
        ASSERT_EQ(ntb_.window_fix(512 * mib, &why_), 0) << why_.what;
        ASSERT_EQ(set(0, {{0x7F0000000000, 8 * mib}}), 0) << why_.what;
        chip_.take();
    }
    int grant(unsigned first, std::vector<Piece> pieces, uint32_t rights = rights_write)
    {
        return ntb_.segments_set(first, pieces.data(), static_cast<unsigned>(pieces.size()), rights,
                                 &why_);
    }
    uint32_t rights_of(unsigned i) { return chip_.csr[0x3A800 + i / 128 * 0x1000 + i % 128 * 4]; }
};

TEST_F(SegmentsTest, AFixedBarKeepsSegmentsAsTheyAre)
{
    open_block();
    EXPECT_EQ(ntb_.segment_bytes(), segment);
    EXPECT_EQ(ntb_.window_rules(0).bar_bytes(8 * mib), 512 * mib);
    EXPECT_EQ(chip_.csr[l + 0xE8], 0xE000000Cu) << "512 MiB";
    EXPECT_EQ(chip_.csr[v + 0xC94], 1u << 28);
    for (unsigned i = 0; i < 256; i++)
        EXPECT_EQ(rights_of(i), i < 4 ? 3u : 0u) << i;
    EXPECT_EQ(ntb_.window_fix(256 * mib, &why_), -EBUSY);
    EXPECT_EQ(ntb_.window_clear(0), 0);
    EXPECT_EQ(ntb_.segment_bytes(), 0u);
    EXPECT_EQ(ntb_.window_fix(256 * mib, &why_), 0);
    EXPECT_EQ(ntb_.window_rules(0).segment(1), mib);
}

TEST_F(SegmentsTest, SizesToFixAreChecked)
{
    open();
    for (const uint64_t bytes : {uint64_t{0}, mib / 2, 3 * mib, 1024 * mib}) {
        EXPECT_EQ(ntb_.window_fix(bytes, &why_), -EINVAL) << bytes;
        EXPECT_EQ(why_.found, bytes);
    }
    EXPECT_EQ(ntb_.window_rules(0).bytes_min, mib);
}

TEST_F(SegmentsTest, GrantSequence)
{
    open_block();
    ASSERT_EQ(grant(127, {{0x100200000, segment}, {0x300000000, segment}}), 0);
    const Access flush = {Access::read, v, 0x87B010B5};
    const Log expected = {w(0x3A9FC, 0), w(0x3B800, 0),          flush,  // denied while it changes
                          w(0x3A5FC, 1), w(0x3A1FC, 0x00200000),         // high, low
                          w(0x3B400, 3), w(0x3B000, 0),          flush,  // there before
                          w(0x3A9FC, 1), w(0x3B800, 1),          flush}; // the rights
    EXPECT_EQ(chip_.take(), expected);
}

TEST_F(SegmentsTest, RevocationIsDenialAndARead)
{
    open_block();
    ASSERT_EQ(grant(10, {{0x100200000, 2 * segment}}, rights_all), 0);
    chip_.take();
    ASSERT_EQ(ntb_.segments_clear(10, 2), 0);
    EXPECT_EQ(chip_.take(), (Log{w(0x3A828, 0), w(0x3A82C, 0), {Access::read, v, 0x87B010B5}}));
    ASSERT_EQ(ntb_.program_all(), 0);
    EXPECT_EQ(rights_of(10), 0u) << "programming again must not grant it";
    EXPECT_EQ(rights_of(0), 3u);
}

TEST_F(SegmentsTest, GrantsArePartOfTheRecord)
{
    open_block();
    ASSERT_EQ(grant(200, {{0x100200000, segment}}, rights_read), 0);
    for (uint32_t offset = 0x3A000; offset < 0x3C000; offset += 4)
        chip_.csr[offset] = 0x55;
    ASSERT_EQ(ntb_.program_all(), 0);
    EXPECT_EQ(rights_of(200), 2u);
    EXPECT_EQ(rights_of(201), 0u);
    EXPECT_EQ(chip_.csr[0x3B000 + 72 * 4], 0x00200000u);
    EXPECT_EQ(chip_.csr[0x3B400 + 72 * 4], 1u);
    ASSERT_EQ(set(0, {{0x7F0000000000, 8 * mib}}), 0);
    EXPECT_EQ(rights_of(200), 0u) << "a new window has no old grants";
}

TEST_F(SegmentsTest, NothingIsRecordedWhereTheChipDoesNotAnswer)
{
    open_block();
    ASSERT_EQ(grant(8, {{0x100200000, segment}}), 0);
    chip_.gone = true;
    EXPECT_EQ(grant(9, {{0x100400000, segment}}), -ENODEV);
    EXPECT_EQ(ntb_.segments_clear(8, 1), -ENODEV);
    chip_.gone = false;
    ASSERT_EQ(ntb_.program_all(), 0);
    EXPECT_EQ(rights_of(8), 0u) << "made up for";
    EXPECT_EQ(rights_of(9), 0u);
}

TEST_F(SegmentsTest, OtherPortUsesItsOwnArray)
{
    chip_.csr[0x360] = 0xC0292800;
    open();
    ASSERT_EQ(ntb_.window_fix(512 * mib, &why_), 0);
    ASSERT_EQ(set(0, {{0x7F0000000000, 8 * mib}}), 0);
    EXPECT_EQ(ntb_.segment_bytes(), 4 * mib);
    ASSERT_EQ(grant(127, {{0x100400000, 4 * mib}}), 0);
    EXPECT_EQ(chip_.csr[0x39800 + 127 * 4], 1u);
    EXPECT_EQ(grant(127, {{0x100400000, 8 * mib}}), -EINVAL) << "there are 128";
}

TEST_F(SegmentsTest, BadGrantsAreRefusedAndTouchNothing)
{
    open_block();
    const struct {
        const char *name;
        unsigned first;
        std::vector<Piece> pieces;
        uint32_t rights;
        uint64_t found;
        uint64_t expected;
    } rows[] = {
        {"no rights", 4, {{0, segment}}, 0, 0, 3},
        {"unknown rights", 4, {{0, segment}}, 4, 4, 3},
        {"address", 4, {{mib, segment}}, 3, mib, segment},
        {"size", 4, {{0, mib}}, 3, mib, segment},
        {"second piece", 4, {{0, segment}, {4096, segment}}, 3, 4096, segment},
        {"empty piece", 4, {{0, 0}}, 3, 0, segment},
        {"no piece", 4, {}, 3, 4, 256},
        {"behind the last", 256, {{0, segment}}, 3, 257, 256},
        {"far behind the last", ~0u, {{0, segment}}, 3, uint64_t{1} << 32, 256},
        {"over the last", 255, {{0, 2 * segment}}, 3, 257, 256},
        {"wraps around",
         4,
         {{~uint64_t{0} - segment + 1, 2 * segment}},
         3,
         ~uint64_t{0} - segment + 1,
         0},
        {"larger than BAR2", 4, {{0, 1024 * mib}}, 3, 1024 * mib, 512 * mib},
    };
    for (const auto &row : rows) {
        EXPECT_EQ(grant(row.first, row.pieces, row.rights), -EINVAL) << row.name;
        EXPECT_STRNE(why_.what, "") << row.name;
        EXPECT_EQ(why_.found, row.found) << row.name;
        EXPECT_EQ(why_.expected, row.expected) << row.name;
    }
    EXPECT_EQ(ntb_.segments_clear(256, 1), -EINVAL);
    EXPECT_EQ(ntb_.segments_clear(1, 256), -EINVAL);
    EXPECT_EQ(ntb_.segments_clear(~0u, 2), -EINVAL);
    EXPECT_TRUE(chip_.take().empty());
}

TEST_F(SegmentsTest, NoneWithoutAnOpenAlut)
{
    open();
    EXPECT_EQ(grant(4, {{0, segment}}), -EINVAL) << "closed";
    ASSERT_EQ(set(0, {{0x40000000, 16 * mib}}), 0);
    EXPECT_EQ(ntb_.segment_bytes(), 0u);
    EXPECT_EQ(grant(4, {{0, segment}}), -EINVAL) << "base and offset";
    without_alut();
    open();
    EXPECT_EQ(ntb_.window_fix(512 * mib, &why_), -ENOTSUP);
    EXPECT_EQ(ntb_.segments_clear(0, 1), -EINVAL);
}

TEST_F(SegmentsTest, SplitNeedsAnAlut)
{
    open();
    EXPECT_EQ(ntb_.window_rules(0).split_max(), 7u);
    EXPECT_EQ(ntb_.window_rules(1).split_max(), 0u);
    without_alut();
    open();
    EXPECT_EQ(ntb_.window_rules(0).split_max(), 0u);
}

TEST_F(ChipTest, PeerAccessToRegistersCanBeClosed)
{
    open();
    ASSERT_EQ(ntb_.set_peer_csr(false), 0);
    EXPECT_EQ(chip_.csr[l + 0xE4], 0u);
    ASSERT_EQ(ntb_.program_all(), 0);
    EXPECT_EQ(chip_.csr[l + 0xE4], 0u) << "programming again must not open it";
    ASSERT_EQ(ntb_.set_peer_csr(true), 0);
    EXPECT_EQ(chip_.csr[l + 0xE4], 3u);
}

// ---- doorbells

TEST_F(ChipTest, DoorbellRegisters)
{
    open();
    test::RecordingRegIo peer;
    ntb_.ring(peer.io(), 0x0102);
    EXPECT_EQ(peer.take(), Log{w(0x3EC4C, 0x0102)});

    chip_.csr[v + 0xC50] = 0xFFFF0081;
    EXPECT_EQ(ntb_.doorbells(), 0x0081);
    chip_.take();
    ntb_.doorbells_clear(0x0001);
    ntb_.doorbells_mask(0x00F0);
    ntb_.doorbells_unmask(0x0F00);
    EXPECT_EQ(chip_.take(),
              (Log{w(v + 0xC50, 0x0001), w(v + 0xC54, 0x00F0), w(v + 0xC58, 0x0F00)}));
}

// ---- scratchpads

TEST_F(ChipTest, TwelveScratchpadsWhereThePatternKeepsWhatIsWritten)
{
    open();
    EXPECT_EQ(ntb_.spad_count(), 8u);
    ASSERT_EQ(ntb_.start(), 0);
    EXPECT_EQ(ntb_.spad_count(), 12u);
    ASSERT_EQ(ntb_.spad_write(7, 77), 0);
    ASSERT_EQ(ntb_.spad_write(11, 111), 0);
    EXPECT_EQ(chip_.csr[v + 0xC88], 77u);
    EXPECT_EQ(chip_.csr[0x218], 111u);
    uint32_t value = 0;
    ASSERT_EQ(ntb_.spad_read(11, &value), 0);
    EXPECT_EQ(value, 111u);
    EXPECT_EQ(ntb_.spad_write(12, 0), -EINVAL);
    EXPECT_EQ(ntb_.spad_read(12, &value), -EINVAL);
}

TEST_F(ChipTest, EightScratchpadsWhereThereIsNoPattern)
{
    chip_.deaf[0x20C] = ~0u;
    open();
    ASSERT_EQ(ntb_.start(), 0);
    EXPECT_EQ(ntb_.spad_count(), 8u);
    EXPECT_EQ(ntb_.spad_write(8, 1), -EINVAL);
}

// E2
TEST_F(ChipTest, PatternWriteIsRepeatedUntilItHolds)
{
    open();
    ASSERT_EQ(ntb_.start(), 0);
    chip_.take();
    chip_.deaf[0x210] = 2;
    ASSERT_EQ(ntb_.spad_write(9, 0xABCD), 0);
    const Access wrote = w(0x210, 0xABCD);
    EXPECT_EQ(chip_.take(), (Log{wrote,
                                 {Access::read, 0x210, 0},
                                 {Access::delay, 0, 1},
                                 wrote,
                                 {Access::read, 0x210, 0},
                                 {Access::delay, 0, 1},
                                 wrote,
                                 {Access::read, 0x210, 0xABCD}}));
}

TEST_F(ChipTest, PatternWriteGivesUpAfterAMillisecond)
{
    open();
    ASSERT_EQ(ntb_.start(), 0);
    chip_.take();
    chip_.deaf[0x210] = ~0u;
    EXPECT_EQ(ntb_.spad_write(9, 1), -EAGAIN);
    uint32_t waited = 0;
    for (const Access &a : chip_.take())
        waited += a.kind == Access::delay ? a.value : 0;
    EXPECT_EQ(waited, 999u);
}

TEST_F(ChipTest, PeerScratchpadsLieAtTheSameOffsets)
{
    open();
    ASSERT_EQ(ntb_.start(), 0);
    test::RecordingRegIo peer;
    ASSERT_EQ(ntb_.peer_spad_write(peer.io(), 3, 33), 0);
    EXPECT_EQ(peer.csr[0x3EC78], 33u);
    ASSERT_EQ(ntb_.peer_spad_write(peer.io(), 10, 5), 0);
    EXPECT_EQ(peer.csr[0x214], 5u);
    EXPECT_EQ(ntb_.peer_spad_write(peer.io(), 12, 0), -EINVAL);
}

TEST_F(ChipTest, AllOnesIsAValueAsLongAsTheChipAnswers)
{
    open();
    chip_.csr[v + 0xC6C] = ~0u;
    uint32_t value = 0;
    EXPECT_EQ(ntb_.spad_read(0, &value), 0);
    EXPECT_EQ(value, ~0u);
    chip_.gone = true;
    EXPECT_EQ(ntb_.spad_read(0, &value), -ENODEV);
}

// ---- link

TEST_F(ChipTest, PortControlKeepsTheOtherPorts)
{
    chip_.csr[0x360] = 0x40002B00; // NT0 on port 11: station 1, bit 3
    open();
    chip_.csr[0x8208] = 0x05;
    ASSERT_EQ(ntb_.shut_down(false), 0);
    EXPECT_EQ(chip_.csr[0x8208], 0x0Du);
    ASSERT_EQ(ntb_.link_enable(), 0);
    EXPECT_EQ(chip_.csr[0x8208], 0x05u);
    ASSERT_EQ(ntb_.link_enable(), 0);
    EXPECT_EQ(chip_.csr[0x8208], 0x05u);
}

TEST_F(ChipTest, LinkStatusIsSpeedAndWidth)
{
    open();
    LinkStatus status;
    chip_.csr[v + 0x78] = 0x30830040;
    ASSERT_EQ(ntb_.link_status(&status), 0);
    EXPECT_TRUE(status.up);
    EXPECT_EQ(status.speed, 3);
    EXPECT_EQ(status.width, 8);
    chip_.csr[v + 0x78] = 0x00010000; // a speed without lanes
    ASSERT_EQ(ntb_.link_status(&status), 0);
    EXPECT_FALSE(status.up);
    EXPECT_EQ(status.speed, 0);
}

TEST_F(ChipTest, LinkErrorsAreClearedAsSeen)
{
    open();
    uint32_t errors = 9;
    ASSERT_EQ(ntb_.link_errors_take(&errors), 0);
    EXPECT_EQ(errors, 0u);
    EXPECT_TRUE(chip_.take_writes().empty());
    chip_.write_ones[v + 0xFE0] = 0xF;
    chip_.csr[v + 0xFE0] = 0x6;
    ASSERT_EQ(ntb_.link_errors_take(&errors), 0);
    EXPECT_EQ(errors, 0x6u);
    EXPECT_EQ(chip_.take_writes(), Log{w(v + 0xFE0, 0x6)});
    EXPECT_EQ(chip_.csr[v + 0xFE0], 0u);
}

// ---- the end, and a chip that goes away

TEST_F(ChipTest, ShutDownTakesEverythingAway)
{
    open();
    ASSERT_EQ(ntb_.start(), 0);
    ASSERT_EQ(set(0, {{0x100002000, 2 * mib}}), 0);
    chip_.take();
    ASSERT_EQ(ntb_.shut_down(false), 0);
    Log expected = {w(v + 0xFE4, 0xF), w(v + 0xC54, 0xFFFF), w(v + 0xC64, 0xFFFF)};
    append(expected, closed_data_);
    append(expected, denied(0x3A000, 256));
    expected.push_back(w(v + 0xC94, 1u << 28));
    append(expected, closed_shared_);
    append(expected, {w(0x208, 0x2), {Access::config_write, 0x04, 0x2}});
    EXPECT_EQ(chip_.take_writes(), expected);
    ASSERT_EQ(ntb_.shut_down(false), 0);
    EXPECT_EQ(chip_.take_writes(), expected);
    ASSERT_EQ(ntb_.program_all(), 0);
    EXPECT_EQ(chip_.csr[0x3A800], 0u) << "the record was emptied";
}

TEST_F(ChipTest, ShutDownMayKeepTheLink)
{
    open();
    ASSERT_EQ(ntb_.shut_down(true), 0);
    EXPECT_FALSE(chip_.csr.contains(0x208));
}

/// All-ones is what a dead link gives, zeros what EAL's hot-unplug handler maps in a BAR's place.
class GoneChip : public ChipTest, public testing::WithParamInterface<uint32_t>
{
};

TEST_P(GoneChip, IsToldByEveryOperation)
{
    open();
    ASSERT_EQ(ntb_.start(), 0);
    chip_.gone = true;
    chip_.nothing = GetParam();
    LinkStatus status;
    uint32_t value = 0;
    EXPECT_EQ(ntb_.start(), -ENODEV);
    EXPECT_EQ(ntb_.program_all(), -ENODEV);
    EXPECT_EQ(ntb_.shut_down(false), -ENODEV);
    EXPECT_EQ(set(0, {{0x40000000, mib}}), -ENODEV);
    EXPECT_EQ(ntb_.window_clear(1), -ENODEV);
    EXPECT_EQ(ntb_.set_peer_csr(false), -ENODEV);
    EXPECT_EQ(ntb_.link_enable(), -ENODEV);
    EXPECT_EQ(ntb_.link_status(&status), -ENODEV);
    EXPECT_EQ(ntb_.link_errors_take(&value), -ENODEV);
}

INSTANTIATE_TEST_SUITE_P(ReadsAs, GoneChip, testing::Values(~0u, 0u),
                         [](const auto &all) { return all.param == 0 ? "Zeros" : "Ones"; });

TEST_F(ChipTest, AChipThatWasRefusedIsNotTouchedAgain)
{
    chip_.csr[v] = ~0u;
    ASSERT_EQ(ntb_.open(chip_.io(), config_, &why_), -ENODEV);
    chip_.take();
    EXPECT_EQ(ntb_.shut_down(true), 0);
    EXPECT_TRUE(chip_.take().empty());
}

TEST_F(ChipTest, WindowSetWhileTheChipWasGoneComesWithTheNextProgramming)
{
    open();
    chip_.gone = true;
    ASSERT_EQ(set(0, {{0x40000000, mib}}), -ENODEV);
    chip_.gone = false;
    ASSERT_EQ(ntb_.program_all(), 0);
    EXPECT_EQ(chip_.csr[l + 0xC3C], 0x40000000u);
    EXPECT_EQ(chip_.csr[l + 0xEC], 0xFFFFFFFFu);
}

// Taking over: whatever a predecessor left, the registers we rely on end up the same.
TEST_F(ChipTest, StartDoesNotDependOnWhatWasLeft)
{
    open();
    ASSERT_EQ(ntb_.start(), 0);
    const auto clean = chip_.csr;
    const Log writes = chip_.take_writes();
    uint32_t noise = 12345;
    for (const Access &a : writes) {
        noise = noise * 1664525 + 1013904223;
        if (a.kind == Access::write)
            chip_.csr[a.offset] = noise;
    }
    ASSERT_EQ(ntb_.start(), 0);
    for (const auto &[offset, value] : clean) {
        const uint32_t ours = offset == 0xA30 ? 0x10 : ~0u; // the rest of VS_DEBUG is not ours
        EXPECT_EQ(chip_.csr[offset] & ours, value & ours) << std::hex << offset;
    }
}

} // namespace

// SPDX-License-Identifier: BSD-3-Clause
// Every rule on the way of an access: command bits, tables, sizes, translation, rights.
#include "bench_pair.hpp"

using namespace plx;
using namespace plx::test;

namespace
{
constexpr uint64_t exposed_bytes = 4 * mib;
constexpr uint32_t alut_on = field::alut_enable.mask();

class TwinRouting : public MemPair
{
protected:
    twin::Memory exposed{};

    void open_way()
    {
        set_up_both();
        ASSERT_EQ(twin::memory_add(b, exposed_bytes, -1, false, &exposed), 0);
        open_inbound(b, 2, exposed.bus, exposed_bytes);
    }
    bool writes(uint64_t offset, uint32_t value, uint16_t rid = write_rid, unsigned bar = 2)
    {
        return twin::window_write(a, bar, offset, &value, sizeof(value), rid);
    }
    bool reads(uint64_t offset, uint16_t rid = read_rid, unsigned bar = 2)
    {
        last_read = 0;
        return twin::window_read(a, bar, offset, &last_read, sizeof(last_read), rid);
    }
    uint32_t last_read = 0;

    /// Both ways of access agree that the window is open, or that it is not.
    void expect_open(bool open, const char *why)
    {
        static uint32_t value = 1;
        const uint32_t before = word_at(exposed, 0x40);
        value++;
        store32(a, 2, 0x40, value);
        EXPECT_EQ(word_at(exposed, 0x40), open ? value : before) << why;
        EXPECT_EQ(reads(0x40), open) << why;
        EXPECT_EQ(last_read, open ? value : ~0u) << why;
        value++;
        EXPECT_EQ(writes(0x40, value), open) << why;
        EXPECT_EQ(word_at(exposed, 0x40), open ? value : before) << why;
    }
    /// A register whose value closes the way; the old one opens it again.
    void expect_closes(twin::Host *host, uint32_t offset, uint32_t value, const char *why)
    {
        const uint32_t old = twin::csr_read32(host, offset);
        twin::csr_write32(host, offset, value);
        expect_open(false, why);
        twin::csr_write32(host, offset, old);
        expect_open(true, why);
    }
    void open_by_alut(uint64_t bar_bytes)
    {
        set_up_both();
        ASSERT_EQ(twin::memory_add(b, exposed_bytes, -1, false, &exposed), 0);
        for (uint32_t i = 0; i < 256; i++)
            alut_entry(i, 0, 0);
        open_inbound(b, 2, ~uint64_t{0}, bar_bytes);
        twin::csr_write32(b, virt_block + reg::alut_control, alut_on);
    }
};

TEST_F(TwinRouting, EveryGateOnTheWayCloses)
{
    open_way();
    expect_open(true, "programmed as the field's drivers do");
    const uint32_t command = reg::pci_command_status;
    expect_closes(a, virt_block + command, 0x4, "memory space of the own virtual side");
    expect_closes(a, link_block + command, 0x2, "bus master of the own link side");
    expect_closes(b, link_block + command, 0x4, "memory space of the peer's link side");
    expect_closes(b, virt_block + command, 0x2, "bus master of the peer's virtual side");
    expect_closes(a, virt_block + reg::req_id_lut_virt[0], 0, "own table lacks the CPU");
    expect_closes(b, link_block + reg::req_id_lut_link[0], 0, "peer's table lacks the slots");
    expect_closes(a, virt_block + reg::bar_xlat(3), 0x20000000,
                  "translated to an address without memory");
    expect_closes(b, link_block + reg::pci_bar[3], 0x20000000, "the peer's BAR is elsewhere");
    expect_closes(b, link_block + reg::bar_setup(Side::link, 3), 0, "the peer's BAR is off");
    expect_closes(b, link_block + reg::bar_xlat(3), 0x1, "translated to no memory");
}

TEST_F(TwinRouting, TranslationReplacesTheBitsAboveTheBar)
{
    open_way();
    ASSERT_TRUE(writes(exposed_bytes - 4, 0x99));
    EXPECT_EQ(word_at(exposed, exposed_bytes - 4), 0x99u);
    EXPECT_FALSE(writes(exposed_bytes, 1)) << "behind the peer's BAR";
    write64(b, link_block + reg::bar_xlat(2), exposed.bus | 0x1000);
    ASSERT_TRUE(writes(0, 0x98));
    EXPECT_EQ(word_at(exposed, 0), 0x98u) << "bits below the size do not count";
}

TEST_F(TwinRouting, AnAccessAcrossTheEndArrivesInPart)
{
    open_way();
    uint32_t both[2] = {0x11, 0x22};
    EXPECT_FALSE(twin::window_write(a, 2, exposed_bytes - 4, both, sizeof(both), write_rid));
    EXPECT_EQ(word_at(exposed, exposed_bytes - 4), 0x11u);
    EXPECT_FALSE(twin::window_read(a, 2, exposed_bytes - 4, both, sizeof(both), read_rid));
    EXPECT_EQ(both[0], 0x11u);
    EXPECT_EQ(both[1], ~0u);
}

TEST_F(TwinRouting, OutsideOfAWindowNothingArrives)
{
    open_way();
    EXPECT_FALSE(writes(config.bar2_bytes, 1));
    EXPECT_FALSE(writes(~uint64_t{0}, 1));
    EXPECT_FALSE(reads(0, read_rid, 3));
    EXPECT_EQ(last_read, ~0u);
}

TEST_F(TwinRouting, TheTableGoesByBusAndDevice)
{
    open_way();
    EXPECT_TRUE(writes(0, 1, 0x0007)) << "the function takes no part";
    EXPECT_FALSE(writes(0, 1, 0x0100));
    twin::csr_write32(a, virt_block + reg::req_id_lut_virt[5], 0x0101); // entry 10: bus 1, device 0
    EXPECT_TRUE(writes(0, 2, 0x0100));
    twin::csr_write32(b, link_block + reg::req_id_lut_link[5], 0); // the link sees it as 00:0a
    EXPECT_FALSE(writes(0, 3, 0x0100));
    EXPECT_TRUE(writes(0, 4));
}

TEST_F(TwinRouting, PlainMemoryNeedsBothRequesterIdsOfTheCpu)
{
    open_way();
    twin::csr_write32(a, virt_block + reg::req_id_lut_virt[0], 0x00090000); // loads alone
    EXPECT_TRUE(reads(0x40));
    EXPECT_FALSE(writes(0x40, 1));
    EXPECT_EQ(load32(a, 2, 0x40), ~0u);
}

TEST_F(TwinRouting, ARefusedRequesterIsNoted)
{
    open_way();
    EXPECT_FALSE(writes(0, 1, 0x0500));
    EXPECT_TRUE(
        field::unsupported_request.get(twin::csr_read32(a, virt_block + reg::aer_uncorr_status)));
    twin::csr_write32(b, virt_block + reg::link_err_status, 0xF);
    twin::csr_write32(b, link_block + reg::req_id_lut_link[0], 0);
    EXPECT_FALSE(writes(0, 1));
    EXPECT_TRUE(
        field::err_uncorrectable.get(twin::csr_read32(b, virt_block + reg::link_err_status)));
}

TEST_F(TwinRouting, AlutTranslatesBySegments)
{
    open_by_alut(512 * mib); // 256 segments of 2 MiB
    alut_entry(3, exposed.bus + 2 * mib, 3);
    alut_entry(200, exposed.bus, 3);
    store32(a, 2, 3 * 2 * mib + 8, 0x31);
    store32(a, 2, 200 * 2 * mib + 8, 0x32);
    EXPECT_EQ(word_at(exposed, 2 * mib + 8), 0x31u);
    EXPECT_EQ(word_at(exposed, 8), 0x32u);
    EXPECT_FALSE(reads(4 * 2 * mib)) << "no rights";
    EXPECT_EQ(load32(a, 2, 4 * 2 * mib), ~0u);
    alut_entry(200, exposed.bus, 0);
    EXPECT_EQ(load32(a, 2, 200 * 2 * mib + 8), ~0u);
    EXPECT_EQ(load32(a, 2, 3 * 2 * mib + 8), 0x31u);
}

TEST_F(TwinRouting, AlutRightsAreReadAndWrite)
{
    open_by_alut(512 * mib);
    *static_cast<volatile uint32_t *>(exposed.base) = 0x55;
    alut_entry(0, exposed.bus, field::alut_read.mask());
    EXPECT_TRUE(reads(0));
    EXPECT_EQ(last_read, 0x55u);
    EXPECT_FALSE(writes(0, 1));
    EXPECT_EQ(load32(a, 2, 0), ~0u) << "plain memory knows both or none";
    alut_entry(0, exposed.bus, field::alut_write.mask());
    EXPECT_FALSE(reads(0));
    EXPECT_TRUE(writes(0, 0x56));
    EXPECT_EQ(word_at(exposed, 0), 0x56u);
}

TEST_F(TwinRouting, AlutSegmentsBelowAPageAreServedByTheCheckedWay)
{
    open_by_alut(mib); // 256 segments of 4 KiB
    alut_entry(1, exposed.bus + 0x8000, 3);
    EXPECT_TRUE(writes(0x1010, 0x77));
    EXPECT_EQ(word_at(exposed, 0x8010), 0x77u);
    EXPECT_EQ(load32(a, 2, 0x1010), 0x77u) << "a whole page of 4 KiB";
    EXPECT_FALSE(writes(0x2010, 0x77));
}

// As far as memory allows: with huge pages the segments are smaller than what is mapped.
TEST_F(TwinRouting, SegmentsBelowAPageAreMappedTogetherWhereTheyContinue)
{
    set_up_both();
    ASSERT_EQ(twin::memory_add(b, exposed_bytes, -1, true, &exposed), 0);
    for (uint32_t i = 0; i < 256; i++)
        write_alut_entry(i, exposed.bus + i * 16384, i < 192 ? 3 : 0);
    open_inbound(b, 2, ~uint64_t{0}, exposed_bytes); // 256 segments of 16 KiB
    twin::csr_write32(b, virt_block + reg::alut_control, alut_on);
    store32(a, 2, 0x10, 0x81);
    EXPECT_EQ(word_at(exposed, 0x10), 0x81u);
    EXPECT_TRUE(writes(3 * mib - 4, 0x82));
    EXPECT_EQ(word_at(exposed, 3 * mib - 4), 0x82u);
    EXPECT_FALSE(writes(3 * mib, 0x83)) << "denied";
    alut_entry(1, exposed.bus + 16384, 0);
    EXPECT_FALSE(writes(16384, 0x84));
    EXPECT_TRUE(writes(32768, 0x85));
    EXPECT_TRUE(writes(2 * mib, 0x86));
    store32(a, 2, 2 * mib - 4, 0x87);
    EXPECT_EQ(word_at(exposed, 2 * mib - 4), exposed.page_bytes == 4096 ? 0x87u : 0u)
        << "a hole in a huge page takes the page with it";
}

// The sum of what was written, once: the chip promises no more for posted writes.
TEST_F(TwinRouting, AlutIsFollowedByTheNextRead)
{
    open_by_alut(512 * mib);
    store32(a, 2, 0x40, 0x91);
    EXPECT_EQ(word_at(exposed, 0x40), 0u);
    write_alut_entry(0, exposed.bus, 3);
    write_alut_entry(1, exposed.bus + 2 * mib, 3);
    flush(b);
    store32(a, 2, 0x40, 0x92);
    store32(a, 2, 2 * mib + 0x40, 0x93);
    EXPECT_EQ(word_at(exposed, 0x40), 0x92u);
    EXPECT_EQ(word_at(exposed, 2 * mib + 0x40), 0x93u);
    twin::inject(a, twin::Fault::freeze_remaps, 1); // keeps its mappings
    write_alut_entry(0, exposed.bus, 0);
    write_alut_entry(1, exposed.bus + 2 * mib, 0);
    flush(b);
    store32(a, 2, 0x40, 0x94);
    store32(a, 2, 2 * mib + 0x40, 0x95);
    EXPECT_EQ(word_at(exposed, 0x40), 0x92u);
    EXPECT_EQ(word_at(exposed, 2 * mib + 0x40), 0x93u);
    twin::inject(a, twin::Fault::freeze_remaps, 0);
}

TEST_F(TwinRouting, AlutIsFollowedWithoutARead)
{
    open_by_alut(512 * mib);
    *static_cast<volatile uint32_t *>(exposed.base) = 0x97;
    write_alut_entry(5, exposed.bus, 3);
    EXPECT_TRUE(await([&] { return load32(a, 2, 5 * 2 * mib) == 0x97; }));
    write_alut_entry(5, exposed.bus, 0);
    EXPECT_TRUE(await([&] { return load32(a, 2, 5 * 2 * mib) == ~0u; }));
}

// Each exposed block is its own: closing one leaves the mapping of another as it is.
TEST_F(TwinRouting, ASegmentIsRevokedWithoutTouchingTheOthers)
{
    open_by_alut(512 * mib);
    twin::Memory other{};
    ASSERT_EQ(twin::memory_add(b, 2 * mib, -1, false, &other), 0);
    write_alut_entry(0, exposed.bus, 3);
    write_alut_entry(9, other.bus, 3);
    flush(b);
    store32(a, 2, 0x40, 1);
    store32(a, 2, 9 * 2 * mib, 1);
    twin::inject(a, twin::Fault::freeze_remaps, 1);
    alut_entry(9, other.bus, 0);
    store32(a, 2, 0x40, 2); // through the mapping of before
    store32(a, 2, 9 * 2 * mib, 2);
    EXPECT_EQ(word_at(exposed, 0x40), 2u);
    EXPECT_EQ(word_at(other, 0), 1u);
    twin::inject(a, twin::Fault::freeze_remaps, 0);
}

class TwinAlut : public MemPair, public testing::WithParamInterface<uint32_t>
{
};

TEST_P(TwinAlut, IsSharedOutAsTheEepromHasIt)
{
    config.alut_entries = GetParam();
    attach_both();
    const uint32_t up = twin::csr_read32(b, reg::vs0_upstream);
    EXPECT_EQ(facts::alut_entries(up, 0), GetParam());
    EXPECT_EQ(facts::alut_entries(up, 1), GetParam() == 128 ? 128u : 0u);
    train();
    bring_up(a);
    bring_up(b);
    twin::Memory exposed{};
    ASSERT_EQ(twin::memory_add(b, 4 * mib, -1, false, &exposed), 0);
    open_inbound(b, 2, GetParam() == 0 ? exposed.bus : ~uint64_t{0}, 4 * mib);
    if (GetParam() != 0) {
        const uint32_t array = facts::alut_array(0, Side::link, GetParam());
        const uint64_t segment = 4 * mib / GetParam();
        for (uint32_t i = 0; i < GetParam(); i++) {
            const uint64_t bus = exposed.bus + i * segment;
            const auto at = [&](facts::RegArray part) {
                return array + facts::alut_entry(part, i);
            };
            twin::csr_write32(b, at(reg::alut_upper), static_cast<uint32_t>(bus >> 32));
            twin::csr_write32(b, at(reg::alut_lower), static_cast<uint32_t>(bus));
            twin::csr_write32(b, at(reg::alut_permission), 3);
        }
    }
    twin::csr_write32(b, virt_block + reg::alut_control,
                      alut_on); // asked in vain where there is none
    store32(a, 2, 3 * mib, 0x99);
    EXPECT_EQ(word_at(exposed, 3 * mib), 0x99u);
}

TEST(TwinAlutSize, IsChecked)
{
    twin::Config config;
    config.cable = "mem:alut";
    config.alut_entries = 64;
    twin::Host *host = nullptr;
    twin::Error error{};
    EXPECT_EQ(twin::attach(config, &host, &error), -EINVAL);
    EXPECT_NE(std::string(error.text).find("64"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Entries, TwinAlut, testing::Values(0u, 128u, 256u),
                         testing::PrintToStringParamName());

TEST_F(TwinRouting, OwnAlutTranslatesTheOtherDirection)
{
    open_way();
    const uint32_t array = facts::alut_array(0, Side::virt, 256);
    for (uint32_t i = 0; i < 256; i++)
        twin::csr_write32(a, array + facts::alut_entry(reg::alut_permission, i), 0);
    twin::csr_write32(a, array + facts::alut_entry(reg::alut_lower, 7), 0);
    twin::csr_write32(a, array + facts::alut_entry(reg::alut_upper, 7),
                      static_cast<uint32_t>(link_address(2) >> 32));
    twin::csr_write32(a, array + facts::alut_entry(reg::alut_permission, 7), 3);
    twin::csr_write32(a, link_block + reg::alut_control, alut_on); // towards the link
    EXPECT_FALSE(writes(0x40, 1));
    EXPECT_TRUE(writes(7 * 2 * mib + 0x40, 0x71));
    EXPECT_EQ(word_at(exposed, 0x40), 0x71u);
    EXPECT_EQ(load32(a, 2, 7 * 2 * mib + 0x40), 0x71u);
}

TEST_F(TwinRouting, AlutIsForBar2Alone)
{
    set_up_both();
    ASSERT_EQ(twin::memory_add(b, mib, -1, false, &exposed), 0);
    twin::csr_write32(b, virt_block + reg::alut_control, alut_on);
    open_inbound(b, 4, exposed.bus, mib, 2 * mib); // the upper half of the shared window
    EXPECT_TRUE(writes(2 * mib + 12, 0x44, write_rid, 4));
    EXPECT_EQ(word_at(exposed, 12), 0x44u);
    EXPECT_EQ(load32(a, 4, 2 * mib + 12), 0x44u);
}

TEST_F(TwinRouting, PeerRegistersLieBehindItsLinkBar0)
{
    set_up_both();
    EXPECT_TRUE(writes(virt_block + reg::spad[2], 0x1234, write_rid, 4));
    EXPECT_EQ(twin::csr_read32(b, virt_block + reg::spad[2]), 0x1234u);
    EXPECT_TRUE(reads(virt_block + reg::spad[2], read_rid, 4));
    EXPECT_EQ(last_read, 0x1234u);
    EXPECT_TRUE(writes(virt_block + reg::db_virt_set, 0x100, write_rid, 4));
    EXPECT_EQ(twin::csr_read32(b, virt_block + reg::db_virt_clear), 0x100u);
    EXPECT_EQ(twin::csr_read32(a, virt_block + reg::db_virt_clear), 0u);
    EXPECT_FALSE(twin::window_write(a, 4, virt_block + reg::spad[2] + 1, "ab", 2, write_rid));
    EXPECT_EQ(load32(a, 4, virt_block + reg::spad[2]), ~0u) << "registers are no plain memory";
}

TEST_F(TwinRouting, ReadBackOverTheLinkGivesTheProxy)
{
    set_up_both();
    ASSERT_TRUE(reads(virt_block + reg::req_id_readback, read_rid, 4));
    EXPECT_EQ(last_read, 1u << 3) << "00:01 was admitted by entry 1";
}

TEST_F(TwinRouting, WhetherTheTableFiltersBar0IsASwitch)
{
    set_up_both();
    twin::csr_write32(b, link_block + reg::req_id_lut_link[0], 0);
    EXPECT_TRUE(reads(virt_block + reg::spad[0], read_rid, 4));
    twin::detach(a);
    a = nullptr;
    config.switches.lut_filters_bar0 = true;
    twin::Error error{};
    ASSERT_EQ(twin::attach(config, &a, &error), 0);
    EXPECT_FALSE(reads(virt_block + reg::spad[0], read_rid, 4));
}

TEST_F(TwinRouting, APeerThatClosesOurWindowThroughOurRegistersIsFollowed)
{
    open_way();
    expect_open(true, "");
    // E25: the peer reaches every register. Here A takes its own way into B away.
    EXPECT_TRUE(writes(link_block + reg::bar_setup(Side::link, 3), 0, write_rid, 4));
    expect_open(false, "B's BAR was switched off from A");
}

TEST_F(TwinRouting, AScrambledChipOpensNothingAndHangsNoHost)
{
    for (uint64_t seed = 1; seed <= 8; seed++) {
        config.state = twin::ChipState::random;
        config.random_seed = seed;
        attach_both();
        clock.advance_us(1'000'000);
        for (twin::Host *host : {a, b})
            twin::csr_write32(host, reg::port_control, 0);
        ASSERT_EQ(twin::memory_add(b, exposed_bytes, -1, false, &exposed), 0);
        clock.advance_us(1'000'000);
        reads(0);
        for (uint64_t offset = 0; offset < config.bar2_bytes; offset += 2 * mib)
            store32(a, 2, offset, 0xBAD);
        for (uint64_t offset = 0; offset < exposed_bytes; offset += 4)
            ASSERT_NE(word_at(exposed, offset), 0xBADu);
        twin::detach(a);
        twin::detach(b);
        a = b = nullptr;
    }
}
} // namespace

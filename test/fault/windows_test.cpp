// SPDX-License-Identifier: BSD-3-Clause
// A peer that reaches for what was not exposed to it: registers, segments that were revoked or
// never exposed, reads of what it may only write, unknown requesters. Through the twin's
// checked way, which applies every rule of the chip to each access.
#include "hostile.hpp"

#include "host.hpp"

#include <memory>

using fault::Hostile;
using test::Answer;
using test::HostSetup;
using test::Op;
using test::RemoteHost;
namespace facts = plx::facts;
namespace reg = plx::test::reg;
namespace twin = plx::twin;

namespace
{

constexpr uint64_t mib = uint64_t{1} << 20;
constexpr unsigned data_bar = 2;
constexpr unsigned shared_bar = 4;
constexpr uint16_t cpu_write = plx::test::write_rid;
constexpr uint16_t cpu_read = plx::test::read_rid;
constexpr uint64_t segment = 2 * mib;

class Reach : public testing::Test
{
protected:
    test::Folder folder_;
    const std::string cable_ = folder_.file("cable");
    RemoteHost host_;
    std::unique_ptr<Hostile> peer_;

    /// A victim with @p devargs, and a peer that it has taken for a good one.
    void connect(const std::string &devargs)
    {
        const HostSetup setup{.devargs = "heartbeat_ms=30000,lost_ms=60000," + devargs};
        ASSERT_EQ(host_.bring_up(cable_, setup), 0);
        peer_ = std::make_unique<Hostile>(cable_);
        ASSERT_FALSE(HasFailure());
        ASSERT_TRUE(peer_->connect());
        ASSERT_TRUE(host_.await_event('C')) << host_.link().why;
    }
    /// @return where the peer finds what the victim has exposed; its own view may follow later
    uint64_t expose(uint64_t bytes, uint32_t rights)
    {
        const Answer exposed = host_.ask(Op::expose, bytes, uint64_t{rights});
        EXPECT_EQ(exposed.rc, 0);
        EXPECT_TRUE(plx::test::await([&] {
            return reads(exposed.value) || writes(exposed.value, 0); // new memory is zeros
        }));
        return exposed.value;
    }
    bool writes(uint64_t offset, uint64_t value, uint16_t rid = cpu_write, unsigned bar = data_bar)
    {
        return twin::window_write(peer_->host(), bar, offset, &value, sizeof(value), rid);
    }
    bool reads(uint64_t offset, uint16_t rid = cpu_read, unsigned bar = data_bar)
    {
        last_read_ = 0;
        return twin::window_read(peer_->host(), bar, offset, &last_read_, sizeof(last_read_), rid);
    }
    bool reads_register(uint32_t csr)
    {
        uint32_t value = 0;
        return twin::window_read(peer_->host(), shared_bar, csr, &value, sizeof(value), cpu_read) &&
               value != ~0u;
    }
    bool writes_register(uint32_t csr, uint32_t value)
    {
        return twin::window_write(peer_->host(), shared_bar, csr, &value, sizeof(value), cpu_write);
    }
    uint64_t word(uint64_t at) { return host_.ask(Op::word, at).value; }
    void TearDown() override
    {
        ASSERT_TRUE(host_.alive());
        host_.stop();
        EXPECT_EQ(host_.ask(Op::detach).rc, 0);
    }

    uint64_t last_read_ = 0;
};

TEST_F(Reach, WhatMayOnlyBeWrittenIsNotRead)
{
    connect("peer_csr=closed");
    const uint64_t at = expose(segment, 0); // write-only unless asked otherwise
    ASSERT_EQ(at, 16 * mib);
    EXPECT_TRUE(writes(at + 8, 0x11));
    EXPECT_EQ(word(8), 0x11u);
    EXPECT_FALSE(reads(at + 8));
    EXPECT_EQ(last_read_, ~uint64_t{0});
    EXPECT_EQ(host_.ask(Op::revoke, 0, uint64_t{1}).rc, 0);

    const uint64_t readable = expose(segment, RTE_PMD_PLX_NTB_MEMORY_READ);
    EXPECT_TRUE(reads(readable));
    EXPECT_EQ(last_read_, 0u) << "new memory is clean";
    EXPECT_FALSE(writes(readable, 0x12));
    EXPECT_EQ(word(0), 0u);
}

TEST_F(Reach, NothingBesideWhatIsExposed)
{
    connect("peer_csr=closed");
    const uint64_t at = expose(2 * segment, 3);
    EXPECT_TRUE(writes(at, 0x21));
    EXPECT_TRUE(writes(at + 2 * segment - 8, 0x22));
    EXPECT_EQ(word(2 * segment - 8), 0x22u);
    for (const uint64_t beside : {at + 2 * segment, at + 3 * segment, 512 * mib - 8}) {
        EXPECT_FALSE(writes(beside, 0x23)) << beside;
        EXPECT_FALSE(reads(beside)) << beside;
    }
    EXPECT_FALSE(writes(at + 2 * segment - 4, 0x2424242424242424u)) << "over the border";
    EXPECT_FALSE(writes(at, 0x25, cpu_write, shared_bar)) << "the other window shows nothing";
    for (const uint16_t stranger : {uint16_t{0x0101}, uint16_t{0x4200}, uint16_t{0xFFF8}}) {
        EXPECT_FALSE(writes(at, 0x26, stranger)) << stranger;
        EXPECT_FALSE(reads(at, stranger)) << stranger;
    }
    EXPECT_EQ(word(0), 0x21u);
}

TEST_F(Reach, NothingOfWhatWasRevoked)
{
    connect("peer_csr=closed");
    const uint64_t at = expose(segment, 3);
    auto *const mapped = static_cast<volatile uint8_t *>(twin::bar(peer_->host(), data_bar).base);
    auto *const direct = reinterpret_cast<volatile uint64_t *>(mapped + at);
    ASSERT_TRUE(plx::test::await([&] {
        *direct = 0x31;
        return word(0) == 0x31u;
    }));
    // A peer that does not follow keeps its mapping, and reaches an orphan with it.
    twin::inject(peer_->host(), twin::Fault::freeze_remaps, 1);
    ASSERT_EQ(host_.ask(Op::revoke).rc, 0);
    *direct = 0x32;
    EXPECT_EQ(word(0), 0x31u);
    twin::inject(peer_->host(), twin::Fault::freeze_remaps, 0);
    EXPECT_FALSE(writes(at, 0x33));
    EXPECT_FALSE(reads(at));
    EXPECT_FALSE(writes(at, 0x34, 0x0101)) << "nor an engine";
    *direct = 0x35;
    EXPECT_EQ(word(0), 0x31u);
    EXPECT_EQ(host_.ask(Op::revoke).rc, -ENOENT) << "twice";
}

// E25: with its registers a peer could give itself every right.
TEST_F(Reach, NoRegistersOnceBringUpIsDone)
{
    connect("peer_csr=closed");
    const uint64_t at = expose(segment, 0);
    const uint32_t rights =
        facts::alut_array(0, facts::Side::link, 256) +
        facts::alut_entry(reg::alut_permission, static_cast<uint32_t>(at / segment));
    EXPECT_FALSE(reads_register(plx::test::virt_block + reg::nt_port_id));
    EXPECT_FALSE(reads_register(rights));
    EXPECT_FALSE(writes_register(rights, 3));
    EXPECT_FALSE(writes_register(plx::test::link_block + reg::bar0_setup_link, 3));
    EXPECT_FALSE(writes_register(reg::port_control, 2));
    EXPECT_FALSE(reads(at)) << "still write-only";
    EXPECT_TRUE(writes(at, 0x41));

    // With the connection the restriction ends: the next peer starts as on a fresh chip.
    peer_.reset();
    ASSERT_TRUE(host_.await_event('L'));
    peer_ = std::make_unique<Hostile>(cable_);
    ASSERT_FALSE(HasFailure());
    EXPECT_TRUE(
        plx::test::await([&] { return reads_register(plx::test::virt_block + reg::nt_port_id); }));
    EXPECT_FALSE(writes(at, 0x42)) << "what was exposed is not";
    EXPECT_EQ(word(0), 0x41u);
}

TEST_F(Reach, RegistersAreOpenWhereTheyAreLeftOpen)
{
    connect("peer_csr=open");
    EXPECT_TRUE(reads_register(plx::test::virt_block + reg::nt_port_id));
    const uint64_t at = expose(segment, 0);
    EXPECT_FALSE(reads(at));
    // What doc/windows.md warns of.
    const uint32_t rights =
        facts::alut_array(0, facts::Side::link, 256) +
        facts::alut_entry(reg::alut_permission, static_cast<uint32_t>(at / segment));
    EXPECT_TRUE(writes_register(rights, 3));
    EXPECT_TRUE(reads(at));
}

// What was exposed to a peer that died is not there for the next one.
TEST_F(Reach, NothingIsInherited)
{
    connect("peer_csr=closed");
    const uint64_t at = expose(segment, 3);
    EXPECT_TRUE(writes(at, 0x51));
    peer_.reset();
    ASSERT_TRUE(host_.await_event('L'));
    peer_ = std::make_unique<Hostile>(cable_);
    ASSERT_FALSE(HasFailure());
    EXPECT_FALSE(writes(at, 0x52));
    ASSERT_TRUE(peer_->connect());
    ASSERT_TRUE(host_.await_event('C', 2)) << host_.link().why;
    EXPECT_FALSE(writes(at, 0x53));
    EXPECT_FALSE(reads(at));
    EXPECT_EQ(word(0), 0x51u);
    EXPECT_EQ(host_.ask(Op::revoke).rc, -ENOENT);
}

} // namespace

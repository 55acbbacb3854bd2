// SPDX-License-Identifier: BSD-3-Clause
#include "wire/message.hpp"

#include <cstring>
#include <vector>

#include <gtest/gtest.h>

namespace
{

using namespace ntb::verbs;

bool read(const Header &header, std::uint32_t payload, Header *copy = nullptr)
{
    std::vector<std::byte> message(sizeof(Header) + payload);
    std::memcpy(message.data(), &header, sizeof(header));
    Header into;
    const bool good = read_header(message.data(), static_cast<std::uint32_t>(message.size()),
                                  copy ? *copy : into);
    return good;
}

Header piece(Kind kind, std::uint32_t offset, std::uint32_t bytes, std::uint32_t total)
{
    const std::uint8_t flags = offset + bytes == total ? flag::last : std::uint8_t{0};
    return {.kind = kind, .flags = flags, .bytes = bytes, .offset = offset, .total = total};
}

TEST(Header, PiecesOfDataAreInsideTheirRequest)
{
    for (const Kind kind : {Kind::Send, Kind::Write, Kind::Data}) {
        EXPECT_TRUE(read(piece(kind, 0, 100, 100), 100));
        EXPECT_TRUE(read(piece(kind, 0, 0, 0), 0));
        EXPECT_TRUE(read(piece(kind, 0, 100, 1000), 100));
        EXPECT_TRUE(read(piece(kind, 900, 100, 1000), 100));
        EXPECT_TRUE(read(piece(kind, max_request - 8, 8, max_request), 8));
        EXPECT_FALSE(read(piece(kind, 950, 100, 1000), 100));
        EXPECT_FALSE(read(piece(kind, 1001, 0, 1000), 0));
        EXPECT_FALSE(read(piece(kind, 0, 8, max_request + 1), 8));
        EXPECT_FALSE(read(piece(kind, 0, 0, 1000), 0)) << "it would never come to an end";
        EXPECT_FALSE(read(piece(kind, 1000, 0, 1000), 0));
        Header unmarked = piece(kind, 0, 100, 100);
        unmarked.flags = 0;
        EXPECT_FALSE(read(unmarked, 100));
        Header early = piece(kind, 0, 100, 1000);
        early.flags = flag::last;
        EXPECT_FALSE(read(early, 100));
    }
}

TEST(Word, IsTheAcknowledgementOfTheNodesOfItsLink)
{
    const Address own = make_address(1, 5), peer = make_address(2, 1022);
    Header header;
    EXPECT_FALSE(read_word(0, own, peer, header));
    EXPECT_FALSE(read_word(leaves_words, own, peer, header));
    const std::uint32_t to = 5u << slot_bits | 0x3fff, from = 1022u << slot_bits | 0x2001;
    const std::uint64_t word = word_of_ack(to, from, 0xfedcba98);
    EXPECT_NE(word & leaves_words, 0u);
    ASSERT_TRUE(read_word(word, own, peer, header));
    EXPECT_EQ(header.kind, Kind::Ack);
    EXPECT_EQ(header.to, to);
    EXPECT_EQ(header.from, from);
    EXPECT_EQ(header.seq, 0xfedcba98);
    // No number of another node, whatever it says.
    ASSERT_TRUE(read_word(~std::uint64_t{0}, own, peer, header));
    EXPECT_EQ(header.to >> slot_bits, 5u);
    EXPECT_EQ(header.from >> slot_bits, 1022u);
}

TEST(Header, OnlyWritesAndReadsAskForMemory)
{
    for (const Kind kind : {Kind::Send, Kind::Write, Kind::Read, Kind::FetchAdd, Kind::Data}) {
        const std::uint32_t bytes = kind == Kind::Read ? 0 : 16;
        Header header = piece(kind, 0, bytes, bytes);
        EXPECT_TRUE(read(header, bytes));
        header.flags |= flag::ask;
        EXPECT_EQ(read(header, bytes), kind == Kind::Write || kind == Kind::Read);
    }
    EXPECT_TRUE(read(piece(Kind::Grant, 0, sizeof(Grant), sizeof(Grant)), sizeof(Grant)));
    EXPECT_FALSE(read(piece(Kind::Grant, 0, 24, 24), 24));
}

TEST(Header, DataThatAreLentAreOfAWholeSendAndElsewhere)
{
    for (const Kind kind : {Kind::Send, Kind::Write, Kind::Read, Kind::Data, Kind::Ack}) {
        const Header header = {
            .kind = kind, .flags = flag::last | flag::lent, .bytes = 0, .total = 5000};
        EXPECT_EQ(read(header, 0), kind == Kind::Send);
    }
    const Header good = {
        .kind = Kind::Send, .flags = flag::last | flag::lent, .bytes = 0, .total = max_request};
    EXPECT_TRUE(read(good, 0));
    const auto refuses = [&](auto change) {
        Header header = good;
        change(header);
        EXPECT_FALSE(read(header, header.bytes));
    };
    refuses([](Header &header) { header.flags = flag::lent; });
    refuses([](Header &header) { header.total = 0; });
    refuses([](Header &header) { header.total = max_request + 1; });
    refuses([](Header &header) { header.offset = 8; });
    refuses([](Header &header) { header.bytes = header.total = 8; });
    refuses([](Header &header) { header.flags |= flag::ask; });
    refuses([](Header &header) { header.flags |= flag::invalidate | flag::immediate; });
    EXPECT_TRUE(read(piece(Kind::Lend, 0, sizeof(Grant), sizeof(Grant)), sizeof(Grant)));
    EXPECT_FALSE(read(piece(Kind::Lend, 0, 24, 24), 24));
}

TEST(Header, AKeyIsEndedBySendsWithoutImmediateDataOnly)
{
    for (const Kind kind : {Kind::Send, Kind::Write, Kind::Data}) {
        Header header = piece(kind, 0, 8, 8);
        header.flags |= flag::invalidate;
        EXPECT_EQ(read(header, 8), kind == Kind::Send);
        header.flags |= flag::immediate;
        EXPECT_FALSE(read(header, 8));
    }
}

TEST(Header, ThePayloadHasTheLengthThatTheHeaderSays)
{
    EXPECT_FALSE(read(piece(Kind::Send, 0, 100, 100), 99));
    EXPECT_FALSE(read(piece(Kind::Send, 0, 100, 100), 101));
    EXPECT_FALSE(read(piece(Kind::Send, 0, 0xfffffff0, 100), 100));
    const std::byte few[47] = {};
    Header header;
    EXPECT_FALSE(read_header(few, sizeof(few), header));
}

// No message is a lone SEND that is not one for all others, and what it says is the same.
TEST(Header, OfALoneSendIsReadAlike)
{
    const Header good = {.kind = Kind::Send,
                         .flags = flag::last,
                         .attempt = 0x1234,
                         .to = 0x7f0001,
                         .from = 0x123456,
                         .seq = 0xfedcba98,
                         .bytes = 24,
                         .offset = 0,
                         .total = 24,
                         .value = 0xdeadbeef,
                         .key = 0x11111111,
                         .ack = 0x22334455,
                         .address = 1};
    alignas(8) std::byte message[sizeof(Header) + 24] = {};
    LoneSend lone;
    int lone_ones = 0;
    // Each bit of it.
    for (std::size_t bit = 0; bit <= 8 * sizeof(Header); ++bit) {
        std::memcpy(message, &good, sizeof(good));
        if (bit < 8 * sizeof(Header))
            message[bit / 8] ^= std::byte{1} << bit % 8;
        const bool is_lone = read_lone(message, sizeof(message), lone);
        Header header;
        std::memcpy(&header, message, sizeof(header));
        const unsigned known = flag::last | flag::solicited | flag::immediate | flag::ack;
        EXPECT_EQ(is_lone, header.kind == Kind::Send && (header.flags & flag::last) != 0 &&
                               (header.flags & ~known) == 0 && header.bytes == 24 &&
                               header.offset == 0 && header.total == 24)
            << bit;
        if (!is_lone)
            continue;
        ++lone_ones;
        if (((header.to | header.from) & ~qpn_mask) == 0) { // else of no one: not checked here
            EXPECT_TRUE(read_header(message, sizeof(message), header)) << bit;
        }
        EXPECT_EQ(lone.to, header.to);
        EXPECT_EQ(lone.from, header.from);
        EXPECT_EQ(lone.seq, header.seq);
        EXPECT_EQ(lone.bytes, header.bytes);
        EXPECT_EQ(lone.value, header.value);
        EXPECT_EQ(lone.ack, header.ack);
        EXPECT_EQ(lone.attempt, header.attempt);
        EXPECT_EQ(lone.flags, header.flags);
    }
    EXPECT_GT(lone_ones, 100);
    std::memcpy(message, &good, sizeof(good));
    EXPECT_FALSE(read_lone(message, sizeof(message) - 1, lone));
    EXPECT_FALSE(read_lone(message, sizeof(Header), lone)) << "without data it is another one";
    EXPECT_FALSE(read_lone(message, 0, lone));
}

TEST(Header, OtherKindsHaveTheirOwnLengths)
{
    for (const Kind kind : {Kind::Ack, Kind::Nak, Kind::Rnr, Kind::Ready, Kind::NotReady,
                            Kind::Again, Kind::Mapped, Kind::Lacks, Kind::Read}) {
        EXPECT_TRUE(read({.kind = kind}, 0));
        EXPECT_FALSE(read({.kind = kind, .bytes = 8, .total = 8}, 8));
    }
    for (const Kind kind : {Kind::FetchAdd, Kind::CmpSwap}) {
        EXPECT_TRUE(read({.kind = kind, .bytes = 16}, 16));
        EXPECT_FALSE(read({.kind = kind, .bytes = 8}, 8));
    }
    EXPECT_FALSE(read({.kind = Kind{0}}, 0));
    EXPECT_FALSE(read({.kind = Kind{14}}, 0));
    EXPECT_FALSE(read({.kind = Kind{255}}, 0));
}

TEST(Header, QueuePairsHaveNumbersOf24Bits)
{
    EXPECT_TRUE(read({.kind = Kind::Ack, .to = 0xffffff, .from = 0xffffff}, 0));
    EXPECT_FALSE(read({.kind = Kind::Ack, .to = 0x1000000}, 0));
    EXPECT_FALSE(read({.kind = Kind::Ack, .from = 0x80000001}, 0));
}

TEST(Address, IsALidAndTheUpperBitsOfANumber)
{
    constexpr Address address = address_of(0xbfff, 0xffc123);
    EXPECT_TRUE(is_address(address));
    EXPECT_EQ(lid_of(address), 0xbfff);
    EXPECT_EQ(node_of(address), 1023u);
    EXPECT_EQ(address_of(0xbfff, 0xffffff), address);
    EXPECT_NE(address_of(0xbfff, 0xffbfff), address);
    EXPECT_FALSE(is_address(node_mask));
    EXPECT_FALSE(is_address(~Address{0}));
}

TEST(Hello, IsOfThisVersionAndTheseSizes)
{
    constexpr Address seven = make_address(7, 1023);
    const Hello good = {hello_magic, wire_version, 4096, seven, 0};
    Address own = 0;
    const auto read_it = [&own](const Hello &hello) {
        return read_hello(reinterpret_cast<const std::byte *>(&hello), sizeof(hello), 4096, own);
    };
    EXPECT_TRUE(read_it(good));
    EXPECT_EQ(own, seven);
    EXPECT_FALSE(read_it({hello_magic + 1, wire_version, 4096, seven, 0}));
    EXPECT_FALSE(read_it({hello_magic, wire_version + 1, 4096, seven, 0}));
    EXPECT_FALSE(read_it({hello_magic, wire_version, 8192, seven, 0}));
    EXPECT_FALSE(read_it({hello_magic, wire_version, 4096, make_address(0, 7), 0}));
    EXPECT_FALSE(read_it({hello_magic, wire_version, 4096, make_address(0xc000, 7), 0}));
    EXPECT_FALSE(read_hello(reinterpret_cast<const std::byte *>(&good), 23, 4096, own));
}

} // namespace

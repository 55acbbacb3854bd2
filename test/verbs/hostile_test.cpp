// SPDX-License-Identifier: BSD-3-Clause
// A peer that speaks the engine's protocol, and says what it likes: doc/verbs.md, section 5.
#include <random>
#include <string>

#include <sys/mman.h>

#include "engine/engine.hpp"
#include "engine/shared.hpp"
#include "hosts.hpp"
#include "memory/exchange.hpp"
#include "memory/pages.hpp"
#include "memory_files.hpp"
#include "wire/message.hpp"

namespace
{

using namespace verbs_test;
using namespace ntb::verbs;

/// An engine whose peer is the test.
class Hostile : public testing::Test
{
protected:
    static constexpr std::uint32_t peer_number = 0x777;

    void SetUp() override { ASSERT_EQ(host.attach(port(0), 2), 0); }
    virtual Port &port(int end) { return loopback->end(end); }

    bool say(Header header, const void *payload = nullptr)
    {
        std::byte *message =
            port(1).reserve(static_cast<std::uint32_t>(sizeof(header)) + header.bytes);
        if (!message)
            return false;
        std::memcpy(message, &header, sizeof(header));
        if (payload)
            std::memcpy(message + sizeof(header), payload, header.bytes);
        else
            std::memset(message + sizeof(header), 0xab, header.bytes);
        port(1).commit(static_cast<std::uint32_t>(sizeof(header)) + header.bytes);
        return true;
    }
    void greet(std::uint32_t version = wire_version, std::uint16_t lid = 2)
    {
        const Hello hello = {hello_magic, version, port(1).longest(), make_address(lid, 0), 0};
        say({.kind = Kind::Hello, .bytes = sizeof(hello), .total = sizeof(hello)}, &hello);
        heard();
    }
    /// What the engine has said since.
    std::vector<Header> heard()
    {
        std::vector<Header> all;
        Port::Incoming message;
        for (bool more = true; more;) {
            more = ntbv_engine_drive(host.engine) != 0;
            for (; port(1).receive(message); port(1).release(), more = true) {
                Header header;
                EXPECT_TRUE(read_header(message.data, message.bytes, header));
                if (header.kind != Kind::Hello)
                    all.push_back(header);
            }
        }
        return all;
    }
    ntbv_qp *connected()
    {
        ntbv_qp *qp = host.make(NTBV_RC);
        to_peer(qp, NTBV_RC, 2, peer_number);
        return qp;
    }
    Header to(const ntbv_qp *qp, Kind kind, std::uint32_t seq, std::uint32_t bytes = 0,
              std::uint32_t offset = 0, std::uint32_t total = ~0u)
    {
        if (total == ~0u)
            total = offset + bytes;
        return {.kind = kind,
                .flags = offset + bytes == total ? flag::last : std::uint8_t{0},
                .to = ntbv_qp_number(qp),
                .from = peer_number,
                .seq = seq,
                .bytes = bytes,
                .offset = offset,
                .total = total};
    }
    std::vector<std::pair<std::uint64_t, std::uint32_t>> completions(ntbv_cq *cq)
    {
        std::vector<std::pair<std::uint64_t, std::uint32_t>> all;
        ntbv_wc wc[16];
        for (int n; (n = ntbv_cq_poll(cq, 16, wc)) > 0;)
            for (int i = 0; i < n; ++i)
                all.emplace_back(wc[i].id, wc[i].status);
        return all;
    }
    using Completions = std::vector<std::pair<std::uint64_t, std::uint32_t>>;

    Clock clock;
    std::vector<std::unique_ptr<Loopback>> gone; // ports outlive the engine
    std::unique_ptr<Loopback> loopback = Loopback::create(1 << 16);
    Host host{1, clock};
    Memory memory{host.pd, 4096};
};

TEST_F(Hostile, WhoDoesNotGreetIsLost)
{
    const ntbv_qp *qp = connected();
    say(to(qp, Kind::Send, 0));
    heard();
    EXPECT_TRUE(loopback->dead());
}

TEST_F(Hostile, AnotherVersionOrAddressIsLost)
{
    ntbv_qp *qp = connected();
    ASSERT_EQ(Work(NTBV_SEND, 1).post(qp), 0);
    greet(wire_version + 1);
    EXPECT_TRUE(loopback->dead());
    clock.outlast_silence();
    EXPECT_EQ(completions(host.cq), (Completions{{1, NTBV_RETRY_EXC_ERR}}));
    gone.push_back(std::move(loopback));
    loopback = Loopback::create(1 << 16);
    ASSERT_EQ(host.attach(port(0), 3), 0);
    greet(wire_version, 4);
    EXPECT_TRUE(loopback->dead());
}

TEST_F(Hostile, AMessageThatIsNoneEndsTheLink)
{
    ntbv_qp *qp = connected();
    greet();
    ASSERT_EQ(Work(NTBV_SEND, 1).post(qp), 0);
    ASSERT_EQ(Work(NTBV_SEND, 2).post(qp), 0);
    Header bad = to(qp, Kind::Ack, 0);
    bad.kind = Kind{77};
    say(bad);
    heard();
    EXPECT_TRUE(loopback->dead());
    clock.outlast_silence();
    EXPECT_EQ(completions(host.cq), (Completions{{1, NTBV_RETRY_EXC_ERR}, {2, NTBV_WR_FLUSH_ERR}}));
}

// What it leaves behind is worth as much as what it could have said.
TEST_F(Hostile, WordsOfAPeerThatIsGoneAcknowledgeWhatWasSentAtMost)
{
    std::mt19937_64 random(7);
    const auto last_word = [&](std::uint64_t word, Completions wanted) {
        port(1).leave(leaves_words);
        greet();
        ntbv_qp *qp = connected();
        EXPECT_EQ(Work(NTBV_SEND, 1).post(qp), 0);
        EXPECT_EQ(Work(NTBV_SEND, 2).post(qp), 0);
        heard();
        const std::uint64_t own = ntbv_qp_number(qp);
        port(1).leave(word ^ own << 46);
        loopback->kill();
        heard();
        clock.outlast_silence();
        heard();
        EXPECT_EQ(completions(host.cq), wanted);
        host.drop(qp);
        gone.push_back(std::move(loopback));
        loopback = Loopback::create(1 << 16);
        ASSERT_EQ(host.attach(port(0), 2), 0);
    };
    const Completions none = {{1, NTBV_RETRY_EXC_ERR}, {2, NTBV_WR_FLUSH_ERR}};
    last_word(word_of_ack(0, peer_number, 0), {{1, NTBV_SUCCESS}, {2, NTBV_RETRY_EXC_ERR}});
    last_word(word_of_ack(0, peer_number, 1), {{1, NTBV_SUCCESS}, {2, NTBV_SUCCESS}});
    last_word(leaves_words, none);
    last_word(word_of_ack(0, peer_number, 0x80000000), none);
    last_word(word_of_ack(1, peer_number, 0), none);
    last_word(word_of_ack(0, peer_number + 1, 0), none);
    last_word(word_of_ack(0, peer_number, 2), {{1, NTBV_BAD_RESP_ERR}, {2, NTBV_WR_FLUSH_ERR}});
    // Whatever it is, there is one completion for each.
    for (int i = 0; i < 200; ++i) {
        port(1).leave(leaves_words);
        greet();
        ntbv_qp *qp = connected();
        EXPECT_EQ(Work(NTBV_SEND, 1).post(qp), 0);
        heard();
        port(1).leave(random() | leaves_words);
        loopback->kill();
        heard();
        clock.outlast_silence();
        heard();
        EXPECT_EQ(completions(host.cq).size(), 1u);
        host.drop(qp);
        gone.push_back(std::move(loopback));
        loopback = Loopback::create(1 << 16);
        ASSERT_EQ(host.attach(port(0), 2), 0);
    }
}

TEST_F(Hostile, AnAcknowledgementIsNoAnswerToALoneRead)
{
    greet();
    for (const ntbv_opcode opcode : {NTBV_READ, NTBV_FETCH_ADD}) {
        ntbv_qp *qp = connected();
        ASSERT_EQ(Work(opcode, 1, memory.piece(104, 8)).to(memory).post(qp), 0);
        heard();
        say(to(qp, Kind::Ack, 0));
        heard();
        EXPECT_EQ(state_of(qp), NTBV_ERR);
        EXPECT_EQ(completions(host.cq), (Completions{{1, NTBV_BAD_RESP_ERR}}));
    }
}

TEST_F(Hostile, AnswersToWhatWasNotAskedFailTheOldestRequest)
{
    greet();
    const auto answer = [&](auto spoil) {
        ntbv_qp *qp = connected();
        EXPECT_EQ(Work(NTBV_SEND, 1).post(qp), 0);
        EXPECT_EQ(Work(NTBV_READ, 2, memory.piece(100, 100)).to(memory).post(qp), 0);
        heard();
        spoil(qp);
        heard();
        EXPECT_EQ(state_of(qp), NTBV_ERR);
        return completions(host.cq);
    };
    const Completions first = {{1, NTBV_BAD_RESP_ERR}, {2, NTBV_WR_FLUSH_ERR}};
    const Completions second = {{1, NTBV_SUCCESS}, {2, NTBV_BAD_RESP_ERR}};
    EXPECT_EQ(answer([&](ntbv_qp *qp) { say(to(qp, Kind::Ack, 2)); }), first);
    EXPECT_EQ(answer([&](ntbv_qp *qp) { say(to(qp, Kind::Ack, 0x7ffffff0)); }), first);
    EXPECT_EQ(answer([&](ntbv_qp *qp) { say(to(qp, Kind::Ack, 1)); }), second) << "behind a read";
    EXPECT_EQ(answer([&](ntbv_qp *qp) { say(to(qp, Kind::Data, 0, 8)); }), first) << "of a send";
    EXPECT_EQ(answer([&](ntbv_qp *qp) { say(to(qp, Kind::Data, 1, 101)); }), second);
    EXPECT_EQ(answer([&](ntbv_qp *qp) { say(to(qp, Kind::Data, 1, 50, 50)); }), second) << "a hole";
    EXPECT_EQ(answer([&](ntbv_qp *qp) { say(to(qp, Kind::Data, 1, 50, 0, 60)); }), second);
    EXPECT_EQ(answer([&](ntbv_qp *qp) {
                  Header nak = to(qp, Kind::Nak, 0);
                  nak.value = NTBV_SUCCESS;
                  say(nak);
              }),
              first)
        << "an unknown code";
    EXPECT_EQ(memory.bytes, std::vector<std::uint8_t>(4096)) << "and no byte was written";
}

TEST_F(Hostile, AnswersThatAreRightAreTaken)
{
    greet();
    ntbv_qp *qp = connected();
    ASSERT_EQ(Work(NTBV_SEND, 1).post(qp), 0);
    ASSERT_EQ(Work(NTBV_READ, 2, memory.piece(100, 100)).to(memory).post(qp), 0);
    heard();
    say(to(qp, Kind::Data, 1, 60, 0, 100));
    say(to(qp, Kind::Data, 1, 40, 60, 100));
    heard();
    EXPECT_EQ(completions(host.cq), (Completions{{1, NTBV_SUCCESS}, {2, NTBV_SUCCESS}}));
    say(to(qp, Kind::Ack, 0));
    say(to(qp, Kind::Nak, 0));
    say(to(qp, Kind::Rnr, 0));
    say(to(qp, Kind::Ready, 0));
    say(to(qp, Kind::NotReady, 0));
    heard();
    EXPECT_EQ(state_of(qp), NTBV_RTS) << "of requests that are complete";
}

TEST_F(Hostile, ARequestThatChangesOnItsWayIsRefused)
{
    greet();
    const auto refused = [&](auto change, std::uint32_t code) {
        ntbv_qp *qp = connected();
        Header piece = to(qp, Kind::Write, 0, 8, 0, 24);
        piece.key = memory.key;
        piece.address = memory.address();
        say(piece);
        piece.offset = 8;
        change(piece);
        say(piece);
        const std::vector<Header> answers = heard();
        ASSERT_EQ(answers.size(), 1u);
        EXPECT_EQ(answers[0].kind, Kind::Nak);
        EXPECT_EQ(answers[0].value, code);
        EXPECT_EQ(state_of(qp), NTBV_ERR);
        EXPECT_EQ(host.events().size(), 1u);
    };
    refused([](Header &h) { h.total = 32; }, NTBV_REM_INV_REQ_ERR);
    refused([](Header &h) { h.offset = 12; }, NTBV_REM_INV_REQ_ERR);
    refused([](Header &h) { h.key ^= 1; }, NTBV_REM_INV_REQ_ERR);
    refused([](Header &h) { h.address += 8; }, NTBV_REM_INV_REQ_ERR);
    refused([](Header &h) { h.kind = Kind::Send; }, NTBV_REM_INV_REQ_ERR);
    refused([](Header &h) { h.flags = flag::immediate; }, NTBV_REM_INV_REQ_ERR);
    refused(
        [](Header &h) {
            h.kind = Kind::FetchAdd;
            h.bytes = 16;
        },
        NTBV_REM_INV_REQ_ERR);
}

// One of which a part has come is sent again from its beginning where the peer asks for all anew.
// It is divided where the ring ends, which is elsewhere then.
TEST_F(Hostile, ARequestThatComesAgainMayBeDividedElsewhere)
{
    greet();
    ntbv_qp *qp = connected();
    Header write = to(qp, Kind::Write, 0, 8, 0, 24);
    write.key = memory.key;
    write.address = memory.address();
    const auto piece = [&](std::uint32_t offset, std::uint32_t bytes, std::uint16_t attempt,
                           char with) {
        write.offset = offset;
        write.bytes = bytes;
        write.attempt = attempt;
        write.flags = offset + bytes == 24 ? flag::last : std::uint8_t{0};
        say(write, std::string(bytes, with).data());
    };
    piece(0, 8, 0, 'a');
    piece(8, 4, 0, 'a');
    EXPECT_TRUE(heard().empty());
    piece(0, 16, 1, 'b');
    piece(16, 8, 1, 'c');
    const std::vector<Header> answers = heard();
    ASSERT_EQ(answers.size(), 1u);
    EXPECT_EQ(answers[0].kind, Kind::Ack);
    EXPECT_EQ(std::string(memory.bytes.begin(), memory.bytes.begin() + 24),
              "bbbbbbbbbbbbbbbbcccccccc");
    EXPECT_EQ(state_of(qp), NTBV_RTS);
}

TEST_F(Hostile, AddressesThatWrapAreOutOfRange)
{
    greet();
    const std::uint64_t base = memory.address(), top = ~std::uint64_t{0};
    for (const std::uint64_t address : {top, top - 7, base + 4089, base - 1, std::uint64_t{0}}) {
        ntbv_qp *qp = connected();
        Header header = to(qp, Kind::Write, 0, 8);
        header.key = memory.key;
        header.address = address;
        say(header);
        ASSERT_EQ(heard().size(), 1u);
        EXPECT_EQ(state_of(qp), NTBV_ERR);
    }
    EXPECT_EQ(memory.bytes, std::vector<std::uint8_t>(4096));
}

TEST_F(Hostile, OtherQueuePairsThanThePeersAreNotHeard)
{
    greet();
    ntbv_qp *qp = connected();
    ASSERT_EQ(post_recv(qp, 1), 0);
    Header header = to(qp, Kind::Send, 0);
    header.from = 0x778;
    say(header);
    const std::vector<Header> answers = heard();
    ASSERT_EQ(answers.size(), 1u);
    EXPECT_EQ(answers[0].kind, Kind::NotReady);
    EXPECT_EQ(answers[0].to, 0x778u);
    EXPECT_TRUE(completions(host.recv_cq).empty());
    ASSERT_EQ(Work(NTBV_SEND, 5).post(qp), 0);
    header = to(qp, Kind::Ack, 0);
    header.from = 0x778;
    say(header);
    heard();
    EXPECT_TRUE(completions(host.cq).empty());
}

TEST_F(Hostile, RequestsToNobodyAreBoundedByWhatIsKeptForThem)
{
    greet();
    loopback->set_full(0, true);
    for (std::uint32_t i = 0; i < 500; ++i) {
        while (!say({.kind = Kind::Send, .flags = flag::last, .to = 0x100 + i, .from = i}))
            ntbv_engine_drive(host.engine);
        ntbv_engine_drive(host.engine);
    }
    loopback->set_full(0, false);
    const std::vector<Header> answers = heard();
    ASSERT_EQ(answers.size(), 65u);
    for (std::size_t i = 0; i < 64; ++i)
        EXPECT_EQ(answers[i].kind, Kind::NotReady);
    EXPECT_EQ(answers[64].kind, Kind::Again);
}

TEST_F(Hostile, AgainMakesEveryoneGoBackAndCostsNoTry)
{
    greet();
    ntbv_qp *qp = connected(), *idle = connected();
    ASSERT_EQ(Work(NTBV_SEND, 1).post(qp), 0);
    EXPECT_EQ(heard().size(), 1u);
    for (int i = 0; i < 20; ++i) {
        say({.kind = Kind::Again});
        EXPECT_TRUE(heard().empty());
        clock.advance_us(70000);
        const std::vector<Header> again = heard();
        ASSERT_EQ(again.size(), 1u);
        EXPECT_EQ(again[0].kind, Kind::Send);
        EXPECT_EQ(again[0].attempt, i + 1);
    }
    say(to(qp, Kind::Ack, 0));
    heard();
    EXPECT_EQ(completions(host.cq), (Completions{{1, NTBV_SUCCESS}}));
    EXPECT_EQ(state_of(idle), NTBV_RTS);
}

TEST_F(Hostile, WhoComesBackAcknowledgesNothingOfBefore)
{
    greet();
    ntbv_qp *qp = connected();
    ASSERT_EQ(Work(NTBV_SEND, 1).post(qp), 0);
    heard();
    loopback->kill();
    heard();
    gone.push_back(std::move(loopback));
    loopback = Loopback::create(1 << 16);
    ASSERT_EQ(host.attach(port(0), 2), 0);
    greet();
    say(to(qp, Kind::Ack, 0));
    Header request = to(qp, Kind::Send, 0);
    request.flags |= flag::ack;
    request.ack = 0;
    say(request);
    heard();
    EXPECT_TRUE(completions(host.cq).empty());
    clock.outlast_silence();
    EXPECT_EQ(completions(host.cq), (Completions{{1, NTBV_RETRY_EXC_ERR}}));
}

// A queue pair accepts an old request again without executing it, whatever it is.
TEST_F(Hostile, WhatIsSentTwiceIsExecutedOnce)
{
    greet();
    ntbv_qp *qp = connected();
    Header header = to(qp, Kind::FetchAdd, 0, 16);
    header.total = 8;
    header.flags = flag::last;
    header.bytes = 16;
    header.key = memory.key;
    header.address = memory.address();
    const std::uint64_t operands[2] = {1, 0};
    for (int i = 0; i < 5; ++i)
        say(header, operands);
    heard();
    std::uint64_t word;
    std::memcpy(&word, memory.bytes.data(), sizeof(word));
    EXPECT_EQ(word, 1u);
    EXPECT_EQ(state_of(qp), NTBV_RTS);
}

TEST_F(Hostile, AKeyThatHasEndedOrIsOfAnotherQueuePairReachesNothing)
{
    greet();
    Memory region(host.pd, 64, all_rights | NTBV_MW_BIND);
    ntbv_mw *mw = nullptr;
    std::uint32_t key = 0;
    ASSERT_EQ(ntbv_mw_create(host.pd, NTBV_MW_2, &mw, &key), 0);
    ntbv_qp *owner = connected(), *other = connected();
    ntbv_bind bind = {mw, key, region.key, region.address(), 64, NTBV_REMOTE_WRITE};
    Work work(NTBV_BIND_MW, 1);
    work.wr.bind = &bind;
    ASSERT_EQ(work.post(owner), 0);
    EXPECT_EQ(completions(host.cq), (Completions{{1, NTBV_SUCCESS}}));
    const auto write = [&](const ntbv_qp *qp, std::uint32_t seq, std::uint32_t offset) {
        Header header = to(qp, Kind::Write, seq, 8, offset, 16);
        header.key = key;
        header.address = region.address();
        say(header);
        const std::vector<Header> answers = heard();
        return answers.empty() ? 0u : answers[0].value;
    };
    const std::vector<std::uint8_t> zeroes(64);
    EXPECT_EQ(write(other, 0, 0), NTBV_REM_ACCESS_ERR);
    EXPECT_EQ(region.bytes, zeroes);
    // The window ends in the middle of a write.
    EXPECT_EQ(write(owner, 0, 0), 0u);
    EXPECT_NE(region.bytes, zeroes);
    ASSERT_EQ(Work(NTBV_LOCAL_INV, 2).imm(key).post(owner), 0);
    EXPECT_EQ(completions(host.cq), (Completions{{2, NTBV_SUCCESS}}));
    EXPECT_EQ(write(owner, 0, 8), NTBV_REM_ACCESS_ERR);
    EXPECT_TRUE(std::all_of(region.bytes.begin() + 8, region.bytes.end(),
                            [](std::uint8_t byte) { return byte == 0; }));
    ntbv_mw_destroy(mw);
}

TEST_F(Hostile, InvalidationWithImmediateDataOrOfAWriteEndsTheLink)
{
    for (const bool with_imm : {true, false}) {
        greet();
        Header header = to(connected(), with_imm ? Kind::Send : Kind::Write, 0);
        header.flags |= flag::invalidate | (with_imm ? flag::immediate : 0);
        say(header);
        heard();
        EXPECT_TRUE(loopback->dead());
        gone.push_back(std::move(loopback));
        loopback = Loopback::create(1 << 16);
        ASSERT_EQ(host.attach(port(0), 2), 0);
    }
}

// Anything at all: nothing outside of the one region that is open to the peer changes, each drive
// comes back, and an end of the link is the worst.
TEST_F(Hostile, RandomMessagesReachNothingElse)
{
    std::mt19937_64 random(20260101);
    const auto any = [&](std::uint64_t n) { return static_cast<std::uint32_t>(random() % n); };
    Memory open(host.pd, 256, all_rights), closed(host.pd, 256, NTBV_LOCAL_WRITE, 0x5a);
    Memory in(host.pd, 512, NTBV_LOCAL_WRITE), out(host.pd, 256, NTBV_LOCAL_WRITE);
    std::size_t links = 1, executed = 0;
    MemoryFiles files;
    const bool is_direct = can_exchange() && be_direct(*host.engine, files, NTBV_DIRECT_SENDS) == 0;
    const auto segment = files.create(2 * page);
    ASSERT_NE(segment, nullptr);
    registered_word(*segment).store(is_direct);
    std::uint64_t number = port(1).grant(segment, true);
    greet();
    std::vector<ntbv_qp *> qps;
    for (int round = 0; round < 60000; ++round) {
        for (std::size_t i = 0; i < qps.size(); ++i)
            if (state_of(qps[i]) == NTBV_ERR && any(4) == 0) {
                host.drop(qps[i]);
                qps.erase(qps.begin() + static_cast<long>(i));
                break;
            }
        if (qps.size() < 3 || any(100) == 0) {
            if (qps.size() == 8) {
                host.drop(qps.front());
                qps.erase(qps.begin());
            }
            ntbv_qp *qp = host.make(any(4) ? NTBV_RC : NTBV_UC);
            ntbv_qp_attr attr = attributes();
            const ntbv_qp_type type = NTBV_RC;
            if (to_init(qp, type, attr) != 0 || to_rtr(qp, type, 2, any(4), attr) != 0)
                to_rtr(qp, NTBV_UC, 2, any(4), attr);
            if (to_rts(qp, type) != 0)
                to_rts(qp, NTBV_UC);
            qps.push_back(qp);
        }
        ntbv_qp *qp = qps[any(qps.size())];
        switch (any(6)) {
        case 0:
            post_recv(qp, 1, in.all());
            break;
        case 1:
            Work(static_cast<ntbv_opcode>(any(10)), 1, out.piece(0, 8)).post(qp);
            break;
        case 2:
            clock.advance_us(100000);
            break;
        default:
            break;
        }
        Header header = {.kind = static_cast<Kind>(2 + any(16)),
                         .flags = static_cast<std::uint8_t>(any(16)),
                         .attempt = static_cast<std::uint16_t>(any(3)),
                         .to = ntbv_qp_number(qp),
                         .from = any(4),
                         .seq = any(6),
                         .bytes = 0,
                         .offset = 0,
                         .total = 0,
                         .value = any(40),
                         .key = any(3)   ? open.key
                                : any(2) ? closed.key
                                         : static_cast<std::uint32_t>(random()),
                         .ack = any(6),
                         .address = (any(3) ? open : closed).address() + any(256) - any(3) * 8};
        if (header.kind == Kind::FetchAdd || header.kind == Kind::CmpSwap) {
            header.bytes = 16;
            header.total = 8;
        } else if (header.kind == Kind::Send || header.kind == Kind::Write ||
                   header.kind == Kind::Data) {
            header.offset = any(4) ? 0 : 8 * any(4);
            header.bytes = any(3) ? 8 : 1 + any(400);
            const bool last = any(3) != 0;
            header.total = header.offset + header.bytes + (last ? 0 : 1 + any(30));
            header.flags = static_cast<std::uint8_t>((header.flags & ~flag::last) | last);
        } else if (header.kind == Kind::Read) {
            header.total = any(3) ? any(300) : any(max_request);
        }
        if (header.kind == Kind::Send && any(4) == 0) {
            header.flags =
                static_cast<std::uint8_t>((header.flags & ~flag::immediate) | flag::invalidate);
            header.value = any(2) ? open.key : static_cast<std::uint32_t>(random());
        }
        if (header.kind == Kind::Lend || header.kind == Kind::Grant) {
            header.bytes = header.total = sizeof(Grant);
        } else if (header.kind == Kind::Send && any(8) == 0) {
            header.bytes = header.offset = 0;
            header.total = 1 + any(300);
            header.flags |= flag::lent | flag::last;
        }
        const Grant grants = {any(3) != 0 ? number : any(100), header.address - any(200),
                              any(2) != 0 ? page : random(), any(16), 0};
        if (any(2000) == 0)
            header.kind = static_cast<Kind>(any(256));
        say(header, header.bytes == sizeof(Grant) ? &grants : nullptr);
        executed += heard().size();
        if (loopback->dead()) {
            gone.push_back(std::move(loopback));
            ++links;
            loopback = Loopback::create(1 << 16);
            ASSERT_EQ(host.attach(port(0), 2), 0);
            number = port(1).grant(segment, true);
            greet();
        }
        ASSERT_EQ(closed.bytes, std::vector<std::uint8_t>(256, 0x5a));
        completions(host.cq);
        completions(host.recv_cq);
        host.events();
    }
    EXPECT_GT(executed, 1000u) << "the messages were so bad that nothing was tried";
    EXPECT_GT(links, 1u);
    EXPECT_NE(open.bytes, std::vector<std::uint8_t>(256))
        << "the open region was not reached either";
    while (!qps.empty()) {
        host.drop(qps.back());
        qps.pop_back();
    }
}

// An answer goes to the number that a datagram came from.
TEST_F(Hostile, ANodeSendsDatagramsForItselfAlone)
{
    ntbv_qp *qp = host.make(NTBV_UD);
    EXPECT_EQ(to_init(qp, NTBV_UD), 0);
    EXPECT_EQ(to_rtr(qp, NTBV_UD, 2, peer_number), 0);
    Memory target{host.pd, 100};
    ASSERT_EQ(post_recv(qp, 1, target.all()), 0);
    greet();
    Header header = to(qp, Kind::Send, 0, 8);
    header.key = 0x1234; // of hosts.hpp
    header.from = peer_number | 1U << slot_bits;
    say(header);
    heard();
    ntbv_wc wc;
    EXPECT_EQ(ntbv_cq_poll(host.recv_cq, 1, &wc), 0);
    header.from = peer_number;
    say(header);
    heard();
    EXPECT_EQ(ntbv_cq_poll(host.recv_cq, 1, &wc), 1);
    host.drop(qp);
}

// ---- memory that is granted

/// The test grants what it likes.
class HostileGrants : public Hostile
{
protected:
    void SetUp() override
    {
        if (!can_exchange())
            GTEST_SKIP() << "the kernel has no userfaultfd for this user";
        ASSERT_EQ(be_direct(*host.engine, files), 0);
        Hostile::SetUp();
        qp = connected();
        greet();
    }
    /// The engine asks with a request, which is answered.
    void be_asked(std::uint32_t key)
    {
        Work write(NTBV_WRITE, 1, memory.piece(0, 8));
        write.wr.remote_key = key;
        write.wr.remote_address = 0x1000;
        ASSERT_EQ(write.post(qp), 0);
        const std::vector<Header> said = heard();
        ASSERT_EQ(said.size(), 1u);
        EXPECT_EQ(said[0].flags & flag::ask, flag::ask);
        say(to(qp, Kind::Ack, said[0].seq));
        heard();
        ASSERT_EQ(completions(host.cq), (Completions{{1, NTBV_SUCCESS}}));
    }
    void grant(std::uint32_t key, const Grant &what)
    {
        Header header = to(qp, Kind::Grant, 0, sizeof(Grant));
        header.key = key;
        say(header, &what);
        heard();
    }
    /// Whether the next write of 8 bytes there needs no message.
    bool goes_directly(std::uint32_t key, std::uint64_t address)
    {
        const std::uint64_t before = ntbv_engine_count(host.engine, NTBV_COUNT_WRITES);
        Work write(NTBV_WRITE, 2, memory.piece(0, 8));
        write.wr.remote_key = key;
        write.wr.remote_address = address;
        EXPECT_EQ(write.post(qp), 0);
        for (const Header &header : heard())
            if (header.kind == Kind::Write)
                say(to(qp, Kind::Ack, header.seq));
        heard();
        EXPECT_EQ(completions(host.cq), (Completions{{2, NTBV_SUCCESS}}));
        return ntbv_engine_count(host.engine, NTBV_COUNT_WRITES) != before;
    }
    std::uint64_t granted(std::uint64_t pages, bool writable = true)
    {
        segments.push_back(files.create(pages * page));
        registered_word(*segments.back()).store(1);
        return port(1).grant(segments.back(), writable);
    }

    static constexpr std::uint32_t may_write = NTBV_REMOTE_WRITE, may_read = NTBV_REMOTE_READ;
    MemoryFiles files;
    std::vector<std::shared_ptr<Segment>> segments;
    ntbv_qp *qp = nullptr;
};

TEST_F(HostileGrants, WhatFitsIsUsedAndNothingBeside)
{
    be_asked(0x10001);
    grant(0x10001, {granted(2), 0x1000, page, may_write, 0});
    EXPECT_TRUE(goes_directly(0x10001, 0x1000));
    EXPECT_TRUE(goes_directly(0x10001, 0x1000 + page - 8));
    EXPECT_FALSE(goes_directly(0x10001, 0x1000 + page - 7)) << "the page behind is the word's";
    EXPECT_FALSE(goes_directly(0x10001, 0xfff));
    EXPECT_FALSE(goes_directly(0x10001, ~0ull - 3));
    EXPECT_FALSE(goes_directly(0x10002, 0x1000)) << "has the same place";
}

TEST_F(HostileGrants, WhatDoesNotFitIsRefused)
{
    const std::uint64_t two = granted(2), to_read = granted(2, false), word_alone = granted(1);
    const Grant refused[] = {
        {two, 0x1000, page + 1, may_write, 0},      // longer than the segment
        {two, 0x1000, ~0ull, may_write, 0},         //
        {two, ~0ull - 5, page, may_write, 0},       // wraps
        {two, 0x1000, 0, may_write, 0},             // nothing
        {two, 0x1000, page, 0, 0},                  // no right
        {two, 0x1000, page, NTBV_LOCAL_WRITE, 0},   // none that peers have
        {two, 0x1000, page, may_read, 0},           // not the one that is needed
        {to_read, 0x1000, page, may_write, 0},      // cannot be written to
        {word_alone, 0x1000, 1, may_write, 0},      // has nothing but the word
        {0, 0x1000, page, may_write, 0},            // no number
        {two + 1000000, 0x1000, page, may_write, 0} // not granted
    };
    std::uint32_t key = 0x10001;
    for (const Grant &grants : refused) {
        be_asked(key);
        grant(key, grants);
        EXPECT_FALSE(goes_directly(key, 0x1000)) << key;
        key += 0x10000;
    }
    // After all that the next one is good, and what came before it is not.
    be_asked(key);
    grant(key - 0x10000, {two, 0x1000, page, may_write, 0});
    grant(key, {two, 0x1000, page, may_write, 0});
    EXPECT_FALSE(goes_directly(key - 0x10000, 0x1000));
    EXPECT_TRUE(goes_directly(key, 0x1000));
    EXPECT_FALSE(loopback->dead());
}

TEST_F(HostileGrants, WhatNobodyAskedForIsIgnored)
{
    const std::uint64_t two = granted(2);
    grant(0x10001, {two, 0x1000, page, may_write, 0});
    be_asked(0x10001);
    EXPECT_FALSE(goes_directly(0x10001, 0x1000));
    grant(0x10001, {two, 0x1000, page, may_write, 0});
    EXPECT_TRUE(goes_directly(0x10001, 0x1000));
    for (int i = 0; i < 50; ++i)
        grant(0x10001, {granted(3), 0x1000, 2 * page, may_write, 0});
    EXPECT_FALSE(goes_directly(0x10001, 0x1000 + page)) << "the first one is what it is";
    Header strange = to(qp, Kind::Grant, 0, sizeof(Grant));
    strange.from = peer_number + 1;
    const Grant other = {two, 0x1000, page, may_write, 0};
    say(strange, &other);
    strange = to(qp, Kind::Grant, 0, sizeof(Grant));
    strange.to = 0xffffff;
    say(strange, &other);
    heard();
    EXPECT_FALSE(loopback->dead());
}

TEST_F(HostileGrants, OneThatIsRevokedAndGrantedForEverCostsMessages)
{
    for (int i = 0; i < 200; ++i) {
        be_asked(0x10001);
        const std::uint64_t number = granted(2);
        grant(0x10001, {number, 0x1000, page, may_write, 0});
        registered_word(*segments.back()).store(0);
        EXPECT_FALSE(goes_directly(0x10001, 0x1000));
        port(1).revoke(number);
        segments.clear();
        // It has asked with that one.
        grant(0x10001, {number, 0x1000, page, may_write, 0});
        EXPECT_FALSE(goes_directly(0x10001, 0x1000));
        Work other(NTBV_WRITE, 3, memory.piece(0, 8));
        other.wr.remote_key = 0x10002; // takes the place
        ASSERT_EQ(other.post(qp), 0);
        say(to(qp, Kind::Ack, heard().at(0).seq));
        heard();
        completions(host.cq);
    }
}

// ---- data that are lent

/// A port that answers later what is to be opened, if it may ask.
class Later final : public Port
{
public:
    explicit Later(Port &port) : port_(port) {}
    std::uint32_t longest() const override { return port_.longest(); }
    std::uint32_t suitable(std::uint32_t bytes) override { return port_.suitable(bytes); }
    std::byte *reserve(std::uint32_t bytes) override { return port_.reserve(bytes); }
    void commit(std::uint32_t bytes, const iovec *parts, int n) override
    {
        port_.commit(bytes, parts, n);
    }
    void publish() override { port_.publish(); }
    bool receive(Incoming &message) override { return port_.receive(message); }
    void release() override { port_.release(); }
    bool alive() override { return port_.alive(); }
    void close() override { port_.close(); }
    bool arm(bool for_room) override { return port_.arm(for_room); }
    void disarm() override { port_.disarm(); }
    int bell() const override { return port_.bell(); }
    void leave_by_call(std::uint64_t word) override { port_.leave(word); }
    std::uint64_t left() const override { return port_.left(); }
    std::uint64_t grant(const std::shared_ptr<Segment> &segment, bool writable) override
    {
        return port_.grant(segment, writable);
    }
    void revoke(std::uint64_t number) override { port_.revoke(number); }
    Opening open(std::uint64_t number) override
    {
        if (!waits)
            return port_.open(number);
        asked.push_back(number);
        return {nullptr, false, true};
    }
    void answer(ntbv_engine &engine, std::uint64_t number)
    {
        std::erase(asked, number);
        Opening opening = port_.open(number);
        const Visit visit(engine.lock());
        engine.opened(*this, number, std::move(opening.segment), opening.writable);
    }
    bool waits = false;
    std::vector<std::uint64_t> asked;

private:
    Port &port_;
};

/// Says what it likes of the data of its own SENDs, and of those that it is told of.
class HostileLender : public HostileGrants
{
protected:
    bool lend(std::uint32_t key, const Grant &what, std::uint32_t place = 0)
    {
        Header header = to(qp, Kind::Lend, 0, sizeof(Grant));
        header.key = key;
        header.value = place;
        header.attempt = ++serial_;
        say(header, &what);
        return has_mapped(key, place);
    }
    bool has_mapped(std::uint32_t key, std::uint32_t place)
    {
        bool mapped = false;
        for (const Header &said : heard())
            mapped |= said.kind == Kind::Mapped && said.key == key && said.value == place &&
                      said.attempt == serial_;
        return mapped;
    }
    /// @return what is answered, if it is one thing
    Kind send(std::uint32_t key, std::uint64_t address, std::uint32_t bytes)
    {
        Header header = to(qp, Kind::Send, seq_, 0, 0, bytes);
        header.flags = flag::last | flag::lent;
        header.attempt = attempt_;
        header.key = key;
        header.address = address;
        say(header);
        const std::vector<Header> answers = heard();
        const Kind kind = answers.size() == 1 ? answers[0].kind : Kind{0};
        seq_ += kind == Kind::Ack;
        attempt_ = static_cast<std::uint16_t>(attempt_ + (kind == Kind::Lacks));
        return kind;
    }
    std::uint32_t seq_ = 0;
    std::uint16_t attempt_ = 0, serial_ = 0;
};

TEST_F(HostileLender, NothingButWhatWasLentIsRead)
{
    ASSERT_TRUE(lend(0x10001, {granted(2, false), 0x1000, page, NTBV_REMOTE_READ, 0}));
    std::memset(segments.back()->data(), 0x77, page);
    for (std::uint64_t id = 0; id < 3; ++id)
        ASSERT_EQ(post_recv(qp, id, memory.all()), 0);
    EXPECT_EQ(send(0x10001, 0x1000, 4096), Kind::Ack);
    EXPECT_EQ(memory.bytes, std::vector<std::uint8_t>(4096, 0x77));
    memory.bytes.assign(4096, 1);
    EXPECT_EQ(send(0x10001, 0x1000, 4097), Kind::Lacks) << "the page behind is the word's";
    EXPECT_EQ(send(0x10001, 0xfff, 4096), Kind::Lacks);
    EXPECT_EQ(send(0x10001, ~0ull - 3, 8), Kind::Lacks);
    EXPECT_EQ(send(0x10002, 0x1000, 8), Kind::Lacks);
    EXPECT_EQ(send(0x20001, 0x1000, 8), Kind::Lacks);
    EXPECT_EQ(send(0, 0, 8), Kind::Lacks);
    EXPECT_EQ(memory.bytes, std::vector<std::uint8_t>(4096, 1));
    registered_word(*segments.back()).store(0);
    EXPECT_EQ(send(0x10001, 0x1000, 8), Kind::Lacks);
    EXPECT_EQ(send(0x10001, 0x1000, 8), Kind::Lacks) << "it is forgotten";
    // The data come after all, for the receive that was taken.
    Header whole = to(qp, Kind::Send, seq_, 8);
    whole.attempt = attempt_;
    say(whole);
    heard();
    EXPECT_EQ(completions(host.recv_cq), (Completions{{0, NTBV_SUCCESS}, {1, NTBV_SUCCESS}}));
    EXPECT_FALSE(loopback->dead());
}

// What is lent is for that alone.
TEST_F(HostileLender, ItGivesNoRightToReadOrWrite)
{
    ASSERT_TRUE(lend(0x10001, {granted(2), 0x1000, page, may_write | may_read, 0}));
    EXPECT_FALSE(goes_directly(0x10001, 0x1000));
}

TEST_F(HostileLender, WhatDoesNotFitIsNotMapped)
{
    const std::uint64_t two = granted(2, false);
    for (const Grant &wrong :
         {Grant{two, 0x1000, page + 1, may_read, 0}, Grant{two, 0x1000, ~0ull, may_read, 0},
          Grant{two, ~0ull - 5, page, may_read, 0}, Grant{two, 0x1000, 0, may_read, 0},
          Grant{0, 0x1000, page, may_read, 0}, Grant{two + 1000000, 0x1000, page, may_read, 0}})
        EXPECT_FALSE(lend(0x10001, wrong));
    EXPECT_FALSE(lend(0, {two, 0x1000, page, may_read, 0}));
    for (const std::uint32_t place : {8u, 31u, 32u, ~0u})
        EXPECT_FALSE(lend(0x10001, {two, 0x1000, page, may_read, 0}, place));
    EXPECT_TRUE(lend(0x10001, {two, 0x1000, page, may_read, 0}));
    EXPECT_FALSE(loopback->dead());
}

// However many regions and queue pairs: own requests find places.
TEST_F(HostileLender, ItDoesNotTakeAllPlaces)
{
    std::vector<std::uint64_t> numbers;
    for (int i = 0; i < 40; ++i)
        numbers.push_back(granted(2, false));
    std::uint32_t mapped = 0;
    ntbv_qp *const first = qp;
    for (std::uint32_t i = 0; i < 5; ++i) {
        qp = connected();
        for (std::uint32_t place = 0; place < 8; ++place)
            mapped +=
                lend(0x10000 + place, {numbers[8 * i + place], 0x1000, page, may_read, 0}, place);
    }
    EXPECT_EQ(mapped, 32u);
    EXPECT_TRUE(lend(0x10000, {numbers[0], 0x1000, page, may_read, 0}, 3)) << "is there already";
    qp = first;
    be_asked(0x10001);
    grant(0x10001, {granted(2), 0x1000, page, may_write, 0});
    EXPECT_TRUE(goes_directly(0x10001, 0x1000));
}

// LACKS about one try is void once another one was taken, and must not take its acknowledgement.
TEST_F(HostileLender, ATryThatCameMeanwhileIsAcknowledged)
{
    ASSERT_EQ(post_recv(qp, 0, memory.all()), 0);
    Header lent = to(qp, Kind::Send, 0, 0, 0, 4096);
    lent.flags = flag::last | flag::lent;
    lent.key = 0x10001;
    say(lent);
    Header whole = to(qp, Kind::Send, 0, 8);
    whole.attempt = 1;
    say(whole);
    const std::vector<Header> answers = heard();
    ASSERT_EQ(answers.size(), 1u);
    EXPECT_EQ(answers[0].kind, Kind::Ack);
    EXPECT_EQ(answers[0].seq, 0u);
    EXPECT_EQ(completions(host.recv_cq), (Completions{{0, NTBV_SUCCESS}}));
}

TEST_F(HostileLender, WhoLacksWhatHadItsDataEndsTheQueuePair)
{
    ASSERT_EQ(Work(NTBV_SEND, 1, memory.piece(0, 100)).post(qp), 0);
    ASSERT_EQ(heard().size(), 1u);
    Header lacks = to(qp, Kind::Lacks, 0);
    lacks.key = memory.key;
    say(lacks);
    heard();
    EXPECT_EQ(completions(host.cq), (Completions{{1, NTBV_BAD_RESP_ERR}}));
}

class HostileWhileOpening : public HostileLender
{
protected:
    HostileWhileOpening() : later(loopback->end(0)) {}
    Port &port(int end) override { return end == 0 ? later : loopback->end(end); }
    Later later;
};

// A place is not given again while the port is asked: what is opened would be another's.
TEST_F(HostileWhileOpening, WhatIsAskedForIsNobodyElses)
{
    later.waits = true;
    const std::uint64_t good = granted(2, false);
    std::memset(segments.back()->data(), 0x11, page);
    const std::uint64_t evil = granted(2, false);
    std::memset(segments.back()->data(), 0x66, page);
    ntbv_qp *const other = qp;
    qp = connected();
    EXPECT_FALSE(lend(0x10001, {good, 0x1000, page, may_read, 0}));
    const std::uint16_t serial = serial_;
    ntbv_qp *const victim = std::exchange(qp, other);
    for (std::uint32_t i = 0; i < 200; ++i)
        EXPECT_FALSE(lend(0x20000 + i, {1000 + i, 0x1000, page, may_read, 0}, i % 8));
    for (std::uint32_t i = 0; i < 20; ++i) {
        qp = connected();
        for (std::uint32_t place = 0; place < 8; ++place)
            EXPECT_FALSE(
                lend(0x30000 + place, {2000 + 8 * i + place, 0x1000, page, may_read, 0}, place));
    }
    EXPECT_LE(later.asked.size(), 32u);
    EXPECT_FALSE(lend(0x40000, {evil, 0x1000, page, may_read, 0}));
    for (const std::uint64_t number : std::vector<std::uint64_t>(later.asked))
        if (number != good)
            later.answer(*host.engine, number);
    heard();
    qp = victim;
    serial_ = serial;
    later.answer(*host.engine, good);
    EXPECT_TRUE(has_mapped(0x10001, 0));
    ASSERT_EQ(post_recv(qp, 0, memory.all()), 0);
    EXPECT_EQ(send(0x10001, 0x1000, 4096), Kind::Ack);
    EXPECT_EQ(memory.bytes, std::vector<std::uint8_t>(4096, 0x11));
    EXPECT_TRUE(later.asked.empty());
    // Whose queue pair goes meanwhile.
    EXPECT_FALSE(lend(0x10002, {evil, 0x1000, page, may_read, 0}, 1));
    host.drop(qp);
    later.answer(*host.engine, evil);
    heard();
    EXPECT_FALSE(loopback->dead());
}

TEST_F(HostileLender, OtherKindsOfQueuePairsAreLentNothing)
{
    qp = host.make(NTBV_UC);
    to_peer(qp, NTBV_UC, 2, peer_number);
    ASSERT_EQ(post_recv(qp, 1, memory.all()), 0);
    EXPECT_FALSE(lend(0x10001, {granted(2, false), 0x1000, page, may_read, 0}));
    EXPECT_EQ(send(0x10001, 0x1000, 8), Kind{0});
    EXPECT_TRUE(completions(host.recv_cq).empty());
    EXPECT_FALSE(loopback->dead());
}

TEST_F(HostileGrants, QuestionsAreAnsweredByWhatTheKeyMayDo)
{
    auto *const own = static_cast<std::byte *>(
        mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    std::uint32_t key = 0;
    ASSERT_EQ(ntbv_mr_register(host.pd, own, page, 0, all_rights, &key), 0);
    const auto grants = [&](Header request) {
        std::uint32_t n = 0;
        say(request);
        for (const Header &header : heard())
            n += header.kind == Kind::Grant;
        return n;
    };
    std::uint32_t seq = 0;
    Header write = to(qp, Kind::Write, seq++, 8);
    write.key = key;
    EXPECT_EQ(grants(write), 0u) << "did not ask";
    write.flags |= flag::ask;
    write.seq = seq++;
    EXPECT_EQ(grants(write), 1u);
    write.seq = seq++;
    EXPECT_EQ(grants(write), 1u) << "may ask again";
    write.seq = seq - 1;
    EXPECT_EQ(grants(write), 0u) << "was executed already";
    write.seq = seq++;
    write.key ^= 1;
    EXPECT_EQ(grants(write), 0u) << "a key that is none";
    EXPECT_EQ(ntbv_mr_deregister(host.pd, key), 0);
    munmap(own, page);
    Header send = to(qp, Kind::Send, seq, 8);
    send.flags |= flag::ask;
    say(send);
    heard();
    EXPECT_TRUE(loopback->dead());
}

} // namespace

// SPDX-License-Identifier: BSD-3-Clause
// Producer and consumer over memory that tears, delays and reorders stores; and against a peer that
// writes whatever it likes.
#include <algorithm>
#include <cerrno>
#include <deque>

#include <gtest/gtest.h>

#include "checked_mem.hpp"
#include "pair.hpp"
#include "queue/consumer.hpp"
#include "queue/engine_producer.hpp"
#include "queue/in_place.hpp"

namespace test_queue
{

using namespace plx;
using namespace plx::queue;

namespace
{

template <class Mem>
const Ops checked_ops{"checked",
                      PLX_VARIANT::tx_burst<Mem>,
                      PLX_VARIANT::rx_burst<Mem>,
                      PLX_VARIANT::tx_burst_engine<Mem>,
                      nullptr,
                      nullptr,
                      PLX_VARIANT::tx_reserve<Mem>,
                      PLX_VARIANT::tx_commit<Mem>};

struct Flying {
    uint32_t length, id;
};

uint64_t meta_of(uint32_t id)
{
    return wire::mix(id);
}

/// Sends up to five messages; those that do not go are given up. @return false: the sender found
/// its peer at fault
bool send_some(Pair &pair, MemModel &memory, uint32_t &id, std::deque<Flying> &flying)
{
    std::vector<rte_mbuf *> in;
    std::vector<Flying> what;
    std::vector<Meta> meta;
    for (unsigned n = memory.random() % 6; n > 0; n--, id++) {
        const uint32_t length = memory.random() % (memory.random() % 3 == 0 ? 1400 : 130);
        in.push_back(pair.message(length, id, 1 + memory.random() % 2));
        what.push_back({length, id});
        meta.push_back({meta_of(id), 0, 0});
    }
    const int sent = pair.send(in, meta.data());
    for (size_t i = 0; i < in.size(); i++)
        if (static_cast<int>(i) < sent)
            flying.push_back(what[i]);
        else
            rte_pktmbuf_free(in[i]);
    return sent >= 0;
}

/// Builds one message in place, if there is room. @return false: as send_some()
bool build_one(Pair &pair, MemModel &memory, uint32_t &id, std::deque<Flying> &flying)
{
    const uint32_t length = 1 + memory.random() % 600;
    int rc = 0;
    const std::vector<Room> rooms = pair.reserve(3, &rc);
    if (rooms.empty())
        return rc == 0;
    if (length > rooms.size() * rooms[0].bytes || memory.random() % 8 == 0) {
        tx_abort(pair.tx_half);
        return true;
    }
    for (uint32_t i = 0; i < length; i++) {
        const std::byte byte = pattern(id, i);
        auto *at = static_cast<std::byte *>(rooms[i / rooms[0].bytes].address);
        memory.store(at + i % rooms[0].bytes, &byte, 1);
    }
    memory.step(memory.random() % 64);
    const Meta meta{meta_of(id), 0, 0};
    rc = pair.commit({length}, &meta);
    if (rc == 1)
        flying.push_back({length, id});
    id++;
    tx_abort(pair.tx_half); // buffers that it did not need
    return rc == 1;
}

/// One seed of traffic. @return true when every message arrived whole and in order.
bool traffic_is_right(Pair &pair, unsigned seed, MemModel::Breach breach)
{
    MemModel memory(seed, breach);
    if (LateEngine *const engine = pair.options.engine)
        memory.beside = [engine](unsigned n) { engine->step(n); };
    std::deque<Flying> flying;
    uint32_t id = seed * 1000;
    bool right = true;
    for (unsigned round = 0; round < 400 && right; round++) {
        if (round < 120)
            right = send_some(pair, memory, id, flying) &&
                    (memory.random() % 3 != 0 || build_one(pair, memory, id, flying));
        memory.step(memory.random() % 64);
        rte_mbuf *mbufs[8];
        Meta meta[8];
        const int got = pair.rx(mbufs, meta, 1 + memory.random() % 8);
        right = right && got >= 0;
        for (int i = 0; i < got; i++) {
            right = right && !flying.empty() && meta[i].data == meta_of(flying.front().id) &&
                    Pair::matches(mbufs[i], flying.front().length, flying.front().id);
            if (!flying.empty())
                flying.pop_front();
            rte_pktmbuf_free(mbufs[i]);
        }
    }
    memory.all_arrive();
    return right && flying.empty();
}

constexpr PairOptions small{.ring_lines = 64,
                            .buffers = 64,
                            .buf_bytes = 256,
                            .buffers_target = 28,
                            .inline_max = 300,
                            .max_message = 2000};

constexpr unsigned seeds = 300;

/// @return the first seed below `seeds` that goes wrong, or `seeds`.
unsigned first_wrong_seed(const Ops &ops, LateEngine *engine = nullptr,
                          MemModel::Breach breach = MemModel::Breach::none,
                          Stores stores = Stores::plain)
{
    PairOptions options = small;
    options.stores = stores;
    options.engine = engine;
    options.engine_min = 500;
    Pair pair(ops, options);
    unsigned without_engine = 0;
    for (unsigned seed = 0; seed < seeds; seed++) {
        const uint64_t before = tx_stats(pair.tx_half).dma_messages;
        if (!traffic_is_right(pair, seed, breach))
            return seed;
        without_engine += tx_stats(pair.tx_half).dma_messages == before ? 1 : 0;
        pair.reopen(seed + 100);
    }
    EXPECT_TRUE(engine == nullptr || without_engine < seeds / 10) << without_engine;
    pair.close();
    EXPECT_TRUE(pair.nothing_leaked());
    EXPECT_TRUE(pair.guards_intact());
    return seeds;
}

TEST(Checked, PlainIsRightInAnyAllowedOrder)
{
    EXPECT_EQ(first_wrong_seed(checked_ops<CheckedPlain>), seeds);
}

TEST(Checked, WriteCombiningIsRightInAnyAllowedOrder)
{
    EXPECT_EQ(first_wrong_seed(checked_ops<CheckedWriteCombining>), seeds);
}

TEST(Checked, WholeLineStoresAreRightInAnyAllowedOrder)
{
    EXPECT_EQ(first_wrong_seed(checked_ops<CheckedDirectStore>), seeds);
}

TEST(Checked, NonTemporalStoresAreRightInAnyAllowedOrder)
{
    EXPECT_EQ(first_wrong_seed(checked_ops<CheckedPlain>, nullptr, MemModel::Breach::none,
                               Stores::non_temporal),
              seeds);
}

// The proof that the model can find a fault: take one ordering away.
TEST(Checked, AMissingFenceBehindNonTemporalStoresIsFound)
{
    EXPECT_LT(first_wrong_seed(checked_ops<CheckedPlain>, nullptr,
                               MemModel::Breach::non_temporal_fence, Stores::non_temporal),
              seeds);
}

TEST(Checked, AMissingReleaseIsFound)
{
    EXPECT_LT(first_wrong_seed(checked_ops<CheckedPlain>, nullptr, MemModel::Breach::release),
              seeds);
}

TEST(Checked, AMissingFenceIsFound)
{
    EXPECT_LT(
        first_wrong_seed(checked_ops<CheckedWriteCombining>, nullptr, MemModel::Breach::body_fence),
        seeds);
}

TEST(Checked, AMissingFenceBeforeWholeLinesIsFound)
{
    EXPECT_LT(
        first_wrong_seed(checked_ops<CheckedDirectStore>, nullptr, MemModel::Breach::body_fence),
        seeds);
}

// The same with a copy engine, whose copies are late against the CPU's stores in both directions.
TEST(CheckedEngine, IsRightBesidePlainStores)
{
    LateEngine engine(64);
    EXPECT_EQ(first_wrong_seed(checked_ops<CheckedPlain>, &engine), seeds);
}

TEST(CheckedEngine, IsRightBesideWriteCombining)
{
    LateEngine engine(64);
    EXPECT_EQ(first_wrong_seed(checked_ops<CheckedWriteCombining>, &engine), seeds);
}

TEST(CheckedEngine, IsRightBesideWholeLineStores)
{
    LateEngine engine(64);
    EXPECT_EQ(first_wrong_seed(checked_ops<CheckedDirectStore>, &engine), seeds);
}

TEST(CheckedEngine, AnMbufFreedTooEarlyIsFound)
{
    LateEngine engine(64, 1, LateEngine::Breach::done_early);
    EXPECT_LT(first_wrong_seed(checked_ops<CheckedPlain>, &engine), seeds);
}

TEST(CheckedEngine, CopiesOutOfOrderAreFound)
{
    LateEngine engine(64, 1, LateEngine::Breach::unordered);
    EXPECT_LT(first_wrong_seed(checked_ops<CheckedPlain>, &engine), seeds);
}

TEST(CheckedEngine, AHeaderLineInOneCopyIsFound)
{
    LateEngine engine(64, 1, LateEngine::Breach::heads_whole);
    EXPECT_LT(first_wrong_seed(checked_ops<CheckedPlain>, &engine), seeds);
}

/// Eight bytes of anything, or of something nearly right: a hostile peer knows the tags.
uint64_t hostile_word(MemModel &random, uint32_t tag)
{
    const uint64_t high = random.random();
    switch (random.random() % 4) {
    case 0:
        return high << 32 | random.random();
    case 1:
        return uint64_t{tag} | high << 32;
    case 2:
        return uint64_t{tag} | uint64_t{random.random() % 1500} << 32 | high << 56;
    default:
        return uint64_t{tag} | uint64_t{random.random() % 20} << 32;
    }
}

void scribble(std::byte *line, uint64_t word, MemModel &random)
{
    std::memcpy(line, &word, sizeof(word));
    for (size_t at = 8; at < 64; at += 4) {
        const uint32_t junk = random.random() >> (random.random() % 32);
        std::memcpy(line + at, &junk, sizeof(junk));
    }
}

TEST(Hostile, ARingOfJunkIsRefusedOrTaken)
{
    unsigned broken = 0, taken = 0;
    Pair pair(*select_ops(Policy::plain), small);
    for (unsigned seed = 0; seed < 400; seed++) {
        MemModel random(seed);
        for (unsigned round = 0; round < 60; round++) {
            const uint64_t at = pair.rx_half->tail + random.random() % 4;
            scribble(pair.rx_half->ring.line(at), hostile_word(random, pair.rx_half->ring.tag(at)),
                     random);
            rte_mbuf *mbufs[8];
            const unsigned most = random.random() % 2 == 0 ? 1 : 8; // one alone has ways of its own
            const int got = pair.rx(mbufs, nullptr, most);
            ASSERT_TRUE(got >= 0 || got == -EPROTO);
            ASSERT_LE(got, static_cast<int>(most));
            for (int i = 0; i < got; i++) {
                ASSERT_LE(mbufs[i]->pkt_len, small.max_message);
                rte_mbuf_sanity_check(mbufs[i], 1);
                rte_pktmbuf_free(mbufs[i]);
            }
            taken += got > 0;
            broken += got < 0;
        }
        ASSERT_LE(rx_stats(pair.rx_half).bad_peer, seed + 1);
        pair.reopen(seed + 10);
    }
    EXPECT_GT(broken, 0u);
    EXPECT_GT(taken, 0u);
    pair.close();
    EXPECT_TRUE(pair.nothing_leaked());
    EXPECT_TRUE(pair.guards_intact());
}

/// A line of the receive-buffer ring whose buffers lie around both ends of the allowed range, most
/// inside.
void post_junk(Pair &pair, MemModel &random)
{
    const TxSetup &s = pair.tx_setup;
    const uint64_t at = pair.tx_half->buffer_ring_read + random.random() % 2;
    uint32_t line[16];
    const uint64_t word = hostile_word(random, pair.tx_half->buffer_ring.tag(at));
    std::memcpy(line, &word, sizeof(word));
    for (uint32_t &offset : line) {
        if (&offset < line + 2)
            continue;
        const uint32_t near = random.random() % 40 == 0 ? random.random() : 0;
        offset =
            s.peer_buf_begin + near + random.random() % (s.peer_buf_end - s.peer_buf_begin - 3);
    }
    std::memcpy(pair.tx_half->buffer_ring.line(at), line, sizeof(line));
}

TEST(Hostile, JunkInCreditsAndPostedBuffersNeverMovesAStoreOutside)
{
    unsigned broken = 0;
    Pair pair(*select_ops(Policy::plain), small);
    auto *back = const_cast<std::byte *>(pair.tx_setup.buffer_ring);
    for (unsigned seed = 0; seed < 400; seed++) {
        MemModel random(seed);
        for (unsigned round = 0; round < 40; round++) {
            post_junk(pair, random);
            if (random.random() % 4 == 0) {
                const uint64_t credit = hostile_word(random, pair.tx_setup.back_base);
                std::memcpy(back - 64, &credit, sizeof(credit));
            }
            rte_mbuf *m = pair.message(random.random() % 1200, round);
            const int sent = pair.tx(&m, nullptr, 1);
            ASSERT_TRUE(sent == 0 || sent == 1 || sent == -EPROTO) << sent;
            if (sent != 1)
                rte_pktmbuf_free(m);
            broken += sent < 0;
        }
        pair.reopen(seed + 10);
    }
    EXPECT_GT(broken, 0u);
    EXPECT_GT(tx_stats(pair.tx_half).cpu_messages, 0u);
    EXPECT_TRUE(std::all_of(pair.tx_setup.peer_block, pair.tx_setup.peer_block + wire::page_bytes,
                            [](std::byte b) { return b == std::byte{0}; }))
        << "something before the rings was written";
    pair.close();
    EXPECT_TRUE(pair.nothing_leaked());
    EXPECT_TRUE(pair.guards_intact());
}

TEST(Hostile, EachBreachStopsTheQueueAndIsCounted)
{
    const auto refused = [](uint32_t length, unsigned kind) {
        Pair pair(*select_ops(Policy::plain), small);
        pair.receive(1);
        const uint64_t word =
            wire::head_word(pair.rx_half->ring.tag(0), length, static_cast<wire::Kind>(kind), 0);
        std::memcpy(pair.rx_setup.ring, &word, sizeof(word));
        rte_mbuf *m;
        const int got = pair.rx(&m, nullptr, 1);
        if (got > 0)
            rte_pktmbuf_free(m);
        EXPECT_EQ(rx_stats(pair.rx_half).bad_peer, got == -EPROTO ? 1u : 0u);
        EXPECT_TRUE(got != -EPROTO || pair.rx(&m, nullptr, 1) == -EPROTO);
        return got == -EPROTO;
    };
    EXPECT_TRUE(refused(5, 0));
    EXPECT_TRUE(refused(5, 3));
    EXPECT_TRUE(refused(0, 2));
    EXPECT_TRUE(refused(1025, 1));
    EXPECT_TRUE(refused(2001, 2));
    EXPECT_TRUE(refused((1u << 24) - 1, 1));
    EXPECT_FALSE(refused(2000, 2));
    EXPECT_FALSE(refused(48, 1));
}

/// Stores the words of lines, from @p first on, into a ring that was not used yet.
/// @return what the receiver makes of them
int take_words(Pair &pair, uint64_t first, std::initializer_list<uint64_t> high)
{
    pair.receive(1);
    pair.rx_half->tail = first;
    watch_always(*pair.rx_half);
    uint64_t at = first;
    for (const uint64_t bits : high) {
        const uint64_t word = bits | pair.rx_half->ring.tag(at);
        std::memcpy(pair.rx_half->ring.line(at++), &word, sizeof(word));
    }
    rte_mbuf *mbufs[4];
    const int got = pair.rx(mbufs, nullptr, 4);
    for (int i = 0; i < got; i++)
        rte_pktmbuf_free(mbufs[i]);
    EXPECT_EQ(rx_stats(pair.rx_half).bad_peer, got == -EPROTO ? 1u : 0u);
    return got;
}

constexpr uint64_t high_word(uint32_t length, wire::Kind kind, unsigned flags = 0)
{
    return wire::head_word(0, length, kind, flags);
}

TEST(Hostile, PadLinesAreTakenAtTheEndOfTheRingOnly)
{
    constexpr uint64_t pad = high_word(0, wire::Kind::pad),
                       one = high_word(8, wire::Kind::inline_message);
    constexpr uint64_t first_place = 64 - wire::pad_lines_max;
    const auto take = [](uint64_t first, std::initializer_list<uint64_t> high) {
        Pair pair(*select_ops(Policy::plain), small);
        return take_words(pair, first, high);
    };
    EXPECT_EQ(take(first_place, {pad, one}), 1);
    EXPECT_EQ(take(63, {pad, one}), 1) << "the message behind it is in the next lap";
    EXPECT_EQ(take(63, {one, one}), 2);
    EXPECT_EQ(take(first_place, {one, pad, pad, one, pad}), 2);
    EXPECT_EQ(take(62, {pad, pad}), 0);
    EXPECT_EQ(take(first_place - 1, {pad, one}), -EPROTO);
    EXPECT_EQ(take(0, {pad}), -EPROTO);
    EXPECT_EQ(take(63, {pad, pad}), -EPROTO) << "of the next lap, at its begin";
    EXPECT_EQ(take(63, {high_word(1, wire::Kind::pad)}), -EPROTO);
    EXPECT_EQ(take(63, {high_word(0, wire::Kind::pad, 1)}), -EPROTO);
}

TEST(Hostile, AMessageBeyondTheEndOfTheRingIsRefused)
{
    const auto take = [](uint64_t first, std::initializer_list<uint64_t> high) {
        Pair pair(*select_ops(Policy::plain), small);
        return take_words(pair, first, high);
    };
    constexpr uint64_t two = high_word(49, wire::Kind::inline_message),
                       three = high_word(105, wire::Kind::inline_message), rest = 0;
    EXPECT_EQ(take(62, {two, rest}), 1);
    EXPECT_EQ(take(63, {two, rest}), -EPROTO);
    EXPECT_EQ(take(61, {three, rest, rest}), 1);
    EXPECT_EQ(take(62, {three, rest, rest}), -EPROTO);
    EXPECT_EQ(take(10, {two, high_word(1, wire::Kind::continuation)}), -EPROTO);
    EXPECT_EQ(take(10, {three, rest, high_word(0, wire::Kind::continuation, 1)}), -EPROTO);
    EXPECT_EQ(take(10, {three, rest}), 0) << "its last line has not come";
}

TEST(Hostile, MoreThanWasPostedIsRefused)
{
    PairOptions options = small;
    options.buffers_target = 14;
    options.max_message = 14 * 256 + 1;
    Pair pair(*select_ops(Policy::plain), options);
    pair.receive(1);
    const uint64_t word = wire::head_word(pair.rx_half->ring.tag(0), options.max_message,
                                          wire::Kind::long_message, 0);
    std::memcpy(pair.rx_setup.ring, &word, sizeof(word));
    rte_mbuf *m;
    EXPECT_EQ(pair.rx(&m, nullptr, 1), -EPROTO);
}

/// The line behind the last known buffer is looked at when that buffer is used, but a message that
/// went is not made wrong by it.
TEST(Hostile, ABadPostedLineIsSaidByTheMessageThatNeedsIt)
{
    PairOptions options = small;
    options.inline_max = 128; // below a buffer
    const uint64_t too_many = uint64_t{wire::buffers_per_line + 1} << 32;
    const uint64_t buffers[] = {too_many, 0, uint64_t{1} << 32};
    for (const uint64_t count : buffers) {
        Pair pair(*select_ops(Policy::plain), options);
        pair.receive(1);
        uint32_t line[16] = {};
        const uint64_t word = pair.tx_half->buffer_ring.tag(1) | count;
        std::memcpy(line, &word, sizeof(word));
        line[2] = pair.tx_setup.peer_buf_end; // one buffer behind the last
        std::memcpy(pair.tx_half->buffer_ring.line(1), line, sizeof(line));
        for (uint32_t i = 0; i < wire::buffers_per_line; i++) {
            rte_mbuf *m = pair.message(options.buf_bytes, i);
            ASSERT_EQ(pair.tx(&m, nullptr, 1), 1) << i;
        }
        EXPECT_EQ(tx_stats(pair.tx_half).bad_peer, 0u) << "no one needs it yet";
        rte_mbuf *m = pair.message(options.buf_bytes, 99);
        EXPECT_EQ(pair.tx(&m, nullptr, 1), -EPROTO);
        rte_pktmbuf_free(m);
        EXPECT_EQ(tx_stats(pair.tx_half).bad_peer, 1u);
        EXPECT_EQ(tx_stats(pair.tx_half).cpu_messages, wire::buffers_per_line);
        std::vector<rte_mbuf *> out = pair.receive(32);
        ASSERT_EQ(out.size(), wire::buffers_per_line);
        for (uint32_t i = 0; i < out.size(); i++)
            EXPECT_TRUE(Pair::matches(out[i], options.buf_bytes, i)) << i;
        rte_pktmbuf_free_bulk(out.data(), static_cast<unsigned>(out.size()));
        pair.close();
        EXPECT_TRUE(pair.nothing_leaked());
        EXPECT_TRUE(pair.guards_intact());
    }
}

TEST(Hostile, ACreditForMoreThanWasSentStopsTheSender)
{
    Pair pair(*select_ops(Policy::plain), small);
    std::vector<rte_mbuf *> in;
    for (uint32_t i = 0; i < 65; i++)
        in.push_back(pair.message(8, i));
    ASSERT_EQ(pair.send(in), 64);
    const uint64_t word = uint64_t{pair.tx_setup.back_base} | uint64_t{65} << 32;
    std::memcpy(const_cast<std::byte *>(pair.tx_setup.credit), &word, sizeof(word));
    EXPECT_EQ(pair.tx(&in[64], nullptr, 1), -EPROTO);
    EXPECT_EQ(tx_stats(pair.tx_half).bad_peer, 1u);
    rte_pktmbuf_free(in[64]);
}

} // namespace

} // namespace test_queue

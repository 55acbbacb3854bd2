// SPDX-License-Identifier: BSD-3-Clause
// One-sided operations between two channels' ends: what is done, what is told, what is refused.
#include "operating.hpp"

namespace
{

/// On workers of both kinds, driven by turns from the test's thread; true: dedicated.
class OneSided : public Operating, public testing::WithParamInterface<bool>
{
protected:
    ntbmsg_endpoint_options options() const override
    {
        ntbmsg_endpoint_options options = worker_options();
        options.dedicated = GetParam();
        return options;
    }
    static ntbmsg_sge piece(std::vector<uint8_t> &memory, size_t at = 0, size_t bytes = SIZE_MAX)
    {
        return {memory.data() + at, static_cast<uint32_t>(std::min(bytes, memory.size() - at)), 0};
    }
    /// Writes until the region's owner serves no more: then it is direct.
    bool becomes_direct(ntbmsg_remote *remote, const ntbmsg_region *region)
    {
        std::vector<uint8_t> byte(1);
        const ntbmsg_sge sge = piece(byte);
        return await([&] {
            const uint64_t before = info_of(region).writes;
            EXPECT_EQ(run(work(NTBMSG_OP_WRITE, remote, 0, &sge, 1)).status, 0);
            settle();
            return info_of(region).writes == before;
        });
    }
};

TEST_P(OneSided, AWriteIsServed)
{
    std::vector<uint8_t> memory(4096);
    ntbmsg_region *region = serve(memory);
    ntbmsg_remote *remote = open_remote(token_of(region));
    std::vector<uint8_t> data = pattern(1000, 1);
    const ntbmsg_sge sge = piece(data);
    const ntbmsg_completion c = run(work(NTBMSG_OP_WRITE, remote, 100, &sge, 1));
    EXPECT_EQ(c.status, 0);
    EXPECT_EQ(c.bytes, 1000u);
    EXPECT_EQ(std::memcmp(memory.data() + 100, data.data(), 1000), 0);
    EXPECT_EQ(memory[99], 0);
    EXPECT_EQ(memory[1100], 0);
    EXPECT_EQ(info_of(region).writes, 1u);
    EXPECT_EQ(info_of(region).direct, 0u);
    ntbmsg_remote_close(remote);
    EXPECT_EQ(ntbmsg_region_revoke(region), 0);
}

TEST_P(OneSided, AWriteToAllocatedMemoryIsDirect)
{
    ntbmsg_region *region = nullptr;
    ASSERT_EQ(ntbmsg_region_alloc(far_, 100000, NTBMSG_RIGHT_WRITE, &region), 0);
    EXPECT_EQ(info_of(region).direct, 1u);
    EXPECT_GE(info_of(region).bytes, 100000u);
    ntbmsg_remote *remote = open_remote(token_of(region));
    ASSERT_TRUE(becomes_direct(remote, region));
    std::vector<uint8_t> data = pattern(70000, 2);
    const ntbmsg_sge sge = piece(data);
    EXPECT_EQ(post(work(NTBMSG_OP_WRITE, remote, 4096, &sge, 1)), 1);
    ntbmsg_completion c{};
    EXPECT_EQ(ntbmsg_cq_poll(here_.cq, &c, 1), 1) << "complete with its last store";
    EXPECT_EQ(c.status, 0);
    EXPECT_EQ(c.bytes, 70000u);
    auto *memory = static_cast<uint8_t *>(info_of(region).address);
    EXPECT_EQ(std::memcmp(memory + 4096, data.data(), data.size()), 0);
    ntbmsg_work confirmed = work(NTBMSG_OP_WRITE, remote, 0, &sge, 1);
    confirmed.flags |= NTBMSG_WORK_CONFIRM;
    EXPECT_EQ(run(confirmed).status, 0);
    EXPECT_EQ(std::memcmp(memory, data.data(), data.size()), 0);
    ntbmsg_remote_close(remote);
    EXPECT_EQ(ntbmsg_region_revoke(region), 0);
}

TEST_P(OneSided, PiecesAreGatheredAndScattered)
{
    std::vector<uint8_t> memory(1 << 20);
    ntbmsg_region *region = serve(memory);
    ntbmsg_remote *remote = open_remote(token_of(region));
    std::vector<uint8_t> data = pattern(600000, 3);
    std::vector<ntbmsg_sge> sges;
    size_t at = 0;
    for (const size_t bytes :
         {0u, 1u, 63u, 4096u, 0u, 2048u, 2047u, 2049u, 100000u, 3u, 200000u, 16384u, 7u, 0u})
        sges.push_back(piece(data, std::exchange(at, at + bytes), bytes));
    sges.push_back(piece(data, at));
    sges.push_back({nullptr, 0, 0});
    ASSERT_EQ(sges.size(), size_t{NTBMSG_MAX_SGES});
    ASSERT_EQ(run(work(NTBMSG_OP_WRITE, remote, 5, sges.data(), NTBMSG_MAX_SGES)).bytes, 600000u);
    EXPECT_EQ(std::memcmp(memory.data() + 5, data.data(), data.size()), 0);
    std::vector<uint8_t> back(600000);
    std::vector<ntbmsg_sge> into;
    at = 0;
    for (const size_t bytes : {5u, 0u, 16383u, 1u, 300000u})
        into.push_back(piece(back, std::exchange(at, at + bytes), bytes));
    into.push_back(piece(back, at));
    const ntbmsg_completion c =
        run(work(NTBMSG_OP_READ, remote, 5, into.data(), static_cast<uint16_t>(into.size())));
    EXPECT_EQ(c.status, 0);
    EXPECT_EQ(c.bytes, 600000u);
    EXPECT_EQ(back, data);
    ntbmsg_remote_close(remote);
    EXPECT_EQ(ntbmsg_region_revoke(region), 0);
}

TEST_P(OneSided, SizesAroundEveryBorder)
{
    std::vector<uint8_t> memory(70000);
    ntbmsg_region *region = serve(memory);
    ntbmsg_remote *remote = open_remote(token_of(region));
    for (const size_t bytes :
         {size_t{0}, size_t{1}, size_t{224}, size_t{225}, size_t{2015}, size_t{2016}, size_t{2017},
          size_t{16351}, size_t{16352}, size_t{16353}, size_t{32704}, size_t{65536}}) {
        std::vector<uint8_t> data = pattern(bytes, 4);
        std::vector<uint8_t> back(bytes + 1, 0xee);
        const ntbmsg_sge sge = piece(data);
        const ntbmsg_sge into = piece(back, 0, bytes);
        EXPECT_EQ(run(work(NTBMSG_OP_WRITE, remote, 3, &sge, 1)).status, 0) << bytes;
        EXPECT_EQ(run(work(NTBMSG_OP_READ, remote, 3, &into, 1)).bytes, bytes);
        EXPECT_TRUE(std::equal(data.begin(), data.end(), back.begin())) << bytes;
        EXPECT_EQ(back[bytes], 0xee);
    }
    ntbmsg_remote_close(remote);
    EXPECT_EQ(ntbmsg_region_revoke(region), 0);
}

TEST_P(OneSided, AnImmediateWordIsToldOnceTheDataAreThere)
{
    ntbmsg_region *direct = nullptr;
    ASSERT_EQ(ntbmsg_region_alloc(far_, 1, NTBMSG_RIGHT_WRITE, &direct), 0);
    std::vector<uint8_t> memory(40000);
    ntbmsg_region *served = serve(memory);
    std::vector<uint8_t> data = pattern(40000, 5);
    const ntbmsg_sge sge = piece(data);
    for (ntbmsg_region *region : {direct, served}) {
        ntbmsg_remote *remote = open_remote(token_of(region));
        if (region == direct) {
            ASSERT_TRUE(becomes_direct(remote, region));
        }
        ntbmsg_work w = work(NTBMSG_OP_WRITE_IMM, remote, 0, &sge, 1);
        w.imm = 0xcafe0000u + info_of(region).direct;
        ASSERT_EQ(post_patiently(w), 1);
        const ntbmsg_completion told = next(there_);
        EXPECT_EQ(told.op, NTBMSG_OP_RECV_IMM);
        EXPECT_EQ(told.imm, w.imm);
        EXPECT_EQ(told.status, 0);
        EXPECT_EQ(told.id, 0u);
        EXPECT_EQ(told.channel, there_.channel);
        EXPECT_EQ(told.user, &there_);
        EXPECT_EQ(std::memcmp(info_of(region).address, data.data(), data.size()), 0);
        EXPECT_EQ(next(here_).id, w.id);
        ntbmsg_remote_close(remote);
        EXPECT_EQ(ntbmsg_region_revoke(region), 0);
    }
    settle();
    EXPECT_TRUE(there_.seen.empty()) << "once";
}

TEST_P(OneSided, AtomicsGiveWhatWasThere)
{
    alignas(8) uint64_t words[4] = {0, 41, 0, 0};
    ntbmsg_region *region = nullptr;
    ASSERT_EQ(ntbmsg_region_register(far_, words, sizeof(words), NTBMSG_RIGHT_ATOMIC, &region), 0);
    ntbmsg_remote *remote = open_remote(token_of(region));
    ntbmsg_work add = work(NTBMSG_OP_FETCH_ADD, remote, 8);
    add.operand = 2;
    ntbmsg_completion c = run(add);
    EXPECT_EQ(c.status, 0);
    EXPECT_EQ(c.value, 41u);
    EXPECT_EQ(c.bytes, 8u);
    EXPECT_EQ(words[1], 43u);
    ntbmsg_work swap = work(NTBMSG_OP_COMPARE_SWAP, remote, 8);
    swap.compare = 42;
    swap.operand = 7;
    EXPECT_EQ(run(swap).value, 43u) << "not equal";
    EXPECT_EQ(words[1], 43u);
    swap = work(NTBMSG_OP_COMPARE_SWAP, remote, 8);
    swap.compare = 43;
    swap.operand = 7;
    EXPECT_EQ(run(swap).value, 43u);
    EXPECT_EQ(words[1], 7u);
    EXPECT_EQ(info_of(region).atomics, 3u);
    EXPECT_EQ(words[0] | words[2] | words[3], 0u);
    ntbmsg_remote_close(remote);
    EXPECT_EQ(ntbmsg_region_revoke(region), 0);
}

TEST_P(OneSided, CompletionsComeInTheOrderOfPosting)
{
    ntbmsg_region *direct = nullptr;
    ASSERT_EQ(ntbmsg_region_alloc(far_, 4096, NTBMSG_RIGHT_WRITE | NTBMSG_RIGHT_READ, &direct), 0);
    ntbmsg_remote *remote = open_remote(token_of(direct));
    ASSERT_TRUE(becomes_direct(remote, direct));
    std::vector<uint8_t> data = pattern(512, 6);
    const ntbmsg_sge sge = piece(data);
    std::vector<ntbmsg_work> works;
    for (unsigned i = 0; i < 32; ++i) {
        works.push_back(work(i % 3 == 0 ? NTBMSG_OP_READ : NTBMSG_OP_WRITE, remote, 512, &sge, 1));
        works.back().flags = i % 5 != 0 ? NTBMSG_WORK_SIGNAL : 0;
    }
    ASSERT_EQ(ntbmsg_post_burst(here_.channel, works.data(), 32), 32);
    for (const ntbmsg_work &w : works) {
        if (w.flags == 0)
            continue; // nobody is told
        EXPECT_EQ(next(here_).id, w.id);
    }
    settle();
    EXPECT_TRUE(here_.seen.empty());
    ntbmsg_remote_close(remote);
    EXPECT_EQ(ntbmsg_region_revoke(direct), 0);
}

// ---- what is refused

TEST_P(OneSided, ImpossibleArgumentsAreRefusedAtOnce)
{
    std::vector<uint8_t> memory(4096);
    ntbmsg_region *region = serve(memory, NTBMSG_RIGHT_WRITE);
    ntbmsg_region *atomic = serve(memory, NTBMSG_RIGHT_ATOMIC | NTBMSG_RIGHT_READ);
    ntbmsg_remote *remote = open_remote(token_of(region));
    ntbmsg_remote *words = open_remote(token_of(atomic));
    std::vector<uint8_t> data = pattern(4097, 7);
    const ntbmsg_sge good{data.data(), 64, 0}, null{nullptr, 1, 0}, large{data.data(), 4097, 0},
        huge{data.data(), NTBMSG_MAX_OPERATION + 1u, 0};
    const ntbmsg_sge many[NTBMSG_MAX_SGES + 1] = {};
    const auto changed = [](ntbmsg_work w, auto change) {
        change(w);
        return w;
    };
    const ntbmsg_work write = work(NTBMSG_OP_WRITE, remote, 0, &good, 1);
    const struct {
        const char *what;
        ntbmsg_work w;
        int rc;
    } rows[] = {
        {"no remote", changed(write, [](auto &w) { w.remote = nullptr; }), -EINVAL},
        {"op 0", changed(write, [](auto &w) { w.op = 0; }), -EINVAL},
        {"op RECV_IMM", changed(write, [](auto &w) { w.op = NTBMSG_OP_RECV_IMM; }), -EINVAL},
        {"op 255", changed(write, [](auto &w) { w.op = 255; }), -EINVAL},
        {"an unknown flag", changed(write, [](auto &w) { w.flags = 4; }), -EINVAL},
        {"pieces without an array", changed(write, [](auto &w) { w.sges = nullptr; }), -EINVAL},
        {"a piece without memory", work(NTBMSG_OP_WRITE, remote, 0, &null, 1), -EINVAL},
        {"17 pieces", work(NTBMSG_OP_WRITE, remote, 0, many, NTBMSG_MAX_SGES + 1), -EINVAL},
        {"too long", work(NTBMSG_OP_WRITE, remote, 0, &huge, 1), -EINVAL},
        {"longer than the region", work(NTBMSG_OP_WRITE, remote, 0, &large, 1), -ERANGE},
        {"over the end", work(NTBMSG_OP_WRITE, remote, 4033, &good, 1), -ERANGE},
        {"behind the end", work(NTBMSG_OP_WRITE, remote, 4097), -ERANGE},
        {"far behind", work(NTBMSG_OP_WRITE, remote, ~uint64_t{0} - 8, &good, 1), -ERANGE},
        {"no right to read", work(NTBMSG_OP_READ, remote, 0, &good, 1), -EACCES},
        {"no right to atomics", work(NTBMSG_OP_FETCH_ADD, remote, 0), -EACCES},
        {"no right to write", work(NTBMSG_OP_WRITE, words, 0, &good, 1), -EACCES},
        {"no right to write a word", work(NTBMSG_OP_WRITE_IMM, words, 0, &good, 1), -EACCES},
        {"atomic with pieces", work(NTBMSG_OP_FETCH_ADD, words, 0, &good, 1), -EINVAL},
        {"atomic not aligned", work(NTBMSG_OP_COMPARE_SWAP, words, 4), -EINVAL},
        {"atomic at the end", work(NTBMSG_OP_COMPARE_SWAP, words, 4096), -ERANGE},
    };
    for (const auto &row : rows)
        EXPECT_EQ(post(row.w), row.rc) << row.what;
    EXPECT_EQ(ntbmsg_post_burst(nullptr, &write, 1), -EINVAL);
    EXPECT_EQ(ntbmsg_post_burst(here_.channel, nullptr, 1), -EINVAL);
    EXPECT_EQ(ntbmsg_post_burst(here_.channel, &write, 0), -EINVAL);
    EXPECT_EQ(ntbmsg_post_burst(there_.channel, &write, 1), -EINVAL) << "another's remote";
    const ntbmsg_work two[] = {write, rows[0].w};
    EXPECT_EQ(ntbmsg_post_burst(here_.channel, two, 2), 1) << "up to the impossible one";
    EXPECT_EQ(next(here_).id, write.id);
    settle();
    EXPECT_TRUE(here_.seen.empty());
    EXPECT_EQ(info_of(region).refused + info_of(atomic).refused, 0u) << "none reached the peer";
    ntbmsg_remote_close(remote);
    ntbmsg_remote_close(words);
    EXPECT_EQ(ntbmsg_region_revoke(region), 0);
    EXPECT_EQ(ntbmsg_region_revoke(atomic), 0);
}

/// What a token of ours says, to be forged: doc/channel-protocol.md, section 5.
struct Forged {
    uint64_t key, bytes, window;
    uint32_t rights, direct;
    uint64_t reserved;
};

TEST_P(OneSided, TheOwnerTrustsNoToken)
{
    std::vector<uint8_t> memory(4096), data = pattern(64, 8);
    ntbmsg_region *region = serve(memory, NTBMSG_RIGHT_READ);
    ntbmsg_region *small = serve(memory, NTBMSG_RIGHT_WRITE);
    ntbmsg_region *odd = nullptr;
    ASSERT_EQ(ntbmsg_region_register(far_, memory.data() + 4, 64, NTBMSG_RIGHT_ATOMIC, &odd), 0);
    const ntbmsg_sge sge = piece(data);
    const auto forge = [&](ntbmsg_region *of, auto change) {
        ntbmsg_region_token token = token_of(of);
        Forged t;
        std::memcpy(&t, token.bytes, sizeof(t));
        change(t);
        std::memcpy(token.bytes, &t, sizeof(t));
        return open_remote(token);
    };
    ntbmsg_remote *stranger = forge(small, [](Forged &t) { t.key ^= 1ull << 40; });
    ntbmsg_remote *other_slot = forge(small, [](Forged &t) { t.key ^= 0x800; });
    ntbmsg_remote *writer = forge(region, [](Forged &t) { t.rights = every_right; });
    ntbmsg_remote *longer = forge(small, [](Forged &t) { t.bytes = uint64_t{1} << 40; });
    ntbmsg_remote *unaligned = forge(odd, [](Forged &) {});
    const struct {
        const char *what;
        ntbmsg_work w;
        int status;
    } rows[] = {
        {"no such key", work(NTBMSG_OP_WRITE, stranger, 0, &sge, 1), -EKEYREJECTED},
        {"no such slot", work(NTBMSG_OP_WRITE, other_slot, 0, &sge, 1), -EKEYREJECTED},
        {"not the right", work(NTBMSG_OP_WRITE, writer, 0, &sge, 1), -EACCES},
        {"nor for a word", work(NTBMSG_OP_WRITE_IMM, writer, 0, &sge, 1), -EACCES},
        {"nor for atomics", work(NTBMSG_OP_FETCH_ADD, writer, 0), -EACCES},
        {"outside", work(NTBMSG_OP_WRITE, longer, 4096 - 63, &sge, 1), -ERANGE},
        {"far outside", work(NTBMSG_OP_WRITE, longer, (uint64_t{1} << 40) - 64, &sge, 1), -ERANGE},
        {"an address that is not aligned", work(NTBMSG_OP_FETCH_ADD, unaligned, 0), -ERANGE},
    };
    for (const auto &row : rows) {
        const ntbmsg_completion c = run(row.w);
        EXPECT_EQ(c.status, row.status) << row.what;
        EXPECT_EQ(c.bytes, 0u) << row.what;
    }
    ntbmsg_work quiet = rows[0].w;
    quiet.flags = 0;
    EXPECT_EQ(run(quiet).status, -EKEYREJECTED) << "a failure is told, signal or not";
    EXPECT_EQ(memory, std::vector<uint8_t>(4096)) << "nothing was changed";
    EXPECT_TRUE(there_.seen.empty()) << "no word was told";
    EXPECT_EQ(info_of(region).refused, 3u);
    EXPECT_EQ(info_of(small).refused, 2u);
    for (ntbmsg_remote *r : {stranger, other_slot, writer, longer, unaligned})
        ntbmsg_remote_close(r);
    for (ntbmsg_region *r : {region, small, odd})
        EXPECT_EQ(ntbmsg_region_revoke(r), 0);
}

TEST_P(OneSided, TokensThatCannotBeAreRefused)
{
    std::vector<uint8_t> memory(64);
    ntbmsg_region *region = serve(memory);
    const ntbmsg_region_token good = token_of(region);
    ntbmsg_remote *remote = nullptr;
    const auto open = [&](auto change) {
        Forged t;
        std::memcpy(&t, good.bytes, sizeof(t));
        change(t);
        ntbmsg_region_token token;
        std::memcpy(token.bytes, &t, sizeof(t));
        return ntbmsg_remote_open(here_.channel, &token, &remote);
    };
    EXPECT_EQ(open([](Forged &t) { t.key = 0; }), -EINVAL);
    EXPECT_EQ(open([](Forged &t) { t.bytes = 0; }), -EINVAL);
    EXPECT_EQ(open([](Forged &t) { t.bytes = (uint64_t{1} << 40) + 1; }), -EINVAL);
    EXPECT_EQ(open([](Forged &t) { t.rights = 0; }), -EINVAL);
    EXPECT_EQ(open([](Forged &t) { t.rights = 8; }), -EINVAL);
    EXPECT_EQ(open([](Forged &t) { t.direct = 2; }), -EINVAL);
    EXPECT_EQ(open([](Forged &t) { t.reserved = 1; }), -EINVAL);
    EXPECT_EQ(ntbmsg_remote_open(nullptr, &good, &remote), -EINVAL);
    EXPECT_EQ(ntbmsg_remote_open(here_.channel, nullptr, &remote), -EINVAL);
    EXPECT_EQ(ntbmsg_remote_open(here_.channel, &good, nullptr), -EINVAL);
    // A way through the window that leads nowhere, or into the queue pairs: served instead.
    for (const uint64_t window : {uint64_t{0}, uint64_t{64} << 20, uint64_t{1} << 50}) {
        EXPECT_EQ(open([=](Forged &t) {
                      t.direct = 1;
                      t.window = window;
                  }),
                  0);
        std::vector<uint8_t> data = pattern(64, 9);
        const ntbmsg_sge sge = piece(data);
        EXPECT_EQ(run(work(NTBMSG_OP_WRITE, remote, 0, &sge, 1)).status, 0);
        EXPECT_EQ(memory, data);
        settle();
        ntbmsg_remote_close(remote);
    }
    EXPECT_EQ(ntbmsg_region_revoke(region), 0);
}

// ---- revocation

TEST_P(OneSided, ARevokedRegionIsReachedNoMore)
{
    std::vector<uint8_t> memory(4096), data = pattern(4096, 10);
    ntbmsg_region *region = serve(memory);
    ntbmsg_remote *remote = open_remote(token_of(region));
    const ntbmsg_sge sge = piece(data);
    ASSERT_EQ(run(work(NTBMSG_OP_WRITE, remote, 0, &sge, 1)).status, 0);
    ASSERT_EQ(post(work(NTBMSG_OP_WRITE, remote, 0, &sge, 1)), 1);
    std::fill(memory.begin(), memory.end(), uint8_t{0x55});
    ASSERT_EQ(ntbmsg_region_revoke(region), 0);
    EXPECT_EQ(next(here_).status, -EKEYREJECTED);
    EXPECT_EQ(memory, std::vector<uint8_t>(4096, 0x55));
    for (const ntbmsg_op op : {NTBMSG_OP_READ, NTBMSG_OP_WRITE_IMM})
        EXPECT_EQ(run(work(op, remote, 0, &sge, 1)).status, -EKEYREJECTED);
    EXPECT_EQ(run(work(NTBMSG_OP_FETCH_ADD, remote, 0)).status, -EKEYREJECTED);
    // The slot is used again, and the old key does not open it.
    ntbmsg_region *next_one = serve(memory);
    EXPECT_EQ(run(work(NTBMSG_OP_WRITE, remote, 0, &sge, 1)).status, -EKEYREJECTED);
    EXPECT_EQ(ntbmsg_region_revoke(next_one), 0);
    ntbmsg_remote_close(remote);
}

TEST_P(OneSided, RevokedInTheMiddle)
{
    std::vector<uint8_t> memory(4 << 20), data = pattern(4 << 20, 11);
    for (const ntbmsg_op op : {NTBMSG_OP_WRITE, NTBMSG_OP_READ}) {
        std::fill(memory.begin(), memory.end(), uint8_t{0});
        ntbmsg_region *region = serve(memory);
        ntbmsg_remote *remote = open_remote(token_of(region));
        const ntbmsg_sge sge = piece(data);
        ASSERT_EQ(post(work(op, remote, 0, &sge, 1)), 1);
        turn();
        turn();
        EXPECT_TRUE(here_.seen.empty()) << "it takes more than that";
        ASSERT_EQ(ntbmsg_region_revoke(region), 0);
        const std::vector<uint8_t> then = memory;
        const ntbmsg_completion c = next(here_);
        EXPECT_EQ(c.status, -EKEYREJECTED);
        EXPECT_EQ(c.bytes, 0u);
        EXPECT_EQ(memory, then);
        ntbmsg_remote_close(remote);
    }
}

TEST_P(OneSided, ARevokedDirectRegionKeepsNothingOfLaterStores)
{
    ntbmsg_region *region = nullptr;
    ASSERT_EQ(ntbmsg_region_alloc(far_, 4096, NTBMSG_RIGHT_WRITE, &region), 0);
    ntbmsg_remote *remote = open_remote(token_of(region));
    ASSERT_TRUE(becomes_direct(remote, region));
    ASSERT_EQ(ntbmsg_region_revoke(region), 0);
    std::vector<uint8_t> data = pattern(64, 12);
    const ntbmsg_sge sge = piece(data);
    EXPECT_EQ(run(work(NTBMSG_OP_WRITE, remote, 0, &sge, 1)).status, 0) << "nobody is asked";
    ntbmsg_work confirmed = work(NTBMSG_OP_WRITE, remote, 0, &sge, 1);
    confirmed.flags |= NTBMSG_WORK_CONFIRM;
    EXPECT_EQ(run(confirmed).status, -EKEYREJECTED);
    EXPECT_EQ(run(work(NTBMSG_OP_WRITE_IMM, remote, 0, &sge, 1)).status, -EKEYREJECTED);
    EXPECT_TRUE(there_.seen.empty());
    ntbmsg_remote_close(remote);
}

// ---- ends

TEST_P(OneSided, WhatIsUnderWayCompletesWhenTheChannelEnds)
{
    std::vector<uint8_t> memory(4 << 20), data = pattern(4 << 20, 13);
    ntbmsg_region *region = serve(memory);
    const ntbmsg_sge sge = piece(data);
    const std::function<void()> ends[] = {
        [&] { EXPECT_EQ(ntbmsg_channel_reset(here_.channel, 1), 0); },
        [&] { EXPECT_EQ(ntbmsg_channel_reset(there_.channel, 1), 0); },
        [&] { EXPECT_EQ(rte_vdev_uninit("none"), -EINVAL); },
    };
    for (unsigned i = 0; i < 2; ++i) {
        ntbmsg_remote *remote = open_remote(token_of(region));
        std::vector<ntbmsg_work> works;
        for (unsigned k = 0; k < 8; ++k) {
            works.push_back(
                work(k % 2 == 0 ? NTBMSG_OP_WRITE : NTBMSG_OP_READ, remote, 0, &sge, 1));
            works.back().flags = k % 3 == 0 ? 0 : NTBMSG_WORK_SIGNAL;
        }
        ASSERT_EQ(ntbmsg_post_burst(here_.channel, works.data(), 8), 8);
        turn();
        ends[i]();
        for (const ntbmsg_work &w : works) {
            const ntbmsg_completion c = next(here_);
            EXPECT_EQ(c.id, w.id);
            EXPECT_EQ(c.status, -ECONNRESET);
        }
        EXPECT_EQ(post(works[0]), -ECONNRESET);
        ntbmsg_remote_close(remote);
        for (End *end : {&here_, &there_})
            EXPECT_EQ(ntbmsg_channel_close(end->channel), 0);
        settle();
        ASSERT_NO_FATAL_FAILURE(open_channel());
    }
    EXPECT_EQ(ntbmsg_region_revoke(region), 0);
}

TEST_P(OneSided, ClosingCancelsAndTheSlotLivesOn)
{
    std::vector<uint8_t> memory(4 << 20), data = pattern(4 << 20, 14);
    ntbmsg_region *region = serve(memory);
    const ntbmsg_sge sge = piece(data);
    for (unsigned i = 0; i < 3; ++i) {
        ntbmsg_remote *remote = open_remote(token_of(region));
        const ntbmsg_work w = work(NTBMSG_OP_READ, remote, 0, &sge, 1);
        ASSERT_EQ(post(w), 1);
        turn();
        EXPECT_EQ(ntbmsg_channel_close(here_.channel), 0);
        const ntbmsg_completion c = next(here_);
        EXPECT_EQ(c.id, w.id);
        EXPECT_EQ(c.status, -ECANCELED);
        ntbmsg_remote_close(remote);
        EXPECT_TRUE(await([&] {
            return ntbmsg_channel_state(there_.channel) == NTBMSG_CHANNEL_PEER_CLOSED;
        })) << "closed in good order";
        EXPECT_EQ(ntbmsg_channel_close(there_.channel), 0);
        settle();
        ASSERT_NO_FATAL_FAILURE(open_channel());
    }
    EXPECT_EQ(ntbmsg_region_revoke(region), 0);
}

TEST_P(OneSided, ShuttingDownLetsOperationsEnd)
{
    std::vector<uint8_t> memory(1 << 20), data = pattern(1 << 20, 15);
    ntbmsg_region *region = serve(memory);
    const ntbmsg_sge sge = piece(data);
    ntbmsg_remote *remote = open_remote(token_of(region));
    ASSERT_EQ(post(work(NTBMSG_OP_WRITE, remote, 0, &sge, 1)), 1);
    ASSERT_EQ(ntbmsg_channel_shutdown(here_.channel), 0);
    EXPECT_EQ(post(work(NTBMSG_OP_WRITE, remote, 0, &sge, 1)), -ESHUTDOWN);
    ASSERT_EQ(ntbmsg_channel_shutdown(there_.channel), 0);
    EXPECT_EQ(next(here_).status, 0);
    EXPECT_EQ(memory, data);
    EXPECT_TRUE(await([&] {
        return ntbmsg_channel_state(here_.channel) == NTBMSG_CHANNEL_CLOSED &&
               ntbmsg_channel_state(there_.channel) == NTBMSG_CHANNEL_CLOSED;
    }));
    ntbmsg_remote_close(remote);
    EXPECT_EQ(ntbmsg_region_revoke(region), 0);
}

TEST_P(OneSided, ALostPeerCompletesWhatIsUnderWay)
{
    std::vector<uint8_t> memory(1 << 20), data = pattern(1 << 20, 16);
    ntbmsg_region *region = serve(memory);
    ntbmsg_region *direct = nullptr;
    ASSERT_EQ(ntbmsg_region_alloc(far_, 4096, NTBMSG_RIGHT_WRITE, &direct), 0);
    ntbmsg_remote *remote = open_remote(token_of(region));
    ntbmsg_remote *stored = open_remote(token_of(direct));
    ASSERT_TRUE(becomes_direct(stored, direct));
    const ntbmsg_sge sge = piece(data), little = piece(data, 0, 64);
    ASSERT_EQ(post(work(NTBMSG_OP_READ, remote, 0, &sge, 1)), 1);
    ASSERT_EQ(post(work(NTBMSG_OP_WRITE, stored, 0, &little, 1)), 1);
    ASSERT_EQ(ntbmsg_cq_destroy(there_.cq), -EBUSY);
    ASSERT_EQ(ntbmsg_channel_close(there_.channel), 0);
    there_.channel = nullptr;
    EXPECT_EQ(ntbmsg_region_revoke(region), 0);
    EXPECT_EQ(ntbmsg_region_revoke(direct), 0);
    ASSERT_NO_FATAL_FAILURE(close(far_));
    there_.worker = nullptr;
    EXPECT_EQ(next(here_).status, -ECONNRESET);
    EXPECT_EQ(next(here_).status, 0) << "complete with its last store";
    EXPECT_TRUE(await([&] { return ntbmsg_channel_state(here_.channel) == NTBMSG_CHANNEL_LOST; }));
    EXPECT_EQ(post(work(NTBMSG_OP_WRITE, stored, 0, &little, 1)), -ECONNRESET);
    ntbmsg_remote_close(remote);
    ntbmsg_remote_close(stored);
}

TEST_P(OneSided, NothingIsStoredOnceTheConnectionIsLost)
{
    ntbmsg_region *direct = nullptr;
    ASSERT_EQ(ntbmsg_region_alloc(far_, 4096, NTBMSG_RIGHT_WRITE, &direct), 0);
    ntbmsg_remote *stored = open_remote(token_of(direct));
    ASSERT_TRUE(becomes_direct(stored, direct));
    std::vector<uint8_t> data = pattern(64, 17);
    const ntbmsg_sge sge = piece(data);
    const ntbmsg_region_token token = token_of(direct);
    ASSERT_EQ(ntbmsg_channel_close(there_.channel), 0);
    there_.channel = nullptr;
    EXPECT_EQ(ntbmsg_region_revoke(direct), 0);
    ASSERT_NO_FATAL_FAILURE(close(far_));
    there_.worker = nullptr;
    ASSERT_TRUE(await_event(near_, NTBMSG_EVENT_LOST));
    EXPECT_EQ(ntbmsg_channel_state(here_.channel), NTBMSG_CHANNEL_OPEN)
        << "its worker is not polled";
    EXPECT_EQ(post(work(NTBMSG_OP_WRITE, stored, 0, &sge, 1)), -ECONNRESET);
    ntbmsg_remote *none = nullptr;
    EXPECT_EQ(ntbmsg_remote_open(here_.channel, &token, &none), -ENOTCONN);
    ntbmsg_remote_close(stored);
}

// Slots are used again: the handle may be the same, the channel is not.
TEST_P(OneSided, ARemoteIsOfOneChannelAndNotOfItsSlot)
{
    std::vector<uint8_t> memory(64), data = pattern(64, 18);
    ntbmsg_region *region = serve(memory);
    ntbmsg_remote *remote = open_remote(token_of(region));
    const ntbmsg_sge sge = piece(data);
    const uint16_t first = id_of(here_.channel);
    unsigned uses = 0;
    do {
        ASSERT_EQ(ntbmsg_channel_close(here_.channel), 0);
        ASSERT_EQ(ntbmsg_channel_close(there_.channel), 0);
        settle();
        ASSERT_NO_FATAL_FAILURE(open_channel());
    } while (id_of(here_.channel) != first && ++uses < 64);
    ASSERT_EQ(id_of(here_.channel), first);
    ntbmsg_remote *other = open_remote(token_of(region));
    EXPECT_EQ(post(work(NTBMSG_OP_WRITE, remote, 0, &sge, 1)), -EINVAL);
    EXPECT_EQ(run(work(NTBMSG_OP_WRITE, other, 0, &sge, 1)).status, 0);
    ntbmsg_remote_close(remote);
    ntbmsg_remote_close(other);
    EXPECT_EQ(ntbmsg_region_revoke(region), 0);
}

// A request that met a full ring has its number: the peer waits for it.
TEST_P(OneSided, ClosingInFrontOfAFullRingSaysCloseAndNotReset)
{
    ASSERT_EQ(ntbmsg_channel_close(here_.channel), 0);
    ASSERT_EQ(ntbmsg_channel_close(there_.channel), 0);
    ntbmsg_channel_options mine = channel_options(here_);
    mine.operations = 256;
    ASSERT_NO_FATAL_FAILURE(open_channel(mine, channel_options(there_)));
    alignas(8) uint64_t word = 0;
    ntbmsg_region *region = nullptr;
    ASSERT_EQ(ntbmsg_region_register(far_, &word, sizeof(word), NTBMSG_RIGHT_ATOMIC, &region), 0);
    ntbmsg_remote *remote = open_remote(token_of(region));
    ntbmsg_work add = work(NTBMSG_OP_FETCH_ADD, remote, 0);
    add.operand = 1;
    const std::vector<ntbmsg_work> works(256, add);
    ASSERT_EQ(ntbmsg_post_burst(here_.channel, works.data(), 256), 256);
    ASSERT_EQ(ntbmsg_channel_close(here_.channel), 0);
    here_.channel = nullptr;
    EXPECT_TRUE(await([&] { return ntbmsg_channel_state(there_.channel) != NTBMSG_CHANNEL_OPEN; }));
    EXPECT_EQ(ntbmsg_channel_state(there_.channel), NTBMSG_CHANNEL_PEER_CLOSED);
    settle();
    EXPECT_EQ(here_.seen.size(), 256u);
    for (const ntbmsg_completion &c : here_.seen)
        EXPECT_EQ(c.status, -ECANCELED);
    EXPECT_GT(word, 0u);
    EXPECT_LT(word, 256u) << "the ring was full, else this tests nothing";
    ntbmsg_remote_close(remote);
    EXPECT_EQ(ntbmsg_region_revoke(region), 0);
}

// ---- back-pressure

TEST_P(OneSided, OperationsUnderWayAreBounded)
{
    ASSERT_EQ(ntbmsg_channel_close(here_.channel), 0);
    ASSERT_EQ(ntbmsg_channel_close(there_.channel), 0);
    ntbmsg_channel_options mine = channel_options(here_);
    mine.operations = 5;
    ASSERT_NO_FATAL_FAILURE(open_channel(mine, channel_options(there_)));
    std::vector<uint8_t> memory(64), data = pattern(64, 17);
    ntbmsg_region *region = serve(memory);
    ntbmsg_remote *remote = open_remote(token_of(region));
    const ntbmsg_sge sge = piece(data);
    const std::vector<ntbmsg_work> works(9, work(NTBMSG_OP_WRITE, remote, 0, &sge, 1));
    EXPECT_EQ(ntbmsg_post_burst(here_.channel, works.data(), 9), 5);
    EXPECT_EQ(ntbmsg_post_burst(here_.channel, works.data(), 9), 0);
    for (unsigned i = 0; i < 5; ++i)
        EXPECT_EQ(next(here_).status, 0);
    EXPECT_EQ(ntbmsg_post_burst(here_.channel, works.data(), 1), 1);
    EXPECT_EQ(next(here_).status, 0);
    ntbmsg_remote_close(remote);
    EXPECT_EQ(ntbmsg_region_revoke(region), 0);
}

TEST_P(OneSided, MoreThanThePeerKeepsIsHeldBackHere)
{
    ASSERT_EQ(ntbmsg_channel_close(here_.channel), 0);
    ASSERT_EQ(ntbmsg_channel_close(there_.channel), 0);
    ntbmsg_cq *small = std::exchange(here_.cq, nullptr);
    ASSERT_EQ(ntbmsg_cq_create(4096, nullptr, nullptr, &here_.cq), 0);
    ntbmsg_channel_options mine = channel_options(here_);
    mine.operations = 4096;
    ASSERT_NO_FATAL_FAILURE(open_channel(mine, channel_options(there_)));
    std::vector<uint8_t> memory(4096 * 8);
    ntbmsg_region *region = serve(memory);
    ntbmsg_remote *remote = open_remote(token_of(region));
    std::vector<ntbmsg_work> works;
    for (unsigned i = 0; i < 4096; ++i) {
        works.push_back(work(NTBMSG_OP_FETCH_ADD, remote, 8 * i));
        works.back().operand = i;
    }
    ASSERT_EQ(ntbmsg_post_burst(here_.channel, works.data(), 4096), 4096);
    for (const ntbmsg_work &w : works) {
        const ntbmsg_completion c = next(here_);
        ASSERT_EQ(c.id, w.id);
        ASSERT_EQ(c.status, 0);
    }
    for (uint64_t i = 0; i < 4096; ++i)
        ASSERT_EQ(std::memcmp(&memory[8 * i], &i, 8), 0) << i;
    ntbmsg_remote_close(remote);
    EXPECT_EQ(ntbmsg_region_revoke(region), 0);
    EXPECT_EQ(ntbmsg_cq_destroy(small), 0);
}

TEST_P(OneSided, NoCompletionIsLostWhereTheQueueIsFull)
{
    std::vector<uint8_t> memory(64), data = pattern(64, 18);
    ntbmsg_region *region = serve(memory);
    ntbmsg_remote *remote = open_remote(token_of(region));
    const ntbmsg_sge sge = piece(data);
    ntbmsg_cq *mine = std::exchange(here_.cq, nullptr); // not polled by turn()
    ntbmsg_cq *theirs = std::exchange(there_.cq, nullptr);
    unsigned posted = 0;
    ntbmsg_work w = work(NTBMSG_OP_WRITE_IMM, remote, 0, &sge, 1);
    for (unsigned idle = 0; idle < 1000;) {
        w.imm = posted;
        const int rc = post(w);
        ASSERT_GE(rc, 0);
        posted += static_cast<unsigned>(rc);
        idle = rc == 1 ? 0 : idle + 1;
        turn();
    }
    EXPECT_EQ(posted, 256u) << "what their queue has room for, then what ours has";
    // One more is under way than was told: it waits for room over there.
    ntbmsg_completion got[256];
    EXPECT_EQ(ntbmsg_cq_poll(theirs, got, 256), 256);
    for (unsigned i = 0; i < 256; ++i)
        ASSERT_EQ(got[i].imm, i);
    settle();
    EXPECT_EQ(ntbmsg_cq_poll(mine, got, 256), 256);
    EXPECT_EQ(ntbmsg_cq_poll(mine, got, 256), 0);
    here_.cq = mine;
    there_.cq = theirs;
    ntbmsg_remote_close(remote);
    EXPECT_EQ(ntbmsg_region_revoke(region), 0);
}

TEST_P(OneSided, AWordWaitsForRoomInTheQueueOfCompletions)
{
    ASSERT_EQ(ntbmsg_channel_close(here_.channel), 0);
    ASSERT_EQ(ntbmsg_channel_close(there_.channel), 0);
    ntbmsg_cq *usual = std::exchange(there_.cq, nullptr);
    ntbmsg_cq *tiny = nullptr;
    ASSERT_EQ(ntbmsg_cq_create(2, nullptr, nullptr, &tiny), 0);
    ntbmsg_channel_options theirs = channel_options(there_);
    theirs.cq = tiny;
    ASSERT_NO_FATAL_FAILURE(open_channel(channel_options(here_), theirs));
    std::vector<uint8_t> memory(64), data = pattern(64, 19);
    ntbmsg_region *region = serve(memory);
    ntbmsg_remote *remote = open_remote(token_of(region));
    const ntbmsg_sge sge = piece(data);
    for (unsigned i = 0; i < 5; ++i) {
        ntbmsg_work w = work(NTBMSG_OP_WRITE_IMM, remote, 0, &sge, 1);
        w.imm = i;
        ASSERT_EQ(post(w), 1);
    }
    settle();
    EXPECT_EQ(here_.seen.size(), 2u) << "the others are not done before they are told";
    for (unsigned i = 0; i < 5; ++i) {
        ntbmsg_completion c{};
        ASSERT_EQ(ntbmsg_cq_poll(tiny, &c, 1), 1);
        EXPECT_EQ(c.imm, i);
        settle();
    }
    EXPECT_EQ(here_.seen.size(), 5u);
    ntbmsg_remote_close(remote);
    EXPECT_EQ(ntbmsg_region_revoke(region), 0);
    EXPECT_EQ(ntbmsg_channel_close(there_.channel), 0);
    there_.channel = nullptr;
    get_to_closes();
    EXPECT_EQ(ntbmsg_cq_destroy(tiny), 0);
    there_.cq = usual;
}

TEST_P(OneSided, NobodyIsToldWhereThereIsNoQueue)
{
    ASSERT_EQ(ntbmsg_channel_close(here_.channel), 0);
    ASSERT_EQ(ntbmsg_channel_close(there_.channel), 0);
    ntbmsg_channel_options theirs = channel_options(there_);
    theirs.cq = nullptr;
    ASSERT_NO_FATAL_FAILURE(open_channel(channel_options(here_), theirs));
    std::vector<uint8_t> memory(64), data = pattern(64, 20);
    ntbmsg_region *region = serve(memory);
    ntbmsg_remote *remote = open_remote(token_of(region));
    const ntbmsg_sge sge = piece(data);
    EXPECT_EQ(run(work(NTBMSG_OP_WRITE, remote, 0, &sge, 1)).status, 0);
    EXPECT_EQ(memory, data);
    std::memset(data.data(), 0xaa, data.size());
    EXPECT_EQ(run(work(NTBMSG_OP_WRITE_IMM, remote, 0, &sge, 1)).status, -EACCES);
    EXPECT_EQ(memory, pattern(64, 20)) << "what is refused is not written";
    ntbmsg_remote *none = nullptr;
    const ntbmsg_region_token token = token_of(region);
    EXPECT_EQ(ntbmsg_remote_open(there_.channel, &token, &none), -EINVAL) << "nor can it post";
    ntbmsg_remote_close(remote);
    EXPECT_EQ(ntbmsg_region_revoke(region), 0);
}

// ---- callbacks

struct Chain {
    ntbmsg_channel *channel = nullptr;
    ntbmsg_work next{};
    unsigned left = 0;
    unsigned told = 0;
};

void on_completion(const ntbmsg_completion *completion, void *arg)
{
    auto &chain = *static_cast<Chain *>(arg);
    EXPECT_EQ(completion->status, 0);
    ++chain.told;
    if (chain.left == 0)
        return;
    --chain.left;
    EXPECT_EQ(ntbmsg_post_burst(chain.channel, &chain.next, 1), 1);
}

// What is cancelled by a close is told by calls too, and they are behind the end of the handle.
TEST_P(OneSided, ACallbackCannotPostOnWhatIsBeingClosed)
{
    ASSERT_EQ(ntbmsg_channel_close(here_.channel), 0);
    ASSERT_EQ(ntbmsg_channel_close(there_.channel), 0);
    struct Told {
        ntbmsg_channel *channel = nullptr;
        ntbmsg_work again{};
        unsigned count = 0;
    } told;
    const auto on_cancelled = [](const ntbmsg_completion *completion, void *arg) {
        auto &t = *static_cast<Told *>(arg);
        EXPECT_EQ(completion->status, -ECANCELED);
        EXPECT_EQ(ntbmsg_post_burst(t.channel, &t.again, 1), -ESHUTDOWN);
        ++t.count;
    };
    ntbmsg_cq *calls = nullptr;
    ASSERT_EQ(ntbmsg_cq_create(1, on_cancelled, &told, &calls), 0);
    ntbmsg_channel_options mine = channel_options(here_);
    mine.cq = calls;
    ASSERT_NO_FATAL_FAILURE(open_channel(mine, channel_options(there_)));
    std::vector<uint8_t> memory(64), data(64);
    ntbmsg_region *region = serve(memory);
    ntbmsg_remote *remote = open_remote(token_of(region));
    const ntbmsg_sge sge = piece(data);
    told.channel = here_.channel;
    told.again = work(NTBMSG_OP_READ, remote, 0, &sge, 1);
    for (unsigned i = 0; i < 3; ++i)
        ASSERT_EQ(post(told.again), 1);
    EXPECT_EQ(ntbmsg_channel_close(here_.channel), 0);
    here_.channel = nullptr;
    get_to_closes();
    EXPECT_EQ(told.count, 3u);
    settle();
    EXPECT_EQ(told.count, 3u);
    ntbmsg_remote_close(remote);
    EXPECT_EQ(ntbmsg_region_revoke(region), 0);
    EXPECT_EQ(ntbmsg_cq_destroy(calls), 0);
}

TEST_P(OneSided, ACallbackMayPost)
{
    ASSERT_EQ(ntbmsg_channel_close(here_.channel), 0);
    ASSERT_EQ(ntbmsg_channel_close(there_.channel), 0);
    Chain chain;
    ntbmsg_cq *calls = nullptr;
    ASSERT_EQ(ntbmsg_cq_create(1, on_completion, &chain, &calls), 0);
    ntbmsg_channel_options mine = channel_options(here_);
    mine.cq = calls;
    ASSERT_NO_FATAL_FAILURE(open_channel(mine, channel_options(there_)));
    ntbmsg_region *region = nullptr;
    ASSERT_EQ(ntbmsg_region_alloc(far_, 4096, every_right, &region), 0);
    ntbmsg_remote *remote = open_remote(token_of(region));
    settle();
    std::vector<uint8_t> data = pattern(64, 21);
    const ntbmsg_sge sge = piece(data);
    chain.channel = here_.channel;
    for (const ntbmsg_op op : {NTBMSG_OP_WRITE, NTBMSG_OP_READ, NTBMSG_OP_WRITE_IMM}) {
        chain.next = work(op, remote, 0, &sge, 1);
        chain.left = 1000;
        chain.told = 0;
        ASSERT_EQ(post_patiently(chain.next), 1);
        EXPECT_TRUE(await([&] { return chain.told == 1001; })) << chain.told;
    }
    ntbmsg_completion none;
    EXPECT_EQ(ntbmsg_cq_poll(calls, &none, 1), 0);
    ntbmsg_remote_close(remote);
    EXPECT_EQ(ntbmsg_region_revoke(region), 0);
    EXPECT_EQ(ntbmsg_channel_close(here_.channel), 0);
    here_.channel = nullptr;
    get_to_closes();
    EXPECT_EQ(ntbmsg_cq_destroy(calls), 0);
}

// A direct write is complete when it is posted: a callback that posts the next one must not keep
// the worker, nor what it has left to be done keep the slot.
TEST_P(OneSided, ACallbackThatAlwaysPostsLeavesThePollAndTheChannel)
{
    ASSERT_EQ(ntbmsg_channel_close(here_.channel), 0);
    ASSERT_EQ(ntbmsg_channel_close(there_.channel), 0);
    constexpr unsigned most = 100000;
    struct Again {
        ntbmsg_channel *channel = nullptr;
        ntbmsg_work work{};
        unsigned told = 0;
        bool closing = false;
    } again;
    const auto post_again = [](const ntbmsg_completion *completion, void *arg) {
        auto &a = *static_cast<Again *>(arg);
        EXPECT_TRUE(completion->status == 0 || (a.closing && completion->status == -ECANCELED));
        if (++a.told < most) {
            EXPECT_EQ(ntbmsg_post_burst(a.channel, &a.work, 1), a.closing ? -ESHUTDOWN : 1);
        }
    };
    ntbmsg_cq *calls = nullptr;
    ASSERT_EQ(ntbmsg_cq_create(1, post_again, &again, &calls), 0);
    ntbmsg_channel_options mine = channel_options(here_);
    mine.cq = calls;
    ntbmsg_region *region = nullptr;
    ASSERT_EQ(ntbmsg_region_alloc(far_, 4096, every_right, &region), 0);
    std::vector<uint8_t> data = pattern(64, 22);
    const ntbmsg_sge sge = piece(data);
    for (unsigned i = 0; i < 2; ++i) { // the second one goes on by polls behind the first one's end
        ASSERT_NO_FATAL_FAILURE(open_channel(mine, channel_options(there_)));
        ntbmsg_remote *remote = open_remote(token_of(region));
        settle();
        again.channel = here_.channel;
        again.work = work(NTBMSG_OP_WRITE, remote, 0, &sge, 1);
        again.told = 0;
        again.closing = false;
        ASSERT_EQ(post_patiently(again.work), 1);
        ASSERT_TRUE(await([&] { return again.told > 3; }));
        EXPECT_LT(again.told, 1000u);
        ASSERT_EQ(ntbmsg_channel_close(there_.channel), 0);
        ASSERT_TRUE(await(
            [&] { return ntbmsg_channel_state(here_.channel) == NTBMSG_CHANNEL_PEER_CLOSED; }));
        again.closing = true;
        ASSERT_EQ(ntbmsg_channel_close(here_.channel), 0);
        settle();
        ntbmsg_remote_close(remote);
    }
    here_.channel = there_.channel = nullptr;
    EXPECT_EQ(ntbmsg_region_revoke(region), 0);
    EXPECT_EQ(ntbmsg_cq_destroy(calls), 0);
}

TEST_P(OneSided, ACallbackMayResetTheChannelOfAWord)
{
    ASSERT_EQ(ntbmsg_channel_close(here_.channel), 0);
    ASSERT_EQ(ntbmsg_channel_close(there_.channel), 0);
    unsigned told = 0;
    const auto reset = [](const ntbmsg_completion *completion, void *arg) {
        ++*static_cast<unsigned *>(arg);
        EXPECT_EQ(ntbmsg_channel_reset(completion->channel, 5), 0);
    };
    ntbmsg_cq *calls = nullptr;
    ASSERT_EQ(ntbmsg_cq_create(1, reset, &told, &calls), 0);
    ntbmsg_channel_options theirs = channel_options(there_);
    theirs.cq = calls;
    ASSERT_NO_FATAL_FAILURE(open_channel(channel_options(here_), theirs));
    std::vector<uint8_t> memory(64), data = pattern(64, 23);
    ntbmsg_region *region = serve(memory);
    ntbmsg_remote *remote = open_remote(token_of(region));
    const ntbmsg_sge sge = piece(data);
    for (unsigned i = 0; i < 4; ++i)
        ASSERT_EQ(post(work(NTBMSG_OP_WRITE_IMM, remote, 0, &sge, 1)), 1);
    // A dedicated worker gets to a reset behind what it is at.
    for (unsigned i = 0; i < 4; ++i) {
        const int status = next(here_).status;
        EXPECT_TRUE(status == -ECONNRESET || (GetParam() && status == 0)) << status;
    }
    EXPECT_GE(told, 1u);
    EXPECT_LE(told, GetParam() ? 4u : 1u);
    settle();
    EXPECT_EQ(ntbmsg_channel_state(here_.channel), NTBMSG_CHANNEL_RESET);
    for (unsigned i = 0; i < 100; ++i) {
        EXPECT_EQ(ntbmsg_worker_poll(there_.worker), 0);
        EXPECT_EQ(ntbmsg_worker_poll(here_.worker), 0) << "nothing is answered any more";
    }
    ntbmsg_remote_close(remote);
    EXPECT_EQ(ntbmsg_region_revoke(region), 0);
    EXPECT_EQ(ntbmsg_channel_close(there_.channel), 0);
    there_.channel = nullptr;
    get_to_closes();
    EXPECT_EQ(ntbmsg_cq_destroy(calls), 0);
}

INSTANTIATE_TEST_SUITE_P(Workers, OneSided, testing::Bool(), [](const auto &worker) {
    return worker.param ? "Dedicated" : "RunToCompletion";
});

} // namespace

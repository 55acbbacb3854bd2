// SPDX-License-Identifier: BSD-3-Clause
// One-sided operations that are refused: by the end they are posted at, and by the owner of a
// region.
#include "one_sided.hpp"

namespace
{

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
    EXPECT_EQ(ntbmsg_channel_post_burst(nullptr, &write, 1), -EINVAL);
    EXPECT_EQ(ntbmsg_channel_post_burst(here_.channel, nullptr, 1), -EINVAL);
    EXPECT_EQ(ntbmsg_channel_post_burst(here_.channel, &write, 0), -EINVAL);
    EXPECT_EQ(ntbmsg_channel_post_burst(there_.channel, &write, 1), -EINVAL) << "another's remote";
    const ntbmsg_work two[] = {write, rows[0].w};
    EXPECT_EQ(ntbmsg_channel_post_burst(here_.channel, two, 2), 1) << "up to the impossible one";
    EXPECT_EQ(next(here_).id, write.id);
    settle();
    EXPECT_TRUE(here_.seen.empty());
    EXPECT_EQ(info_of(region).refused + info_of(atomic).refused, 0u) << "none reached the peer";
    ntbmsg_remote_close(remote);
    ntbmsg_remote_close(words);
    EXPECT_EQ(ntbmsg_region_release(region), 0);
    EXPECT_EQ(ntbmsg_region_release(atomic), 0);
}

// Plain writes behind another one are stored without most of the checks.
TEST_P(OneSided, TheImpossibleBehindDirectWritesIsRefused)
{
    ntbmsg_region *region = nullptr, *other = nullptr;
    ASSERT_EQ(ntbmsg_region_alloc(far_, 4096, NTBMSG_RIGHT_WRITE, &region), 0);
    ASSERT_EQ(ntbmsg_region_alloc(far_, 4096, NTBMSG_RIGHT_READ, &other), 0);
    ntbmsg_remote *remote = open_remote(token_of(region));
    ntbmsg_remote *only_read = open_remote(token_of(other));
    ASSERT_TRUE(becomes_direct(remote, region));
    const uint64_t end = info_of(region).bytes;
    std::vector<uint8_t> data = pattern(end + 1, 7);
    auto *memory = static_cast<uint8_t *>(info_of(region).address);
    const ntbmsg_sge good{data.data(), 64, 0}, null{nullptr, 1, 0},
        large{data.data(), static_cast<uint32_t>(end + 1), 0},
        huge{data.data(), NTBMSG_MAX_OPERATION + 1u, 0};
    ntbmsg_work plain = work(NTBMSG_OP_WRITE, remote, 0, &good, 1);
    plain.flags = 0;
    const auto changed = [&plain](auto change) {
        ntbmsg_work w = plain;
        change(w);
        return w;
    };
    const struct {
        const char *what;
        ntbmsg_work w;
        int rc;
    } rows[] = {
        {"no remote", changed([](auto &w) { w.remote = nullptr; }), -EINVAL},
        {"op 0", changed([](auto &w) { w.op = 0; }), -EINVAL},
        {"an unknown flag", changed([](auto &w) { w.flags = 4; }), -EINVAL},
        {"a piece without an array", changed([](auto &w) { w.sges = nullptr; }), -EINVAL},
        {"a piece without memory", changed([&](auto &w) { w.sges = &null; }), -EINVAL},
        {"17 pieces", changed([](auto &w) { w.sge_count = NTBMSG_MAX_SGES + 1; }), -EINVAL},
        {"too long", changed([&](auto &w) { w.sges = &huge; }), -EINVAL},
        {"longer than the region", changed([&](auto &w) { w.sges = &large; }), -ERANGE},
        {"over the end", changed([&](auto &w) { w.offset = end - 63; }), -ERANGE},
        {"far behind", changed([](auto &w) { w.offset = ~uint64_t{0} - 8; }), -ERANGE},
        {"no right to read", changed([](auto &w) { w.op = NTBMSG_OP_READ; }), -EACCES},
        {"no right to write", changed([&](auto &w) { w.remote = only_read; }), -EACCES},
    };
    for (const auto &row : rows) {
        std::memset(memory, 0, end);
        ntbmsg_work works[] = {plain, plain, row.w, plain};
        works[1].offset = 64;
        works[3].offset = 128;
        EXPECT_EQ(ntbmsg_channel_post_burst(here_.channel, works, 4), 2) << row.what;
        EXPECT_EQ(ntbmsg_channel_post_burst(here_.channel, works + 2, 2), row.rc) << row.what;
        EXPECT_EQ(std::memcmp(memory, data.data(), 64), 0) << row.what;
        EXPECT_EQ(std::memcmp(memory + 64, data.data(), 64), 0) << row.what;
        EXPECT_EQ(std::count(memory + 128, memory + end, 0), static_cast<int64_t>(end - 128))
            << row.what << ": nothing else is stored";
    }
    settle();
    EXPECT_TRUE(here_.seen.empty());
    ntbmsg_remote_close(remote);
    ntbmsg_remote_close(only_read);
    EXPECT_EQ(ntbmsg_region_release(region), 0);
    EXPECT_EQ(ntbmsg_region_release(other), 0);
}

/// What a token of ours says, to be forged: doc/channel-protocol.md, section 5.
struct Forged {
    uint64_t key, bytes, window;
    uint32_t rights, direct;
    uint64_t reserved;
};

// Semantics: one-sided-4, one-sided-7
TEST_P(OneSided, TheResponderTrustsNoToken)
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
    EXPECT_EQ(run(quiet).status, -EKEYREJECTED) << "a failure is reported, signal or not";
    EXPECT_EQ(memory, std::vector<uint8_t>(4096)) << "nothing was changed";
    EXPECT_TRUE(there_.seen.empty()) << "no word was reported";
    EXPECT_EQ(info_of(region).refused, 3u);
    EXPECT_EQ(info_of(small).refused, 2u);
    for (ntbmsg_remote *r : {stranger, other_slot, writer, longer, unaligned})
        ntbmsg_remote_close(r);
    for (ntbmsg_region *r : {region, small, odd})
        EXPECT_EQ(ntbmsg_region_release(r), 0);
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
    EXPECT_EQ(ntbmsg_region_release(region), 0);
}

} // namespace

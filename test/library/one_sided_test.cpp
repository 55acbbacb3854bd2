// SPDX-License-Identifier: BSD-3-Clause
// One-sided operations: what is done, and what is reported of it.
#include "one_sided.hpp"

namespace
{

// Semantics: one-sided-1
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
    EXPECT_EQ(ntbmsg_region_release(region), 0);
}

// Semantics: one-sided-2
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
    EXPECT_EQ(ntbmsg_region_release(region), 0);
}

// Semantics: one-sided-1
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
    EXPECT_EQ(ntbmsg_region_release(region), 0);
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
    EXPECT_EQ(ntbmsg_region_release(region), 0);
}

// Semantics: one-sided-3
TEST_P(OneSided, ImmediateDataCompleteOnceTheDataAreThere)
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
        EXPECT_EQ(told.bytes, data.size()) << (region == direct ? "direct" : "served, in pieces");
        EXPECT_EQ(told.status, 0);
        EXPECT_EQ(told.id, 0u);
        EXPECT_EQ(told.channel, there_.channel);
        EXPECT_EQ(told.user, &there_);
        EXPECT_EQ(std::memcmp(info_of(region).address, data.data(), data.size()), 0);
        EXPECT_EQ(next(here_).id, w.id);
        ntbmsg_remote_close(remote);
        EXPECT_EQ(ntbmsg_region_release(region), 0);
    }
    settle();
    EXPECT_TRUE(there_.seen.empty()) << "once";
}

// Semantics: one-sided-1
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
    EXPECT_EQ(ntbmsg_region_release(region), 0);
}

// Semantics: one-sided-4
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
    ASSERT_EQ(ntbmsg_channel_post_burst(here_.channel, works.data(), 32), 32);
    for (const ntbmsg_work &w : works) {
        if (w.flags == 0)
            continue; // nothing is reported
        EXPECT_EQ(next(here_).id, w.id);
    }
    settle();
    EXPECT_TRUE(here_.seen.empty());
    ntbmsg_remote_close(remote);
    EXPECT_EQ(ntbmsg_region_release(direct), 0);
}

// Semantics: one-sided-4
TEST_P(OneSided, WritesAreStoredInOrderWhateverStandsBetweenThem)
{
    ntbmsg_region *direct = nullptr, *second = nullptr;
    ASSERT_EQ(ntbmsg_region_alloc(far_, 4096, NTBMSG_RIGHT_WRITE | NTBMSG_RIGHT_READ, &direct), 0);
    ASSERT_EQ(ntbmsg_region_alloc(far_, 4096, NTBMSG_RIGHT_WRITE, &second), 0);
    ntbmsg_remote *remote = open_remote(token_of(direct));
    ntbmsg_remote *beside = open_remote(token_of(second));
    ASSERT_TRUE(becomes_direct(remote, direct));
    ASSERT_TRUE(becomes_direct(beside, second));
    const auto *memory = static_cast<const uint8_t *>(info_of(direct).address);
    const auto *other_memory = static_cast<const uint8_t *>(info_of(second).address);
    std::vector<std::vector<uint8_t>> data;
    for (unsigned i = 0; i < 40; ++i)
        data.push_back(pattern(64, i + 1));
    std::vector<uint8_t> read(64);
    const ntbmsg_sge into = piece(read);
    std::vector<ntbmsg_sge> sges;
    for (auto &d : data)
        sges.push_back(piece(d));
    std::vector<ntbmsg_work> works;
    for (unsigned i = 0; i < 40; ++i) { // all into one place of each region
        works.push_back(work(NTBMSG_OP_WRITE, i % 7 == 3 ? beside : remote, 0, &sges[i], 1));
        works.back().flags = i % 11 == 5  ? NTBMSG_WORK_CONFIRM | NTBMSG_WORK_SIGNAL
                             : i % 6 == 4 ? NTBMSG_WORK_SIGNAL
                                          : 0;
    }
    works[20] = work(NTBMSG_OP_READ, remote, 0, &into, 1);
    for (size_t from = 0; from < works.size();) { // what is behind an answer waits for it
        const int taken = ntbmsg_channel_post_burst(here_.channel, works.data() + from,
                                                    static_cast<uint16_t>(works.size() - from));
        ASSERT_GE(taken, 0);
        from += static_cast<size_t>(taken);
        settle();
    }
    for (const ntbmsg_work &w : works) {
        if ((w.flags & NTBMSG_WORK_SIGNAL) == 0)
            continue;
        EXPECT_EQ(next(here_).id, w.id);
    }
    settle();
    EXPECT_TRUE(here_.seen.empty());
    EXPECT_EQ(std::memcmp(memory, data[39].data(), 64), 0) << "the last one stays";
    EXPECT_EQ(std::memcmp(other_memory, data[38].data(), 64), 0);
    ntbmsg_remote_close(remote);
    ntbmsg_remote_close(beside);
    EXPECT_EQ(ntbmsg_region_release(direct), 0);
    EXPECT_EQ(ntbmsg_region_release(second), 0);
}

INSTANTIATE_TEST_SUITE_P(Workers, OneSided, testing::Bool(), [](const auto &worker) {
    return worker.param ? "Dedicated" : "RunToCompletion";
});

} // namespace

// SPDX-License-Identifier: BSD-3-Clause
// Regions: what can be registered, what cannot, and what revoking leaves.
#include "operating.hpp"

#include <rte_pmd_plx_ntb.h>
#include <rte_pmd_plx_ntb_test.h>

#include <sys/mman.h>
#include <unistd.h>

namespace
{

class Region : public Operating
{
protected:
    uint32_t free_segments()
    {
        rte_pmd_plx_ntb_memory_info info{};
        info.size = sizeof(info);
        EXPECT_EQ(rte_pmd_plx_ntb_memory_info_get(
                      static_cast<uint16_t>(rte_pmd_plx_ntb_find(far_device)), &info),
                  0);
        return info.free_segments;
    }
};

TEST_F(Region, BadArgumentsAreRefused)
{
    std::vector<uint8_t> memory(64);
    ntbmsg_region *region = nullptr;
    const auto add = [&](void *address, size_t bytes, uint32_t rights) {
        return ntbmsg_region_register(far_, address, bytes, rights, &region);
    };
    EXPECT_EQ(add(nullptr, 64, every_right), -EINVAL);
    EXPECT_EQ(add(memory.data(), 0, every_right), -EINVAL);
    EXPECT_EQ(add(memory.data(), (size_t{1} << 40) + 1, every_right), -EINVAL);
    EXPECT_EQ(add(reinterpret_cast<void *>(~uintptr_t{0} - 7), 64, every_right), -EINVAL)
        << "wraps";
    EXPECT_EQ(add(memory.data(), 64, 0), -EINVAL);
    EXPECT_EQ(add(memory.data(), 64, 8), -EINVAL);
    EXPECT_EQ(ntbmsg_region_register(nullptr, memory.data(), 64, 1, &region), -EINVAL);
    EXPECT_EQ(ntbmsg_region_register(far_, memory.data(), 64, 1, nullptr), -EINVAL);
    EXPECT_EQ(ntbmsg_region_alloc(nullptr, 64, 1, &region), -EINVAL);
    EXPECT_EQ(ntbmsg_region_alloc(far_, 64, 1, nullptr), -EINVAL);
    EXPECT_EQ(ntbmsg_region_alloc(far_, 0, 1, &region), -EINVAL);
    EXPECT_EQ(ntbmsg_region_alloc(far_, 64, 0, &region), -EINVAL);
    EXPECT_EQ(ntbmsg_region_alloc(far_, 64, 8, &region), -EINVAL);
    EXPECT_EQ(ntbmsg_region_alloc(far_, (size_t{1} << 40) + 1, 1, &region), -EINVAL);
    EXPECT_EQ(ntbmsg_region_alloc(far_, size_t{1} << 40, 1, &region), -ENOSPC);
    EXPECT_EQ(region, nullptr);
    EXPECT_EQ(ntbmsg_region_release(nullptr), -EINVAL);

    ASSERT_EQ(add(memory.data(), 64, every_right), 0);
    ntbmsg_region_info info{};
    EXPECT_EQ(ntbmsg_region_info_get(region, &info), -EINVAL) << "of another library";
    EXPECT_EQ(ntbmsg_region_info_get(region, nullptr), -EINVAL);
    info.size = sizeof(info);
    EXPECT_EQ(ntbmsg_region_info_get(nullptr, &info), -EINVAL);
    ntbmsg_region_token token;
    EXPECT_EQ(ntbmsg_region_token_get(region, nullptr), -EINVAL);
    EXPECT_EQ(ntbmsg_region_token_get(nullptr, &token), -EINVAL);
    EXPECT_EQ(ntbmsg_region_release(region), 0);
    EXPECT_EQ(ntbmsg_region_release(region), -EINVAL) << "twice";
    EXPECT_EQ(ntbmsg_region_token_get(region, &token), -EINVAL);
}

TEST_F(Region, OnlyMemoryThatThereIsCanBeRegistered)
{
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    auto *memory = static_cast<uint8_t *>(
        mmap(nullptr, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(memory, MAP_FAILED);
    ASSERT_EQ(mprotect(memory + page, page, PROT_READ), 0);
    ASSERT_EQ(munmap(memory + 3 * page, page), 0);
    const struct {
        const char *what;
        size_t at, bytes;
        uint32_t rights;
        int rc;
    } rows[] = {
        {"what can be written", 0, page, every_right, 0},
        {"into what can only be read", 1, page, NTBMSG_RIGHT_WRITE, -EFAULT},
        {"what can only be read", page, 2 * page, NTBMSG_RIGHT_ATOMIC, -EFAULT},
        {"to be read", 0, 3 * page, NTBMSG_RIGHT_READ, 0},
        {"into a hole", 2 * page, page + 1, NTBMSG_RIGHT_READ, -EFAULT},
        {"a hole", 3 * page, 1, NTBMSG_RIGHT_READ, -EFAULT},
        {"behind the hole", 2 * page, page, every_right, 0},
    };
    for (const auto &row : rows) {
        ntbmsg_region *region = nullptr;
        EXPECT_EQ(ntbmsg_region_register(far_, memory + row.at, row.bytes, row.rights, &region),
                  row.rc)
            << row.what;
        if (region != nullptr) {
            EXPECT_EQ(ntbmsg_region_release(region), 0);
        }
    }
    munmap(memory, 3 * page);
}

TEST_F(Region, AllocatedMemoryIsZerosInWholeGranules)
{
    const uint32_t before = free_segments();
    ntbmsg_region *region = nullptr;
    ASSERT_EQ(ntbmsg_region_alloc(far_, 1, NTBMSG_RIGHT_WRITE, &region), 0);
    const ntbmsg_region_info info = info_of(region);
    EXPECT_EQ(info.rights, NTBMSG_RIGHT_WRITE);
    EXPECT_EQ(info.direct, 1u);
    EXPECT_EQ(info.bytes % 64, 0u);
    const auto *memory = static_cast<const uint8_t *>(info.address);
    EXPECT_TRUE(std::all_of(memory, memory + info.bytes, [](uint8_t b) { return b == 0; }));
    EXPECT_EQ(free_segments(), before) << "not exposed before somebody asks for its token";
    token_of(region);
    token_of(region);
    EXPECT_EQ(free_segments(), before - 1) << "once";
    EXPECT_EQ(ntbmsg_region_release(region), 0);
    EXPECT_EQ(free_segments(), before);

    ASSERT_EQ(ntbmsg_region_alloc(far_, 1, NTBMSG_RIGHT_READ | NTBMSG_RIGHT_ATOMIC, &region), 0);
    EXPECT_EQ(info_of(region).direct, 0u) << "only writes can be direct";
    token_of(region);
    EXPECT_EQ(free_segments(), before);
    EXPECT_EQ(ntbmsg_region_release(region), 0);
}

TEST_F(Region, NothingIsLeftOfManyRegions)
{
    const uint32_t before = free_segments();
    std::vector<uint8_t> memory(64);
    std::vector<ntbmsg_region *> regions;
    for (;;) {
        ntbmsg_region *region = nullptr;
        const int rc = ntbmsg_region_register(far_, memory.data(), 64, every_right, &region);
        if (rc != 0) {
            EXPECT_EQ(rc, -ENOMEM);
            break;
        }
        regions.push_back(region);
    }
    EXPECT_EQ(regions.size(), 4096u);
    for (ntbmsg_region *region : regions)
        EXPECT_EQ(ntbmsg_region_release(region), 0);
    for (unsigned i = 0; i < 300; ++i) {
        ntbmsg_region *region = nullptr;
        ASSERT_EQ(ntbmsg_region_alloc(far_, 1, NTBMSG_RIGHT_WRITE, &region), 0) << i;
        token_of(region);
        ASSERT_EQ(ntbmsg_region_release(region), 0);
    }
    EXPECT_EQ(free_segments(), before);
}

// A window that is full: the region is served, its token says so, and writes arrive.
TEST_F(Region, WhereNoGranuleIsLeftARegionIsServed)
{
    const uint16_t id = static_cast<uint16_t>(rte_pmd_plx_ntb_find(far_device));
    const uint32_t segments = free_segments();
    rte_pmd_plx_ntb_memory_info info{};
    info.size = sizeof(info);
    ASSERT_EQ(rte_pmd_plx_ntb_memory_info_get(id, &info), 0);
    rte_pmd_plx_ntb_memory rest{};
    uint64_t bytes = info.segment_bytes;
    while (bytes * 2 <= segments * info.segment_bytes && bytes * 2 <= uint64_t{64} << 20)
        bytes *= 2;
    std::vector<rte_pmd_plx_ntb_memory> taken;
    for (; bytes >= info.segment_bytes; bytes /= 2) {
        while (free_segments() >= bytes / info.segment_bytes) {
            if (rte_pmd_plx_ntb_memory_alloc(id, bytes, &rest) != 0)
                break;
            uint64_t offset = 0;
            if (rte_pmd_plx_ntb_memory_expose(id, rest.address, rest.bytes, 3,
                                              RTE_PMD_PLX_NTB_MEMORY_ANY, &offset) != 0) {
                rte_pmd_plx_ntb_memory_free(id, rest.address);
                break;
            }
            taken.push_back(rest);
        }
    }
    ASSERT_EQ(free_segments(), 0u);
    ntbmsg_region *region = nullptr;
    ASSERT_EQ(ntbmsg_region_alloc(far_, 1, NTBMSG_RIGHT_WRITE, &region), 0);
    ntbmsg_remote *remote = open_remote(token_of(region));
    std::vector<uint8_t> data = pattern(64, 1);
    const ntbmsg_sge sge{data.data(), 64, 0};
    EXPECT_EQ(run(work(NTBMSG_OP_WRITE, remote, 0, &sge, 1)).status, 0);
    EXPECT_EQ(std::memcmp(info_of(region).address, data.data(), 64), 0);
    EXPECT_EQ(info_of(region).writes, 1u);
    ntbmsg_remote_close(remote);
    EXPECT_EQ(ntbmsg_region_release(region), 0);
    for (const auto &m : taken) {
        EXPECT_EQ(rte_pmd_plx_ntb_memory_revoke(id, m.address, m.bytes), 0);
        EXPECT_EQ(rte_pmd_plx_ntb_memory_free(id, m.address), 0);
    }
}

TEST_F(Region, AChipThatDoesNotAnswerKeepsTheRegion)
{
    const auto id = static_cast<uint16_t>(rte_pmd_plx_ntb_find(far_device));
    ntbmsg_region *region = nullptr;
    ASSERT_EQ(ntbmsg_region_alloc(far_, 1, NTBMSG_RIGHT_WRITE, &region), 0);
    const ntbmsg_region_token token = token_of(region);
    ASSERT_EQ(rte_pmd_plx_ntb_inject(id, RTE_PMD_PLX_NTB_FAULT_CARD_GONE, 1), 0);
    EXPECT_EQ(ntbmsg_region_release(region), -EIO);
    ntbmsg_region_token again;
    EXPECT_EQ(ntbmsg_region_token_get(region, &again), -EINVAL) << "no one new is let in";
    ASSERT_EQ(rte_pmd_plx_ntb_inject(id, RTE_PMD_PLX_NTB_FAULT_CARD_GONE, 0), 0);
    EXPECT_TRUE(await([&] { return ntbmsg_region_release(region) == 0; }));
    (void)token;
}

TEST_F(Region, AnEndpointThatClosesRevokesWhatIsLeft)
{
    ntbmsg_region *direct = nullptr, *served = nullptr;
    std::vector<uint8_t> memory(64);
    ASSERT_EQ(ntbmsg_region_alloc(far_, 1, NTBMSG_RIGHT_WRITE, &direct), 0);
    ASSERT_EQ(ntbmsg_region_register(far_, memory.data(), 64, every_right, &served), 0);
    token_of(direct); // the end of the test closes it
}

} // namespace

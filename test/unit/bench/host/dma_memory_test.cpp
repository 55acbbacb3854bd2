// SPDX-License-Identifier: BSD-3-Clause
// Memory that an engine copies from, where EAL knows it by physical addresses.
#include "host/dma_memory.hpp"

#include "pages.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <random>

#include <rte_eal.h>
#include <rte_malloc.h>

namespace
{

constexpr size_t page = 4096;
constexpr size_t longest = 1 << 20;

/// Pieces that come and go, so that free memory begins anywhere in a page.
class Pieces
{
public:
    ~Pieces()
    {
        for (void *piece : pieces_)
            rte_free(piece);
    }
    void change(std::mt19937 &random)
    {
        void *&piece = pieces_[random() % pieces_.size()];
        rte_free(piece);
        piece = random() % 2 != 0 ? rte_malloc(nullptr, 64 + random() % (3 << 20), 64) : nullptr;
    }

private:
    std::array<void *, 24> pieces_{};
};

} // namespace

TEST(DmaMemory, BusAddressesFollowOneAnother)
{
    if (rte_eal_iova_mode() != RTE_IOVA_PA || rte_eal_has_hugepages() == 0)
        GTEST_SKIP() << "EAL has no hugepages, or does not know where they lie";
    std::mt19937 random(1);
    Pieces pieces;
    bench::DmaMemory memory;
    for (unsigned round = 0; round < 200; ++round) {
        pieces.change(random);
        ASSERT_TRUE(memory.reserve(longest)) << "round " << round << ", seed 1";
        for (size_t at = 0; at < longest; at += page)
            ASSERT_EQ(rte_mem_virt2iova(memory.data() + at), memory.iova() + at)
                << "round " << round << ", seed 1, at " << at;
    }
}

int main(int argc, char **argv)
{
    testing::InitGoogleTest(&argc, argv);
    if (testing::GTEST_FLAG(list_tests))
        return RUN_ALL_TESTS();
    constexpr unsigned eal_megabytes = 64;
    std::vector<std::string> arguments =
        test::eal_arguments("test", test::huge_pages_granted(), eal_megabytes);
    std::vector<char *> pointers;
    for (std::string &argument : arguments)
        pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    if (rte_eal_init(static_cast<int>(arguments.size()), pointers.data()) < 0) {
        std::fprintf(stderr, "EAL did not start\n");
        return 2;
    }
    const int result = RUN_ALL_TESTS();
    rte_eal_cleanup();
    return result;
}

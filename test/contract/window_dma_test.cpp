// SPDX-License-Identifier: BSD-3-Clause
// The peer's DMA engine as a dmadev, driven at memory that is lent to it, and that no longer is.
#include "pair.hpp"

#include <algorithm>

#include <rte_dmadev.h>
#include <rte_malloc.h>
#include <rte_memory.h>

#include <poll.h>

using namespace contract;

namespace
{

constexpr uint64_t mib = uint64_t{1} << 20;
constexpr uint32_t chunk = 1u << 16;
constexpr uint32_t both = RTE_PMD_PLX_NTB_WINDOW_WRITE | RTE_PMD_PLX_NTB_WINDOW_READ;

/// Memory of the near host, and where the far one sees it.
struct Lent {
    rte_pmd_plx_ntb_window_memory memory{};
    uint64_t offset = 0;

    uint64_t word(uint64_t at = 0) const
    {
        return *reinterpret_cast<volatile uint64_t *>(static_cast<char *>(memory.address) + at);
    }
};

class WindowDma : public Pair
{
protected:
    void open_engine()
    {
        ASSERT_EQ(near().bring_up(cable(), usual()), 0);
        ASSERT_EQ(far().bring_up(cable(), {.devargs = patient + ",dmadev=1,dma=0"}), 0);
        await_meeting(1);
        dev_ = static_cast<int16_t>(
            rte_dma_get_dev_id_by_name((std::string(far_station().name()) + "_dma0").c_str()));
        ASSERT_GE(dev_, 0);
        const rte_dma_conf conf{.nb_vchans = 1};
        rte_dma_vchan_conf vchan{};
        vchan.direction = RTE_DMA_DIR_MEM_TO_MEM;
        vchan.nb_desc = 64;
        ASSERT_EQ(rte_dma_configure(dev_, &conf), 0);
        ASSERT_EQ(rte_dma_vchan_setup(dev_, 0, &vchan), 0);
        ASSERT_EQ(rte_dma_start(dev_), 0);
        source_ = static_cast<uint64_t *>(rte_zmalloc("source", chunk, 4096));
        ASSERT_NE(source_, nullptr);
    }
    void lend(Lent *out)
    {
        ASSERT_EQ(rte_pmd_plx_ntb_window_alloc(id(), 2 * mib, &out->memory), 0);
        ASSERT_EQ(rte_pmd_plx_ntb_window_expose(id(), out->memory.address, out->memory.bytes, both,
                                                RTE_PMD_PLX_NTB_WINDOW_ANY, &out->offset),
                  0);
        ASSERT_TRUE(far().store_until(out->offset, 0x11, [out] { return out->word() == 0x11; }));
    }
    int revoke(const Lent &lent)
    {
        return rte_pmd_plx_ntb_window_revoke(id(), lent.memory.address, lent.memory.bytes);
    }
    /// The engine stores @p value all over the first chunk. @return how it says that it went
    rte_dma_status_code drive(uint64_t value, const Lent &lent)
    {
        rte_pmd_plx_ntb_window_view view{};
        EXPECT_EQ(rte_pmd_plx_ntb_window_peer(far_station().id(), lent.offset, chunk, &view), 0);
        EXPECT_NE(view.bus, 0u);
        std::fill_n(source_, chunk / 8, value);
        EXPECT_GE(rte_dma_copy(dev_, 0, rte_mem_virt2iova(source_), view.bus, chunk,
                               RTE_DMA_OP_FLAG_SUBMIT),
                  0);
        rte_dma_status_code how = RTE_DMA_STATUS_NOT_ATTEMPTED;
        for (int ms = 0; ms < 60'000; ++ms) {
            if (rte_dma_completed_status(dev_, 0, 1, nullptr, &how) == 1)
                return how;
            poll(nullptr, 0, 1);
        }
        ADD_FAILURE() << "the engine says nothing";
        return how;
    }
    void TearDown() override
    {
        if (dev_ >= 0)
            rte_dma_stop(dev_);
        rte_free(source_);
        Pair::TearDown();
    }

private:
    test::Station &far_station() { return static_cast<test::LocalHost &>(far()).station(); }

    int16_t dev_ = -1;
    uint64_t *source_ = nullptr;
};

TEST_P(WindowDma, ARevokedSegmentIsOutOfReachAndItsNeighbourIsNot)
{
    ASSERT_NO_FATAL_FAILURE(open_engine());
    Lent gone, other;
    ASSERT_NO_FATAL_FAILURE(lend(&gone));
    ASSERT_NO_FATAL_FAILURE(lend(&other));
    EXPECT_EQ(drive(0x21, gone), RTE_DMA_STATUS_SUCCESSFUL);
    EXPECT_EQ(gone.word(), 0x21u);
    EXPECT_EQ(gone.word(chunk - 8), 0x21u);

    ASSERT_EQ(revoke(gone), 0);
    EXPECT_EQ(drive(0x22, gone), RTE_DMA_STATUS_BUS_WRITE_ERROR);
    for (uint64_t at = 0; at < gone.memory.bytes; at += 8)
        ASSERT_NE(gone.word(at), 0x22u) << at;
    EXPECT_EQ(drive(0x23, other), RTE_DMA_STATUS_SUCCESSFUL);
    EXPECT_EQ(other.word(chunk - 8), 0x23u);
    EXPECT_EQ(near().events(), "B");
    EXPECT_EQ(revoke(other), 0);
}

INSTANTIATE_TEST_SUITE_P(OneProcess, WindowDma,
                         testing::Values(Setting{"threads", BackEnd::threads, "", ""}), name_of);

} // namespace

// SPDX-License-Identifier: BSD-3-Clause
// The peer's DMA engine as a dmadev, driven at memory that is exposed to it, and that no longer is;
// and as a foreign engine, whose requester id has to be entered.
#include "pair.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <rte_dmadev.h>
#include <rte_malloc.h>
#include <rte_memory.h>
#include <rte_rawdev.h>

#include <poll.h>

using namespace contract;

namespace
{

constexpr uint64_t mib = uint64_t{1} << 20;
constexpr uint32_t chunk = 1u << 16;
constexpr uint32_t both = RTE_PMD_PLX_NTB_MEMORY_WRITE | RTE_PMD_PLX_NTB_MEMORY_READ;

/// Memory of the near host, and where the far one sees it.
struct ExposedSegment {
    rte_pmd_plx_ntb_memory memory{};
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
        await_connected(1);
        start_dmadev();
        source_ = static_cast<uint64_t *>(rte_zmalloc("source", chunk, 4096));
        ASSERT_NE(source_, nullptr);
    }
    void start_dmadev()
    {
        dev_ = static_cast<int16_t>(
            rte_dma_get_dev_id_by_name((std::string(far_device().name()) + "_dma0").c_str()));
        ASSERT_GE(dev_, 0);
        const rte_dma_conf conf{.nb_vchans = 1};
        rte_dma_vchan_conf vchan{};
        vchan.direction = RTE_DMA_DIR_MEM_TO_MEM;
        vchan.nb_desc = 64;
        ASSERT_EQ(rte_dma_configure(dev_, &conf), 0);
        ASSERT_EQ(rte_dma_vchan_setup(dev_, 0, &vchan), 0);
        ASSERT_EQ(rte_dma_start(dev_), 0);
    }
    void stop_dmadev() { ASSERT_EQ(rte_dma_stop(dev_), 0); }
    void expose(ExposedSegment *out)
    {
        ASSERT_EQ(rte_pmd_plx_ntb_memory_alloc(id(), 2 * mib, &out->memory), 0);
        ASSERT_EQ(rte_pmd_plx_ntb_memory_expose(id(), out->memory.address, out->memory.bytes, both,
                                                RTE_PMD_PLX_NTB_MEMORY_ANY, &out->offset),
                  0);
        ASSERT_TRUE(far().store_until(out->offset, 0x11, [out] { return out->word() == 0x11; }));
    }
    int revoke(const ExposedSegment &exposed)
    {
        return rte_pmd_plx_ntb_memory_revoke(id(), exposed.memory.address, exposed.memory.bytes);
    }
    /// The engine stores @p value all over the first chunk. @return how it says that it went
    rte_dma_status_code drive(uint64_t value, const ExposedSegment &exposed)
    {
        rte_pmd_plx_ntb_window_view view{};
        EXPECT_EQ(rte_pmd_plx_ntb_window_view_get(far_device().id(), exposed.offset, chunk, &view),
                  0);
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

    test::LocalDevice &far_device() { return static_cast<test::LocalHost &>(far()).local_device(); }
    uint16_t far_id() { return far_device().id(); }
    std::vector<rte_pmd_plx_ntb_requester> far_requesters()
    {
        std::vector<rte_pmd_plx_ntb_requester> list(32);
        const int count = rte_pmd_plx_ntb_requester_list(far_id(), list.data(), 32);
        EXPECT_GE(count, 3);
        list.resize(static_cast<size_t>(std::max(count, 0)));
        return list;
    }
    std::string far_dump()
    {
        char *text = nullptr;
        size_t bytes = 0;
        FILE *file = open_memstream(&text, &bytes);
        EXPECT_EQ(rte_rawdev_dump(far_id(), file), 0);
        std::fclose(file);
        const std::string dumped(text, bytes);
        std::free(text);
        return dumped;
    }

private:
    int16_t dev_ = -1;
    uint64_t *source_ = nullptr;
};

TEST_P(WindowDma, ARevokedSegmentIsOutOfReachAndItsNeighbourIsNot)
{
    ASSERT_NO_FATAL_FAILURE(open_engine());
    ExposedSegment gone, other;
    ASSERT_NO_FATAL_FAILURE(expose(&gone));
    ASSERT_NO_FATAL_FAILURE(expose(&other));
    EXPECT_EQ(drive(0x21, gone), RTE_DMA_STATUS_SUCCESSFUL);
    EXPECT_EQ(gone.word(), 0x21u);
    EXPECT_EQ(gone.word(chunk - 8), 0x21u);

    ASSERT_EQ(revoke(gone), 0);
    EXPECT_EQ(drive(0x22, gone), RTE_DMA_STATUS_BUS_WRITE_ERROR);
    for (uint64_t at = 0; at < gone.memory.bytes; at += 8)
        ASSERT_NE(gone.word(at), 0x22u) << at;
    EXPECT_EQ(drive(0x23, other), RTE_DMA_STATUS_SUCCESSFUL);
    EXPECT_EQ(other.word(chunk - 8), 0x23u);
    EXPECT_EQ(near().events(), "C");
    EXPECT_EQ(revoke(other), 0);
}

constexpr uint16_t foreign = 0x4210; // 42:02.x

TEST_P(WindowDma, AForeignEngineReachesThePeerOnceItsIdIsAdded)
{
    ASSERT_NO_FATAL_FAILURE(open_engine());
    ExposedSegment exposed;
    ASSERT_NO_FATAL_FAILURE(expose(&exposed));
    EXPECT_EQ(drive(0x31, exposed), RTE_DMA_STATUS_SUCCESSFUL);
    ASSERT_EQ(far().inject(RTE_PMD_PLX_NTB_FAULT_DMA_REQUESTER, foreign | 1), 0);
    EXPECT_EQ(drive(0x32, exposed), RTE_DMA_STATUS_BUS_WRITE_ERROR);
    EXPECT_EQ(exposed.word(), 0x31u);
    ASSERT_EQ(rte_pmd_plx_ntb_requester_add(far_id(), foreign | 5), 0) << "whatever the function";
    EXPECT_EQ(drive(0x33, exposed), RTE_DMA_STATUS_SUCCESSFUL);
    EXPECT_EQ(exposed.word(), 0x33u);
    EXPECT_EQ(exposed.word(chunk - 8), 0x33u);

    const auto list = far_requesters();
    ASSERT_EQ(list.size(), 4u);
    EXPECT_EQ(list[3].id, foreign);
    EXPECT_EQ(list[3].slot, 3u);
    EXPECT_EQ(list[3].kind, RTE_PMD_PLX_NTB_REQUESTER_ADDED);
    EXPECT_NE(far_dump().find("requester 3: 42:02.x, added"), std::string::npos);

    ASSERT_EQ(rte_pmd_plx_ntb_requester_remove(far_id(), foreign), 0);
    EXPECT_EQ(drive(0x34, exposed), RTE_DMA_STATUS_BUS_WRITE_ERROR);
    EXPECT_EQ(exposed.word(), 0x33u);
    EXPECT_EQ(rte_pmd_plx_ntb_requester_remove(far_id(), foreign), -ENOENT);
    EXPECT_EQ(near().events(), "C");
    EXPECT_EQ(revoke(exposed), 0);
}

TEST_P(WindowDma, AnEntryOutlivesTheLink)
{
    ASSERT_NO_FATAL_FAILURE(open_engine());
    ASSERT_EQ(rte_pmd_plx_ntb_requester_add(far_id(), foreign), 0);
    ASSERT_EQ(far().inject(RTE_PMD_PLX_NTB_FAULT_DMA_REQUESTER, foreign), 0);
    ASSERT_NO_FATAL_FAILURE(stop_dmadev()); // a channel beyond the link goes with it
    ASSERT_EQ(far().inject(RTE_PMD_PLX_NTB_FAULT_LINK_DOWN, 1), 0);
    ASSERT_TRUE(near().await_event('L'));
    ASSERT_TRUE(far().await_event('L'));
    ASSERT_EQ(far().inject(RTE_PMD_PLX_NTB_FAULT_LINK_DOWN, 0), 0);
    await_connected(2);
    ASSERT_NO_FATAL_FAILURE(start_dmadev());
    ExposedSegment exposed;
    ASSERT_NO_FATAL_FAILURE(expose(&exposed));
    EXPECT_EQ(drive(0x41, exposed), RTE_DMA_STATUS_SUCCESSFUL);
    far().stop();
    ASSERT_EQ(far().ask(Op::start).rc, 0);
    await_connected(3);
    EXPECT_EQ(far_requesters().size(), 4u);
    EXPECT_EQ(rte_pmd_plx_ntb_requester_remove(far_id(), foreign), 0);
}

TEST_P(WindowDma, RequestersAreRefused)
{
    ASSERT_NO_FATAL_FAILURE(open_engine());
    const auto list = far_requesters();
    ASSERT_EQ(list.size(), 3u);
    EXPECT_EQ(list[0].id, 0u);
    EXPECT_EQ(list[1].kind, RTE_PMD_PLX_NTB_REQUESTER_CPU);
    EXPECT_EQ(list[2].kind, RTE_PMD_PLX_NTB_REQUESTER_ENGINE);
    for (const rte_pmd_plx_ntb_requester &r : list) {
        EXPECT_EQ(rte_pmd_plx_ntb_requester_add(far_id(), r.id), -EEXIST);
        EXPECT_EQ(rte_pmd_plx_ntb_requester_remove(far_id(), r.id), -EPERM);
    }
    for (const uint32_t bad : {0xFFFFu, 0x10000u, ~0u}) {
        EXPECT_EQ(rte_pmd_plx_ntb_requester_add(far_id(), bad), -EINVAL);
        EXPECT_EQ(rte_pmd_plx_ntb_requester_remove(far_id(), bad), -EINVAL);
    }
    EXPECT_EQ(rte_pmd_plx_ntb_requester_add(63, foreign), -ENODEV);
    EXPECT_EQ(rte_pmd_plx_ntb_requester_list(63, nullptr, 0), -ENODEV);
    EXPECT_EQ(rte_pmd_plx_ntb_requester_list(far_id(), nullptr, 1), -EINVAL);
    EXPECT_EQ(rte_pmd_plx_ntb_requester_list(far_id(), nullptr, 0), 3);
    for (uint32_t i = 0; i < 29; ++i)
        ASSERT_EQ(rte_pmd_plx_ntb_requester_add(far_id(), foreign + i * 8), 0);
    EXPECT_EQ(rte_pmd_plx_ntb_requester_add(far_id(), 0x9000), -ENOSPC);
    EXPECT_EQ(far_requesters().size(), 32u);
}

TEST_P(WindowDma, AChipThatIsSilentTakesNone)
{
    ASSERT_NO_FATAL_FAILURE(open_engine());
    ASSERT_EQ(rte_pmd_plx_ntb_requester_add(far_id(), foreign), 0);
    ASSERT_NO_FATAL_FAILURE(stop_dmadev());
    ASSERT_EQ(far().inject(RTE_PMD_PLX_NTB_FAULT_CARD_GONE, 1), 0);
    EXPECT_EQ(rte_pmd_plx_ntb_requester_add(far_id(), 0x9000), -EIO);
    EXPECT_EQ(rte_pmd_plx_ntb_requester_remove(far_id(), foreign), -EIO);
    EXPECT_EQ(far_requesters()[3].kind, RTE_PMD_PLX_NTB_REQUESTER_LEAVING);
    ASSERT_EQ(far().inject(RTE_PMD_PLX_NTB_FAULT_CARD_GONE, 0), 0);
    await_connected(2);
    EXPECT_TRUE(await([&] { return far_requesters().size() == 3; }))
        << far_requesters().size() << " left: a tick takes out what could not be when it was asked";
    far().stop();
    ASSERT_EQ(far().ask(Op::close).rc, 0);
    EXPECT_EQ(rte_pmd_plx_ntb_requester_add(far_id(), foreign), -ENODEV);
    EXPECT_EQ(rte_pmd_plx_ntb_requester_list(far_id(), nullptr, 0), -ENODEV);
}

INSTANTIATE_TEST_SUITE_P(
    OneProcess, WindowDma,
    testing::Values(Setting{"threads", BackEnd::threads, "", ""},
                    Setting{"root_port", BackEnd::threads, on_link_side, on_virtual_side},
                    Setting{"root_port_link", BackEnd::threads, on_virtual_side + two_each,
                            on_link_side + two_each}),
    name_of);

} // namespace

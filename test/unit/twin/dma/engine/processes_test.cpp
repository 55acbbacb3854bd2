// SPDX-License-Identifier: BSD-3-Clause
// An engine and a far host that is another process: its death, its return, its lies.
#include "far_host.hpp"

#include "dma_bench.hpp"

#include <random>

using namespace plx;
using namespace plx::test;

namespace
{
class TwinDmaProcesses : public BetweenProcesses
{
protected:
    static constexpr uint32_t slots = 16;
    std::unique_ptr<Local> local;
    std::unique_ptr<Ring> ring;
    uint32_t next_ = 0;

    void TearDown() override
    {
        ring.reset();
        local.reset();
        BetweenProcesses::TearDown();
    }

    void open_engine()
    {
        twin::Error error{};
        ASSERT_EQ(twin::attach(config, &near, &error), 0) << error.text;
        local = std::make_unique<Local>(near, uint64_t{0x34} << 32, mib);
        ring = std::make_unique<Ring>(near, 0, uint64_t{0x12} << 32, slots);
        ring->program();
    }
    void await_link(FarHost &far)
    {
        ASSERT_TRUE(await([&] { return twin::cable_connected(near); }));
        ASSERT_TRUE(await([&] { return far(Do::connected) == 1; }));
        ASSERT_TRUE(await([&] { return link_is_up(near); }));
        ASSERT_TRUE(await([&] {
            return field::link_width.get(static_cast<uint32_t>(
                       far(Do::csr_read, virt_block + reg::pcie_link_ctl_status))) != 0;
        }));
    }
    void program_near()
    {
        bring_up(near);
        twin::csr_write32(near, virt_block + reg::req_id_lut_virt[1],
                          facts::LutEntry::of(config.dma_rid).encode());
    }
    void open_way_to(FarHost &far)
    {
        ASSERT_EQ(far(Do::attach), 0);
        await_link(far);
        program_near();
        far(Do::bring_up);
        ASSERT_EQ(far(Do::expose, 4), 0);
    }
    uint32_t pushes(uint32_t bytes)
    {
        const uint32_t slot = next_++ % slots;
        ring->put_at(slot, describe(local->bus(), twin::bar(near, 2).bus, bytes));
        ring->go();
        return ring->word(slot);
    }
};

TEST_F(TwinDmaProcesses, DataArriveInTheOtherProcess)
{
    FarHost far(config);
    open_engine();
    open_way_to(far);
    const uint32_t value = 0xC0FFEE;
    memcpy(local->data + 100'000, &value, sizeof(value));
    ASSERT_TRUE(await([&] { return pushes(200'000) == (dma::ok | 200'000); }));
    EXPECT_EQ(far(Do::word, 100'000), value);
    far(Do::close);
    EXPECT_EQ(pushes(64), dma::write_failed);
}

TEST_F(TwinDmaProcesses, TheDeathOfTheOtherProcessFailsAPush)
{
    auto far = std::make_unique<FarHost>(config);
    open_engine();
    open_way_to(*far);
    ASSERT_TRUE(await([&] { return pushes(64) == (dma::ok | 64); }));
    far->kill_now();
    ASSERT_TRUE(await([&] { return pushes(300'000) == dma::write_failed; }));
    EXPECT_EQ(ring->read(dma::ctrl) & dma::in_progress, 0u);
    FarHost again(config);
    ASSERT_EQ(again(Do::attach), 0);
    await_link(again);
    ASSERT_EQ(again(Do::expose, 4), 0);
    ASSERT_TRUE(await([&] { return pushes(300'000) == (dma::ok | 300'000); }))
        << "its chip was kept, and its new memory is found";
}

// What a peer may do to the engine's registers (E25) is to misdirect it, within what it was given
// of.
TEST_F(TwinDmaProcesses, RegistersFullOfLiesLeadNowhereElse)
{
    FarHost far(config);
    open_engine();
    open_way_to(far);
    std::mt19937 random(7);
    ASSERT_TRUE(await([&] { return pushes(64) == (dma::ok | 64); }));
    for (int i = 0; i < 1500; i++) {
        const uint32_t at = 0x200 + static_cast<uint32_t>(random() % 24) * 4;
        const uint32_t lie = random() % 4 == 0 ? static_cast<uint32_t>(local->bus() >> 32)
                                               : static_cast<uint32_t>(random());
        // As a peer's stores leave them, and with what START makes of that.
        twin::csr_write32(near, facts::dma_base(0) + at, lie);
        if (i % 8 == 0)
            pushes(64);
    }
    ring->program();
    next_ = 0;
    ring->write(dma::intr, 0xFFFF0000);
    EXPECT_EQ(pushes(64), dma::ok | 64);
}
} // namespace

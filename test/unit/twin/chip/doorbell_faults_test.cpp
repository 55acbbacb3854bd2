// SPDX-License-Identifier: BSD-3-Clause
// Doorbells that get lost or come late.
#include "bench_pair.hpp"

using namespace plx;
using namespace plx::test;
using twin::Fault;

namespace
{
constexpr uint32_t doorbells = virt_block + reg::db_virt_set;

class TwinDoorbellFaults : public MemPair
{
protected:
    void ring(uint32_t bits)
    {
        EXPECT_TRUE(twin::window_write(a, 4, doorbells, &bits, sizeof(bits), write_rid));
    }
    uint32_t pending() { return twin::csr_read32(b, doorbells); }
};

TEST_F(TwinDoorbellFaults, DoorbellsGetLost)
{
    set_up_both();
    ASSERT_EQ(twin::inject(b, Fault::drop_doorbells, 2), 0);
    for (const uint32_t bit : {1u, 2u, 4u})
        ring(bit);
    EXPECT_EQ(pending(), 4u);
}

TEST_F(TwinDoorbellFaults, DoorbellsComeLate)
{
    set_up_both();
    ASSERT_EQ(twin::inject(b, Fault::late_doorbells, 500), 0);
    ring(1);
    clock.advance_us(400);
    ring(2); // on the heels of the first
    EXPECT_EQ(pending(), 0u);
    clock.advance_us(99);
    EXPECT_EQ(pending(), 0u);
    clock.advance_us(1);
    EXPECT_EQ(pending(), 3u);
    twin::csr_write32(b, virt_block + reg::db_virt_clear, 3);
    ASSERT_EQ(twin::inject(b, Fault::late_doorbells, 0), 0);
    ring(8);
    EXPECT_EQ(pending(), 8u) << "at once again";
}

TEST_F(TwinDoorbellFaults, LateDoorbellsAreNotLostWhenTheFaultEnds)
{
    set_up_both();
    ASSERT_EQ(twin::inject(b, Fault::late_doorbells, 500), 0);
    ring(1);
    ASSERT_EQ(twin::inject(b, Fault::late_doorbells, 0), 0);
    clock.advance_us(500);
    EXPECT_EQ(pending(), 1u);
}
} // namespace

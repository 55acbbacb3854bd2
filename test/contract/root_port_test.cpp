// SPDX-License-Identifier: BSD-3-Clause
// One chip between the hosts: what a link that breaks means to the one beyond it, who cannot reach
// the chip then.
#include "pair.hpp"

#include <cerrno>
#include <poll.h>
#include <rte_rawdev.h>

using namespace contract;

namespace
{

class BehindLink : public Pair
{
protected:
    void talk(uint32_t seed) { both_ways(stream(0, seed, 300, {8, 48, 300, 3000})); }
    int strike(rte_pmd_plx_ntb_fault fault, uint32_t argument)
    {
        return rte_pmd_plx_ntb_inject(id(), fault, argument);
    }
};

/// Its peer's access cannot be taken away while no register answers: nothing is reused until the
/// link is back.
TEST_P(BehindLink, StaysFencedWhileItsLinkIsDown)
{
    bring_up();
    talk(1);
    for (unsigned i = 1; i <= 3; ++i) {
        ASSERT_EQ(strike(RTE_PMD_PLX_NTB_FAULT_LINK_DOWN, 1), 0);
        ASSERT_TRUE(near().await_event('L', i));
        ASSERT_TRUE(far().await_event('L', i));
        ASSERT_TRUE(near().await_state(RTE_PMD_PLX_NTB_FENCING));
        ASSERT_TRUE(far().await_state(RTE_PMD_PLX_NTB_WAITING));
        EXPECT_EQ(near().link().width, 0u);
        ASSERT_EQ(strike(RTE_PMD_PLX_NTB_FAULT_LINK_DOWN, 0), 0);
        await_connected(i + 1);
        talk(1 + i);
    }
    EXPECT_EQ(near().events(), "CLCLCLC");
    EXPECT_EQ(far().events(), "CLCLCLC");
}

TEST_P(BehindLink, StopsWithinBoundsAndStartsWhenTheLinkIsBack)
{
    bring_up();
    ASSERT_EQ(strike(RTE_PMD_PLX_NTB_FAULT_LINK_DOWN, 1), 0);
    ASSERT_TRUE(near().await_event('L'));
    near().stop();
    EXPECT_EQ(near().ask(Op::start).rc, -EBUSY) << "its memory may still be reached";
    ASSERT_EQ(strike(RTE_PMD_PLX_NTB_FAULT_LINK_DOWN, 0), 0);
    int64_t rc = -EBUSY;
    for (int i = 0; rc == -EBUSY && i < 2000; ++i) {
        poll(nullptr, 0, 5);
        rc = near().ask(Op::start).rc;
    }
    ASSERT_EQ(rc, 0);
    await_connected(2);
    talk(5);
}

/// What bring-up leaves of its four: raw/ntb's first two are test-pattern registers.
TEST_P(BehindLink, HasTwoScratchpadsForTheUser)
{
    bring_up();
    uint64_t count = 0;
    ASSERT_EQ(rte_rawdev_get_attr(id(), "spad_count", &count), 0);
    EXPECT_EQ(count, 6u);
    uint64_t value = 0;
    EXPECT_EQ(rte_rawdev_set_attr(id(), "spad_user_1", 0x77), 0);
    EXPECT_EQ(rte_rawdev_get_attr(id(), "spad_user_1", &value), 0);
    EXPECT_EQ(value, 0u) << "its own, not the peer's";
    EXPECT_EQ(rte_rawdev_get_attr(id(), "spad_user_2", &value), -EINVAL);
    EXPECT_EQ(rte_rawdev_set_attr(id(), "spad_user_2", 1), -EINVAL);
    EXPECT_EQ(rte_rawdev_selftest(id()), 0);
}

/// No engine is assigned to the link side.
TEST_P(BehindLink, HasNoDmaChannel)
{
    ASSERT_EQ(near().attach(cable(), patient + ",copy=dma"), 0);
    EXPECT_NE(near().restart(usual()), 0);
}

TEST_P(BehindLink, IsRefusedWhereTheEndsDoNotFit)
{
    ASSERT_EQ(far().attach(cable(), patient), 0);
    near().place("");
    EXPECT_EQ(near().attach(cable(), patient), -EINVAL) << "back to back";
    near().place("side=link");
    EXPECT_EQ(near().attach(cable(), patient), -EINVAL) << "a link side of what";
    near().place("topo=rp");
    EXPECT_EQ(near().attach(cable(), patient), -EINVAL) << "two on the virtual side";
    near().place("topo=rp,side=link,nt=1");
    EXPECT_EQ(near().attach(cable(), patient), -EINVAL) << "another NT port";
    near().place(on_link_side);
    ASSERT_EQ(near().attach(cable(), patient), 0);
}

CONTRACT_ROOT_PORT(BehindLink);

} // namespace

// SPDX-License-Identifier: BSD-3-Clause
// Several devices in one process: each has a cable and a peer of its own.
#include "cabled.hpp"

#include <array>

namespace
{

/// Ends of cables, in pairs: 0 and 1 are joined, 2 and 3, and so on.
template <unsigned Count>
class Devices : public Cabled
{
protected:
    static constexpr unsigned count = Count;

    void SetUp() override
    {
        for (unsigned i = 0; i < count; ++i) {
            const std::string arguments =
                "cable=mem:devices" + std::to_string(i / 2) + patient + ",linger_ms=0";
            ASSERT_EQ(rte_vdev_init(name(i).c_str(), arguments.c_str()), 0) << i;
        }
        for (unsigned i = 0; i < count; ++i)
            ASSERT_NO_FATAL_FAILURE(open(name(i).c_str(), ends_[i])) << i;
        for (unsigned i = 0; i < count; ++i)
            ASSERT_EQ(ntbmsg_endpoint_wait_connected(ends_[i], patience_ms), 0) << i;
    }
    void TearDown() override
    {
        for (unsigned i = 0; i < count; ++i) {
            EXPECT_EQ(ntbmsg_endpoint_close(ends_[i]), 0) << i;
            EXPECT_EQ(rte_vdev_uninit(name(i).c_str()), 0) << i;
        }
    }
    static std::string name(unsigned i) { return "raw_plx_ntb" + std::to_string(i); }

    void carry(unsigned from, unsigned to, size_t bytes, int fill)
    {
        ASSERT_EQ(send(ends_[from], ends_[to], message(ends_[from], bytes, fill)), 1);
        rte_mbuf *got = receive(ends_[to]);
        ASSERT_NE(got, nullptr);
        EXPECT_EQ(got->pkt_len, bytes);
        EXPECT_EQ(*rte_pktmbuf_mtod(got, const uint8_t *), fill);
        rte_pktmbuf_free(got);
    }

    std::array<ntbmsg_endpoint *, count> ends_{};
};

using Eight = Devices<8>;

TEST_F(Eight, EachHasItsOwnPeer)
{
    for (const size_t bytes : {size_t{20}, size_t{3000}})
        for (unsigned i = 0; i < count; ++i)
            ASSERT_NO_FATAL_FAILURE(carry(i, i ^ 1, bytes, static_cast<int>(i + 1)))
                << i << ", " << bytes << " bytes";
    for (const ntbmsg_endpoint *end : ends_)
        EXPECT_EQ(stats(end).rx_messages, 2u);
}

TEST_F(Eight, TheEndOfOneIsNoneOfTheOthers)
{
    ASSERT_NO_FATAL_FAILURE(close(ends_[2]));
    EXPECT_TRUE(await_event(ends_[3], NTBMSG_EVENT_LOST));
    for (const unsigned i : {0u, 4u, 6u})
        ASSERT_NO_FATAL_FAILURE(carry(i, i + 1, 100, 9)) << i;
    for (const unsigned i : {0u, 1u, 4u, 5u, 6u, 7u})
        EXPECT_EQ(stats(ends_[i]).links, 1u) << i;
}

TEST_F(Eight, IsFoundAlsoAfterOneBeforeItHasGone)
{
    for (const unsigned gone : {0u, 1u}) {
        ASSERT_NO_FATAL_FAILURE(close(ends_[gone]));
        ASSERT_EQ(rte_vdev_uninit(name(gone).c_str()), 0);
    }
    ASSERT_NO_FATAL_FAILURE(close(ends_[7]));
    ASSERT_NO_FATAL_FAILURE(open(name(7).c_str(), ends_[7]));
    EXPECT_EQ(ntbmsg_endpoint_wait_connected(ends_[7], patience_ms), 0);
    for (const unsigned gone : {0u, 1u})
        ASSERT_EQ(rte_vdev_init(name(gone).c_str(), "cable=mem:again"), 0); // TearDown wants them
}

/// Host h has devices 2h - 1 and 2h: what comes in by one goes out by the other.
using Ring = Devices<6>;

TEST_F(Ring, ThreeHostsPassAMessageAround)
{
    constexpr int laps = 5;
    rte_mbuf *travelling = message(ends_[0], 1500, 7);
    for (unsigned hop = 0; hop < laps * count / 2; ++hop) {
        const unsigned out = hop * 2 % count;
        ASSERT_EQ(send(ends_[out], ends_[out + 1], travelling), 1) << hop;
        travelling = receive(ends_[out + 1]);
        ASSERT_NE(travelling, nullptr) << hop;
    }
    EXPECT_EQ(travelling->pkt_len, 1500u);
    EXPECT_EQ(*rte_pktmbuf_mtod(travelling, const uint8_t *), 7);
    rte_pktmbuf_free(travelling);
}

} // namespace

// SPDX-License-Identifier: BSD-3-Clause
// Bursts of one flow: which messages they are of, where they end, and that what they leave comes by
// the burst functions.
#include "pair.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include <rte_mbuf.h>

using namespace contract;

namespace
{

/// The near device sends, and the far one, which is in this process too, receives.
class Flows : public Pair
{
protected:
    using Meta = rte_pmd_plx_ntb_meta;
    static constexpr uint32_t flags = 3;
    static constexpr uint32_t longest = 1024;

    /// A call finds what has arrived, also behind dense traffic.
    static HostSetup without_pauses() { return {.devargs = patient + ",cache_hint=none"}; }
    void bring_up_flows(const HostSetup &far_setup = without_pauses(),
                        const HostSetup &near_setup = without_pauses())
    {
        bring_up(near_setup, far_setup);
        far_id_ = static_cast<test::LocalHost &>(far()).local_device().id();
        ASSERT_EQ(rte_pmd_plx_ntb_flow_calls_get(id(), &calls_), 0);
        ASSERT_EQ(rte_pmd_plx_ntb_burst_get(id(), 0, &near_burst_), 0);
        ASSERT_EQ(rte_pmd_plx_ntb_burst_get(far_id_, 0, &far_burst_), 0);
        begin();
    }
    /// Both ends know of the connection, and there are receive buffers.
    void begin()
    {
        rte_mbuf *m = make(2000);
        const Meta meta{};
        int sent = 0;
        ASSERT_TRUE(await([&] {
            rte_mbuf *none = nullptr;
            far_burst_.rx(far_burst_.rx_queue, &none, nullptr, 0);
            if (sent == 0)
                sent = near_burst_.tx(near_burst_.tx_queue, &m, &meta, 1);
            return sent == 1;
        }));
        expect_by_burst(1);
    }

    rte_mbuf *make(uint32_t length)
    {
        rte_mbuf *m = rte_pktmbuf_alloc(local_device().pool());
        EXPECT_NE(m, nullptr);
        std::memset(rte_pktmbuf_append(m, static_cast<uint16_t>(length)),
                    static_cast<uint8_t>(made_++), length);
        lengths_.push_back(length);
        return m;
    }
    std::vector<rte_mbuf *> make(unsigned n, uint32_t length)
    {
        std::vector<rte_mbuf *> mbufs(n);
        std::generate(mbufs.begin(), mbufs.end(), [&] { return make(length); });
        return mbufs;
    }
    /// What was not sent is as if it had not been made.
    void unmake(const std::vector<rte_mbuf *> &mbufs, size_t from)
    {
        for (size_t i = from; i < mbufs.size(); ++i) {
            rte_pktmbuf_free(mbufs[i]);
            lengths_.pop_back();
            --made_;
        }
    }
    static Meta meta_of(uint32_t low, uint32_t high = 0, uint32_t with_flags = flags)
    {
        return {.data = uint64_t{high} << 32 | low, .flags = with_flags, .reserved = 0};
    }
    void send(const std::vector<Meta> &meta, uint32_t length = 40)
    {
        std::vector<rte_mbuf *> mbufs = make(static_cast<unsigned>(meta.size()), length);
        ASSERT_EQ(near_burst_.tx(near_burst_.tx_queue, mbufs.data(), meta.data(),
                                 static_cast<uint16_t>(mbufs.size())),
                  static_cast<int>(mbufs.size()));
    }
    int send_flow(std::vector<rte_mbuf *> &mbufs, uint32_t most = longest)
    {
        rte_pmd_plx_ntb_tx_flow flow{};
        flow.meta = meta_of(7, 70);
        flow.longest = most;
        const int rc = calls_.tx(near_burst_.tx_queue, mbufs.data(), &flow,
                                 static_cast<uint16_t>(mbufs.size()));
        uint64_t bytes = 0;
        for (size_t i = 0; rc > 0 && i < static_cast<size_t>(rc); ++i)
            bytes += lengths_[lengths_.size() - mbufs.size() + i];
        EXPECT_EQ(flow.bytes, bytes);
        return rc;
    }

    /// By rx_next; what it fills in is in `flow_` and `high_`.
    int receive_next(uint16_t n = 64, uint32_t most = longest)
    {
        flow_ = {};
        flow_.flags = flags;
        flow_.high = high_.data();
        flow_.longest = most;
        return take(calls_.rx_next(far_burst_.rx_queue, got_.data(), &flow_, n));
    }
    int receive_flow(uint32_t low, uint16_t n = 64)
    {
        flow_ = {};
        flow_.low = low;
        flow_.flags = flags;
        flow_.high = high_.data();
        flow_.longest = longest;
        return take(calls_.rx(far_burst_.rx_queue, got_.data(), &flow_, n));
    }
    void expect_by_burst(int n)
    {
        int got = 0;
        await([&] {
            if (got == 0)
                got = far_burst_.rx(far_burst_.rx_queue, got_.data(), nullptr,
                                    static_cast<uint16_t>(n));
            return got != 0;
        });
        EXPECT_EQ(got, n);
        flow_.bytes = 0;
        take(got, false);
    }
    /// Looks at what was received, and frees or keeps it. @return @p got
    int take(int got, bool of_flow = true)
    {
        uint64_t bytes = 0;
        for (int i = 0; i < got; ++i) {
            rte_mbuf *m = got_.at(static_cast<size_t>(i));
            const uint32_t number = taken_++;
            EXPECT_LT(number, lengths_.size());
            EXPECT_EQ(m->pkt_len, lengths_.at(number)) << number;
            const auto *data = rte_pktmbuf_mtod(m, const uint8_t *);
            EXPECT_TRUE(std::all_of(data, data + m->data_len, [=](uint8_t b) {
                return b == static_cast<uint8_t>(number);
            })) << number;
            bytes += m->pkt_len;
            if (keep_)
                kept_.push_back(m);
            else
                rte_pktmbuf_free(m);
        }
        if (of_flow && got > 0) {
            EXPECT_EQ(flow_.bytes, bytes);
        }
        return got;
    }
    void free_kept()
    {
        rte_pktmbuf_free_bulk(kept_.data(), static_cast<unsigned>(kept_.size()));
        kept_.clear();
    }

    uint16_t far_id_ = 0;
    rte_pmd_plx_ntb_flow_calls calls_{};
    rte_pmd_plx_ntb_burst near_burst_{}, far_burst_{};
    rte_pmd_plx_ntb_rx_flow flow_{};
    std::array<rte_mbuf *, 64> got_{};
    std::array<uint32_t, 64> high_{};
    std::vector<uint32_t> lengths_; ///< of all messages made
    uint32_t made_ = 0, taken_ = 0;
    bool keep_ = false;
    std::vector<rte_mbuf *> kept_;
};
CONTRACT_ONE_PROCESS(Flows);

TEST_P(Flows, CallsAreThoseOfADevice)
{
    ASSERT_NO_FATAL_FAILURE(bring_up_flows());
    EXPECT_EQ(rte_pmd_plx_ntb_flow_calls_get(id(), nullptr), -EINVAL);
    EXPECT_EQ(rte_pmd_plx_ntb_flow_calls_get(UINT16_MAX, &calls_), -ENODEV);
    EXPECT_EQ(calls_.reserved, 0U);
}

TEST_P(Flows, NextIsTheFlowOfTheNextMessage)
{
    ASSERT_NO_FATAL_FAILURE(bring_up_flows());
    struct Part {
        uint32_t low;
        unsigned n;
    };
    for (const uint32_t length : {0U, 40U, 64U}) {
        const std::array parts = {Part{5, 5}, Part{6, 1}, Part{0, 9}, Part{UINT32_MAX, 2},
                                  Part{5, 1}};
        std::vector<Meta> meta;
        for (const Part &part : parts)
            for (unsigned i = 0; i < part.n; ++i)
                meta.push_back(meta_of(part.low, static_cast<uint32_t>(meta.size())));
        ASSERT_NO_FATAL_FAILURE(send(meta, length));
        uint32_t high = 0;
        for (const Part &part : parts) {
            ASSERT_EQ(receive_next(), static_cast<int>(part.n));
            EXPECT_EQ(flow_.low, part.low);
            for (unsigned i = 0; i < part.n; ++i)
                EXPECT_EQ(high_.at(i), high++);
            EXPECT_EQ(flow_.other, &part == &parts.back() ? 0U : 1U);
        }
        EXPECT_EQ(receive_next(), 0);
    }
}

TEST_P(Flows, NextTakesNoMoreThanItIsAskedFor)
{
    ASSERT_NO_FATAL_FAILURE(bring_up_flows());
    ASSERT_NO_FATAL_FAILURE(send(std::vector(10, meta_of(7))));
    EXPECT_EQ(receive_next(4), 4);
    EXPECT_EQ(flow_.other, 0U);
    EXPECT_EQ(receive_next(1), 1);
    EXPECT_EQ(receive_flow(7, 2), 2);
    EXPECT_EQ(flow_.other, 0U);
    EXPECT_EQ(receive_next(), 3);
    EXPECT_EQ(receive_next(), 0);
}

TEST_P(Flows, OtherFlagsAreLeftToTheBurst)
{
    ASSERT_NO_FATAL_FAILURE(bring_up_flows());
    ASSERT_NO_FATAL_FAILURE(
        send({meta_of(7, 0, 4), meta_of(7), meta_of(7), meta_of(7, 0, 4), meta_of(7)}));
    EXPECT_EQ(receive_next(), -EAGAIN);
    EXPECT_EQ(receive_next(1), -EAGAIN);
    EXPECT_EQ(receive_flow(7), 0);
    EXPECT_EQ(flow_.other, 1U);
    expect_by_burst(1);
    EXPECT_EQ(receive_next(), 2);
    EXPECT_EQ(flow_.other, 1U);
    expect_by_burst(1);
    EXPECT_EQ(receive_next(), 1);
}

TEST_P(Flows, AFlowThatIsAskedForEndsInFrontOfAnother)
{
    ASSERT_NO_FATAL_FAILURE(bring_up_flows());
    ASSERT_NO_FATAL_FAILURE(send({meta_of(7), meta_of(7), meta_of(8), meta_of(7)}));
    EXPECT_EQ(receive_flow(8), 0);
    EXPECT_EQ(flow_.other, 1U);
    EXPECT_EQ(receive_flow(7), 2);
    EXPECT_EQ(flow_.other, 1U);
    EXPECT_EQ(receive_flow(7), 0);
    EXPECT_EQ(receive_flow(8), 1);
    EXPECT_EQ(receive_next(), 1);
}

TEST_P(Flows, LongerMessagesAreLeftToTheBurst)
{
    ASSERT_NO_FATAL_FAILURE(bring_up_flows());
    for (const uint32_t longer : {65U, 250U, 2000U}) {
        ASSERT_NO_FATAL_FAILURE(send(std::vector(3, meta_of(7)), 64));
        ASSERT_NO_FATAL_FAILURE(send({meta_of(7)}, longer));
        ASSERT_NO_FATAL_FAILURE(send(std::vector(2, meta_of(7)), 64));
        EXPECT_EQ(receive_next(64, 64), 3);
        EXPECT_EQ(flow_.other, 1U);
        EXPECT_EQ(receive_next(64, 64), -EAGAIN) << longer;
        expect_by_burst(1);
        EXPECT_EQ(receive_next(64, 64), 2);
        EXPECT_EQ(flow_.other, 0U);
    }
    std::vector<rte_mbuf *> mbufs = make(2, 64);
    mbufs.push_back(make(65));
    EXPECT_EQ(send_flow(mbufs, 64), 2) << "nor does a flow that is sent take one";
    unmake(mbufs, 2);
    EXPECT_EQ(receive_next(), 2);
}

TEST_P(Flows, WithoutMbufsNothingIsTaken)
{
    HostSetup few = without_pauses();
    few.pool_mbufs = 63;
    ASSERT_NO_FATAL_FAILURE(bring_up_flows(few));
    for (const bool next : {true, false}) {
        keep_ = true;
        for (int idle = 0; idle < 3;) {
            std::vector<rte_mbuf *> mbufs = make(16, 40);
            const int sent = send_flow(mbufs);
            ASSERT_GE(sent, 0);
            unmake(mbufs, static_cast<size_t>(sent));
            const int got = next ? receive_next() : receive_flow(7);
            ASSERT_GE(got, 0);
            idle = got == 0 ? idle + 1 : 0;
            EXPECT_EQ(flow_.other, 0U);
        }
        EXPECT_GT(kept_.size(), 40U);
        EXPECT_LT(taken_, lengths_.size());
        free_kept();
        keep_ = false;
        for (int got = 1; taken_ < lengths_.size() && got > 0;)
            got = next ? receive_next() : receive_flow(7);
        EXPECT_EQ(taken_, lengths_.size());
    }
}

TEST_P(Flows, AFullRingTakesNoMoreUntilThereIsRoom)
{
    HostSetup small = without_pauses();
    small.config.ring_lines = 128;
    ASSERT_NO_FATAL_FAILURE(bring_up_flows(small, small));
    for (const uint32_t length : {40U, 64U, 200U}) {
        for (int sent = 1; sent > 0;) {
            std::vector<rte_mbuf *> mbufs = make(10, length);
            sent = send_flow(mbufs);
            ASSERT_GE(sent, 0);
            unmake(mbufs, static_cast<size_t>(sent));
        }
        EXPECT_GT(lengths_.size(), taken_ + 20);
        while (taken_ < lengths_.size()) {
            const int got = receive_next(16);
            if (got == -EAGAIN) // near the end of the ring
                expect_by_burst(1);
            else
                ASSERT_GT(got, 0);
        }
        std::vector<rte_mbuf *> mbufs = make(1, length);
        ASSERT_EQ(send_flow(mbufs), 1) << "there is room";
        expect_by_burst(1);
    }
}

TEST_P(Flows, NothingIsLostAtTheEndOfTheRing)
{
    HostSetup small = without_pauses();
    small.config.ring_lines = 128;
    ASSERT_NO_FATAL_FAILURE(bring_up_flows(small, small));
    unsigned by_burst = 0;
    for (unsigned round = 0; round < 500; ++round) {
        const unsigned n = 1 + round * 7 % 20;
        const uint32_t length = std::array{0U, 40U, 64U, 150U}.at(round % 4);
        std::vector<rte_mbuf *> mbufs = make(n, length);
        ASSERT_EQ(send_flow(mbufs), static_cast<int>(n));
        while (taken_ < lengths_.size()) {
            const int got = receive_next();
            if (got == -EAGAIN) {
                expect_by_burst(1);
                ++by_burst;
            } else {
                ASSERT_GT(got, 0);
                EXPECT_EQ(flow_.low, 7U);
                EXPECT_EQ(high_.at(0), 70U);
                EXPECT_EQ(high_.at(static_cast<size_t>(got) - 1), 70U);
            }
        }
    }
    EXPECT_LT(by_burst, 200U) << "most go by the flow";
}

TEST_P(Flows, EachConnectionBeginsByTheBurst)
{
    ASSERT_NO_FATAL_FAILURE(bring_up_flows());
    for (unsigned times = 2; times < 4; ++times) {
        far().stop();
        ASSERT_TRUE(near().await_event('L', times - 1));
        std::vector<rte_mbuf *> mbufs = make(2, 40);
        EXPECT_EQ(send_flow(mbufs), -ENOTCONN);
        unmake(mbufs, 0);
        EXPECT_LE(receive_next(), 0);
        EXPECT_EQ(receive_flow(7), 0);
        ASSERT_EQ(far().restart(without_pauses()), 0);
        ASSERT_NO_FATAL_FAILURE(await_connected(times));
        ASSERT_EQ(rte_pmd_plx_ntb_burst_get(far_id_, 0, &far_burst_), 0);
        mbufs = make(3, 40);
        ASSERT_EQ(send_flow(mbufs), 3);
        EXPECT_EQ(receive_next(), -EAGAIN);
        EXPECT_EQ(receive_flow(7), 0);
        EXPECT_EQ(flow_.other, 1U);
        expect_by_burst(1);
        EXPECT_EQ(receive_next(), 2);
    }
}

} // namespace

// SPDX-License-Identifier: BSD-3-Clause
// Whose an mbuf is after each call, whatever mbuf it was, and that none is lost under pressure.
#include "pair.hpp"

#include <cerrno>
#include <vector>

#include <rte_mbuf.h>
#include <rte_rawdev.h>

using namespace contract;

namespace
{

class Mbufs : public Pair
{
protected:
    rte_mbuf *make(const Stream &s, uint32_t index)
    {
        rte_mbuf *m = test::make_message(local_device().pool(), s, index);
        EXPECT_NE(m, nullptr);
        return m;
    }
    /// The far side has receive buffers in the ring once it has polled.
    void bring_up_posted(const HostSetup &far_setup = usual())
    {
        bring_up(usual(), far_setup);
        both_ways(stream(0, 99, 1, {900}));
    }
    /// Sends one mbuf as message @p index of @p s and lets the far side check it.
    void deliver(rte_mbuf *m, Stream s, uint32_t index)
    {
        const rte_pmd_plx_ntb_meta meta = test::message_meta(s, index);
        ASSERT_EQ(rte_pmd_plx_ntb_tx_burst(id(), 0, &m, &meta, 1), 1);
        expect_at_far(s, index, 1);
    }
    void expect_at_far(Stream s, uint32_t first, uint32_t count)
    {
        s.first = first;
        s.count = count;
        const Answer answer = far().ask(traffic({}, {s}));
        ASSERT_EQ(answer.rc, 0) << answer.text;
    }
    const Stream sizes = stream(0, 5, 0, {100, 1000});
};

TEST_P(Mbufs, NullEndsABurstBeforeItself)
{
    bring_up_posted();
    rte_mbuf *none = nullptr;
    EXPECT_EQ(rte_pmd_plx_ntb_tx_burst(id(), 0, &none, nullptr, 1), -EINVAL);
    const uint64_t errors = near().xstat("tx_errors");
    EXPECT_EQ(errors, 1u);

    rte_mbuf *burst[] = {make(sizes, 0), make(sizes, 1), nullptr, make(sizes, 2)};
    rte_pmd_plx_ntb_meta meta[4];
    for (uint32_t i = 0; i < 4; ++i)
        meta[i] = test::message_meta(sizes, i < 2 ? i : i - 1);
    EXPECT_EQ(rte_pmd_plx_ntb_tx_burst(id(), 0, burst, meta, 4), 2);
    EXPECT_EQ(rte_pmd_plx_ntb_tx_burst(id(), 0, burst + 2, meta + 2, 2), -EINVAL);
    EXPECT_EQ(rte_pmd_plx_ntb_tx_burst(id(), 0, burst + 3, meta + 3, 1), 1);
    expect_at_far(sizes, 0, 3);
}

TEST_P(Mbufs, TooLongEndsABurstBeforeItself)
{
    HostSetup small = usual();
    small.config.max_message = 1000;
    bring_up_posted(small);
    const uint64_t before = near().outstanding();
    const Stream s = stream(0, 6, 0, {1000, 1001});
    rte_mbuf *burst[] = {make(s, 0), make(s, 1), make(s, 2)};
    rte_pmd_plx_ntb_meta meta[3];
    for (uint32_t i = 0; i < 3; ++i)
        meta[i] = test::message_meta(s, i);
    EXPECT_EQ(rte_pmd_plx_ntb_tx_burst(id(), 0, burst, meta, 3), 1);
    EXPECT_EQ(rte_pmd_plx_ntb_tx_burst(id(), 0, burst + 1, meta + 1, 2), -EMSGSIZE);
    EXPECT_EQ(burst[1]->pkt_len, 1001u) << "stays the caller's, unchanged";
    EXPECT_EQ(near().outstanding(), before + 2);
    rte_pktmbuf_free(burst[1]);
    rte_pktmbuf_free(burst[2]);
    expect_at_far(s, 0, 1);
}

TEST_P(Mbufs, BrokenChainIsRefused)
{
    bring_up_posted();
    const Stream s = stream(0, 6, 0, {3000});
    rte_mbuf *m = make(s, 0);
    ASSERT_EQ(m->nb_segs, 2);
    m->pkt_len += 1; // more than its segments hold
    EXPECT_EQ(rte_pmd_plx_ntb_tx_burst(id(), 0, &m, nullptr, 1), -EINVAL);
    m->pkt_len -= 1;
    deliver(m, s, 0);
}

TEST_P(Mbufs, ClonesAreCopiedAndTheirReferenceReleased)
{
    bring_up_posted();
    for (uint32_t i = 0; i < 2; ++i) {
        rte_mbuf *m = make(sizes, i);
        rte_mbuf *clone = rte_pktmbuf_clone(m, local_device().pool());
        ASSERT_NE(clone, nullptr);
        deliver(clone, sizes, i);
        EXPECT_EQ(rte_mbuf_refcnt_read(m), 1);
        deliver(m, sizes, i);
    }
}

TEST_P(Mbufs, ReferencedMbufsSurviveASend)
{
    bring_up_posted();
    rte_mbuf *m = make(sizes, 1);
    rte_mbuf_refcnt_update(m, 1);
    deliver(m, sizes, 1);
    EXPECT_EQ(rte_mbuf_refcnt_read(m), 1);
    EXPECT_EQ(test::differing(rte_pktmbuf_mtod(m, const uint8_t *),
                              test::message_key(sizes.seed, 1), 0, 1000),
              0u);
    deliver(m, sizes, 1);
}

TEST_P(Mbufs, ExternalDataIsCopiedAndReleased)
{
    bring_up_posted();
    static unsigned freed;
    freed = 0;
    std::vector<uint8_t> data(2048);
    auto length = static_cast<uint16_t>(data.size());
    rte_mbuf_ext_shared_info *shared = rte_pktmbuf_ext_shinfo_init_helper(
        data.data(), &length, [](void *, void *) { ++freed; }, nullptr);
    ASSERT_NE(shared, nullptr);
    test::fill(data.data(), test::message_key(sizes.seed, 1), 0, 1000);
    rte_mbuf *m = rte_pktmbuf_alloc(local_device().pool());
    ASSERT_NE(m, nullptr);
    rte_pktmbuf_attach_extbuf(m, data.data(), RTE_BAD_IOVA, length, shared);
    m->data_off = 0;
    m->data_len = 1000;
    m->pkt_len = 1000;
    deliver(m, sizes, 1);
    EXPECT_EQ(freed, 1u);
}

TEST_P(Mbufs, ReceivedOnesCanBeSentOn)
{
    bring_up();
    send_on(stream(0, 9, 400, {8, 300, 5000}));
}

TEST_P(Mbufs, BackPressureLosesNothing)
{
    bring_up_posted();
    const Stream kinds[] = {stream(0, 11, 1'000'000, {8}), stream(0, 12, 1'000'000, {100, 256}),
                            stream(0, 13, 1'000'000, {4000}),
                            stream(0, 14, 1'000'000, {8, 300, 48, 2049})};
    for (Stream s : kinds) {
        uint32_t sent = 0;
        for (unsigned round = 0; round < 3; ++round) {
            // The receiver stands still: this comes to an end, and not by taking everything.
            s.first = sent;
            Command offer = traffic({s}, {});
            offer.until = test::Until::full;
            const Answer here = near().ask(offer);
            ASSERT_EQ(here.rc, 0) << here.text;
            ASSERT_LT(here.sent, s.count);
            ASSERT_GT(here.sent, 0u);
            expect_at_far(s, sent, static_cast<uint32_t>(here.sent));
            sent += static_cast<uint32_t>(here.sent);
        }
    }
    EXPECT_GT(near().xstat("tx_full"), 0u);
}

TEST_P(Mbufs, AnEmptyPoolDelaysAndLosesNothing)
{
    HostSetup tight = usual();
    tight.pool_mbufs = 100; // fewer than the ring has messages
    bring_up(usual(), tight);
    const Stream s = stream(0, 15, 500, {8, 48});
    Command keep = traffic({}, {s});
    keep.in[0].count = 100;
    keep.keep = true;
    near().begin(traffic({s}, {}));
    ASSERT_EQ(far().ask(keep).rc, 0);
    Command more = traffic({}, {s});
    more.in[0].first = 100;
    more.in[0].count = 400;
    more.until = test::Until::full;
    EXPECT_EQ(far().ask(more).received, 0u) << "all its mbufs are held";
    EXPECT_GT(far().xstat("rx_nombuf"), 0u);
    far().ask(Op::release);
    more.until = test::Until::complete;
    const Answer rest = far().ask(more);
    EXPECT_EQ(rest.rc, 0) << rest.text;
    EXPECT_EQ(near().end().rc, 0);
}

TEST_P(Mbufs, HeldWindowBuffersDelayAndLoseNothing)
{
    HostSetup tight = usual();
    tight.config = {.buffers = 128, .queue_buffers = 28};
    bring_up(usual(), tight);
    const Stream s = stream(0, 16, 400, {2048, 1000});
    Command keep = traffic({}, {s});
    keep.in[0].count = 128; // all there are
    keep.keep = true;
    near().begin(traffic({s}, {}));
    const Answer first = far().ask(keep);
    ASSERT_EQ(first.rc, 0) << first.text;
    far().ask(Op::release);
    Command more = traffic({}, {s});
    more.in[0].first = 128;
    more.in[0].count = 400 - 128;
    const Answer rest = far().ask(more);
    EXPECT_EQ(rest.rc, 0) << rest.text;
    EXPECT_EQ(near().end().rc, 0);
}

TEST_P(Mbufs, ThroughRawdevBuffers)
{
    bring_up_posted();
    Stream s = stream(0, 17, 100, {8, 300});
    rte_rawdev_buf buffers[100] = {};
    rte_rawdev_buf *pointers[100];
    for (uint32_t i = 0; i < 100; ++i) {
        pointers[i] = &buffers[i];
        buffers[i].buf_addr = make(s, i);
    }
    ASSERT_EQ(rte_rawdev_enqueue_buffers(id(), pointers, 100, nullptr), 100);
    s.plain = true; // this way carries no metadata
    expect_at_far(s, 0, 100);

    s.plain = false;
    ASSERT_EQ(far().ask(traffic({s}, {})).rc, 0);
    unsigned got = 0;
    for (unsigned tries = 0; got < 100 && tries < 10'000'000; ++tries) {
        const int rc = rte_rawdev_dequeue_buffers(id(), pointers + got, 100 - got, nullptr);
        ASSERT_GE(rc, 0);
        got += static_cast<unsigned>(rc);
    }
    ASSERT_EQ(got, 100u);
    Stream plain = s;
    plain.plain = true;
    for (uint32_t i = 0; i < 100; ++i) {
        auto *m = static_cast<rte_mbuf *>(buffers[i].buf_addr);
        EXPECT_EQ(test::check_message(m, {}, id(), plain, i), "");
        rte_pktmbuf_free(m);
    }
    void *no_queue = reinterpret_cast<void *>(uintptr_t{1});
    EXPECT_EQ(rte_rawdev_enqueue_buffers(id(), pointers, 1, no_queue), -EINVAL);
    EXPECT_EQ(rte_rawdev_dequeue_buffers(id(), pointers, 1, no_queue), -EINVAL);
    EXPECT_EQ(rte_rawdev_dequeue_buffers(id(), pointers, 100, nullptr), 0);
}

CONTRACT_EVERYWHERE(Mbufs);

} // namespace

// SPDX-License-Identifier: BSD-3-Clause
// Runs of one channel that a poll set has received and holds, whatever happens before their channel
// receives them. With a driver that receives such runs, and with one that was built before it did.
#include <random>

#include <dlfcn.h>

#include "hostile_peer.hpp"

namespace
{
bool older_driver;
}

/// In front of the driver's own.
int rte_pmd_plx_ntb_flow_calls_get(uint16_t dev_id, rte_pmd_plx_ntb_flow_calls *out)
{
    static const auto own =
        reinterpret_cast<decltype(&rte_pmd_plx_ntb_flow_calls_get)>(dlsym(RTLD_NEXT, __func__));
    const int rc = own(dev_id, out);
    if (rc == 0 && older_driver)
        out->rx_next = nullptr;
    return rc;
}

namespace
{

std::string name_of(const testing::TestParamInfo<bool> &info)
{
    return info.param ? "OlderDriver" : "Driver";
}

/// A poll finds what has arrived, also behind dense traffic.
constexpr const char *without_pauses = ",cache_hint=none";
/// mbufs that the driver has at hand for messages that come alone, at most.
constexpr unsigned at_hand = 16;

class Held : public Channels, public testing::WithParamInterface<bool>
{
protected:
    /// A channel, and what went by it.
    struct Lane {
        ntbmsg_channel *near = nullptr, *far = nullptr;
        std::vector<size_t> lengths;
        std::vector<uint32_t> words; ///< immediate data
        uint32_t received = 0;
        uint64_t bytes = 0;
    };

    const char *extra_arguments() const override { return without_pauses; }
    void SetUp() override
    {
        older_driver = GetParam();
        Channels::SetUp();
    }
    void bring_up_set(const ntbmsg_endpoint_options &options = worker_options())
    {
        ASSERT_NO_FATAL_FAILURE(bring_up(options));
        ASSERT_EQ(ntbmsg_poll_set_create(far_worker_, &set_), 0);
    }
    void TearDown() override
    {
        settle();
        readable();
        EXPECT_EQ(ntbmsg_poll_set_destroy(set_), 0);
        expect_home();
        Channels::TearDown();
    }

    void make(Lane &lane, uint32_t credit = 64, bool in_set = true)
    {
        ntbmsg_channel_options options = channel_options();
        options.credit_messages = credit;
        ntbmsg_channel_options far_options = options;
        far_options.set = in_set ? set_ : nullptr;
        lane = {};
        ASSERT_NO_FATAL_FAILURE(join(lane.near, lane.far, options, far_options));
        settle();
        readable();
    }
    static void end(const Lane &lane) { give_back({lane.near, lane.far}); }

    /// One burst of @p n messages, as long as @p lengths say by turns. @return how many went
    unsigned send(Lane &lane, unsigned n, const std::vector<size_t> &lengths = {40},
                  bool with_words = true)
    {
        std::vector<rte_mbuf *> mbufs(n);
        std::vector<uint32_t> words(n);
        const size_t before = lane.lengths.size();
        for (unsigned i = 0; i < n; ++i) {
            const size_t number = before + i;
            lane.lengths.push_back(lengths[i % lengths.size()]);
            words[i] = with_words ? static_cast<uint32_t>(number) * 3 + 1 : 0;
            lane.words.push_back(words[i]);
            mbufs[i] = message(near_, lane.lengths.back(), static_cast<uint8_t>(number));
        }
        const int sent = ntbmsg_channel_send_burst(
            lane.near, mbufs.data(), with_words ? words.data() : nullptr, static_cast<uint16_t>(n));
        EXPECT_GE(sent, 0);
        const auto went = static_cast<unsigned>(std::max(sent, 0));
        rte_pktmbuf_free_bulk(mbufs.data() + went, n - went);
        lane.lengths.resize(before + went);
        lane.words.resize(before + went);
        return went;
    }

    /// One burst, every byte of which is looked at. @return what the call gave
    int receive(Lane &lane, uint16_t n, bool with_words = true)
    {
        rte_mbuf *mbufs[64];
        uint32_t words[64];
        const int got = ntbmsg_channel_recv_burst(lane.far, mbufs, with_words ? words : nullptr, n);
        for (int i = 0; i < got; ++i) {
            rte_mbuf *m = mbufs[i];
            const uint32_t number = lane.received++;
            EXPECT_LT(number, lane.lengths.size());
            if (number < lane.lengths.size()) {
                EXPECT_EQ(m->pkt_len, lane.lengths[number]) << number;
                if (with_words) {
                    EXPECT_EQ(words[i], lane.words[number]) << number;
                }
                for (const rte_mbuf *piece = m; piece != nullptr; piece = piece->next) {
                    const auto *data = rte_pktmbuf_mtod(piece, const uint8_t *);
                    const bool is_it = std::all_of(data, data + piece->data_len, [=](uint8_t b) {
                        return b == static_cast<uint8_t>(number);
                    });
                    EXPECT_TRUE(is_it) << number;
                }
            }
            EXPECT_EQ(m->packet_type, 0U);
            lane.bytes += m->pkt_len;
            rte_pktmbuf_free(m);
        }
        EXPECT_EQ(info(lane.far).rx_messages, lane.received);
        EXPECT_EQ(info(lane.far).rx_bytes, lane.bytes);
        return got;
    }
    /// All that there is, or up to @p most messages.
    unsigned receive_all(Lane &lane, unsigned most = 1000)
    {
        unsigned all = 0;
        for (int got = 1; got > 0 && all < most; all += static_cast<unsigned>(std::max(got, 0)))
            got = receive(lane, static_cast<uint16_t>(std::min(most - all, 64U)));
        return all;
    }

    /// One poll of the set. @return the channels that have something to receive
    std::vector<ntbmsg_channel *> readable()
    {
        ntbmsg_ready ready[16];
        const int n = ntbmsg_poll_set_poll(set_, ready, 16);
        EXPECT_GE(n, 0);
        std::vector<ntbmsg_channel *> channels;
        for (int i = 0; i < n; ++i) {
            if ((ready[i].events & NTBMSG_READABLE) != 0)
                channels.push_back(ready[i].channel);
        }
        return channels;
    }
    void expect_readable(std::initializer_list<ntbmsg_channel *> channels)
    {
        EXPECT_EQ(readable(), std::vector(channels));
    }
    /// Of what came short, nothing is out any more.
    void expect_home()
    {
        const std::string name =
            "ntbmsg_wrx_" + std::to_string(rte_pmd_plx_ntb_find(far_device)) + "_0";
        const rte_mempool *pool = rte_mempool_lookup(name.c_str());
        ASSERT_NE(pool, nullptr);
        EXPECT_LE(rte_mempool_in_use_count(pool), at_hand);
    }
    uint64_t dropped() { return stats(far_).rx_dropped; }
    /// Messages that the peer has sent are held, and @p part of them received.
    void hold(Lane &lane, unsigned n, unsigned part = 0)
    {
        ASSERT_EQ(send(lane, n, {40, 0, 64}), n);
        expect_readable({lane.far});
        ASSERT_EQ(receive_all(lane, part), part);
    }

    ntbmsg_poll_set *set_ = nullptr;
};
INSTANTIATE_TEST_SUITE_P(Library, Held, testing::Bool(), name_of);

TEST_P(Held, ComesWholeWithItsImmediateData)
{
    ASSERT_NO_FATAL_FAILURE(bring_up_set());
    Lane lane;
    ASSERT_NO_FATAL_FAILURE(make(lane));
    const std::vector<size_t> some[] = {{0}, {48}, {64}, {100, 20}, {0, 1, 47, 49, 40, 64}};
    // So often that they begin at every line of the ring, and go around its end.
    for (unsigned round = 0; round < 40; ++round) {
        for (const std::vector<size_t> &lengths : some) {
            const unsigned n = 1 + (round * 7 + static_cast<unsigned>(lengths.size())) % 31;
            ASSERT_EQ(send(lane, n, lengths, round % 2 == 0), n);
            expect_readable({lane.far});
            ASSERT_EQ(receive(lane, 64, round % 3 != 0), static_cast<int>(n));
            expect_readable({});
            settle();
        }
    }
    EXPECT_EQ(stats(far_).bad_peer, 0U);
    end(lane);
}

TEST_P(Held, IsReceivedInParts)
{
    ASSERT_NO_FATAL_FAILURE(bring_up_set());
    Lane lane;
    ASSERT_NO_FATAL_FAILURE(make(lane));
    for (const unsigned part : {1U, 3U, 7U, 20U})
        for (const bool polled : {false, true}) {
            ASSERT_NO_FATAL_FAILURE(hold(lane, 20));
            for (unsigned all = 0; all < 20;) {
                const int got = receive(lane, static_cast<uint16_t>(part), all % 2 == 0);
                ASSERT_EQ(got, static_cast<int>(std::min(part, 20 - all)));
                all += part;
                if (polled && all < 20)
                    expect_readable({lane.far});
            }
            expect_readable({});
            settle();
        }
    end(lane);
}

TEST_P(Held, MoreOfItsChannelComesBehindIt)
{
    ASSERT_NO_FATAL_FAILURE(bring_up_set());
    Lane lane;
    ASSERT_NO_FATAL_FAILURE(make(lane));
    ASSERT_NO_FATAL_FAILURE(hold(lane, 10, 4));
    ASSERT_EQ(send(lane, 10), 10U);
    expect_readable({lane.far}); // the next run cannot be held
    ASSERT_EQ(receive_all(lane), 16U);

    ASSERT_NO_FATAL_FAILURE(hold(lane, 10, 3));
    ASSERT_EQ(send(lane, 5), 5U);
    EXPECT_EQ(ntbmsg_worker_poll(far_worker_), 5); // which receives in another way
    expect_readable({lane.far});
    ASSERT_EQ(receive_all(lane), 12U);
    end(lane);
}

TEST_P(Held, OtherChannelsMessagesReachThem)
{
    ASSERT_NO_FATAL_FAILURE(bring_up_set());
    Lane first, second;
    ASSERT_NO_FATAL_FAILURE(make(first));
    ASSERT_NO_FATAL_FAILURE(make(second));
    // Behind a short run the poll goes on.
    ASSERT_EQ(send(first, 3), 3U);
    ASSERT_EQ(send(second, 12), 12U);
    ASSERT_EQ(send(first, 2), 2U);
    expect_readable({first.far, second.far});
    EXPECT_EQ(receive_all(second), 12U);
    EXPECT_EQ(receive_all(first), 5U);
    // Behind a long one another comes with the next poll at the latest.
    ASSERT_EQ(send(first, 12), 12U);
    ASSERT_EQ(send(second, 12), 12U);
    ASSERT_EQ(send(first, 12), 12U);
    for (int i = 0; i < 3; ++i)
        readable();
    EXPECT_EQ(receive_all(second), 12U);
    EXPECT_EQ(receive_all(first), 24U);
    expect_readable({});
    end(first);
    end(second);
}

TEST_P(Held, LongMessagesComeBehindIt)
{
    ASSERT_NO_FATAL_FAILURE(bring_up_set());
    Lane lane;
    ASSERT_NO_FATAL_FAILURE(make(lane));
    for (unsigned first : {2U, 12U}) {
        ASSERT_NO_FATAL_FAILURE(hold(lane, first, 1));
        for (const size_t length : {size_t{3000}, size_t{700}, size_t{40}, size_t{3000}}) {
            ASSERT_EQ(send(lane, 1, {length}), 1U);
            readable();
        }
        ASSERT_EQ(send(lane, 9), 9U);
        for (int i = 0; i < 4; ++i)
            readable();
        EXPECT_EQ(receive_all(lane), first + 12);
        settle();
    }
    EXPECT_EQ(stats(far_).bad_peer, 0U);
    end(lane);
}

TEST_P(Held, AChannelOfNoSetReceivesMeanwhile)
{
    ASSERT_NO_FATAL_FAILURE(bring_up_set());
    Lane lane, other;
    ASSERT_NO_FATAL_FAILURE(make(lane));
    ASSERT_NO_FATAL_FAILURE(make(other, 64, false));
    for (const int most : {64, 1}) {
        ASSERT_NO_FATAL_FAILURE(hold(lane, 12, 2));
        ASSERT_EQ(send(other, 6), 6U);
        EXPECT_EQ(receive(other, static_cast<uint16_t>(most)), std::min(most, 6));
        // It finds messages that belong behind the run.
        ASSERT_EQ(send(lane, 4), 4U);
        ASSERT_EQ(send(other, 1), 1U);
        EXPECT_EQ(receive_all(other), 7U - static_cast<unsigned>(std::min(most, 6)));
        expect_readable({lane.far});
        EXPECT_EQ(receive_all(lane), 14U);
        settle();
    }
    end(lane);
    end(other);
}

TEST_P(Held, APollWithoutRoomOrOfAnotherSetLeavesTheReportToTheNext)
{
    ASSERT_NO_FATAL_FAILURE(bring_up_set());
    Lane lane;
    ASSERT_NO_FATAL_FAILURE(make(lane));
    ntbmsg_poll_set *other = nullptr;
    ASSERT_EQ(ntbmsg_poll_set_create(far_worker_, &other), 0);
    for (ntbmsg_poll_set *set : {set_, other}) {
        ASSERT_EQ(send(lane, 12), 12U);
        ntbmsg_ready ready{};
        EXPECT_EQ(ntbmsg_poll_set_poll(set, &ready, set == set_ ? 0 : 1), 0);
        EXPECT_EQ(ready.channel, nullptr);
        expect_readable({lane.far});
        EXPECT_EQ(receive_all(lane), 12U);
        expect_readable({});
        settle();
    }
    EXPECT_EQ(ntbmsg_poll_set_destroy(other), 0);
    end(lane);
}

TEST_P(Held, IsDroppedWhereItsChannelIsClosed)
{
    ASSERT_NO_FATAL_FAILURE(bring_up_set());
    uint64_t expected = 0;
    for (unsigned round = 0; round < 12; ++round) {
        const unsigned part = round % 3 * 5;
        const bool linked = round % 2 != 0;
        Lane lane;
        ASSERT_NO_FATAL_FAILURE(make(lane));
        ASSERT_NO_FATAL_FAILURE(hold(lane, 30, part));
        if (linked)
            readable();
        ASSERT_EQ(ntbmsg_channel_close(lane.far), 0);
        EXPECT_EQ(dropped(), expected += 30 - part);
        give_back({lane.near});
        settle();
        expect_home();
    }
}

TEST_P(Held, IsDroppedByAReset)
{
    ASSERT_NO_FATAL_FAILURE(bring_up_set());
    uint64_t expected = 0;
    for (const bool own : {true, false}) {
        Lane lane;
        ASSERT_NO_FATAL_FAILURE(make(lane));
        ASSERT_NO_FATAL_FAILURE(hold(lane, 20, 5));
        ASSERT_EQ(ntbmsg_channel_reset(own ? lane.far : lane.near, 5), 0);
        readable();
        EXPECT_EQ(ntbmsg_channel_state_get(lane.far), NTBMSG_CHANNEL_RESET);
        EXPECT_EQ(dropped(), expected += 15);
        EXPECT_EQ(receive(lane, 64), -ECONNRESET);
        // Another's run is not taken for it.
        Lane next;
        ASSERT_NO_FATAL_FAILURE(make(next));
        ASSERT_NO_FATAL_FAILURE(hold(next, 20));
        EXPECT_EQ(receive(lane, 64), -ECONNRESET);
        end(lane);
        EXPECT_EQ(receive_all(next), 20U);
        end(next);
        settle();
    }
}

TEST_P(Held, IsReceivedBeforeAClose)
{
    ASSERT_NO_FATAL_FAILURE(bring_up_set());
    Lane lane;
    ASSERT_NO_FATAL_FAILURE(make(lane));
    ASSERT_NO_FATAL_FAILURE(hold(lane, 20, 5));
    ASSERT_EQ(send(lane, 9), 9U);
    ASSERT_EQ(ntbmsg_channel_close(lane.near), 0);
    for (int i = 0; i < 3; ++i)
        readable();
    EXPECT_EQ(ntbmsg_channel_state_get(lane.far), NTBMSG_CHANNEL_PEER_CLOSED);
    EXPECT_EQ(receive_all(lane), 24U);
    EXPECT_EQ(receive(lane, 64), -ESHUTDOWN);
    give_back({lane.far});
    EXPECT_EQ(dropped(), 0U);
}

TEST_P(Held, IsReceivedAfterALoss)
{
    ASSERT_NO_FATAL_FAILURE(bring_up_set());
    for (const bool noticed : {true, false}) {
        Lane lane;
        ASSERT_NO_FATAL_FAILURE(make(lane));
        ASSERT_NO_FATAL_FAILURE(hold(lane, 20, 5));
        ASSERT_NO_FATAL_FAILURE(close(near_));
        ASSERT_TRUE(await_event(far_, NTBMSG_EVENT_LOST));
        if (noticed) {
            expect_readable({lane.far});
            EXPECT_EQ(ntbmsg_channel_state_get(lane.far), NTBMSG_CHANNEL_LOST);
        }
        ASSERT_NO_FATAL_FAILURE(open(near_device, near_, worker_options()));
        ASSERT_EQ(ntbmsg_endpoint_wait_connected(near_, patience_ms), 0);
        ASSERT_EQ(ntbmsg_endpoint_wait_connected(far_, patience_ms), 0);
        near_worker_ = ntbmsg_endpoint_worker(near_, 0);
        EXPECT_EQ(receive_all(lane), 15U);
        EXPECT_EQ(receive(lane, 64), -ECONNRESET);
        give_back({lane.far});
        settle();
        readable();
    }
    EXPECT_EQ(dropped(), 0U);
}

TEST_P(Held, CreditThatIsOwedWaitsForOnePollThatFindsNothing)
{
    ASSERT_NO_FATAL_FAILURE(bring_up_set());
    for (const bool held : {false, true}) {
        Lane first, second, third;
        ASSERT_NO_FATAL_FAILURE(make(first, 4));
        ASSERT_NO_FATAL_FAILURE(make(second, 4));
        ASSERT_NO_FATAL_FAILURE(make(third));
        for (Lane *lane : {&first, &second}) {
            ASSERT_EQ(send(*lane, 4), 4U);
            ASSERT_EQ(send(*lane, 1), 0U);
        }
        readable();
        ASSERT_EQ(receive(first, 4), 4);
        ASSERT_EQ(receive(second, 4), 4);
        if (held) {
            ASSERT_NO_FATAL_FAILURE(hold(third, 12));
        }
        unsigned polls = 0;
        for (unsigned sent = 0; sent == 0 && polls < 10; ++polls) {
            if (held) // which leaves it held
                ntbmsg_worker_poll(far_worker_);
            else
                expect_readable({});
            ntbmsg_worker_poll(near_worker_);
            sent = send(first, 1);
        }
        EXPECT_EQ(polls, 2U) << "held " << held;
        settle();
        readable();
        EXPECT_EQ(receive_all(first), 1U);
        EXPECT_EQ(receive_all(third), held ? 12U : 0U);
        for (const Lane *lane : {&first, &second, &third})
            end(*lane);
    }
}

TEST_P(Held, AChannelThatWaitsForCreditGoesOn)
{
    ASSERT_NO_FATAL_FAILURE(bring_up_set());
    Lane waiting, left;
    ASSERT_NO_FATAL_FAILURE(make(waiting, 4));
    ASSERT_NO_FATAL_FAILURE(make(left));
    ASSERT_NO_FATAL_FAILURE(hold(left, 12));
    unsigned received = 0;
    for (int round = 0; round < 50; ++round) {
        ntbmsg_worker_poll(near_worker_);
        send(waiting, 4);
        readable();
        received += receive_all(waiting);
        if (round % 5 == 0)
            receive(left, 1);
    }
    EXPECT_GT(received, 60U);
    receive_all(left);
    EXPECT_EQ(left.received, 12U);
    end(waiting);
    end(left);
}

TEST_P(Held, TakesTheMbufsThatThereAre)
{
    ntbmsg_endpoint_options options = worker_options();
    options.rx_mbufs = 512;
    ASSERT_NO_FATAL_FAILURE(bring_up_set(options));
    Lane lane;
    ASSERT_NO_FATAL_FAILURE(make(lane));
    std::vector<rte_mbuf *> kept;
    uint32_t next = 0;
    const auto receive_kept = [&] {
        rte_mbuf *mbufs[64];
        uint32_t words[64];
        const int got = ntbmsg_channel_recv_burst(lane.far, mbufs, words, 64);
        for (int i = 0; i < got; ++i)
            EXPECT_EQ(words[i], lane.words[next++]);
        kept.insert(kept.end(), mbufs, mbufs + std::max(got, 0));
        return got > 0;
    };
    const auto free_kept = [&] {
        rte_pktmbuf_free_bulk(kept.data(), static_cast<unsigned>(kept.size()));
        kept.clear();
    };
    for (int round = 0; round < 5; ++round) {
        for (int idle = 0; idle < 100;) {
            ntbmsg_worker_poll(near_worker_);
            send(lane, 12);
            readable();
            idle = receive_kept() ? 0 : idle + 1;
        }
        ASSERT_GT(kept.size(), 400U);
        EXPECT_LT(next, lane.words.size()) << "there was no mbuf for the rest";
        free_kept();
        for (int idle = 0; idle < 100;) {
            readable();
            idle = receive_kept() ? 0 : idle + 1;
            free_kept();
        }
        EXPECT_EQ(next, lane.words.size());
        settle();
    }
    end(lane);
}

TEST_P(Held, AnyOrderOfCallsKeepsEachChannelsOrder)
{
    ASSERT_NO_FATAL_FAILURE(bring_up_set());
    std::mt19937 random(20261129);
    const auto below = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
    constexpr unsigned lanes = 5;
    Lane lane[lanes];
    for (unsigned i = 0; i < lanes; ++i)
        ASSERT_NO_FATAL_FAILURE(make(lane[i], 16 + 24 * i, i != 0));
    for (unsigned step = 0; step < 20'000 && !HasFailure(); ++step) {
        Lane &one = lane[below(lanes)];
        const unsigned what = below(100);
        if (what < 30) {
            const std::vector<size_t> lengths = {below(60), below(3) == 0 ? below(300) : 40U,
                                                 below(9) == 0 ? 1900U : 8U};
            send(one, 1 + below(below(2) == 0 ? 6 : 40), lengths, below(2) == 0);
        } else if (what < 60) {
            for (ntbmsg_channel *found : readable())
                for (Lane &l : lane) {
                    if (l.far == found && below(4) != 0)
                        receive(l, static_cast<uint16_t>(1 + below(64)), below(2) == 0);
                }
        } else if (what < 75) {
            receive(one, static_cast<uint16_t>(1 + below(64)));
        } else if (what < 90) {
            ntbmsg_worker_poll(near_worker_);
        } else if (what < 99 || below(10) != 0) {
            ntbmsg_worker_poll(far_worker_);
        } else {
            const auto number = static_cast<unsigned>(&one - lane);
            end(one);
            ASSERT_NO_FATAL_FAILURE(make(one, 16 + 24 * number, number != 0));
        }
    }
    settle();
    for (Lane &one : lane) {
        for (unsigned left = 1; left > 0; settle())
            left = receive_all(one);
        EXPECT_EQ(one.received, one.lengths.size());
        end(one);
    }
    EXPECT_EQ(stats(near_).bad_peer + stats(far_).bad_peer, 0U);
}

/// A peer that says what no worker says, to a worker whose set polls.
class HeldOfHostile : public HostilePeer, public testing::WithParamInterface<bool>
{
protected:
    const char *extra_arguments() const override { return without_pauses; }
    void SetUp() override
    {
        older_driver = GetParam();
        HostilePeer::SetUp();
        ASSERT_EQ(ntbmsg_poll_set_create(near_worker_, &set_), 0);
    }
    void TearDown() override
    {
        poll();
        EXPECT_EQ(ntbmsg_poll_set_destroy(set_), 0);
        HostilePeer::TearDown();
    }
    void poll()
    {
        ntbmsg_ready ready[4];
        EXPECT_GE(ntbmsg_poll_set_poll(set_, ready, 4), 0);
    }
    /// So often, and no one polls meanwhile.
    void tell(unsigned n, uint32_t op, uint32_t word, size_t bytes = 8)
    {
        for (unsigned i = 0; i < n; ++i) {
            rte_mbuf *mbuf = message(far_, bytes, 0);
            ASSERT_NE(mbuf, nullptr);
            ASSERT_EQ(far_send(mbuf, {header(word, 0), op, 0}), 1);
        }
    }
    uint32_t open_in_set(ntbmsg_channel *&channel, uint32_t credit)
    {
        ntbmsg_channel_options options = channel_options();
        options.credit_messages = credit;
        options.set = set_;
        const uint32_t word = open_channel(channel, &options);
        poll();
        return word;
    }
    ntbmsg_poll_set *set_ = nullptr;
};
INSTANTIATE_TEST_SUITE_P(Library, HeldOfHostile, testing::Bool(), name_of);

TEST_P(HeldOfHostile, MoreMessagesThanGranted)
{
    ASSERT_NO_FATAL_FAILURE(greet());
    ntbmsg_channel *channel = nullptr;
    const uint32_t word = open_in_set(channel, 16);
    ASSERT_NO_FATAL_FAILURE(tell(17, op_data, word));
    poll();
    EXPECT_EQ(stats(near_).rx_dropped, 17U);
    expect_protest(channel);
}

TEST_P(HeldOfHostile, MoreMessagesThanGrantedBehindARun)
{
    ASSERT_NO_FATAL_FAILURE(greet());
    ntbmsg_channel *channel = nullptr;
    const uint32_t word = open_in_set(channel, 16);
    ASSERT_NO_FATAL_FAILURE(tell(16, op_data, word));
    poll();
    EXPECT_EQ(stats(near_).rx_dropped, 0U);
    ASSERT_NO_FATAL_FAILURE(tell(1, op_data, word));
    poll();
    EXPECT_EQ(stats(near_).rx_dropped, 17U);
    expect_protest(channel);
}

TEST_P(HeldOfHostile, DataBehindTheClose)
{
    ASSERT_NO_FATAL_FAILURE(greet());
    ntbmsg_channel *channel = nullptr;
    const uint32_t word = open_in_set(channel, 16);
    ASSERT_NO_FATAL_FAILURE(tell(1, op_close, word, 0));
    poll();
    ASSERT_NO_FATAL_FAILURE(tell(12, op_data, word));
    poll();
    EXPECT_EQ(stats(near_).rx_dropped, 12U);
    expect_protest(channel);
}

TEST_P(HeldOfHostile, DataOfNoChannelIsDropped)
{
    ASSERT_NO_FATAL_FAILURE(tell(10, op_data, 0)); // before the HELLO
    poll();
    EXPECT_EQ(stats(near_).rx_dropped, 10U);
    ASSERT_NO_FATAL_FAILURE(greet());
    ntbmsg_channel *channel = nullptr;
    const uint32_t word = open_in_set(channel, 16);
    ASSERT_NO_FATAL_FAILURE(tell(10, op_data, slot_word(65535, 65535)));
    poll();
    ASSERT_NO_FATAL_FAILURE(tell(10, op_data, 0));
    poll();
    EXPECT_EQ(stats(near_).rx_dropped, 30U);
    ASSERT_EQ(ntbmsg_channel_close(channel), 0); // with its slot in use
    ASSERT_NO_FATAL_FAILURE(tell(10, op_data, word));
    poll();
    EXPECT_EQ(stats(near_).rx_dropped, 40U);
    EXPECT_EQ(stats(near_).bad_peer, 0U);
    EXPECT_EQ(hear().op, op_close);
    EXPECT_EQ(hear().op, op_reset);
}

TEST_P(HeldOfHostile, WhatTheHelloSaysIsLongTakesBuffers)
{
    ASSERT_EQ(hear().op, op_hello);
    Hello hello = sound_hello();
    hello.inline_max = 64; // shorter than what the driver puts into the ring
    ASSERT_NO_FATAL_FAILURE(say(op_hello, 0, 0, &hello, sizeof(hello)));
    ntbmsg_channel *channel = nullptr;
    const uint32_t word = open_in_set(channel, 64);
    for (int i = 0; i < 3; ++i) {
        ASSERT_NO_FATAL_FAILURE(tell(11, op_data, word, 200));
        poll();
    }
    expect_protest(channel); // 32 were granted
}

} // namespace

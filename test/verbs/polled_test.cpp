// SPDX-License-Identifier: BSD-3-Clause
// The order of what a program sees that polls its memory (doc/verbs.md, section 6), with an engine
// whose stores to it arrive late and in any order that the engine has not ruled out.
#include "direct_hosts.hpp"
#include "engine/peer_memory.hpp"

namespace
{

using namespace verbs_test;
using ntb::verbs::PeerMemory;
using Model = ntb_test::MemModel;
using Breach = Model::Breach;

constexpr unsigned seeds = 40;
constexpr std::byte fresh{0x5a};

class Polled : public DirectHosts
{
protected:
    void SetUp() override
    {
        ASSERT_NO_FATAL_FAILURE(DirectHosts::SetUp());
        std::fill(ma.bytes.begin(), ma.bytes.end(), std::to_integer<std::uint8_t>(fresh));
    }
    void TearDown() override
    {
        PeerMemory::look = nullptr;
        PeerMemory::has_barrier = true;
    }
    bool is_fresh(std::size_t at) const
    {
        return *static_cast<const volatile std::byte *>(mb->memory + at) == fresh;
    }
    /// One write, of some pieces, to everywhere in a line. @return looks at which its last byte was
    /// there, and another one was not
    int count_too_early(std::size_t bytes, std::size_t offset, std::uint32_t pieces)
    {
        int too_early = 0, looks = 0;
        std::memset(mb->memory, 0, bytes + offset);
        const auto look = [&] {
            ++looks;
            if (!is_fresh(offset + bytes - 1))
                return;
            for (std::size_t i = 0; i < bytes; ++i)
                if (!is_fresh(offset + i)) {
                    ++too_early;
                    return;
                }
        };
        PeerMemory::look = look;
        ntbv_sge list[4];
        const std::size_t each = bytes / pieces;
        for (std::uint32_t i = 0; i < pieces; ++i)
            list[i] = ma.piece(i * each, i + 1 == pieces ? bytes - i * each : each);
        ntbv_send_wr wr = work(NTBV_WRITE, 1, 8, offset).wr;
        wr.sge = list;
        wr.n_sge = static_cast<int>(pieces);
        const ntbv_send_wr *bad;
        EXPECT_EQ(ntbv_qp_post_send(qa, &wr, &bad), 0);
        run();
        Model::current->all_arrive(look);
        EXPECT_GT(looks, 0) << "its stores do not go by the model";
        EXPECT_EQ(one(a.cq).status, NTBV_SUCCESS);
        for (std::size_t i = 0; i < bytes; ++i)
            EXPECT_TRUE(is_fresh(offset + i));
        return too_early;
    }
    int count_too_early(Breach breach)
    {
        int too_early = 0;
        for (unsigned seed = 0; seed < seeds; ++seed) {
            Model model(seed, breach);
            for (const std::size_t bytes : {1ul, 3ul, 8ul, 12ul, 13ul, 64ul, 100ul, 260ul})
                too_early += count_too_early(bytes, seed % 9, bytes < 4 ? 1 : 1 + seed % 4);
        }
        return too_early;
    }
};

TEST_F(Polled, TheLastByteOfADirectWriteIsTheLast)
{
    get_to_know();
    EXPECT_EQ(count_too_early(Breach::none), 0);
    EXPECT_EQ(writes(), seeds * 8u);
    EXPECT_GT(count_too_early(Breach::release), 0) << "this test sees nothing";
}

/// The owner's engine stores what a message brings.
class PolledServed : public Polled
{
protected:
    PolledServed() { owner_is_direct = false; }
};

TEST_F(PolledServed, SoItIsOfAWriteByMessages)
{
    EXPECT_EQ(count_too_early(Breach::none), 0);
    {
        Model model(1);
        EXPECT_EQ(count_too_early(40001, 3, 2), 0); // in several messages
    }
    EXPECT_EQ(writes(), 0u);
    EXPECT_GT(count_too_early(Breach::release), 0) << "this test sees nothing";
}

// Both ends, the memory, and the program that posts move on as they like.
TEST_F(Polled, AWriteIsBehindTheSendsThatAreNotAcknowledged)
{
    constexpr std::size_t pairs = 60;
    get_to_know();
    for (unsigned seed = 0; seed < seeds; ++seed) {
        Model model(seed);
        std::memset(mb->memory, 0, pairs);
        std::size_t posted = 0, received = 0, completed = 0;
        const auto receive = [&] {
            for (const ntbv_wc &wc : there(b.recv_cq))
                EXPECT_EQ(wc.id, received++);
        };
        // Of each pair the send is first: once its write is there, it has been received.
        const auto look = [&] {
            for (std::size_t i = received; i < pairs; ++i) {
                const bool is_there = is_fresh(i);
                if (is_there && received <= i)
                    receive();
                EXPECT_TRUE(!is_there || received > i) << "write " << i << " overtook its send";
            }
        };
        PeerMemory::look = look;
        while (completed < 2 * pairs) {
            if (posted < 2 * pairs && posted / 2 < received + 20 && model.random() % 4 == 0) {
                if (posted % 2 == 0) {
                    ASSERT_EQ(post_recv(qb, posted / 2), 0);
                    ASSERT_EQ(Work(NTBV_SEND, posted).post(qa), 0);
                } else {
                    ASSERT_EQ(work(NTBV_WRITE, posted, 1, posted / 2).post(qa), 0);
                }
                ++posted;
            }
            if (model.random() % 3 == 0)
                receive();
            if (model.random() % 3 == 0)
                for (const ntbv_wc &wc : there(a.cq)) {
                    EXPECT_EQ(wc.id, completed++);
                    EXPECT_EQ(wc.status, NTBV_SUCCESS);
                }
            model.step(model.random() % 3);
            look();
        }
        model.all_arrive();
    }
    EXPECT_GT(writes(), seeds) << "no request found those before it acknowledged";
    EXPECT_LT(writes(), seeds * (pairs - 1)) << "each one did";
}

TEST_F(Polled, ASendIsBehindTheDirectWriteBeforeIt)
{
    get_to_know();
    int too_early = 0;
    for (const bool has_barrier : {true, false}) {
        PeerMemory::has_barrier = has_barrier;
        for (unsigned seed = 0; seed < seeds; ++seed) {
            Model model(seed);
            mb->memory[100] = {};
            ASSERT_EQ(post_recv(qb, seed), 0);
            ASSERT_EQ(work(NTBV_WRITE, 1, 64, 37).post(qa), 0);
            ASSERT_EQ(Work(NTBV_SEND, 2).post(qa), 0);
            while (there(b.recv_cq).empty()) {
            }
            too_early += !is_fresh(100);
            model.all_arrive();
            expect(a.cq, {{1, NTBV_SUCCESS}, {2, NTBV_SUCCESS}});
        }
        EXPECT_EQ(too_early != 0, !has_barrier);
    }
    EXPECT_EQ(writes(), 2 * seeds);
}

} // namespace

// SPDX-License-Identifier: BSD-3-Clause
// One-sided operations of many threads, through workers that a thread of their own drives.
#include <utility>

#include "dedicated.hpp"

namespace
{

/// Regions of the far end, and channels to it from threads of the near one.
class DedicatedOperations : public Dedicated
{
protected:
    static constexpr size_t share = 16384;   ///< of a region: each thread's
    static constexpr unsigned in_flight = 8; ///< operations posted at a time
    static constexpr size_t slot = share / in_flight;

    void SetUp() override
    {
        Dedicated::SetUp();
        bring_up();
        served_memory_.resize(threads_max * share);
        counter_memory_.resize(1);
        constexpr uint32_t rights = NTBMSG_RIGHT_WRITE | NTBMSG_RIGHT_READ;
        ASSERT_EQ(ntbmsg_region_alloc(far_, threads_max * share, rights, &direct_), 0);
        ASSERT_EQ(ntbmsg_region_register(far_, served_memory_.data(), served_memory_.size(), rights,
                                         &served_),
                  0);
        ASSERT_EQ(
            ntbmsg_region_register(far_, counter_memory_.data(), 8, NTBMSG_RIGHT_ATOMIC, &counter_),
            0);
    }
    void TearDown() override
    {
        for (ntbmsg_region *region : {direct_, served_, counter_}) {
            if (region != nullptr) {
                EXPECT_EQ(ntbmsg_region_release(region), 0);
            }
        }
        for (ntbmsg_cq *cq : queues_)
            EXPECT_TRUE(await([&] { return ntbmsg_cq_destroy(cq) == 0; }));
        Dedicated::TearDown();
    }

    ntbmsg_cq *make_queue(uint32_t entries, ntbmsg_completion_fn fn = nullptr, void *arg = nullptr)
    {
        ntbmsg_cq *cq = nullptr;
        EXPECT_EQ(ntbmsg_cq_create(entries, fn, arg, &cq), 0);
        queues_.push_back(cq);
        return cq;
    }
    static ntbmsg_channel_options with_queue(ntbmsg_cq *cq)
    {
        ntbmsg_channel_options options = channel_options();
        options.cq = cq;
        return options;
    }
    static ntbmsg_remote *open_remote(ntbmsg_channel *channel, const ntbmsg_region *region)
    {
        ntbmsg_region_token token{};
        ntbmsg_remote *remote = nullptr;
        EXPECT_EQ(ntbmsg_region_token_get(region, &token), 0);
        EXPECT_EQ(ntbmsg_remote_open(channel, &token, &remote), 0);
        return remote;
    }
    static ntbmsg_work work(ntbmsg_op op, ntbmsg_remote *remote, uint64_t offset,
                            const ntbmsg_sge *sge, uint64_t id)
    {
        ntbmsg_work w{};
        w.id = id;
        w.remote = remote;
        w.offset = offset;
        w.sges = sge;
        w.sge_count = sge != nullptr ? 1 : 0;
        w.op = static_cast<uint8_t>(op);
        w.flags = NTBMSG_WORK_SIGNAL;
        w.operand = 1;
        return w;
    }
    /// Posts until all are taken.
    bool post_all(ntbmsg_channel *channel, const std::vector<ntbmsg_work> &works)
    {
        size_t taken = 0;
        return await([&] {
                   const int rc = ntbmsg_channel_post_burst(
                       channel, works.data() + taken, static_cast<uint16_t>(works.size() - taken));
                   taken += rc > 0 ? static_cast<size_t>(rc) : 0;
                   return rc < 0 || taken == works.size();
               }) &&
               taken == works.size();
    }
    /// Takes their completions. @return whether all are good, and in the order of posting
    bool all_good(ntbmsg_cq *cq, const std::vector<ntbmsg_work> &works)
    {
        size_t seen = 0;
        bool good = true;
        return await([&] {
                   ntbmsg_completion c;
                   if (ntbmsg_cq_poll(cq, &c, 1) == 1)
                       good = good && c.status == 0 && c.id == works[seen++].id;
                   return !good || seen == works.size();
               }) &&
               good;
    }

    /// Writes, reads back and counts, @p rounds times. @return whether all was as it should be
    bool operate(ntbmsg_channel *channel, ntbmsg_cq *cq, unsigned thread, unsigned rounds)
    {
        ntbmsg_remote *const ways[] = {open_remote(channel, direct_),
                                       open_remote(channel, served_)};
        ntbmsg_remote *const counter = open_remote(channel, counter_);
        std::vector<uint8_t> out(share), in(share);
        bool good = true;
        for (unsigned round = 0; good && round < rounds; ++round) {
            std::fill(out.begin(), out.end(), static_cast<uint8_t>(round + thread + 1));
            std::vector<ntbmsg_work> writes, reads;
            std::vector<ntbmsg_sge> from(in_flight), to(in_flight);
            for (unsigned i = 0; i < in_flight; ++i) {
                const uint64_t at = thread * share + i * slot, id = round * in_flight + i;
                from[i] = {out.data() + i * slot, slot, 0};
                to[i] = {in.data() + i * slot, slot, 0};
                writes.push_back(work(NTBMSG_OP_WRITE, ways[round % 2], at, &from[i], id));
                // A direct one is read by the owner, who does not wait for stores.
                writes.back().flags |= NTBMSG_WORK_CONFIRM;
                reads.push_back(work(NTBMSG_OP_READ, ways[round % 2], at, &to[i], id));
            }
            writes.push_back(work(NTBMSG_OP_FETCH_ADD, counter, 0, nullptr, round));
            good = post_all(channel, writes) && all_good(cq, writes) && post_all(channel, reads) &&
                   all_good(cq, reads) && in == out;
        }
        for (ntbmsg_remote *remote : {ways[0], ways[1], counter})
            ntbmsg_remote_close(remote);
        return good;
    }

    static constexpr unsigned threads_max = 3;
    std::vector<uint8_t> served_memory_;
    std::vector<uint64_t> counter_memory_;
    ntbmsg_region *direct_ = nullptr, *served_ = nullptr, *counter_ = nullptr;
    std::vector<ntbmsg_cq *> queues_;
};

// Semantics: dedicated-2
TEST_F(DedicatedOperations, ManyThreadsEachTheirChannel)
{
    constexpr unsigned rounds = 20;
    ntbmsg_channel *near[threads_max] = {}, *far[threads_max] = {};
    ntbmsg_cq *queues[threads_max] = {};
    for (unsigned i = 0; i < threads_max; ++i)
        ASSERT_NO_FATAL_FAILURE(join(near[i], far[i], with_queue(queues[i] = make_queue(64))));
    std::vector<std::thread> threads;
    std::atomic<unsigned> good{0};
    for (unsigned i = 0; i < threads_max; ++i)
        threads.emplace_back([&, i] { good += operate(near[i], queues[i], i, rounds); });
    for (std::thread &thread : threads)
        thread.join();
    EXPECT_EQ(good.load(), threads_max);
    for (unsigned i = 0; i < threads_max; ++i) {
        give_back({near[i], far[i]});
    }
    EXPECT_EQ(stats(near_).bad_peer + stats(far_).bad_peer, 0U);
    far_poller_.reset(); // what it wrote can be looked at
    EXPECT_EQ(counter_memory_[0], threads_max * rounds);
}

// Semantics: dedicated-2
TEST_F(DedicatedOperations, OneThreadTakesTheCompletionsOfAll)
{
    constexpr unsigned rounds = 300;
    ntbmsg_cq *cq = make_queue(32);
    ntbmsg_channel *near[threads_max] = {}, *far[threads_max] = {};
    for (unsigned i = 0; i < threads_max; ++i)
        ASSERT_NO_FATAL_FAILURE(join(near[i], far[i], with_queue(cq)));
    std::vector<std::thread> threads;
    std::atomic<unsigned> good{0};
    for (unsigned i = 0; i < threads_max; ++i)
        threads.emplace_back([&, i] {
            ntbmsg_remote *remote = open_remote(near[i], counter_);
            std::vector<ntbmsg_work> works;
            for (unsigned k = 0; k < rounds; ++k)
                works.push_back(work(NTBMSG_OP_FETCH_ADD, remote, 0, nullptr, k));
            good += post_all(near[i], works);
        });
    std::vector<uint64_t> values;
    unsigned next[threads_max] = {};
    EXPECT_TRUE(await([&] {
        ntbmsg_completion got[16];
        const int n = ntbmsg_cq_poll(cq, got, 16);
        for (int k = 0; k < n; ++k) {
            const auto which = std::find(near, near + threads_max, got[k].channel) - near;
            EXPECT_EQ(got[k].status, 0);
            EXPECT_EQ(got[k].id, next[which]++);
            values.push_back(got[k].value);
        }
        return values.size() == threads_max * rounds;
    }));
    for (std::thread &thread : threads)
        thread.join();
    EXPECT_EQ(good.load(), threads_max);
    std::sort(values.begin(), values.end());
    for (size_t i = 0; i < values.size(); ++i)
        ASSERT_EQ(values[i], i) << "each was done once";
    for (unsigned i = 0; i < threads_max; ++i) {
        give_back({near[i], far[i]});
    }
}

// Semantics: dedicated-3
TEST_F(DedicatedOperations, CallbacksAreThePollingThreadsAndMayPost)
{
    struct Told {
        std::thread::id poller;
        ntbmsg_work next{};
        std::atomic<unsigned> count{0};
        std::atomic<unsigned> bad{0};
    } told;
    const auto post_next = [](const ntbmsg_completion *completion, void *arg) {
        auto &t = *static_cast<Told *>(arg);
        t.bad += completion->status != 0 || std::this_thread::get_id() != t.poller;
        if (++t.count < 1000)
            t.bad += ntbmsg_channel_post_burst(completion->channel, &t.next, 1) != 1;
    };
    told.poller = near_poller_->id();
    ntbmsg_channel *near = nullptr, *far = nullptr;
    ASSERT_NO_FATAL_FAILURE(join(near, far, with_queue(make_queue(1, post_next, &told))));
    ntbmsg_remote *remote = open_remote(near, counter_);
    told.next = work(NTBMSG_OP_FETCH_ADD, remote, 0, nullptr, 1);
    ASSERT_TRUE(post_all(near, {told.next}));
    EXPECT_TRUE(await([&] { return told.count == 1000; }));
    EXPECT_EQ(told.bad.load(), 0u);
    ntbmsg_remote_close(remote);
    give_back({near, far});
}

// What is sent behind a direct write arrives behind it, though other threads carry the message.
// Semantics: dedicated-1
TEST_F(DedicatedOperations, AMessageComesBehindADirectWrite)
{
    ntbmsg_channel *near = nullptr, *far = nullptr;
    ntbmsg_cq *cq = make_queue(64);
    ASSERT_NO_FATAL_FAILURE(join(near, far, with_queue(cq)));
    ntbmsg_remote *remote = open_remote(near, direct_);
    std::vector<uint64_t> numbers(256);
    const ntbmsg_sge sge{numbers.data(), 2048, 0};
    ntbmsg_region_info region{};
    region.size = sizeof(region);
    ASSERT_EQ(ntbmsg_region_info_get(direct_, &region), 0);
    const auto *memory = static_cast<const volatile uint64_t *>(region.address);
    unsigned direct = 0;
    for (uint64_t i = 1; i <= 500; ++i) {
        std::fill(numbers.begin(), numbers.end(), i);
        const std::vector<ntbmsg_work> works{work(NTBMSG_OP_WRITE, remote, 0, &sge, i)};
        ASSERT_TRUE(post_all(near, works));
        ntbmsg_completion c;
        const bool at_once = ntbmsg_cq_poll(cq, &c, 1) == 1;
        direct += at_once;
        ASSERT_TRUE(at_once || all_good(cq, works));
        const auto imm = static_cast<uint32_t>(i);
        rte_mbuf *mbuf = message(near_, 8, 1), *got = nullptr;
        ASSERT_TRUE(await([&] { return ntbmsg_channel_send_burst(near, &mbuf, &imm, 1) == 1; }));
        ASSERT_TRUE(await([&] { return ntbmsg_channel_recv_burst(far, &got, nullptr, 1) == 1; }));
        ASSERT_EQ(memory[0], i);
        ASSERT_EQ(memory[255], i);
        rte_pktmbuf_free(got);
    }
    EXPECT_GT(direct, 100u) << "else this tests nothing";
    ntbmsg_remote_close(remote);
    give_back({near, far});
}

// Each write is of one byte repeated: eight aligned bytes that differ among themselves are torn.
// Semantics: one-sided-10
TEST_F(DedicatedOperations, PolledMemoryShowsWholeWords)
{
    constexpr unsigned enough = 50;
    ntbmsg_channel *near = nullptr, *far = nullptr;
    ntbmsg_cq *cq = make_queue(64);
    ASSERT_NO_FATAL_FAILURE(join(near, far, with_queue(cq)));
    ntbmsg_remote *remote = open_remote(near, direct_);
    ntbmsg_region_info region{};
    region.size = sizeof(region);
    ASSERT_EQ(ntbmsg_region_info_get(direct_, &region), 0);
    const auto *memory = static_cast<const volatile uint64_t *>(region.address);
    uint64_t nothing = 0;
    const ntbmsg_sge zero{&nothing, sizeof(nothing), 0};
    const std::vector<ntbmsg_work> try_it{work(NTBMSG_OP_WRITE, remote, 64, &zero, 0)};
    ASSERT_TRUE(await([&] { // the first ones are served
        const uint64_t served = region.writes;
        return post_all(near, try_it) && all_good(cq, try_it) &&
               ntbmsg_region_info_get(direct_, &region) == 0 && region.writes == served;
    }));
    // What the far worker wrote is seen by its message: from here on nothing is served.
    rte_mbuf *mbuf = message(near_, 8, 1), *got = nullptr;
    ASSERT_TRUE(await([&] { return ntbmsg_channel_send_burst(near, &mbuf, nullptr, 1) == 1; }));
    ASSERT_TRUE(await([&] { return ntbmsg_channel_recv_burst(far, &got, nullptr, 1) == 1; }));
    rte_pktmbuf_free(got);
    std::atomic<bool> good{true};
    std::atomic<unsigned> changes{0};
    std::thread writer([&] {
        std::vector<uint8_t> bytes(2048 + 8);
        for (unsigned i = 0; good && changes < enough; ++i) {
            std::fill(bytes.begin(), bytes.end(), static_cast<uint8_t>(i));
            const ntbmsg_sge sge{bytes.data() + i % 8, i % 3 == 0 ? 2048U : 8U, 0};
            const std::vector<ntbmsg_work> works{work(NTBMSG_OP_WRITE, remote, 64, &sge, i)};
            good = post_all(near, works) && all_good(cq, works);
        }
    });
    unsigned torn = 0;
    uint64_t before = 0;
    const auto whole = [](uint64_t word) { return word == (word & 0xff) * 0x0101010101010101; };
    const bool seen = await([&] {
        const uint64_t first = memory[8], last = memory[8 + 255];
        torn += !whole(first) + !whole(last);
        changes += first != before;
        before = first;
        return !good || changes >= enough;
    });
    if (!seen)
        good = false;
    writer.join();
    EXPECT_TRUE(good);
    EXPECT_EQ(torn, 0U);
    ntbmsg_remote_close(remote);
    give_back({near, far});
}

// Semantics: dedicated-6
TEST_F(DedicatedOperations, ALossCompletesAllThatThreadsHavePosted)
{
    ntbmsg_channel *near[threads_max] = {}, *far[threads_max] = {};
    ntbmsg_cq *queues[threads_max] = {};
    for (unsigned i = 0; i < threads_max; ++i)
        ASSERT_NO_FATAL_FAILURE(join(near[i], far[i], with_queue(queues[i] = make_queue(64))));
    std::vector<std::thread> threads;
    std::atomic<unsigned> running{0}, good{0};
    for (unsigned i = 0; i < threads_max; ++i)
        threads.emplace_back([&, i] {
            ntbmsg_remote *remote = open_remote(near[i], i == 0 ? direct_ : served_);
            // A read may still store while the write behind it is gathered.
            std::vector<uint8_t> written(share), read(share);
            const ntbmsg_sge from{written.data(), share, 0}, to{read.data(), share, 0};
            uint64_t taken = 0, told = 0;
            int rc = 0;
            const bool ended = await([&] {
                const bool writes = taken % 2 == 0;
                const ntbmsg_work w = work(writes ? NTBMSG_OP_WRITE : NTBMSG_OP_READ, remote,
                                           i * share, writes ? &from : &to, taken);
                if (rc >= 0)
                    rc = ntbmsg_channel_post_burst(near[i], &w, 1);
                taken += rc == 1;
                running += taken == 10;
                ntbmsg_completion c{};
                if (ntbmsg_cq_poll(queues[i], &c, 1) == 1)
                    told += c.id == told && (c.status == 0 || c.status == -ECONNRESET);
                return rc < 0 && told == taken;
            });
            good += ended && rc == -ECONNRESET;
            ntbmsg_remote_close(remote);
        });
    EXPECT_TRUE(await([&] { return running >= threads_max; }));
    far_poller_.reset();
    for (ntbmsg_channel *channel : far)
        EXPECT_EQ(ntbmsg_channel_close(channel), 0);
    for (ntbmsg_region **region : {&direct_, &served_, &counter_})
        EXPECT_EQ(ntbmsg_region_release(std::exchange(*region, nullptr)), 0);
    ASSERT_NO_FATAL_FAILURE(close(far_));
    for (std::thread &thread : threads)
        thread.join();
    EXPECT_EQ(good.load(), threads_max);
    for (ntbmsg_channel *channel : near)
        EXPECT_EQ(ntbmsg_channel_close(channel), 0);
}

} // namespace

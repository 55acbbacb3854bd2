// SPDX-License-Identifier: BSD-3-Clause
// Workers that a thread of their own drives, channels used by other threads.
#include <atomic>
#include <memory>
#include <thread>
#include <utility>

#include <sched.h>

#include <rte_lcore.h>
#include <rte_service.h>
#include <rte_service_component.h>

#include "channels.hpp"

namespace
{

class Dedicated : public Cabled
{
protected:
    static constexpr uint16_t port = 9;

    static ntbmsg_endpoint_options dedicated_options()
    {
        ntbmsg_endpoint_options options = small_options();
        options.queues = 0;
        options.workers = 1;
        options.dedicated = 1;
        options.channels = 64;
        options.rx_mbufs = 4096;
        options.tx_mbufs = 2048;
        return options;
    }

    /// A worker and the thread that drives it, until it goes out of scope.
    class Poller
    {
    public:
        explicit Poller(ntbmsg_worker *worker)
            : thread_([this, worker] {
                  while (!stop_.load(std::memory_order_acquire)) {
                      if (ntbmsg_worker_poll(worker) == 0)
                          sched_yield();
                  }
              })
        {
        }
        std::thread::id id() const { return thread_.get_id(); }
        ~Poller()
        {
            stop_.store(true, std::memory_order_release);
            thread_.join();
        }

    private:
        std::atomic<bool> stop_{false};
        std::thread thread_;
    };

    void bring_up(const ntbmsg_endpoint_options &options = dedicated_options())
    {
        ASSERT_NO_FATAL_FAILURE(connect(options));
        near_worker_ = ntbmsg_worker_get(near_, 0);
        far_worker_ = ntbmsg_worker_get(far_, 0);
        near_poller_ = std::make_unique<Poller>(near_worker_);
        far_poller_ = std::make_unique<Poller>(far_worker_);
        ASSERT_EQ(ntbmsg_listen(port, 0, &listener_), 0);
    }

    void TearDown() override
    {
        near_poller_.reset();
        far_poller_.reset();
        ntbmsg_listener_close(listener_);
        Cabled::TearDown();
    }

    template <class Fact>
    static bool await(Fact fact)
    {
        for (const uint64_t end = now_ms() + patience_ms; now_ms() < end; sched_yield()) {
            if (fact())
                return true;
        }
        return fact();
    }

    static ntbmsg_channel_options channel_options(ntbmsg_poll_set *set = nullptr)
    {
        ntbmsg_channel_options options;
        ntbmsg_channel_options_init(&options);
        options.set = set;
        return options;
    }

    void join(ntbmsg_channel *&near, ntbmsg_channel *&far,
              const ntbmsg_channel_options &near_options = channel_options(),
              const ntbmsg_channel_options &far_options = channel_options())
    {
        ASSERT_EQ(ntbmsg_connect(near_worker_, port, &near_options, &near), 0);
        ntbmsg_request request;
        ASSERT_TRUE(
            await([&] { return ntbmsg_listener_poll(listener_, far_worker_, &request) == 1; }));
        ASSERT_EQ(ntbmsg_accept(&request, &far_options, &far), 0);
        ASSERT_EQ(ntbmsg_channel_wait_open(near, patience_ms), 0);
    }

    static bool await_state(const ntbmsg_channel *channel, enum ntbmsg_channel_state state)
    {
        return await([=] { return ntbmsg_channel_state(channel) == state; });
    }

    static ntbmsg_channel_info info(const ntbmsg_channel *channel)
    {
        ntbmsg_channel_info info{};
        info.size = sizeof(info);
        EXPECT_EQ(ntbmsg_channel_info_get(channel, &info), 0);
        return info;
    }

    static uint32_t short_size(uint32_t number) { return number % 101 == 0 ? 3000 : number % 90; }
    static uint32_t long_size(uint32_t number)
    {
        constexpr uint32_t sizes[] = {100 * 1024, 8, 70 * 1024 + 1, 3000, 300 * 1024};
        return sizes[number % std::size(sizes)];
    }
    /// Sends @p total messages, numbered. @return whether all went
    static bool send_all(ntbmsg_endpoint *from, ntbmsg_channel *channel, uint32_t total,
                         uint32_t (*size_of)(uint32_t) = short_size)
    {
        uint32_t sent = 0;
        return await([&] {
                   rte_mbuf *mbuf = message(from, size_of(sent), static_cast<int>(sent % 251));
                   if (mbuf == nullptr)
                       return false; // others have them all
                   const int rc = ntbmsg_channel_send_burst(channel, &mbuf, &sent, 1);
                   if (rc == 1)
                       ++sent;
                   else
                       rte_pktmbuf_free(mbuf);
                   return rc < 0 || sent == total;
               }) &&
               sent == total;
    }
    /// Receives what is there. @return false: something was out of order
    static bool receive_some(ntbmsg_channel *channel, uint32_t &next)
    {
        rte_mbuf *got[16];
        uint32_t imm[16];
        const int n = ntbmsg_channel_recv_burst(channel, got, imm, 16);
        bool in_order = true;
        for (int i = 0; i < n; ++i) {
            in_order = in_order && imm[i] == next++ && is_all(got[i], imm[i] % 251);
            rte_pktmbuf_free(got[i]);
        }
        return in_order;
    }
    /// Whether all its bytes are @p fill.
    static bool is_all(const rte_mbuf *m, uint32_t fill)
    {
        for (; m != nullptr; m = m->next) {
            const auto *data = rte_pktmbuf_mtod(m, const uint8_t *);
            if (std::any_of(data, data + m->data_len, [=](uint8_t byte) { return byte != fill; }))
                return false;
        }
        return true;
    }
    /// Receives @p total messages. @return whether they came, whole and in order
    static bool receive_all(ntbmsg_channel *channel, uint32_t total)
    {
        uint32_t next = 0;
        bool in_order = true;
        return await([&] {
                   in_order = in_order && receive_some(channel, next);
                   return !in_order || next == total;
               }) &&
               in_order;
    }

    /// Sends and receives @p total messages, long and short ones. @return whether all went and came
    static bool exchange(ntbmsg_endpoint *from, ntbmsg_channel *channel, uint32_t total)
    {
        uint32_t received = 0, sent = 0;
        rte_mbuf *mbuf = nullptr;
        bool in_order = true;
        const bool done = await([&] {
            if (mbuf == nullptr && sent < total)
                mbuf = message(from, long_size(sent), static_cast<int>(sent % 251));
            if (mbuf != nullptr && ntbmsg_channel_send_burst(channel, &mbuf, &sent, 1) == 1) {
                mbuf = nullptr;
                ++sent;
            }
            in_order = in_order && receive_some(channel, received);
            return !in_order || (received == total && sent == total);
        });
        rte_pktmbuf_free(mbuf);
        return done && in_order;
    }

    ntbmsg_worker *near_worker_ = nullptr, *far_worker_ = nullptr;
    ntbmsg_listener *listener_ = nullptr;
    std::unique_ptr<Poller> near_poller_, far_poller_;
};

TEST_F(Dedicated, ManyThreadsEachTheirChannelBothWays)
{
    bring_up();
    constexpr int pairs = 3;
    constexpr uint32_t total = 2000;
    ntbmsg_channel *near[pairs] = {}, *far[pairs] = {};
    for (int i = 0; i < pairs; ++i)
        ASSERT_NO_FATAL_FAILURE(join(near[i], far[i]));
    std::vector<std::thread> threads;
    std::atomic<int> good{0};
    for (int i = 0; i < pairs; ++i) {
        threads.emplace_back([&, i] { good += send_all(near_, near[i], total); });
        threads.emplace_back([&, i] { good += receive_all(far[i], total); });
    }
    for (std::thread &thread : threads)
        thread.join();
    EXPECT_EQ(good.load(), 2 * pairs);
    for (int i = 0; i < pairs; ++i) {
        EXPECT_EQ(info(far[i]).rx_messages, total);
        EXPECT_EQ(ntbmsg_channel_close(near[i]), 0);
        EXPECT_EQ(ntbmsg_channel_close(far[i]), 0);
    }
    EXPECT_EQ(stats(near_).bad_peer + stats(far_).bad_peer, 0U);
}

TEST_F(Dedicated, LongMessagesOfManyThreadsBothWays)
{
    ntbmsg_endpoint_options options = dedicated_options();
    options.rendezvous_bytes = 4 << 20;
    options.tx_room = 65280;
    options.tx_mbufs = 256;
    bring_up(options);
    constexpr int pairs = 2;
    constexpr uint32_t total = 60;
    ntbmsg_channel *near[pairs] = {}, *far[pairs] = {};
    for (int i = 0; i < pairs; ++i)
        ASSERT_NO_FATAL_FAILURE(join(near[i], far[i]));
    std::vector<std::thread> threads;
    std::atomic<int> good{0};
    for (int i = 0; i < pairs; ++i) {
        threads.emplace_back([&, i] { good += exchange(near_, near[i], total); });
        threads.emplace_back([&, i] { good += exchange(far_, far[i], total); });
    }
    for (std::thread &thread : threads)
        thread.join();
    EXPECT_EQ(good.load(), 2 * pairs);
    EXPECT_EQ(stats(near_).tx_long, pairs * total * 3 / 5);
    for (int i = 0; i < pairs; ++i) {
        EXPECT_EQ(info(far[i]).rx_messages, total);
        EXPECT_EQ(ntbmsg_channel_close(near[i]), 0);
        EXPECT_EQ(ntbmsg_channel_close(far[i]), 0);
    }
    EXPECT_EQ(stats(near_).bad_peer + stats(far_).bad_peer, 0U);
}

/// Regions of the far end, and channels to it from threads of the near one.
class DedicatedOperations : public Dedicated
{
protected:
    static constexpr size_t share = 16384; ///< of a region: each thread's
    static constexpr unsigned window = 8;  ///< operations posted at a time
    static constexpr size_t slot = share / window;

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
                EXPECT_EQ(ntbmsg_region_revoke(region), 0);
            }
        }
        for (ntbmsg_cq *cq : queues_)
            EXPECT_TRUE(await([=] { return ntbmsg_cq_destroy(cq) == 0; }));
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
    static bool post_all(ntbmsg_channel *channel, const std::vector<ntbmsg_work> &works)
    {
        size_t taken = 0;
        return await([&] {
                   const int rc = ntbmsg_post_burst(channel, works.data() + taken,
                                                    static_cast<uint16_t>(works.size() - taken));
                   taken += rc > 0 ? static_cast<size_t>(rc) : 0;
                   return rc < 0 || taken == works.size();
               }) &&
               taken == works.size();
    }
    /// Takes their completions. @return whether all are good, and in the order of posting
    static bool all_good(ntbmsg_cq *cq, const std::vector<ntbmsg_work> &works)
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
            std::vector<ntbmsg_sge> from(window), to(window);
            for (unsigned i = 0; i < window; ++i) {
                const uint64_t at = thread * share + i * slot, id = round * window + i;
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
        EXPECT_EQ(ntbmsg_channel_close(near[i]), 0);
        EXPECT_EQ(ntbmsg_channel_close(far[i]), 0);
    }
    EXPECT_EQ(stats(near_).bad_peer + stats(far_).bad_peer, 0U);
    far_poller_.reset(); // what it wrote can be looked at
    EXPECT_EQ(counter_memory_[0], threads_max * rounds);
}

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
        EXPECT_EQ(ntbmsg_channel_close(near[i]), 0);
        EXPECT_EQ(ntbmsg_channel_close(far[i]), 0);
    }
}

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
            t.bad += ntbmsg_post_burst(completion->channel, &t.next, 1) != 1;
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
    EXPECT_EQ(ntbmsg_channel_close(near), 0);
    EXPECT_EQ(ntbmsg_channel_close(far), 0);
}

// What is sent behind a direct write arrives behind it, though other threads carry the message.
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
    EXPECT_EQ(ntbmsg_channel_close(near), 0);
    EXPECT_EQ(ntbmsg_channel_close(far), 0);
}

// Each write is of one byte repeated: eight aligned bytes that differ among themselves are torn.
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
    EXPECT_EQ(ntbmsg_channel_close(near), 0);
    EXPECT_EQ(ntbmsg_channel_close(far), 0);
}

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
            std::vector<uint8_t> data(share);
            const ntbmsg_sge sge{data.data(), share, 0};
            uint64_t taken = 0, told = 0;
            int rc = 0;
            const bool ended = await([&] {
                const ntbmsg_work w = work(taken % 2 == 0 ? NTBMSG_OP_WRITE : NTBMSG_OP_READ,
                                           remote, i * share, &sge, taken);
                if (rc >= 0)
                    rc = ntbmsg_post_burst(near[i], &w, 1);
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
        EXPECT_EQ(ntbmsg_region_revoke(std::exchange(*region, nullptr)), 0);
    ASSERT_NO_FATAL_FAILURE(close(far_));
    for (std::thread &thread : threads)
        thread.join();
    EXPECT_EQ(good.load(), threads_max);
    for (ntbmsg_channel *channel : near)
        EXPECT_EQ(ntbmsg_channel_close(channel), 0);
}

TEST_F(Dedicated, ShutdownComesBehindTheData)
{
    bring_up();
    ntbmsg_channel *near = nullptr, *far = nullptr;
    ASSERT_NO_FATAL_FAILURE(join(near, far));
    // More than the peer grants: the rest waits in the ring when the channel is closed.
    constexpr uint32_t total = 100;
    ASSERT_TRUE(send_all(near_, near, total));
    ASSERT_EQ(ntbmsg_channel_shutdown(near), 0);
    rte_mbuf *mbuf = message(near_, 8, 0);
    EXPECT_EQ(ntbmsg_channel_send_burst(near, &mbuf, nullptr, 1), -ESHUTDOWN);
    rte_pktmbuf_free(mbuf);
    ASSERT_EQ(ntbmsg_channel_close(near), 0);
    uint32_t next = 0;
    int rc = 0;
    ASSERT_TRUE(await([&] {
        rte_mbuf *got = nullptr;
        uint32_t imm = 0;
        rc = ntbmsg_channel_recv_burst(far, &got, &imm, 1);
        if (rc == 1) {
            EXPECT_EQ(imm, next++);
            rte_pktmbuf_free(got);
        }
        return rc < 0;
    }));
    EXPECT_EQ(rc, -ESHUTDOWN);
    EXPECT_EQ(next, total);
    EXPECT_EQ(ntbmsg_channel_close(far), 0);
}

TEST_F(Dedicated, APollSetHearsOfAllItsChannels)
{
    bring_up();
    ntbmsg_poll_set *set = nullptr;
    ASSERT_EQ(ntbmsg_poll_set_create(near_worker_, &set), -EINVAL);
    ASSERT_EQ(ntbmsg_poll_set_create(nullptr, &set), 0);
    constexpr int pairs = 4;
    constexpr uint32_t total = 500;
    ntbmsg_channel *near[pairs] = {}, *far[pairs] = {};
    for (int i = 0; i < pairs; ++i)
        ASSERT_NO_FATAL_FAILURE(join(near[i], far[i], channel_options(), channel_options(set)));
    std::atomic<int> good{0};
    std::thread sender([&] {
        for (int i = 0; i < pairs; ++i) {
            good += send_all(near_, near[i], total);
            ntbmsg_channel_close(near[i]);
        }
    });
    uint32_t next[pairs] = {};
    int ended = 0;
    EXPECT_TRUE(await([&] {
        ntbmsg_ready ready[2];
        const int n = ntbmsg_poll(set, ready, 2);
        for (int i = 0; i < n; ++i) {
            const auto which = std::find(far, far + pairs, ready[i].channel) - far;
            EXPECT_LT(which, pairs);
            EXPECT_TRUE(receive_some(ready[i].channel, next[which]));
            ended += (ready[i].events & NTBMSG_PEER_SHUT) != 0;
        }
        return ended == pairs &&
               std::all_of(next, next + pairs, [](uint32_t k) { return k == total; });
    }));
    sender.join();
    EXPECT_EQ(good.load(), pairs);
    for (ntbmsg_channel *channel : far)
        EXPECT_EQ(ntbmsg_channel_close(channel), 0);
    EXPECT_TRUE(await([=] { return ntbmsg_poll_set_destroy(set) == 0; }));
}

TEST_F(Dedicated, AWriterIsToldWhenItCanGoOn)
{
    bring_up();
    ntbmsg_poll_set *set = nullptr;
    ASSERT_EQ(ntbmsg_poll_set_create(nullptr, &set), 0);
    ntbmsg_channel *near = nullptr, *far = nullptr;
    ASSERT_NO_FATAL_FAILURE(join(near, far, channel_options(set)));
    uint32_t sent = 0, received = 0;
    const uint32_t held = 64 + 64; // credit, and the ring
    ASSERT_TRUE(send_all(near_, near, held));
    rte_mbuf *mbuf = message(near_, 8, 1);
    ASSERT_TRUE(await([&] { return ntbmsg_channel_send_burst(near, &mbuf, &sent, 1) == 0; }));
    ASSERT_TRUE(await([&] { return receive_some(far, received) && received == held; }));
    uint32_t events = 0;
    EXPECT_TRUE(await([&] {
        ntbmsg_ready ready{};
        if (ntbmsg_poll(set, &ready, 1) == 1)
            events |= ready.events;
        return (events & NTBMSG_WRITABLE) != 0;
    }));
    EXPECT_EQ(ntbmsg_channel_send_burst(near, &mbuf, &held, 1), 1);
    EXPECT_EQ(ntbmsg_channel_close(near), 0);
    EXPECT_EQ(ntbmsg_channel_close(far), 0);
    EXPECT_TRUE(await([=] { return ntbmsg_poll_set_destroy(set) == 0; }));
}

TEST_F(Dedicated, SlotsComeBackFromResetsRejectionsAndStorms)
{
    bring_up();
    for (int round = 0; round < 100; ++round) {
        ntbmsg_channel *near = nullptr, *far = nullptr;
        if (round % 4 == 3) {
            ASSERT_EQ(ntbmsg_connect(near_worker_, port, nullptr, &near), 0) << round;
            ntbmsg_request request;
            ASSERT_TRUE(
                await([&] { return ntbmsg_listener_poll(listener_, far_worker_, &request) == 1; }));
            ASSERT_EQ(ntbmsg_reject(&request, 3, nullptr, 0), 0);
            ASSERT_EQ(ntbmsg_channel_wait_open(near, patience_ms), -ECONNREFUSED);
            EXPECT_EQ(ntbmsg_channel_close(near), 0);
            continue;
        }
        ASSERT_NO_FATAL_FAILURE(join(near, far)) << round;
        ASSERT_TRUE(send_all(near_, near, 5));
        if (round % 2 == 0) {
            ASSERT_EQ(ntbmsg_channel_reset(near, 4), 0);
            ASSERT_TRUE(await_state(far, NTBMSG_CHANNEL_RESET));
            EXPECT_EQ(info(far).reason, 4U);
        }
        EXPECT_EQ(ntbmsg_channel_close(near), 0);
        EXPECT_EQ(ntbmsg_channel_close(far), 0);
    }
    EXPECT_EQ(stats(near_).bad_peer + stats(far_).bad_peer, 0U);
}

TEST_F(Dedicated, TheLossOfThePeerIsSeenByEveryThread)
{
    bring_up();
    ntbmsg_channel *near = nullptr, *far = nullptr;
    ASSERT_NO_FATAL_FAILURE(join(near, far));
    ASSERT_TRUE(send_all(near_, near, 50));
    far_poller_.reset();
    ASSERT_EQ(ntbmsg_endpoint_close(far_), 0);
    far_ = nullptr;
    ASSERT_TRUE(await_state(near, NTBMSG_CHANNEL_LOST));
    rte_mbuf *none = nullptr;
    EXPECT_EQ(ntbmsg_channel_recv_burst(near, &none, nullptr, 1), -ECONNRESET);
    EXPECT_EQ(ntbmsg_channel_close(near), 0);

    ASSERT_NO_FATAL_FAILURE(open(far_device, far_, dedicated_options()));
    far_worker_ = ntbmsg_worker_get(far_, 0);
    far_poller_ = std::make_unique<Poller>(far_worker_);
    ASSERT_EQ(ntbmsg_wait_connected(near_, patience_ms), 0);
    ASSERT_EQ(ntbmsg_wait_connected(far_, patience_ms), 0);
    ASSERT_NO_FATAL_FAILURE(join(near, far));
    ASSERT_TRUE(send_all(near_, near, 50));
    EXPECT_EQ(ntbmsg_channel_close(near), 0);
    EXPECT_EQ(ntbmsg_channel_close(far), 0);
}

TEST_F(Dedicated, AServiceDrivesAWorker)
{
    ntbmsg_endpoint_options options = dedicated_options();
    options.service = 1;
    ASSERT_NO_FATAL_FAILURE(connect(options));
    near_worker_ = ntbmsg_worker_get(near_, 0);
    far_worker_ = ntbmsg_worker_get(far_, 0);
    ASSERT_EQ(ntbmsg_listen(port, 0, &listener_), 0);
    const char *names[] = {"ntbmsg_raw_plx_ntb0_0", "ntbmsg_raw_plx_ntb1_0"};
    uint32_t services[2] = {};
    for (int i = 0; i < 2; ++i) {
        ASSERT_EQ(rte_service_get_by_name(names[i], &services[i]), 0) << names[i];
        ASSERT_EQ(rte_service_set_runstate_mapped_check(services[i], 0), 0);
        ASSERT_EQ(rte_service_runstate_set(services[i], 1), 0);
    }
    std::atomic<bool> stop{false};
    std::thread lcore([&] {
        ASSERT_EQ(rte_thread_register(), 0);
        // What a service lcore does.
        while (!stop.load(std::memory_order_acquire)) {
            for (const uint32_t service : services)
                rte_service_run_iter_on_app_lcore(service, 1);
            sched_yield();
        }
        rte_thread_unregister();
    });
    ntbmsg_channel *near = nullptr, *far = nullptr;
    join(near, far);
    EXPECT_TRUE(send_all(near_, near, 40));
    uint32_t next = 0;
    EXPECT_TRUE(await([&] { return !receive_some(far, next) || next == 40; }));
    EXPECT_EQ(next, 40U);
    EXPECT_EQ(ntbmsg_channel_close(near), 0);
    EXPECT_EQ(ntbmsg_channel_close(far), 0);
    stop.store(true, std::memory_order_release);
    lcore.join();
    close(near_);
    EXPECT_NE(rte_service_get_by_name(names[0], &services[0]), 0);
}

} // namespace

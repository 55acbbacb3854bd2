// SPDX-License-Identifier: BSD-3-Clause
// What instructions.py runs under valgrind's callgrind: each case alone is collected, its counts
// are written out under its name, and a line says how many messages they were for. Run without
// valgrind, it goes through the same traffic and counts nothing.
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>

#include <rte_eal.h>
#include <rte_version.h>

#include <valgrind/callgrind.h>

#include "counted_engine.hpp"
#include "counted_pair.hpp"
#include "kernel/kernels.hpp"
#include "output.hpp"
#include "version.hpp"

namespace
{

using gate::fail;
using gate::most;

// Rounds of a case. The first ones are not counted: rings, caches of the pools and receive buffers
// come to rest in them.
constexpr unsigned warm_up = 64;
constexpr unsigned rounds = 256;

/// Counts what @p call executes, when @p counted says so.
template <class Call>
int collect(bool counted, Call call)
{
    if (!counted)
        return call();
    CALLGRIND_TOGGLE_COLLECT;
    const int got = call();
    CALLGRIND_TOGGLE_COLLECT;
    return got;
}

/// Writes the counts down. @param calls  that were counted. @param messages  what the counts are
/// divided by
void finish(const char *name, unsigned calls, unsigned messages)
{
    CALLGRIND_DUMP_STATS_AT(name);
    std::printf("%s %u %u\n", name, calls, messages);
}

struct Traffic {
    const char *send_name;
    const char *receive_name;
    uint32_t bytes;
    uint16_t burst;
};

/// How messages go: on the bare queue, or on the channel.
struct BareQueue {
    static int send(const gate::Pair &pair, rte_mbuf **mbufs, uint16_t n)
    {
        return ntbmsg_queue_burst_send(&pair.near_queue, mbufs, nullptr, n);
    }
    static int receive(const gate::Pair &pair, rte_mbuf **mbufs, uint16_t n)
    {
        return ntbmsg_queue_burst_recv(&pair.far_queue, mbufs, nullptr, n);
    }
    static int build(const gate::Pair &pair, ntbmsg_room *rooms, const uint32_t *lengths,
                     uint16_t n)
    {
        const int got = ntbmsg_queue_reserve(pair.near, 0, rooms, n);
        return got == n ? ntbmsg_queue_commit(pair.near, 0, lengths, nullptr, n) : got;
    }
    static void turn(const gate::Pair &) {}
};

struct OnChannel {
    static int send(const gate::Pair &pair, rte_mbuf **mbufs, uint16_t n)
    {
        return ntbmsg_channel_send_burst(pair.from, mbufs, nullptr, n);
    }
    static int receive(const gate::Pair &pair, rte_mbuf **mbufs, uint16_t n)
    {
        return ntbmsg_channel_recv_burst(pair.to, mbufs, nullptr, n);
    }
    static int build(const gate::Pair &pair, ntbmsg_room *rooms, const uint32_t *lengths,
                     uint16_t n)
    {
        const int got = ntbmsg_channel_reserve(pair.from, rooms, n);
        return got == n ? ntbmsg_channel_commit(pair.from, lengths, nullptr, n) : got;
    }
    /// The receiver pays what credit it owes, the sender takes it in.
    static void turn(const gate::Pair &pair)
    {
        ntbmsg_worker_poll(pair.far_worker);
        ntbmsg_worker_poll(pair.near_worker);
    }
};

/// On the channel, received as a poll set reports it.
struct AsReported : OnChannel {
    static int receive(const gate::Pair &pair, rte_mbuf **mbufs, uint16_t n)
    {
        ntbmsg_ready ready;
        const int got = ntbmsg_poll_set_poll(pair.far_set, &ready, 1);
        return got == 1 ? ntbmsg_channel_recv_burst(ready.channel, mbufs, nullptr, n) : got;
    }
};

/// On many channels in turn, each of which uses all its credit: what returns that is in the count.
struct InTurn : AsReported {
    static inline unsigned at = 0;
    static int send(const gate::Pair &pair, rte_mbuf **mbufs, uint16_t n)
    {
        at = (at + 1) % gate::turns;
        return ntbmsg_channel_send_burst(pair.each_from[at], mbufs, nullptr, n);
    }
    static void turn(const gate::Pair &pair) { ntbmsg_worker_poll(pair.near_worker); }
};

/// Bursts from the near end to the far one, with one of the two calls counted.
template <class Way>
void run(const gate::Pair &pair, const Traffic &t, bool sends)
{
    CALLGRIND_ZERO_STATS;
    for (unsigned i = 0; i < warm_up + rounds; ++i) {
        const bool counted = i >= warm_up;
        rte_mbuf *mbufs[most];
        gate::fill(pair, mbufs, t.burst, t.bytes);
        const int sent = collect(counted && sends, [&] { return Way::send(pair, mbufs, t.burst); });
        if (sent != t.burst)
            fail("not all was sent", sent);
        const int got =
            collect(counted && !sends, [&] { return Way::receive(pair, mbufs, t.burst); });
        if (got != t.burst)
            fail("not all has come", got);
        rte_pktmbuf_free_bulk(mbufs, t.burst);
        Way::turn(pair);
    }
    finish(sends ? t.send_name : t.receive_name, rounds, rounds * t.burst);
}

template <class Way, size_t N>
void run_all(const gate::Pair &pair, const Traffic (&traffic)[N])
{
    for (const Traffic &t : traffic) {
        run<Way>(pair, t, true);
        run<Way>(pair, t, false);
    }
}

/// Messages of 1518 bytes that the near end builds in receive buffers of the far one: both calls
/// are counted, not what an application writes between them.
template <class Way>
void run_built(const gate::Pair &pair, const char *name, uint16_t n)
{
    uint32_t lengths[most];
    std::fill_n(lengths, most, 1518);
    CALLGRIND_ZERO_STATS;
    for (unsigned i = 0; i < warm_up + rounds; ++i) {
        ntbmsg_room rooms[most];
        rte_mbuf *mbufs[most];
        const int sent = collect(i >= warm_up, [&] { return Way::build(pair, rooms, lengths, n); });
        if (sent != n)
            fail("not all was built", sent);
        if (const int got = Way::receive(pair, mbufs, n); got != n)
            fail("not all has come", got);
        rte_pktmbuf_free_bulk(mbufs, n);
        Way::turn(pair);
    }
    finish(name, rounds, rounds * n);
}

/// Calls that find nothing.
template <class Call>
void run_empty(const char *name, Call call)
{
    CALLGRIND_ZERO_STATS;
    for (unsigned i = 0; i < warm_up + rounds; ++i)
        if (const int got = collect(i >= warm_up, call); got != 0)
            fail("a message from nowhere", got);
    finish(name, rounds, rounds);
}

/// What it takes to begin and to end a count, which is in the count of each call.
void run_nothing()
{
    run_empty("nothing", [] { return 0; });
}

void run_empty_calls(const gate::Pair &pair)
{
    rte_mbuf *mbuf = nullptr;
    ntbmsg_ready ready;
    run_empty("recv.empty",
              [&] { return ntbmsg_queue_burst_recv(&pair.far_queue, &mbuf, nullptr, 1); });
    run_empty("chan.recv.empty",
              [&] { return ntbmsg_channel_recv_burst(pair.to, &mbuf, nullptr, 1); });
    run_empty("chan.poll.empty", [&] { return ntbmsg_poll_set_poll(pair.far_set, &ready, 1); });
}

/// Writes that go directly, a completion for each burst: the posts, or the polls for the
/// completions.
void run_writes(const gate::Pair &pair, const char *name, unsigned n, uint32_t bytes, bool posts)
{
    static char data[most][64];
    ntbmsg_sge sges[most];
    ntbmsg_work works[most] = {};
    for (unsigned i = 0; i < n; ++i) {
        sges[i] = {.address = data[i], .bytes = bytes, .reserved = 0};
        works[i].remote = pair.remote;
        works[i].offset = i * sizeof(data[i]);
        works[i].sges = &sges[i];
        works[i].sge_count = 1;
        works[i].op = NTBMSG_OP_WRITE;
    }
    works[n - 1].flags = NTBMSG_WORK_SIGNAL;
    CALLGRIND_ZERO_STATS;
    for (unsigned i = 0; i < warm_up + rounds; ++i) {
        const bool counted = i >= warm_up;
        const int posted = collect(counted && posts, [&] {
            return ntbmsg_channel_post_burst(pair.from, works, static_cast<uint16_t>(n));
        });
        if (posted != static_cast<int>(n))
            fail("not all was posted", posted);
        for (unsigned turns = 0; !counted && turns < 2 * most; ++turns)
            OnChannel::turn(pair); // until it is known to go directly, the responder serves it
        ntbmsg_completion completion;
        const int got =
            collect(counted && !posts, [&] { return ntbmsg_cq_poll(pair.cq, &completion, 1); });
        if (got != 1 || completion.status != 0)
            fail("no completion", got == 1 ? completion.status : got);
        OnChannel::turn(pair);
    }
    finish(name, rounds, posts ? rounds * n : rounds);
}

/// The calls that a copy by a DMA channel takes.
enum class Copying { prepare, start, collect };

/// Bursts of copies by a DMA channel: the driver prepares and collects them, the twin's engine
/// carries them out inside the call that starts them. Short ones, as for longer ones the engine
/// chooses its stores by time.
void run_copies(const gate::Engine &engine, const char *name, uint32_t bytes, Copying counted)
{
    CALLGRIND_ZERO_STATS;
    for (unsigned i = 0; i < warm_up + rounds; ++i) {
        const auto counts = [&](Copying call) { return i >= warm_up && call == counted; };
        const int given =
            collect(counts(Copying::prepare), [&] { return engine.copy(most, bytes); });
        const int started = collect(counts(Copying::start), [&] { return engine.submit(); });
        const int got = collect(counts(Copying::collect), [&] { return engine.completed(most); });
        if (given != most || started != 0 || got != most)
            fail("not all was copied", got);
    }
    finish(name, rounds, rounds * most);
}

void run_all_copies()
{
    const gate::Engine engine;
    run_copies(engine, "dma.copy.64x32", 64, Copying::prepare);
    run_copies(engine, "dma.submit.64x32", 64, Copying::start);
    run_copies(engine, "dma.submit.256x32", 256, Copying::start);
    run_copies(engine, "dma.completed.64x32", 64, Copying::collect);
}

/// What the benchmark does to a payload, a "message" of it a line: an instruction set for which the
/// compiler builds lines in memory makes that the limit of every figure.
void run_payload()
{
    constexpr unsigned lines = 64;
    alignas(bench::line_bytes) static std::byte payload[lines * bench::line_bytes];
    const bench::Kernel &kernel = bench::best_kernel();
    CALLGRIND_ZERO_STATS;
    collect(true, [&] { return kernel.fill_payload(payload, sizeof(payload), 1), 0; });
    finish("payload.fill", 1, lines);
    uint64_t sum = 0;
    CALLGRIND_ZERO_STATS;
    collect(true, [&] { return sum = kernel.sum_payload(payload, sizeof(payload)), 0; });
    if (sum != lines)
        fail("lines were not written", static_cast<int>(sum));
    finish("payload.sum", 1, lines);
}

constexpr Traffic queue_traffic[] = {
    {"send.8x1", "recv.8x1", 8, 1},
    {"send.64x1", "recv.64x1", 64, 1},
    {"send.64x32", "recv.64x32", 64, 32},
    {"send.256x1", "recv.256x1", 256, 1},
    {"send.256x32", "recv.256x32", 256, 32},
    {"send.1518x1", "recv.1518x1", 1518, 1},
    {"send.1518x32", "recv.1518x32", 1518, 32},
};
constexpr Traffic channel_traffic[] = {
    {"chan.send.8x1", "chan.recv.8x1", 8, 1},
    {"chan.send.64x32", "chan.recv.64x32", 64, 32},
    {"chan.send.256x1", "chan.recv.256x1", 256, 1},
    {"chan.send.1518x1", "chan.recv.1518x1", 1518, 1},
    {"chan.send.1518x32", "chan.recv.1518x32", 1518, 32},
};

constexpr Traffic reported_traffic = {nullptr, "chan.poll.64x32", 64, 32};
constexpr Traffic turns_traffic = {nullptr, "chans.poll.64x32", 64, 32};

/// What the counts depend on, beside the code: they are compared only where these are the same.
void describe()
{
    std::printf("# compiler g++ %s\n", __VERSION__);
    std::printf("# dpdk %s\n", rte_version());
    std::printf("# variant %s\n", gate::variant());
#ifdef NDEBUG
    std::printf("# build %s\n", GATE_BUILD);
#else
    std::printf("# build %s, asserts\n", GATE_BUILD);
#endif
}

int start_eal()
{
    // Without huge pages, as the simulation knows none, and with no line handed to the cache by
    // force, as which instruction does that depends on the processor. Stores are not tried either:
    // what a trial finds depends on the time they take.
    static char words[][128] = {"ntbmsg_instructions",
                                "--no-huge",
                                "-m",
                                "256",
                                "--no-pci",
                                "--no-shconf",
                                "--no-telemetry",
                                "--log-level=error",
                                "--vdev=raw_plx_ntb0,cable=mem:gate,cache_hint=none,stores=plain,"
                                "heartbeat_ms=30000,lost_ms=60000",
                                "--vdev=raw_plx_ntb1,cable=mem:gate,cache_hint=none,stores=plain,"
                                "heartbeat_ms=30000,lost_ms=60000",
                                "--vdev=raw_plx_ntb2,cable=mem:gate-dma,dmadev=1"};
    constexpr int count = sizeof(words) / sizeof(words[0]);
    char *arguments[count + 1] = {};
    for (int i = 0; i < count; ++i)
        arguments[i] = words[i];
    return rte_eal_init(count, arguments);
}

} // namespace

int main(int argc, char **argv)
{
    if (app::show_version(argc, argv))
        return app::finish_output("ntbmsg_instructions", 0);
    if (argc != 1) {
        std::fputs("ntbmsg_instructions: takes no arguments but --version\n", stderr);
        return 2;
    }
    if (start_eal() < 0)
        return EXIT_FAILURE;
    {
        gate::Pair pair;
        describe();
        run_nothing();
        run_all<BareQueue>(pair, queue_traffic);
        run_built<BareQueue>(pair, "build.1518x1", 1);
        run_built<BareQueue>(pair, "build.1518x32", most);
        pair.join();
        run_all<OnChannel>(pair, channel_traffic);
        run<AsReported>(pair, reported_traffic, false);
        pair.join_turns();
        run<InTurn>(pair, turns_traffic, false);
        run_built<OnChannel>(pair, "chan.build.1518x1", 1);
        run_built<OnChannel>(pair, "chan.build.1518x32", most);
        run_empty_calls(pair);
        pair.expose(most * 64);
        run_writes(pair, "post.8x1", 1, 8, true);
        run_writes(pair, "post.64x32", most, 64, true);
        run_writes(pair, "cq.poll", most, 64, false);
    }
    run_all_copies();
    run_payload();
    rte_eal_cleanup();
    return EXIT_SUCCESS;
}

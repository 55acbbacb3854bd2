// SPDX-License-Identifier: BSD-3-Clause
// What both ends of a rule have: a queue pair by which they speak of the test, and memory.
#ifndef NTB_TEST_VERBS_RULES_HPP
#define NTB_TEST_VERBS_RULES_HPP

#include <algorithm>
#include <atomic>
#include <cstring>
#include <span>
#include <vector>

#include <sched.h>

#include "end.hpp"

namespace verbs_test
{

inline void expect(const char *what, std::uint64_t got, std::uint64_t wanted = 1)
{
    if (got != wanted)
        fail(what, static_cast<long>(got));
}

/// Never 0, which is what is there before.
inline std::uint8_t mark_at(std::uint32_t place, std::uint32_t seed)
{
    return byte_at(place, seed) | 1;
}

inline void fill(std::uint8_t *bytes, std::uint32_t n, std::uint32_t seed)
{
    for (std::uint32_t i = 0; i < n; ++i)
        bytes[i] = mark_at(i, seed);
}

inline void expect_filled(const char *what, const std::uint8_t *bytes, std::uint32_t n,
                          std::uint32_t seed)
{
    for (std::uint32_t i = 0; i < n; ++i)
        if (bytes[i] != mark_at(i, seed))
            fail(what, i);
}

/// Until the last byte is there. The peer may have no CPU but this one.
inline void await_last(std::uint8_t *bytes, std::uint32_t n, std::uint32_t seed)
{
    const std::atomic_ref<std::uint8_t> last(bytes[n - 1]);
    while (last.load(std::memory_order_acquire) != mark_at(n - 1, seed))
        sched_yield();
}

inline void expect_state(ntbv_qp *qp, ntbv_qp_state state)
{
    ntbv_qp_attr attr;
    check("query", ntbv_qp_query(qp, &attr));
    expect("state", attr.state, state);
}

/// Memory of the peer.
struct Remote {
    std::uint64_t begin;
    std::uint32_t key;
    std::uint64_t address() const { return begin; }
    /// By a key that nobody has.
    Remote by_wrong_key() const { return {begin, key ^ 0x10000}; }
};

/// What an end says to the other one.
struct Words {
    std::uint64_t first, second;
};

class Side
{
public:
    static constexpr std::uint32_t memory_bytes = 8 << 20;
    /// Where no rule looks.
    static constexpr std::uint32_t unused = memory_bytes - 64;
    static constexpr std::uint32_t depth = 128;

    Side(const char *socket, bool sleeps, bool is_granted)
        : node(socket, is_granted), memory(node, memory_bytes), sent(node, 4096, sleeps),
          received(node, 4096, sleeps), words_(node, 4096), said_(node, 64, sleeps),
          heard_(node, 64, sleeps), is_granted_(is_granted), speaker_(make(NTBV_RC, said_, heard_))
    {
        check("init", to_init(speaker_, NTBV_RC));
        for (std::uint64_t i = 0; i < n_words; ++i)
            listen(i);
        say_here(node, speaker_, memory);
    }
    ~Side()
    {
        for (ntbv_qp *qp : qps_)
            check("end of a queue pair", ntbv_qp_destroy(qp));
    }
    Side(const Side &) = delete;
    Side &operator=(const Side &) = delete;

    void meet()
    {
        peer = connect_to_line(speaker_);
        theirs = {peer.address(), peer.key};
    }

    /// The peer's engine has it, behind all that was sent to it before.
    void say(Words words = {})
    {
        Work work(NTBV_SEND, 0, {reinterpret_cast<std::uint64_t>(&words), sizeof(words), 0},
                  NTBV_SIGNALED | NTBV_INLINE);
        check("say", work.post(speaker_));
        ntbv_wc wc;
        said_.next(wc);
        check("said", wc.status);
    }
    Words hear()
    {
        ntbv_wc wc;
        heard_.next(wc);
        check("heard", wc.status);
        Words words;
        std::memcpy(&words, &words_[wc.id * sizeof(words)], sizeof(words));
        listen(wc.id);
        return words;
    }
    /// Both ends are here.
    void agree()
    {
        say();
        hear();
    }
    void say_remote(const Remote &remote) { say({remote.begin, remote.key}); }
    Remote hear_remote()
    {
        const Words words = hear();
        return {words.first, static_cast<std::uint32_t>(words.second)};
    }
    /// What one says to the other, in both directions.
    std::uint32_t swap(std::uint32_t number)
    {
        say({number, 0});
        return static_cast<std::uint32_t>(hear().first);
    }

    ntbv_qp *make(ntbv_qp_type type, ntbv_srq *srq = nullptr)
    {
        return make(type, sent, received, srq);
    }
    /// A queue pair that is connected to one of the peer, which does the same. Receives are the
    /// rule's: agree() once they are posted.
    ntbv_qp *connected(ntbv_qp_type type, ntbv_qp_attr attr = attributes(), ntbv_srq *srq = nullptr)
    {
        ntbv_qp *qp = make(type, srq);
        const std::uint32_t other = swap(ntbv_qp_number(qp));
        check("init", to_init(qp, type, attr));
        check("rtr", to_rtr(qp, type, static_cast<std::uint16_t>(peer.lid), other, attr));
        check("rts", to_rts(qp, type, attr));
        return qp;
    }
    void drop(ntbv_qp *qp)
    {
        std::erase(qps_, qp);
        check("end of a queue pair", ntbv_qp_destroy(qp));
    }

    /// Where memory is granted: writes to a place of the peer until one needs no message.
    void await_grant(ntbv_qp *qp, const Remote &remote, std::uint32_t place)
    {
        const std::uint64_t before = node.count(NTBV_COUNT_WRITES);
        while (is_granted_ && node.count(NTBV_COUNT_WRITES) == before) {
            check("write", Work(NTBV_WRITE, 0, memory.piece(place, 8)).to(remote, place).post(qp));
            expect_sent(0);
        }
    }

    ntbv_wc expect_sent(std::uint64_t id, ntbv_status status = NTBV_SUCCESS)
    {
        return expect_next("completion", sent, id, status);
    }
    ntbv_wc expect_received(std::uint64_t id, ntbv_status status = NTBV_SUCCESS)
    {
        return expect_next("receive", received, id, status);
    }
    static void expect_none(const char *what, Completions &completions)
    {
        ntbv_wc wc;
        if (completions.poll(wc))
            fail(what, static_cast<long>(wc.id));
    }
    /// The type of the next asynchronous event.
    std::uint32_t next_event() const
    {
        pollfd fd = {ntbv_engine_events(node.engine()), POLLIN, 0};
        std::uint32_t record[4];
        if (poll(&fd, 1, -1) != 1 || read(fd.fd, record, sizeof(record)) != sizeof(record))
            fail("asynchronous event", 0);
        return record[2];
    }
    void expect_no_event() const
    {
        pollfd fd = {ntbv_engine_events(node.engine()), POLLIN, 0};
        expect("asynchronous events", static_cast<unsigned>(poll(&fd, 1, 0)), 0);
    }

    Node node;
    Region memory;
    Completions sent, received;
    Peer peer;
    Remote theirs = {};

private:
    static constexpr std::uint64_t n_words = 16;

    ntbv_qp *make(ntbv_qp_type type, Completions &to_send, Completions &to_receive,
                  ntbv_srq *srq = nullptr)
    {
        ntbv_qp_init init = {};
        init.type = type;
        init.send_cq = to_send.cq();
        init.recv_cq = to_receive.cq();
        init.srq = srq;
        init.max_send_wr = init.max_recv_wr = depth;
        init.max_send_sge = init.max_recv_sge = 1;
        init.max_inline = NTBV_MAX_INLINE;
        ntbv_qp *qp = nullptr;
        check("queue pair", ntbv_qp_create(node.pd(), &init, &qp));
        qps_.push_back(qp);
        return qp;
    }
    void listen(std::uint64_t id)
    {
        check("listen", post_recv(speaker_, id, words_.piece(id * sizeof(Words), sizeof(Words))));
    }
    static ntbv_wc expect_next(const char *what, Completions &completions, std::uint64_t id,
                               ntbv_status status)
    {
        ntbv_wc wc;
        completions.next(wc);
        if (wc.id != id || wc.status != status) {
            printf("failed: %s: request %" PRIu64 ", status %u instead of %" PRIu64 ", %u\n", what,
                   wc.id, wc.status, id, status);
            exit(1);
        }
        return wc;
    }

    Region words_;
    Completions said_, heard_;
    const bool is_granted_;
    std::vector<ntbv_qp *> qps_;
    ntbv_qp *speaker_;
};

/// What one end does that asks, and what the other one does.
struct Rule {
    const char *name;
    void (*ask)(Side &side);
    void (*serve)(Side &side);
};

std::span<const Rule> rules_of_order();
std::span<const Rule> rules_of_requests();
std::span<const Rule> rules_of_errors();
std::span<const Rule> rules_of_receives();
std::span<const Rule> rules_of_datagrams();

} // namespace verbs_test

#endif

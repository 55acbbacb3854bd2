// SPDX-License-Identifier: BSD-3-Clause
// Strangers at the name of a node, and nodes that reach themselves and each other at a time.
#include "../../../daemon/hosts.hpp"

#include "memory/exchange.hpp"
#include "memory/pages.hpp"
#include "ntbv.h"
#include "spin.hpp"
#include "wire/address.hpp"

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace ntb::verbs;
using namespace ntbd::test;

namespace
{

struct Introduction {
    std::uint64_t magic = 0x6f6c6c656862746e;
    std::uint32_t version = 4;
    Address from = make_address(1, 1), to = 0;
    std::uint8_t reserved[44] = {};
};
static_assert(sizeof(Introduction) == 64);

/// From its beginning to where it sends. @param masks  of each of the three steps
void step_to_sending(ntbv_qp *qp, ntbv_qp_attr attr, const unsigned (&masks)[3])
{
    for (const ntbv_qp_state state : {NTBV_INIT, NTBV_RTR, NTBV_RTS}) {
        attr.state = state;
        EXPECT_EQ(ntbv_qp_modify(qp, &attr, masks[state - NTBV_INIT]), 0);
    }
}

/// A node with datagram queue pairs, the way of least ceremony.
class Node
{
public:
    explicit Node(const Daemon &daemon, ntbv_clock clock = nullptr, void *context = nullptr)
    {
        EXPECT_EQ(ntbv_node_open(daemon.config.socket.c_str(), clock, context, &node), 0);
        ntbv_engine *engine = ntbv_node_engine(node);
        EXPECT_EQ(ntbv_pd_create(engine, &pd), 0);
        EXPECT_EQ(ntbv_cq_create(engine, 64, nullptr, 0, &cq), 0);
        EXPECT_EQ(ntbv_mr_register(pd, bytes, sizeof(bytes), address(), NTBV_LOCAL_WRITE, &key), 0);
        ntbv_qp_init init = {};
        init.type = NTBV_UD;
        init.send_cq = init.recv_cq = cq;
        init.max_send_wr = init.max_recv_wr = 16;
        init.max_send_sge = init.max_recv_sge = 1;
        EXPECT_EQ(ntbv_qp_create(pd, &init, &qp), 0);
        ntbv_qp_attr attr = {};
        attr.port = 1;
        attr.qkey = 5;
        const unsigned masks[] = {NTBV_QP_STATE | NTBV_QP_PKEY_INDEX | NTBV_QP_PORT | NTBV_QP_QKEY,
                                  NTBV_QP_STATE, NTBV_QP_STATE | NTBV_QP_SQ_PSN};
        step_to_sending(qp, attr, masks);
        ntbv_sge piece = {address(), 100, key};
        const ntbv_recv_wr wr = {1, nullptr, &piece, 1};
        const ntbv_recv_wr *bad;
        EXPECT_EQ(ntbv_qp_post_recv(qp, &wr, &bad), 0);
    }
    ~Node()
    {
        EXPECT_EQ(ntbv_node_close(node), -EBUSY);
        EXPECT_EQ(ntbv_qp_destroy(qp), 0);
        EXPECT_EQ(ntbv_mr_deregister(pd, key), 0);
        EXPECT_EQ(ntbv_cq_destroy(cq), 0);
        EXPECT_EQ(ntbv_pd_destroy(pd), 0);
        EXPECT_EQ(ntbv_node_close(node), 0);
    }
    Node(const Node &) = delete;
    Node &operator=(const Node &) = delete;

    std::uint16_t lid() const { return ntbv_node_lid(node); }
    Address own() const { return address_of(lid(), ntbv_qp_number(qp)); }
    std::string name() const
    {
        return "verbs/" + std::to_string(lid()) + "/" + std::to_string(node_of(own()));
    }
    void send(std::uint16_t to, std::uint32_t qpn)
    {
        ntbv_sge piece = {address(), 8, key};
        ntbv_send_wr wr = {};
        wr.id = 2;
        wr.sge = &piece;
        wr.n_sge = 1;
        wr.opcode = NTBV_SEND;
        wr.flags = NTBV_SIGNALED;
        wr.remote_lid = to;
        wr.remote_qpn = qpn;
        wr.remote_qkey = 5;
        const ntbv_send_wr *bad;
        EXPECT_EQ(ntbv_qp_post_send(qp, &wr, &bad), 0);
    }
    void send(const Node &to) { send(to.lid(), ntbv_qp_number(to.qp)); }
    /// Completions of its send and of its receive, without driving: the node's thread does.
    void expect(int n)
    {
        int got = 0;
        EXPECT_TRUE(await([&] {
            ntbv_wc wc;
            if (ntbv_cq_poll(cq, 1, &wc) == 1) {
                EXPECT_EQ(wc.status, std::uint32_t{NTBV_SUCCESS});
                got++;
            }
            return got == n;
        }));
    }

    ntbv_node *node = nullptr;
    ntbv_cq *cq = nullptr;
    ntbv_qp *qp = nullptr;

private:
    std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(bytes); }

    ntbv_pd *pd = nullptr;
    std::uint32_t key = 0;
    std::uint8_t bytes[100] = {};
};

class Networks : public testing::Test
{
protected:
    void SetUp() override
    {
        one.config.ring_bytes = other.config.ring_bytes = 65536;
        one.start();
        other.start();
        join(one, other);
    }

    Folder folder;
    Daemon one{folder.path + "/a.sock"}, other{folder.path + "/b.sock"};
};

TEST_F(Networks, WithoutADaemonThereIsNoNode)
{
    ntbv_node *node = nullptr;
    EXPECT_EQ(ntbv_node_open((folder.path + "/none").c_str(), nullptr, nullptr, &node), -ENOENT);
    EXPECT_EQ(node, nullptr);
}

TEST_F(Networks, ANodeReachesItself)
{
    Node node(one);
    node.send(node);
    node.expect(2);
}

// Or there would be fewer looks in the child for ever.
TEST_F(Networks, AChildHasNoThreadsThatLook)
{
    const Node node(one);
    std::atomic<std::uint32_t> &spinners = *ntb::process_spinning().spinners;
    ++spinners;
    const pid_t child = fork();
    if (child == 0)
        _exit(static_cast<int>(spinners.load()));
    --spinners;
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

TEST_F(Networks, TwoThatSeekEachOtherAtATimeMeet)
{
    for (int i = 0; i < 50; i++) {
        Node here(one), there(i % 2 != 0 ? one : other);
        here.send(there);
        there.send(here);
        here.expect(2);
        there.expect(2);
    }
}

// As it is for a process that has no CPU for an hour between any two steps of its own.
TEST_F(Networks, NoClockEndsWhatWaitsForAnAnswer)
{
    std::atomic<std::uint64_t> time = 0;
    const ntbv_clock leap = [](void *context) {
        return *static_cast<std::atomic<std::uint64_t> *>(context) += 3600000000000;
    };
    for (int i = 0; i < 20; i++) {
        Node here(one, leap, &time), there(i % 2 != 0 ? one : other, leap, &time);
        here.send(there);
        if (i % 4 < 2)
            there.send(here);
        there.expect(i % 4 < 2 ? 2 : 1);
        here.expect(i % 4 < 2 ? 2 : 1);
    }
}

// Who polls now and then has no poll for long that looks whether a peer is still there.
TEST_F(Networks, TheThreadFindsThatAPeerIsGoneWhoeverPolls)
{
    Node node(one);
    for (const int polls : {0, 1, 10, 1000}) {
        {
            Node peer(other);
            peer.send(node);
            peer.expect(1);
            EXPECT_TRUE(await([&] { return one.now().figures.open == 1; }));
        }
        for (int i = 0; i < polls; i++) {
            ntbv_wc wc;
            ntbv_cq_poll(node.cq, 1, &wc);
        }
        EXPECT_TRUE(await([&] { return one.now().figures.open == 0; })) << polls;
    }
}

/// What is written to standard error meanwhile.
class Said
{
public:
    Said() : kept_(dup(STDERR_FILENO))
    {
        EXPECT_EQ(pipe2(ends_, O_NONBLOCK | O_CLOEXEC), 0);
        EXPECT_EQ(dup2(ends_[1], STDERR_FILENO), STDERR_FILENO);
    }
    ~Said()
    {
        dup2(kept_, STDERR_FILENO);
        for (const int fd : {kept_, ends_[0], ends_[1]})
            close(fd);
    }
    Said(const Said &) = delete;
    Said &operator=(const Said &) = delete;

    bool has(const char *text)
    {
        char bytes[256];
        for (ssize_t got; (got = read(ends_[0], bytes, sizeof(bytes))) > 0;)
            all_.append(bytes, static_cast<std::size_t>(got));
        return all_.find(text) != std::string::npos;
    }

private:
    int kept_, ends_[2] = {-1, -1};
    std::string all_;
};

// Also to whom no peer of the other host was lost.
TEST_F(Networks, ThatTheDaemonIsGoneIsTold)
{
    Node node(one), peer(one);
    peer.send(node);
    peer.expect(1);
    node.expect(1);
    Said said;
    one.stop();
    EXPECT_TRUE(await([&] { return said.has("the node daemon is gone: all peers are lost"); }));
    EXPECT_FALSE(said.has("that of the peer host"));
}

TEST_F(Networks, AHostHasOneLid)
{
    Node first(one), second(one), third(other);
    EXPECT_EQ(first.lid(), second.lid());
    EXPECT_NE(first.own(), second.own());
    EXPECT_NE(first.own(), third.own());
    first.send(first.lid(), ntbv_qp_number(second.qp));
    second.send(third);
    third.send(first);
    for (Node *node : {&first, &second, &third})
        node->expect(2);
}

TEST_F(Networks, WhatGoesToNobodyIsDropped)
{
    Node node(one);
    const auto nobody = static_cast<std::uint16_t>(node.lid() == 1 ? 2 : node.lid() - 1);
    for (int i = 0; i < 3; i++)
        node.send(nobody, 99);
    // Nor is there another node at this host.
    node.send(node.lid(), ntbv_qp_number(node.qp) ^ 1U << slot_bits);
    node.expect(4);
}

TEST_F(Networks, StrangersAreSentAway)
{
    Node node(one), peer(other);
    Client stranger(one);
    ntbclient_options options;
    ntbclient_options_init(&options);
    options.local = 1;
    const std::string name = node.name();
    const Address own = node.own();
    const Introduction wrong[] = {
        {.magic = 1, .to = own}, {.version = 1, .to = own},
        {.to = peer.own()},      {.from = own, .to = own},
        {.from = 0, .to = own},  {.from = 0xc000 << node_bits, .to = own},
    };
    for (const Introduction &introduction : wrong) {
        ntbclient_conn *conn;
        ASSERT_EQ(ntbclient_connect(stranger, name.c_str(), &options, &conn), 0);
        ASSERT_EQ(ntbclient_wait(conn, NTBCLIENT_WRITABLE, long_ms), int{NTBCLIENT_WRITABLE});
        EXPECT_EQ(ntbclient_send(conn, &introduction, sizeof(introduction), 0), 64);
        char byte;
        ssize_t got = -EAGAIN;
        EXPECT_TRUE(await([&] { return (got = ntbclient_recv(conn, &byte, 1, 0)) != -EAGAIN; }));
        EXPECT_LE(got, 0) << "an answer";
        ntbclient_close(conn);
    }
    // One that says nothing, and one that ends.
    ntbclient_conn *silent, *short_lived;
    ASSERT_EQ(ntbclient_connect(stranger, name.c_str(), &options, &silent), 0);
    ASSERT_EQ(ntbclient_connect(stranger, name.c_str(), &options, &short_lived), 0);
    ntbclient_close(short_lived);
    peer.send(node);
    node.send(peer);
    peer.expect(2);
    node.expect(2);
    ntbclient_close(silent);
}

// Who says the address of a peer is believed, as that name is its own to listen to; it gets no more
// than a link.
TEST_F(Networks, AStrangerWithAnAddressCanOnlyBreakItsOwnLink)
{
    Node node(one), peer(other);
    Client stranger(one);
    ntbclient_options options;
    ntbclient_options_init(&options);
    options.local = 1;
    const std::string name = node.name();
    Introduction introduction = {.to = node.own()};
    for (std::uint32_t other_node : {1, 2, 3}) // one of them is neither's
        if (const Address stranger_is = make_address(node.lid(), other_node);
            stranger_is != node.own() && stranger_is != peer.own())
            introduction.from = stranger_is;
    ntbclient_conn *conn;
    ASSERT_EQ(ntbclient_connect(stranger, name.c_str(), &options, &conn), 0);
    ASSERT_EQ(ntbclient_wait(conn, NTBCLIENT_WRITABLE, long_ms), int{NTBCLIENT_WRITABLE});
    EXPECT_EQ(ntbclient_send(conn, &introduction, sizeof(introduction), 0), 64);
    EXPECT_TRUE(await([&] { return ntbclient_readable(conn) >= 64; })) << "the answer";
    std::vector<std::uint8_t> noise(4096, 0xee);
    ntbclient_send(conn, noise.data(), noise.size(), 0);
    EXPECT_TRUE(await([&] { return ntbclient_recv(conn, nullptr, 4096, 0) == -ECONNRESET; }));
    ntbclient_close(conn);
    peer.send(node);
    node.send(peer);
    peer.expect(2);
    node.expect(2);
}

// ---- memory

/// A node whose region is a page of its own, with a reliable queue pair.
class DirectNode
{
public:
    explicit DirectNode(const Daemon &daemon)
    {
        EXPECT_EQ(ntbv_node_open(daemon.config.socket.c_str(), nullptr, nullptr, &node), 0);
        EXPECT_EQ(ntbv_node_be_direct(node, NTBV_DIRECT), 0);
        ntbv_engine *engine = ntbv_node_engine(node);
        EXPECT_EQ(ntbv_pd_create(engine, &pd), 0);
        EXPECT_EQ(ntbv_cq_create(engine, 64, nullptr, 0, &cq), 0);
        enter();
        ntbv_qp_init init = {};
        init.type = NTBV_RC;
        init.send_cq = init.recv_cq = cq;
        init.max_send_wr = init.max_recv_wr = 16;
        init.max_send_sge = init.max_recv_sge = 1;
        EXPECT_EQ(ntbv_qp_create(pd, &init, &qp), 0);
    }
    ~DirectNode()
    {
        EXPECT_EQ(ntbv_qp_destroy(qp), 0);
        if (key != 0)
            leave();
        EXPECT_EQ(ntbv_cq_destroy(cq), 0);
        EXPECT_EQ(ntbv_pd_destroy(pd), 0);
        EXPECT_EQ(ntbv_node_close(node), 0);
        munmap(memory, page);
    }
    DirectNode(const DirectNode &) = delete;
    DirectNode &operator=(const DirectNode &) = delete;

    void enter() { EXPECT_EQ(ntbv_mr_register(pd, memory, page, address(), rights, &key), 0); }
    void leave() { EXPECT_EQ(ntbv_mr_deregister(pd, std::exchange(key, 0)), 0); }
    void connect(const DirectNode &to) const
    {
        ntbv_qp_attr attr = {};
        attr.port = 1;
        attr.path_mtu = 5;
        attr.access = rights;
        attr.max_rd_atomic = attr.max_dest_rd_atomic = 1;
        attr.min_rnr_timer = 12;
        attr.timeout = 14;
        attr.retry_cnt = attr.rnr_retry = 7;
        attr.dest_lid = ntbv_node_lid(to.node);
        attr.dest_qpn = ntbv_qp_number(to.qp);
        const unsigned masks[] = {
            NTBV_QP_STATE | NTBV_QP_PKEY_INDEX | NTBV_QP_PORT | NTBV_QP_ACCESS,
            NTBV_QP_STATE | NTBV_QP_AV | NTBV_QP_PATH_MTU | NTBV_QP_DEST_QPN | NTBV_QP_RQ_PSN |
                NTBV_QP_MAX_DEST_RD_ATOMIC | NTBV_QP_MIN_RNR_TIMER,
            NTBV_QP_STATE | NTBV_QP_SQ_PSN | NTBV_QP_TIMEOUT | NTBV_QP_RETRY_CNT |
                NTBV_QP_RNR_RETRY | NTBV_QP_MAX_RD_ATOMIC};
        step_to_sending(qp, attr, masks);
    }
    /// Its first eight bytes to those of the other one. @return how that completes
    std::uint32_t write(std::uint64_t value, std::uint32_t remote_key, std::uint64_t remote) const
    {
        __atomic_store_n(reinterpret_cast<std::uint64_t *>(memory), value, __ATOMIC_RELAXED);
        ntbv_sge piece = {address(), 8, key};
        ntbv_send_wr wr = {};
        wr.sge = &piece;
        wr.n_sge = 1;
        wr.opcode = NTBV_WRITE;
        wr.flags = NTBV_SIGNALED;
        wr.remote_key = remote_key;
        wr.remote_address = remote;
        const ntbv_send_wr *bad;
        EXPECT_EQ(ntbv_qp_post_send(qp, &wr, &bad), 0);
        ntbv_wc wc = {};
        EXPECT_TRUE(await([&] { return ntbv_cq_poll(cq, 1, &wc) == 1; }));
        return wc.status;
    }
    std::uint64_t word() const
    {
        return __atomic_load_n(reinterpret_cast<std::uint64_t *>(memory), __ATOMIC_ACQUIRE);
    }
    std::uint64_t count(ntbv_count which) const
    {
        return ntbv_engine_count(ntbv_node_engine(node), which);
    }
    std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(memory); }

    static constexpr unsigned rights = NTBV_LOCAL_WRITE | NTBV_REMOTE_WRITE;
    void *const memory =
        mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ntbv_node *node = nullptr;
    ntbv_pd *pd = nullptr;
    ntbv_cq *cq = nullptr;
    ntbv_qp *qp = nullptr;
    std::uint32_t key = 0;
};

TEST_F(Networks, MemoryIsGrantedByTheDaemons)
{
    if (!can_exchange())
        GTEST_SKIP() << "the kernel has no userfaultfd for this user";
    const Daemon *const daemons[] = {&one, &other};
    for (const Daemon *daemon : daemons) {
        {
            DirectNode from(one), to(*daemon);
            from.connect(to);
            to.connect(from);
            std::uint64_t value = 0;
            // More than one round each, so that what has gone makes room.
            for (int round = 0; round < 3; round++) {
                const std::uint64_t before = from.count(NTBV_COUNT_WRITES);
                EXPECT_TRUE(await([&] {
                    EXPECT_EQ(from.write(++value, to.key, to.address()), NTBV_SUCCESS);
                    return from.count(NTBV_COUNT_WRITES) > before;
                }));
                EXPECT_EQ(to.word(), value);
                to.leave();
                EXPECT_EQ(to.word(), value);
                to.enter();
            }
            EXPECT_EQ(to.count(NTBV_COUNT_GRANTED), 3u);
            const std::uint32_t late = std::exchange(to.key, 0);
            EXPECT_EQ(ntbv_mr_deregister(to.pd, late), 0);
            EXPECT_EQ(from.write(++value, late, to.address()), NTBV_REM_ACCESS_ERR);
            EXPECT_EQ(to.word(), value - 1);
        }
        for (const Daemon *each : daemons)
            EXPECT_TRUE(await([&] { return each->now().figures.segments == 0; }));
    }
}

class Poor : public Networks
{
protected:
    Poor() { one.config.quota.segments = 0; }
};

// A quota that is used up is no error of a program: its regions are served, and those of others are
// not mapped.
TEST_F(Poor, WhatNobodyMayMapIsServed)
{
    if (!can_exchange())
        GTEST_SKIP() << "the kernel has no userfaultfd for this user";
    DirectNode from(one), to(other);
    from.connect(to);
    to.connect(from);
    for (std::uint64_t value = 1; value < 10; value++) {
        EXPECT_EQ(from.write(value, to.key, to.address()), NTBV_SUCCESS);
        EXPECT_EQ(to.word(), value);
    }
    EXPECT_EQ(from.count(NTBV_COUNT_WRITES), 0u);
    EXPECT_EQ(from.count(NTBV_COUNT_NO_SEGMENT), 1u);
    EXPECT_EQ(to.count(NTBV_COUNT_GRANTED), 1u);
}

} // namespace

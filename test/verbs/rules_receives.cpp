// SPDX-License-Identifier: BSD-3-Clause
// Rules of receives: those that are not there, that are shared, and of whose arrival an event says.
#include "rules.hpp"

namespace verbs_test
{

namespace
{

// ---- no receive is posted

ntbv_qp_attr waits_shortly(std::uint8_t rnr_retry)
{
    ntbv_qp_attr attr = attributes();
    attr.min_rnr_timer = 1; // 10 us
    attr.rnr_retry = rnr_retry;
    return attr;
}

// Ways there and back while a request waits: time for more tries than the seven that can be asked
// for.
constexpr int waited_turns = 100;

void ask_rnr_waits(Side &side)
{
    ntbv_qp *waiting = side.connected(NTBV_RC, waits_shortly(7));
    ntbv_qp *other = side.connected(NTBV_RC);
    side.agree();
    for (std::uint32_t id = 1; id < 3; ++id)
        check("send", Work(NTBV_SEND_IMM, id).imm(id).post(waiting));
    check("send by another", Work(NTBV_SEND, 3).post(other));
    side.expect_sent(3);
    for (int i = 0; i < waited_turns; ++i)
        side.agree();
    Side::expect_none("completed without a receive", side.sent);
    side.say(); // it has been looked
    side.expect_sent(1);
    side.expect_sent(2);
}

void serve_rnr_waits(Side &side)
{
    ntbv_qp *waiting = side.connected(NTBV_RC, waits_shortly(7));
    ntbv_qp *other = side.connected(NTBV_RC);
    check("post receive", post_recv(other, 3));
    side.agree();
    // What came before it by the other queue pair has found no receive.
    side.expect_received(3);
    for (int i = 0; i < waited_turns; ++i)
        side.agree();
    side.hear();
    for (std::uint64_t id = 1; id < 3; ++id) {
        check("post receive", post_recv(waiting, id));
        expect("order", side.expect_received(id).imm, id);
    }
}

void ask_rnr_ends(Side &side)
{
    for (const std::uint8_t retries : {std::uint8_t{0}, std::uint8_t{3}}) {
        ntbv_qp *qp = side.connected(NTBV_RC, waits_shortly(retries));
        check("post receive", post_recv(qp, 50));
        side.agree();
        check("send", Work(NTBV_SEND, 1).post(qp));
        check("send", Work(NTBV_SEND, 2, {}, 0).post(qp));
        check("write", Work(NTBV_WRITE, 3, side.memory.piece(0, 8)).to(side.theirs).post(qp));
        side.expect_sent(1, NTBV_RNR_RETRY_EXC_ERR);
        side.expect_sent(2, NTBV_WR_FLUSH_ERR);
        side.expect_sent(3, NTBV_WR_FLUSH_ERR);
        side.expect_received(50, NTBV_WR_FLUSH_ERR);
        expect_state(qp, NTBV_ERR);
        side.agree();
    }
}

void serve_rnr_ends(Side &side)
{
    for (const std::uint8_t retries : {std::uint8_t{0}, std::uint8_t{3}}) {
        ntbv_qp *qp = side.connected(NTBV_RC, waits_shortly(retries));
        side.agree();
        side.agree(); // it has failed
        expect_state(qp, NTBV_RTS);
        side.expect_no_event();
    }
}

// ---- a write with immediate data

void ask_write_imm(Side &side)
{
    ntbv_qp *qp = side.connected(NTBV_RC);
    side.agree();
    std::uint32_t id = 0;
    for (const std::uint32_t bytes : {0u, 1u, 64u, 5000u, 100000u}) {
        fill(side.memory.data(), bytes, id);
        check("write", Work(NTBV_WRITE_IMM, id, side.memory.piece(0, bytes))
                           .to(side.theirs)
                           .imm(0xdead0000 + id)
                           .post(qp));
        side.expect_sent(id++);
        side.agree(); // the peer has looked
    }
}

void serve_write_imm(Side &side)
{
    ntbv_qp *qp = side.connected(NTBV_RC);
    // With a piece and without: its bytes are none of the write's.
    constexpr std::uint32_t slots = 1 << 20;
    for (std::uint32_t id = 0; id < 5; ++id)
        check("post receive", post_recv(qp, id, side.memory.piece(slots, id % 2 == 0 ? 0 : 64)));
    side.agree();
    std::uint32_t id = 0;
    for (const std::uint32_t bytes : {0u, 1u, 64u, 5000u, 100000u}) {
        const ntbv_wc got = side.expect_received(id);
        expect("opcode", got.opcode, NTBV_WC_RECV_WRITE_IMM);
        expect("flags", got.flags, NTBV_WC_WITH_IMM);
        expect("bytes", got.bytes, bytes);
        expect("immediate data", got.imm, 0xdead0000 + id);
        expect_filled("written byte", side.memory.data(), bytes, id);
        expect("a byte of the receive", side.memory[slots], 0);
        ++id;
        side.agree();
    }
}

// ---- shared receives

constexpr std::uint32_t shared = 8, shared_limit = 5;

void ask_shared_receives(Side &side)
{
    ntbv_qp *qp = side.connected(NTBV_RC);
    ntbv_qp *second = side.connected(NTBV_RC);
    for (int round = 0; round < 3; ++round)
        for (std::uint64_t id = 0; id < shared; ++id) {
            side.hear(); // the peer has looked
            check("send", Work(NTBV_SEND, id).post(id % 2 == 0 ? qp : second));
            side.expect_sent(id);
        }
    side.hear(); // its end of the first one is broken
    check("write",
          Work(NTBV_WRITE, 9, side.memory.piece(0, 8)).to(side.theirs.by_wrong_key()).post(second));
    side.expect_sent(9, NTBV_REM_ACCESS_ERR);
}

void serve_shared_receives(Side &side)
{
    ntbv_srq *srq = nullptr;
    check("srq", ntbv_srq_create(side.node.pd(), 16, 1, 0, 500, &srq));
    ntbv_qp *qp = side.connected(NTBV_RC, attributes(), srq);
    ntbv_qp *second = side.connected(NTBV_RC, attributes(), srq);
    for (int round = 0; round < 3; ++round) {
        // In the second round it is armed no more.
        if (round != 1)
            check("limit", ntbv_srq_modify(srq, NTBV_SRQ_LIMIT, shared_limit));
        for (std::uint64_t id = 0; id < shared; ++id)
            check("post receive", post_srq(srq, id));
        expect("limit", ntbv_srq_limit(srq), round == 1 ? 0 : shared_limit);
        for (std::uint32_t id = 0; id < shared; ++id) {
            side.say();
            const ntbv_wc got = side.expect_received(id);
            expect("queue pair", got.qpn, ntbv_qp_number(id % 2 == 0 ? qp : second));
            if (round != 1 && shared - id - 1 == shared_limit - 1) {
                expect("asynchronous event", side.next_event(), NTBV_EVENT_SRQ_LIMIT_REACHED);
                expect("limit", ntbv_srq_limit(srq), 0);
            }
            side.expect_no_event();
        }
    }
    check("post receive", post_srq(srq, 30));
    check("error", to_state(qp, NTBV_ERR));
    expect("asynchronous event", side.next_event(), NTBV_EVENT_LAST_WQE_REACHED);
    side.expect_no_event();
    side.say();
    // The peer's request breaks it: two events, in any order.
    const std::uint32_t one = side.next_event(), two = side.next_event();
    expect("events", std::min(one, two), NTBV_EVENT_QP_ACCESS_ERR);
    expect("events", std::max(one, two), NTBV_EVENT_LAST_WQE_REACHED);
    side.expect_no_event();
    Side::expect_none("a shared receive was flushed", side.received);
    side.drop(qp);
    side.drop(second);
    check("end of the srq", ntbv_srq_destroy(srq));
}

// ---- events of completions

constexpr std::uint64_t plain_sends = 3;

void ask_solicited(Side &side)
{
    ntbv_qp *qp = side.connected(NTBV_RC);
    side.agree();
    for (std::uint64_t id = 0; id < plain_sends; ++id)
        check("send", Work(NTBV_SEND, id).post(qp));
    for (std::uint64_t id = 0; id < plain_sends; ++id)
        side.expect_sent(id);
    side.agree(); // no event has come
    for (std::uint64_t id = 0; id < 2; ++id) {
        check("send", Work(NTBV_SEND, id, {}, NTBV_SIGNALED | NTBV_SOLICITED).post(qp));
        side.expect_sent(id);
    }
    side.say();
}

void serve_solicited(Side &side)
{
    ntbv_qp *qp = side.connected(NTBV_RC);
    for (std::uint64_t id = 0; id < plain_sends + 2; ++id)
        check("post receive", post_recv(qp, id));
    side.received.arm(true);
    side.say();
    side.hear();
    side.hear(); // all are sent, and so they are here
    expect("events of what is not solicited", side.received.has_event(), 0);
    side.say();
    side.received.sleep();
    side.hear();
    expect("events that nothing was armed for", side.received.has_event(), 0);
    ntbv_wc wc;
    for (std::uint64_t id = 0; id < plain_sends + 2; ++id) {
        expect("a completion", side.received.poll(wc));
        check("receive", wc.status);
        expect("order", wc.id, id);
    }
}

constexpr Rule rules[] = {
    {"rnr_waits", ask_rnr_waits, serve_rnr_waits},
    {"rnr_ends", ask_rnr_ends, serve_rnr_ends},
    {"write_imm", ask_write_imm, serve_write_imm},
    {"shared_receives", ask_shared_receives, serve_shared_receives},
    {"solicited", ask_solicited, serve_solicited},
};

} // namespace

std::span<const Rule> rules_of_receives()
{
    return rules;
}

} // namespace verbs_test

// SPDX-License-Identifier: BSD-3-Clause
// Rules of errors: the status at both ends, the event, and what is flushed behind it.
#include "rules.hpp"

namespace verbs_test
{

namespace
{

constexpr std::uint32_t guarded_bytes = 4096, guarded_seed = 5;

/// The request fails, and one behind it is flushed. Both ends say that they are ready first.
void ask_refused(Side &side, Work work, ntbv_status status, ntbv_qp_attr attr = attributes())
{
    ntbv_qp *qp = side.connected(NTBV_RC, attr);
    side.agree();
    work.wr.id = 7;
    check("post", work.post(qp));
    check("post behind it", Work(NTBV_SEND, 8, {}, 0).post(qp));
    side.expect_sent(7, status);
    side.expect_sent(8, NTBV_WR_FLUSH_ERR);
    expect_state(qp, NTBV_ERR);
    side.agree();
}

void serve_refused(Side &side, ntbv_event event, ntbv_qp_attr attr = attributes())
{
    ntbv_qp *qp = side.connected(NTBV_RC, attr);
    for (std::uint64_t id = 1; id < 4; ++id)
        check("post receive", post_recv(qp, id));
    side.agree();
    expect("asynchronous event", side.next_event(), event);
    for (std::uint64_t id = 1; id < 4; ++id)
        side.expect_received(id, NTBV_WR_FLUSH_ERR);
    expect_state(qp, NTBV_ERR);
    side.hear(); // its requests have completed
    side.expect_no_event();
    Side::expect_none("a receive", side.received);
    side.say();
}

// ---- keys, ranges and rights of the peer's memory

constexpr ntbv_opcode one_sided[] = {NTBV_WRITE, NTBV_READ, NTBV_FETCH_ADD, NTBV_CMP_SWP};

Work guarded(Side &side, ntbv_opcode opcode, const Remote &remote, std::size_t offset = 0)
{
    std::memset(side.memory.data(), 0, 8);
    return Work(opcode, 0, side.memory.piece(0, 8)).to(remote, offset);
}

void ask_remote_access(Side &side)
{
    const Remote closed = side.hear_remote();
    const Remote &open = side.theirs;
    for (const ntbv_opcode opcode : one_sided) {
        const Remote wrong = open.by_wrong_key();
        for (const Work &work :
             {guarded(side, opcode, wrong), guarded(side, opcode, open, Side::memory_bytes),
              guarded(side, opcode, closed), guarded(side, opcode, open)})
            ask_refused(side, work, NTBV_REM_ACCESS_ERR);
    }
    // A range that only begins inside.
    ask_refused(side,
                Work(NTBV_WRITE, 0, side.memory.piece(0, 100)).to(open, Side::memory_bytes - 99),
                NTBV_REM_ACCESS_ERR);
}

void serve_remote_access(Side &side)
{
    Region closed(side.node, guarded_bytes, NTBV_LOCAL_WRITE);
    std::uint8_t *end = &side.memory[Side::memory_bytes - guarded_bytes];
    for (std::uint8_t *bytes : {side.memory.data(), end, closed.data()})
        fill(bytes, guarded_bytes, guarded_seed);
    side.say_remote({closed.address(), closed.key});
    ntbv_qp_attr without = attributes();
    without.access = NTBV_LOCAL_WRITE;
    for (std::size_t i = 0; i < std::size(one_sided); ++i)
        for (const ntbv_qp_attr &attr : {attributes(), attributes(), attributes(), without})
            serve_refused(side, NTBV_EVENT_QP_ACCESS_ERR, attr);
    serve_refused(side, NTBV_EVENT_QP_ACCESS_ERR);
    for (const std::uint8_t *bytes : {side.memory.data(), end, closed.data()})
        expect_filled("a refused request has changed a byte", bytes, guarded_bytes, guarded_seed);
}

// ---- atomics that are not aligned

void ask_unaligned_atomic(Side &side)
{
    for (const ntbv_opcode opcode : {NTBV_FETCH_ADD, NTBV_CMP_SWP})
        ask_refused(side, guarded(side, opcode, side.theirs, 4), NTBV_REM_INV_REQ_ERR);
}

void serve_unaligned_atomic(Side &side)
{
    fill(side.memory.data(), guarded_bytes, guarded_seed);
    for (int i = 0; i < 2; ++i)
        serve_refused(side, NTBV_EVENT_QP_REQ_ERR);
    expect_filled("a refused request has changed a byte", side.memory.data(), guarded_bytes,
                  guarded_seed);
}

// ---- a key that has ended

void ask_deregistered(Side &side)
{
    const Remote region = side.hear_remote();
    const Work work = Work(NTBV_WRITE, 1, side.memory.piece(0, 64)).to(region);
    fill(side.memory.data(), 64, 1);
    ntbv_qp *qp = side.connected(NTBV_RC);
    side.agree();
    side.await_grant(qp, region, guarded_bytes - 8);
    check("write", Work(work).post(qp));
    side.expect_sent(1);
    side.agree(); // it is there
    side.hear();  // it is deregistered
    ask_refused(side, work, NTBV_REM_ACCESS_ERR);
    check("write by the other queue pair", Work(work).post(qp));
    side.expect_sent(1, NTBV_REM_ACCESS_ERR);
}

void serve_deregistered(Side &side)
{
    Region region(side.node, guarded_bytes);
    side.say_remote({region.address(), region.key});
    side.connected(NTBV_RC);
    side.agree();
    side.agree();
    expect_filled("written byte", region.data(), 64, 1);
    region.deregister();
    fill(region.data(), guarded_bytes, guarded_seed);
    side.say();
    serve_refused(side, NTBV_EVENT_QP_ACCESS_ERR);
    expect("asynchronous event", side.next_event(), NTBV_EVENT_QP_ACCESS_ERR);
    expect_filled("a byte has changed behind the end of its key", region.data(), guarded_bytes,
                  guarded_seed);
}

void ask_invalidated(Side &side)
{
    ntbv_qp *qp = side.connected(NTBV_RC);
    const Remote window = side.hear_remote();
    fill(side.memory.data(), 128, 1);
    check("write", Work(NTBV_WRITE, 1, side.memory.piece(0, 64)).to(window).post(qp));
    check("send", Work(NTBV_SEND_INV, 2).imm(window.key).post(qp));
    side.expect_sent(1);
    side.expect_sent(2);
    side.agree(); // the peer has looked
    check("write", Work(NTBV_WRITE, 3, side.memory.piece(64, 64)).to(window).post(qp));
    check("send", Work(NTBV_SEND, 4).post(qp));
    side.expect_sent(3, NTBV_REM_ACCESS_ERR);
    side.expect_sent(4, NTBV_WR_FLUSH_ERR);
}

void serve_invalidated(Side &side)
{
    Region region(side.node, guarded_bytes, all_rights | NTBV_MW_BIND);
    ntbv_mw *mw = nullptr;
    std::uint32_t key = 0;
    check("window", ntbv_mw_create(side.node.pd(), NTBV_MW_2, &mw, &key));
    ntbv_qp *qp = side.connected(NTBV_RC);
    ntbv_bind bind = {mw, key, region.key, region.address(), guarded_bytes, NTBV_REMOTE_WRITE};
    Work work(NTBV_BIND_MW, 1);
    work.wr.bind = &bind;
    check("bind", work.post(qp));
    side.expect_sent(1);
    for (std::uint64_t id = 1; id < 3; ++id)
        check("post receive", post_recv(qp, id));
    side.say_remote({region.address(), bind.key});
    const ntbv_wc got = side.expect_received(1);
    expect("flags", got.flags, NTBV_WC_WITH_INV);
    expect("the key that has ended", got.imm, bind.key);
    expect_filled("written byte", region.data(), 64, 1);
    fill(region.data(), guarded_bytes, guarded_seed);
    side.agree();
    expect("asynchronous event", side.next_event(), NTBV_EVENT_QP_ACCESS_ERR);
    side.expect_received(2, NTBV_WR_FLUSH_ERR);
    expect_filled("a byte has changed behind the end of its key", region.data(), guarded_bytes,
                  guarded_seed);
    side.drop(qp);
    ntbv_mw_destroy(mw);
}

// ---- a key of the own memory

void ask_local_key(Side &side)
{
    const ntbv_sge good = side.memory.piece(0, 64);
    ntbv_sge wrong = good, outside = side.memory.piece(Side::memory_bytes - 63, 64);
    wrong.key ^= 0x10000;
    for (const ntbv_sge &piece : {wrong, outside})
        for (const ntbv_opcode opcode : {NTBV_SEND, NTBV_WRITE, NTBV_READ}) {
            ntbv_qp *qp = side.connected(NTBV_RC);
            side.agree();
            check("post", Work(NTBV_SEND, 1, good).post(qp));
            check("post", Work(opcode, 2, piece).to(side.theirs).post(qp));
            check("post", Work(NTBV_SEND, 3, good, 0).post(qp));
            side.expect_sent(1);
            side.expect_sent(2, NTBV_LOC_PROT_ERR);
            side.expect_sent(3, NTBV_WR_FLUSH_ERR);
            expect_state(qp, NTBV_ERR);
            side.agree();
        }
}

void serve_local_key(Side &side)
{
    for (int i = 0; i < 6; ++i) {
        ntbv_qp *qp = side.connected(NTBV_RC);
        for (std::uint64_t id = 1; id < 3; ++id)
            check("post receive", post_recv(qp, id, side.memory.piece(0, 64)));
        side.agree();
        side.expect_received(1);
        side.agree();
        Side::expect_none("a receive", side.received);
        expect_state(qp, NTBV_RTS);
        side.expect_no_event();
    }
}

// ---- a receive that is too short

void ask_short_receive(Side &side)
{
    for (const std::uint32_t bytes : {100u, 5000u, 60000u}) {
        ntbv_qp *qp = side.connected(NTBV_RC);
        side.agree();
        for (std::uint64_t id = 7; id < 9; ++id)
            check("send", Work(NTBV_SEND, id, side.memory.piece(0, bytes)).post(qp));
        side.expect_sent(7, NTBV_REM_INV_REQ_ERR);
        side.expect_sent(8, NTBV_WR_FLUSH_ERR);
        expect_state(qp, NTBV_ERR);
    }
}

void serve_short_receive(Side &side)
{
    for (const std::uint32_t bytes : {100u, 5000u, 60000u}) {
        ntbv_qp *qp = side.connected(NTBV_RC);
        check("post receive", post_recv(qp, 1, side.memory.piece(0, bytes - 1)));
        check("post receive", post_recv(qp, 2, side.memory.piece(0, bytes)));
        side.agree();
        side.expect_received(1, NTBV_LOC_LEN_ERR);
        side.expect_received(2, NTBV_WR_FLUSH_ERR);
        expect_state(qp, NTBV_ERR);
    }
}

// ---- what is flushed

constexpr std::uint64_t good_sends = 20, flushed_sends = 60, receives = 40;

void ask_flushed(Side &side)
{
    ntbv_qp *qp = side.connected(NTBV_RC);
    for (std::uint64_t id = 0; id < receives; ++id)
        check("post receive", post_recv(qp, id));
    side.agree();
    const Remote wrong = side.theirs.by_wrong_key();
    std::uint64_t id = 0;
    for (; id < good_sends; ++id)
        check("send", Work(NTBV_SEND, id).post(qp));
    const std::uint64_t bad = id++;
    check("write", Work(NTBV_WRITE, bad, side.memory.piece(0, 8), 0).to(wrong).post(qp));
    constexpr ntbv_opcode opcodes[] = {NTBV_SEND, NTBV_WRITE, NTBV_READ, NTBV_FETCH_ADD};
    const std::uint64_t end = id + flushed_sends;
    for (; id < end; ++id)
        check("post", Work(opcodes[id % std::size(opcodes)], id, side.memory.piece(64, 8),
                           id % 2 == 0 ? unsigned{NTBV_SIGNALED} : 0u)
                          .to(side.theirs)
                          .post(qp));
    for (std::uint64_t i = 0; i < end; ++i)
        side.expect_sent(i, i < bad    ? NTBV_SUCCESS
                            : i == bad ? NTBV_REM_ACCESS_ERR
                                       : NTBV_WR_FLUSH_ERR);
    for (std::uint64_t i = 0; i < receives; ++i)
        side.expect_received(i, NTBV_WR_FLUSH_ERR);
    check("post of one that is broken", Work(NTBV_SEND, end, {}, 0).post(qp));
    side.expect_sent(end, NTBV_WR_FLUSH_ERR);
}

void serve_flushed(Side &side)
{
    ntbv_qp *qp = side.connected(NTBV_RC);
    for (std::uint64_t id = 0; id < receives; ++id)
        check("post receive", post_recv(qp, id));
    side.agree();
    for (std::uint64_t id = 0; id < receives; ++id)
        side.expect_received(id, id < good_sends ? NTBV_SUCCESS : NTBV_WR_FLUSH_ERR);
    check("post of one that is broken", Work(NTBV_SEND, 1, {}, 0).post(qp));
    check("post receive of one that is broken", post_recv(qp, receives));
    side.expect_sent(1, NTBV_WR_FLUSH_ERR);
    side.expect_received(receives, NTBV_WR_FLUSH_ERR);
}

constexpr Rule rules[] = {
    {"short_receive", ask_short_receive, serve_short_receive},
    {"remote_access", ask_remote_access, serve_remote_access},
    {"unaligned_atomic", ask_unaligned_atomic, serve_unaligned_atomic},
    {"local_key", ask_local_key, serve_local_key},
    {"flushed", ask_flushed, serve_flushed},
    {"deregistered", ask_deregistered, serve_deregistered},
    {"invalidated", ask_invalidated, serve_invalidated},
};

} // namespace

std::span<const Rule> rules_of_errors()
{
    return rules;
}

} // namespace verbs_test
